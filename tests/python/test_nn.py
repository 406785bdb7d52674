"""The modules and FlexAttention's argument order, against the definition, on host tensors."""
import heddle
import pytest
from heddle.words import causal, softcap, window

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")
import reference  # noqa: E402
from heddle import nn  # noqa: E402

pytestmark = pytest.mark.compiler


def draw(n=23, heads=4, d=8, batch=2):
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(batch, n, heads, d, generator=generator) for _ in range(3)]


def check(out, tensors, copies, divisor=1):
    expected, _ = reference.attention(*(each.numpy() for each in tensors), copies)
    np.testing.assert_allclose(out.numpy(), expected / divisor, atol=2e-5)


LENGTHS, RATES = [4, 8, 16], [1, 2, 3]


@pytest.mark.parametrize("n", [3, 16, 23])
@pytest.mark.parametrize("is_causal", [False, True])
def test_dilated_attention(n, is_causal):
    tensors = draw(n)
    copies = reference.partition(4, n, LENGTHS, RATES, is_causal)
    check(nn.DilatedAttention(LENGTHS, RATES)(*tensors, is_causal=is_causal), tensors, copies)
    check(nn.DilatedAttention(LENGTHS, RATES, divide_by_groups=True)(*tensors, is_causal), tensors, copies, 3)


@pytest.mark.parametrize("is_causal", [False, True])
def test_longnet_attention(is_causal):
    tensors = draw()
    check(nn.LongNetAttention(LENGTHS, RATES)(*tensors, is_causal=is_causal), tensors, reference.mixture(4, 23, LENGTHS, RATES, is_causal))


def test_block_sparse_attention():
    tensors = draw()
    i, j = (each // 4 for each in reference.positions(23))
    q, k = reference.positions(23)
    local = abs(i - j) <= 1
    check(nn.BlockSparseAttention(4, 1, 1)(*tensors), tensors, local | (i < 1) | (j < 1))
    check(nn.BlockSparseAttention(4, 1, 1, stride=3)(*tensors, is_causal=True), tensors, (local | (j < 1) | (j % 3 == 0)) & (k <= q))
    assert torch.isfinite(nn.BlockSparseAttention(4, -1, random_blocks=2)(*tensors)).all()


@pytest.mark.parametrize("mixed", [False, True])
def test_multihead_dilated_attention(mixed):
    torch.manual_seed(0)
    module = nn.MultiheadDilatedAttention(32, 4, RATES, LENGTHS, mixed=mixed).eval()
    x = torch.randn(2, 23, 32)
    with torch.no_grad():
        out, weights = module(x, x, x, is_causal=True)
        q, k, v = (layer(x).reshape(2, 23, 4, 8) for layer in (module.q_proj, module.k_proj, module.v_proj))
        make = reference.mixture if mixed else reference.partition
        inner, _ = reference.attention(q.numpy(), k.numpy(), v.numpy(), make(4, 23, LENGTHS, RATES, True))
        expected = module.out_proj(module.norm(torch.tensor(inner, dtype=torch.float32).flatten(2)))
    assert weights is None
    torch.testing.assert_close(out, expected, atol=1e-4, rtol=1e-4)


def test_lengths_and_rates_of_arrays():
    tensors = draw()
    out = nn.LongNetAttention(4 * 2 ** np.arange(3), torch.tensor(RATES))(*tensors)
    check(out, tensors, reference.mixture(4, 23, LENGTHS, RATES, False))


def test_modules_are_one_graph():
    module = nn.MultiheadDilatedAttention(32, 4, RATES, LENGTHS).eval()
    x = torch.randn(2, 23, 32)
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(module, backend="eager", fullgraph=True)(x, x, x)[0], module(x, x, x)[0])


@pytest.mark.parametrize("make, message", [
    (lambda: nn.DilatedAttention([4], [1, 2]), "expected as many segment_lengths as dilation_rates, at least one, got 1 and 2"),
    (lambda: nn.DilatedAttention([], []), "got 0 and 0"),
    (lambda: nn.DilatedAttention([4], [1], attention_dropout=0.1), "dropout: expected 0.0, heddle has none, got 0.1"),
    (lambda: nn.MultiheadDilatedAttention(30, 4, [1], [4]), "embed_dim: expected a multiple of num_heads, got 30 and 4"),
    (lambda: nn.MultiheadDilatedAttention(24, 4, [1], [4]), "expected a multiple of 8, got 6"),
    (lambda: nn.BlockSparseAttention(4, -1), "expected local, global, random or strided blocks, got none"),
    (lambda: nn.MultiheadDilatedAttention(32, 0, [1], [4]), "embed_dim: expected a multiple of num_heads, got 32 and 0"),
    (lambda: nn.MultiheadDilatedAttention(32, -4, [1], [4]), "embed_dim: expected a multiple of num_heads, got 32 and -4"),
    (lambda: nn.DilatedAttention(4, 1), "expected lists of segment_lengths and dilation_rates, got 4 and 1"),
    (lambda: nn.DilatedAttention([4.0], [1]), "segment: expected an int, heddle.size or heddle.static, got Static(value=4.0)"),
    (lambda: nn.BlockSparseAttention(4, 1.5), "size local_blocks: default: expected an int, got 1.5"),
    (lambda: nn.BlockSparseAttention(4, 1, random_blocks=0.5), "size random_blocks: default: expected an int, got 0.5"),
])
def test_what_is_refused(make, message):
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        make()
    assert message in str(raised.value)


def sdpa(q, k, v, keep, change=lambda s: s):
    s = change(q.double() @ k.double().transpose(-1, -2) / 8 ** 0.5).masked_fill(~keep, float("-inf"))
    return torch.softmax(s, -1) @ v.double()


def test_flex_attention_takes_words_and_functions():
    q, k, v = (each.transpose(1, 2) for each in draw())
    i = torch.arange(23)
    keep = (i[None] <= i[:, None]) & (i[:, None] - i[None] <= 5)

    def mask_mod(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & (q_idx - kv_idx <= 5)

    def score_mod(score, b, h, q_idx, kv_idx):
        return torch.tanh(score / 2.0) * 2.0

    for mask in (causal & window(left=5), mask_mod, heddle.library("sliding_window", left=5)):
        out, lse = heddle.flex_attention(q, k, v, block_mask=mask, return_lse=True)
        torch.testing.assert_close(out.double(), sdpa(q, k, v, keep), atol=2e-5, rtol=0)
        assert out.shape == q.shape and lse.shape == q.shape[:3]
    for scores in (score_mod, softcap(2.0)):
        out = heddle.flex_attention(q, k, v, scores, causal & window(left=5))
        torch.testing.assert_close(out.double(), sdpa(q, k, v, keep, lambda s: 2 * torch.tanh(s / 2)), atol=2e-5, rtol=0)
    torch.testing.assert_close(heddle.flex_attention(q, k, v, None, "sliding_window", left=5).double(), sdpa(q, k, v, keep), atol=2e-5, rtol=0)


@pytest.mark.parametrize("mask", ["causal", heddle.library("causal")])
def test_flex_attention_in_a_graph(mask):
    q, k, v = (each.transpose(1, 2) for each in draw())
    compiled = torch.compile(lambda q, k, v: heddle.flex_attention(q, k, v, block_mask=mask), backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(q, k, v), heddle.flex_attention(q, k, v, block_mask=causal))


def test_flex_attention_reads_what_functions_close_over():
    q, k, v = (each.transpose(1, 2) for each in draw())
    i = torch.arange(23)
    left = 5
    lefts = [5]

    def of_a_cell(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & (q_idx - kv_idx <= left)

    def of_a_list(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & (q_idx - kv_idx <= lefts[0])

    for left in (5, 2):
        lefts[0] = left
        keep = (i[None] <= i[:, None]) & (i[:, None] - i[None] <= left)
        for mask in (of_a_cell, of_a_list, lambda b, h, q, k: of_a_cell(b, h, q, k)):
            torch.testing.assert_close(heddle.flex_attention(q, k, v, block_mask=mask).double(), sdpa(q, k, v, keep), atol=2e-5, rtol=0)


WIDTH = 5


def near_of_a_global(q_idx, kv_idx):
    return (q_idx >= kv_idx) & (q_idx - kv_idx <= WIDTH)


def through_a_helper(b, h, q_idx, kv_idx):
    return near_of_a_global(q_idx, kv_idx)


class Near:
    def __init__(self, width):
        self.width = width

    def mask_mod(self, b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & (q_idx - kv_idx <= self.width)


def what_changes(monkeypatch):
    """(a mask, what gives it another width) of each way to read a width."""
    near = Near(5)
    settings = Near(5)

    def of_an_attribute(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & (q_idx - kv_idx <= settings.width)

    return {"global of a helper": (through_a_helper, lambda width: monkeypatch.setitem(globals(), "WIDTH", width)),
            "attribute": (of_an_attribute, lambda width: setattr(settings, "width", width)),
            "self of a bound method": (near.mask_mod, lambda width: setattr(near, "width", width))}


READ = ["global of a helper", "attribute", "self of a bound method"]


def check_near(call, mask, width):
    q, k, v = (each.transpose(1, 2) for each in draw())
    i = torch.arange(23)
    keep = (i[None] <= i[:, None]) & (i[:, None] - i[None] <= width)
    torch.testing.assert_close(call(q, k, v, mask).double(), sdpa(q, k, v, keep), atol=2e-5, rtol=0)


def flex_masked(q, k, v, mask):
    return heddle.flex_attention(q, k, v, block_mask=mask)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("read", READ)
def test_flex_attention_reads_values_of_the_moment(read, compiled, monkeypatch):
    mask, change = what_changes(monkeypatch)[read]
    call = torch.compile(flex_masked, backend="eager") if compiled else flex_masked
    for width in (5, 2, 5):
        change(width)
        check_near(call, mask, width)


@pytest.mark.parametrize("read", READ[:2])  # create_block_mask refuses bound methods
def test_flex_attention_reads_values_of_the_moment_through_block_masks(read, monkeypatch):
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    mask, change = what_changes(monkeypatch)[read]
    made = flex.create_block_mask(mask, None, None, 23, 23, device="cpu")
    for width in (5, 2, 5):
        change(width)
        check_near(flex_masked, made, width)


def test_flex_attention_reads_values_of_the_moment_in_scores():
    cap = Near(2.0)
    q, k, v = (each.transpose(1, 2) for each in draw())
    i = torch.arange(23)

    def score_mod(score, b, h, q_idx, kv_idx):
        return score * cap.width

    for cap.width in (2.0, 3.0):
        expected = sdpa(q, k, v, i[None] <= i[:, None], lambda s: s * cap.width)
        torch.testing.assert_close(heddle.flex_attention(q, k, v, score_mod, causal).double(), expected, atol=2e-5, rtol=0)


def test_flex_attention_keeps_one_pattern_for_functions_that_do_the_same():
    from heddle import _flex
    assert _flex.pattern_now(lambda b, h, q, k: q >= k, None)[0] is _flex.pattern_now(lambda b, h, q, k: q >= k, None)[0]


def test_flex_attention_takes_its_block_masks():
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    q, k, v = (each.transpose(1, 2) for each in draw())
    made = flex.create_block_mask(lambda b, h, q, k: q >= k, None, None, 23, 23, device="cpu")
    torch.testing.assert_close(heddle.flex_attention(q, k, v, block_mask=made), heddle.flex_attention(q, k, v, block_mask=causal))


def test_flex_attention_reads_functions_of_block_masks_and_not_their_lists():
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    q, k, v = (each.transpose(1, 2) for each in draw())
    lists = torch.tensor([[[1]]], dtype=torch.int32), torch.tensor([[[[0]]]], dtype=torch.int32)
    with_one = flex.BlockMask.from_kv_blocks(*lists, mask_mod=lambda b, h, q, k: q >= k)
    torch.testing.assert_close(heddle.flex_attention(q, k, v, block_mask=with_one), heddle.flex_attention(q, k, v, block_mask=causal))
    torch.testing.assert_close(heddle.flex_attention(q, k, v, block_mask=flex.noop_mask), heddle.flex_attention(q, k, v))


def test_flex_attention_refuses_what_it_does_not_do():
    q, k, v = (each.transpose(1, 2) for each in draw())
    table = torch.zeros(23, dtype=torch.bool)
    for call, message in ((lambda: heddle.flex_attention(q, k[:, :2], v[:, :2]), "or give enable_gqa=True"),
                          (lambda: heddle.flex_attention(None, k, v), "query: expected a tensor [batch, heads, length, head_dim], got NoneType"),
                          (lambda: heddle.flex_attention(q, k[0], v), "key: expected a tensor [batch, heads, length, head_dim], got one of [4, 23, 8]"),
                          (lambda: heddle.flex_attention(q, k, v, block_mask=lambda b, h, q, k: table[q]), "reads a tensor at a position; tensors are arguments of the pattern"),
                          (lambda: heddle.flex_attention(q, k, v, block_mask=lambda b, h, q, k: q.half() > 1), "asks a position or a score for .half"),
                          (lambda: heddle.flex_attention(q, k, v, softcap(2.0), heddle.library("causal")), "expected words or a function beside")):
        with pytest.raises(heddle.Error) as raised:
            call()
        assert message in str(raised.value)
    heddle.flex_attention(q, k[:, :2], v[:, :2], enable_gqa=True)
