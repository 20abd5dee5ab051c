// The explorer's page: sections in order, each drawn on its own so that one bad part spares the rest.
// Invariant: whatever the data, the reader sees either the section or a sentence saying why not.

function part(id, title, lead, build) {
  let body;
  try { body = build(); } catch (error) {
    body = h("p", { class: "missing" }, `This part could not be drawn: ${error.message}. The data behind it may be damaged; explore again.`);
  }
  return h("section", { id, "aria-labelledby": `${id}-title` }, h("div", { class: "section-head" }, h("h2", { id: `${id}-title` }, title), lead ? h("p", { class: "lead" }, lead) : null), body);
}

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
    h("dl", { class: "figures" }, figures.map(([t, d, s]) => h("div", {}, h("dt", {}, t), h("dd", {}, d, h("small", {}, s))))));
}

function exploreView(model) {
  if (model.metrics.length === 0) return h("p", { class: "missing" }, "All configurations have equal metrics: there is nothing to compare.");
  const { canvas, controls, legend } = scatterView(model);
  return h("div", {}, filterBar(model),
    h("div", { class: "explorer" }, h("div", { class: "plot" }, controls, canvas,
      h("div", { class: "under-plot" }, h("p", { class: "key" }, [["dot dots", "configuration"], ["dot faint", "filtered out"], ["dot front", "front"]].map(([kind, name]) => h("span", {}, h("i", { class: kind }), name))), legend),
      h("p", { class: "hint" }, h("span", { class: "mouse" }, "Drag a rectangle to keep what lies in it; double-click to keep all. "), "Configurations that were beaten before their end lie at their lower bounds.")),
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

function page(model) {
  const parts = [
    ["explore", "Explore", null, () => exploreView(model)],
    ["table", "Configurations", null, () => explorerTable(model)],
    ["compare", "Comparison", null, () => compareView(model)],
    ["search", "Course of the search", "Hypervolume: how much of the objectives' space the front found so far beats.", () => hypervolumeView(model)],
    ["profile", "What the program asks for", null, () => (model.profile ? profileView(model) : h("p", { class: "missing" }, "The folder holds no profile of the trace."))],
    ["provenance", "Provenance", null, () => provenanceSection(model)],
  ];
  const nav = h("nav", { "aria-label": "Sections" }, h("a", { class: "home", href: "#page" }, "Metes"), h("div", { class: "links" }, parts.map(([id, title]) => h("a", { href: `#${id}` }, title))), themeButton());
  document.body.insertBefore(nav, document.getElementById("page"));
  document.getElementById("page").replaceChildren(heading(model), ...parts.map(([id, title, lead, build]) => part(id, title, lead, build)),
    h("footer", {}, exportBar(model), h("p", { class: "soft" }, model.doc.served ? "Served from this machine. Bytes are exact; KiB, MiB and GiB are powers of 1024; hover a figure for its exact value." : "One file, no network. Bytes are exact; KiB, MiB and GiB are powers of 1024; hover a figure for its exact value.")));
  document.title = `${model.doc.directory} · Metes explorer`;
}

function fatal(error) {
  const remedy = error instanceof Trouble ? error.remedy : "The data may be damaged. Explore again; if this persists, report it with this file.";
  document.getElementById("page").replaceChildren(h("div", { class: "fatal", role: "alert" }, h("h1", {}, error.message || String(error)), h("p", {}, remedy)));
}

async function start() {
  watchTheme();
  try {
    const model = await readModel(readDocument(document.getElementById("data").textContent));
    document.getElementById("bytes").textContent = "";
    page(model);
    // Something to look at: the middle of the front.
    const walk = model.scatter ? envelope(model.scatter.x.values, model.scatter.y.values, model.frontRows) : [];
    if (walk.length) select(model, walk[Math.floor(walk.length / 2)]);
    const watch = new ResizeObserver(redrawAll);
    for (const canvas of document.querySelectorAll("canvas")) watch.observe(canvas);
    for (const draw of redraws) draw();
    // For tests: the model, places on the axes, and one step of filtering and drawing.
    window.metes = { model, parallel: model.parallel, step: () => { filter(model); changed(model, "filter"); for (const draw of redraws) draw(); } };
    document.documentElement.dataset.ready = "yes";
  } catch (error) {
    fatal(error);
    document.documentElement.dataset.ready = "no";
  }
}
start();
