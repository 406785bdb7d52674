"""Calls of sequences at once, and what they were given, as heddle.serve takes it."""
from typing import Any, NamedTuple, Optional, Tuple

from . import _direct, _kinds, patterns
from ._options import bad, with_numbers


# Tensors that say which queries and keys are those of which sequence, by role.
INTEGERS = ("page_table", "seqused_k", "cu_seqlens_q", "cu_seqlens_k", "kv_indptr", "kv_indices", "kv_last_page_len", "shared_k",
            "k_origins", "whole_k")


class PagesSpec(NamedTuple):
    """Keys lie in pages, whose tables lie side by side or behind each other, or in rows with offsets."""
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
    cu_seqlens_k: Any = None
    descale: Optional[Tuple[Any, Any]] = None
    kv_indptr: Any = None
    kv_indices: Any = None
    kv_last_page_len: Any = None
    shared_k: Any = None
    k_origins: Any = None
    whole_k: Any = None
    batch_invariant: bool = False

    @property
    def name(self):
        return "ragged_attention" if self.cu_seqlens_k is not None else "indexed_attention" if self.kv_indptr is not None else "paged_attention"

    @property
    def kind(self):
        if self.batch_invariant not in (True, False):
            raise bad(f"batch_invariant: expected True or False, got {self.batch_invariant!r}")
        return _kinds.kinds()["decode_invariant" if self.batch_invariant else "decode" if self.shared_k is None else "cascade"]

    def settled(self):
        """With a Pattern: where sequences are parts of a whole, the one whose calls are parts."""
        pattern = patterns.resolved(self.pattern)
        if self.batch_invariant and self.shared_k is not None:
            raise bad("shared_k: expected None beside batch_invariant=True: what is shared depends on the batch")
        if self.k_origins is not None or self.whole_k is not None:
            if self.shared_k is not None:
                raise bad("shared_k: expected None beside k_origins and whole_k")
            pattern = patterns.part_of(pattern)
        return self if pattern is self.pattern else self._replace(pattern=pattern)

    def integers(self):
        """In the order of INTEGERS."""
        return [getattr(self, name) for name in INTEGERS]

    def given(self):
        """Tensors, by role."""
        integers = {name: each for name, each in zip(INTEGERS, self.integers()) if each is not None}
        scales = dict(zip(("descale_k", "descale_v"), self.descale or ()))
        return dict(q=self.q, k=self.k, v=self.v, **integers, **{name: each for name, each in scales.items() if each is not None})

    def refuse_unclear(self, **others):
        """Of the pattern: `others` are what the call takes beside these."""
        seqused_k = {} if self.name == "paged_attention" else dict(seqused_k=self.seqused_k)
        options = dict(cu_seqlens_q=self.cu_seqlens_q, **seqused_k, shared_k=self.shared_k, k_origins=self.k_origins, whole_k=self.whole_k, scale=self.scale, out=self.out, lse=self.lse, stream=self.stream,
                       descale=self.descale, batch_invariant=self.batch_invariant or None, **others)
        self.pattern.refuse_unclear(self.name, [name for name, value in options.items() if value is not None])


def _checked(spec, what, **others):
    spec = spec.settled()
    if spec.pattern.also_of_calls:
        spec.refuse_unclear(**others)
    if _direct.is_torch(spec.q) and spec.stream is not None:
        raise _direct.no_stream(what)
    return with_numbers(spec)


def _bound(spec):
    if _direct.is_torch(spec.q):
        from . import _torch_pages
        return _torch_pages.bound(spec)
    from . import _generic
    return _generic.Bound(spec)


def attention(spec, return_lse):
    spec = _checked(spec, spec.name, return_lse=return_lse or None)
    if _direct.is_torch(spec.q):
        from . import _torch_pages
        return _torch_pages.attention(spec, return_lse)
    bound = _bound(spec)
    bound.launch()
    return (bound.out, bound.lse) if return_lse else bound.out


def prepare(spec, kind):
    """A `kind`, which is Prepared, of the call."""
    bound = _bound(_checked(spec, "prepare"))
    bound.freeze()
    return kind(bound)
