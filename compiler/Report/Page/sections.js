// What each section shows. `data` is what `heddle report --json` prints.

function configCell(config) {
  if (!config) return element("span", {}, kDash);
  const fields = config.split(" "), mono = { class: "mono" };
  if (fields.length <= 4) return element("span", mono, config);
  return element("details", {}, element("summary", mono, fields.find((field) => !field.startsWith("skeleton=")) + " …"), element("p", mono, config));
}

function drawTiles(data) {
  const winners = data.workloads.filter((row) => row.has_winner);
  const trials = data.workloads.reduce((sum, row) => sum + row.trials.rows.length, 0);
  const tiles = [
    plural(winners.length, "winner"), plural(data.devices.length, "GPU"), plural(trials, "trial"),
    percent(median(winners.map((row) => row.percent_of_roof))) + " of the roof, median", times(median(winners.map((row) => row.gain))) + " over the untuned default, median",
  ].map((text) => [text.slice(0, text.indexOf(" ")), text.slice(text.indexOf(" ") + 1)]);
  byId("tiles").replaceChildren(...tiles.map(([value, label]) => element("div", { class: "tile" }, element("b", {}, value), element("span", {}, label))));
}

function versions(row) {
  return [generatorText(row.generator), row.nvrtc ? "NVRTC " + row.nvrtc : null, row.driver ? "driver " + driverText(row.driver) : null].filter(Boolean).join(", ");
}

function timeText(row) { return row.tuned ? milliseconds(row.us) : "untuned"; }
function gainText(row) { return row.gain === null ? kDash : (row.default_was_given_up ? "≥ " : "") + times(row.gain); }

/** What says which workload a row of any table is of; `of` leads from the row to the workload. */
function workloadColumns(of, devices) {
  const columns = [
    { title: "Pattern", value: (row) => of(row).pattern, key: true, hint: (row) => "digest " + of(row).digest },
    { title: "Problem", class: "wide", value: (row) => of(row).problem },
    { title: "Type", value: (row) => typeText(of(row)), class: "plain" },
  ];
  return devices ? [...columns, { title: "GPU", class: "wide", value: (row) => of(row).device }] : columns;
}

function winnerColumns() {
  return [
    ...workloadColumns((row) => row, true),
    { title: "ms", kind: "number", value: (row) => row.us, text: timeText },
    { title: "TFLOP/s", kind: "number", startsDescending: true, value: (row) => row.tflops, text: (row) => number(row.tflops), hint: (row) => row.rate_note },
    { title: "Of roof", kind: "number", startsDescending: true, value: (row) => row.percent_of_roof, text: (row) => percent(row.percent_of_roof), hint: (row) => row.rate_note },
    { title: "Gain", help: "over the untuned default", kind: "number", startsDescending: true, value: (row) => row.gain, text: gainText, hint: (row) => row.default_note },
    { title: "Match", value: (row) => row.match, node: (row) => element("span", { class: "tag" }, row.match) },
    { title: "Configuration", class: "config", value: (row) => row.config, node: (row) => configCell(row.config) },
    { title: "Written by", class: "wide", value: versions },
  ];
}

/** A table with words that filter it and a count of what is left; `accepts` is a further condition. */
function filteredTable(name, columns, rows, word, options, accepts) {
  const count = (shown, all) => { byId(name + "-count").textContent = (shown.length === all ? "" : shown.length + " of ") + plural(all, word); };
  const table = new SortedTable(byId(name + "-table"), columns, rows, Object.assign({ onDraw: count }, options));
  const filter = () => table.filter(byId(name + "-filter").value, accepts);
  byId(name + "-filter").addEventListener("input", filter);
  return filter;
}

function drawWinners(data, onChoose) {
  const rows = data.workloads.filter((row) => row.has_winner), gpu = byId("winner-gpu");
  const filter = filteredTable("winner", winnerColumns(), rows, "winner", { onChoose }, (row) => gpu.value === "" || row.device === gpu.value);
  gpu.replaceChildren(element("option", { value: "" }, "all"), ...[...new Set(rows.map((row) => row.device))].map((name) => element("option", { value: name }, name)));
  gpu.addEventListener("change", filter);
}

/** What running processes said of their kernels; a kernel of which the database lacks the type has none. */
function drawSlow(data, onChoose) {
  byId("slow").hidden = data.slow === null;
  if (data.slow === null) return;
  byId("slow-summary").textContent = data.slow.length
    ? "Times that running processes sampled, beside the stored time of the same call on the same GPU. Other work, heat and lower clocks are slowdowns, too."
    : "No process found a kernel slower than its stored time.";
  byId("slow-table").hidden = data.slow.length === 0;
  new SortedTable(byId("slow-table"), [
    { title: "Pattern", value: (row) => row.pattern, key: true, hint: (row) => "digest " + row.digest },
    { title: "Problem", class: "wide", value: (row) => row.problem },
    { title: "Type", value: (row) => (row.dtype === null ? kDash : typeText(row)), class: "plain" },
    { title: "GPU", class: "wide", value: (row) => row.device + " " + row.bus },
    { title: "Times slower", kind: "number", startsDescending: true, value: (row) => row.factor, node: (row) => element("span", { class: "tag bad" }, times(row.factor)) },
    { title: "ms stored", kind: "number", value: (row) => row.expected_us, text: (row) => milliseconds(row.expected_us) },
    { title: "ms now", kind: "number", value: (row) => row.median_us, text: (row) => milliseconds(row.median_us), hint: (row) => "median of " + plural(row.samples, "sample") },
    { title: "Since", value: (row) => row.since_unix, text: (row) => (row.since_unix === null ? kDash : minuteText(row.since_unix)) },
    { title: "Said by", value: (row) => row.file + (row.note === null ? "" : "; " + row.note) },
  ], data.slow, { onChoose: (row) => { const found = data.workloads.find((one) => one.winner_key === row.winner_key); if (found) onChoose(found); } });
}

/** One row for each workload that was timed on at least two GPUs, a column for each GPU. */
function drawGpus(data) {
  const groups = new Map();
  for (const row of data.workloads.filter((row) => row.us !== null && row.tuned)) {
    if (!groups.has(row.group)) groups.set(row.group, new Map());
    groups.get(row.group).set(row.device, row);
  }
  const rows = [...groups.values()].filter((group) => group.size > 1), first = (group) => group.values().next().value;
  byId("gpus").hidden = rows.length === 0;
  const text = (group, row) => milliseconds(row.us) + " ms (" + times(row.us / Math.min(...[...group.values()].map((one) => one.us))) + ")" +
    (row.percent_of_roof === null ? "" : ", " + percent(row.percent_of_roof));
  new SortedTable(byId("gpu-table"), [
    ...workloadColumns(first, false),
    ...[...new Set(rows.flatMap((group) => [...group.keys()]))].map((device) => ({
      title: device, kind: "number", value: (group) => group.get(device)?.us ?? null, text: (group) => (group.has(device) ? text(group, group.get(device)) : kDash),
    })),
  ], rows);
}

/** "block_m=64 → 128": what `to` has otherwise than `from`. */
function configChanges(from, to) {
  const before = new Map(from.split(" ").map((field) => field.split("=")));
  const changes = to.split(" ").map((field) => field.split("=")).filter(([name, value]) => before.has(name) && before.get(name) !== value)
    .map(([name, value]) => name + "=" + before.get(name) + " → " + value);
  return changes.length ? changes.join(", ") : "the same";
}

/** Winners of both databases by key; those of other generators meet too: an upgrade is what one compares for. Equal ones are left out. */
function comparisons(data) {
  const there = new Map();
  for (const row of data.against.winners) for (const key of [row.key, row.key + row.generator]) there.set(key, row);
  const rows = data.workloads.filter((row) => row.has_winner).map((here) => ({ here, there: there.get(here.key + here.generator) ?? there.get(here.key) ?? null }));
  const met = new Set(rows.map((row) => row.there));
  rows.push(...data.against.winners.filter((row) => !met.has(row)).map((row) => ({ here: null, there: row })));
  for (const row of rows) {
    row.ratio = row.here?.us && row.there?.us ? row.there.us / row.here.us : null;
    row.kind = !row.there ? "only here" : !row.here ? "only there" : row.ratio === null ? "not timed in both" : Math.abs(row.ratio - 1) <= 0.01 ? "alike" : row.ratio > 1 ? "faster" : "slower";
  }
  return rows.filter((row) => !(row.here && row.there && row.here.content_key === row.there.content_key && row.here.us === row.there.us));
}

function drawAgainst(data) {
  byId("against").hidden = data.against === null;
  if (data.against === null) return;
  byId("against-summary").textContent = "Here: " + data.database + ". There: " + data.against.database + ". Within 1% counts as alike; equal winners are left out.";
  const some = (row) => row.here || row.there, side = (row) => (row ? timeText(row) : kDash), tone = { faster: "good", slower: "bad" };
  const changes = (row) => (row.here && row.there ? configChanges(row.there.config, row.here.config) : some(row).config);
  filteredTable("against", [
    ...workloadColumns(some, true),
    { title: "Here is", value: (row) => row.kind, node: (row) => element("span", { class: "tag " + (tone[row.kind] || "") }, row.kind) },
    { title: "Speed here", kind: "number", startsDescending: true, value: (row) => row.ratio, text: (row) => times(row.ratio) },
    { title: "ms here", kind: "number", value: (row) => row.here?.us, text: (row) => side(row.here) },
    { title: "ms there", kind: "number", value: (row) => row.there?.us, text: (row) => side(row.there) },
    { title: "Configuration", class: "config mono", value: changes },
    { title: "Written by", value: (row) => [...new Set([row.here, row.there].filter(Boolean).map((one) => generatorText(one.generator)))].join(" | ") },
  ], comparisons(data), "difference");
}

function drawFacts(row) {
  const facts = [["GPU", row.device], ["Time", row.us === null ? "not measured" : milliseconds(row.us) + " ms"]];
  if (row.tflops !== null) facts.push(["On kept pairs", number(row.tflops) + " TFLOP/s"]);
  if (row.percent_of_roof !== null) facts.push(["Of the " + row.roof_is + " roof", percent(row.percent_of_roof) + " (at least " + milliseconds(row.roof_us) + " ms)"]);
  if (row.default_us !== null) facts.push(["Untuned default", (row.default_was_given_up ? "at least " : "") + milliseconds(row.default_us) + " ms" + (row.gain === null ? "" : ", " + gainText(row))]);
  if (row.has_winner)
    facts.push(["Registers, spills, shared memory", [row.registers, row.spill_bytes, row.shared_bytes].map((count) => count.toLocaleString("en")).join(", ")], ["Written by", versions(row)],
               ["Published", minuteText(row.created_unix)]);
  facts.push(["Winner", row.has_winner ? element("span", { class: "mono" }, row.config || kDash) : "none was published: the trials below are all that there is"]);
  const unknown = [...new Set([row.rate_note, row.default_us === null ? row.default_note : null].filter(Boolean))];
  if (unknown.length) facts.push(["Not known", unknown.join("; ")]);
  const isWide = (name) => name === "Winner" || name === "Not known";
  byId("workload-facts").replaceChildren(...facts.map(([name, value]) => element("div", { class: isWide(name) ? "wide" : null }, element("dt", {}, name), element("dd", {}, value))));
}

/** Trials without a time, by outcome and reason, the most frequent first; reasons that differ in numbers only are one. */
function failuresOf(trials) {
  const failures = new Map();
  for (const { outcome, message } of trials.rows.filter((row) => row.us === null)) {
    const reason = outcome + (message || "").split("\n")[0].replace(/\d+/g, "#");
    if (!failures.has(reason)) failures.set(reason, { outcome, count: 0, example: message });
    ++failures.get(reason).count;
  }
  return [...failures.values()].sort((a, b) => b.count - a.count);
}

function drawFailures(row) {
  const failures = failuresOf(row.trials);
  byId("failure-note").textContent = failures.length ? "Reasons that differ in numbers only are counted together, with one as an example." : "Nothing failed.";
  byId("failure-table").hidden = failures.length === 0;
  new SortedTable(byId("failure-table"), [
    { title: "Outcome", value: (failure) => failure.outcome.replaceAll("_", " "), key: true, class: "plain" },
    { title: "Trials", kind: "number", startsDescending: true, value: (failure) => failure.count },
    { title: "Reason", value: (failure) => failure.example || kDash },
  ], failures);
}

function drawWorkload(row) {
  drawFacts(row);
  const { knobs, rows } = row.trials, choice = byId("trial-axis"), old = choice.value;
  const timed = rows.filter((trial) => trial.us !== null), estimated = timed.filter((trial) => trial.estimate_us !== null).length;
  const varying = knobs.filter((_, i) => new Set(rows.map((trial) => trial.values[i])).size > 1);
  const choices = [["order", "order of the trials"], ...(estimated ? [["estimate", "estimate of the cost model"]] : []), ...varying.map((knob) => [knob, knob])];
  choice.replaceChildren(...choices.map(([value, text]) => element("option", { value }, text)));
  choice.value = choices.some(([value]) => value === old) ? old : "order";
  choice.onchange = () => drawTrials(row, choice.value);
  choice.onchange();
  byId("trial-note").textContent = (timed.length === 0 ? "No trial was timed." : plural(timed.length, "trial") + " timed of " + rows.length + ". Point at one to see its configuration.") + " " +
    (estimated === 0 ? "No estimates: " + (row.estimate_basis || "no trial was timed") + "."
      : (row.spearman === null ? "" : "Rank correlation of estimates " + number(row.spearman, 2) + " over " + plural(estimated, "trial") + ", ") + "by " + row.estimate_basis + ".");
  drawFailures(row);
}
