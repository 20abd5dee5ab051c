// Sortable tables with bars in their cells, paged so that 10^5 rows cost 25 nodes.
// Invariant: sorting is stable and total: rows without a value always come last.

const collator = new Intl.Collator("en", { numeric: true });

// columns: [{key, label, value(row), cell(row), numeric, bar, hint, first}], rows: array.
// options: {sort: [key, direction], page, caption, keep(row), onpick(row), marked(row), dim(row)}
function sortableTable(columns, rows, options) {
  const state = { key: options.sort[0], direction: options.sort[1], page: 0 };
  const body = h("tbody");
  const heads = columns.map((column) => {
    const button = h("button", { type: "button", title: column.hint || null }, column.label, h("span", { class: "arrow", "aria-hidden": "true" }));
    button.addEventListener("click", () => {
      if (state.key === column.key) state.direction = -state.direction;
      else { state.key = column.key; state.direction = column.descending ? -1 : 1; }
      state.page = 0;
      update();
      announce(`Sorted by ${column.label}, ${state.direction > 0 ? "ascending" : "descending"}`);
    });
    return h("th", { scope: "col", class: column.numeric ? "number" : null, "data-key": column.key }, button);
  });
  const size = options.page || Infinity;
  const position = h("span", { class: "position" });
  const turn = (step, label) => { const b = h("button", { type: "button", class: "quiet" }, label); b.addEventListener("click", () => { state.page += step; update(); }); return b; };
  const previous = turn(-1, "Previous");
  const next = turn(1, "Next");
  const pager = h("div", { class: "pager" }, position, previous, next);

  let sorted = null;
  let sortedBy = "";
  function order() {
    const tag = `${state.key}${state.direction}`;
    if (sortedBy === tag) return sorted;
    const column = columns.find((candidate) => candidate.key === state.key) || columns[0];
    const keyed = rows.map((row, i) => ({ row, i, v: column.value(row) }));
    const has = (v) => v !== null && v !== undefined && !Number.isNaN(v);
    keyed.sort((a, b) => {
      if (has(a.v) !== has(b.v)) return has(a.v) ? -1 : 1;
      if (!has(a.v)) return a.i - b.i;
      const d = typeof a.v === "string" || typeof b.v === "string" ? collator.compare(String(a.v), String(b.v)) : a.v - b.v;
      return d * state.direction || a.i - b.i;
    });
    sorted = keyed.map(({ row }) => row);
    sortedBy = tag;
    return sorted;
  }

  const peaks = columns.map((column) => (column.bar ? rows.reduce((most, row) => { const v = column.value(row); return isNumber(v) && v > most ? v : most; }, 0) : 0));
  function update() {
    const kept = options.keep ? order().filter(options.keep) : order();
    const pages = Math.max(1, Math.ceil(kept.length / size));
    state.page = Math.max(0, Math.min(pages - 1, state.page));
    const shown = size === Infinity ? kept : kept.slice(state.page * size, (state.page + 1) * size);
    body.replaceChildren(...shown.map((row) => h("tr", { class: [options.marked?.(row), options.dim?.(row) && "dim"].filter(Boolean).join(" ") || null },
      columns.map((column, k) => {
        const value = column.value(row);
        const width = column.bar && isNumber(value) && peaks[k] > 0 ? Math.max(0, value / peaks[k] * 100) : null;
        const content = column.cell(row);
        return h(column.first ? "th" : "td", { scope: column.first ? "row" : null,
          class: [column.numeric && "number", width !== null && "bar"].filter(Boolean).join(" ") || null,
          style: width === null ? null : `--w:${width.toFixed(2)}%` },
        column.first && options.onpick ? pickButton(content, () => options.onpick(row)) : content);
      }))));
    if (!shown.length) body.append(h("tr", {}, h("td", { colspan: columns.length, class: "empty" }, options.empty || "Nothing to show.")));
    heads.forEach((head, k) => {
      const on = columns[k].key === state.key;
      head.setAttribute("aria-sort", on ? (state.direction > 0 ? "ascending" : "descending") : "none");
    });
    pager.hidden = kept.length <= size;
    position.textContent = kept.length ? `${integer(state.page * size + 1)}–${integer(Math.min(kept.length, (state.page + 1) * size))} of ${integer(kept.length)}` : "";
    previous.disabled = state.page === 0;
    next.disabled = state.page >= pages - 1;
  }
  update();
  const table = h("table", { class: options.class || null }, h("caption", {}, options.caption), h("thead", {}, h("tr", {}, heads)), body);
  const node = h("div", { class: "table" }, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": options.caption }, table), size === Infinity ? null : pager);
  return { node, update, state, toStart: () => { state.page = 0; } };
}

function pickButton(content, pick) {
  const button = h("button", { type: "button", class: "pick" }, content);
  button.addEventListener("click", pick);
  return button;
}

const badge = (text, kind) => h("span", { class: `badge ${kind}` }, text);
const marks = (d) => [d.chosen && [" ", badge("chosen", "chosen")], d.front && [" ", badge("front", "front")]].filter(Boolean);

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
    { key: "formula", label: "Proof", value: (heap) => bound(heap).formula || null,
      cell: (heap) => (bound(heap).formula ? h("span", { class: "derivation" }, h("code", {}, bound(heap).formula), h("cite", {}, bound(heap).citation || "no citation")) : h("span", { class: "soft" }, "no bound known")) },
  ];
  const table = sortableTable(columns, model.heaps, { sort: ["footprint", 1], caption: "All named heaps compared", class: "heaps", empty: "No heap was compared.",
    onpick: (heap) => select(model, { heap }),
    marked: (heap) => (heap === model.chosenHeap ? "is-chosen" : model.selected && model.selected.heap === heap ? "is-selected" : null),
    dim: (heap) => model.configurations && !heapPasses(model.configurations, heap) });
  model.listeners.add(() => table.update());
  return table.node;
}

function timeBound({ time }) {
  if (!isObject(time)) return null;
  const say = (v) => (isNumber(v) ? integer(v) : v ?? NONE);
  return time.allocate === time.free ? String(say(time.allocate)) : `${say(time.allocate)} / ${say(time.free)}`;
}
