// The scatter: two metrics, a third column as colour, the front on top.
// Invariant: 10^5 points cost a pass over typed arrays a frame; no node a point exists.

const PAD = { left: 78, top: 30, right: 18, bottom: 50 };
const FEW = 3000; // up to so many points are drawn as discs, more as pixels
// Ends and middle of the colour scale, dark to bright: readable on both papers.
const RAMP = { light: [[38, 60, 122], [32, 128, 134], [120, 172, 74], [226, 174, 52]], dark: [[88, 110, 214], [50, 160, 170], [134, 196, 92], [246, 208, 96]] };

function rampTable(dark) {
  const stops = dark ? RAMP.dark : RAMP.light;
  return Array.from({ length: 256 }, (_, k) => {
    const t = k / 255 * (stops.length - 1);
    const a = Math.min(stops.length - 2, Math.floor(t));
    return stops[a].map((c, j) => Math.round(c + (stops[a + 1][j] - c) * (t - a)));
  });
}

function scatterView(model) {
  const all = [...model.metrics, ...model.parameters];
  const numeric = all.filter((column) => !column.words);
  const first = (key, other) => model.columns.get(key) && !model.columns.get(key).constant ? model.columns.get(key) : other;
  const view = { x: first("footprint", numeric[0]), y: first("accesses", numeric[1] || numeric[0]), colour: null, log: { x: true, y: true }, bounds: false, hover: null, drag: null, walk: -1 };
  const canvas = h("canvas", { class: "scatter", tabindex: "0", role: "application",
    "aria-label": `Scatter plot of ${integer(model.n)} configurations. Arrow keys walk along the front, Enter selects, C compares, Escape clears.` });
  const cloud = document.createElement("canvas");
  const legend = h("div", { class: "ramp" });
  let layout = null;
  let stale = true; // places
  let repaint = true; // colours
  model.scatter = view;

  const pick = (name, options, none) => {
    const node = h("select", { "aria-label": `${name}`, "data-axis": name }, none ? h("option", { value: "" }, none) : null, options.map((column) => h("option", { value: column.key }, column.label)));
    node.value = view[name]?.key || "";
    node.addEventListener("change", () => { view[name] = model.columns.get(node.value) || null; stale = true; syncLegend(); redrawAll(); });
    return node;
  };
  const axis = (name) => {
    const box = h("input", { type: "checkbox", "data-log": name });
    box.checked = view.log[name];
    box.addEventListener("change", () => { view.log[name] = box.checked; stale = true; redrawAll(); });
    return h("span", { class: "axis" }, h("span", {}, name), pick(name, numeric), h("label", {}, box, "log"));
  };
  const controls = h("div", { class: "controls" }, axis("x"), axis("y"), h("span", { class: "axis" }, "colour", pick("colour", all, "number of points")));

  // Of configurations that were beaten early only lower bounds are known: as points they would lie below the
  // front, which nothing does.
  const beaten = model.status.values.reduce((sum, code) => sum + model.partial[code], 0);
  if (beaten) {
    const box = h("input", { type: "checkbox", "data-bounds": "1" });
    box.addEventListener("change", () => { view.bounds = box.checked; stale = true; redrawAll(); });
    controls.append(h("label", { title: STATUS.beaten }, box, `lower bounds of the ${integer(beaten)} that were not replayed to the end`));
  }
  const drawn = (i) => view.bounds || !model.partial[model.status.values[i]];

  const scaleOf = (name) => {
    const values = view[name].points;
    let low = Infinity;
    let high = -Infinity;
    for (let i = 0; i < model.n; i += 1) if (drawn(i)) { if (values[i] < low) low = values[i]; if (values[i] > high) high = values[i]; }
    if (!(low <= high)) ({ low, high } = view[name]);
    const log = view.log[name] && low > 0;
    const pad = log ? (high / low) ** 0.04 : (high - low) * 0.04;
    return makeScale(log ? low / pad : Math.min(low, Math.max(0, low - pad)), log ? high * pad : high + pad, log, view[name].binary);
  };

  // Place every point on the screen.
  function place(width, height) {
    const box = { left: PAD.left, top: PAD.top, right: width - PAD.right, bottom: height - PAD.bottom };
    const [sx, sy] = [scaleOf("x"), scaleOf("y")];
    const { n } = model;
    const px = new Float32Array(n);
    const py = new Float32Array(n);
    for (let i = 0; i < n; i += 1) {
      px[i] = drawn(i) ? box.left + sx.to(view.x.points[i]) * (box.right - box.left) : NaN;
      py[i] = box.bottom - sy.to(view.y.points[i]) * (box.bottom - box.top);
    }
    layout = { box, sx, sy, px, py, ...gridOf(px, py, box, width, height), width, height, walk: envelope(view.x.points, view.y.points, model.frontRows) };
  }

  // Which of 256 colours each point has.
  function shades() {
    const column = view.colour;
    const { keys } = column;
    const axisAt = axisOf(column);
    const out = new Uint8Array(model.n);
    for (let i = 0; i < model.n; i += 1) out[i] = Math.max(0, Math.min(255, Math.round(axisAt.to(keys[i]) * 255)));
    return out;
  }

  function paint(scale, ink, dark) {
    cloud.width = canvas.width;
    cloud.height = canvas.height;
    const context = cloud.getContext("2d");
    const { px, py, cell } = layout;
    const { n, pass, status, complete } = model;
    const table = rampTable(dark);
    const shade = view.colour ? shades() : null;
    if (n <= FEW) {
      context.setTransform(scale, 0, 0, scale, 0, 0);
      for (const kept of [0, 1]) {
        for (let i = 0; i < n; i += 1) {
          if (pass[i] !== kept || cell[i] < 0 || (!kept && !model.shown[status.values[i]])) continue;
          const whole = status.values[i] === complete;
          context.fillStyle = kept ? (shade ? `rgb(${table[shade[i]]})` : ink.dots) : ink.faint;
          context.globalAlpha = kept ? (whole ? 0.9 : 0.4) : 0.55;
          context.beginPath();
          context.arc(px[i], py[i], kept ? (n < 400 ? 3.2 : 2.4) : 1.7, 0, 7);
          context.fill();
        }
      }
      return;
    }
    const { width, height } = cloud;
    const image = context.createImageData(width, height);
    const words = new Uint32Array(image.data.buffer);
    const side = Math.max(2, Math.round(1.6 * scale));
    const word = ([r, g, b], alpha) => (alpha << 24 | b << 16 | g << 8 | r) >>> 0;
    const each = (wanted, put) => {
      for (let i = 0; i < n; i += 1) {
        if (pass[i] !== wanted || cell[i] < 0) continue;
        const x0 = Math.round(px[i] * scale - side / 2);
        const at = Math.round(py[i] * scale - side / 2) * width + x0;
        for (let dy = 0; dy < side; dy += 1) for (let dx = 0; dx < side; dx += 1) put(at + dy * width + dx, i);
      }
    };
    const faint = word(rgb(ink.faint), 120);
    each(0, (p, i) => { if (model.shown[status.values[i]]) words[p] = faint; });
    if (shade) {
      const whole = table.map((c) => word(c, 255));
      const bound = table.map((c) => word(c, 150));
      each(1, (p, i) => { words[p] = status.values[i] === complete ? whole[shade[i]] : bound[shade[i]]; });
    } else {
      // Without a colour column: how many points lie there, by the logarithm.
      const counts = new Uint16Array(width * height);
      each(1, (p) => { if (counts[p] < 65535) counts[p] += 1; });
      const dots = rgb(ink.dots);
      const tones = new Uint32Array(17);
      for (let k = 0; k < 17; k += 1) tones[k] = word(dots, Math.min(255, 90 + 20 * k));
      for (let p = 0; p < words.length; p += 1) if (counts[p]) words[p] = tones[31 - Math.clz32(counts[p])];
    }
    context.putImageData(image, 0, 0);
  }

  function draw() {
    if (!canvas.clientWidth) return;
    const { context, width, height, scale } = prepare(canvas);
    const ink = colours();
    const dark = document.documentElement.dataset.theme === "dark";
    if (stale || !layout || layout.width !== width || layout.height !== height) { place(width, height); repaint = true; stale = false; }
    if (repaint || view.dark !== dark) { paint(scale, ink, dark); view.dark = dark; repaint = false; }
    const { box, px, py } = layout;
    const title = (column, scaled) => `${column.label}${column.unit ? `, ${column.unit}` : ""}${scaled.log ? " (log)" : ""}`;
    drawAxes(context, box, { scale: layout.sx, show: view.x.tick, title: `${title(view.x, layout.sx)} →` }, { scale: layout.sy, show: view.y.tick, title: `↑ ${title(view.y, layout.sy)}` }, ink);
    context.save();
    context.beginPath();
    context.rect(box.left - 8, box.top - 8, box.right - box.left + 16, box.bottom - box.top + 16);
    context.clip();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(cloud, 0, 0);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    drawFront(context, ink);
    context.restore();
    for (const [k, i] of model.compared.entries()) {
      if (layout.cell[i] < 0) continue;
      dot(context, px[i], py[i], 9, ink.series[k * 2 % 8], ink.paper);
      context.font = `700 11px ${ink.sans}`;
      context.fillStyle = ink.paper;
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillText(LETTERS[k], px[i], py[i] + 0.5);
    }
    for (const i of [model.selected, view.hover]) if (i !== null && layout.cell[i] >= 0) ring(context, px[i], py[i], 11, ink.chosen, i === model.selected ? 2 : 1.2);
    if (view.drag?.moved) {
      const { x0, y0, x1, y1 } = view.drag;
      context.fillStyle = ink.front;
      context.globalAlpha = 0.12;
      context.fillRect(x0, y0, x1 - x0, y1 - y0);
      context.globalAlpha = 1;
    }
  }

  function drawFront(context, ink) {
    const { px, py, walk } = layout;
    drawEnvelope(context, px, py, walk, ink.front);
    const r = model.frontRows.length > 150 ? 2.8 : 4.2;
    for (const i of model.frontRows) {
      context.globalAlpha = model.pass[i] ? 1 : 0.25;
      dot(context, px[i], py[i], r, ink.front, ink.paper);
    }
    context.globalAlpha = 1;
  }

  function syncLegend() {
    const column = view.colour;
    if (!column) { legend.replaceChildren(h("span", { class: "soft" }, "Darker: more configurations.")); return; }
    legend.replaceChildren(h("span", {}, column.label), h("span", { class: "soft" }, column.show(column.levels ? column.levels[0] : column.low)), h("i", {}), h("span", { class: "soft" }, column.show(column.levels ? column.levels[column.levels.length - 1] : column.high)));
  }

  function nearest(x, y) {
    if (!layout) return null;
    const { px, py, near } = layout;
    let best = null;
    let least = 12 ** 2;
    near(x, y, (i) => {
      if (!model.pass[i] && !model.front[i]) return;
      // A point of the front is found before what lies under it.
      const d = (px[i] - x) ** 2 + (py[i] - y) ** 2 - (model.front[i] ? 25 : 0);
      if (d < least) { least = d; best = i; }
    });
    return best;
  }

  function tell(i, clientX, clientY) {
    const status = model.status.words[model.status.values[i]];
    const bound = status === "beaten" ? "≥ " : "";
    showTip(clientX, clientY, [[nameOf(model, i), "tip-title"], [model.front[i] ? "front" : status, "tip-kind"],
      ...[view.x, view.y, view.colour].filter((c, k, a) => c && a.indexOf(c) === k).map((c) => [`${c.metric ? bound : ""}${c.show(c.values[i])}  ${c.label.toLowerCase()}`, "tip-row"])]);
  }
  const where = (event) => { const r = canvas.getBoundingClientRect(); return [event.clientX - r.left, event.clientY - r.top]; };
  const clamp = (x, y) => { const { box } = layout; return [Math.min(box.right, Math.max(box.left, x)), Math.min(box.bottom, Math.max(box.top, y))]; };
  canvas.addEventListener("pointermove", (event) => {
    if (!layout) return;
    const [x, y] = where(event);
    if (view.drag) {
      [view.drag.x1, view.drag.y1] = clamp(x, y);
      view.drag.moved ||= Math.abs(x - view.drag.x0) + Math.abs(y - view.drag.y0) > 6;
      if (view.drag.moved) { hideTip(); view.hover = null; }
      redrawAll();
      return;
    }
    const hit = nearest(x, y);
    canvas.style.cursor = hit === null ? "crosshair" : "pointer";
    if (hit === null) hideTip(); else tell(hit, event.clientX, event.clientY);
    if (hit !== view.hover) { view.hover = hit; redrawAll(); }
  });
  canvas.addEventListener("pointerleave", () => { view.hover = null; hideTip(); redrawAll(); });
  canvas.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch" || event.button !== 0 || !layout) return;
    const [x0, y0] = clamp(...where(event));
    view.drag = { x0, y0, x1: x0, y1: y0, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", (event) => {
    const { drag } = view;
    view.drag = null;
    if (!drag?.moved) { const hit = nearest(...where(event)); if (hit !== null) select(model, hit); redrawAll(); return; }
    const { box, sx, sy } = layout;
    const xs = [drag.x0, drag.x1].sort((a, b) => a - b).map((v) => sx.from((v - box.left) / (box.right - box.left)));
    const ys = [drag.y0, drag.y1].sort((a, b) => b - a).map((v) => sy.from((box.bottom - v) / (box.bottom - box.top)));
    for (const [column, range] of [[view.x, xs], [view.y, ys]]) setRange(model, column, column.levels ? rankRange(column, range) : range);
  });
  canvas.addEventListener("pointercancel", () => { view.drag = null; redrawAll(); });
  canvas.addEventListener("dblclick", () => { view.x.range = null; view.y.range = null; refilter(model); });
  canvas.addEventListener("keydown", (event) => {
    const walk = layout?.walk || [];
    if ((event.key === "ArrowRight" || event.key === "ArrowLeft") && walk.length) {
      view.walk = Math.max(0, Math.min(walk.length - 1, view.walk + (event.key === "ArrowRight" ? 1 : -1)));
      view.hover = walk[view.walk];
      const r = canvas.getBoundingClientRect();
      tell(view.hover, r.left + layout.px[view.hover], r.top + layout.py[view.hover]);
      announce(`Front ${view.walk + 1} of ${walk.length}: ${nameOf(model, view.hover)}, ${view.x.label} ${view.x.show(view.x.values[view.hover])}, ${view.y.label} ${view.y.show(view.y.values[view.hover])}`);
    } else if (event.key === "Enter" && view.hover !== null) select(model, view.hover);
    else if (event.key.toLowerCase() === "c" && view.hover !== null) toggleCompared(model, view.hover);
    else if (event.key === "Escape") { view.hover = null; hideTip(); }
    else return;
    event.preventDefault();
    redrawAll();
  });
  canvas.addEventListener("blur", () => { view.hover = null; hideTip(); redrawAll(); });
  model.listeners.add((what) => { if (what === "filter") repaint = true; redrawAll(); });
  redraws.add(draw);
  syncLegend();
  view.places = () => layout.cell; // for tests: of what is drawn
  view.sync = () => { stale = true; syncLegend(); redrawAll(); };
  return { canvas, controls, legend };
}

const LETTERS = "ABCD";
// The ranks of the levels whose values lie in a range of values.
function rankRange(column, [a, b]) {
  const inside = column.levels.map((v, k) => [v, k]).filter(([v]) => v >= a && v <= b).map(([, k]) => k);
  return inside.length ? [inside[0], inside[inside.length - 1]] : [Infinity, -Infinity];
}
