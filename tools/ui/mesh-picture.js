// The mesh as a picture: a square a node, filled as its heap is, and two lines between neighbours, one a direction.
// Invariant: what is painted is of one look; each mark differs from the others in form, not in colour alone.

// Squares of fewer pixels have no words, and plain marks.
const SMALL = 30;

// Paints a node into a square. `node`: {number, share, parked, away (shares of the most), refused, held, dead, chosen}.
function paintNode(context, x, y, size, node, ink) {
  const small = size < SMALL;
  const inset = small ? 0.5 : 1;
  context.fillStyle = ink.panel;
  context.fillRect(x, y, size, size);
  const level = node.share * size;
  context.globalAlpha = node.dead ? 0.5 : small ? 0.85 : 0.42;
  context.fillStyle = node.dead ? ink.faint : ink.front;
  context.fillRect(x, y + size - level, size, level);
  context.globalAlpha = 1;
  if (!small && level > 2 && !node.dead) context.fillRect(x, y + size - level, size, 2);
  if (node.parked > 0 && !node.dead) {
    context.fillStyle = ink.of("series-3");
    const wide = Math.max(2, size * 0.09);
    const tall = Math.max(2, node.parked * size);
    context.fillRect(x, y + size - tall, wide, tall);
  }
  context.strokeStyle = node.held && !node.dead ? ink.chosen : ink.dots;
  context.lineWidth = node.held && !node.dead ? Math.max(2, size * 0.06) : small ? 0.5 : 1;
  const half = context.lineWidth / 2 - inset * 0.5;
  context.strokeRect(x - half, y - half, size + 2 * half, size + 2 * half);
  if (node.dead) paintCross(context, x, y, size, ink);
  else {
    if (node.away > 0) paintAway(context, x, y, size, node.away, ink);
    if (node.refused > 0) paintRefused(context, x, y, size, ink);
  }
  if (node.chosen) {
    const far = Math.max(2.5, size * 0.07);
    context.strokeStyle = ink.ink;
    context.lineWidth = small ? 1.25 : 1.5;
    context.setLineDash(small ? [] : [5, 3]);
    context.strokeRect(x - far, y - far, size + 2 * far, size + 2 * far);
    context.setLineDash([]);
  }
  if (size >= 44 && node.number !== undefined) paintWords(context, x, y, size, node, ink);
}

function paintCross(context, x, y, size, ink) {
  const edge = size * (size >= 44 ? 0.3 : 0.16); // clear of the number
  context.strokeStyle = ink.of("bad");
  context.lineWidth = Math.max(1.5, size * 0.07);
  context.lineCap = "round";
  context.beginPath();
  context.moveTo(x + edge, y + edge);
  context.lineTo(x + size - edge, y + size - edge);
  context.moveTo(x + size - edge, y + edge);
  context.lineTo(x + edge, y + size - edge);
  context.stroke();
  context.lineCap = "butt";
}

// A disc in the upper right corner, by its area as large as the share.
function paintAway(context, x, y, size, share, ink) {
  const radius = Math.max(size < SMALL ? 1.5 : 3, size * 0.15 * Math.sqrt(share));
  dot(context, x + size - size * 0.2, y + size * 0.2, radius, ink.of("series-4"), ink.panel);
}

// A triangle in the lower right corner.
function paintRefused(context, x, y, size, ink) {
  const leg = Math.max(4, size * 0.3);
  context.fillStyle = ink.of("bad");
  context.beginPath();
  context.moveTo(x + size, y + size);
  context.lineTo(x + size - leg, y + size);
  context.lineTo(x + size, y + size - leg);
  context.closePath();
  context.fill();
}

function paintWords(context, x, y, size, node, ink) {
  context.fillStyle = node.dead ? ink.soft : ink.ink;
  context.textAlign = "left";
  context.textBaseline = "bottom";
  context.font = `600 ${Math.min(14, size * 0.2)}px ${ink.sans}`;
  // Below, where the level of a heap that fills is seldom.
  context.fillText(String(node.number), x + size * 0.13, y + size * 0.93);
  if (size < 64 || node.dead) return;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.font = `${Math.min(17, size * 0.19)}px ${ink.sans}`;
  context.fillText(percent(node.share), x + size / 2, y + size * 0.52);
}

// Paints a link from an edge to an edge, on the right-hand side of its way; `share` is that of the most packets.
function paintLink(context, from, to, width, share, ink) {
  const [dx, dy] = [Math.sign(to[0] - from[0]), Math.sign(to[1] - from[1])];
  const beside = Math.max(1, width * 0.62);
  const [x0, y0, x1, y1] = [from[0] - dy * beside, from[1] + dx * beside, to[0] - dy * beside, to[1] + dx * beside];
  context.strokeStyle = context.fillStyle = share > 0 ? ink.named : ink.faint;
  context.globalAlpha = share > 0 ? 0.45 + 0.55 * share : 1;
  context.lineWidth = share > 0 ? 0.75 + Math.sqrt(share) * Math.max(0.5, width - 0.75) : 0.75;
  const head = share > 0 && Math.abs(x1 - x0) + Math.abs(y1 - y0) >= 16 ? context.lineWidth * 0.9 + 2 : 0;
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1 - dx * head, y1 - dy * head);
  context.stroke();
  if (head) {
    const wing = context.lineWidth / 2 + 1.5;
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x1 - dx * head - dy * wing, y1 - dy * head + dx * wing);
    context.lineTo(x1 - dx * head + dy * wing, y1 - dy * head - dx * wing);
    context.closePath();
    context.fill();
  }
  context.globalAlpha = 1;
}

// The picture. `now`: {look, chosen}; `pick(node)` is called with a node that was clicked.
function meshPicture(mesh, now, pick) {
  const canvas = h("canvas", { id: "mesh", class: "mesh-picture", role: "img" });
  const grid = { pitch: 1, cell: 1, left: 0 };
  const middle = (node) => [grid.left + (node % mesh.columns + 0.5) * grid.pitch, (Math.floor(node / mesh.columns) + 0.5) * grid.pitch];

  function fit() {
    const width = canvas.clientWidth;
    const room = Math.max(320, Math.min(720, innerHeight - 190));
    grid.pitch = Math.max(4, Math.min(width / mesh.columns, Math.max(room / mesh.rows, 14), 176));
    grid.cell = grid.pitch * (grid.pitch < 30 ? 0.74 : 0.68);
    grid.left = (width - grid.pitch * mesh.columns) / 2;
    const height = `${Math.ceil(grid.pitch * mesh.rows)}px`;
    if (canvas.style.height !== height) canvas.style.height = height;
  }

  function paint() {
    if (!canvas.clientWidth) return;
    fit();
    const { context } = prepare(canvas);
    const ink = colours();
    const { looks, links, packets } = mesh;
    const edge = grid.cell / 2 + Math.max(1, grid.cell * 0.08);
    const width = Math.min(9, Math.max(1, grid.cell * 0.13));
    links.forEach(([from, to], number) => {
      const [a, b] = [middle(from), middle(to)];
      const way = [Math.sign(b[0] - a[0]) * edge, Math.sign(b[1] - a[1]) * edge];
      const value = packets[number * looks + now.look];
      paintLink(context, [a[0] + way[0], a[1] + way[1]], [b[0] - way[0], b[1] - way[1]], width, mesh.most.packets ? value / mesh.most.packets : 0, ink);
    });
    for (let node = 0; node < mesh.nodes; node += 1) {
      const said = nodeAt(mesh, node, now.look);
      const [x, y] = middle(node);
      paintNode(context, x - grid.cell / 2, y - grid.cell / 2, grid.cell, { number: node, share: said.share, refused: said.refused, held: said.held, dead: said.dead, chosen: node === now.chosen,
        parked: mesh.most.parked ? said.parked / mesh.most.parked : 0, away: mesh.most.away ? said.away / mesh.most.away : 0 }, ink);
    }
  }

  // What lies at a place: {node}, {between: [node, node]} or nothing.
  function under(x, y) {
    const [across, down] = [(x - grid.left) / grid.pitch, y / grid.pitch];
    const [column, row] = [Math.floor(across), Math.floor(down)];
    if (column < 0 || column >= mesh.columns || row < 0 || row >= mesh.rows) return null;
    const node = row * mesh.columns + column;
    const half = grid.cell / grid.pitch / 2;
    const [dx, dy] = [across - column - 0.5, down - row - 0.5];
    if (Math.abs(dx) <= half && Math.abs(dy) <= half) return { node };
    const other = Math.abs(dx) > Math.abs(dy) ? [column + Math.sign(dx), row] : [column, row + Math.sign(dy)];
    if (other[0] < 0 || other[0] >= mesh.columns || other[1] < 0 || other[1] >= mesh.rows) return null;
    return { between: [node, other[1] * mesh.columns + other[0]].sort((a, b) => a - b) };
  }

  function tell(event) {
    const found = under(event.offsetX, event.offsetY);
    canvas.style.cursor = found?.node !== undefined ? "pointer" : "default";
    if (!found) { hideTip(); return; }
    showTip(event.clientX, event.clientY, found.between ? linkTip(mesh, now.look, found.between) : nodeTip(mesh, now.look, found.node));
  }
  let pointed = null;
  canvas.addEventListener("pointermove", (event) => { pointed = event; tell(event); });
  canvas.addEventListener("pointerleave", () => { pointed = null; hideTip(); });
  canvas.addEventListener("click", (event) => { const found = under(event.offsetX, event.offsetY); if (found?.node !== undefined) pick(found.node); });
  redraws.add(paint);
  return { canvas, grid, middle, describe() {
    const { look } = now;
    const dead = mesh.deaths.filter((death) => death.look <= look).map(({ node }) => node);
    canvas.setAttribute("aria-label", `The mesh at cycle ${integer(mesh.cycles[look])}: ${bytes(mesh.totals.live[look])} in use, ${integer(mesh.totals.held[look])} locks held, ${dead.length ? `dead: ${dead.join(", ")}` : "all nodes alive"}. The table of this look says all of it.`);
    if (pointed) tell(pointed);
  } };
}

function nodeTip(mesh, look, number) {
  const node = nodeAt(mesh, number, look);
  if (node.dead) return [[`node ${number}`, "tip-title"], [deathOf(mesh, number), "tip-row"]];
  return [[`node ${number}`, "tip-title"], [`${bytes(node.used)} of ${bytes(node.whole)} used, ${percent(node.share)}${node.held ? "; its lock is held" : ""}`, "tip-row"],
    [`served here ${integer(node.home)}, by others ${integer(node.away)}, refused ${integer(node.refused)}${node.parked ? `; ${integer(node.parked)} blocks parked` : ""}`, "tip-row"]];
}
function linkTip(mesh, look, [a, b]) {
  const packets = (from, to) => { const link = mesh.linkOf.get(from * mesh.nodes + to); return link === undefined ? NONE : integer(mesh.packets[link * mesh.looks + look]); };
  return [[`nodes ${a} and ${b}`, "tip-title"], [`packets ${a} → ${b}: ${packets(a, b)}; ${b} → ${a}: ${packets(b, a)}`, "tip-row"]];
}

// The legend: each mark as the picture has it, in plain words. Small squares have a stronger fill than large ones.
function meshLegend(mesh, grid) {
  const sample = (node) => (context, width, height, ink) => {
    const size = grid.cell < SMALL ? SMALL - 2 : SMALL;
    paintNode(context, (width - size) / 2, (height - size) / 2, size, node, ink);
  };
  const entries = [
    ["A node; filled as its heap is: bytes of blocks, records included", sample({ share: 0.6 })],
    ["Its heap’s lock is held at this moment", sample({ share: 0.6, held: 1 })],
    mesh.most.parked ? ["Blocks freed without the lock, waiting: parked; higher is more", sample({ share: 0.6, parked: 0.5 })] : null,
    ["Other heaps served requests of it; larger is more", sample({ share: 0.9, away: 1 })],
    ["A request of it was refused", sample({ share: 0.9, refused: 1 })],
    ["It has died", sample({ share: 0.6, dead: 1 })],
    ["Packets on a link, by direction; wider is more", (context, width, height, ink) => { paintLink(context, [3, height / 2], [width - 3, height / 2], 6, 1, ink); paintLink(context, [width - 3, height / 2], [3, height / 2], 6, 0.08, ink); }],
  ];
  return h("ul", { class: "mesh-legend", "aria-label": "Legend" }, entries.filter(Boolean).map(([text, paint]) => {
    const canvas = h("canvas", { class: "mesh-sample", "aria-hidden": "true" });
    pictured(canvas, paint);
    return h("li", {}, canvas, h("span", {}, text));
  }));
}
