// Exports: CSV of what the filter shows, a gnuplot script with its data inside, the document.
// Invariant: files carry exact figures (no rounded units) and name their units in the header.

function configurationsCsv(model) {
  const c = model.configurations;
  const rows = [["row", "spec", ...c.columns.map((column) => column.key), "front", "chosen"]];
  for (let i = 0; i < c.n; i += 1) if (c.pass[i]) rows.push([c.rowNumber(i), c.spec(i), ...c.columns.map((column) => column.values[i]), c.front[i], i === c.chosenRow ? 1 : 0]);
  return csv(rows);
}

function heapsCsv(model) {
  const rows = [["name", "spec", "kind", "footprint_bytes", "smallest_arena_bytes", "cycles_mean", "cycles_max", "record_reads", "record_writes", "record_bytes", "front", "chosen", "bound_heap_bytes", "bound_formula", "bound_citation"]];
  for (const heap of model.heaps) {
    const b = isObject(heap.bounds) ? heap.bounds : {};
    rows.push([heap.name, heap.spec, heap.kind, heap.footprint, heap.smallest_arena, heap.cycles_mean, heap.cycles_max, heap.record_reads, heap.record_writes, heap.record_bytes, heap.pareto ? 1 : 0, heap === model.chosenHeap ? 1 : 0, b.heap_bytes, b.formula, b.citation]);
  }
  return csv(rows);
}

// One script that draws the scatter, its front and the named heaps: `gnuplot -p metes.gp`.
function gnuplotScript(model) {
  const c = model.configurations;
  const view = model.scatter.view;
  const [x, y] = [c.columns[view.x], c.columns[view.y]];
  const quoted = (text) => `"${String(text).replace(/["\\`$]/g, " ")}"`;
  const block = (name, lines) => `$${name} << EOD\n${lines.join("\n")}\nEOD\n`;
  const cloud = [];
  const front = [];
  for (let i = 0; i < c.n; i += 1) {
    if (!c.pass[i]) continue;
    cloud.push(`${x.values[i]} ${y.values[i]}`);
    if (c.front[i]) front.push(i);
  }
  const path = envelope(x.values, y.values, front).map((i) => `${x.values[i]} ${y.values[i]}`);
  const named = model.heaps.map((heap) => [heapValue(heap, x.key), heapValue(heap, y.key), heap.name]).filter(([a, b]) => isNumber(a) && isNumber(b)).map(([a, b, name]) => `${a} ${b} ${quoted(name)}`);
  const parts = [["configurations", cloud, "with dots lc rgb '#8295a6' title 'configurations'"], ["front", path, "with steps lw 2 lc rgb '#0b6e6e' title 'front'"], ["named", named, "using 1:2:3 with labels point pt 13 offset char 1,0.5 left tc rgb '#4a4e9c' title 'named heaps'"]].filter(([, lines]) => lines.length);
  return [`# ${String(model.data.title || "Metes report").replace(/[\r\n]+/g, " ")}`,
    ...parts.map(([name, lines]) => block(name, lines)),
    `set xlabel ${quoted(`${x.label}${x.unit ? `, ${x.unit}` : ""}`)}`, `set ylabel ${quoted(`${y.label}${y.unit ? `, ${y.unit}` : ""}`)}`,
    x.log ? "set logscale x" : "unset logscale x", y.log ? "set logscale y" : "unset logscale y", "set grid", "set key outside",
    parts.length ? `plot ${parts.map(([name, , style]) => `$${name} ${style}`).join(", \\\n     ")}` : "# nothing in range", ""].join("\n");
}

function exportBar(model) {
  const button = (label, id, act) => { const b = h("button", { type: "button", id }, label); b.addEventListener("click", act); return b; };
  const c = model.configurations;
  return h("div", { class: "exports", role: "group", "aria-label": "Export" },
    c ? button("Configurations in range, CSV", "export-configurations", () => download("configurations.csv", "text/csv", configurationsCsv(model))) : null,
    model.heaps.length ? button("Heaps, CSV", "export-heaps", () => download("heaps.csv", "text/csv", heapsCsv(model))) : null,
    c ? button("Plot, gnuplot", "export-gnuplot", () => download("metes.gp", "text/plain", gnuplotScript(model))) : null,
    button("Everything, JSON", "export-json", () => download("report.json", "application/json", JSON.stringify(model.data, null, 1))),
    button("Print", "print", () => window.print()));
}
