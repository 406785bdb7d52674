"""Every file of patterns/ as a workload, at any length, head dim and number of heads. No torch here."""
import functools
import re

from peers.block_masks import (BlockDilatedHeads, BlockDistances, BlockGlobal, BlockLevels, BlockStrided, BlockThinned, BlockWindow,
                               RandomBlocks)
from peers.masks import (Causal, DilatedWindow, Full, Hierarchical, Longformer, Mixture, Partition, Prefix, SparseFixed, SparseStrided,
                         Streaming, Window, WindowStrided, segments)
from peers.tensor_masks import BlockLists, DraftTree, DraftTrees, binary_tree, chunked_documents, packed_documents
from peers.workload import Workload

LENGTHS = {f"{thousands}k": 1024 * thousands for thousands in (2, 4, 8, 16, 32, 64, 128, 256, 512)}
LENGTHS["1m"] = 1 << 20
_NAME = re.compile(r"library_(?P<pattern>\w+?)_(?P<label>" + "|".join(LENGTHS) + r")(?:_d(?P<head_dim>64|128|256))?(?P<gqa>_gqa)?")
# Of the sweep left out from 256k on: work that grows with the square of the length, or lists of all blocks.
_SQUARE = {"full", "causal", "prefix_lm", "alibi", "softcap", "relative_bias", "sink", "sparse_strided", "sparse_fixed", "window_strided",
           "document", "dilated_scaled"}
_LISTED = {"bigbird", "bigbird_causal", "random_blocks", "random_blocks_causal", "block_csr", "block_topk", "block_window", "block_local",
           "block_dilated", "block_global", "block_levels", "block_strided", "block_thinned", "block_dilated_heads", "dilated_tiny", "longnet_tiny"}

_BASE = segments((2048, 4096, 8192, 16384, 32768), (1, 2, 4, 6, 12), causal=True)
_LARGE = segments((4096, 8192, 16384, 32768), (1, 2, 4, 8), causal=True)


@functools.lru_cache(maxsize=None)
def _rows(seqlen):
    """Every file of patterns/, at one length: pattern -> (mask, run-time sizes, heads, score)."""
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
        ("tree_decode", DraftTree(binary_tree(64), 64, seqlen)), ("trees", DraftTrees(binary_tree(64), 64, seqlen)),
        ("dilated_tiny", Partition(segments((2, 4, 8), (1, 2, 4)))),
        ("longnet_tiny", Mixture(segments((4, 8, 16), (1, 2, 4), causal=True))),
        ("relative_bias", Full(), (("reach", 127),), 12, "relative"), ("bias", Causal(), (), 12, "bias"), ("sink", Causal(), (), 12, "sink"),
        ("alibi", Causal(), (), 16, "alibi"), ("softcap", Causal(), (("cap", 50.0),), 12, "softcap"),
    ]
    defaults = (None, (), 12, "")
    return {pattern: (*rest, *defaults[len(rest):]) for pattern, *rest in rows}


def _made(name, pattern, seqlen, head_dim=64, gqa=False):
    mask, sizes, heads, score = _rows(seqlen)[pattern]
    kv_heads = next(heads // share for share in (4, 5, 3, 2) if heads % share == 0) if gqa else 0
    return Workload(name, f"patterns/{pattern}.mlir", mask, 1, heads, seqlen, head_dim, None, kv_heads, sizes, score=score,
                    queries=mask.rows(seqlen) if hasattr(mask, "rows") else 0)


def workload(name):
    """`library_PATTERN_LENGTH[_dHEADDIM][_gqa]`, head dim 64 where none is said; None for any other name."""
    found = _NAME.fullmatch(name)
    if not found or found["pattern"] not in PATTERNS:
        return None
    return _made(name, found["pattern"], LENGTHS[found["label"]], int(found["head_dim"] or 64), bool(found["gqa"]))


PATTERNS = tuple(_rows(8192))


def names(labels=("8k", "32k")):
    """At d = 64, as the tables of the library."""
    return [f"library_{pattern}_{label}" for label in labels for pattern in PATTERNS]


def _is_feasible(pattern, seqlen):
    if pattern == "bias":  # one number for each pair
        return seqlen <= 32768
    return seqlen <= 131072 or pattern not in _SQUARE | _LISTED


def sweep():
    """Every pattern from 2k to 1M tokens, at every head dim, plain and with shared keys."""
    return [f"library_{pattern}_{label}_d{head_dim}{gqa}" for label in ("2k", "8k", "32k", "128k", "1m") for pattern in PATTERNS
            if _is_feasible(pattern, LENGTHS[label]) for head_dim in (64, 128, 256) for gqa in ("", "_gqa")]
