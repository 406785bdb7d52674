"""The workloads by name: shape, pattern file, mask, kept pairs in closed form, and what must be reached.

No torch here. `keep` of a mask is written with operators that integers and tensors share, so that the same text is
checked by brute force, used for the fp64 reference and handed to FlexAttention.
"""
from dataclasses import dataclass, field
from typing import Optional


@dataclass(frozen=True)
class Full:
    def keep(self, head, heads, n, q, k):
        return (q >= 0) & (k >= 0)

    def pairs(self, heads, n):
        return heads * n * n


@dataclass(frozen=True)
class Causal:
    def keep(self, head, heads, n, q, k):
        return k <= q

    def pairs(self, heads, n):
        return heads * n * (n + 1) // 2


def band_pairs(n, left, right):
    """Pairs of 0..n-1 with -right <= q - k <= left."""
    left, right = min(left, n - 1), min(right, n - 1)
    return n * (left + right + 1) - left * (left + 1) // 2 - right * (right + 1) // 2


@dataclass(frozen=True)
class Window:
    left: int
    right: int

    def keep(self, head, heads, n, q, k):
        return (q - k <= self.left) & (k - q <= self.right)

    def pairs(self, heads, n):
        return heads * band_pairs(n, self.left, self.right)


@dataclass(frozen=True)
class DilatedWindow:
    """`half` steps of `rate` to each side, in the query's own residue class."""
    rate: int
    half: int

    def keep(self, head, heads, n, q, k):
        reach = self.rate * self.half
        return (q - k <= reach) & (k - q <= reach) & ((q - k) % self.rate == 0)

    def pairs(self, heads, n):
        rows = [(n - residue + self.rate - 1) // self.rate for residue in range(self.rate)]
        return heads * sum(band_pairs(count, self.half, self.half) for count in rows if count > 0)


@dataclass(frozen=True)
class Groups:
    """Group i of `groups` head groups: segments of `base << i`, rate `1 << i`, positions with pos % rate == i % rate."""
    base: int
    groups: int

    def group(self, head, heads):
        assert heads % self.groups == 0, "every group has the same number of heads"
        return head // (heads // self.groups)

    def keep(self, head, heads, n, q, k):
        group = self.group(head, heads)
        segment, rate = self.base << group, 1 << group
        offset = group % rate
        return (q // segment == k // segment) & (q % rate == offset) & (k % rate == offset)

    def pairs(self, heads, n):
        total = 0
        for group in range(self.groups):
            segment, rate = self.base << group, 1 << group
            for start in range(0, n, segment):
                length = min(segment, n - start)
                rows = (length - group % rate + rate - 1) // rate
                total += max(rows, 0) ** 2
        return heads // self.groups * total


@dataclass(frozen=True)
class Longformer:
    half: int
    globals: int

    def keep(self, head, heads, n, q, k):
        return ((q - k <= self.half) & (k - q <= self.half)) | (k < self.globals) | (q < self.globals)

    def pairs(self, heads, n):
        """The global rows and columns, and the band of the rows and columns behind them."""
        globals_ = min(self.globals, n)
        return heads * (2 * n * globals_ - globals_ ** 2 + (band_pairs(n - globals_, self.half, self.half) if n > globals_ else 0))


@dataclass(frozen=True)
class Columns:
    """The `first` and the `last` keys."""
    first: int
    last: int

    def keep(self, head, heads, n, q, k):
        return (k < self.first) | (k >= n - self.last)

    def pairs(self, heads, n):
        return heads * n * min(n, self.first + self.last)


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

    @property
    def kv(self):
        return self.kv_heads or self.heads

    def keep(self, head, q, k):
        return self.mask.keep(head, self.heads, self.seqlen, q, k)

    @property
    def kept_pairs(self):
        """Of all heads of one batch element."""
        return self.mask.pairs(self.heads, self.seqlen)

    @property
    def flops(self):
        return 4 * self.head_dim * self.batch * self.kept_pairs

    def shape_text(self):
        heads = f"{self.heads}" + (f"[{self.kv}]" if self.kv != self.heads else "")
        return f"{self.batch}x{heads}x{self.seqlen}x{self.head_dim}"


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

WORKLOADS = {workload.name: workload for workload in _ALL}
# What a run without names measures: the table of the Hopper forward issue.
DEFAULT = [name for name in WORKLOADS if "_2k_" not in name and name != "one_range"]
