"""What elements of e4m3 are multiplied by: scales of q, k and v that a call was given, and how many rows share one."""
from . import _kinds
from ._options import bad


def factors_of(descale, tensors=("q", "k", "v")):
    """Scales of these, each a tensor or None."""
    if not isinstance(descale, (tuple, list)) or len(descale) != len(tensors):
        of = f"{', '.join(tensors[:-1])} and {tensors[-1]}"
        raise bad(f"descale: expected {'three' if len(tensors) == 3 else 'two'} scales, of {of}, each a tensor or None, got {type(descale).__name__}")
    return tuple(descale)


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
