// The scatter of all configurations: two metrics, the front, the named heaps, the chosen one.
// Invariant: 10^5 points cost one pass over typed arrays a frame; no node a point exists.

const PAD = { left: 74, top: 30, right: 18, bottom: 50 };
const DENSE = 3000; // above this many points the cloud is drawn as a density image

function scatterView(model) {
  const c = model.configurations;
  const view = { x: 0, y: Math.min(1, c.columns.length - 1), zoom: false, dominated: true, hover: null, drag: null, walk: -1 };
  const canvas = h("canvas", { class: "scatter", tabindex: "0", role: "application",
    "aria-label": `Scatter plot of ${integer(c.n)} configurations. Arrow keys walk along the front, Enter shows details, Escape clears.` });
  const cloud = document.createElement("canvas");
  let layout = null;
  let stale = true;

  const option = (k) => h("option", { value: k }, c.columns[k].label);
  const axis = (name) => {
    const pick = h("select", { "aria-label": `${name} axis` }, c.columns.map((_, k) => option(k)));
    pick.value = String(view[name]);
    pick.addEventListener("change", () => { view[name] = Number(pick.value); log.sync(); refresh(); });
    const box = h("input", { type: "checkbox" });
    box.addEventListener("change", () => { c.columns[view[name]].log = box.checked; changed(model, "scale"); });
    const log = { sync: () => { box.checked = c.columns[view[name]].log; box.disabled = c.columns[view[name]].low <= 0; } };
    log.sync();
    view[`sync_${name}`] = log.sync;
    return h("span", { class: "axis" }, h("span", {}, name), pick, h("label", {}, box, "log"));
  };
  const toggle = (key, text) => {
    const box = h("input", { type: "checkbox" });
    box.checked = view[key];
    box.addEventListener("change", () => { view[key] = box.checked; refresh(); });
    return h("label", {}, box, text);
  };
  const controls = h("div", { class: "controls" }, axis("x"), c.columns.length > 1 ? axis("y") : null,
    toggle("dominated", "dominated points"), toggle("zoom", "zoom to filter"));

  function refresh() { stale = true; redrawAll(); }

  function scales() {
    return ["x", "y"].map((name) => {
      const column = c.columns[view[name]];
      let { low, high } = column;
      if (view.zoom) { low = Math.max(low, column.range[0]); high = Math.min(high, column.range[1]); }
      if (!(low <= high)) ({ low, high } = column);
      const log = column.log && low > 0;
      const pad = log ? (high / low) ** 0.04 : (high - low) * 0.04;
      return makeScale(log ? low / pad : Math.min(low, Math.max(0, low - pad)), log ? high * pad : high + pad, log, column.binary);
    });
  }

  // Place every point on the screen.
  function place(width, height) {
    const box = { left: PAD.left, top: PAD.top, right: width - PAD.right, bottom: height - PAD.bottom };
    const [sx, sy] = scales();
    const wide = box.right - box.left;
    const tall = box.bottom - box.top;
    const at = (vx, vy) => [box.left + sx.to(vx) * wide, box.bottom - sy.to(vy) * tall];
    const x = c.columns[view.x];
    const y = c.columns[view.y];
    const px = new Float32Array(c.n);
    const py = new Float32Array(c.n);
    for (let i = 0; i < c.n; i += 1) {
      px[i] = box.left + sx.to(x.values[i]) * wide;
      py[i] = box.bottom - sy.to(y.values[i]) * tall;
    }
    const front = [];
    for (let i = 0; i < c.n; i += 1) if (c.front[i]) front.push(i);
    const named = model.heaps
      .map((heap) => ({ heap, vx: heapValue(heap, x.key), vy: heapValue(heap, y.key) }))
      .filter(({ vx, vy }) => isNumber(vx) && isNumber(vy))
      .map((item) => ({ ...item, at: at(item.vx, item.vy) }))
      .filter(({ at: [ax, ay] }) => ax >= box.left - 1 && ax <= box.right + 1 && ay >= box.top - 1 && ay <= box.bottom + 1);
    layout = { box, sx, sy, px, py, ...gridOf(px, py, box, width, height), front, named, width, height,
      line: envelope(x.values, y.values, front) };
  }

  function drawCloud(scale, ink) {
    cloud.width = canvas.width;
    cloud.height = canvas.height;
    const context = cloud.getContext("2d");
    if (!view.dominated) return;
    if (c.n <= DENSE) {
      context.setTransform(scale, 0, 0, scale, 0, 0);
      for (const pass of [0, 1]) {
        context.fillStyle = pass ? ink.dots : ink.faint;
        context.globalAlpha = pass ? 0.75 : 0.6;
        const r = pass ? (c.n < 400 ? 3 : 2.2) : 1.6;
        for (let i = 0; i < c.n; i += 1) {
          if (c.pass[i] !== pass || layout.cell[i] < 0) continue;
          context.beginPath();
          context.arc(layout.px[i], layout.py[i], r, 0, 7);
          context.fill();
        }
      }
      return;
    }
    // Density: count points per pixel, then shade by the logarithm of the count.
    const { width, height } = cloud;
    const inside = new Uint16Array(width * height);
    const outside = new Uint16Array(width * height);
    const side = Math.max(1, Math.round(1.5 * scale));
    for (let i = 0; i < c.n; i += 1) {
      if (layout.cell[i] < 0) continue;
      const layer = c.pass[i] ? inside : outside;
      const x0 = Math.round(layout.px[i] * scale - side / 2);
      const y0 = Math.round(layout.py[i] * scale - side / 2);
      for (let dy = 0; dy < side; dy += 1) {
        const at = (y0 + dy) * width + x0;
        for (let dx = 0; dx < side; dx += 1) if (layer[at + dx] < 65535) layer[at + dx] += 1;
      }
    }
    const image = context.createImageData(width, height);
    const words = new Uint32Array(image.data.buffer);
    const [dr, dg, db] = rgb(ink.dots);
    const [fr, fg, fb] = rgb(ink.faint);
    const shade = new Uint8Array(65536);
    for (let k = 1; k < 65536; k += 1) shade[k] = Math.min(255, 88 + 34 * Math.log2(k));
    for (let p = 0; p < words.length; p += 1) {
      if (inside[p]) words[p] = (shade[inside[p]] << 24 | db << 16 | dg << 8 | dr) >>> 0;
      else if (outside[p]) words[p] = (Math.min(150, shade[outside[p]]) << 24 | fb << 16 | fg << 8 | fr) >>> 0;
    }
    context.putImageData(image, 0, 0);
  }

  function draw() {
    if (!canvas.clientWidth) return;
    const { context, width, height, scale } = prepare(canvas);
    const ink = colours();
    if (stale || !layout || layout.width !== width || layout.height !== height || view.theme !== ink.panel) {
      place(width, height);
      drawCloud(scale, ink);
      view.theme = ink.panel;
      stale = false;
    }
    const { box } = layout;
    const x = c.columns[view.x];
    const y = c.columns[view.y];
    const title = (column) => `${column.label}${column.unit ? `, ${column.unit}` : ""}${column.log ? " (log)" : ""}`;
    drawAxes(context, box, { scale: layout.sx, show: x.tick, title: `${title(x)} →` }, { scale: layout.sy, show: y.tick, title: `↑ ${title(y)}` }, ink);
    context.save();
    context.beginPath();
    context.rect(box.left - 8, box.top - 8, box.right - box.left + 16, box.bottom - box.top + 16);
    context.clip();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(cloud, 0, 0);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    drawFront(context, ink);
    context.restore();
    drawNamed(context, ink);
    drawMarks(context, ink);
  }

  function drawFront(context, ink) {
    const { px, py, line: joined, front } = layout;
    drawEnvelope(context, px, py, joined, ink.front);
    const r = front.length > 150 ? 2.4 : 4;
    for (const i of front) {
      context.globalAlpha = c.pass[i] ? 1 : 0.3;
      dot(context, px[i], py[i], r, ink.front, ink.paper);
    }
    context.globalAlpha = 1;
  }

  // Named heaps: diamonds, labelled wherever the label covers no other label or diamond.
  function drawNamed(context, ink) {
    const { box, named } = layout;
    context.font = `600 12px ${ink.sans}`;
    context.textBaseline = "middle";
    context.textAlign = "left";
    const taken = named.map(({ at: [ax, ay] }) => [ax - 6, ay - 6, ax + 6, ay + 6]);
    for (const { heap, at: [ax, ay] } of named.slice().sort((a, b) => Boolean(b.heap.chosen) - Boolean(a.heap.chosen))) {
      const chosen = heap === model.chosenHeap;
      context.globalAlpha = heapPasses(c, heap) ? 1 : 0.35;
      context.save();
      context.translate(ax, ay);
      context.rotate(Math.PI / 4);
      context.fillStyle = chosen ? ink.chosen : ink.named;
      context.strokeStyle = ink.paper;
      context.lineWidth = 1.5;
      const s = chosen ? 6 : 4.2;
      context.fillRect(-s, -s, 2 * s, 2 * s);
      context.strokeRect(-s, -s, 2 * s, 2 * s);
      context.restore();
      if (chosen) { ring(context, ax, ay, 13, ink.chosen, 2); }
      const wide = context.measureText(heap.name).width;
      const away = chosen ? 18 : 10;
      const spots = [[away, 0], [-away - wide, 0], [-wide / 2, -away - 7], [-wide / 2, away + 7], [away, -13], [away, 13], [-away - wide, -13], [-away - wide, 13]];
      for (const [dx, dy] of spots) {
        const r = [ax + dx - 2, ay + dy - 8, ax + dx + wide + 2, ay + dy + 8];
        if (r[0] < box.left || r[2] > box.right + 12 || r[1] < box.top - 12 || r[3] > box.bottom) continue;
        if (taken.some((t) => r[0] < t[2] && r[2] > t[0] && r[1] < t[3] && r[3] > t[1] && !(t[0] === ax - 6 && t[1] === ay - 6))) continue;
        taken.push(r);
        context.lineWidth = 4;
        context.lineJoin = "round";
        context.strokeStyle = ink.paper;
        context.strokeText(heap.name, ax + dx, ay + dy);
        context.fillStyle = chosen ? ink.chosen : ink.named;
        context.fillText(heap.name, ax + dx, ay + dy);
        break;
      }
      context.globalAlpha = 1;
    }
  }

  function drawMarks(context, ink) {
    const { box, px, py } = layout;
    if (c.chosenRow >= 0 && layout.cell[c.chosenRow] >= 0 && !layout.named.some(({ heap }) => heap === model.chosenHeap)) {
      dot(context, px[c.chosenRow], py[c.chosenRow], 6, ink.chosen, ink.paper);
      ring(context, px[c.chosenRow], py[c.chosenRow], 13, ink.chosen, 2);
    }
    const spot = (item) => (item.heap ? layout.named.find(({ heap }) => heap === item.heap)?.at
      : layout.cell[item.row] >= 0 ? [px[item.row], py[item.row]] : null);
    const selected = model.selected && spot(model.selected);
    if (selected) {
      context.setLineDash([3, 3]);
      context.strokeStyle = ink.ink;
      context.lineWidth = 1;
      line(context, selected[0], box.top, selected[0], box.bottom);
      line(context, box.left, selected[1], box.right, selected[1]);
      context.setLineDash([]);
      ring(context, ...selected, 9, ink.ink, 2);
    }
    const hover = view.hover && spot(view.hover);
    if (hover) ring(context, ...hover, 7, ink.ink, 1.5);
    if (view.drag && view.drag.moved) {
      const { x0, y0, x1, y1 } = view.drag;
      context.fillStyle = ink.front;
      context.globalAlpha = 0.12;
      context.fillRect(x0, y0, x1 - x0, y1 - y0);
      context.globalAlpha = 1;
      context.strokeStyle = ink.front;
      context.strokeRect(x0, y0, x1 - x0, y1 - y0);
    }
  }

  // The item nearest to the pointer, within 14 pixels; heaps and front come first.
  function nearest(x, y) {
    if (!layout) return null;
    let best = null;
    let reach = 14 * 14;
    const offer = (item, ax, ay, bonus) => {
      const d = (ax - x) ** 2 + (ay - y) ** 2 - bonus;
      if (d < reach) { reach = d; best = item; }
    };
    layout.near(x, y, (i) => {
      if (c.pass[i] && (view.dominated || c.front[i])) offer({ row: i }, layout.px[i], layout.py[i], c.front[i] ? 30 : 0);
    });
    for (const { heap, at } of layout.named) offer({ heap }, ...at, 40);
    return best;
  }

  function describeAt(item, x, y) {
    const d = describe(model, item);
    const kinds = [d.chosen && "chosen", d.front && "on the front", d.heap && d.heap.kind === "named" && "named heap"].filter(Boolean);
    showTip(x, y, [[d.title, "tip-title"], ...(kinds.length ? [[kinds.join(" · "), "tip-kind"]] : []),
      ...c.columns.map((column, k) => [`${column.label}  ${isNumber(d.values[k]) ? `${column.show(d.values[k])}  (${column.exact(d.values[k])})` : NONE}`, "tip-row"])]);
  }

  const inside = (event) => { const r = canvas.getBoundingClientRect(); return [event.clientX - r.left, event.clientY - r.top]; };
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = inside(event);
    if (view.drag) {
      const { box } = layout;
      view.drag.x1 = Math.min(box.right, Math.max(box.left, x));
      view.drag.y1 = Math.min(box.bottom, Math.max(box.top, y));
      view.drag.moved ||= Math.abs(x - view.drag.x0) + Math.abs(y - view.drag.y0) > 6;
      if (view.drag.moved) { hideTip(); view.hover = null; }
      redrawAll();
      return;
    }
    view.hover = nearest(x, y);
    canvas.style.cursor = view.hover ? "pointer" : "crosshair";
    if (view.hover) describeAt(view.hover, event.clientX, event.clientY); else hideTip();
    redrawAll();
  });
  canvas.addEventListener("pointerleave", () => { view.hover = null; hideTip(); redrawAll(); });
  canvas.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch" || event.button !== 0 || !layout) return;
    const [x, y] = inside(event);
    const { box } = layout;
    view.drag = { x0: Math.min(box.right, Math.max(box.left, x)), y0: Math.min(box.bottom, Math.max(box.top, y)), moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", (event) => {
    const drag = view.drag;
    view.drag = null;
    const [x, y] = inside(event);
    if (!drag || !drag.moved) { const hit = nearest(x, y); if (hit) select(model, hit); redrawAll(); return; }
    const { box, sx, sy } = layout;
    const value = (scale, t) => scale.from(t);
    const wide = box.right - box.left;
    const tall = box.bottom - box.top;
    const xs = [drag.x0, drag.x1].sort((a, b) => a - b).map((v) => value(sx, (v - box.left) / wide));
    const ys = [drag.y0, drag.y1].sort((a, b) => b - a).map((v) => value(sy, (box.bottom - v) / tall));
    c.columns[view.x].range = xs;
    if (view.y !== view.x) c.columns[view.y].range = ys;
    applyFilter(model);
  });
  canvas.addEventListener("pointercancel", () => { view.drag = null; redrawAll(); });
  canvas.addEventListener("dblclick", () => resetFilter(model));
  canvas.addEventListener("keydown", (event) => {
    const path = layout ? layout.line : [];
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step && path.length) {
      view.walk = Math.max(0, Math.min(path.length - 1, view.walk < 0 ? 0 : view.walk + step));
      view.hover = { row: path[view.walk] };
      const r = canvas.getBoundingClientRect();
      describeAt(view.hover, r.left + layout.px[view.hover.row], r.top + layout.py[view.hover.row]);
      const d = describe(model, view.hover);
      announce(`Front ${view.walk + 1} of ${path.length}: ${d.title}, ${c.columns.map((column, k) => `${column.label} ${column.show(d.values[k])}`).join(", ")}`);
    } else if (event.key === "Enter" && view.hover) select(model, view.hover);
    else if (event.key === "Escape") { view.hover = null; view.walk = -1; hideTip(); select(model, null); }
    else return;
    event.preventDefault();
    redrawAll();
  });
  canvas.addEventListener("blur", () => { hideTip(); view.hover = null; redrawAll(); });

  model.listeners.add((what) => {
    if (what === "filter" || what === "scale") { view.sync_x(); view.sync_y?.(); refresh(); } else redrawAll();
  });
  redraws.add(draw);
  model.scatter = { view, nearest, layout: () => layout };
  return { canvas, controls };
}
