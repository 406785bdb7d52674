#!/usr/bin/env python3
"""Calls over the GPUs of a host beside the same calls on one of them:

    torchrun --nproc-per-node=2 bench/group.py [--heddle=PROGRAM] [--links=GBPS,US] [--gpu=NAME] [CASE...]

A case is PATTERN,TOKENS_OF_A_GPU,LAYOUT and maybe ,backward ,graph (both ways as CUDA graphs) ,placement_free (of the group alone) ,form=ring ,form=ulysses ,form=ulysses2+ring ,form=auto
,documents=N or run-time sizes such as ,left=4095. Without any: those of
docs/distributed.md. Teams that exchange heads are mixes from 4 GPUs on: --nproc-per-node=4 and causal,32k,zigzag,form=ulysses2+ring. bf16, 64 query heads, 8 of k and v, head dim 128. Both ways are timed in turn, several calls between two events,
the slowest rank counts; efficiency is the time on one GPU, over the number of GPUs, over the time of the group: median and range of the
turns. Predicted, where the program is given: what `heddle ring plan` says of the form at the rate of one GPU (forward, without documents);
links are what `heddle ring links` measures before, GPUs h200, unless said otherwise. Rank 0 prints a row of a table for each case; the largest differences of all ranks'
results from those of one GPU are in the last column.
"""
import json
import os
import subprocess
import sys
import tempfile

import heddle
import torch
from heddle import distributed as hd
from torch import distributed

HEADS, KV_HEADS, DIM, TURNS = 64, 8, 128, 5
CASES = ("causal,8k,zigzag", "causal,32k,zigzag", "causal,64k,zigzag", "full,8k,contiguous", "sliding_window,8k,balanced,left=4095",
         "sliding_window,32k,balanced,left=4095", "document,32k,balanced,documents=12", "longnet_base,32k,contiguous", "dilated,32k,contiguous",
         "longformer,8k,contiguous", "longformer,32k,contiguous", "causal,8k,zigzag,graph", "causal,8k,zigzag,backward,graph", "causal,32k,zigzag,form=ulysses", "sliding_window,32k,contiguous,left=4095,form=ulysses",
         "causal,32k,zigzag,backward,form=ulysses", "causal,8k,zigzag,backward", "causal,32k,zigzag,backward", "causal,32k,zigzag,backward,form=ring",
         "sliding_window,32k,balanced,left=4095,backward", "longnet_base,16k,contiguous,backward", "dilated,32k,contiguous,backward")


def case_of(text):
    name, tokens, layout, *rest = text.split(",")
    words = dict(word.split("=") for word in rest if "=" in word)
    form, documents = words.pop("form", "gather"), int(words.pop("documents", 0))
    tokens = int(tokens[:-1]) * 1024 if tokens.endswith("k") else int(tokens)
    return name, tokens, layout, form, {"backward", "graph", "placement_free"} & {*rest}, documents, {word: int(value) for word, value in words.items()}


def offsets(rows, documents, device):
    cuts = torch.randint(1, rows, (documents - 1,), generator=torch.Generator().manual_seed(3)).unique()
    return torch.cat([torch.tensor([0]), cuts, torch.tensor([rows])]).to(torch.int32).to(device)


def predicted(options, text, form, ranks, alone):
    """Milliseconds of a call by a form, as the program says; "-": it is not asked."""
    name, tokens, layout, asked, ways, documents, sizes = case_of(text)
    if "heddle" not in options or ways & {"backward", "placement_free"} or documents:
        return "-"

    def plan(rate):
        command = [options["heddle"], "ring", "plan", name, f"--ranks={ranks}", f"--seqlen={tokens * ranks}", f"--heads={HEADS}", f"--kv-heads={KV_HEADS}",
                   f"--head-dim={DIM}", f"--layout={layout}", f"--links={options['links']}", f"--gpu={options.get('gpu', 'h200')}",
                   f"--rate={rate}", "--json", *(f"--set={size}={value}" for size, value in sizes.items())]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    kept = int(plan(1)["kept_pairs"])
    times = {each["form"]: each["ms"] for each in plan(kept * 4 * DIM / alone / 1e9)["of_plans"]}
    return f"{min(filter(None, times.values())) if asked == 'auto' else times[form]:.3f}"


def measured_links(heddle_program):
    """As the program measures them, before anybody else uses the GPUs."""
    with tempfile.TemporaryDirectory() as folder:
        command = [heddle_program, "ring", "links", "--json", f"--db={folder}/links.db"]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["links"]


def most_of_ranks(values):
    """The largest of each value on any rank."""
    most = torch.tensor(values, dtype=torch.float64, device="cuda")
    distributed.all_reduce(most, distributed.ReduceOp.MAX)
    return most.tolist()


def milliseconds(run, calls):
    """Of a call, on the slowest rank. Behind a call that is not timed, which hides what the first one takes on the host."""
    run()
    torch.cuda.synchronize()
    distributed.barrier()
    torch.cuda.synchronize()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    run()
    begin.record()
    for _ in range(calls):
        run()
    end.record()
    torch.cuda.synchronize()
    return most_of_ranks([begin.elapsed_time(end) / calls])[0]


def as_graph(run, group):
    """A call as a CUDA graph: what launches it, and its results."""
    for _ in range(2):
        run()
    group.wait()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        results = run()

    def replay():
        graph.replay()
        return results
    return replay


def measure(text, group, options):
    name, tokens, layout, form, ways, documents, arguments = case_of(text)
    is_backward = "backward" in ways
    rank, ranks, device = group.rank, group.ranks, torch.device("cuda", group.device)
    rows = tokens * ranks
    if documents:
        arguments["cu"] = offsets(rows, documents, device)
    plan = hd.plan(name, seqlen=rows, heads=HEADS, kv_heads=KV_HEADS, ranks=ranks, layout=layout, form=form,
                   placement_free="placement_free" in ways, **arguments)
    random = torch.Generator(device=device).manual_seed(7)
    made = [torch.randn(1, rows, heads, DIM, device=device, dtype=torch.bfloat16, generator=random) for heads in (HEADS, KV_HEADS, KV_HEADS, HEADS)]
    whole, d_whole = [each.requires_grad_(is_backward) for each in made[:3]], made[3]
    share, d_share = [plan.shard(each.detach(), rank).requires_grad_(is_backward) for each in whole], plan.shard(d_whole, rank)

    def gradients(out, of, d_out):
        return torch.autograd.grad(out, of, d_out) if is_backward else (out,)

    def one():
        return gradients(heddle.attention(*whole, name, **arguments), whole, d_whole)

    def many():
        return gradients(hd.attention(*share, plan, group), share, d_share)

    if "graph" in ways:
        one, many = as_graph(one, group), as_graph(many, group)
    differences = most_of_ranks([(plan.shard(a, rank).float() - b.float()).abs().max().item() for a, b in zip(one(), many())])
    group.wait()
    calls = max(2, min(20, (1 << 20) // rows // (4 if is_backward else 1)))
    turns = [(milliseconds(one, calls), milliseconds(many, calls)) for _ in range(TURNS)]
    ratios = sorted(alone / ranks / together for alone, together in turns)
    alone, together = (sorted(times)[TURNS // 2] for times in zip(*turns))
    of_queries = (plan.head_ranks - 1) * rows // plan.head_ranks * HEADS  # and as much of out
    travelling = (plan.travelling + of_queries) * 2 * DIM * 2 / (1 << 20)
    if rank == 0:
        print(f"| {text} | {alone:.3f} | {together:.3f} | {predicted(options, text, plan.form, ranks, alone)} | {ratios[TURNS // 2]:.1%} | "
              f"{ratios[0]:.1%} to {ratios[-1]:.1%} | {travelling:.0f} | "
              f"{', '.join(f'{each:.4f}' for each in differences)} |", flush=True)


def over_ranks(columns, measure, cases):
    """Measures those that the command line names, else `cases`: measure(case, group, options), of which rank 0 prints a row of a table."""
    options = dict(word[2:].split("=", 1) for word in sys.argv[1:] if word.startswith("--"))
    named = [word for word in sys.argv[1:] if not word.startswith("--")]
    rank = int(os.environ["LOCAL_RANK"])
    if rank == 0 and "heddle" in options:
        options["links"] = options.get("links") or measured_links(options["heddle"])
    torch.cuda.set_device(rank)
    distributed.init_process_group("nccl", device_id=torch.device("cuda", rank))
    with tempfile.TemporaryDirectory() as folder:
        heddle.configure(database=os.path.join(folder, "kernels.db"), first="best")
        group = hd.Group.of()
        if rank == 0:
            links = f", links {options['links']}" if "links" in options else ""
            print(f"{group.ranks} x {torch.cuda.get_device_name()}{links}\n| {' | '.join(columns)} |\n{'|---' * len(columns)}|", flush=True)
        for case in named or cases:
            measure(case, group, options)
            torch.cuda.empty_cache()
        group.close()
    distributed.destroy_process_group()


if __name__ == "__main__":
    over_ranks(("case", "one GPU, ms", "group, ms", "predicted, ms", "efficiency", "range", "MiB that travel", "differences"), measure, CASES)
