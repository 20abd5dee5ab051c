// The headline: which heap, how good, and whether the run proved the prediction.
// Invariant: no sentence claims what the data does not hold; an absent figure is named as absent.

function verdictView(model) {
  const { data, chosen, chosenHeap, livePeak } = model;
  const title = typeof data.title === "string" && data.title ? data.title : "Report";
  const eyebrow = h("p", { class: "eyebrow" }, h("b", {}, "Metes"), " ", title);
  if (!chosen && !chosenHeap) {
    return h("header", { class: "verdict" }, eyebrow, h("h1", {}, "No heap was chosen."),
      h("p", { class: "lead" }, "The exploration ended before it had a heap to recommend; what it found is below."));
  }
  const spec = chosen?.spec || chosenHeap.spec || chosenHeap.name;
  const footprint = chosen?.predicted?.footprint ?? chosenHeap?.footprint;
  const proof = proofOf(model);
  return h("header", { class: "verdict" }, eyebrow,
    h("h1", {}, sentence(model, spec, footprint)),
    chosen?.why ? h("p", { class: "lead" }, chosen.why) : null,
    isLong(spec) ? code(spec) : null,
    h("div", { class: `proof ${proof.kind}`, id: "proof" }, h("p", {}, h("b", {}, h("span", { class: "mark", "aria-hidden": "true" }, proof.mark), proof.title), " ", proof.text), proof.table),
    figures(model, footprint, livePeak));
}

// A specification too long for a headline is cut there and stands whole below it.
const isLong = (spec) => spec.length > 34;

function sentence(model, spec, footprint) {
  const parts = [h("code", {}, isLong(spec) ? `${spec.split(":")[0]}…` : spec)];
  const peak = model.livePeak;
  if (isNumber(footprint)) {
    parts.push(" serves the program in ", byteFigure(footprint));
    if (peak) parts.push(`, ${ratio(footprint / peak)} its live peak`);
  } else parts.push(" is the chosen heap");
  const best = bestBaseline(model);
  if (best && isNumber(footprint)) {
    const name = h("code", {}, best.name);
    const kind = `the smallest ${model.chosenHeap?.kind === "named" ? "other named" : "named"} heap`;
    const cycles = chosenCycles(model);
    const faster = isNumber(cycles) && isNumber(best.cycles_mean) && cycles < best.cycles_mean;
    // A difference that no figure beside it shows is none to speak of.
    const alike = Math.abs(footprint / best.footprint - 1) < 0.001;
    if (alike) parts.push(": as little as ", name, `, ${kind}`);
    else parts.push(`: ${compared(footprint, best.footprint)} than `, name, `, ${kind}`);
    // What the memory buys, where the smallest heap was not the one to take.
    if ((alike || footprint > best.footprint) && faster) parts.push(`, for ${compared(cycles, best.cycles_mean, "fewer")} cycles`);
  }
  return [...parts, "."];
}

// The named heap with the smallest footprint, other than the chosen one.
function bestBaseline(model) {
  const named = model.heaps.filter((heap) => heap.kind === "named" && heap !== model.chosenHeap && isNumber(heap.footprint));
  return named.reduce((best, heap) => (!best || heap.footprint < best.footprint ? heap : best), null);
}

function chosenCycles({ chosenHeap, configurations: c }) {
  if (isNumber(chosenHeap?.cycles_mean)) return chosenHeap.cycles_mean;
  return c && c.chosenRow >= 0 ? c.columns.find((column) => column.key === "cycles")?.values[c.chosenRow] : null;
}

function proofOf({ chosen, trace }) {
  const measured = chosen && isObject(chosen.measured) ? chosen.measured : null;
  const predicted = chosen && isObject(chosen.predicted) ? chosen.predicted : null;
  if (!predicted || !measured || !isNumber(measured.footprint)) {
    return { kind: "open", mark: "○", title: "Predicted, not measured.", text: "The program has not been run on the chosen heap, so these figures are a replay’s prediction. “metes tune” runs it and compares.", table: null };
  }
  const placements = isObject(chosen.placements) ? chosen.placements : null;
  const rows = [["live peak", predicted.peak_live, measured.peak_live], ["footprint", predicted.footprint, measured.footprint]];
  const same = rows.every(([, a, b]) => a === b);
  const table = h("table", { class: "compare" }, h("caption", { class: "unseen" }, "Predicted and measured"),
    h("thead", {}, h("tr", {}, ["", "predicted", "measured", "difference"].map((t) => h("th", { scope: "col" }, t)))),
    h("tbody", {}, rows.map(([name, a, b]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, exactBytes(a)), h("td", {}, exactBytes(b)),
      h("td", { class: a === b ? "good" : "bad" }, a === b ? "0" : isNumber(a) && isNumber(b) ? `${b > a ? "+" : "−"}${exactBytes(Math.abs(b - a))}` : NONE)))));
  if (chosen.equal === true && same && (!placements || placements.equal === true)) {
    const events = placements && isNumber(placements.events) ? ` All ${integer(placements.events)} events placed their blocks at the predicted offsets.` : " Placements were not compared.";
    return { kind: "good", mark: "✓", title: "Predicted = measured.", text: `The program ran on the emitted heap and took, to the byte, the memory the replay predicted.${events}`, table };
  }
  const why = trace?.deterministic === false ? " Two recordings of this program differ: it does not allocate the same way twice, so equality cannot be expected." :
    trace?.deterministic === true ? " The program’s recordings agree with each other, so the difference needs an explanation." : " Whether the program allocates the same way twice was not checked.";
  const first = placements && isObject(placements.first_difference) ? ` First difference: ${Object.entries(placements.first_difference).map(([k, v]) => `${k.replace(/_/g, " ")} ${isNumber(v) ? integer(v) : isObject(v) ? JSON.stringify(v) : v}`).join(", ")}.` : "";
  if (same) return { kind: "part", mark: "≈", title: "Peak and footprint equal, not every placement.", text: `${why.trim()}${first}`, table };
  return { kind: "bad", mark: "≠", title: "Predicted ≠ measured.", text: `${why.trim()}${first}`, table };
}

function figures(model, footprint, peak) {
  const heap = model.chosenHeap;
  const c = model.configurations;
  const cell = (label, value, note) => h("div", {}, h("dt", {}, label), h("dd", {}, value, note ? h("small", {}, note) : null));
  const bound = heap && isObject(heap.bounds) ? heap.bounds.heap_bytes : null;
  const cycles = chosenCycles(model);
  return h("dl", { class: "figures" },
    isNumber(footprint) ? cell("Footprint", byteFigure(footprint), exactBytes(footprint)) : null,
    isNumber(peak) ? cell("Live peak", byteFigure(peak), exactBytes(peak)) : null,
    isNumber(cycles) ? cell("Mean cycles an event", significant(cycles), isNumber(heap?.own_cycles_max) ? `maximum measured ${integer(heap.own_cycles_max)}${heap.copy_cycles_max > 0 ? `, and ${integer(heap.copy_cycles_max)} for the largest copy` : ""}` : isNumber(heap?.cycles_max) ? `maximum measured ${integer(heap.cycles_max)}, copying included` : "modelled") : null,
    isNumber(bound) ? cell("Heap bound, proven", byteFigure(bound), heap.bounds.citation || exactBytes(bound)) : heap ? cell("Heap bound, proven", "none", "no finite bound on its memory is known") : null,
    c && isNumber(c.raw.evaluated) ? cell("Configurations", count(c.raw.evaluated), [isNumber(c.raw.space) ? `of ${count(c.raw.space)}` : null, isNumber(c.raw.seconds) ? `in ${seconds(c.raw.seconds)}` : null].filter(Boolean).join(" ")) : null,
    model.trace && isNumber(model.trace.events) ? cell("Trace", `${count(model.trace.events)} events`, isNumber(model.trace.threads) ? `${integer(model.trace.threads)} thread${model.trace.threads === 1 ? "" : "s"}` : null) : null);
}

// ---- details of the selected heap or configuration -----------------------------

// The document may bring its own command templates, with {spec} for the quoted heap.
function commands(model, spec) {
  const given = isObject(model.data.commands) ? model.data.commands : {};
  const defaults = { replay: "metes replay TRACE --heap {spec}", emit: "metes emit --heap {spec} -o DIR", run: `metes run --heap {spec} -- ${shellLine(model.data.command) || "CMD"}` };
  return Object.entries({ ...defaults, ...given }).filter(([, text]) => typeof text === "string" && text)
    .map(([verb, text]) => [verb, text.replaceAll("{spec}", () => shellWord(spec))]);
}

function detailsView(model) {
  const panel = h("aside", { class: "details", "aria-label": "Details", id: "details" });
  const start = () => (model.chosenHeap ? { heap: model.chosenHeap } : model.configurations?.chosenRow >= 0 ? { row: model.configurations.chosenRow } : null);
  function render() {
    const item = model.selected || start();
    if (!item) { panel.replaceChildren(h("p", { class: "soft" }, "Select a point or a row to see the heap behind it.")); return; }
    const d = describe(model, item);
    const c = model.configurations;
    const reference = start() && describe(model, start());
    const rows = c ? c.columns.map((column, k) => [column.label, column.show(d.values[k]), column.exact(d.values[k]),
      reference && !d.chosen && isNumber(d.values[k]) ? compared(d.values[k], reference.values[k]) : ""]) : [];
    if (d.heap && isNumber(d.heap.cycles_max) && !model.configurations?.columns.some((column) => column.key === "cycles_max")) rows.push(["Maximum cycles", integer(d.heap.cycles_max), "measured, not a bound", ""]);
    if (d.heap && isNumber(d.heap.smallest_arena)) rows.push(["Smallest arena", bytes(d.heap.smallest_arena), exactBytes(d.heap.smallest_arena), model.livePeak ? `${ratio(d.heap.smallest_arena / model.livePeak)} live` : ""]);
    const chosenToml = d.chosen && typeof model.chosen?.toml === "string" ? model.chosen.toml : null;
    const close = model.selected ? h("button", { type: "button", class: "quiet close" }, "Back to the chosen heap") : null;
    close?.addEventListener("click", () => select(model, null));
    panel.replaceChildren(...[
      h("p", { class: "eyebrow" }, model.selected ? "Selected" : "Chosen heap", " ", marks(d)),
      h("h3", {}, breakable(d.title)),
      h("table", { class: "facts" }, h("tbody", {}, rows.map(([name, short, exact, against]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", { title: exact }, short), h("td", { class: "soft" }, against))))),
      reference && !d.chosen && rows.length ? h("p", { class: "hint" }, "Right column: against the chosen heap.") : null,
      d.heap && isObject(d.heap.bounds) && d.heap.bounds.formula ? h("p", { class: "boundline" }, isNumber(d.heap.bounds.heap_bytes) ? [h("b", {}, "Heap bound "), bytes(d.heap.bounds.heap_bytes), " = "] : h("b", {}, "No heap bound: "), h("code", {}, d.heap.bounds.formula), ". ", h("cite", {}, d.heap.bounds.citation || "")) : null,
      d.spec ? [h("h4", {}, "Specification"), code(d.spec)] : h("p", { class: "soft" }, "This configuration’s specification is not in the report; rows of the front always carry theirs."),
      chosenToml ? h("details", { open: true }, h("summary", {}, "heap.toml"), code(chosenToml, { block: true })) : null,
      d.spec ? [h("h4", {}, "Commands"), commands(model, d.spec).map(([verb, text]) => h("div", { class: "command" }, h("span", { class: "soft" }, verb), code(text)))] : null,
      close].flat(2).filter(Boolean));
  }
  model.listeners.add((what) => { if (what === "select") render(); });
  render();
  return panel;
}
