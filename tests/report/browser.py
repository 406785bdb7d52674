"""browser.py PAGE.html DATA.json [SCREENSHOTS]: opens the page of `heddle report` from its file with the network off and
checks what a person would see. DATA is what --json prints. With a folder, leaves pictures there. Exits with 1 if a check fails.
browser.py --find says whether there is a browser."""
import json
import os
import sys

import devtools

HOSTILE = "</script><img src=x onerror=\"document.title='owned'\">"
TWO_FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))"
failures = []


def check(holds, what, detail=""):
    print(("ok    " if holds else "FAILED ") + what + (f": {detail}" if detail != "" and not holds else ""))
    if not holds:
        failures.append(what)


def cells(page, table, column):
    """What a column shows, row by row."""
    return page.evaluate(f"[...document.querySelectorAll('#{table} tbody tr')].map((row) => row.cells[{column}].innerText)")


def column(page, table, title):
    return page.evaluate(f"[...document.querySelectorAll('#{table} th')].findIndex((head) => head.innerText.startsWith('{title}'))")


def press(page, table, title):
    page.evaluate(f"document.querySelectorAll('#{table} th button')[{column(page, table, title)}].click()")


def put(page, element, value, event):
    page.evaluate(f"(() => {{ const it = document.getElementById('{element}'); it.value = {json.dumps(value)}; it.dispatchEvent(new Event('{event}')); }})()")


def points(page, chart):
    """How many points or bars a chart has, but for the line that is drawn through them."""
    return page.evaluate(f"(() => {{ const chart = Chart.getChart('{chart}'); return chart ? chart.data.datasets.filter((set) => set.type !== 'line')"
                         ".reduce((sum, set) => sum + set.data.filter((point) => point !== null).length, 0) : 0; })()")


def colours(page, chart):
    """How many colours its canvas has."""
    return page.evaluate(f"(() => {{ const it = document.getElementById('{chart}'); const copy = document.createElement('canvas'); copy.width = it.width; copy.height = it.height;"
                         " const context = copy.getContext('2d', {willReadFrequently: true}); context.drawImage(it, 0, 0); const data = context.getImageData(0, 0, it.width, it.height).data;"
                         " const seen = new Set(); for (let i = 0; i < data.length; i += 4) if (data[i + 3]) seen.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);"
                         " return seen.size; })()")


def numbers(texts):
    return [float(text) for text in texts if text.replace(".", "", 1).isdigit()]


def check_quiet(page, url):
    check(page.errors == [], "no error and no warning in the console", page.errors)
    elsewhere = [address for address in page.requests if address != url and not address.startswith("data:")]
    check(elsewhere == [], "nothing is asked for", elsewhere)


def check_hostile(page):
    check(page.evaluate("document.title") == "heddle report", "no string of the database ran")
    check(page.evaluate("document.querySelectorAll('main img, main script, main b b').length") == 0, "no string of the database is markup")
    check(HOSTILE in cells(page, "winner-table", 0), "the hostile name stands there as text")


def check_charts(page, data):
    shown = int(page.evaluate("document.getElementById('workload-choice').value"))
    timed = [row for row in data["workloads"][shown]["trials"]["rows"] if row["us"] is not None]
    check(len(timed) > 100 and points(page, "trial-chart") == len(timed), "a point for every trial with a time", points(page, "trial-chart"))
    check(colours(page, "trial-chart") > 3, "the chart is drawn", colours(page, "trial-chart"))
    put(page, "trial-axis", "estimate", "change")
    check(points(page, "trial-chart") == sum(row["estimate_us"] is not None for row in timed), "a point for every estimate")
    put(page, "trial-axis", "order", "change")
    check("Rank correlation of estimates 0." in page.evaluate("document.getElementById('trial-note').innerText"), "the rank correlation is stated")


def check_sorting(page, data):
    ms = column(page, "winner-table", "ms")
    press(page, "winner-table", "ms")
    up = numbers(cells(page, "winner-table", ms))
    check(len(up) > 10 and up == sorted(up), "pressing a heading sorts", up)
    press(page, "winner-table", "ms")
    check(numbers(cells(page, "winner-table", ms)) == up[::-1], "pressing it again sorts the other way")
    press(page, "winner-table", "TFLOP/s")
    rates = cells(page, "winner-table", column(page, "winner-table", "TFLOP/s"))
    known = numbers(rates)
    check(known == sorted(known, reverse=True) and len(known) < len(rates) and rates[len(known):] == ["–"] * (len(rates) - len(known)),
          "the greatest rate first, what is not known last", rates)


def check_filter(page, data):
    everything = len(cells(page, "winner-table", 0))
    put(page, "winner-filter", "SLIDING d=128", "input")
    check(set(cells(page, "winner-table", 0)) == {"sliding_window"}, "words filter the rows")
    check(page.evaluate("document.getElementById('winner-count').innerText") == f"2 of {everything} winners", "the count says how many are left")
    put(page, "winner-gpu", "NVIDIA H200", "change")
    check(cells(page, "winner-table", column(page, "winner-table", "GPU")) == ["NVIDIA H200"], "so does a GPU")
    page.evaluate("document.querySelector('#winner-table tbody tr').click()")
    shown = data["workloads"][int(page.evaluate("document.getElementById('workload-choice').value"))]
    check(shown["pattern"] == "sliding_window" and shown["device"] == "NVIDIA H200", "pressing a row shows its trials")
    check(points(page, "trial-chart") == sum(row["us"] is not None for row in shown["trials"]["rows"]), "and only those")
    put(page, "trial-axis", "block_m", "change")
    ticks = page.evaluate("Chart.getChart('trial-chart').scales.x.ticks.map((tick) => tick.label)")
    values = {row["values"][shown["trials"]["knobs"].index("block_m")] for row in shown["trials"]["rows"] if row["us"] is not None}
    check(set(ticks) == values, "trials across the values of a knob", ticks)
    hover = page.evaluate("(() => { const chart = Chart.getChart('trial-chart'); return chart.options.plugins.tooltip.callbacks.label({raw: chart.data.datasets[0].data[0]}).join(' '); })()")
    check(" ms" in hover and "=" in hover, "pointing at a trial says its configuration", hover)
    put(page, "winner-filter", "", "input")
    put(page, "winner-gpu", "", "change")
    check(len(cells(page, "winner-table", 0)) == everything, "without a filter everything is back")


def check_sections(page, data):
    check(len(cells(page, "gpu-table", 0)) == 6, "a row for each workload of both GPUs")
    kinds = cells(page, "against-table", column(page, "against-table", "Here is"))
    here = {row["key"]: row for row in data["workloads"] if row["has_winner"]}
    there = {row["key"]: row for row in data["against"]["winners"]}
    differ = [key for key in here.keys() & there.keys() if here[key]["us"] != there[key]["us"]]
    check(len(kinds) == len(differ) + len(here.keys() ^ there.keys()) and kinds.count("only here") == len(here.keys() - there.keys()), "a row for each difference of the databases", kinds)
    check(cells(page, "against-table", column(page, "against-table", "Configuration"))[kinds.index("faster")] == "the same", "configurations are compared")
    put(page, "against-filter", "faster", "input")
    check(len(cells(page, "against-table", 0)) == 1, "differences are filtered")
    put(page, "against-filter", "", "input")
    place = next(i for i, row in enumerate(data["workloads"]) if row["pattern"] == HOSTILE)
    put(page, "workload-choice", str(place), "change")
    check(HOSTILE in cells(page, "failure-table", 2), "failures say their reason, as text")
    check("--plan" in page.evaluate("document.getElementById('workload-facts').innerText"), "what is not known is said, and why")


def check_widths(page):
    for width in (360, 390, 768, 1280, 1920):
        page.resize(width)
        page.evaluate(TWO_FRAMES)
        wide = page.evaluate("document.scrollingElement.scrollWidth")
        check(wide <= width, f"nothing is wider than the window at {width}", wide)
    page.resize(1280)


def check_names(page):
    """Tables scroll; they do not break names of patterns and GPUs inside a word."""
    lines = ("[...document.querySelectorAll('#winner-table td span, #gpu-table td span, #against-table td span')].filter((span) => span.offsetParent && "
             "!/[\\s-]/.test(span.innerText) && span.getClientRects().length > 1).map((span) => span.innerText)")
    for width in (768, 1280):
        page.resize(width)
        page.evaluate(TWO_FRAMES)
        broken = page.evaluate(lines)
        check(broken == [], f"no word is broken at {width}", broken)
    page.resize(1280)


def check_reasons(page, data):
    for place, workload in enumerate(data["workloads"]):
        put(page, "workload-choice", str(place), "change")
        failed = [row for row in workload["trials"]["rows"] if row["us"] is None]
        shown = [" ".join(reason.split()) for reason in cells(page, "failure-table", 2)] if failed else []
        whole = {" ".join((row["message"] or "–").split()) for row in failed}
        check(set(shown) <= whole and bool(shown) == bool(failed), f"reasons of workload {place} stand there whole", shown)
        counts = [int(count) for count in cells(page, "failure-table", 1)] if failed else []
        check(sum(counts) == len(failed) and len(set(shown)) == len(shown), f"every failure of workload {place} is counted once", counts)
        facts = page.evaluate("document.getElementById('workload-facts').innerText")
        check(workload["rate_note"] is None or " ".join(workload["rate_note"].split()) in " ".join(facts.split()), f"why workload {place} has no roof is said", facts)


def check_schemes(page):
    ink = "Chart.getChart('trial-chart').options.color"
    page.prefer("light")
    light = page.evaluate(ink)
    page.prefer("dark")
    page.evaluate(TWO_FRAMES)
    dark = page.evaluate(ink)
    check(light != dark and dark == page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--ink').trim()"), "charts follow the dark scheme", (light, dark))
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    check(page.evaluate(ink) == light, "printed pages are light")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    check(page.evaluate(ink) == dark, "and dark again afterwards")
    page.prefer("light")
    check(len(page.call("Page.printToPDF")["data"]) > 100000, "the page prints")


def take_pictures(page, folder):
    os.makedirs(folder, exist_ok=True)
    for name, width, scheme in (("desktop", 1360, "light"), ("dark", 1360, "dark"), ("phone", 390, "light")):
        page.resize(width)
        page.prefer(scheme)
        page.evaluate("new Promise((done) => setTimeout(done, 300))")
        for part in ("header", "#winners", "#gpus", "#against", "#workload"):
            page.screenshot(os.path.join(folder, f"{name}-{part.strip('#')}.png"), part)


def main():
    browser = devtools.find()
    if not browser:
        print("skipped: no " + ", ".join(devtools.NAMES) + " here; ./dev test --all installs chromium")
    if sys.argv[1] == "--find":
        return 0 if browser else 1
    path, data = os.path.abspath(sys.argv[1]), json.load(open(sys.argv[2]))
    page = devtools.Browser(browser)
    try:
        page.resize(1280)
        page.open("file://" + path)
        check_hostile(page)
        check_charts(page, data)
        check_sorting(page, data)
        check_filter(page, data)
        check_sections(page, data)
        check_widths(page)
        check_names(page)
        check_reasons(page, data)
        check_schemes(page)
        check_quiet(page, "file://" + path)
        if len(sys.argv) > 3:
            put(page, "workload-choice", "2", "change")
            take_pictures(page, sys.argv[3])
        page.call("Emulation.setScriptExecutionDisabled", value=True)
        page.open("file://" + path)
        root = page.call("DOM.getDocument")["root"]["nodeId"]
        check(page.call("DOM.querySelector", nodeId=root, selector="noscript p")["nodeId"] != 0, "without scripts, the page says so")
    finally:
        page.close()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
