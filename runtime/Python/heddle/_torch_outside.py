"""What torch.compile calls as Python, not as nodes of a graph: it sees nothing of what these do inside. A file of its own, as
torch.compiler.disable takes seconds to load."""
import torch

from . import _direct, _flex, _pages, _quantize, _torch


def _outside(function, reason):
    """`reason`: for whoever asked for one graph."""
    try:
        return torch.compiler.disable(function, reason=reason)
    except TypeError:  # before PyTorch 2.8
        return torch.compiler.disable(function)


_FROZEN = "heddle.{} is no node of a graph: heddle.attention is, with a name or a heddle.Pattern that was made outside"

_CALL = ("heddle.{}: with words as its pattern or a tensor as its scale it is no node of a graph; give a heddle.Pattern, made outside: "
         "heddle.pattern(causal & window(left=1023)), and a number or q times it")

attention = _outside(_direct.attention, _CALL.format("attention"))
prepare = _outside(_direct.prepare, _FROZEN.format("prepare"))
kernel = _outside(_direct.kernel, _FROZEN.format("kernel"))
backward = _outside(_direct.backward, "heddle.attention_backward: with words as its pattern it is no node of a graph; give a heddle.Pattern, made outside")
tune = _outside(_direct.tune, _FROZEN.format("tune"))
paged_attention = _outside(_pages.attention, _CALL.format("serve.paged_attention"))
prepare_pages = _outside(_pages.prepare, "heddle.serve.prepare is no node of a graph: heddle.serve.paged_attention is, with a name or a heddle.Pattern that was "
                                         "made outside")
quantize = _outside(_quantize.quantize, "heddle.quantize: with words as its pattern it is no node of a graph; give a heddle.Pattern, made outside")
launch = _outside(_direct.launch, _FROZEN.format("Prepared"))
pattern_now = _outside(_flex.pattern_now, "heddle.flex_attention: with words or functions it breaks the graph; give a heddle.Pattern, made outside: "
                                          "heddle.pattern(heddle.words.predicate(function))")
refused = _outside(lambda: None, "heddle refuses this call, in a graph or outside, and says why without fullgraph=True")


@torch.compiler.assume_constant_result
def type_of_out(dtype):
    """_torch's, which the tables of the library say."""
    return _torch.type_of_out(dtype)
