"""What torch.compile calls as Python, not as nodes of a graph: it sees nothing of what these do inside. A file of its own, as
torch.compiler.disable takes seconds to load."""
import torch

from . import _torch, calls, flex


def _outside(function, reason):
    """`reason`: for whoever asked for one graph."""
    try:
        return torch.compiler.disable(function, reason=reason)
    except TypeError:  # before PyTorch 2.8
        return torch.compiler.disable(function)


_FROZEN = "heddle.{} is no node of a graph: heddle.attention is, with a name or a heddle.Pattern that was made outside"

attention = _outside(calls.attention, "heddle.attention: with words as its pattern, out= or lse= it is no node of a graph; give a heddle.Pattern, made "
                                      "outside: heddle.pattern(causal & window(left=1023)), and take what the call returns")
prepare = _outside(calls.prepare, _FROZEN.format("prepare"))
kernel = _outside(calls.kernel, _FROZEN.format("kernel"))
tune = _outside(calls.tune, _FROZEN.format("tune"))
launch = _outside(_torch.Prepared.launch, _FROZEN.format("Prepared"))
pattern_now = _outside(flex.pattern_now, "heddle.flex_attention: with words or functions it breaks the graph; give a heddle.Pattern, made outside: "
                                         "heddle.pattern(heddle.words.predicate(function))")
