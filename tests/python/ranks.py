"""Ranks of a group that are threads of a test."""
import threading


def on_ranks(groups, function):
    """What function(group) gives, or raises, on each rank."""
    results = [None] * len(groups)

    def run(group):
        try:
            results[group.rank] = function(group)
        except Exception as error:
            results[group.rank] = error

    threads = [threading.Thread(target=run, args=(group,)) for group in groups]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
