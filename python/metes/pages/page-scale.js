// Axes: a scale maps values to 0..1 and back, linear or logarithmic, and names its ticks.
// Invariant: to(from(t)) = t on the whole domain; a logarithmic scale never sees a value <= 0.

function makeScale(low, high, logarithmic, binary) {
  const log = logarithmic && low > 0;
  let a = log ? Math.log2(low) : low;
  let b = log ? Math.log2(high) : high;
  if (!(b > a)) { // a single value: give it room, but no negative sizes
    const pad = log ? 0.5 : Math.max(1, Math.abs(a) * 0.1);
    a = log || a < 0 ? a - pad : Math.max(0, a - pad);
    b += pad;
  }
  return {
    log,
    to: (v) => ((log ? Math.log2(Math.max(v, Number.MIN_VALUE)) : v) - a) / (b - a),
    from: (t) => { const v = a + t * (b - a); return log ? 2 ** v : v; },
    ticks: (wanted) => (log ? logTicks(2 ** a, 2 ** b, wanted, binary) : linearTicks(a, b, wanted, binary)),
  };
}

function linearTicks(low, high, wanted, binary) {
  const raw = (high - low) / Math.max(1, wanted);
  let step;
  if (binary) step = 2 ** Math.ceil(Math.log2(raw));
  else {
    const decade = 10 ** Math.floor(Math.log10(raw));
    step = [1, 2, 5, 10].find((m) => m * decade >= raw) * decade;
  }
  const out = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high * (1 + 1e-12) && out.length < 50; k += 1) out.push(k * step || 0);
  return out;
}

function logTicks(low, high, wanted, binary) {
  const all = [];
  if (binary) {
    const first = Math.ceil(Math.log2(low) - 1e-9);
    const last = Math.floor(Math.log2(high) + 1e-9);
    const step = Math.max(1, Math.ceil((last - first + 1) / wanted));
    for (let e = first; e <= last; e += step) all.push(2 ** e);
  } else {
    const first = Math.floor(Math.log10(low));
    const last = Math.ceil(Math.log10(high));
    const step = Math.max(1, Math.ceil((last - first) / wanted));
    const marks = (last - first) * 3 <= wanted + 2 ? [1, 2, 5] : [1];
    for (let e = first; e <= last; e += step) for (const m of marks) all.push(m * 10 ** e);
  }
  const inside = all.filter((v) => v >= low * (1 - 1e-9) && v <= high * (1 + 1e-9));
  // Less than an octave or decade: powers say nothing, so fall back to even steps.
  return inside.length >= 2 ? inside : linearTicks(low, high, wanted, binary);
}

// Draw both axes of a plot. `box` = {left, top, right, bottom} in CSS pixels.
function drawAxes(context, box, x, y, ink) {
  context.font = `11.5px ${ink.sans}`;
  context.lineWidth = 1;
  context.strokeStyle = ink.line;
  context.fillStyle = ink.soft;
  const wide = box.right - box.left;
  const tall = box.bottom - box.top;
  context.textAlign = "center";
  context.textBaseline = "top";
  let reach = -Infinity;
  for (const value of x.scale.ticks(Math.max(2, Math.floor(wide / 84)))) {
    const px = box.left + x.scale.to(value) * wide;
    line(context, px, box.top, px, box.bottom);
    const text = x.show(value);
    const half = context.measureText(text).width / 2;
    const at = Math.min(px, box.right - half + 12);
    if (at - half < reach + 8) continue; // a label that would touch its neighbour is left out
    context.fillText(text, at, box.bottom + 8);
    reach = at + half;
  }
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const value of y.scale.ticks(Math.max(2, Math.floor(tall / 52)))) {
    const py = box.bottom - y.scale.to(value) * tall;
    line(context, box.left, py, box.right, py);
    context.fillText(y.show(value), box.left - 8, py);
  }
  context.fillStyle = ink.ink;
  context.textBaseline = "bottom";
  context.textAlign = "right";
  context.fillText(x.title, box.right, box.bottom + 42);
  context.textAlign = "left";
  context.fillText(y.title, 2, box.top - 10);
}

function line(context, x0, y0, x1, y1) {
  context.beginPath();
  context.moveTo(Math.round(x0) + 0.5, Math.round(y0) + 0.5);
  context.lineTo(Math.round(x1) + 0.5, Math.round(y1) + 0.5);
  context.stroke();
}
