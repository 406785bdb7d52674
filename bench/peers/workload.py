"""What a workload is: a shape, a pattern file, a mask that says the same, and what must be reached. No torch here."""
from dataclasses import dataclass, field, replace
from typing import Optional

from peers import scores


@dataclass(frozen=True)
class Target:
    """What the value must reach and where it should go. Kinds: `cudnn` time of cuDNN over heddle's, `fa3` that of
    FlashAttention-3, `product` percent of the bf16 matrix product, `cost` percent of time over the companion's (smaller is
    better)."""
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
    backward: bool = False  # what is measured are the gradients of q, k and v of the call

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
        """Two products a pair, or five for gradients."""
        return (10 if self.backward else 4) * self.head_dim * self.batch * self.kept_pairs

    def shortened(self, tokens):
        """One batch element of at most so many tokens, under the same name; ValueError where the mask has one length."""
        if hasattr(self.mask, "rows"):
            raise ValueError("its mask has one length")
        return replace(self, batch=1, seqlen=min(tokens, self.seqlen), companion="")

    def shape_text(self):
        heads = f"{self.heads}" + (f"[{self.kv}]" if self.kv != self.heads else "")
        rows = f"{self.queries}/{self.seqlen}" if self.queries else f"{self.seqlen}"
        return f"{self.batch}x{heads}x{rows}x{self.head_dim}"
