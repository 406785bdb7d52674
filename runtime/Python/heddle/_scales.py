"""What elements of e4m3 are multiplied by: scales of q, k and v that a call was given, and how many rows share one."""
import sys

from . import _kinds
from ._options import bad


def factors_of(descale, tensors=("q", "k", "v")):
    """Scales of these, each a tensor or None."""
    if not isinstance(descale, (tuple, list)) or len(descale) != len(tensors):
        of = f"{', '.join(tensors[:-1])} and {tensors[-1]}"
        raise bad(f"descale: expected {'three' if len(tensors) == 3 else 'two'} scales, of {of}, each a tensor or None, got {type(descale).__name__}")
    return tuple(descale)


def _of_heads(scale, tensor, groups):
    """[batch, heads]: of one number for the whole tensor, or, of q, of one for the queries of each kv head."""
    library = sys.modules.get(type(tensor).__module__.partition(".")[0])
    if scale is None or len(tensor.shape) != 4 or library is None or library.__name__ not in ("torch", "numpy"):
        return scale
    batch, _, heads, _ = tensor.shape
    shape = () if isinstance(scale, (int, float)) else tuple(scale.shape)
    if shape in ((), (1,)):
        place = dict(device=tensor.device) if library.__name__ == "torch" else {}
        filled = library.ones((batch, heads), dtype=library.float32, **place)
        return filled * (scale if isinstance(scale, (int, float)) else scale.reshape(1, 1))
    if shape == (batch, groups) and groups != heads and heads % max(1, groups) == 0:
        return scale.repeat_interleave(heads // groups, 1) if library.__name__ == "torch" else scale.repeat(heads // groups, 1)
    return scale


def spread(descale, q, k, v):
    """Scales of each head from those of whole tensors, or of q from those of kv heads, as FlashAttention has them: copies."""
    groups = k.shape[2] if len(getattr(k, "shape", ())) == 4 else 0
    return tuple(_of_heads(scale, tensor, groups) for scale, tensor in zip(factors_of(descale), (q, k, v)))


def set_rows(inputs, scale_rows):
    """How many rows of q and k share a scale: as the call says that writes scales, else the fewest that fit the shapes of those that it reads.
    0: all of a head."""
    if not inputs.kind.takes_scale_rows:
        return
    given = [(name, size, inputs.sizes[of]) for name, size, of in (("descale_q", "q_blocks", "seqlen_q"), ("descale_k", "k_blocks", "seqlen_k"))
             if name in inputs.views]
    if scale_rows is None and any(len(inputs.views[name].shape) == 3 for name, _, _ in given):
        fitting = [rows for rows in _kinds.scale_rows() if all(inputs.sizes[size] == -(-length // rows) for _, size, length in given)]
        if not fitting:
            shapes = " and ".join(f"{list(inputs.views[name].shape)} beside {length} rows" for name, _, length in given)
            raise bad(f"descale: expected scales of q and k for each (batch, head), or for each block of {' or '.join(map(str, _kinds.scale_rows()))} "
                      f"rows of both, got {shapes}")
        scale_rows = fitting[0]
    inputs.sizes["scale_rows"] = scale_rows or 0
    for size, length in (("q_blocks", "seqlen_q"), ("k_blocks", "seqlen_k")):
        inputs.sizes[size] = -(-inputs.sizes[length] // scale_rows) if scale_rows else 1
