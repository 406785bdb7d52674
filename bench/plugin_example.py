"""A plug-in for bench/peers.py: a workload, a provider and a column more. Take it as a start for your own:

    bench/peers.sh --plugin=bench/plugin_example.py --columns='ms,tflops,gigabytes_per_s' OUT.json plugin_example

The group `plugin_example`, after the file, stands for its workloads. torch is imported inside of what needs it: --list does not.
"""
from peers.columns import Column
from peers.launch import Launch, Provider
from peers.masks import Window
from peers.workload import Workload

# The mask says in Python what the pattern file says; heddle is checked against it. Values of the pattern's sizes by name.
WORKLOADS = [Workload("example_window", "patterns/sliding_window.mlir", Window(511, 0), batch=1, heads=4, seqlen=4096, head_dim=64,
                      sizes=(("left", 511),))]


def math_attention(workload, q, k, v):
    """torch's own composition of products and softmax, where the pattern is causal: q, k, v and the result are [b, n, h, d]."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    if "causal" not in workload.name or workload.kv != workload.heads:
        return None
    q, k, v = (tensor.transpose(1, 2) for tensor in (q, k, v))
    return Launch(lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2),
                  context=lambda: sdpa_kernel(SDPBackend.MATH))


PROVIDERS = [Provider("SDPA, math", math_attention)]


def gigabytes_per_s(cell):
    """q, k, v and the result once each, over the time."""
    workload = cell.workload
    elements = workload.batch * workload.head_dim * 2 * (workload.heads * workload.rows + workload.kv * workload.seqlen)
    return 2 * elements / (1e-3 * cell.entry["ms"]) / 1e9


COLUMNS = [Column("gigabytes_per_s", "GB/s", gigabytes_per_s, "GB/s of inputs and result", "{:.0f}".format)]
