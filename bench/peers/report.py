"""Results as JSON data and as a Markdown table. No torch here."""
import statistics


def entry(name, workload, milliseconds, product_ms, check, extra=None):
    median = statistics.median(milliseconds)
    tflops = workload.flops / median / 1e9
    return dict(name=name, workload=workload.name, ms=median, best_ms=min(milliseconds), worst_ms=max(milliseconds), tflops=tflops,
                percent_of_product=100 * tflops / product_tflops(product_ms), **check, **(extra or {}))


def product_tflops(milliseconds):
    return 2 * 8192 ** 3 / milliseconds / 1e9


def fastest(entries, wanted):
    """The fastest right entry that `wanted` accepts, or None."""
    return min((e for e in entries if e["ok"] and wanted(e)), key=lambda e: e["ms"], default=None)


def is_heddle(e):
    return e["name"].split()[0] == "heddle"


def judge(workload, entries):
    """What the workload's target asks for, of the fastest right heddle entry."""
    own = [e for e in entries if e["workload"] == workload.name]
    best = fastest(own, is_heddle)
    result = {}
    if not best:
        return dict(result, verdict="no right result")
    result["heddle"] = best["name"]
    peer = fastest(own, lambda e: not is_heddle(e))
    if peer:
        result["best_peer"], result["times_best_peer"] = peer["name"], peer["ms"] / best["ms"]
    cudnn = fastest(own, lambda e: e["name"] == "cuDNN")
    if cudnn:
        result["times_cudnn"] = cudnn["ms"] / best["ms"]
    target = workload.target
    if not target:
        return result
    companion = fastest(entries, lambda e: is_heddle(e) and e["workload"] == workload.companion)
    value = {"cudnn": result.get("times_cudnn"), "product": best["percent_of_product"],
             "cost": 100 * (best["ms"] / companion["ms"] - 1) if companion else None}[target.kind]
    result.update(value=value, kind=target.kind, must=target.must, aim=target.aim)
    if value is None:
        return dict(result, verdict="not compared")
    sign = -1 if target.kind == "cost" else 1
    reached = [sign * value >= sign * bound for bound in (target.must, target.aim)]
    return dict(result, verdict="aim" if all(reached) else "must" if reached[0] else "below")


_UNITS = {"cudnn": "{:.3f} x cuDNN", "product": "{:.1f}% of the product", "cost": "{:+.2f}% time"}


def _value(kind, value):
    return "-" if value is None else _UNITS[kind].format(value)


def summary_line(row):
    """One row of the first table."""
    judged = row["judged"]
    ran = next((e for e in row["entries"] if e["name"] == judged.get("heddle")), None)
    cells = [row["name"], row["shape"]]
    cells += [f"{ran['ms']:.3f}", f"{ran['tflops']:.0f}", f"{ran['percent_of_product']:.1f}%"] if ran else ["-"] * 3
    times = judged.get("times_best_peer")
    cells.append(f"{times:.2f} x {judged['best_peer']}" if times else "-")
    kind = judged.get("kind")
    cells += [_value(kind, judged.get(key)) for key in ("value", "must", "aim")] if kind else ["-"] * 3
    return "| " + " | ".join(cells + [judged.get("verdict", "-")]) + " |"


def _clock_text(clock):
    return f"{clock['sm_mhz']:.0f} MHz, {clock['power_w']:.0f} W, {clock['temperature_c']:.0f} C" if clock else "clock not read"


def details(row):
    lines = [f"### {row['name']}", "",
             f"{row['shape']}, {row['kept_pairs']} kept pairs per batch element; product {row['product_tflops']:.0f} TFLOP/s; {_clock_text(row['clock'])}", "",
             "| entry | ms | fastest .. slowest | TFLOP/s | % of the product | error | lse error | right | note |", "|---|---|---|---|---|---|---|---|---|"]
    for e in sorted(row["entries"], key=lambda e: e["ms"]):
        label = e["name"] if e["workload"] == row["name"] else f"{e['workload']}: {e['name']}"
        lse = f"{e['lse_error']:.1e}" if "lse_error" in e else "-"
        lines.append(f"| {label} | {e['ms']:.4f} | {e['best_ms']:.4f} .. {e['worst_ms']:.4f} | {e['tflops']:.0f} | {e['percent_of_product']:.1f} | "
                     f"{e['error']:.1e} | {lse} | {'yes' if e['ok'] else '**no**'} | {e.get('note', '')} |")
    lines.append("")
    for e in row["entries"]:
        if "config" in e:
            lines.append(f"- {e['workload']}: {e['name']}: {e.get('arch')}, {e.get('match')}, {e.get('registers')} registers, {e.get('spill_bytes')} bytes "
                         f"spilled, {' '.join(e['config'].split())}")
    lines += [f"- {name}: {reason}" for name, reason in row["failed"].items()]
    return lines + [""]


def markdown(results):
    lines = [f"# heddle and its peers, {results['date']}", "", f"    {results['command']}", ""]
    lines += [f"- {name}: {value}" for name, value in results["machine"].items()]
    lines += ["", results["method"], "",
              "| workload | b x h x n x d | ms | TFLOP/s | % of the product | over the best peer | value | must | aim | reached |",
              "|---|---|---|---|---|---|---|---|---|---|"]
    lines += [summary_line(row) for row in results["workloads"]] + [""]
    for row in results["workloads"]:
        lines += details(row)
    return "\n".join(lines)
