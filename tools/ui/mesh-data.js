// What a mesh did, look by look: columns as typed arrays, and their sums over all nodes.
// Invariant: a state is that at a look's cycle, a count what happened since the look before; nothing lies between.

const MESH_AGAIN = "Have the page written again from its recording.";
const MESH_STATES = ["live", "used", "free", "parked", "held", "dead"];
const MESH_COUNTS = ["home", "away", "refused", "skips", "lock_wait"];
const most = (values) => values.reduce((m, v) => Math.max(m, v), 0);
const isCount = (n) => Number.isSafeInteger(n) && n >= 0;

async function readMesh(doc) {
  const { columns, rows, looks } = doc;
  if (![columns, rows, looks].every(isCount)) throw new Trouble("The data does not say how large the mesh is.", MESH_AGAIN);
  const nodes = columns * rows;
  const links = list(doc.links).filter((link) => list(link).every((node) => isCount(node) && node < nodes) && link.length === 2);
  if (links.length !== list(doc.links).length) throw new Trouble("A link leads from or to a node that is not there.", MESH_AGAIN);
  const buffer = await unpack("bytes", MESH_AGAIN);
  const column = (place, n) => unpackWords(place, buffer, n, MESH_AGAIN);
  const each = (keys, places) => Object.fromEntries(keys.map((key) => [key, column(places?.[key], nodes * looks)]));
  const mesh = { title: String(doc.title ?? ""), manager: String(doc.manager ?? ""), columns, rows, nodes, looks, links, heap: doc.heap,
    together: doc.together ?? 1, every: (doc.every ?? 0) * (doc.together ?? 1), cycles: column(doc.cycles, looks),
    of: { ...each(MESH_STATES, doc.states), ...each(MESH_COUNTS, doc.counts) }, packets: column(doc.packets, links.length * looks) };
  mesh.linkOf = new Map(links.map(([from, to], number) => [from * nodes + to, number]));
  mesh.diedAt = Array.from({ length: nodes }, (_, node) => mesh.of.dead.subarray(node * looks, (node + 1) * looks).indexOf(1));
  mesh.deaths = mesh.diedAt.map((look, node) => ({ look, node })).filter(({ look }) => look >= 0).sort((a, b) => a.look - b.look);
  mesh.most = { packets: most(mesh.packets), away: most(mesh.of.away), parked: most(mesh.of.parked) };
  mesh.totals = totalsOf(mesh);
  return mesh;
}

// Sums over all nodes, look by look. Bytes and blocks of a dead node's heap are out of reach: they are not in them.
function totalsOf(mesh) {
  const { looks, nodes } = mesh;
  const sum = (key, living) => {
    const totals = new Float64Array(looks);
    for (let node = 0; node < nodes; node += 1) {
      const end = living && mesh.diedAt[node] >= 0 ? mesh.diedAt[node] : looks;
      for (let look = 0; look < end; look += 1) totals[look] += mesh.of[key][node * looks + look];
    }
    return totals;
  };
  const packets = new Float64Array(looks);
  mesh.packets.forEach((value, i) => { packets[i % looks] += value; });
  return { live: sum("live", true), parked: sum("parked", true), held: sum("held", true), home: sum("home"), away: sum("away"), refused: sum("refused"), skips: sum("skips"), lock_wait: sum("lock_wait"), packets };
}

// A node at a look.
function nodeAt(mesh, node, look) {
  const at = node * mesh.looks + look;
  const said = Object.fromEntries([...MESH_STATES, ...MESH_COUNTS].map((key) => [key, mesh.of[key][at]]));
  const whole = said.used + said.free;
  return { node, column: node % mesh.columns, row: Math.floor(node / mesh.columns), whole, share: whole ? said.used / whole : 0, ...said };
}

// What a node has done up to a look.
function soFar(mesh, node, look) {
  const sum = (values) => { let all = 0; for (let k = 0; k <= look; k += 1) all += values[node * mesh.looks + k]; return all; };
  return Object.fromEntries(MESH_COUNTS.map((key) => [key, sum(mesh.of[key])]));
}

// The look whose time a cycle lies in. O(log looks).
function lookOf(mesh, cycle) {
  let [a, b] = [0, mesh.looks - 1];
  while (a < b) { const m = (a + b) >> 1; if (mesh.cycles[m] < cycle) a = m + 1; else b = m; }
  return a;
}

const percent = (share) => `${Math.round(share * 100)}\u00a0%`;
const cyclesOf = (n) => `${integer(n)}\u00a0cycle${n === 1 ? "" : "s"}`;
// When a node died, as far as the looks tell.
function deathOf(mesh, node) {
  const look = mesh.diedAt[node];
  if (look < 0) return null;
  return look ? `died between cycles ${integer(mesh.cycles[look - 1])} and ${integer(mesh.cycles[look])}` : `died before cycle ${integer(mesh.cycles[0])}`;
}
