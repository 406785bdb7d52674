"""heddle.quantize at once: PyTorch tensors as e4m3, with what their heads are multiplied by."""
import re
from typing import Any, NamedTuple, Optional

from . import _direct, _kinds, _scalars, patterns
from .errors import InvalidArgumentError, UnsupportedError

_NO_SHIFT = re.compile(r"attn\.(softcap|score_map)\b|attn\.softmax .*\b(sink) %")  # beside which a number added to all scores of a row changes weights

_WORD, _STEP = 2**64 - 1, 0x9e3779b97f4a7c15


class Quantized(NamedTuple):
    """What heddle.quantize gives: `heddle.attention(low.q, low.k, low.v, pattern, descale=low.descale)`."""
    q: Any
    k: Any
    v: Any
    descale: Any  # of q, k and v: fp32 [batch, heads], [batch, kv_heads] and [batch, kv_heads]; of blocks of rows [batch, heads, blocks] of q and k
    k_mean: Any = None  # fp32 [batch, kv_heads, head_dim], where k was smoothed


class QuantizeSpec(NamedTuple):
    q: Any
    k: Any
    v: Any
    pattern: Any = None  # of the calls that read the result; the kernel is that of any
    smooths_k: bool = False
    rotation: Any = None
    scale_rows: int = 0
    v_key_major: bool = False
    # What calls of any kind have.
    scale: None = None
    stream: None = None
    arguments: dict = {}
    q_origin: Optional[int] = None
    k_origin: int = 0
    precision: str = "exact"

    @property
    def kind(self):
        kind = _kinds.kinds()["quantize" if self.rotation is None else "quantize_rotated"]
        return _kinds.key_major(kind) if self.v_key_major else kind

    def given(self):
        """Tensors, by role."""
        own = {} if self.rotation is None else dict(rotation=self.rotation)
        return dict(q=self.q, k=self.k, v=self.v, **own)


def _mixed(word):
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9 & _WORD
    word = (word ^ word >> 27) * 0x94d049bb133111eb & _WORD
    return word ^ word >> 31


def signs(count, seed):
    """Numbers 1 and -1: those of compiler/Io/RandomTensor.h for tensor rotation."""
    for what, number, least in (("head_dim", count, 1), ("seed", seed, 0)):
        if not isinstance(number, int) or isinstance(number, bool) or number < least:
            raise InvalidArgumentError(f"random_signs: {what}: expected an int of {least} or more, got {number!r}")
    name = 0xcbf29ce484222325
    for letter in b"rotation":
        name = (name ^ letter) * 0x100000001b3 & _WORD
    base = _mixed(seed + _STEP * (name | 1) & _WORD)
    return [-1.0 if _mixed(base + _STEP * i & _WORD) >> 63 else 1.0 for i in range(1, count + 1)]


def _check_smoothing(pattern):
    if pattern is None:
        raise InvalidArgumentError("quantize: smooth_k: expected the pattern of the calls beside it, some of which it would change")
    found = _NO_SHIFT.search(str(pattern if isinstance(pattern, patterns.Pattern) else patterns.resolved(pattern)))
    if found:
        raise UnsupportedError(f"quantize: smooth_k: beside {found[1] or found[2]} a number that is added to all scores of a query changes weights: leave k as it is")


def _check_scale_rows(rows):
    known = (0, *_kinds.scale_rows())
    if not isinstance(rows, int) or isinstance(rows, bool) or rows not in known:
        raise InvalidArgumentError(f"quantize: scale_rows: expected {', '.join(map(str, known[:-1]))} or {known[-1]}, got {_scalars.shown(rows)}")


def quantize(spec):
    _check_scale_rows(spec.scale_rows)
    if spec.smooths_k:
        _check_smoothing(spec.pattern)
    if not _direct.is_torch(spec.q):
        raise UnsupportedError(f"quantize: expected PyTorch tensors, got {type(spec.q).__name__}: others have no float8_e4m3fn")
    from . import _torch_quantize
    return Quantized(*_torch_quantize.quantize(spec._replace(pattern=patterns.library("full"))))
