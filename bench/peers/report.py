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
    """A stored kernel through the C interface: the entries that are judged."""
    return e["name"].split()[0] == "heddle"


def is_own(e):
    """Also through the Python package, which launches the same kernels."""
    return is_heddle(e) or e["name"].startswith("heddle.")


def judge(workload, entries):
    """What the workload's target asks for, of the fastest right heddle entry."""
    own = [e for e in entries if e["workload"] == workload.name]
    best = fastest(own, is_heddle)
    result = {}
    if not best:
        return dict(result, verdict="no right result")
    result["heddle"] = best["name"]
    peer = fastest(own, lambda e: not is_own(e))
    if peer:
        result["best_peer"], result["times_best_peer"] = peer["name"], peer["ms"] / best["ms"]
    cudnn = fastest(own, lambda e: e["name"] == "cuDNN")
    if cudnn:
        result["times_cudnn"] = cudnn["ms"] / best["ms"]
    fa3 = fastest(own, lambda e: e["name"].startswith("FA3"))
    if fa3:
        result["times_fa3"] = fa3["ms"] / best["ms"]
    target = workload.target
    if not target:
        return result
    companion = fastest(entries, lambda e: is_heddle(e) and e["workload"] == workload.companion)
    value = {"cudnn": result.get("times_cudnn"), "fa3": result.get("times_fa3"), "product": best["percent_of_product"],
             "cost": 100 * (best["ms"] / companion["ms"] - 1) if companion else None}[target.kind]
    result.update(value=value, kind=target.kind, must=target.must, aim=target.aim)
    if value is None:
        return dict(result, verdict="not compared")
    sign = -1 if target.kind == "cost" else 1
    reached = [sign * value >= sign * bound for bound in (target.must, target.aim)]
    return dict(result, verdict="aim" if all(reached) else "must" if reached[0] else "below")


_UNITS = {"cudnn": "{:.3f} x cuDNN", "fa3": "{:.3f} x FA3", "product": "{:.1f}% of the product", "cost": "{:+.2f}% time"}


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


def _label(row, e):
    return e["name"] if e["workload"] == row["name"] else f"{e['workload']}: {e['name']}"


def value_texts(e, columns):
    """A text for each column; "-" where it has no value. Rows of older files have the times alone."""
    values = e.get("values", e)
    return [column.show(values[column.name]) if column.name in values else "-" for column in columns]


def _line(cells):
    return "| " + " | ".join(cells) + " |"


def entries_table(rows, columns):
    """Every provider of every workload, the fastest first; without columns that nobody has a value for."""
    entries = [(row, e) for row in rows for e in sorted(row["entries"], key=lambda e: e["ms"])]
    shown = [column for column in columns if any(column.name in e.get("values", e) for _, e in entries)]
    lines = [_line(["workload", "provider", *(column.title for column in shown), "right"]), "|---" * (len(shown) + 3) + "|"]
    return lines + [_line([row["name"], _label(row, e), *value_texts(e, shown), "yes" if e["ok"] else "**no**"]) for row, e in entries]


def _gaps(row, columns):
    """(what is missing, why) of a workload: columns of one provider and reason together, and providers that failed."""
    for e in row["entries"]:
        reasons = {}
        for column in columns:
            if column.name in e.get("no_value", {}):
                reasons.setdefault(e["no_value"][column.name], []).append(column.title)
        for reason, titles in reasons.items():
            yield f"{e['name']}: no {', '.join(titles)}", reason
    for name, reason in row["failed"].items():
        yield name, reason


def missing_values(rows, columns, most_named=3):
    """A line for each reason, with the workloads that it holds for."""
    workloads = {}
    for row in rows:
        for what, reason in _gaps(row, columns):
            workloads.setdefault(f"{what}: {reason[:120]}", []).append(row["name"])
    return [f"- {text} ({', '.join(names) if len(names) <= most_named else f'{len(names)} workloads'})" for text, names in workloads.items()]


def markdown(results, columns):
    rows = results["workloads"]
    lines = [f"# heddle and its peers, {results['date']}", "", f"    {results['command']}", ""]
    lines += [", ".join(f"{name}: {value}" for name, value in results["machine"].items()), "", results["method"], "",
              "| workload | b x h x n x d | ms | TFLOP/s | % of the product | over the best peer | value | must | aim | reached |",
              "|---|---|---|---|---|---|---|---|---|---|"]
    lines += [summary_line(row) for row in rows] + ["", "## Every provider", ""] + entries_table(rows, columns)
    missing = missing_values(rows, columns) + [f"- {name} was not measured: {reason}" for name, reason in results.get("not_measured", {}).items()]
    return "\n".join(lines + ([""] + missing if missing else [])) + "\n"


def compact(results, columns):
    """One line for each provider of each workload, the fastest first, in columns of equal width."""
    shown = [column for column in columns if column.in_table]
    table = [["workload", "provider", *(column.title for column in shown)]]
    for row in results["workloads"]:
        for e in sorted(row["entries"], key=lambda e: e["ms"]):
            table.append([row["name"], _label(row, e) + ("" if e["ok"] else " WRONG"), *value_texts(e, shown)])
        table += [[row["name"], f"{name}: {reason[:120]}"] for name, reason in row["failed"].items()]
    whole = [cells for cells in table if len(cells) == len(table[0])]
    widths = [max(len(cells[i]) for cells in whole) for i in range(len(table[0]))]
    lines = ["  ".join(cell.ljust(width) if i < 2 else cell.rjust(width) for i, (cell, width) in enumerate(zip(cells, widths))).rstrip()
             for cells in table]
    return "\n".join(lines + [f"{name} was not measured: {reason}" for name, reason in results["not_measured"].items()]) + "\n"
