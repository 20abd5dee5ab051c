// The page of a mesh as it ran: the picture, the node that is chosen, charts, a table.
// Invariant: everything but the heading is of the look that is shown, or says of which it is.

const MESH_WORDS = { noun: "mesh’s page", version: 1, filled: "“metes mesh simulate -o FILE.html” fills it.", again: MESH_AGAIN };
const sumOf = (values) => values.reduce((sum, v) => sum + v, 0);

function meshHeading(mesh) {
  const { totals, looks } = mesh;
  const end = looks ? mesh.cycles[looks - 1] : 0;
  const served = sumOf(totals.home) + sumOf(totals.away);
  const peak = most(totals.live);
  const [first, ...others] = mesh.deaths;
  const figures = [
    ["Served at home", countFigure(sumOf(totals.home)), `requests, of ${integer(served)} served`],
    ["Served by others", countFigure(sumOf(totals.away)), served ? `${percent(sumOf(totals.away) / served)} of those served` : "no request was served"],
    ["Refused", countFigure(sumOf(totals.refused)), "requests", sumOf(totals.refused) ? "bad" : null],
    ["Most in use", byteFigure(peak), ["asked for, at a look; heaps have ", byteFigure(mesh.heap * mesh.nodes)]],
    ["Waited for locks", countFigure(sumOf(totals.lock_wait)), "cycles, of all nodes"],
    ["Died", first ? `node ${first.node}${others.length ? ` and ${integer(others.length)} more` : ""}` : "none", first ? `seen at cycle ${integer(mesh.cycles[first.look])}` : "of the nodes", first ? "bad" : null],
  ];
  return h("header", { class: "verdict" }, h("p", { class: "eyebrow" }, h("b", {}, "Mesh"), ` ${mesh.columns} × ${mesh.rows} nodes, managed by `, h("code", { id: "manager" }, mesh.manager)),
    h("h1", {}, mesh.title || "A mesh as it ran"),
    h("p", { class: "lead" }, `${integer(mesh.nodes)} node${mesh.nodes === 1 ? "" : "s"}, each with a heap of ${bytes(mesh.heap)}, looked at every ${cyclesOf(mesh.every)} until cycle ${integer(end)}.${mesh.together > 1 ? ` Of the recording’s looks this page holds every ${integer(mesh.together)}th; counts are whole.` : ""}`),
    h("dl", { class: "figures" }, figures.map((cell) => figureCell(...cell))));
}

function meshCharts(mesh, now, seek) {
  const { totals } = mesh;
  const places = Math.max(1, Math.ceil(mesh.looks / CHART_PLACES));
  const state = (name, key, colour) => ({ name, colour, as: "state", of: (look) => totals[key][look] });
  const counted = (name, key, colour) => ({ name, colour, as: "count", of: (look) => totals[key][look] });
  const charts = [
    { title: "Bytes in use", series: [state("asked for", "live", "front")], show: bytes, tick: byteTick, binary: true },
    { title: "Requests served", series: [counted("at home", "home", "front"), counted("by others", "away", "series-4")], show: integer },
    { title: "Requests refused", series: [counted("refused", "refused", "bad")], show: integer },
    { title: "Waiting for locks", series: [counted("cycles", "lock_wait", "chosen")], show: integer },
    { title: "Packets", series: [counted("over links", "packets", "named")], show: count },
    mesh.most.parked ? { title: "Blocks parked", series: [state("parked", "parked", "series-3")], show: integer }
      : { title: "Locks held", series: [state("held", "held", "chosen")], show: integer },
  ].map((given) => timeChart(mesh, now, given, seek));
  const lead = `Bytes and locks are of living nodes, at a look${places > 1 ? ` (the most of ${places})` : ""}; all else is counted from look to look${places > 1 ? `, ${places} together` : ""}. Across are cycles; click into a chart to go there. Dashed lines are deaths.`;
  return { follow: () => charts.forEach((chart) => chart.follow()), node: h("div", {}, h("p", { class: "hint" }, lead), h("div", { class: "mesh-charts" }, charts.map((chart) => chart.node))) };
}

const MESH_CSV = ["cycle", "node", ...MESH_STATES, ...MESH_COUNTS];
function meshRows(mesh, looks) {
  return csv([MESH_CSV, ...looks.flatMap((look) => Array.from({ length: mesh.nodes }, (_, node) => { const said = nodeAt(mesh, node, look); return [mesh.cycles[look], node, ...MESH_CSV.slice(2).map((key) => said[key])]; }))]);
}

async function meshPage() {
  const mesh = await readMesh(readDocument(MESH_WORDS));
  const none = mesh.looks ? mesh.nodes ? null : "There is no node." : "The recording has no look: nothing was recorded on the way. Record with more than 0 cycles between two looks.";
  const now = { look: 0, playing: false, chosen: mesh.deaths[0]?.node ?? 0 };
  let parts = {};
  const changed = () => { picture.describe(); redrawAll(); for (const part of Object.values(parts)) part.follow(); };
  const pick = (node) => { now.chosen = node; parts.node.chosen(); parts.table.chosen(); changed(); };
  const seek = (look) => player.seek(look);
  let [picture, player] = [null, null];
  if (!none) {
    picture = meshPicture(mesh, now, pick);
    player = meshPlayer(mesh, now, changed);
    parts = { node: meshNode(mesh, now, pick, seek), table: meshTable(mesh, now, pick), charts: meshCharts(mesh, now, seek) };
  }
  frame({ title: `${mesh.title || "Mesh"} · Metes`, heading: meshHeading(mesh),
    parts: [["nodes", "The mesh", null, none, () => h("div", {}, h("div", { class: "mesh-view" }, h("div", {}, picture.canvas, meshLegend(mesh, picture.grid)), parts.node.node), parts.table.node)],
      ["time", "Over time", null, none, () => parts.charts.node]],
    exports: none ? null : h("div", { class: "exports", role: "group", "aria-label": "Export" }, [
      ["This look, CSV", "export-look", () => download("look.csv", "text/csv", meshRows(mesh, [now.look]))],
      ["Every look, CSV", "export-all", () => download("looks.csv", "text/csv", meshRows(mesh, [...mesh.cycles.keys()]))],
    ].map(([label, id, act]) => h("button", { type: "button", id, onclick: act }, label))) });
  if (none) return;
  const first = document.getElementById("nodes");
  first.before(player.node);
  first.querySelector(".mesh-view").after(h("p", { class: "hint mesh-keys" }, KEYS_TOLD, " Click a node for its figures."));
  player.show();
  // For tests: what was recorded, what is shown, where the picture has it.
  window.metes = { mesh, now, picture, seek };
}

start(meshPage);
