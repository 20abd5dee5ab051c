// Clouds of points: which lie under the pointer, and which no other beats.
// Invariant: 10^5 points cost one pass over typed arrays; no node a point exists.

// The points inside a box (`box` in pixels, `px` and `py` their places) by cells of 16 pixels. `cell[i]` is -1
// for a point outside; `near(x, y, offer)` gives `offer` all points of the cells around a place.
function gridOf(px, py, box, width, height) {
  const n = px.length;
  const across = Math.ceil(width / 16) + 1;
  const down = Math.ceil(height / 16) + 1;
  const cell = new Int32Array(n);
  const start = new Int32Array(across * down + 1);
  for (let i = 0; i < n; i += 1) {
    const inside = px[i] >= box.left - 1 && px[i] <= box.right + 1 && py[i] >= box.top - 1 && py[i] <= box.bottom + 1;
    cell[i] = inside ? Math.floor(py[i] / 16) * across + Math.floor(px[i] / 16) : -1;
    if (inside) start[cell[i] + 1] += 1;
  }
  for (let k = 1; k < start.length; k += 1) start[k] += start[k - 1];
  const fill = start.slice();
  const members = new Int32Array(start[start.length - 1]);
  for (let i = 0; i < n; i += 1) if (cell[i] >= 0) { members[fill[cell[i]]] = i; fill[cell[i]] += 1; }
  const near = (x, y, offer) => {
    const [cx, cy] = [Math.floor(x / 16), Math.floor(y / 16)];
    for (let row = Math.max(0, cy - 1); row <= Math.min(down - 1, cy + 1); row += 1) {
      for (let column = Math.max(0, cx - 1); column <= Math.min(across - 1, cx + 1); column += 1) {
        const k = row * across + column;
        for (let m = start[k]; m < start[k + 1]; m += 1) offer(members[m]);
      }
    }
  };
  return { cell, near };
}

// The line of a front: steps from point to point.
function drawEnvelope(context, px, py, walk, colour) {
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.beginPath();
  walk.forEach((i, k) => {
    if (k === 0) context.moveTo(px[i], py[i]);
    else { context.lineTo(px[i], py[walk[k - 1]]); context.lineTo(px[i], py[i]); }
  });
  context.stroke();
}

// The lower-left envelope in two columns, ordered by x: what the line of the front joins.
function envelope(x, y, candidates) {
  const order = candidates.slice().sort((a, b) => x[a] - x[b] || y[a] - y[b]);
  const out = [];
  let best = Infinity;
  for (const i of order) if (y[i] < best) { out.push(i); best = y[i]; }
  return out;
}

function rgb(colour) {
  const hex = colour.replace("#", "");
  return [0, 2, 4].map((k) => parseInt(hex.slice(k, k + 2), 16) || 0);
}
