"""The workloads by name. No torch here."""
from dataclasses import replace

from peers import library
from peers.block_masks import RandomBlocks
from peers.masks import Causal, Columns, DilatedWindow, Full, Groups, Longformer, Window
from peers.tensor_masks import packed_documents
from peers.workload import Target, Workload


BACKWARD = "_backward"


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
    Workload("document_32k", "patterns/document.mlir", packed_documents(32768), 1, 16, 32768, 128),
    Workload("bsparse10_32k", "patterns/random_blocks.mlir", RandomBlocks(26), 1, 16, 32768, 128, sizes=(("count", 26), ("seed", 0))),
    _plain("small_dense", "full", Full(), 1, 8, 256, 64),
    _plain("small_causal", "causal", Causal(), 1, 8, 256, 64),
    Workload("small_window", "patterns/sliding_window.mlir", Window(63, 0), 1, 8, 256, 64, sizes=(("left", 63),)),
    _ranges("one_range", Columns(3840, 0), (("first", 3840),)),
    _ranges("two_ranges", Columns(1920, 1920), (("first", 1920), ("last", 1920)), Target("cost", 5, 1), companion="one_range"),
]

_ALL += [library.workload(name) for name in library.names()]
WORKLOADS = {workload.name: workload for workload in _ALL}
LIBRARY = library.names()
# What a run without names measures: the named rows with a target ratio.
DEFAULT = [workload.name for workload in _ALL if workload.target]
QUICK = ["small_causal", "gqa_causal_16k", "win1k_32k", "fkodom_32k"]
# Words that stand for several workloads.
GROUPS = {"marks": DEFAULT, "kernels": [workload.name for workload in _ALL if workload.name not in LIBRARY], "quick": QUICK,
          "library": LIBRARY, "library_8k": library.names(("8k",)), "library_32k": library.names(("32k",)), "sweep": library.sweep()}


# Targets of gradients, of the workload named NAME_backward.
_BACKWARD_TARGETS = {
    "causal_8k_d128": Target("fa3", 1.03, 1.12), "dense_8k_d128": Target("fa3", 1.03, 1.12), "causal_32k_d128": Target("fa3", 1.02, 1.08),
    "causal_8k_d64": Target("fa3", 1.05, 1.15), "causal_8k_d256": Target("cudnn", 1.15, 1.40), "gqa_causal_16k": Target("fa3", 1.03, 1.10),
    "win1k_32k": Target("fa3", 1.20, 1.35), "dilwin_32k": Target("product", 62, 72), "fkodom_32k": Target("product", 45, 58),
    "document_32k": Target("product", 65, 75), "longformer_32k": Target("product", 25, 40), "bsparse10_32k": Target("product", 50, 62),
}
GROUPS["marks_backward"] = [name + BACKWARD for name in _BACKWARD_TARGETS]


def backward_of(workload):
    """The gradients of a workload, under its name with the suffix; a workload of gradients is its own."""
    if workload.backward:
        return workload
    return replace(workload, name=workload.name + BACKWARD, target=_BACKWARD_TARGETS.get(workload.name), companion="", backward=True)


def find(name):
    """The workload of a name, also one of the library at a size that no list holds, or its gradients; None if there is none."""
    if name.endswith(BACKWARD):
        forward = find(name[:-len(BACKWARD)])
        return backward_of(forward) if forward else None
    return WORKLOADS.get(name) or library.workload(name)
