// The explorer's data: columns unpacked into typed arrays, and the filter that all views share.
// Invariant: every column has a finite key or NaN for each row; `pass` follows the ranges exactly.

const EXPLORER_VERSION = 1;
const ORDINAL = 40; // parameters with up to so many values get evenly spaced places

// Metrics are minimised; parameters are what was varied. `scale` turns stored units into shown ones.
const joules = (n) => {
  if (!isNumber(n)) return NONE;
  const a = Math.abs(n);
  const [unit, by] = a === 0 || a >= 1 ? ["J", 1] : a >= 1e-3 ? ["mJ", 1e3] : a >= 1e-6 ? ["µJ", 1e6] : ["nJ", 1e9];
  return `${significant(n * by)}\u00a0${unit}`;
};
const exactJoules = (n) => (isNumber(n) ? `${n}\u00a0J` : NONE);
const exactSeconds = (n) => (isNumber(n) ? `${n}\u00a0s` : NONE);
const COLUMNS = {
  footprint: { metric: true, label: "Footprint", unit: "bytes", show: bytes, tick: byteTick, exact: exactBytes, binary: true },
  accesses: { metric: true, label: "Accesses", unit: "words", show: count },
  energy_fj: { metric: true, label: "Energy", unit: "joules", scale: 1e-15, show: joules, tick: joules, exact: exactJoules },
  time_ps: { metric: true, label: "Time", unit: "seconds", scale: 1e-12, show: seconds, tick: seconds, exact: exactSeconds },
  cycles: { metric: true, label: "Cycles", unit: "modelled, in all", show: count },
  cycles_max: { metric: true, label: "Most cycles", unit: "modelled, of one operation", show: count },
  record_reads: { metric: true, label: "Record reads", unit: "words", show: count },
  record_writes: { metric: true, label: "Record writes", unit: "words", show: count },
  failed: { metric: true, label: "Failed requests", show: count },
  guarantee: { metric: true, label: "Guarantee", unit: "bytes that are proved to suffice; none lies beyond all", show: bytes, tick: byteTick, exact: exactBytes, binary: true, endless: true },
  general_pools: { label: "General pools" },
  dedicated_pools: { label: "Dedicated pools" },
  object_pools: { label: "Object pools" },
  fit: { label: "Fit" },
  order: { label: "Order" },
  links: { label: "Links" },
  depth: { label: "Depth", unit: "% of the list", show: (n) => `${integer(n)}\u00a0%` },
  max_fit: { label: "Maximum fit", unit: "% of the request", show: (n) => (n === 0 ? "any" : `${integer(n)}\u00a0%`) },
  coalescing_pools: { label: "Coalescing pools" },
  splitting_pools: { label: "Splitting pools" },
  max_coalesced: { label: "Most coalesced", unit: "bytes", show: bytes, exact: exactBytes, binary: true },
  min_split: { label: "Least split", unit: "bytes", show: bytes, exact: exactBytes, binary: true },
  scratchpad: { label: "Scratchpad", unit: "bytes", show: (n) => (n === 0 ? "none" : bytes(n)), exact: exactBytes, binary: true },
};
const EXPORT_AGAIN = "Export the file again with “metes report DIR --explorer”.";
const BOOKKEEPING = ["number", "named", "status", "front"];

function makeColumn(raw, values) {
  const known = COLUMNS[raw.key] || {};
  const words = Array.isArray(raw.words) ? raw.words.map(String) : null;
  if (known.scale) for (let i = 0; i < values.length; i += 1) values[i] *= known.scale;
  const base = { key: raw.key, label: metric(raw.key).label, unit: "", show: (v) => count(v), tick: plainTick, exact: integer, ...known, words, values, range: null };
  if (words) { base.show = base.exact = base.tick = (v) => words[v] ?? NONE; base.metric = false; }
  else if (known.show && !known.tick) base.tick = known.show;
  const inner = base.show;
  base.show = (v) => (Number.isNaN(v) ? "none" : inner(v));
  let low = Infinity;
  let high = -Infinity;
  const seen = new Set();
  for (const v of values) {
    if (seen.size <= ORDINAL) seen.add(Number.isNaN(v) ? null : v);
    if (v < low) low = v;
    if (v > high) high = v;
  }
  if (!(low <= high)) { low = 0; high = 0; }
  // What has no bound is worse than all that have one, and lies behind them.
  base.points = values;
  if (base.endless && high > 0 && values.some(Number.isNaN)) {
    const beyond = high * 2;
    base.points = values.map((v) => (Number.isNaN(v) ? beyond : v));
    high = beyond;
  }
  Object.assign(base, { low, high, constant: seen.size < 2, log: low > 0 && high / low > 6 });
  if (!base.metric && seen.size <= ORDINAL) {
    const sorted = [...seen].sort((a, b) => (a === null ? -1 : b === null ? 1 : words ? collator.compare(words[a], words[b]) : a - b));
    const rank = new Map(sorted.map((v, k) => [v, k]));
    base.levels = sorted.map((v) => (v === null ? NaN : v));
    base.keys = new Float64Array(values.length);
    for (let i = 0; i < values.length; i += 1) base.keys[i] = rank.get(Number.isNaN(values[i]) ? null : values[i]);
  } else base.keys = base.points;
  return base;
}

async function readModel(doc) {
  const n = doc.rows;
  const buffer = await unpack("bytes", EXPORT_AGAIN);
  const columns = new Map(list(doc.columns).map((raw) => [raw.key, makeColumn(raw, unpackColumn(raw, buffer, n, EXPORT_AGAIN))]));
  const need = (key) => { if (!columns.has(key)) throw new Trouble(`The column ${key} is missing.`, EXPORT_AGAIN); return columns.get(key); };
  const status = need("status");
  const front = Uint8Array.from(need("front").values);
  const frontRows = [];
  for (let i = 0; i < n; i += 1) if (front[i]) frontRows.push(i);
  const varied = [...columns.values()].filter((column) => !BOOKKEEPING.includes(column.key) && !column.constant);
  const exploration = isObject(doc.exploration) ? doc.exploration : {};
  const model = { doc, n, columns, number: need("number").values, status, front, frontRows, exploration,
    metrics: varied.filter((column) => column.metric), parameters: varied.filter((column) => !column.metric),
    fixed: [...columns.values()].filter((column) => !BOOKKEEPING.includes(column.key) && column.constant),
    pass: new Uint8Array(n), passing: 0, shown: status.words.map((word) => word === "complete" || word === "beaten"),
    selected: null, compared: [], listeners: new Set(), rowOf: new Map(), profile: isObject(doc.profile) ? doc.profile : null };
  for (let i = 0; i < n; i += 1) model.rowOf.set(model.number[i], i);
  model.named = columns.get("named");
  model.details = readDetails(model);
  model.complete = status.words.indexOf("complete");
  model.partial = status.words.map((word) => (word === "beaten" || word === "slow" ? 1 : 0));
  filter(model);
  return model;
}

const nameOf = (model, i) => (model.named && !Number.isNaN(model.named.values[i]) ? model.named.words[model.named.values[i]] : `№ ${integer(model.number[i])}`);

// One pass a brushed column over typed arrays; what passes is counted, not listed.
function filter(model) {
  const { n, pass, status, shown } = model;
  let passing = 0;
  const codes = status.values;
  for (let i = 0; i < n; i += 1) pass[i] = shown[codes[i]] ? 1 : 0;
  for (const column of model.columns.values()) {
    if (!column.range) continue;
    const [a, b] = column.range;
    const { keys } = column;
    for (let i = 0; i < n; i += 1) if (!(keys[i] >= a && keys[i] <= b)) pass[i] = 0;
  }
  for (let i = 0; i < n; i += 1) passing += pass[i];
  model.passing = passing;
}
function changed(model, what) { for (const listener of model.listeners) listener(what); }
// Brushing fires with every move of the pointer: once a frame is enough.
let filterFrame = 0;
function refilter(model) {
  if (filterFrame) return;
  filterFrame = requestAnimationFrame(() => { filterFrame = 0; filter(model); changed(model, "filter"); });
}
function setRange(model, column, range) { column.range = range; refilter(model); }
const brushed = (model) => [...model.columns.values()].filter((column) => column.range);
function resetFilter(model) { for (const column of brushed(model)) column.range = null; refilter(model); }
function select(model, row) { model.selected = row; changed(model, "select"); }
const MOST_COMPARED = 4;
function toggleCompared(model, row) {
  const at = model.compared.indexOf(row);
  if (at >= 0) model.compared.splice(at, 1);
  else if (model.compared.length < MOST_COMPARED) model.compared.push(row);
  else { announce(`At most ${MOST_COMPARED} configurations are compared`); return; }
  changed(model, "compare");
}

// An axis: where a key lies between 0 and 1, and back.
function axisOf(column) {
  if (column.levels) {
    const last = Math.max(1, column.levels.length - 1);
    return { to: (k) => (column.levels.length === 1 ? 0.5 : k / last), from: (t) => t * last,
      ticks: () => column.levels.map((v, k) => [k, column.show(v)]), scale: null };
  }
  const scale = makeScale(column.low, column.high, column.log, column.binary);
  return { to: scale.to, from: scale.from, ticks: (wanted) => scale.ticks(wanted).map((v) => [v, column.tick(v)]), scale };
}
// A brushed range in words.
function rangeText(column) {
  if (!column.range) return "";
  if (column.levels) {
    const inside = column.levels.filter((_, k) => k >= column.range[0] && k <= column.range[1]);
    if (!inside.length) return "nothing";
    return inside.length === 1 ? column.show(inside[0]) : `${column.show(inside[0])} – ${column.show(inside[inside.length - 1])}`;
  }
  const [a, b] = column.range.map((v) => column.show(v));
  return column.range[0] === -Infinity ? `up to ${b}` : column.range[1] === Infinity ? `from ${a}` : `${a} – ${b}`;
}
