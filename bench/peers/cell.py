"""One provider on one workload, after its rounds: what columns ask. No torch here."""
from peers import measures
from peers.columns import NotMeasured


class Cell:
    """`workload`, `provider` (its name), `entry` (times, rates and errors, see report.entry), `launch` (Launch), `gpu` (Gpu). What is
    measured is measured once, whichever columns ask for it."""

    def __init__(self, workload, provider, entry, launch, gpu, first_calls):
        """`first_calls`: a FirstCalls (first_call.py), or what a test puts in its place."""
        self.workload, self.provider, self.entry, self.launch, self.gpu = workload, provider.name, entry, launch, gpu
        self._provider, self._first_calls, self._known = provider, first_calls, {}

    def memory(self):
        return self._once("memory", lambda: measures.memory(self.launch, self.workload, self.gpu))

    def set_up(self):
        return self._once("set_up", lambda: measures.set_up(self.launch, self.gpu))

    def host_us(self):
        return self._once("host_us", lambda: measures.host_us(self.launch, self.gpu, self.entry["ms"]))

    def host_small_us(self, tokens=256):
        """host_us of the provider on the first tokens alone. Making that launch may end what others need: ask for it last."""
        small = self.workload.shortened(tokens)
        launch = self._provider.make(small, *self.gpu.inputs(small))
        if launch is None:
            raise NotMeasured(f"it does not apply to {tokens} tokens")
        with launch.context():
            launch.run()
            launch.run()
        return measures.host_us(launch, self.gpu, call_ms=1.0)

    def first_call(self, kind):
        """Seconds of the first call of a fresh process, `cold` or `warm`."""
        seconds = self._once("first_call", self._ask_for_first_calls)
        if kind not in seconds:
            raise NotMeasured(self._provider.never_cold)
        return seconds[kind]

    def _ask_for_first_calls(self):
        self.gpu.empty_cache()  # the other process needs memory too
        return self._first_calls.measure(self.workload, self._provider)

    def _once(self, name, measure):
        if name not in self._known:
            try:
                self._known[name] = measure()
            except Exception as error:  # the next column that asks gets the same answer
                self._known[name] = error
        if isinstance(self._known[name], Exception):
            raise self._known[name]
        return self._known[name]


def fill(cell, columns, skipped=None, doing=lambda column: None):
    """The values of the columns by name, and why others have none. `skipped`: column -> why it is not even tried; `doing` is told
    before each."""
    values, missing = {}, {}
    for column in columns:
        if column.name in (skipped or {}):
            missing[column.name] = skipped[column.name]
            continue
        doing(column.name)
        try:
            values[column.name] = column.measure(cell)
        except NotMeasured as reason:
            missing[column.name] = str(reason)
        except Exception as error:
            missing[column.name] = describe(error)
            cell.gpu.synchronize()  # an error that the GPU keeps ends this process, while this column is still named as under way
    doing(None)
    return values, missing


def describe(error):
    """The first line of an exception, short enough for a table."""
    return (str(error).strip().split("\n")[0] or type(error).__name__)[:300]
