"""heddle.distributed: what a call is given must be what its plan was made of; types and sizes are refused on every rank."""
import pytest

torch = pytest.importorskip("torch")

import heddle  # noqa: E402
from heddle import distributed  # noqa: E402
from ranks import on_ranks  # noqa: E402

if not heddle.has_compiler():
    pytest.skip("plans over ranks need the compiler", allow_module_level=True)


def outcomes(plan, call):
    """What call(rank, group) gives, or raises, on each rank."""
    return on_ranks(distributed.Group.local(plan.ranks, limit=20), lambda group: call(group.rank, group))


def rows(dtype=torch.float32):
    return torch.randn(1, 32, 4, 16, dtype=dtype)


def test_sizes_are_those_of_the_plan():
    plan = distributed.plan("sliding_window", seqlen=64, heads=4, ranks=2, left=5)
    for error in outcomes(plan, lambda rank, group: distributed.attention(rows(), rows(), rows(), plan, group, left=60)):
        assert "left: expected 5, of which the plan was made, got 60" in str(error)
    assert all(out.shape == (1, 32, 4, 16) for out in outcomes(plan, lambda rank, group: distributed.attention(rows(), rows(), rows(), plan, group, left=5)))


def test_documents_are_those_of_the_plan():
    cu = torch.tensor([0, 20, 64], dtype=torch.int32)
    plan = distributed.plan("document", seqlen=64, heads=4, ranks=2, cu=cu)

    def call(given):
        return outcomes(plan, lambda rank, group: distributed.attention(rows(), rows(), rows(), plan, group, cu=given))

    for error in call(torch.tensor([0, 45, 64], dtype=torch.int32)):
        assert isinstance(error, heddle.InvalidArgumentError) and "cu: expected the numbers of which the plan was made" in str(error)
    assert all(out.isfinite().all() for out in call(cu.clone()))


@pytest.mark.parametrize("form", ["gather", "ring", "ulysses"])
def test_a_rank_with_keys_of_another_type_is_named_to_the_others(form):
    plan = distributed.plan("causal", seqlen=64, heads=4, ranks=2, form=form)
    first, second = outcomes(plan, lambda rank, group: distributed.attention(rows(), rows(torch.bfloat16 if rank else torch.float32), rows(), plan, group))
    assert isinstance(first, heddle.UnavailableError) and "rank 1 takes no part: attention arguments: k: dtype: expected fp32 as q, got bf16" in str(first)
    assert isinstance(second, heddle.InvalidArgumentError)
