// One node at the look that is shown, and all of them as a table.
// Invariant: a table says of which cycle it is.

function meshNode(mesh, now, pick, seek) {
  const chooser = h("select", { id: "node" }, Array.from({ length: mesh.nodes }, (_, node) => h("option", { value: node }, String(node))));
  chooser.addEventListener("change", () => pick(Number(chooser.value)));
  const state = h("p", { class: "mesh-state", id: "node-state" });
  const bytesOf = h("dl", { class: "facts", id: "node-bytes" });
  const counts = h("tbody", { id: "node-counts" });
  const used = { name: "used", colour: "front", as: "state", of: (look) => mesh.of.used[now.chosen * mesh.looks + look] };
  const chart = timeChart(mesh, now, { title: "Its heap", series: [used], show: bytes, tick: byteTick, binary: true, height: 112, node: () => now.chosen }, seek);
  const row = (name, since, all) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, integer(since)), h("td", {}, integer(all)));

  return { node: h("aside", { class: "mesh-node", "aria-label": "The chosen node" }, h("h3", {}, h("label", {}, "Node ", chooser)), state, bytesOf,
    h("table", { class: "mesh-counts" }, h("caption", {}, "Requests of the chosen node"), h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Its requests"), h("th", { scope: "col" }, "since last look"), h("th", { scope: "col" }, "so\u00a0far"))), counts),
    chart.node),
  follow() {
    const node = nodeAt(mesh, now.chosen, now.look);
    const all = soFar(mesh, now.chosen, now.look);
    chooser.value = String(now.chosen);
    state.classList.toggle("bad", Boolean(node.dead));
    const where = `Column ${integer(node.column + 1)}, row ${integer(node.row + 1)}; `;
    state.textContent = where + (node.dead ? `${deathOf(mesh, now.chosen)}.` : node.held ? "somebody holds its lock." : "its lock is free.");
    bytesOf.replaceChildren(...[["Used, records included", `${bytes(node.used)}, ${percent(node.share)}`, node.used], ["Asked for", bytes(node.live), node.live], ["Free", bytes(node.free), node.free],
      mesh.most.parked ? ["Parked blocks", integer(node.parked)] : null].filter(Boolean).map(([name, value, exact]) => h("div", {}, h("dt", {}, name), h("dd", { title: exact === undefined ? null : exactBytes(exact) }, value))));
    counts.replaceChildren(row("served by its own heap", node.home, all.home), row("served by another", node.away, all.away), row("refused", node.refused, all.refused),
      row("heaps passed over, locked", node.skips, all.skips), row("cycles waited for locks", node.lock_wait, all.lock_wait));
    chart.follow();
  },
  chosen() { chart.set(); } };
}

const MESH_COLUMNS = [["used", "Used", bytes, "bytes of blocks, records included"], ["free", "Free", bytes, "bytes of free blocks"], ["live", "Asked for", bytes, "bytes that programs asked for"], ["parked", "Parked", integer, "blocks freed without the lock"],
  ["home", "At home", integer, "requests served by its own heap"], ["away", "Away", integer, "requests of it that another heap served"], ["refused", "Refused", integer, "requests"], ["skips", "Passed over", integer, "heaps, as somebody held them"], ["lock_wait", "Waited", integer, "cycles for locks"]];
const nodeState = (node) => (node.dead ? "dead" : node.held ? "lock held" : "");

// The look that is shown as a table, behind a disclosure; while the run plays it follows twice a second.
function meshTable(mesh, now, pick) {
  const lead = h("p", { class: "hint", id: "table-cycle" });
  const holder = h("div");
  const box = h("details", { id: "table", class: "mesh-table" }, h("summary", {}, "All nodes at this look, as a table"), lead, holder);
  let [made, at, due] = [null, -1, 0];
  const columns = [{ key: "node", label: "Node", first: true, numeric: true, value: (row) => row.node, cell: (row) => String(row.node) },
    { key: "state", label: "State", value: nodeState, cell: nodeState },
    ...MESH_COLUMNS.filter(([key]) => key !== "parked" || mesh.most.parked).map(([key, label, show, hint]) => ({ key, label, hint, numeric: true, descending: true, bar: key === "used", value: (row) => row[key], cell: (row) => show(row[key]) }))];
  function make() {
    due = 0;
    if (!box.open || at === now.look) return;
    at = now.look;
    const rows = Array.from({ length: mesh.nodes }, (_, node) => nodeAt(mesh, node, at));
    const told = `Cycle ${integer(mesh.cycles[at])}. Counts are since the look before${at ? `, at cycle ${integer(mesh.cycles[at - 1])}` : ""}.`;
    const { key, direction, page } = made?.state ?? { key: "node", direction: 1, page: 0 };
    made = sortableTable(columns, rows, { sort: [key, direction], page: 64, caption: `All nodes. ${told}`, onpick: (row) => pick(row.node), marked: (row) => row.node === now.chosen && "is-selected", dim: (row) => row.dead });
    made.state.page = page;
    made.update();
    lead.textContent = told;
    holder.replaceChildren(made.node);
  }
  box.addEventListener("toggle", make);
  return { node: box, chosen() { at = -1; make(); }, follow() {
    if (!now.playing) { clearTimeout(due); make(); } else if (!due) due = setTimeout(make, 500);
  } };
}
