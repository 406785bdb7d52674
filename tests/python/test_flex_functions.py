"""Functions of torch in traced functions, and the masks and score functions that users of FlexAttention write, against PyTorch's own."""
import math

import heddle
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")
flex = pytest.importorskip("torch.nn.attention.flex_attention")
import heddle.flex  # noqa: E402
import torch.nn.functional as F  # noqa: E402
import traced  # noqa: E402
from flex_reference import N, block_mask, draw, theirs  # noqa: E402
from heddle.words import predicate, score_map  # noqa: E402

pytestmark = pytest.mark.compiler


def check(mask_mod=None, score_mod=None, heads=4, n=N):
    q, k, v = draw(heads, n)
    expected = theirs(q, k, v, score_mod, None if mask_mod is None else block_mask(mask_mod, heads, n))
    torch.testing.assert_close(heddle.flex_attention(q, k, v, score_mod, mask_mod), expected, atol=2e-5, rtol=1e-5)


# ---------------------------------------------------------------- functions of torch
THREE, HALF = torch.tensor(3), torch.tensor(0.5)
MASKS = {
    "sum": lambda b, h, q, k: torch.add(q, k, alpha=2) > torch.sub(20, q),
    "rsub": lambda b, h, q, k: torch.rsub(q, k) > torch.multiply(q, -1),
    "division": lambda b, h, q, k: torch.div(q, 3) > torch.true_divide(k, 4),
    "floored": lambda b, h, q, k: torch.floor_divide(q, 3) == torch.div(k, 3, rounding_mode="floor"),
    "truncated": lambda b, h, q, k: torch.div(q - 12, 5, rounding_mode="trunc") == torch.div(k - 12, 4, rounding_mode="trunc"),
    "remainder": lambda b, h, q, k: torch.remainder(q - 12, 5) > torch.fmod(k - 12, 4),
    "absolute": lambda b, h, q, k: torch.abs(q - k) + torch.sign(k - q) < torch.neg(k) + 20,
    "clamp": lambda b, h, q, k: torch.clamp(q, min=4, max=9) >= torch.clamp(k, 2, 8),
    "clip": lambda b, h, q, k: torch.clip(q, max=THREE) >= torch.clamp_min(k, 2),
    "extremes": lambda b, h, q, k: torch.maximum(q, k) - torch.minimum(k, THREE) > torch.max(q, THREE) - torch.min(q, k),
    "where": lambda b, h, q, k: torch.where(q > k, q, 2 * k) > torch.where(k > 5, 12, 20),
    "where of a tensor": lambda b, h, q, k: THREE.where(q > k, k) > 2,
    "logic": lambda b, h, q, k: torch.logical_or(torch.logical_and(q, k > 3), torch.logical_xor(k, torch.logical_not(q > 5))),
    "bits": lambda b, h, q, k: torch.bitwise_xor(torch.bitwise_and(q, 6), torch.bitwise_or(k, 1)) > torch.bitwise_not(q - 9),
    "shifts": lambda b, h, q, k: torch.bitwise_left_shift(q, 2) > torch.bitwise_right_shift(k * 20, q & 3),
    "compare": lambda b, h, q, k: torch.ge(q, k) & torch.ne(q, 3) | torch.eq(k, 5) & torch.less(q, 8) | torch.gt(k, 20) & torch.le(q, 4) | torch.lt(q, THREE),
    "casts": lambda b, h, q, k: (q.to(torch.float32) / 4).to(dtype=torch.int64).to("cpu").type_as(k) == k.to(torch.int32) // 4,
    "bool": lambda b, h, q, k: (q & 3).to(torch.bool) & (k & 1).bool(),
    "tensors of no dimension": lambda b, h, q, k: (torch.tensor(7) // (q + 1) < THREE + k) & (THREE % (q + 2) > HALF) | (torch.tensor(True) & (2 ** THREE == k)),
    "constants": lambda b, h, q, k: torch.tensor(9, device=q.device) + torch.zeros((), dtype=k.dtype) > torch.full_like(q, 4) + k,
    "new": lambda b, h, q, k: b.new_ones((), dtype=torch.bool) & (q + b.new_full((), 2) > k) | torch.zeros_like(q, dtype=torch.bool) | torch.ones_like(q) > k,
    "closures": lambda b, h, q, k: (lambda f: f(q) > f(k))(lambda x: (lambda y: y % 7)(x + b)),
    "batch and head": lambda b, h, q, k: (q - k).abs() <= 2 * h + b,
    "power": lambda b, h, q, k: torch.pow(q - 4, 2) > torch.square(k) // 2,
    "rounding": lambda b, h, q, k: torch.floor(q / 4) + torch.ceil(k / 3) > torch.round(q / 2) - torch.trunc(k / 5),
    "noop": flex.noop_mask,
    "and_masks": flex.and_masks(flex.noop_mask, lambda b, h, q, k: q >= k, flex.or_masks(lambda b, h, q, k: q - k < 5, lambda b, h, q, k: k < 2)),
    "no or_masks": flex.or_masks(),
    "ours": heddle.flex.and_masks(heddle.flex.noop_mask, heddle.flex.or_masks(lambda b, h, q, k: q == k, lambda b, h, q, k: k < 2)),
}


def test_masks_of_torch_functions():
    got = torch.from_numpy(traced.kept(list(MASKS.values()), N, batch=2))
    expected = torch.stack([flex.create_mask(each, 2, len(MASKS), N, N, device="cpu")[:, i] for i, each in enumerate(MASKS.values())], 1)
    assert traced.names_of_unequal(list(MASKS), (got == expected).numpy()) == []


SCORES = {
    "exp": lambda s, b, h, q, k: (torch.exp(s) + torch.exp2(s) + torch.expm1(s)) / 8,
    "log": lambda s, b, h, q, k: torch.log(torch.abs(s) + 1) + torch.log2(s.square() + 1) + torch.log10(s * s + 1) + torch.log1p(s.abs()),
    "roots": lambda s, b, h, q, k: torch.sqrt(s.abs() + 1) + torch.rsqrt(s * s + 1) + torch.reciprocal(s.abs() + 1) + torch.pow(s.abs() + 1, 1.5),
    "periodic": lambda s, b, h, q, k: torch.sin(s) + torch.cos(s) + torch.tan(s / 4) + torch.tanh(s) + torch.erf(s),
    "sigmoid": lambda s, b, h, q, k: torch.sigmoid(s) + F.sigmoid(3 * s) + F.logsigmoid(s) + torch.special.expit(s),
    "log of sigmoid": lambda s, b, h, q, k: torch.log(torch.sigmoid(20 * s)) / 8,
    "relu": lambda s, b, h, q, k: F.relu(s) + torch.relu(-s) * 0.5 + F.leaky_relu(s, 0.2) + F.elu(s) + F.relu(s - s),
    "gelu": lambda s, b, h, q, k: F.gelu(s) + F.gelu(s, approximate="tanh"),
    "softplus": lambda s, b, h, q, k: F.softplus(s) + F.softplus(s, beta=2.0, threshold=3.0) + F.silu(s),
    "clamp": lambda s, b, h, q, k: torch.clamp(s, -1.0, 1.5) + torch.maximum(s, HALF) - torch.minimum(s, torch.tensor(-0.25)),
    "where": lambda s, b, h, q, k: torch.where(q >= k, s, -float("inf")),
    "masked_fill": lambda s, b, h, q, k: torch.masked_fill(s, (q - k).abs() > 5, float("-inf")) + torch.neg(s) * 0.5,
    "bias": lambda s, b, h, q, k: s - torch.log1p((q - k).abs().float()) * (h + 1) / 8 + 0.1 * (b - k / N),
    "alibi": lambda s, b, h, q, k: s + (k - q) * torch.exp2(-((h + 1) * 8.0 / 4)),
    "casts": lambda s, b, h, q, k: s.float().to(s.dtype) + q.to(torch.float32) / 10 + (k > 3).to(s.dtype),
    "rounding": lambda s, b, h, q, k: torch.floor(s) / 2 + torch.ceil(s * 2) / 4 + torch.round(s * 4) / 8 + torch.trunc(s) + s,
    "constants": lambda s, b, h, q, k: s * math.pi + torch.full_like(s, 0.25) + HALF * s + torch.ones_like(s),
}


def eager(name, s):
    """A function on whole tensors of scores."""
    batch, heads, n, _ = s.shape
    b, h, q, k = (torch.arange(size).view([-1 if i == axis else 1 for i in range(4)]) for axis, size in enumerate((batch, heads, n, n)))
    return SCORES[name](s, b, h, q, k)


def test_scores_of_torch_functions():
    s = torch.rand(2, len(SCORES), N, N, generator=torch.Generator().manual_seed(0)) * 6 - 3
    got = torch.from_numpy(traced.changed(list(SCORES.values()), s.numpy()))
    expected = torch.stack([eager(name, s)[:, i] for i, name in enumerate(SCORES)], 1)
    assert traced.names_of_unequal(list(SCORES), torch.isclose(got, expected, atol=2e-5, rtol=2e-5).numpy()) == []


@pytest.mark.parametrize("name", list(SCORES))
def test_derivatives_of_torch_functions(name):
    tensors = [each.requires_grad_() for each in draw()]
    weights = torch.softmax(eager(name, tensors[0] @ tensors[1].transpose(-1, -2) / 8 ** 0.5), -1)
    expected = torch.autograd.grad((weights @ tensors[2]).square().sum(), tensors)
    got = torch.autograd.grad(heddle.flex_attention(*tensors, SCORES[name]).square().sum(), tensors)
    torch.testing.assert_close(got, expected, atol=2e-4, rtol=1e-4)


# ---------------------------------------------------------------- masks and score functions of the field
def causal(b, h, q, k):
    return q >= k


def dilated_window(reach, rate):
    def keep(b, h, q, k):
        distance = torch.abs(q - k)
        return (distance <= reach) & (distance % rate == 0)
    return keep


def sink_window(reach, sinks):
    return flex.and_masks(flex.or_masks(lambda b, h, q, k: q - k <= reach, lambda b, h, q, k: k < sinks), causal)


def batches(inner, size):
    return lambda b, h, q, k: (q // size == k // size) & inner(b, h, q % size, k % size)


def near_centre(centre, at, side, reach):
    """Neighbourhood attention: the centre moves in from the border, so that every query has as many neighbours."""
    return (centre.clamp(reach, side - 1 - reach) - at).abs() <= reach


def neighbourhood(place, width, height, reach):
    def keep(b, h, q, k):
        (qx, qy), (kx, ky) = place(q), place(k)
        return near_centre(qx, kx, width, reach) & near_centre(qy, ky, height, reach)
    return keep


def by_rows(width):
    return lambda at: (at % width, at // width)


def by_tiles(width, tile_w, tile_h):
    def place(at):
        tile, inner = at // (tile_w * tile_h), at % (tile_w * tile_h)
        return tile % (width // tile_w) * tile_w + inner % tile_w, tile // (width // tile_w) * tile_h + inner // tile_w
    return place


def by_z_order(at):
    """The even bits of a number are its column, the odd ones its row."""
    return tuple(sum((at >> 2 * bit + odd & 1) << bit for bit in range(4)) for odd in (0, 1))


def sliding_tiles(grid, widths, size, text=0):
    """Sliding tile attention: a query sees windows of whole tiles. Tokens of a tile of `size` lie together, the last axis of the grid of
    tiles runs fastest; tokens of text behind the picture see all and are seen by all."""
    picture = math.prod(grid) * size

    def place(at):
        tile, found = at // size, []
        for count in reversed(grid):
            found.insert(0, tile % count)
            tile = tile // count
        return found

    def keep(b, h, q, k):
        near = (q < picture) & (k < picture)
        for at_q, at_k, count, width in zip(place(q), place(k), grid, widths):
            left, right = width // 2, (width - 1) // 2
            centre = at_q.clamp(left, count - 1 - right)
            near = near & (centre - left <= at_k) & (at_k <= centre + right)
        return near | (q < picture) & (k >= picture) & (k < picture + text) | (q >= picture) & (k < picture + text)
    return keep


def spatial_head(prompt, reach):
    return lambda b, h, q, k: (k < prompt) | (q < prompt) | (torch.abs(q - k) < math.floor(reach / 4) * 4)


def temporal_head(prompt, frame, reach):
    return lambda b, h, q, k: (k < prompt) | (q < prompt) | (torch.abs((q - prompt) % frame - (k - prompt) % frame) < reach)


def block_diffusion(length, block):
    """The first `length` tokens are noised; they see their own block, and of the clean ones behind them the blocks before it."""
    def keep(b, h, q, k):
        q_noised, k_noised, q_block, k_block = q < length, k < length, q % length // block, k % length // block
        own = (q_block == k_block) & (q_noised == k_noised)
        return own | (q_block > k_block) & q_noised & ~k_noised | (q_block >= k_block) & ~q_noised & ~k_noised
    return keep


def drafts(prefix, block):
    """Blocks of draft tokens, whose keys lie behind a prefix that all see; a token sees its block up to itself."""
    return lambda b, h, q, k: (k < prefix) | (k >= prefix) & ((k - prefix) // block == q // block) & ((k - prefix) % block <= q % block)


FIELD_MASKS = {
    "causal": causal,
    "sliding window": flex.and_masks(causal, lambda b, h, q, k: q - k <= 5),
    "prefix": flex.or_masks(causal, lambda b, h, q, k: k < 6),
    "dilated window": dilated_window(9, 3),
    "sinks": sink_window(4, 2),
    "batches": batches(causal, 7),
    "batches of all": batches(flex.noop_mask, 5),
    "neighbourhood": neighbourhood(by_rows(6), 6, 4, 1),
    "neighbourhood in tiles": neighbourhood(by_tiles(6, 3, 2), 6, 4, 1),
    "neighbourhood in z order": neighbourhood(by_z_order, 8, 4, 1),
    "sliding tiles of a picture": sliding_tiles((3, 3), (3, 2), 2, 4),
    "sliding tiles of a film": sliding_tiles((2, 2, 3), (1, 2, 3), 2),
    "spatial head": spatial_head(3, 9),
    "temporal head": temporal_head(3, 5, 2),
    "block diffusion": block_diffusion(12, 4),
    "drafts behind a prefix": drafts(5, 4),
}


@pytest.mark.parametrize("name", list(FIELD_MASKS))
def test_masks_of_the_field(name):
    check(FIELD_MASKS[name])


class Tanh(torch.nn.Module):
    def forward(self, x):
        return torch.tanh(x)


FIELD_SCORES = {
    "nothing": lambda score, b, h, q, k: score,
    "causal": lambda score, b, h, q, k: torch.where(q >= k, score, -float("inf")),
    "distances": lambda score, b, h, q, k: score + (q - k),
    "slopes": lambda score, b, h, q, k: score + (k - q) * torch.exp2(-((h + 1) * 8.0 / 4)),
    "softcap": lambda score, b, h, q, k: 2 * torch.tanh(score / 2),
    "softcap by a module": lambda score, b, h, q, k, tanh=Tanh(): 2 * tanh(score / 2),
    "gelu in place of softmax": lambda score, b, h, q, k: torch.log(F.gelu(score) + 1.0),
    "relu in place of softmax": lambda score, b, h, q, k: torch.log(F.relu(score) + 1.0),
    "sigmoid in place of softmax": lambda score, b, h, q, k: torch.log(torch.sigmoid(score) + 0.5),
}


@pytest.mark.parametrize("name", list(FIELD_SCORES))
def test_scores_of_the_field(name):
    check(None, FIELD_SCORES[name])
    check(causal, FIELD_SCORES[name])


# ---------------------------------------------------------------- what is refused
TABLE = torch.zeros(N, dtype=torch.bool)
WEIGHT = torch.nn.Parameter(torch.tensor(1.0))


@pytest.mark.parametrize("function, message", [
    (lambda b, h, q, k: TABLE[q], "reads a tensor at a position; tensors are arguments of the pattern"),
    (lambda b, h, q, k: TABLE[None][0, q], "reads a tensor at a position"),
    (lambda b, h, q, k: F.embedding(q, TABLE[:, None]) > 0, "reads a tensor at a position"),
    (lambda b, h, q, k: TABLE & (q > k), "reads Tensor of [24]"),
    (lambda b, h, q, k: TABLE.__setitem__(q, True), "writes into a position, a score or a tensor"),
    (lambda b, h, q, k: torch.tensor(3, device="meta") > q, "reads a tensor on meta, whose value would have to be waited for"),
    (lambda b, h, q, k: q > WEIGHT, "reads a tensor that requires gradients, and would give it none"),
    (lambda b, h, q, k: torch.rand(()) < 0.5, "draws random numbers by torch.rand, one for all pairs; heddle.words.random"),
    (lambda b, h, q, k: torch.rand_like(q.float()) < 0.5, "draws random numbers by torch.rand_like"),
    (lambda b, h, q, k: torch.empty(()).uniform_() < 0.5, "draws random numbers by torch.uniform"),
    (lambda b, h, q, k: torch.stack([q, k]).sum() > 3, "calls stack, which regions do not have"),
    (lambda b, h, q, k: q.to(torch.bfloat16) > k, "makes a number of torch.bfloat16"),
    (lambda b, h, q, k: torch.tensor(q) > k, "asks for the value of a position or a score"),
    (lambda b, h, q, k: torch.div(q, 3, rounding_mode="up") > k, "divides with rounding_mode='up'; expected None, 'floor' or 'trunc'"),
    (lambda b, h, q, k: torch.any(q > k), "needs the truth of a position or a score"),
])
def test_what_torch_functions_refuse(function, message):
    with pytest.raises(heddle.UnsupportedError) as raised:
        predicate(function)
    assert message in str(raised.value)
    assert str(raised.value).startswith(f"{__file__}:{function.__code__.co_firstlineno}: in <lambda>: a traced function ")


@torch.library.custom_op("heddle_test::tanh", mutates_args=())
def tanh_by_name(x: torch.Tensor) -> torch.Tensor:
    return torch.exp(x)


class RoundedThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.round(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def without_gradients(s, b, h, q, k):
    with torch.no_grad():
        return s * 2


@pytest.mark.parametrize("change, message", [
    (lambda s, b, h, q, k: torch.ops.heddle_test.tanh(s), "calls heddle_test.tanh, of which nothing is known but its name"),
    (lambda s, b, h, q, k: tanh_by_name(s), "calls heddle_test.tanh"),
    (lambda s, b, h, q, k: RoundedThrough.apply(s), "computes where PyTorch follows no gradients"),
    (without_gradients, "computes where PyTorch follows no gradients"),
    (lambda s, b, h, q, k: s.detach(), "asks a position or a score for .detach"),
])
def test_what_would_be_another_function_is_refused(change, message):
    with pytest.raises(heddle.UnsupportedError) as raised:
        score_map(change)
    assert message in str(raised.value) and str(raised.value).startswith(__file__)
    with torch.no_grad():
        assert score_map(lambda s, b, h, q, k: torch.ops.aten.tanh.default(s)) == score_map(lambda s, b, h, q, k: s.tanh())


def test_random_numbers_are_free_again_behind_a_refusal():
    with pytest.raises(heddle.UnsupportedError):
        score_map(lambda s, b, h, q, k: F.dropout(s))
    assert torch.rand(()) >= 0
