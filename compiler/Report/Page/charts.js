// The chart of trials, by Chart.js. Colours are those of the style sheet, read anew when the scheme changes or the page is
// printed; nothing moves by itself.

let redraw = () => {};

function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim(); }

function followScheme() {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw());
  // On paper everything is light.
  const print = (isPrinting) => {
    document.documentElement.classList.toggle("printing", isPrinting);
    redraw();
  };
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
}

function axis(title, more) {
  const ticks = Object.assign({ color: colour("muted"), maxRotation: 60, autoSkip: true }, more.ticks);
  return Object.assign({ title: { display: true, text: title, color: colour("muted") }, grid: { color: colour("line"), borderColor: colour("line") } }, more, { ticks });
}

/** Few labels on a logarithmic axis: 1, 2, 5 and their tens, more where the axis is short. */
function logAxis(title, values) {
  const span = Math.max(Math.max(...values) / Math.min(...values), 1.2), room = Math.pow(span, 0.05);
  const min = Math.min(...values) / room, max = Math.max(...values) * room;
  const digits = span < 12 ? [1, 2, 3, 4, 5, 6, 8] : [1, 2, 5], showsAll = span < 1.5;
  const callback = (value) => {
    const lead = value / Math.pow(10, Math.floor(Math.log10(value) + 1e-9));
    const isEnd = value === min || value === max;
    return !isEnd && (showsAll || digits.some((wanted) => Math.abs(lead - wanted) < 1e-6)) ? String(Number(value.toPrecision(3))) : "";
  };
  return axis(title, { type: "logarithmic", min, max, ticks: { callback, maxTicksLimit: 12 } });
}

/** What a trial's configuration has otherwise than the winner's, a line each; all of it without a winner. */
function configLines(row, knobs, winner) {
  const lines = [];
  knobs.forEach((knob, i) => {
    if (row.values[i] !== null && !(winner && winner.values[i] === row.values[i]))
      lines.push(knob + "=" + row.values[i] + (winner && winner.values[i] !== null ? "  (winner: " + winner.values[i] + ")" : ""));
  });
  return winner && lines.length === 0 ? ["the winner's configuration"] : lines;
}

function trialLines(row, knobs, winner) {
  const facts = [milliseconds(row.us) + " ms", row.outcome === "stopped" ? "given up" : null, row.estimate_us === null ? null : "estimated " + milliseconds(row.estimate_us) + " ms",
                 row.sm_clock_mhz ? "at " + row.sm_clock_mhz + " MHz" : null, row.power_watts ? Math.round(row.power_watts) + " W" : null];
  return [facts.filter(Boolean).join(", ")].concat(configLines(row, knobs, winner));
}

/** Trials with a time, in the series that the chart shows. */
function trialSeries(points) {
  const winner = points.find((point) => point.row.is_winner), untuned = points.find((point) => point.row.is_default && point !== winner);
  const others = points.filter((point) => point !== winner && point !== untuned);
  return [
    { label: "measured", colour: "c0", style: "circle", radius: 3.5, points: others.filter((p) => p.row.outcome !== "stopped") },
    { label: "given up (fastest sample)", colour: "c5", style: "crossRot", radius: 3.5, points: others.filter((p) => p.row.outcome === "stopped") },
    { label: "untuned default", colour: "c1", style: "triangle", radius: 8, points: [untuned] },
    { label: winner && winner.row.is_default ? "winner: the untuned default" : "winner's configuration", colour: "c4", style: "rectRot", radius: 8, points: [winner] },
  ].map((series) => Object.assign(series, { points: series.points.filter(Boolean) })).filter((series) => series.points.length > 0);
}

/** A number between -1 and 1 that is always the same for the same trial: points of one value lie side by side. */
function spread(order) { return ((order * 0.6180339887) % 1) * 2 - 1; }

/** How far right points are, and the axis below them: in the order of the trials ("order"), by the estimate, or by a knob. */
function across(workload, choice, points) {
  if (choice === "order") return [(point) => point.order, () => axis("order of the trials", { type: "linear" })];
  if (choice === "estimate") return [(point) => point.row.estimate_us / 1000, () => logAxis("estimated ms", points.map((point) => point.row.estimate_us / 1000))];
  const knob = workload.trials.knobs.indexOf(choice), text = (point) => point.row.values[knob] ?? kDash;
  const values = [...new Set(points.map(text))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const ticks = { autoSkip: false, callback: (place) => values[place] ?? "" };
  return [(point) => values.indexOf(text(point)) + 0.3 * spread(point.order), () => axis(choice, {
    type: "linear", min: -0.5, max: values.length - 0.5, ticks, afterBuildTicks: (scale) => { scale.ticks = values.map((_, place) => ({ value: place })); } })];
}

function drawTrials(workload, choice) {
  const { knobs, rows } = workload.trials, winner = rows.find((row) => row.is_winner);
  const points = rows.map((row, place) => ({ row, order: place + 1 })).filter(({ row }) => row.us !== null && (choice !== "estimate" || row.estimate_us !== null));
  const [x, xAxis] = across(workload, choice, points), series = trialSeries(points);
  redraw = () => {
    Chart.getChart("trial-chart")?.destroy();
    if (points.length === 0) return;
    const tooltip = { backgroundColor: colour("ink"), titleColor: colour("card"), bodyColor: colour("card"), displayColors: false, padding: 10,
                      callbacks: { label: (item) => trialLines(item.raw.trial, knobs, winner) } };
    const legend = { position: "top", align: "start", labels: { color: colour("ink"), boxWidth: 10, boxHeight: 10, usePointStyle: true } };
    new Chart("trial-chart", {
      type: "scatter",
      data: { datasets: series.map((one) => ({
        label: one.label, pointStyle: one.style, radius: one.radius, hoverRadius: one.radius + 2, borderColor: colour(one.colour), borderWidth: 1.5,
        backgroundColor: colour(one.colour) + "b0", order: -one.radius, data: one.points.map((point) => ({ x: x(point), y: point.row.us / 1000, trial: point.row })),
      })) },
      options: {
        animation: false, responsive: true, maintainAspectRatio: false, color: colour("ink"), plugins: { legend, tooltip },
        scales: { x: xAxis(), y: logAxis("ms", points.map((point) => point.row.us / 1000)) }, interaction: { mode: "nearest", intersect: true },
      },
    });
  };
  redraw();
}
