"""Modules of heddle.nn whose sequence lies over ranks, against the same modules with the same parameters alone."""
import copy
import time

import pytest

torch = pytest.importorskip("torch")

import heddle  # noqa: E402
from heddle import distributed as hd  # noqa: E402
from heddle import nn  # noqa: E402
from ranks import on_ranks  # noqa: E402

if not heddle.has_compiler():
    pytest.skip("plans over ranks need the compiler", allow_module_level=True)

ROWS, RANKS = 100, 3
MADE = {
    "multihead": lambda: nn.MultiheadDilatedAttention(64, 4, [1, 2], [16, 64]),
    "multihead, mixed": lambda: nn.MultiheadDilatedAttention(64, 4, [1, 2], [16, 64], mixed=True, layer_norm=False),
    "dilated": lambda: nn.DilatedAttention([16, 64], [1, 2], divide_by_groups=True),
    "longnet": lambda: nn.LongNetAttention([16, 64], [1, 2]),
    "block sparse": lambda: nn.BlockSparseAttention(8, 1, 1, 1),
    "pattern": lambda: nn.PatternAttention("sliding_window", 0.3, left=20),
}


def over_ranks(function):
    return on_ranks(hd.Group.local(RANKS), function)


def first_of(out):
    return out[0] if isinstance(out, tuple) else out


def gradients(module):
    return [each.grad for each in module.parameters()]


@pytest.mark.parametrize("layout", ["contiguous", "zigzag"])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("gather", [False, True])
@pytest.mark.parametrize("name", MADE)
def test_a_module_over_ranks_is_the_module_alone(name, gather, whole, layout):
    torch.manual_seed(1)
    alone = MADE[name]()
    options = {} if name == "pattern" else dict(is_causal=True)
    inputs = [torch.randn(2, ROWS, *((64,) if "multihead" in name else (4, 16))).requires_grad_() for _ in range(3)]
    out = first_of(alone(*inputs, **options))
    weights = torch.randn_like(out)
    (out * weights).sum().backward()
    plan = hd.plan("causal", seqlen=ROWS, heads=4, ranks=RANKS, layout=layout)

    def call(group):
        module = MADE[name]().over(group, layout=layout, whole=whole, gather=gather)
        assert module.load_state_dict(alone.state_dict()).missing_keys == [] and module.state_dict().keys() == alone.state_dict().keys()
        own = [(each if whole else plan.shard(each, group.rank)).detach().clone().requires_grad_() for each in inputs]
        mine = first_of(module(*own, **options))
        # Where all have all rows, each has its part of the loss.
        loss = (mine * weights).sum() / RANKS if gather else (mine * plan.shard(weights, group.rank)).sum()
        loss.backward()
        return mine.detach(), [each.grad for each in own], gradients(module)

    results = over_ranks(call)
    assert not any(isinstance(each, Exception) for each in results), results
    outs, of_inputs, of_parameters = zip(*results)
    close = dict(atol=3e-5, rtol=3e-5)
    for got in outs if gather else [plan.join(outs)]:
        torch.testing.assert_close(got, out.detach(), **close)
    for got, expected in zip(zip(*of_inputs), inputs):
        torch.testing.assert_close(sum(got) if whole else plan.join(got), expected.grad, **close)
    for got, expected in zip(zip(*of_parameters), gradients(alone)):
        torch.testing.assert_close(sum(got), expected, **close)


def test_modules_of_whole_inputs_ask_nobody(monkeypatch):
    """Lengths by which the rows of one rank stay, and those of another change."""
    monkeypatch.setattr(hd._meeting.Meeting, "numbers", None)
    x = torch.randn(1, 101, 64)
    alone = MADE["multihead"]()

    def call(group):
        module = copy.deepcopy(alone).over(group, whole=True, gather=True)
        return [module(each, each, each)[0].detach() for each in (x[:, :100], x)]

    for each in over_ranks(call):
        for got, expected in zip(each, (x[:, :100], x)):
            torch.testing.assert_close(got, alone(expected, expected, expected)[0].detach(), atol=3e-5, rtol=3e-5)


def test_what_modules_refuse_and_copies():
    module = nn.MultiheadDilatedAttention(64, 4, [1], [16]).over(hd.Group.local(1)[0], whole=True)
    x = torch.randn(1, 20, 64)
    with pytest.raises(heddle.InvalidArgumentError, match="query, key, value: expected .batch, rows, embed_dim. with as many rows"):
        module(x, x[:, :10], x)
    for whole, told in ((False, "rank 1 takes no part"), (True, "rank 1 left: query, key, value: expected")):
        def call(group):
            mine = copy.deepcopy(module).over(group, whole=whole)
            return mine(x, x[:, group.rank == 1:], x)

        began = time.monotonic()
        first, second, _ = over_ranks(call)
        assert time.monotonic() - began < 25
        assert isinstance(second, heddle.InvalidArgumentError) and isinstance(first, heddle.UnavailableError) and told in str(first), (first, second)
    module = copy.deepcopy(module).over(hd.Group.local(1)[0])
    again = copy.deepcopy(module)
    torch.testing.assert_close(again(x, x, x)[0], module(x, x, x)[0])
    with pytest.raises(TypeError, match="farthest"):
        module.over(farthest=1)
