"""The workloads by name: shape, pattern file, mask, and what must be reached. No torch here."""
from dataclasses import dataclass, field
from typing import Optional

from peers.block_masks import (BlockDilatedHeads, BlockDistances, BlockGlobal, BlockLevels, BlockStrided, BlockThinned, BlockWindow,
                               RandomBlocks)
from peers.masks import (Causal, Columns, DilatedWindow, Full, Groups, Hierarchical, Longformer, Mixture, Partition, Prefix, Segment,
                         SparseFixed, SparseStrided, Streaming, Window, WindowStrided, segments)
from peers import scores
from peers.tensor_masks import BlockLists, DraftTree, binary_tree, chunked_documents, packed_documents


@dataclass(frozen=True)
class Target:
    """What the value must reach and where it should go. Kinds: `cudnn` time of cuDNN over heddle's, `product` percent of
    the bf16 matrix product, `cost` percent of time over the companion's (smaller is better)."""
    kind: str
    must: float
    aim: float


@dataclass(frozen=True)
class Workload:
    name: str
    pattern: str  # file, relative to the repository
    mask: object
    batch: int
    heads: int
    seqlen: int
    head_dim: int
    target: Optional[Target] = None
    kv_heads: int = 0  # 0: as heads
    sizes: tuple = field(default=())  # (name, value) of the pattern, in the order of its arguments
    companion: str = ""  # a workload of the same shape that is launched in the same rounds
    tune_seqlen: int = 0  # shorter length for the search where the steady state is the same
    score: str = ""  # what the pattern makes of scores: "alibi", "softcap", "relative", "bias"; "sink": a key without a value
    queries: int = 0  # 0: as keys, of which there are `seqlen`

    @property
    def kv(self):
        return self.kv_heads or self.heads

    @property
    def rows(self):
        return self.queries or self.seqlen

    @property
    def operands(self):
        """The pattern's tensors by name, in the order of its arguments, before its sizes."""
        if hasattr(self.mask, "operands"):
            return self.mask.operands(self.heads, self.seqlen)
        return scores.operands(self.score, self.heads, self.seqlen, self.sizes)

    def keep(self, head, q, k):
        return self.mask.keep(head, self.heads, self.seqlen, q, k)

    @property
    def has_copies(self):
        """Some kept pairs count more than once."""
        return hasattr(self.mask, "copies")

    @property
    def differs_by_head(self):
        """The mask does; that of a head alone does not say what the others keep."""
        return getattr(self.mask, "per_head", False)

    def copies(self, head, q, k):
        return self.mask.copies(head, self.heads, self.seqlen, q, k)

    @property
    def kept_pairs(self):
        """Of all heads of one batch element."""
        return self.mask.pairs(self.heads, self.seqlen)

    @property
    def flops(self):
        return 4 * self.head_dim * self.batch * self.kept_pairs

    def shape_text(self):
        heads = f"{self.heads}" + (f"[{self.kv}]" if self.kv != self.heads else "")
        rows = f"{self.queries}/{self.seqlen}" if self.queries else f"{self.seqlen}"
        return f"{self.batch}x{heads}x{rows}x{self.head_dim}"


def _plain(name, pattern, mask, batch, heads, seqlen, head_dim, must=0, aim=0, kv_heads=0):
    target = Target("cudnn", must, aim) if must else None
    return Workload(name, f"patterns/{pattern}.mlir", mask, batch, heads, seqlen, head_dim, target, kv_heads)


def _window(name, heads, seqlen, keys, must, aim, tune_seqlen=0):
    return Workload(name, "patterns/sliding_window.mlir", Window(keys - 1, 0), 1, heads, seqlen, 128, Target("product", must, aim),
                    sizes=(("left", keys - 1),), tune_seqlen=tune_seqlen)


def _ranges(name, mask, sizes, target=None, companion=""):
    return Workload(name, f"bench/patterns/{name}.mlir", mask, 1, 16, 32640, 128, target, sizes=sizes, companion=companion)


_ALL = [
    _plain("dense_2k_d128", "full", Full(), 8, 16, 2048, 128),
    _plain("dense_8k_d128", "full", Full(), 2, 16, 8192, 128, 1.20, 1.30),
    _plain("dense_32k_d128", "full", Full(), 1, 16, 32768, 128, 1.15, 1.25),
    _plain("causal_2k_d128", "causal", Causal(), 8, 16, 2048, 128),
    _plain("causal_8k_d128", "causal", Causal(), 2, 16, 8192, 128, 1.19, 1.28),
    _plain("causal_32k_d128", "causal", Causal(), 1, 16, 32768, 128, 1.14, 1.22),
    _plain("dense_8k_d64", "full", Full(), 2, 32, 8192, 64, 1.30, 1.45),
    _plain("dense_32k_d64", "full", Full(), 1, 32, 32768, 64, 1.25, 1.45),
    _plain("causal_8k_d64", "causal", Causal(), 2, 32, 8192, 64, 1.25, 1.40),
    _plain("causal_32k_d64", "causal", Causal(), 1, 32, 32768, 64, 1.22, 1.40),
    _plain("causal_8k_d256", "causal", Causal(), 2, 8, 8192, 256, 0.97, 1.08),
    _plain("gqa_causal_16k", "causal", Causal(), 1, 32, 16384, 128, 1.17, 1.26, kv_heads=8),
    _window("win1k_32k", 16, 32768, 1024, 72, 82),
    _window("win1k_128k", 16, 131072, 1024, 72, 82),
    _window("win4k_1m", 8, 1048576, 4096, 80, 92, tune_seqlen=131072),
    Workload("dilwin_32k", "patterns/dilated_window.mlir", DilatedWindow(4, 1024), 1, 16, 32768, 128, Target("product", 84, 92),
             sizes=(("half", 1024),)),
    Workload("fkodom_32k", "patterns/dilated.mlir", Groups(2048, 3), 1, 24, 32768, 64, Target("product", 65, 78)),
    Workload("fkodom_128k", "bench/patterns/dilated_4.mlir", Groups(4096, 4), 1, 24, 131072, 64, Target("product", 68, 82)),
    Workload("longformer_32k", "patterns/longformer.mlir", Longformer(256, 64), 1, 16, 32768, 64, Target("product", 40, 60),
             sizes=(("half", 256), ("globals", 64))),
    _ranges("one_range", Columns(3840, 0), (("first", 3840),)),
    _ranges("two_ranges", Columns(1920, 1920), (("first", 1920), ("last", 1920)), Target("cost", 5, 1), companion="one_range"),
]

_BASE = segments((2048, 4096, 8192, 16384, 32768), (1, 2, 4, 6, 12), causal=True)
_LARGE = segments((4096, 8192, 16384, 32768), (1, 2, 4, 8), causal=True)


def _library(seqlen, label):
    """Every file of patterns/, at one length: (pattern, mask, run-time sizes, heads)."""
    scaled = tuple(seqlen // part for part in (4, 2, 1))
    rows = [
        ("full", Full()), ("causal", Causal()), ("sliding_window", Window(1023, 0), (("left", 1023),)),
        ("dilated_window", DilatedWindow(4, 256), (("half", 256),)),
        ("longformer", Longformer(256, 64), (("half", 256), ("globals", 64))),
        ("streaming", Streaming(4, 1023), (("first", 4), ("left", 1023))), ("prefix_lm", Prefix(1024), (("length", 1024),)),
        ("hierarchical", Hierarchical(1024, 5)), ("sparse_strided", SparseStrided(64)),
        ("window_strided", WindowStrided(1023, 32), (("left", 1023),)),
        ("sparse_fixed", SparseFixed(128, 4)),
        ("dilated", Partition(segments((2048, 4096, 8192), (1, 2, 4)))), ("dilated_base", Partition(_BASE), (), 10),
        ("dilated_benchmark", Partition(segments((8192, 16384, 32768), (1, 2, 8)))),
        ("dilated_compare", Partition(segments((2048, 4096, 8192, 16384), (1, 2, 4, 8)))),
        ("dilated_guide", Partition(segments((4096, 8192, 16384), (1, 2, 4)))), ("dilated_large", Partition(_LARGE)),
        ("dilated_scaled", Partition(segments(scaled, (1, 2, 4))), tuple(zip(("quarter", "half", "whole"), scaled))),
        ("longnet", Mixture(segments((2048, 4096), (1, 2), causal=True))), ("longnet_base", Mixture(_BASE)), ("longnet_large", Mixture(_LARGE)),
        ("longvit_1k", Mixture(segments((64, 128, 256, 512, 1024), (1, 2, 4, 8, 16)))),
        ("longvit_32k", Mixture(segments((1024, 4096, 32768, 262144, 1048576), (1, 2, 4, 8, 16)))),
        ("block_window", BlockWindow(2), (("radius", 2),)), ("block_dilated", BlockDistances((0, 1, 2, 4))),
        ("block_global", BlockGlobal(1), (("globals", 1),)), ("block_levels", BlockLevels()), ("block_strided", BlockStrided()),
        ("block_thinned", BlockThinned()), ("block_local", BlockWindow(0, 512), (("block", 512),)),
        ("bigbird", RandomBlocks(3, 1, 1, 64), (("globals", 1), ("randoms", 3), ("seed", 0))),
        ("random_blocks", RandomBlocks(round(0.1 * seqlen / 128)), (("count", round(0.1 * seqlen / 128)), ("seed", 0))),
        ("bigbird_causal", RandomBlocks(3, 1, 1, 64, causal=True), (("globals", 1), ("randoms", 3), ("seed", 0))),
        ("random_blocks_causal", RandomBlocks(round(0.2 * seqlen / 128), causal=True), (("count", round(0.2 * seqlen / 128)), ("seed", 0))),
        ("block_dilated_heads", BlockDilatedHeads(seqlen // 1024), (("reach", seqlen // 1024),)),
        ("block_csr", BlockLists(seqlen // 1280)), ("block_topk", BlockLists(16, 64, causal=True)),
        ("document", packed_documents(seqlen)), ("document_window", chunked_documents(seqlen, 1023), (("left", 1023),)),
        ("tree_decode", DraftTree(binary_tree(64), 64, seqlen)),
        ("dilated_tiny", Partition(segments((2, 4, 8), (1, 2, 4)))),
        ("longnet_tiny", Mixture(segments((4, 8, 16), (1, 2, 4), causal=True))),
        ("relative_bias", Full(), (("reach", 127),), 12, "relative"), ("bias", Causal(), (), 12, "bias"), ("sink", Causal(), (), 12, "sink"),
        ("alibi", Causal(), (), 16, "alibi"), ("softcap", Causal(), (("cap", 50.0),), 12, "softcap"),
    ]
    for pattern, mask, *rest in rows:
        sizes, heads, score = rest + [(), 12, ""][len(rest):]
        yield Workload(f"library_{pattern}_{label}", f"patterns/{pattern}.mlir", mask, 1, heads, seqlen, 64, sizes=sizes, score=score,
                       queries=mask.rows(seqlen) if hasattr(mask, "rows") else 0)


LIBRARY = [workload.name for seqlen, label in ((8192, "8k"), (32768, "32k")) for workload in _library(seqlen, label)]
_ALL += [workload for seqlen, label in ((8192, "8k"), (32768, "32k")) for workload in _library(seqlen, label)]

WORKLOADS = {workload.name: workload for workload in _ALL}
# What a run without names measures: the table of the Hopper forward issue.
DEFAULT = [name for name in WORKLOADS if "_2k_" not in name and name != "one_range" and name not in LIBRARY]
# Words that stand for several workloads.
GROUPS = {"library": LIBRARY, **{f"library_{label}": [name for name in LIBRARY if name.endswith(f"_{label}")] for label in ("8k", "32k")}}
