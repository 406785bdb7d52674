"""The names and arguments of heddle.flex against torch.nn.attention.flex_attention: BlockMasks, their lists, auxiliary results."""
import inspect
import math
import warnings

import heddle
import pytest

torch = pytest.importorskip("torch")
flex = pytest.importorskip("torch.nn.attention.flex_attention")
import heddle.flex  # noqa: E402
from flex_reference import N, block_mask, draw, theirs  # noqa: E402

pytestmark = pytest.mark.compiler


def causal(b, h, q, k):
    return q >= k


@pytest.mark.parametrize("name", ["flex_attention", "create_block_mask"])
def test_arguments_are_in_pytorchs_order(name):
    ours, original = (list(inspect.signature(getattr(of, name)).parameters) for of in (heddle.flex, flex))
    assert ours[:len(original)] == original


def lists(block_mask, with_full=True):
    """The lists of a BlockMask without its mask_mod."""
    full = (block_mask.full_kv_num_blocks, block_mask.full_kv_indices) if with_full else ()
    return flex.BlockMask.from_kv_blocks(block_mask.kv_num_blocks, block_mask.kv_indices, *full, BLOCK_SIZE=block_mask.BLOCK_SIZE,
                                         seq_lengths=block_mask.seq_lengths)


def random_blocks(b, h, q, k):
    return (q // 4 * 7 + k // 4 * 5 + h * 3 + b) % 4 < 2


@pytest.mark.parametrize("with_full", [True, False])
@pytest.mark.parametrize("batch, heads", [(2, 4), (1, 4), (2, 1), (1, 1)])
@pytest.mark.parametrize("sizes", [8, 16, (8, 16), (24, 16)])
def test_lists_of_blocks(sizes, batch, heads, with_full):
    n = 44
    made = lists(block_mask(random_blocks, heads, n, batch, BLOCK_SIZE=sizes), with_full)
    q, k, v = draw(n=n)
    torch.testing.assert_close(heddle.flex_attention(q, k, v, block_mask=made), theirs_of_lists(q, k, v, made), atol=2e-5, rtol=1e-5)


def theirs_of_lists(q, k, v, made):
    """By the definition: PyTorch's eager attention reads no lists."""
    keep = torch.zeros(*made.shape[:2], q.shape[2], k.shape[2], dtype=torch.bool)
    for counts, indices in ((made.kv_num_blocks, made.kv_indices), (made.full_kv_num_blocks, made.full_kv_indices)):
        for b, h, row in ([] if counts is None else torch.cartesian_prod(*(torch.arange(size) for size in counts.shape)).tolist()):
            for column in indices[b, h, row, :counts[b, h, row]].tolist():
                block_q, block_k = made.BLOCK_SIZE
                keep[b, h, row * block_q:(row + 1) * block_q, column * block_k:(column + 1) * block_k] = True
    scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(~keep, -math.inf)
    return torch.softmax(scores, -1).nan_to_num() @ v


@pytest.mark.parametrize("inference", [False, True])
def test_lists_that_are_written_to_are_read_again(inference):
    q, k, v = draw(n=16)
    with torch.inference_mode(inference):
        made = lists(block_mask(causal, 4, 16, BLOCK_SIZE=8), with_full=False)
    before = heddle.flex_attention(q, k, v, block_mask=made)
    assert torch.equal(before, heddle.flex_attention(q, k, v, block_mask=made))
    with torch.inference_mode(inference):
        made.kv_num_blocks.zero_()
    assert not heddle.flex_attention(q, k, v, block_mask=made).any() and before.any()


def test_block_masks_of_fewer_tokens_are_refused():
    q, k, v = draw()
    for of in (flex, heddle.flex):
        made = of.create_block_mask(causal, None, None, N, N - 1, "cpu")
        with pytest.raises(heddle.InvalidArgumentError, match="block_mask: was made for 24 queries and 23 keys, got 24 and 24"):
            heddle.flex_attention(q, k, v, block_mask=made)
        assert heddle.flex_attention(q, k[:, :, 1:], v[:, :, 1:], block_mask=made).shape == q.shape


def test_lists_beside_a_score_function_and_in_a_graph():
    q, k, v = draw(n=16)
    made = lists(block_mask(random_blocks, 4, 16, BLOCK_SIZE=4))

    def call(q, k, v):
        return heddle.flex_attention(q, k, v, lambda s, b, h, q, k: s * 2, made)
    torch.testing.assert_close(call(q, k, v), theirs_of_lists(2 * q, k, v, made), atol=2e-5, rtol=1e-5)
    torch.testing.assert_close(torch.compile(call, backend="eager")(q, k, v), call(q, k, v))


def test_block_masks_of_our_own_cost_nothing_and_mean_their_function():
    q, k, v = draw()
    made = heddle.flex.create_block_mask(causal, None, None, 1 << 40, 1 << 40, "cuda", BLOCK_SIZE=(128, 64), _compile=True)
    assert made.shape == (1, 1, 1 << 40, 1 << 40) and made.to("cpu") is made and made.BLOCK_SIZE == (128, 64)
    assert torch.equal(heddle.flex_attention(q, k, v, block_mask=made), heddle.flex_attention(q, k, v, block_mask="causal"))
    everything = heddle.flex.create_block_mask(heddle.flex.noop_mask, 2, 4, N, N)
    torch.testing.assert_close(heddle.flex_attention(q, k, v, block_mask=everything), theirs(q, k, v), atol=2e-5, rtol=1e-5)
    with pytest.raises(heddle.InvalidArgumentError, match="create_block_mask: mask_mod: expected a function, got None"):
        heddle.flex.create_block_mask(None, 1, 1, 8, 8)
    with pytest.raises(heddle.InvalidArgumentError, match="and_masks: expected functions, got 3"):
        heddle.flex.and_masks(causal, 3)


def test_auxiliary_results():
    q, k, v = draw()
    made = block_mask(causal)
    out, lse = theirs(q, k, v, block_mask=made, return_lse=True)
    theirs_too = [flex.AuxRequest(lse=True)] if hasattr(flex, "AuxRequest") else []
    for request in [heddle.flex.AuxRequest(lse=True), *theirs_too]:
        got, aux = heddle.flex_attention(q, k, v, block_mask=made, return_aux=request)
        torch.testing.assert_close((got, aux.lse), (out, lse), atol=2e-5, rtol=1e-5)
        assert aux.max_scores is None
    assert heddle.flex_attention(q, k, v, return_aux=heddle.flex.AuxRequest())[1] == (None, None)
    torch.testing.assert_close(heddle.flex_attention(q, k, v, block_mask=made, return_lse=True), (out, lse), atol=2e-5, rtol=1e-5)
    with pytest.raises(heddle.UnsupportedError, match="heddle returns no max_scores"):
        heddle.flex_attention(q, k, v, return_aux=heddle.flex.AuxRequest(max_scores=True))
    with pytest.raises(heddle.InvalidArgumentError, match="expected return_lse or return_aux, got both"):
        heddle.flex_attention(q, k, v, return_lse=True, return_aux=heddle.flex.AuxRequest(lse=True))


def test_kernel_options_are_ignored_with_one_warning():
    q, k, v = draw()
    heddle.flex._warn_of_options.cache_clear()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(3):
            out = heddle.flex_attention(q, k, v, kernel_options={"BLOCK_M": 64})
    assert [str(each.message) for each in seen] == ["flex_attention: kernel_options have no effect: heddle.tune searches for a faster kernel"]
    assert seen[0].filename == __file__
    assert torch.equal(out, heddle.flex_attention(q, k, v))


def test_grouped_heads():
    q, k, v = draw()
    expected = theirs(q, k[:, :2], v[:, :2], None, block_mask(causal), enable_gqa=True)
    torch.testing.assert_close(heddle.flex_attention(q, k[:, :2], v[:, :2], None, causal, enable_gqa=True), expected, atol=2e-5, rtol=1e-5)
