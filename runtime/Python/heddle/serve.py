"""heddle.serve: attention for a batch of sequences of all lengths, as inference engines need it, whose keys lie in pages or in rows.

    out = heddle.serve.paged_attention(q, k_cache, v_cache, page_table, seqused_k, "causal")
    out = heddle.serve.indexed_attention(q, k_cache, v_cache, kv_indptr, kv_indices, kv_last_page_len, "causal")
    out = heddle.serve.ragged_attention(q, k, v, cu_seqlens_k, "causal")
    call = heddle.serve.prepare(q, k_cache, v_cache, "causal", page_table=page_table, seqused_k=seqused_k)

docs/serving.md is the guide.
"""
from typing import Any, Optional, Tuple

from . import _call, _direct, _pages, _scales, patterns
from ._pages import PagesSpec
from .calls import PatternLike, Prepared
from .errors import InvalidArgumentError
from .patterns import Pattern

__all__ = ["paged_attention", "indexed_attention", "ragged_attention", "prepare"]

Scales = Optional[Tuple[Any, Any]]


def paged_attention(q, k_cache, v_cache, page_table, seqused_k, pattern: PatternLike, *, cu_seqlens_q=None, shared_k=None,
                    k_origins=None, whole_k=None, scale: Optional[float] = None, return_lse: bool = False, out=None, lse=None, stream: Optional[int] = None, descale: Scales = None,
                    batch_invariant: bool = False, **arguments: Any):
    """Attention of each sequence's queries over exactly the keys of its own that the pattern keeps.

    q             [sequences, seqlen_q, heads, head_dim]; or, with cu_seqlens_q, [1, rows, heads, head_dim]
    k_cache       [pages, page_size, kv_heads, head_dim], page_size 1 to 256, any strides: `cache.transpose(1, 2)` of a cache that has heads
                  before keys, `cache[:, 0]` and `cache[:, 1]` of one that has K and V in one tensor
    v_cache       [pages, page_size, kv_heads, value_dim]
                  Both of the type of q, or e4m3 (float8_e4m3fn) beside q in bf16 or fp16
    page_table    int32 [sequences, max_pages]: which pages the keys of a sequence lie in; or [kv_heads, sequences, max_pages], a list for each
                  kv head, whose positions count along it: it is the sequence to the query heads of that kv head
    seqused_k     int32 [sequences]: how many keys each sequence has; [kv_heads, sequences] beside such lists
    cu_seqlens_q  int32 [sequences + 1]: the queries of sequence s are rows cu_seqlens_q[s] to cu_seqlens_q[s + 1] of q
    shared_k      int32 [sequences]: how many of its first keys a sequence has in the same pages as the one before it, the first one 0. Results are
                  those without it, within rounding; on a GPU such keys are read once for neighbours that share them
    k_origins, whole_k
                  int32 [sequences], each: the keys at hand are a part of each sequence, those at k_origins[s] and on of whole_k[s] keys, whose last
                  positions the queries are; None: 0, and where the part ends. Results are those of the part: with out= in fp32 and lse, parts make one
                  call (heddle.distributed.paged_attention). Not beside shared_k and lists of each kv head
    pattern       as in heddle.attention. The queries of a sequence are its last positions, whatever the pattern says of q_origin
    descale       what elements of k_cache and v_cache of e4m3 are multiplied by: two fp32 tensors [sequences, kv_heads] of positive numbers, or None
                  for 1
    batch_invariant
                  True: the bits of the result of a query depend on it, the keys that it keeps and the pattern only, not on what other sequences there are, nor, where
                  rows keep keys within one range, on how many queries of its own come with it. Not beside shared_k
    scale, return_lse, out, lse, stream, arguments: as in heddle.attention; lse is fp32 [batch of q, heads, rows of q]

    One new token, drafts and a piece of a prompt are all sequences of one call; of a pattern with a tree of drafts all sequences have that tree. On a GPU nothing waits for it and nothing is planned
    on the host: lengths, offsets and tables are read by the launch, so a captured CUDA graph may be replayed after they have changed. Pages
    that a pattern keeps nothing of are not read. Returns out, of the shape of q with value_dim. There are no gradients. In host memory lengths,
    offsets and the pages that are read are checked; on a GPU they are the caller's word, or checked too by heddle.configure(check_pages=True).
    """
    _check_given("paged_attention", page_table=page_table, seqused_k=seqused_k)
    return _attention(PagesSpec(q, k_cache, v_cache, page_table, seqused_k, pattern, cu_seqlens_q, scale, out, lse, stream, arguments,
                                descale=_factors_of(descale), shared_k=shared_k, k_origins=k_origins, whole_k=whole_k, batch_invariant=batch_invariant), return_lse)


def indexed_attention(q, k_cache, v_cache, kv_indptr, kv_indices, kv_last_page_len, pattern: PatternLike, *, cu_seqlens_q=None, seqused_k=None, shared_k=None,
                      k_origins=None, whole_k=None, scale: Optional[float] = None, return_lse: bool = False, out=None, lse=None, stream: Optional[int] = None, descale: Scales = None,
                      batch_invariant: bool = False, **arguments: Any):
    """paged_attention whose tables lie behind each other, as FlashInfer has them.

    kv_indptr         int32 [sequences + 1]: the pages of sequence s are kv_indices[kv_indptr[s]] to kv_indices[kv_indptr[s + 1]]
    kv_indices        int32 [entries]: as many as kv_indptr ends with, or more
    kv_last_page_len  int32 [sequences]: how many keys the last page of each sequence has, 1 to page_size; those before it are whole
    seqused_k         int32 [sequences]: how many of these keys count, from the first on; None: all
    All else is as in paged_attention.
    """
    return _attention(PagesSpec(q, k_cache, v_cache, None, seqused_k, pattern, cu_seqlens_q, scale, out, lse, stream, arguments, kv_indptr=kv_indptr,
                                kv_indices=kv_indices, kv_last_page_len=kv_last_page_len, shared_k=shared_k, k_origins=k_origins, whole_k=whole_k, descale=_factors_of(descale), batch_invariant=batch_invariant), return_lse)


def ragged_attention(q, k, v, cu_seqlens_k, pattern: PatternLike, *, cu_seqlens_q=None, seqused_k=None, k_origins=None, whole_k=None,
                     scale: Optional[float] = None, return_lse: bool = False, out=None, lse=None, stream: Optional[int] = None, descale: Scales = None,
                     batch_invariant: bool = False, **arguments: Any):
    """paged_attention without pages: the keys of a sequence lie behind each other.

    k, v          [1, rows, kv_heads, dim], rows of all sequences
    cu_seqlens_k  int32 [sequences + 1]: the keys of sequence s are rows cu_seqlens_k[s] to cu_seqlens_k[s + 1]
    seqused_k     int32 [sequences]: how many of these rows count, from the first on; None: all
    All else is as in paged_attention.
    """
    _check_given("ragged_attention", cu_seqlens_k=cu_seqlens_k)
    return _attention(PagesSpec(q, k, v, None, seqused_k, pattern, cu_seqlens_q, scale, out, lse, stream, arguments, cu_seqlens_k=cu_seqlens_k,
                                k_origins=k_origins, whole_k=whole_k, descale=_factors_of(descale), batch_invariant=batch_invariant), return_lse)


def prepare(q, k, v, pattern: PatternLike, *, page_table=None, kv_indptr=None, kv_indices=None, kv_last_page_len=None, cu_seqlens_k=None,
            seqused_k=None, cu_seqlens_q=None, shared_k=None, k_origins=None, whole_k=None, scale: Optional[float] = None, out=None, lse=None,
            stream: Optional[int] = None, descale: Scales = None, batch_invariant: bool = False, **arguments: Any) -> Prepared:
    """Checks a call once; calling what it returns launches it, and returns `out`.

    page_table and seqused_k make it that of paged_attention, the three kv_... that of indexed_attention, cu_seqlens_k that of ragged_attention;
    all arguments are as of these. Addresses are frozen, as of heddle.prepare: queries, caches, lengths, offsets and tables are written in place
    between launches, of which each reads them anew. A launch takes the host a few microseconds, and is one node of a CUDA graph where others are
    two, as its counters lie in memory of its own. PyTorch: on the stream that is current when it is called; keep it for as long as a graph that
    holds it is replayed.
    """
    given = dict(page_table=page_table, kv_indptr=kv_indptr, cu_seqlens_k=cu_seqlens_k)
    layouts = [name for name, value in given.items() if value is not None]
    if len(layouts) != 1:
        raise InvalidArgumentError(f"prepare: expected one of {', '.join(given)}, which say where keys lie; got {' and '.join(layouts) or 'none'}")
    spec = PagesSpec(q, k, v, page_table, seqused_k, pattern, cu_seqlens_q, scale, out, lse, stream, arguments, cu_seqlens_k=cu_seqlens_k, kv_indptr=kv_indptr,
                     kv_indices=kv_indices, kv_last_page_len=kv_last_page_len, shared_k=shared_k, k_origins=k_origins, whole_k=whole_k,
                     descale=_factors_of(descale), batch_invariant=batch_invariant)
    if not _direct.is_traced():
        return _pages.prepare(spec, Prepared)
    from . import _torch_outside
    return _torch_outside.prepare_pages(spec, Prepared)


def _factors_of(descale):
    return None if descale is None else _scales.factors_of(descale, ("k", "v"))


def _check_given(what, **integers):
    for name, given in integers.items():
        if given is None:
            raise InvalidArgumentError(f"{what}: {name}: expected a tensor of int32, got None")


def _attention(spec, return_lse):
    pattern = spec.pattern
    if not _direct.is_recorded(spec.q):
        return _pages.attention(spec, return_lse)
    is_fixed = isinstance(pattern, (str, Pattern)) and not _direct.is_torch(spec.scale)
    if _direct.is_traced() and not is_fixed:
        from . import _torch_outside
        return _torch_outside.paged_attention(spec, return_lse)
    if spec.stream is not None:
        raise _direct.no_stream(spec.name)
    if not is_fixed:
        spec = spec._replace(pattern=patterns.resolved(pattern))
    if isinstance(spec.pattern, Pattern) and spec.pattern.also_of_calls:
        spec.refuse_unclear(return_lse=return_lse or None)
    from . import _torch_pages_op
    return _torch_pages_op.attention(spec, return_lse)
