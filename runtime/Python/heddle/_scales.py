"""What elements of e4m3 are multiplied by: scales of q, k and v that a call was given, and how many rows share one."""
import math
import sys

from . import _kinds
from ._options import bad


def factors_of(descale, tensors=("q", "k", "v")):
    """Scales of these, each a tensor or None."""
    if not isinstance(descale, (tuple, list)) or len(descale) != len(tensors):
        of = f"{', '.join(tensors[:-1])} and {tensors[-1]}"
        raise bad(f"descale: expected {'three' if len(tensors) == 3 else 'two'} scales, of {of}, each a tensor or None, got {type(descale).__name__}")
    return tuple(descale)


def _ones(tensor, heads):
    """fp32 [batch, heads] where `tensor` lies; None: of another library than PyTorch and numpy."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None and isinstance(tensor, numpy.ndarray):
        return numpy.ones((tensor.shape[0], heads), dtype=numpy.float32)
    if torch is not None and isinstance(tensor, torch.Tensor):
        return tensor.new_ones((tensor.shape[0], heads), dtype=torch.float32)
    return None


def _of_heads(name, scale, tensor, groups):
    """[batch, heads]: of one number for the whole tensor, or, of q, of one for the queries of each kv head. Others are left as they are."""
    is_number = isinstance(scale, (int, float)) and not isinstance(scale, bool)
    if is_number and not 0 < scale < math.inf:
        raise bad(f"descale_{name}: expected a finite number above 0, got {scale}")
    shape = () if is_number else getattr(scale, "shape", None)
    if shape is None or len(getattr(tensor, "shape", ())) != 4:
        return scale
    batch, _, heads, _ = tensor.shape
    of_one, of_group = tuple(shape) in ((), (1,)), tuple(shape) == (batch, groups) and groups != heads and groups > 0 and heads % groups == 0
    if not is_number and getattr(scale, "device", None) != getattr(tensor, "device", None):
        return scale
    ones = _ones(tensor, heads) if of_one or of_group else None
    if ones is None:
        return scale
    if of_one:
        return ones * (scale if is_number else scale.reshape(()))
    return (ones.reshape(batch, groups, -1) * scale[..., None]).reshape(batch, heads)


def spread(descale, q, k, v):
    """Scales of each head from those of whole tensors, or of q from those of kv heads, as FlashAttention has them: copies."""
    groups = k.shape[2] if len(getattr(k, "shape", ())) == 4 else 0
    return tuple(_of_heads(name, scale, tensor, groups) for name, scale, tensor in zip("qkv", factors_of(descale), (q, k, v)))


def blocks(length, scale_rows):
    """Of rows that share a scale."""
    return -(-length // scale_rows) if scale_rows else 1


def set_rows(inputs, scale_rows):
    """How many rows of q and k share a scale: as the call says that writes scales, else the fewest that fit the shapes of those that it reads.
    0: all of a head."""
    if not inputs.kind.takes_scale_rows:
        return
    given = [(name, size, inputs.sizes[of]) for name, size, of in (("descale_q", "q_blocks", "seqlen_q"), ("descale_k", "k_blocks", "seqlen_k"))
             if name in inputs.views]
    if scale_rows is None and any(len(inputs.views[name].shape) == 3 for name, _, _ in given):
        fitting = [rows for rows in _kinds.scale_rows() if all(inputs.sizes[size] == blocks(length, rows) for _, size, length in given)]
        if not fitting:
            shapes = " and ".join(f"{list(inputs.views[name].shape)} beside {length} rows" for name, _, length in given)
            raise bad(f"descale: expected scales of q and k for each (batch, head), or for each block of {' or '.join(map(str, _kinds.scale_rows()))} "
                      f"rows of both, got {shapes}")
        scale_rows = fitting[0]
    inputs.sizes["scale_rows"] = scale_rows or 0
    for size, length in (("q_blocks", "seqlen_q"), ("k_blocks", "seqlen_k")):
        inputs.sizes[size] = blocks(inputs.sizes[length], scale_rows)
