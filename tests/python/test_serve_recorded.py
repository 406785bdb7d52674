"""heddle.serve where PyTorch records ops or has no memory behind tensors."""
import pytest

torch = pytest.importorskip("torch")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

import heddle  # noqa: E402
from heddle import serve  # noqa: E402

if not heddle.has_compiler():
    pytest.skip("these calls run on processors, by the compiler", allow_module_level=True)

HEADS, KV_HEADS, DIM, PAGE = 4, 2, 16, 16


def paged(sequences, keys):
    """q of one token of each, caches, a table and lengths."""
    pages = -(-keys // PAGE)
    caches = torch.randn(2, sequences * pages, PAGE, KV_HEADS, DIM)
    table = torch.randperm(sequences * pages).to(torch.int32).view(sequences, pages)
    return torch.randn(sequences, 1, HEADS, DIM), *caches, table, torch.full((sequences,), keys, dtype=torch.int32)


def causal(*given):
    return serve.paged_attention(*given, "causal")


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_a_call_is_a_node_of_what_make_fx_records(mode):
    given = paged(3, 40)
    recorded = make_fx(causal, tracing_mode=mode)(*given)
    other = torch.randn_like(given[0]), *given[1:]
    assert torch.equal(recorded(*other), causal(*other))


def test_fake_tensors_leave_later_calls_as_they_are():
    given = paged(3, 40)
    expected = causal(*given)
    for _ in range(2):
        with FakeTensorMode() as fake:
            assert causal(*(fake.from_tensor(each) for each in given)).shape == expected.shape
    assert torch.equal(causal(*given), expected)
