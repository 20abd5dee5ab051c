// Who allocates: a flame graph of the calls, sites and functions.
// Invariant: each part shows the same figure, the one that is chosen above the flame graph.

const SITES_BY = [
  { key: "allocations", label: "Allocations", figure: countFigure, show: (n) => `${integer(n)} allocations and resizes`, of: (site) => site.allocations + site.resizes },
  { key: "bytes", label: "Bytes requested", figure: byteFigure, show: bytes, of: (site) => site.bytes },
  { key: "peak", label: "Live at the peak", figure: byteFigure, show: bytes, of: (site) => site.peak_bytes },
  { key: "leaked", label: "Never freed", figure: byteFigure, show: bytes, of: (site) => site.leaked_bytes },
  { key: "temporary", label: "Temporary", figure: countFigure, show: (n) => `${integer(n)} blocks freed at once`, of: (site) => site.temporary },
];

function sitesHeading(data) {
  return h("header", { class: "verdict" },
    h("p", { class: "eyebrow" }, h("b", {}, "Metes"), " sites"),
    h("h1", {}, "Who allocates in ", h("code", {}, String(data.command || "a program")), "."),
    data.nameless > 0 ? h("p", { class: "lead" }, `${integer(data.nameless)} of ${integer(data.calls)} calls have no name.`) : null,
    h("dl", { class: "figures" },
      figureCell("Live at the peak", byteFigure(data.peak_live)),
      figureCell("Allocations", countFigure(data.allocations), `and ${integer(data.resizes)} resizes`),
      figureCell("Bytes requested", byteFigure(data.bytes)),
      figureCell("Never freed", byteFigure(data.leaked)),
      figureCell("Call stacks", countFigure(data.all_sites), `of ${integer(data.events)} events`)));
}

function sitesTable(data) {
  const lifetime = (n) => (isNumber(n) ? (data.timed ? seconds(n / 1e9) : `${integer(n)} events`) : NONE);
  const number = (key, label, value, cell, hint) => ({ key, label, numeric: true, descending: true, value, cell, hint });
  const stack = (site) => {
    const calls = list(site.calls).map(String);
    if (calls.length === 0) return h("span", { class: "soft" }, "stack not known");
    return h("details", { class: "stack" }, h("summary", {}, h("code", {}, breakable(calls[0])), calls[1] ? h("small", { class: "soft" }, " ← ", calls[1]) : null), h("ol", {}, calls.map((call) => h("li", {}, h("code", {}, breakable(call))))));
  };
  const sites = list(data.sites).filter(isObject);
  return sortableTable([
    { key: "calls", label: "Stack, the innermost call first", first: true, value: (site) => list(site.calls)[0] ?? null, cell: stack },
    number("allocations", "Allocations", (site) => site.allocations, (site) => countFigure(site.allocations)),
    number("resizes", "Resizes", (site) => site.resizes, (site) => countFigure(site.resizes)),
    number("bytes", "Bytes", (site) => site.bytes, (site) => byteFigure(site.bytes)),
    { ...number("peak", "At the peak", (site) => site.peak_bytes, (site) => byteFigure(site.peak_bytes)), bar: true },
    ...(sites.some((site) => isNumber(site.waste)) ? [number("waste", "Waste", (site) => site.waste, (site) => byteFigure(site.waste), "what blocks take beyond their bytes at the peak, on the heap")] : []),
    number("leaked", "Never freed", (site) => site.leaked_bytes, (site) => byteFigure(site.leaked_bytes)),
    number("temporary", "Temporary", (site) => site.temporary, (site) => countFigure(site.temporary), "blocks freed before their thread asked for anything else"),
    number("median", "Lifetime", (site) => site.lifetime?.median ?? null, (site) => lifetime(site.lifetime?.median), "median of the blocks that were freed"),
    number("most", "Longest", (site) => site.lifetime?.most ?? null, (site) => lifetime(site.lifetime?.most)),
  ], sites, { sort: [["allocations", "bytes", "peak", "leaked", "temporary"].includes(data.by) ? data.by : "peak", -1], page: 25, caption: "Sites", class: "findings", empty: "There is no site." }).node;
}

function functionsTable(data, by) {
  const rows = list(list(data.functions)[by]).filter(isObject);
  const { figure } = SITES_BY[by];
  const number = (key, label, hint) => ({ key, label, numeric: true, descending: true, value: (row) => row[key], cell: (row) => figure(row[key]), hint });
  return sortableTable([
    { key: "function", label: "Function", first: true, value: (row) => row.function, cell: (row) => h("code", {}, breakable(row.function)) },
    { ...number("all", "With what it calls", "over all stacks that the function is in"), bar: true },
    number("own", "Itself", "over the stacks in which it is the innermost"),
    { key: "module", label: "Module", value: (row) => row.module, cell: (row) => breakable(String(row.module ?? "").split("/").pop()) },
  ], rows, { sort: ["all", -1], page: 15, caption: "Functions", class: "findings", empty: "There is no function." }).node;
}

function sitesPage(data) {
  const nodes = flameTree(data);
  const first = Math.max(0, SITES_BY.findIndex((by) => by.key === data.by));
  const graph = nodes.length ? flameGraph(nodes, first, SITES_BY[first].show) : null;
  const functionsPlace = h("div", {});
  const buttons = SITES_BY.map((by, k) => h("button", { type: "button", "aria-pressed": String(k === first), onclick: () => choose(k) }, h("i", { class: "swatch" }), by.label));
  function choose(k) {
    buttons.forEach((button, own) => button.setAttribute("aria-pressed", String(own === k)));
    graph?.figure(k, SITES_BY[k].show);
    functionsPlace.replaceChildren(functionsTable(data, k));
  }
  functionsPlace.append(functionsTable(data, first));
  const left = isNumber(data.left_out) && data.left_out > 0 ? ` ${integer(data.left_out)} calls are too little to be seen and are left out.` : "";
  frame({
    title: "Who allocates · Metes",
    heading: sitesHeading(data),
    parts: [
      ["flames", "Calls", `What each call asked for, with all that it calls, the outermost at the top. A click makes a call as wide as the page.${left}`, graph ? null : "No call stack was recorded.", () => [h("div", { class: "controls legend", role: "group", "aria-label": "Figure" }, buttons), graph.node].reduce((box, node) => { box.append(node); return box; }, h("div", {}))],
      ["sites", "Sites", "Call stacks from which blocks were requested. A block is of the stack that gave it its present size.", null, () => sitesTable(data)],
      ["functions", "Functions", "Each counted once a stack, however often it is in it.", null, () => functionsPlace],
    ],
    exports: h("div", { class: "exports", role: "group", "aria-label": "Export" }, [
      ["Sites, CSV", "export-sites", () => download("sites.csv", "text/csv", csv([["site", "allocations", "resizes", "bytes", "peak_bytes", "leaked_bytes", "temporary", "stack"], ...list(data.sites).filter(isObject).map((site) => [site.site, site.allocations, site.resizes, site.bytes, site.peak_bytes, site.leaked_bytes, site.temporary, list(site.calls).join(" < ")])]))],
      ["Everything, JSON", "export-json", () => download("sites.json", "application/json", JSON.stringify(data, null, 1))],
      ["Print", "print", () => window.print()],
    ].map(([label, id, act]) => h("button", { type: "button", id, onclick: act }, label))),
  });
}

start(() => sitesPage(readDocument({ noun: "page of sites", version: 2, filled: "“metes sites TRACE -o FILE.html” fills it.", again: "Run the command again." })));
