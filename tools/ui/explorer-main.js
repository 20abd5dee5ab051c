// The explorer's page: its sections in order, and the course of the search.
// Invariant: whatever the data, the reader sees either the section or a sentence saying why not.

function heading(model) {
  const { exploration, frontRows, n } = model;
  const range = (column, rows) => {
    let low = Infinity;
    let high = -Infinity;
    for (const i of rows) { const v = column.values[i]; if (v > 0) { low = Math.min(low, v); high = Math.max(high, v); } }
    return low <= high ? ratio(high / low) : NONE;
  };
  const whole = [];
  for (let i = 0; i < n; i += 1) if (model.status.values[i] === model.complete) whole.push(i);
  const figures = [["Configurations", integer(n), `${integer(whole.length)} replayed to the end`], ["Front", integer(frontRows.length), "beaten by no other"]];
  for (const column of model.metrics.filter((c) => ["footprint", "accesses", "energy_fj", "time_ps"].includes(c.key))) figures.push([column.label, range(column, frontRows), "largest over least, in the front"]);
  const title = typeof exploration.title === "string" && exploration.title ? exploration.title : model.doc.directory;
  return h("header", { class: "verdict" }, h("p", { class: "eyebrow" }, h("b", {}, "Metes"), " ", title),
    h("h1", {}, `${integer(n)} heaps, ${frontRows.length === 1 ? "one" : integer(frontRows.length)} of them unbeaten.`),
    adviceView(model),
    h("dl", { class: "figures" }, figures.map(([t, d, s]) => h("div", {}, h("dt", {}, t), h("dd", {}, d, h("small", {}, s))))));
}

function exploreView(model) {
  if (model.metrics.length === 0) return h("p", { class: "missing" }, "All configurations have equal metrics: there is nothing to compare.");
  const { canvas, controls, legend } = scatterView(model);
  return h("div", {}, filterBar(model),
    h("div", { class: "explorer" }, h("div", { class: "plot" }, controls, canvas,
      h("div", { class: "under-plot" }, h("p", { class: "key" }, [["dot dots", "configuration"], ["dot faint", "filtered out"], ["dot front", "front"]].map(([kind, name]) => h("span", {}, h("i", { class: kind }), name))), legend),
      h("p", { class: "hint" }, h("span", { class: "mouse" }, "Drag a rectangle to keep what lies in it; double-click to keep all. "), model.partial.some(Boolean) ? "Configurations whose replay ended early, because the front beat them, are left out: only lower bounds of theirs are known." : null)),
    detailsPanel(model)),
    h("h3", {}, "All axes"), h("p", { class: "hint mouse" }, "Drag along an axis to keep a range, drag the range to move it, click the axis to drop it."), parallelView(model));
}

// What the folder says of itself: trace, space, options, hierarchy.
function provenanceSection(model) {
  const say = (v) => (v === null || v === undefined ? NONE : typeof v === "object" ? JSON.stringify(v) : isNumber(v) ? integer(v) : String(v));
  const facts = (pairs) => h("dl", { class: "facts" }, pairs.map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, say(v)))));
  const flat = Object.entries(model.exploration).filter(([, v]) => v === null || ["number", "string", "boolean"].includes(typeof v));
  const deep = Object.entries(model.doc.provenance || {}).filter(([, v]) => isObject(v) || Array.isArray(v));
  const short = Object.entries(model.doc.provenance || {}).filter(([, v]) => !isObject(v) && !Array.isArray(v));
  const options = ["options", "trace", "space", "hierarchy", "objectives"].map((key) => [key, model.exploration[key]]).filter(([, v]) => isObject(v) || Array.isArray(v));
  const assumptions = list(model.exploration.assumptions).map(String);
  return h("div", {}, assumptions.length ? h("ol", { class: "assumptions" }, assumptions.map((a) => h("li", {}, a))) : null,
    model.fixed.length ? [h("h3", {}, "The same in all configurations"), h("dl", { class: "facts" }, model.fixed.map((column) => h("div", {}, h("dt", {}, column.label), h("dd", {}, column.show(column.values[0])))))] : null,
    h("h3", {}, "Exploration"), facts([...flat, ...short].map(([k, v]) => [sayKey(k.replace(/^metes\./, "").replace(/\./g, " ")), v])),
    [...options, ...deep].map(([k, v]) => h("details", {}, h("summary", {}, sayKey(k.replace(/^metes\./, ""))), code(typeof v === "string" ? v : JSON.stringify(v, null, 1), { block: true }))));
}

function hypervolumeView(model) {
  const points = list(model.exploration.hypervolume).filter((p) => isObject(p) && isNumber(p.evaluations) && isNumber(p.hypervolume)).sort((a, b) => a.evaluations - b.evaluations);
  if (points.length < 2) return h("p", { class: "missing" }, "The folder holds no course of the hypervolume: “hypervolume” in exploration.json has fewer than two points.");
  const final = points[points.length - 1];
  const first = points.find((p) => p.hypervolume >= 0.99 * final.hypervolume);
  const wide = points[0].evaluations > 0 && final.evaluations / points[0].evaluations > 50;
  return h("div", {}, plot({ label: "Hypervolume over evaluations", reads: "evaluation", height: 320,
    series: [{ name: "hypervolume", as: "step", colour: "front", width: 2, dotted: points.length <= 80, on: true, points: points.map((p) => [p.evaluations, p.hypervolume]) }],
    x: { title: "evaluations", log: wide }, y: { title: "hypervolume", show: (v) => v.toPrecision(6), tick: plainTick } }).node,
  h("p", { class: "hint" }, `${integer(final.evaluations)} evaluations; 99 % of the final hypervolume after ${first ? integer(first.evaluations) : NONE}.`));
}

function page(model) {
  const parts = [
    ["explore", "Explore", null, null, () => exploreView(model)],
    ["table", "Configurations", null, null, () => explorerTable(model)],
    ["compare", "Comparison", null, null, () => compareView(model)],
    ["search", "Course of the search", "Hypervolume: how much of the objectives' space the front found so far beats.", null, () => hypervolumeView(model)],
    ["profile", "What the program asks for", null, model.profile ? null : "The folder holds no profile of the trace.", () => profileView(model)],
    ["provenance", "Provenance", null, null, () => provenanceSection(model)],
  ];
  frame({ title: `${model.doc.directory} · Metes explorer`, heading: heading(model), parts, exports: exportBar(model), note: model.doc.served ? "Served from this machine. " : undefined });
}

start(async () => {
  const document = readDocument({ noun: "explorer", version: EXPLORER_VERSION,
    filled: "“metes report DIR --explorer” fills it; “metes serve DIR” shows it.", again: "Export it again with “metes report DIR --explorer”." });
  const model = await readModel(document);
  page(model);
  // Something to look at: the heap we would take, else the middle of the front.
  const walk = model.scatter ? envelope(model.scatter.x.values, model.scatter.y.values, model.frontRows) : [];
  const first = adviceRow(model) ?? walk[Math.floor(walk.length / 2)];
  if (first !== undefined) select(model, first);
  // For tests: the model, places on the axes, and one step of filtering and drawing.
  window.metes = { model, parallel: model.parallel, step: () => { filter(model); changed(model, "filter"); for (const draw of redraws) draw(); } };
});
