"""What torch.compile does not look into when it makes nodes of calls. A file of its own, as torch.compiler.disable takes seconds to load."""
import torch

from . import _torch


def outside(function, reason):
    """The function, which breaks graphs. `reason`: for whoever asked for one graph."""
    try:
        return torch.compiler.disable(function, reason=reason)
    except TypeError:  # before PyTorch 2.8
        return torch.compiler.disable(function)


def _raise(make, *given):
    raise make(*given)


refuse = outside(_raise, "heddle refuses this call, in a graph or outside, and says why without fullgraph=True")


@torch.compiler.assume_constant_result
def type_of_out(dtype):
    """_torch's, which the tables of the library say."""
    return _torch.type_of_out(dtype)
