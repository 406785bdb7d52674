"""heddle.configure(check_pages=True): what a launch on a GPU would read of lengths, offsets and tables, checked before it as in host memory.

Integers come to the host, which waits for the GPU. Which pages a pattern reads the processors know: they compute the call, over keys of one
dimension that all are one number in memory.
"""
import torch

from . import _call, _library, _torch
from .errors import UnsupportedError


def _hosted(tensor):
    return tensor.detach().to("cpu", copy=True)


def _one(like):
    """Its rows and heads, of one dimension."""
    return torch.zeros(1).expand(*like.shape[:3], 1)


def check(spec):
    """Raises what the call would in host memory."""
    _library.compiler_library("heddle.configure(check_pages=True)")
    if torch.cuda.is_current_stream_capturing():
        raise UnsupportedError(f"{spec.name}: heddle.configure(check_pages=True) waits for lengths and tables, which a stream that is captured cannot: "
                               "check calls outside of the capture")
    integers = {name: _hosted(each) for name, each in spec.given().items() if not each.is_floating_point()}
    arguments = {name: _hosted(each) if isinstance(each, torch.Tensor) else each for name, each in spec.arguments.items()}
    hosted = spec._replace(q=_one(spec.q), k=_one(spec.k), v=_one(spec.v), out=None, lse=None, descale=None, arguments=arguments, **integers)
    inputs = _call.inputs_of(hosted, _torch.view, hosted.kind)
    out = torch.empty(inputs.shape("out"))
    _call.run_on_host(_call.Call(hosted, inputs, {"out": _torch.view(out, "out")}))
