"""A picture of the results: rates on kept pairs of every provider, one row of bars for each workload. matplotlib is imported here only."""


def why_not():
    """Why no picture can be drawn here; empty where one can."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        return f"{error}: python3 -m pip install matplotlib, then peers.py --merge draws it from the results"
    return ""


def bars(results):
    """(workload, [(provider, TFLOP/s, percent of the product)]), right results alone, the fastest first."""
    for row in results["workloads"]:
        own = [entry for entry in row["entries"] if entry["workload"] == row["name"] and entry["ok"]]
        yield row["name"], [(entry["name"], entry["tflops"], entry["percent_of_product"]) for entry in sorted(own, key=lambda entry: entry["ms"])]


def draw(results, path):
    """Writes a file of the kind that its name says: .svg, .png, .pdf."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    groups = [(name, entries) for name, entries in bars(results) if entries]
    providers = list(dict.fromkeys(provider for _, entries in groups for provider, _, _ in entries))
    colour = {provider: pyplot.get_cmap("tab20")(number % 20) for number, provider in enumerate(sorted(providers))}
    count = sum(len(entries) + 1 for _, entries in groups)
    figure, axes = pyplot.subplots(figsize=(9, max(2.5, 0.19 * count)), layout="constrained")
    place, ticks = 0, []
    for name, entries in groups:
        ticks.append((place + (len(entries) - 1) / 2, name))
        for provider, tflops, percent in entries:
            axes.barh(place, tflops, color=colour[provider])
            axes.text(tflops, place, f" {provider}, {percent:.0f}%", va="center", fontsize=6)
            place += 1
        place += 1
    axes.set_yticks([at for at, _ in ticks], [name for _, name in ticks], fontsize=7)
    axes.invert_yaxis()
    axes.margins(x=0.25, y=0.01)
    axes.set_xlabel("TFLOP/s on kept pairs; % of the bf16 product 8192^3 of the same rounds")
    axes.set_title(f"{results['machine'].get('GPU', '')}, {results['date']}", fontsize=9)
    figure.savefig(path)
    pyplot.close(figure)
