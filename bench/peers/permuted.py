"""What fused attention offers for patterns that it has no mask for: on views and copies of rows, and composed from several calls.
As peers.py."""
from dataclasses import dataclass
from typing import Callable

import torch
from torch.nn.attention import SDPBackend

from peers.launch import Launch
from peers.masks import DilatedWindow, Groups, Longformer, Mixture, Partition
from peers.peers import flash, heads_second, sdpa, with_backend


def fa2_view(workload, q, k, v):
    """A dilated window is a plain one on [b, n / r, r h, d]: residue and head are one index there, without a copy."""
    mask = workload.mask
    if not isinstance(mask, DilatedWindow) or workload.seqlen % mask.rate:
        return None
    views = [t.view(workload.batch, workload.seqlen // mask.rate, mask.rate * t.shape[2], workload.head_dim) for t in (q, k, v)]
    return Launch(lambda: flash(*views, mask.half, mask.half)[0].reshape(q.shape))


@dataclass(frozen=True)
class Lattice:
    """Rows at a residue of every segment, of some heads that see each other there and nothing else."""
    first_head: int
    heads: int
    segment: int
    rate: int
    offset: int
    causal: bool = False

    def fits(self, workload):
        share = workload.heads // workload.kv
        return (workload.batch == 1 and workload.seqlen % self.segment == 0 and self.segment % self.rate == 0
                and self.first_head % share == 0 and self.heads % share == 0)

    def view(self, tensor, share=1):
        """[segments, rows, heads, d] of a tensor [1, n, h, d] whose heads serve `share` query heads each; no copy."""
        _, n, heads, dim = tensor.shape
        whole = tensor.view(n // self.segment, self.segment // self.rate, self.rate, heads, dim)
        return whole[:, :, self.offset, self.first_head // share:(self.first_head + self.heads) // share]

    def views(self, q, k, v):
        share = q.shape[2] // k.shape[2]
        return self.view(q), self.view(k, share), self.view(v, share)


def lattices_of_groups(workload):
    """One for each group of heads; none where the mask is another."""
    mask, n = workload.mask, workload.seqlen
    if isinstance(mask, Groups):
        share = workload.heads // mask.groups
        return [Lattice(g * share, share, min(mask.base << g, n), 1 << g, g % (1 << g)) for g in range(mask.groups)]
    if isinstance(mask, Partition):
        share = workload.heads // len(mask.segments)
        return [Lattice(i * share, share, min(s.length, n), s.rate, i % s.rate, s.causal) for i, s in enumerate(mask.segments)]
    return []


def _per_group(workload, q, k, v, prepare: Callable):
    lattices = lattices_of_groups(workload)
    if not lattices or not all(lattice.fits(workload) for lattice in lattices):
        return None
    out = torch.full_like(q, float("nan"))
    shared = workload.kv != workload.heads
    groups = [(lattice.views(q, k, v), lattice.view(out), lattice.causal) for lattice in lattices]

    def run():
        out.zero_()
        for tensors, result, causal in groups:
            result.copy_(sdpa(*heads_second(*map(prepare, tensors)), is_causal=causal, enable_gqa=shared).transpose(1, 2))
        return out

    return Launch(run, with_backend(SDPBackend.CUDNN_ATTENTION))


def cudnn_permuted(workload, q, k, v):
    """cuDNN on a copy of each head group's rows; gathers and scatters count."""
    return _per_group(workload, q, k, v, torch.Tensor.contiguous)


def cudnn_strided(workload, q, k, v):
    """The same without copies of the inputs, where cuDNN takes the strides."""
    return _per_group(workload, q, k, v, lambda tensor: tensor)


def lattices_of_branches(workload):
    """Of LongNet: for each branch its lattices, one for each residue that heads have; none where the mask is another."""
    if not isinstance(workload.mask, Mixture):
        return []
    branches = []
    for segment in workload.mask.segments:
        share = -(-workload.heads // segment.rate)
        branches += [Lattice(first, min(share, workload.heads - first), min(segment.length, workload.seqlen), segment.rate, first // share, segment.causal)
                     for first in range(0, workload.heads, share)]
    return branches


def fa2_branches(workload, q, k, v):
    """LongNet from calls of FlashAttention-2 for each branch and residue, mixed by their lse."""
    lattices = lattices_of_branches(workload)
    if not lattices or not all(lattice.fits(workload) for lattice in lattices):
        return None

    def run():
        out, lse = torch.zeros_like(q, dtype=torch.float32), torch.full((*q.shape[:3], 1), -torch.inf, device=q.device)
        for lattice in lattices:
            part, part_lse = flash(*lattice.views(q, k, v), causal=lattice.causal)
            part_lse, so_far = part_lse.transpose(1, 2).unsqueeze(-1), lattice.view(lse)
            both = torch.logaddexp(so_far, part_lse)
            mixed = lattice.view(out)
            mixed.mul_(torch.exp(so_far - both)).addcmul_(part, torch.exp(part_lse - both))
            so_far.copy_(both)
        return out.to(q.dtype)

    return Launch(run)


def fa2_composed(workload, q, k, v):
    """Longformer from four calls of FlashAttention-2: the global rows; the rows whose window touches the global keys,
    one causal block; window and global keys of the others, mixed by their lse."""
    mask = workload.mask
    if not isinstance(mask, Longformer):
        return None
    first, touched = mask.globals, mask.globals + mask.half

    def run():
        window, window_lse = flash(q, k, v, mask.half, mask.half)
        column, column_lse = flash(q, k[:, :first], v[:, :first])
        weight = torch.sigmoid(window_lse - column_lse).transpose(1, 2).unsqueeze(-1).to(q.dtype)
        out = torch.lerp(column, window, weight)
        out[:, :first] = flash(q[:, :first], k, v)[0]
        out[:, first:touched] = flash(q[:, first:touched], k[:, :touched + mask.half], v[:, :touched + mask.half], causal=True)[0]
        return out

    return Launch(run)
