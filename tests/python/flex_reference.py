"""PyTorch's flex_attention on the CPU, without compiling, and tensors for it."""
import warnings

import pytest
import torch
from torch.nn.attention import flex_attention as flex

N = 24


def draw(heads=4, n=N, batch=2, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(batch, heads, n, 8, generator=generator) for _ in range(3)]


def theirs(q, k, v, score_mod=None, block_mask=None, **named):
    """PyTorch's own on the CPU, without compiling."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flex, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True, raising=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return flex.flex_attention(q, k, v, score_mod, block_mask, **named)


def block_mask(mask_mod, heads=4, n=N, batch=2, **named):
    return flex.create_block_mask(mask_mod, batch, heads, n, n, device="cpu", **named)
