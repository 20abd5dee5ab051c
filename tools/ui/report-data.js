// The report's document: check its shape, derive what the views share.
// Invariant: in the model that `readModel` returns every array exists and every number
// used for drawing is finite.

const VERSION = 1;

function readModel(data) {
  const notes = []; // what was left out of the report, and why
  const heaps = list(data.heaps).filter((heap) => isObject(heap) && typeof heap.name === "string");
  if (heaps.length < list(data.heaps).length) notes.push(`${list(data.heaps).length - heaps.length} heaps without a name are left out.`);
  const model = {
    data,
    notes,
    heaps,
    trace: isObject(data.trace) ? data.trace : null,
    profile: isObject(data.profile) ? data.profile : null,
    chosen: isObject(data.chosen) ? data.chosen : null,
    configurations: null,
    curves: list(data.curves).filter((curve) => isObject(curve) && Array.isArray(curve.points)),
    selected: null,
    listeners: new Set(),
  };
  model.chosenHeap = heaps.find((heap) => heap.chosen) || heaps.find((heap) => model.chosen && heap.spec === model.chosen.spec) || null;
  model.livePeak = model.trace && isNumber(model.trace.peak_live) ? model.trace.peak_live : null;
  if (isObject(data.configurations)) model.configurations = readConfigurations(data.configurations, model);
  return model;
}

function readConfigurations(raw, model) {
  const keys = list(raw.columns).map(String);
  if (keys.length === 0) { model.notes.push("The configurations name no columns and are left out."); return null; }
  const given = list(raw.rows);
  const usable = (row) => Array.isArray(row) && keys.every((_, k) => isNumber(row[k]));
  const kept = [];
  for (let i = 0; i < given.length; i += 1) if (usable(given[i])) kept.push(i);
  if (kept.length < given.length) model.notes.push(`${integer(given.length - kept.length)} configurations without finite figures are left out.`);
  const n = kept.length;
  const position = new Map(kept.length === given.length ? [] : kept.map((row, i) => [row, i]));
  const place = (row) => (kept.length === given.length ? (row < n ? row : undefined) : position.get(row));
  const columns = keys.map((key, k) => {
    const values = new Float64Array(n);
    let low = Infinity;
    let high = -Infinity;
    for (let i = 0; i < n; i += 1) {
      const v = given[kept[i]][k];
      values[i] = v;
      if (v < low) low = v;
      if (v > high) high = v;
    }
    for (const heap of model.heaps) { // axes have to reach the named heaps too
      const v = heapValue(heap, key);
      if (isNumber(v)) { low = Math.min(low, v); high = Math.max(high, v); }
    }
    if (!(low <= high)) { low = 0; high = 1; }
    const log = low > 0 && high / low > 6;
    return { ...metric(key), values, low, high, log, range: [-Infinity, Infinity] };
  });
  const specs = list(raw.specs);
  const front = new Uint8Array(n);
  for (const row of list(raw.pareto)) { const i = place(row); if (i !== undefined && i >= 0) front[i] = 1; }
  const rows = kept;
  const spec = (i) => (typeof specs[rows[i]] === "string" ? specs[rows[i]] : null);
  let chosenRow = -1;
  if (model.chosen) for (let i = 0; i < n && chosenRow < 0; i += 1) if (spec(i) === model.chosen.spec) chosenRow = i;
  const pass = new Uint8Array(n).fill(1);
  const out = { raw, columns, n, front, spec, words: [], rowNumber: (i) => rows[i], chosenRow, pass, passing: n,
    frontCount: front.reduce((a, b) => a + b, 0) };
  out.dominated = dominatedInFront(out);
  return out;
}

function heapValue(heap, key) {
  if (key === "cycles") return heap.cycles_mean;
  if (key === "record_accesses") return isNumber(heap.record_reads) && isNumber(heap.record_writes) ? heap.record_reads + heap.record_writes : null;
  return heap[key];
}

// Check the front that came with the data: how many of its rows does another row dominate
// (no metric worse, one better)? null where the check would cost more than the page may.
function dominatedInFront({ columns, n, front, frontCount }) {
  if (frontCount * n > 2e7) return null;
  let bad = 0;
  for (let f = 0; f < n; f += 1) {
    if (!front[f]) continue;
    for (let i = 0; i < n; i += 1) {
      let better = false;
      let worse = false;
      for (const { values } of columns) {
        if (values[i] > values[f]) { worse = true; break; }
        if (values[i] < values[f]) better = true;
      }
      if (better && !worse) { bad += 1; break; }
    }
  }
  return bad;
}


// ---- selection and filter, shared by all views -------------------------------

const inRange = (column, v) => v >= column.range[0] && v <= column.range[1];

function applyFilter(model) {
  const c = model.configurations;
  let passing = 0;
  for (let i = 0; i < c.n; i += 1) {
    let ok = 1;
    for (const column of c.columns) {
      const v = column.values[i];
      if (v < column.range[0] || v > column.range[1]) { ok = 0; break; }
    }
    if (ok && c.words.length) {
      const text = c.spec(i);
      ok = text !== null && c.words.every((word) => text.includes(word)) ? 1 : 0;
    }
    c.pass[i] = ok;
    passing += ok;
  }
  c.passing = passing;
  changed(model, "filter");
}

function resetFilter(model) {
  model.configurations.words = [];
  for (const column of model.configurations.columns) column.range = [-Infinity, Infinity];
  applyFilter(model);
}

const isFiltered = (c) => c.words.length > 0 || c.columns.some((column) => column.range[0] !== -Infinity || column.range[1] !== Infinity);
const heapPasses = (c, heap) => c.columns.every((column) => {
  const v = heapValue(heap, column.key);
  return !isNumber(v) || inRange(column, v);
});

function changed(model, what) { for (const listener of model.listeners) listener(what); }
function select(model, item) { model.selected = item; changed(model, "select"); }

// What is selected, in one shape for the details, whether configuration or heap.
function describe(model, item) {
  const c = model.configurations;
  if (item.heap) {
    const heap = item.heap;
    const values = c ? c.columns.map((column) => heapValue(heap, column.key)) : [];
    return { title: heap.name, spec: heap.spec || heap.name, heap, values, front: heap.pareto, chosen: heap === model.chosenHeap };
  }
  const spec = c.spec(item.row);
  return { title: spec || `Configuration ${integer(c.rowNumber(item.row))}`, spec, row: item.row,
    values: c.columns.map((column) => column.values[item.row]), front: c.front[item.row] === 1, chosen: item.row === c.chosenRow };
}
