// What each section shows. `data` is what `heddle report --json` prints.

function configCell(config, isOpen) {
  if (!config) return element("span", {}, kDash);
  const fields = config.split(" ");
  if (isOpen || fields.length <= 4) return element("span", { class: "mono" }, config);
  const short = fields.find((field) => !field.startsWith("skeleton="));
  return element("details", {}, element("summary", { class: "mono" }, short + " …"), element("p", { class: "mono" }, config));
}

function drawTiles(data) {
  const winners = data.workloads.filter((row) => row.has_winner);
  const trials = data.workloads.reduce((sum, row) => sum + row.trials.rows.length, 0);
  const gain = median(winners.map((row) => row.gain)), roof = median(winners.map((row) => row.percent_of_roof));
  const tiles = [
    [winners.length.toLocaleString("en"), winners.length === 1 ? "winner" : "winners"], [data.devices.length, data.devices.length === 1 ? "GPU" : "GPUs"],
    [trials.toLocaleString("en"), trials === 1 ? "trial" : "trials"], [percent(roof), "of the roof, median"], [times(gain), "over the untuned default, median"],
  ];
  const recorded = winners.filter((row) => row.recorded).length;
  if (recorded) tiles.splice(1, 0, [recorded.toLocaleString("en"), "of them recorded, not measured here"]);
  byId("tiles").replaceChildren(...tiles.map(([value, label]) => element("div", { class: "tile" }, element("b", {}, String(value)), element("span", {}, label))));
}

function versions(row) {
  return [generatorText(row.generator), row.nvrtc ? "NVRTC " + row.nvrtc : null, row.driver ? "driver " + driverText(row.driver) : null, row.recorded ? "recorded elsewhere and played back" : null].filter(Boolean).join(", ");
}

function timeText(row) { return row.tuned ? milliseconds(row.us) + (row.recorded ? " recorded" : "") : "untuned"; }

function gainText(row) { return row.gain === null ? kDash : (row.default_was_given_up ? "≥ " : "") + times(row.gain); }

function winnerColumns() {
  return [
    { title: "Pattern", value: (row) => row.pattern, key: true, hint: (row) => "digest " + row.digest },
    { title: "Problem", class: "wide", value: (row) => row.problem, hint: (row) => row.problem_note },
    { title: "GPU", class: "wide", value: (row) => row.device },
    { title: "Type", value: typeText, class: "plain" },
    { title: "ms", kind: "number", value: (row) => row.us, text: timeText },
    { title: "TFLOP/s", kind: "number", startsDescending: true, value: (row) => row.tflops, text: (row) => number(row.tflops), hint: (row) => row.rate_note },
    { title: "Of roof", kind: "number", startsDescending: true, value: (row) => row.percent_of_roof, text: (row) => percent(row.percent_of_roof), hint: (row) => row.rate_note },
    { title: "Gain", help: "over the untuned default", kind: "number", startsDescending: true, value: (row) => row.gain, text: gainText, hint: (row) => row.default_note },
    { title: "Match", value: (row) => row.match, text: (row) => row.match, node: (row) => element("span", { class: "tag" }, row.match) },
    { title: "Configuration", class: "config", value: (row) => row.config, node: (row) => configCell(row.config) },
    { title: "Written by", class: "wide", value: versions },
  ];
}

function drawWinners(data, onChoose) {
  const devices = data.devices.map((device) => device.name);
  const rows = data.workloads.filter((row) => row.has_winner);
  for (const row of rows) if (!devices.includes(row.device)) devices.push(row.device);
  const note = (shown, all) => {
    byId("winner-count").textContent = shown.length === all ? plural(all, "winner") : shown.length + " of " + plural(all, "winner");
    const bars = drawRoof(shown, devices);
    const missing = shown.filter((row) => row.percent_of_roof === null);
    const reasons = [...new Set(missing.map((row) => row.rate_note || "not timed"))];
    byId("roof-note").textContent = [
      bars.groups > bars.shown ? "The first " + bars.shown + " of " + bars.groups + " workloads; filter to see others." : "",
      missing.length ? plural(missing.length, "winner") + " without a bar: " + reasons.join(". ") + "." : "",
    ].join(" ").trim();
  };
  const table = new SortedTable(byId("winner-table"), winnerColumns(), rows, { onChoose, onDraw: note });
  byId("winner-gpu").replaceChildren(element("option", { value: "" }, "all"), ...devices.map((name) => element("option", { value: name }, name)));
  const filter = () => {
    const gpu = byId("winner-gpu").value;
    table.filter(byId("winner-filter").value, (row) => gpu === "" || row.device === gpu);
  };
  byId("winner-filter").addEventListener("input", filter);
  byId("winner-gpu").addEventListener("change", filter);
  return table;
}

function drawUnserved(data) {
  if (data.unserved.length === 0) return;
  const table = element("table", { id: "unserved-table" });
  byId("unserved").append(element("h3", {}, "Asked for, without a winner of its own"), element("div", { class: "scroll" }, table));
  new SortedTable(table, [
    { title: "Pattern", value: (row) => row.pattern, key: true },
    { title: "Problem", class: "wide", value: (row) => row.problem },
    { title: "GPU", class: "wide", value: (row) => row.device },
    { title: "A launch gets", value: (row) => (row.match === "none" ? "nothing" : row.match) },
  ], data.unserved);
}

/** One row for each workload that was timed on at least two GPUs, a column for each GPU. */
function drawGpus(data) {
  const groups = new Map();
  for (const row of data.workloads) {
    if (row.us === null || !row.has_winner || !row.tuned) continue;
    if (!groups.has(row.group)) groups.set(row.group, { first: row, of: new Map() });
    groups.get(row.group).of.set(row.device, row);
  }
  const rows = [...groups.values()].filter((group) => group.of.size > 1);
  if (rows.length === 0) {
    byId("gpu-table").hidden = true;
    byId("gpu-note").textContent = "No workload has tuned winners on two GPUs. Without --plan or --problem, workloads of GPUs with different numbers of SMs cannot be told to be the same.";
    return;
  }
  for (const group of rows) group.best = Math.min(...[...group.of.values()].map((row) => row.us));
  const devices = [...new Set(rows.flatMap((group) => [...group.of.keys()]))];
  const changes = (group) => {
    const all = [...group.of.values()], names = new Map(all.map((row) => [row.device, new Map(row.config.split(" ").map((field) => field.split("=")))]));
    const first = names.get(all[0].device), lines = [];
    for (const name of first.keys()) {
      const values = all.map((row) => names.get(row.device).get(name) ?? kDash);
      if (new Set(values).size > 1) lines.push(name + "=" + values.join(" | "));
    }
    return lines.length ? lines.join(" ") : "the same";
  };
  new SortedTable(byId("gpu-table"), [
    { title: "Pattern", value: (group) => group.first.pattern, key: true },
    { title: "Problem", class: "wide", value: (group) => group.first.problem },
    { title: "Type", value: (group) => typeText(group.first), class: "plain" },
    ...devices.map((device) => ({
      title: device, kind: "number", value: (group) => (group.of.has(device) ? group.of.get(device).us : null),
      text: (group) => {
        if (!group.of.has(device)) return kDash;
        const row = group.of.get(device);
        return milliseconds(row.us) + " ms" + (row.us === group.best ? "" : " (" + times(row.us / group.best) + ")") + (row.percent_of_roof === null ? "" : ", " + percent(row.percent_of_roof));
      },
    })),
    { title: "Configurations differ in", class: "config mono", value: changes },
  ], rows);
  byId("gpu-note").textContent = "In brackets: the time over that of the fastest GPU; then the percent of that GPU's own roof.";
}

/** "block_m=64 → 128": what `to` has otherwise than `from`. */
function configChanges(from, to) {
  const before = new Map(from.split(" ").map((field) => field.split("=")));
  const changes = to.split(" ").map((field) => field.split("=")).filter(([name, value]) => before.has(name) && before.get(name) !== value)
    .map(([name, value]) => name + "=" + before.get(name) + " → " + value);
  return changes.length ? changes.join(", ") : "the same";
}

function drawAgainst(data) {
  const summary = byId("against-summary");
  if (data.against === null) {
    for (const id of ["against-filters", "against-table"]) byId(id).hidden = true;
    summary.append(element("p", { class: "muted" }, "No second database was given: heddle report --against=FILE compares the winners with those of another one."));
    return;
  }
  const count = (kind) => data.comparisons.filter((row) => row.kind === kind).length;
  const parts = ["faster", "slower", "alike", "not timed in both", "only here", "only there"].map((kind) => [kind, count(kind)]).filter((part) => part[1] > 0);
  summary.append(element("p", {}, "Here: " + data.databases.join(", ") + ". There: " + data.against + ". " + plural(data.equal_winners, "winner") + " equal" +
    parts.map(([kind, n]) => ", " + n + " " + kind).join("") + ". Within 1% counts as alike."));
  const side = (row, name) => (row[name] === null ? kDash : row[name].us === null ? "untuned" : milliseconds(row[name].us) + (row[name].recorded ? " recorded" : ""));
  const tone = { faster: "good", slower: "bad" };
  const table = new SortedTable(byId("against-table"), [
    { title: "Pattern", value: (row) => row.pattern, key: true },
    { title: "Problem", class: "wide", value: (row) => row.problem },
    { title: "GPU", class: "wide", value: (row) => row.device },
    { title: "Type", value: typeText, class: "plain" },
    { title: "Here is", value: (row) => row.kind, node: (row) => element("span", { class: "tag " + (tone[row.kind] || "") }, row.kind) },
    { title: "Speed here", kind: "number", startsDescending: true, value: (row) => row.ratio, text: (row) => times(row.ratio) },
    { title: "ms here", kind: "number", value: (row) => row.here && row.here.us, text: (row) => side(row, "here") },
    { title: "ms there", kind: "number", value: (row) => row.there && row.there.us, text: (row) => side(row, "there") },
    { title: "Configuration", class: "config", value: (row) => (row.here && row.there ? configChanges(row.there.config, row.here.config) : (row.here || row.there).config),
      node: (row) => (row.here && row.there ? element("span", { class: "mono" }, configChanges(row.there.config, row.here.config)) : configCell((row.here || row.there).config)) },
    { title: "Written by", value: (row) => [...new Set([row.here, row.there].filter(Boolean).map((one) => generatorText(one.generator)))].join(" | ") },
  ], data.comparisons, { onDraw: (shown, all) => { byId("against-count").textContent = shown.length === all ? plural(all, "difference") : shown.length + " of " + plural(all, "difference"); } });
  byId("against-filter").addEventListener("input", () => table.filter(byId("against-filter").value));
}

function fact(name, value, isWide) {
  return element("div", { class: isWide ? "wide" : null }, element("dt", {}, name), element("dd", {}, value));
}

function drawFacts(row) {
  const facts = [fact("GPU", row.device), fact("Time", row.us === null ? "not measured" : milliseconds(row.us) + " ms" + (row.recorded ? ", recorded elsewhere and played back" : ""))];
  if (row.tflops !== null) facts.push(fact("On kept pairs", number(row.tflops) + " TFLOP/s"));
  if (row.percent_of_roof !== null) facts.push(fact("Of the " + row.roof_is + " roof", percent(row.percent_of_roof) + " (at least " + milliseconds(row.roof_us) + " ms)"));
  if (row.default_us !== null) facts.push(fact("Untuned default", (row.default_was_given_up ? "at least " : "") + milliseconds(row.default_us) + " ms" + (row.gain === null ? "" : ", " + gainText(row))));
  if (row.has_winner) {
    facts.push(fact("Registers, spills, shared memory", row.registers + ", " + row.spill_bytes.toLocaleString("en") + " B, " + row.shared_bytes.toLocaleString("en") + " B"), fact("Written by", versions(row)),
               fact("Published", new Date(row.created_unix * 1000).toISOString().slice(0, 16).replace("T", " ") + " UTC"));
    facts.push(fact("Winner", element("span", { class: "mono" }, row.config || kDash), true));
  } else {
    facts.push(fact("Winner", "none was published: the trials below are all that there is", true));
  }
  const unknown = [...new Set([row.problem_note, row.rate_note, row.default_us === null ? row.default_note : null].filter(Boolean))];
  if (unknown.length) facts.push(fact("Not known", unknown.join("; "), true));
  byId("workload-facts").replaceChildren(...facts);
}

function drawFailures(row) {
  const table = byId("failure-table");
  table.hidden = row.failures.length === 0;
  byId("failure-note").textContent = row.trials.rows.length === 0 ? "There are no trials." : row.failures.length === 0 ? "Nothing failed." : "Reasons that differ in numbers only are counted together, with one as an example.";
  if (table.hidden) return table.replaceChildren();
  new SortedTable(table, [
    { title: "Outcome", value: (failure) => failure.outcome.replaceAll("_", " "), key: true, class: "plain" },
    { title: "Trials", kind: "number", startsDescending: true, value: (failure) => failure.count },
    { title: "Of all", kind: "number", startsDescending: true, value: (failure) => failure.count, text: (failure) => percent((100 * failure.count) / row.trials.rows.length) },
    { title: "Reason", value: (failure) => failure.example || kDash },
  ], row.failures);
}

function drawWorkload(row) {
  drawFacts(row);
  const knobs = row.trials.knobs, axisChoice = byId("trial-axis"), old = axisChoice.value;
  const varies = knobs.map((_, i) => new Set(row.trials.rows.map((trial) => trial.values[i])).size > 1);
  axisChoice.replaceChildren(element("option", { value: "" }, "order of the trials"), ...knobs.filter((_, i) => varies[i]).map((knob) => element("option", { value: knob }, knob || "(no name)")));
  axisChoice.value = [...axisChoice.options].some((option) => option.value === old) ? old : "";
  const across = () => drawTrials(row, axisChoice.value === "" ? -1 : knobs.indexOf(axisChoice.value));
  axisChoice.onchange = across;
  across();
  drawEstimates(row);
  const timed = row.trials.rows.filter((trial) => trial.us !== null).length, estimated = row.trials.rows.filter((trial) => trial.us !== null && trial.estimate_us !== null).length;
  byId("trial-note").textContent = timed === 0 ? "No trial was timed." : plural(timed, "trial") + " timed of " + row.trials.rows.length + ". Point at one to see its configuration.";
  byId("estimate-note").textContent = estimated === 0 ? "No estimates: " + (row.estimate_basis || "no trial was timed") + "."
    : (row.spearman === null ? "" : "Rank correlation " + number(row.spearman, 2) + " over " + plural(estimated, "trial") + ". ") + "By " + row.estimate_basis + ".";
  drawFailures(row);
}
