// Elements and numbers as text. Strings only ever become text nodes and attributes, never markup.

/** element("td", {class: "number"}, "12.5", child...) */
function element(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {}))
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function byId(id) { return document.getElementById(id); }

const kDash = "–";

/** Four significant digits, without an exponent. */
function number(value, digits) {
  if (value === null || value === undefined || !Number.isFinite(value)) return kDash;
  if (digits !== undefined) return value.toFixed(digits);
  const places = value === 0 ? 0 : Math.max(0, 3 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(places, 6));
}

function milliseconds(us) { return us === null || us === undefined ? kDash : number(us / 1000); }
function percent(value) { return value === null || value === undefined ? kDash : number(value, 1) + "%"; }
function times(ratio) { return ratio === null || ratio === undefined ? kDash : number(ratio, 2) + "×"; }
function plural(count, word) { return count.toLocaleString("en") + " " + word + (count === 1 ? "" : "s"); }

/** The version of the code generator; "heddle 0.6.0" is how databases spell it. */
function generatorText(generator) { return "code generator " + generator.replace(/^heddle /, ""); }

/** "13.0" for 13000. */
function driverText(version) { return version ? Math.floor(version / 1000) + "." + Math.floor((version % 1000) / 10) : kDash; }

/** "2026-11-26 05:00 UTC" */
function minuteText(unix) { return new Date(unix * 1000).toISOString().slice(0, 16).replace("T", " ") + " UTC"; }

function median(values) {
  const sorted = values.filter((value) => value !== null && value !== undefined).sort((a, b) => a - b);
  return sorted.length ? sorted[Math.floor(sorted.length / 2)] : null;
}

function dims(row) { return row.head_dim === row.value_dim ? String(row.head_dim) : row.head_dim + "/" + row.value_dim; }
function typeText(row) { return row.dtype + " d=" + dims(row); }
function workloadText(row) { return row.pattern + "  " + row.problem + "  " + typeText(row) + (row.kind === "forward" ? "" : "  " + row.kind); }
