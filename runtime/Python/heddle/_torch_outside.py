"""What torch.compile calls as Python, not as nodes of a graph: it sees nothing of what these do inside. A file of its own, as
torch.compiler.disable takes seconds to load."""
from . import _direct, _flex, _pages, _quantize
from ._torch_traced import outside


_FROZEN = "heddle.{} is no node of a graph: heddle.attention is, with a name or a heddle.Pattern that was made outside"

_CALL = ("heddle.{}: with words as its pattern or a tensor as its scale it is no node of a graph; give a heddle.Pattern, made outside: "
         "heddle.pattern(causal & window(left=1023)), and a number or q times it")

attention = outside(_direct.attention, _CALL.format("attention"))
prepare = outside(_direct.prepare, _FROZEN.format("prepare"))
kernel = outside(_direct.kernel, _FROZEN.format("kernel"))
backward = outside(_direct.backward, "heddle.attention_backward: with words as its pattern it is no node of a graph; give a heddle.Pattern, made outside")
tune = outside(_direct.tune, _FROZEN.format("tune"))
paged_attention = outside(_pages.attention, _CALL.format("serve.paged_attention"))
prepare_pages = outside(_pages.prepare, "heddle.serve.prepare is no node of a graph: heddle.serve.paged_attention is, with a name or a heddle.Pattern that was "
                                         "made outside")
quantize = outside(_quantize.quantize, "heddle.quantize: with words as its pattern it is no node of a graph; give a heddle.Pattern, made outside")
launch = outside(_direct.launch, _FROZEN.format("Prepared"))
pattern_now = outside(_flex.pattern_now, "heddle.flex_attention: with words or functions it breaks the graph; give a heddle.Pattern, made outside: "
                                          "heddle.pattern(heddle.words.predicate(function))")
