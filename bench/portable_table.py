#!/usr/bin/env python3
"""The files of bench/portable.sh: RESULTS.json with a line for each row, and RESULTS.md, the table made of it.

    portable_table.py RESULTS.json COMMAND DRIVER PART.json...
"""
import json
import os
import sys

from peers import files

METHOD = ("bf16; medians of 20 launches, the L2 flushed before each, in turn with the bf16 matrix product 8192^3 on random data, of whose rate the percentages are. "
          "TFLOP/s count kept pairs, *visited* every pair of the tiles that the kernel visits. Every kernel was tuned; 32 rows "
          "of its output are compared with attention in fp64 from the definition: *allowed* is "
          "2 max|P - R| + 2 max|(R + 0.3 - 0.3) - R| (docs/verification.md).")
TITLES = ("pattern", "batch x heads x length x d", "ms", "TFLOP/s", "% of product", "% visited", "error", "allowed", "right", "kernel")


def kernel_text(config):
    field = dict(part.split("=") for part in config.split() if "=" in part)
    stages = f"{field['stages']} stage" + ("" if field["stages"] == "1" else "s")
    return f"{field['block_m']}x{field['block_n']}, chunk {field['chunk_n']}, {stages}, {field['warps']} warps, raster {field['raster_heads']}"


def row_text(row):
    cells = [row["pattern"], f"{row['batch']} x {row['heads']} x {row['seqlen_q']} x {row['head_dim']}", f"{row['median_us'] / 1000:.3f}",
             f"{row['tflops']:.0f}", f"{row['percent_of_roof']:.1f}", f"{row['visited_percent_of_roof']:.1f}",
             f"{row['max_error']:.1e}", f"{row['allowed_error']:.1e}", "yes" if row["ok"] else "**no**", kernel_text(row["config"])]
    return "| " + " | ".join(cells) + " |"


def markdown(results):
    products = [2 * 8192 ** 3 / row["roof_us"] / 1e6 for row in results["rows"]]
    lines = ["# The portable kernels", "", f"    {results['command']}", "", f"{results['device']}, driver {results['driver']}; the product ran at "
             f"{min(products):.0f} to {max(products):.0f} TFLOP/s.", "", METHOD, "", "| " + " | ".join(TITLES) + " |", "|---" * len(TITLES) + "|"]
    return "\n".join(lines + [row_text(row) for row in results["rows"]]) + "\n"


def merged(command, driver, paths):
    """What the parts hold that can be read: a row that could not be measured has left none."""
    parts = []
    for path in paths:
        try:
            with open(path) as file:
                parts.append(json.load(file))
        except ValueError:
            continue
    head = parts[0] if parts else {"device": "no GPU", "roof": ""}
    return {"command": command, "driver": driver, "device": head["device"], "roof": head["roof"], "rows": [row for part in parts for row in part["rows"]]}


def write(results, path):
    with open(path, "w") as file:
        file.write(files.text(results))
    with open(os.path.splitext(path)[0] + ".md", "w") as file:
        file.write(markdown(results))


if __name__ == "__main__":
    write(merged(*sys.argv[2:4], sys.argv[4:]), sys.argv[1])
