"""What calls over pages were given, as heddle.serve takes it."""
from typing import Any, NamedTuple, Optional

from . import _kinds


class PagesSpec(NamedTuple):
    q: Any
    k: Any
    v: Any
    page_table: Any
    seqused_k: Any
    pattern: Any
    cu_seqlens_q: Any = None
    scale: Optional[float] = None
    out: Any = None
    lse: Any = None
    stream: Optional[int] = None
    arguments: dict = {}
    q_origin: None = None  # of each sequence by itself: its queries are its last positions
    k_origin: int = 0
    precision: str = "exact"

    @property
    def kind(self):
        return _kinds.kinds()["decode"]

    def given(self):
        """Tensors, by role."""
        offsets = {} if self.cu_seqlens_q is None else dict(cu_seqlens_q=self.cu_seqlens_q)
        return dict(q=self.q, k=self.k, v=self.v, page_table=self.page_table, seqused_k=self.seqused_k, **offsets)

    def refuse_unclear(self, what, **others):
        """Of the pattern: `others` are what the call takes beside these."""
        options = dict(cu_seqlens_q=self.cu_seqlens_q, scale=self.scale, out=self.out, lse=self.lse, stream=self.stream, **others)
        self.pattern.refuse_unclear(what, [name for name, value in options.items() if value is not None])
