"""What was probably meant, as the command line says it."""
import difflib


def did_you_mean(word, known):
    """", did you mean 'causal'?" or ""."""
    close = difflib.get_close_matches(str(word), list(known), n=1)
    return f", did you mean {close[0]!r}?" if close else ""
