// The tables of the report: configurations and named heaps.
// Invariant: a row that is marked is the one the details show, or the chosen one.

// All configurations, filtered by the brushes.
function configurationTable(model) {
  const c = model.configurations;
  const rows = Array.from({ length: c.n }, (_, i) => i);
  let onlyFront = c.frontCount > 0;
  const columns = [
    { key: "spec", label: "Configuration", first: true, value: (i) => c.spec(i) || `Configuration ${c.rowNumber(i)}`,
      cell: (i) => [h("span", { class: "spec" }, breakable(c.spec(i) || `Configuration ${integer(c.rowNumber(i))}`)), marks({ chosen: i === c.chosenRow, front: c.front[i] })] },
    ...c.columns.map((column) => ({ key: column.key, label: column.label, numeric: true, bar: true, hint: column.unit,
      value: (i) => column.values[i], cell: (i) => h("span", { title: column.exact(column.values[i]) }, column.show(column.values[i])) })),
  ];
  const table = sortableTable(columns, rows, { sort: [c.columns[0].key, 1], page: 25, caption: "Configurations in range", class: "configurations",
    keep: (i) => c.pass[i] === 1 && (!onlyFront || c.front[i] === 1), onpick: (row) => select(model, { row }),
    marked: (i) => (i === c.chosenRow ? "is-chosen" : model.selected && model.selected.row === i ? "is-selected" : null),
    empty: "No configuration lies in the chosen ranges: widen or reset the filter." });
  const choice = (value, text) => {
    const input = h("input", { type: "radio", name: "which" });
    input.checked = onlyFront === value;
    input.addEventListener("change", () => { onlyFront = value; table.toStart(); table.update(); });
    return h("label", {}, input, text);
  };
  model.listeners.add((what) => { if (what === "filter") table.toStart(); if (what === "filter" || what === "select") table.update(); });
  return h("div", {}, c.frontCount ? h("div", { class: "controls", role: "radiogroup", "aria-label": "Rows" },
    choice(true, `front only (${integer(c.frontCount)})`), choice(false, `all in range, dominated too`)) : null, table.node);
}

// All named heaps (and the explored ones sent with them).
function heapTable(model) {
  const peak = model.livePeak;
  const arenaRatio = (heap) => (peak && isNumber(heap.smallest_arena) ? heap.smallest_arena / peak : null);
  const bound = (heap) => (isObject(heap.bounds) ? heap.bounds : {});
  const figure = (key, label, show, exact, more = {}) => ({ key, label, numeric: true, bar: true, value: (heap) => heap[key],
    cell: (heap) => h("span", { title: exact(heap[key]) }, show(heap[key])), ...more });
  const columns = [
    { key: "name", label: "Heap", first: true, value: (heap) => heap.name,
      cell: (heap) => [h("span", { class: "spec" }, heap.name), marks({ chosen: heap === model.chosenHeap, front: heap.pareto })] },
    figure("footprint", "Footprint", bytes, exactBytes, { hint: "bytes taken from the system over the replayed trace" }),
    { key: "arena", label: "Smallest arena / live", numeric: true, bar: true, value: arenaRatio, hint: "smallest arena in which every request succeeds, over the peak of live bytes",
      cell: (heap) => h("span", { title: `smallest arena ${exactBytes(heap.smallest_arena)}` }, ratio(arenaRatio(heap))) },
    figure("cycles_mean", "Cycles, mean", significant, integer, { hint: "modelled cycles per event, mean over the trace" }),
    figure("own_cycles_max", "Cycles, maximum", count, integer, { hint: "largest modelled cycles of one event without what it copies or the system maps: a measured maximum, not a bound" }),
    figure("copy_cycles_max", "Copying, maximum", count, integer, { hint: "largest modelled cycles of one copy, of a resize that moves its block: in proportion to the block, whatever the heap" }),
    figure("record_bytes", "Record bytes", bytes, exactBytes, { hint: "bytes of bookkeeping" }),
    { key: "time", label: "Time bound", value: (heap) => timeBound(bound(heap)), cell: (heap) => timeBound(bound(heap)) || NONE, hint: "proven: allocate, free" },
    { key: "heap_bytes", label: "Heap bound", numeric: true, bar: true, hint: "proven: a heap of this size always suffices for this live peak and these sizes",
      value: (heap) => bound(heap).heap_bytes, cell: (heap) => h("span", { title: exactBytes(bound(heap).heap_bytes) }, bytes(bound(heap).heap_bytes)) },
  ];
  const table = sortableTable(columns, model.heaps, { sort: ["footprint", 1], caption: "All named heaps compared", class: "heaps", empty: "No heap was compared.",
    onpick: (heap) => select(model, { heap }),
    marked: (heap) => (heap === model.chosenHeap ? "is-chosen" : model.selected && model.selected.heap === heap ? "is-selected" : null),
    dim: (heap) => model.configurations && !heapPasses(model.configurations, heap) });
  model.listeners.add(() => table.update());
  return h("div", {}, table.node, proofs(model.heaps, bound));
}

// What the bounds of the table follow from, once for all heaps with the same proof.
function proofs(heaps, bound) {
  const of = new Map();
  for (const heap of heaps) {
    const { formula, citation } = bound(heap);
    if (!formula) continue;
    const key = `${formula}\n${citation}`;
    if (!of.has(key)) of.set(key, { formula, citation: citation || "no citation", names: [] });
    of.get(key).names.push(heap.name);
  }
  const without = heaps.filter((heap) => !bound(heap).formula).map((heap) => heap.name);
  return h("details", { class: "proofs" }, h("summary", {}, "What the bounds follow from"),
    h("dl", {}, [...of.values()].map(({ formula, citation, names }) => h("div", {}, h("dt", {}, names.join(", ")), h("dd", {}, h("code", {}, formula), " ", h("cite", {}, citation)))),
      without.length ? h("div", {}, h("dt", {}, without.join(", ")), h("dd", { class: "soft" }, "no bound known")) : null));
}

function timeBound({ time }) {
  if (!isObject(time)) return null;
  const say = (v) => (isNumber(v) ? integer(v) : v ?? NONE);
  return time.allocate === time.free ? String(say(time.allocate)) : `${say(time.allocate)} / ${say(time.free)}`;
}
