"""What calls were given, as the functions of this package take it."""
from typing import Any, NamedTuple, Optional, Tuple

from . import _kinds


class CallSpec(NamedTuple):
    """What a call was given, as heddle.attention takes it."""
    q: Any
    k: Any
    v: Any
    pattern: Any
    scale: Optional[float] = None
    out: Any = None
    lse: Any = None
    q_origin: Optional[int] = None
    k_origin: int = 0
    carry: Optional[Tuple[Any, Any]] = None
    stream: Optional[int] = None
    arguments: dict = {}
    precision: Optional[str] = None  # the usual one of calls that give no lse
    descale: Optional[Tuple[Any, Any, Any]] = None

    @property
    def kind(self):
        return _kinds.forward()

    def given(self):
        """Tensors, by role."""
        carry = {} if self.carry is None else dict(carry_out=self.carry[0], carry_lse=self.carry[1])
        return dict(q=self.q, k=self.k, v=self.v, **carry, **self.factors())

    def factors(self):
        """Scales of q, k and v, by role, as far as they are given."""
        return {name: each for name, each in zip(("descale_q", "descale_k", "descale_v"), self.descale or ()) if each is not None}

    def refuse_unclear(self, what, **others):
        """Of the pattern: `others` are what the call takes beside these."""
        options = dict(scale=self.scale, out=self.out, lse=self.lse, q_origin=self.q_origin, k_origin=self.k_origin or None, carry=self.carry,
                       stream=self.stream, precision=None if self.precision == _kinds.EXACT else self.precision, descale=self.descale, **others)
        self.pattern.refuse_unclear(what, [name for name, value in options.items() if value is not None])


class GradientSpec(NamedTuple):
    """What a call of kind backward was given, as heddle.attention_backward takes it."""
    q: Any
    k: Any
    v: Any
    out: Any
    lse: Any
    d_out: Any
    pattern: Any
    d_lse: Any = None
    scale: Optional[float] = None
    q_origin: Optional[int] = None
    k_origin: int = 0
    gradients_of: Tuple[str, ...] = ()
    stream: Optional[int] = None
    arguments: dict = {}
    add_to: Optional[Tuple[Any, Any, Any]] = None
    deterministic: bool = False
    precision: str = "exact"

    @property
    def kind(self):
        return _kinds.of_gradients(self.add_to is not None, self.deterministic)

    def given(self):
        """Tensors, by role."""
        optional = {} if self.d_lse is None else dict(d_lse=self.d_lse)
        optional.update(zip(("d_q", "d_k", "d_v"), self.add_to or ()))
        return dict(q=self.q, k=self.k, v=self.v, out=self.out, lse=self.lse, d_out=self.d_out, **optional)

    def refuse_unclear(self, what):
        """As CallSpec's."""
        options = dict(d_lse=self.d_lse, scale=self.scale, q_origin=self.q_origin, k_origin=self.k_origin or None,
                       gradients_of=self.gradients_of or None, stream=self.stream, add_to=self.add_to, deterministic=self.deterministic or None,
                       precision=None if self.precision == _kinds.EXACT else self.precision)
        self.pattern.refuse_unclear(what, [name for name, value in options.items() if value is not None])
