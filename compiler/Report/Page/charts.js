// The charts, by Chart.js. Colours are those of the style sheet, read anew when the scheme changes or the page is printed;
// nothing moves by itself.

const kMostBars = 120; // a canvas has a greatest height
const charts = new Map(); // of canvas ids: how to draw each again

function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim(); }
function seriesColour(index) { return colour("c" + (index % 6)); }

function drawChart(id, makeConfig) {
  charts.set(id, makeConfig);
  const old = Chart.getChart(byId(id));
  if (old) old.destroy();
  const config = makeConfig();
  if (config) new Chart(byId(id), config);
}

function redrawCharts() { for (const [id, makeConfig] of charts) drawChart(id, makeConfig); }

function followScheme() {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawCharts);
  // On paper everything is light.
  const print = (isPrinting) => {
    document.documentElement.classList.toggle("printing", isPrinting);
    redrawCharts();
  };
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
}

function axis(title, more) {
  const base = { title: { display: true, text: title, color: colour("muted") }, grid: { color: colour("line"), borderColor: colour("line") },
                 ticks: { color: colour("muted"), maxRotation: 60, autoSkip: true } };
  const result = Object.assign({}, base, more || {});
  result.ticks = Object.assign({}, base.ticks, (more && more.ticks) || {});
  return result;
}

/** Few labels on a logarithmic axis: 1, 2, 5 and their tens, more where the axis is short. */
function logAxis(title, least, most) {
  const digits = most / least < 12 ? [1, 2, 3, 4, 5, 6, 8] : [1, 2, 5], showsAll = most / least < 1.6;
  const callback = (value) => {
    const lead = value / Math.pow(10, Math.floor(Math.log10(value) + 1e-9));
    const isEnd = value === least || value === most;
    return !isEnd && (showsAll || digits.some((wanted) => Math.abs(lead - wanted) < 1e-6)) ? String(Number(value.toPrecision(3))) : "";
  };
  return axis(title, { type: "logarithmic", min: least, max: most, ticks: { callback, maxTicksLimit: 12 } });
}

function options(more) {
  return Object.assign({ animation: false, responsive: true, maintainAspectRatio: false, color: colour("ink") }, more);
}

function legend(isShown) {
  return { display: isShown !== false, position: "top", align: "start", labels: { color: colour("ink"), boxWidth: 10, boxHeight: 10, usePointStyle: true } };
}

function tooltip(callbacks) {
  return { backgroundColor: colour("ink"), titleColor: colour("card"), bodyColor: colour("card"), displayColors: false, padding: 10, callbacks };
}

/** Least and most of positive numbers, with some room. */
function logRange(values) {
  const least = Math.min(...values), most = Math.max(...values);
  const room = Math.pow(Math.max(most / least, 1.2), 0.05);
  return [least / room, most * room];
}

/** Words in lines of at most so many letters, where words allow. */
function wrapped(text, letters) {
  const lines = [];
  for (const word of text.split(" ")) {
    if (lines.length && lines[lines.length - 1].length + word.length < letters) lines[lines.length - 1] += " " + word;
    else lines.push(word);
  }
  return lines;
}

/** Bars beside each other for each GPU. rows: workloads with a percentage. */
function drawRoof(rows, devices) {
  const groups = [];
  const byGroup = new Map();
  for (const row of rows) {
    if (row.percent_of_roof === null) continue;
    if (!byGroup.has(row.group)) {
      byGroup.set(row.group, { label: [row.pattern, ...wrapped(typeText(row) + " " + row.problem, 26)], rows: [] });
      groups.push(byGroup.get(row.group));
    }
    byGroup.get(row.group).rows.push(row);
  }
  const shown = groups.slice(0, kMostBars);
  const used = devices.filter((device) => shown.some((group) => group.rows.some((row) => row.device === device)));
  byId("roof-box").style.height = 90 + shown.length * Math.max(18 + 16 * used.length, 10 + 14 * Math.max(...shown.map((group) => group.label.length))) + "px";
  byId("roof-box").hidden = shown.length === 0;
  const rowOf = (group, device) => group.rows.find((row) => row.device === device);
  drawChart("roof-chart", () => shown.length === 0 ? null : {
    type: "bar",
    data: {
      labels: shown.map((group) => group.label),
      datasets: used.map((device) => ({
        label: device, backgroundColor: seriesColour(devices.indexOf(device)), maxBarThickness: 18,
        data: shown.map((group) => (rowOf(group, device) ? rowOf(group, device).percent_of_roof : null)),
      })),
    },
    options: options({
      indexAxis: "y",
      scales: { x: axis("percent of the data sheet's roof", { min: 0, suggestedMax: 100 }), y: axis("", { title: { display: false }, ticks: { autoSkip: false, font: { size: 11 } } }) },
      plugins: {
        legend: legend(),
        tooltip: tooltip({ label: (item) => {
          const row = rowOf(shown[item.dataIndex], item.dataset.label);
          return [item.dataset.label, percent(row.percent_of_roof) + " of the " + row.roof_is + " roof", milliseconds(row.us) + " ms, " + number(row.tflops) + " TFLOP/s"];
        } }),
      },
    }),
  });
  return { groups: groups.length, shown: shown.length };
}

/** What a trial's configuration has otherwise than the winner's, a line each; all of it without a winner. */
function configLines(row, knobs, winner) {
  const lines = [];
  knobs.forEach((knob, i) => {
    const value = row.values[i];
    if (value === null || (winner && winner.values[i] === value)) return;
    lines.push((knob ? knob + "=" : "") + value + (winner && winner.values[i] !== null ? "  (winner: " + winner.values[i] + ")" : ""));
  });
  if (!winner) {
    const wide = [];
    for (let i = 0; i < lines.length; i += 3) wide.push(lines.slice(i, i + 3).join("  "));
    return wide;
  }
  return lines.length ? lines : ["the winner's configuration"];
}

/** Trials with a time, in the series that charts show. */
function trialSeries(workload) {
  const timed = workload.trials.rows.map((row, order) => ({ row, order: order + 1 })).filter((point) => point.row.us !== null);
  const winner = timed.find((point) => point.row.is_winner), untuned = timed.find((point) => point.row.is_default);
  const isSpecial = (point) => point === winner || point === untuned;
  return [
    { label: "measured", colour: "c0", style: "circle", radius: 3.5, points: timed.filter((p) => !isSpecial(p) && p.row.outcome !== "stopped") },
    { label: "given up (fastest sample)", colour: "c5", style: "crossRot", radius: 3.5, points: timed.filter((p) => !isSpecial(p) && p.row.outcome === "stopped") },
    { label: "untuned default", colour: "c1", style: "triangle", radius: 8, points: untuned && untuned !== winner ? [untuned] : [] },
    { label: winner && winner === untuned ? "winner: the untuned default" : "winner's configuration", colour: "c4", style: "rectRot", radius: 8, points: winner ? [winner] : [] },
  ].filter((series) => series.points.length > 0);
}

function scatter(workload, series, x, y, scales) {
  const { knobs, rows } = workload.trials, winner = rows.find((row) => row.is_winner);
  return {
    type: "scatter",
    data: { datasets: series.map((one) => ({
      label: one.label, pointStyle: one.style, radius: one.radius, hoverRadius: one.radius + 2, borderColor: colour(one.colour), borderWidth: 1.5,
      backgroundColor: colour(one.colour) + "b0", order: -one.radius,
      data: one.points.map((point) => ({ x: x(point), y: y(point), trial: point.row })),
    })) },
    options: options({
      scales,
      plugins: { legend: legend(), tooltip: tooltip({ label: (item) => {
        const row = item.raw.trial;
        if (!row) return item.dataset.label;
        return [milliseconds(row.us) + " ms" + (row.outcome === "stopped" ? ", given up" : "") + (row.estimate_us === null ? "" : ", estimated " + milliseconds(row.estimate_us) + " ms") + conditionsText(row)]
          .concat(configLines(row, knobs, winner));
      } }) },
      interaction: { mode: "nearest", intersect: true },
    }),
  };
}

/** What the GPU said of itself at the time. */
function conditionsText(row) {
  return (row.sm_clock_mhz ? ", at " + row.sm_clock_mhz + " MHz" : "") + (row.power_watts ? ", " + Math.round(row.power_watts) + " W" : "");
}

/** A number between -1 and 1 that is always the same for the same trial: points of one value lie side by side. */
function spread(order) { return ((order * 0.6180339887) % 1) * 2 - 1; }

/** knob -1: in the order in which trials were made. */
function drawTrials(workload, knob) {
  const series = trialSeries(workload), points = series.flatMap((one) => one.points);
  if (points.length === 0) return drawChart("trial-chart", () => null);
  const range = logRange(points.map((point) => point.row.us / 1000));
  let values = null, x = (point) => point.order;
  if (knob >= 0) {
    const text = (point) => point.row.values[knob] === null ? kDash : point.row.values[knob];
    values = [...new Set(points.map(text))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    x = (point) => values.indexOf(text(point)) + 0.3 * spread(point.order);
  }
  const ticks = values ? { stepSize: 1, autoSkip: false, callback: (place) => Number.isInteger(place) && values[place] !== undefined ? values[place] : "" } : {};
  drawChart("trial-chart", () => scatter(workload, series, x, (point) => point.row.us / 1000, {
    x: axis(values ? workload.trials.knobs[knob] : "order of the trials", values ? { type: "linear", min: -0.5, max: values.length - 0.5, ticks, afterBuildTicks: (scale) => { scale.ticks = values.map((_, place) => ({ value: place })); } } : { type: "linear", ticks }),
    y: logAxis("ms", range[0], range[1]),
  }));
}

function drawEstimates(workload) {
  const series = trialSeries(workload).map((one) => Object.assign({}, one, { points: one.points.filter((point) => point.row.estimate_us !== null) }))
    .filter((one) => one.points.length > 0);
  const points = series.flatMap((one) => one.points);
  if (points.length === 0) return drawChart("estimate-chart", () => null);
  const x = (point) => point.row.estimate_us / 1000, y = (point) => point.row.us / 1000;
  const across = logRange(points.map(x)), up = logRange(points.map(y));
  const least = Math.max(across[0], up[0]), most = Math.min(across[1], up[1]);
  drawChart("estimate-chart", () => {
    const config = scatter(workload, series, x, y, { x: logAxis("estimated ms", across[0], across[1]), y: logAxis("measured ms", up[0], up[1]) });
    if (least < most)
      config.data.datasets.push({ type: "line", label: "as estimated", borderColor: colour("muted"), borderDash: [5, 4], borderWidth: 1, pointRadius: 0, pointStyle: "line",
                                  data: [{ x: least, y: least }, { x: most, y: most }] });
    return config;
  });
}
