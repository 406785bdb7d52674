"""A rank that is refused its part of a call over all keys (heddle.distributed.decode, paged_attention): the others hear of it in the place of waiting,
with the reason in host memory, by NaN as ranks on GPUs do, and the group goes on. Ranks are threads here; test_parts.py has processes."""
import re

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import heddle  # noqa: E402
from heddle import _agreement, distributed  # noqa: E402
from ranks import on_ranks  # noqa: E402

pytestmark = pytest.mark.compiler

RANKS, KEYS, PAGE = 3, 90, 4
RANGES = [(0, 30), (30, 60), (60, 90)]
LIMIT = 300  # none of these waits for it


def decode(group, **changed):
    """Of the rank's own keys; `changed`: what it brings in the place of something."""
    generator = torch.Generator().manual_seed(group.rank)
    q = torch.randn(1, 2, 4, 16, generator=torch.Generator().manual_seed(9))
    k, v = (torch.randn(1, 30, 2, 16, generator=generator) for _ in range(2))
    given = dict(q=q, k=k, v=v, pattern="causal", group=group, keys=RANGES, return_lse=True)
    return distributed.decode(**{**given, **changed})


def integers(*numbers):
    return torch.tensor(numbers, dtype=torch.int32)


def paged(group, **changed):
    """One sequence of 90 keys, 30 of them on each rank, in pages of 4."""
    q = torch.randn(1, 2, 4, 16, generator=torch.Generator().manual_seed(9))
    cache = torch.randn(8, PAGE, 2, 16, generator=torch.Generator().manual_seed(group.rank))
    given = dict(q=q, k_cache=cache, v_cache=cache, page_table=torch.arange(8, dtype=torch.int32)[None], seqused_k=integers(30), pattern="causal", group=group,
                 k_origins=integers(30 * group.rank), whole_k=integers(KEYS), return_lse=True)
    return distributed.paged_attention(**{**given, **changed})


def longs(shape):
    return torch.zeros(shape, dtype=torch.int64)


REFUSED = {
    "decode-rows": (decode, dict(k=torch.zeros(1, 29, 2, 16)), "decode: k: expected 30 rows on rank 1, got 29"),
    "decode-type of k": (decode, dict(k=torch.zeros(1, 30, 2, 16).bfloat16()), "k: dtype: expected fp32 as q, got bf16"),
    "decode-heads": (decode, dict(v=torch.zeros(1, 30, 1, 16)), "v: size of head: expected 2, got 1"),
    "decode-dimensions of k": (decode, dict(k=torch.zeros(30, 2, 16)), "decode: k: expected 4 dimensions, got .30, 2, 16."),
    "decode-dimensions of q": (decode, dict(q=torch.zeros(2, 4, 16)), "decode: q: expected 4 dimensions"),
    "decode-numpy": (decode, dict(q=np.zeros((1, 2, 4, 16), np.float32)), "decode: q: expected a PyTorch tensor, got ndarray"),
    "decode-place": (decode, dict(q=torch.zeros(1, 2, 4, 16, device="meta")), "decode: q: expected a tensor in host memory, where the group computes, got one on meta"),
    "decode-keys": (decode, dict(keys=[(0, 30), (31, 60), (60, 90)]), "decode: keys: expected a range for each of 3 ranks"),
    "decode-pattern": (decode, dict(pattern="cousal"), "cousal"),
    "decode-sink": (decode, dict(pattern="sink"), "decode: the pattern has a sink"),
    "paged-table": (paged, dict(page_table=longs((1, 8))), "page_table: expected row-major i32"),
    "paged-page": (paged, dict(page_table=torch.full((1, 8), 8, dtype=torch.int32)), "page_table: sequence 0, page 0: expected 0 to 7, got 8"),
    "paged-type of lengths": (paged, dict(seqused_k=longs(1)), r"paged_attention: seqused_k: expected torch.int32 \[1\]"),
    "paged-no lengths": (paged, dict(whole_k=None), r"paged_attention: whole_k: expected torch.int32 \[sequences\] in cpu as q, got None"),
    "paged-beyond": (paged, dict(seqused_k=integers(61)), "seqused_k|whole_k"),
    "paged-scales": (paged, dict(descale=(torch.ones(1, 2), None)), "descale"),
    "paged-argument": (paged, dict(left=3), "left"),
}
# Of what a rank has to send the others, what it brings says neither how many queries there are nor how large they are.
UNSAID = {"decode-dimensions of q", "decode-numpy"}


def both(call, changed):
    """What ranks 0 and 2 get, and rank 1, which brings something else."""
    groups = distributed.Group.local(RANKS, LIMIT)
    first, refused, last = on_ranks(groups, lambda group: call(group, **changed if group.rank == 1 else {}))
    return groups, refused, (first, last)


def goes_on(groups, call):
    out, *others = on_ranks(groups, call)
    assert not out[0].isnan().any() and all(torch.equal(out[0], each[0]) for each in others)


@pytest.mark.parametrize("what", REFUSED)
def test_the_others_are_told_why(what):
    call, changed, own = REFUSED[what]
    groups, refused, others = both(call, changed)
    assert isinstance(refused, heddle.Error) and re.search(own, str(refused)), refused
    for each in others:
        assert isinstance(each, heddle.UnavailableError) and str(each) == f"rank 1 takes no part: {refused}", each
    goes_on(groups, call)


@pytest.mark.parametrize("what", [what for what in REFUSED if what not in UNSAID])
def test_the_others_get_nan_where_nobody_waits(what, monkeypatch):
    """As on GPUs."""
    monkeypatch.setattr(_agreement, "is_told", lambda group: False)
    call, changed, own = REFUSED[what]
    groups, refused, others = both(call, changed)
    assert isinstance(refused, heddle.Error) and re.search(own, str(refused)), refused
    for out, lse in others:
        assert out.isnan().all() and lse.isnan().all()
    goes_on(groups, call)


def test_all_are_refused_and_the_first_of_several_is_named():
    groups = distributed.Group.local(RANKS, LIMIT)
    for each in on_ranks(groups, lambda group: decode(group, k=torch.zeros(1, 3, 2, 16))):
        assert isinstance(each, heddle.InvalidArgumentError) and "decode: k: expected 30 rows" in str(each)
    first, *others = on_ranks(groups, lambda group: decode(group, **dict(k=torch.zeros(1, 3, 2, 16)) if group.rank else {}))
    assert isinstance(first, heddle.UnavailableError) and "rank 1 takes no part: decode: k: expected 30 rows on rank 1, got 3" in str(first)
    assert all(isinstance(each, heddle.InvalidArgumentError) for each in others)
    goes_on(groups, decode)


def test_a_rank_whose_others_do_not_come_has_its_own_reason():
    for call, changed in ((decode, dict(k=torch.zeros(1, 3, 2, 16))), (paged, dict(seqused_k=longs(1)))):
        with pytest.raises(heddle.InvalidArgumentError, match="decode: k: expected 30 rows|paged_attention: seqused_k"):
            call(distributed.Group.local(RANKS, limit=1)[0], **changed)
