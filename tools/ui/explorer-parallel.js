// Parallel coordinates: an axis a metric or parameter, better is down, a brush on each.
// Invariant: brushes filter all configurations; of those that are drawn as lines only
// the front is whole, the others are an even sample, and the page says how large.

const SAMPLE = 1200; // lines beside the front: more would hide each other
const BEHIND = 250; // lines of what is filtered out
const STEP = 86; // least pixels between axes

function parallelView(model) {
  const view = { at: 0, drag: null, focus: false };
  const canvas = h("canvas", { class: "parallel", tabindex: "0", role: "application",
    "aria-label": "Parallel coordinates, one axis a metric or parameter. Left and right choose an axis, up and down move its upper limit, with shift its lower limit, Delete removes the range." });
  const note = h("p", { class: "hint" });
  const holder = h("div", { class: "scroll parallel-scroll", tabindex: "-1" }, canvas);
  let axes = [];
  let lines = null;
  let layout = null;

  function setAxes() {
    axes = [...model.metrics, ...model.parameters].filter((column) => !column.hidden).map((column) => {
      const axis = axisOf(column);
      if (!column.places) {
        column.places = new Float32Array(model.n);
        for (let i = 0; i < model.n; i += 1) column.places[i] = axis.to(column.keys[i]);
      }
      return { column, axis };
    });
    canvas.style.minWidth = `${axes.length * STEP}px`;
    view.at = Math.min(view.at, Math.max(0, axes.length - 1));
    pickLines();
  }

  // An even sample of what passes and of what does not; the front is always whole.
  function pickLines() {
    const { n, pass, front, status, shown } = model;
    let others = 0;
    let out = 0;
    for (let i = 0; i < n; i += 1) if (!front[i]) { if (pass[i]) others += 1; else if (shown[status.values[i]]) out += 1; }
    const pickEvenly = (total, most, wanted) => {
      const picked = [];
      const stride = Math.max(1, total / most);
      let seen = 0;
      let next = 0;
      for (let i = 0; i < n && picked.length < most; i += 1) {
        if (front[i] || !wanted(i)) continue;
        if (seen >= next) { picked.push(i); next += stride; }
        seen += 1;
      }
      return picked;
    };
    lines = { kept: pickEvenly(others, SAMPLE, (i) => pass[i]), dropped: pickEvenly(out, BEHIND, (i) => !pass[i] && shown[status.values[i]]) };
    note.textContent = others > lines.kept.length
      ? `Drawn: all ${integer(model.frontRows.length)} of the front and an even sample of ${integer(lines.kept.length)} of the ${integer(others)} others kept. Brushes filter all.`
      : `Drawn: every configuration that is kept.`;
  }

  function draw() {
    if (!canvas.clientWidth) return;
    const { context, width, height } = prepare(canvas);
    const ink = colours();
    const box = { left: 46, right: width - 46, top: 62, bottom: height - 26 };
    const gap = axes.length > 1 ? (box.right - box.left) / (axes.length - 1) : 0;
    const x = (k) => box.left + gap * k;
    const y = (t) => box.bottom - t * (box.bottom - box.top);
    layout = { box, gap, x, y };
    const trace = (i) => {
      for (let k = 0; k < axes.length; k += 1) {
        const t = axes[k].column.places[i];
        const py = Number.isNaN(t) ? box.bottom + 10 : y(t);
        if (k) context.lineTo(x(k), py); else context.moveTo(x(k), py);
      }
    };
    // A path's crossings are not darker than its lines: several paths show the density.
    const strokes = (rows, colour, alpha, wide, bunch) => {
      context.strokeStyle = colour;
      context.globalAlpha = alpha;
      context.lineWidth = wide;
      for (let k = 0; k < rows.length; k += bunch) {
        context.beginPath();
        for (const i of rows.slice(k, k + bunch)) trace(i);
        context.stroke();
      }
      context.globalAlpha = 1;
    };
    strokes(lines.dropped, ink.faint, 0.3, 1, 50);
    strokes(lines.kept, ink.dots, lines.kept.length > 300 ? 0.16 : 0.4, 1, 8);
    const kept = model.frontRows.filter((i) => model.pass[i]);
    strokes(model.frontRows.filter((i) => !model.pass[i]), ink.front, 0.1, 1, 20);
    strokes(kept, ink.front, kept.length > 60 ? 0.45 : 0.8, 1.4, 1);
    model.compared.forEach((i, k) => strokes([i], ink.series[k * 2 % 8], 1, 2.6, 1));
    if (model.selected !== null) strokes([model.selected], ink.chosen, 1, 2.6, 1);
    axes.forEach(({ column, axis }, k) => {
      const px = x(k);
      context.strokeStyle = view.focus && k === view.at ? ink.ink : ink.soft;
      context.lineWidth = view.focus && k === view.at ? 2 : 1;
      line(context, px, box.top, px, box.bottom);
      context.font = `600 11.5px ${ink.sans}`;
      context.fillStyle = column.range ? ink.front : ink.ink;
      context.textAlign = "center";
      context.textBaseline = "bottom";
      const words = column.label.split(" ");
      const text = context.measureText(column.label).width <= Math.max(gap, STEP) - 8 ? [column.label] : [words.slice(0, Math.ceil(words.length / 2)).join(" "), words.slice(Math.ceil(words.length / 2)).join(" ")].filter(Boolean);
      text.forEach((part, j) => context.fillText(part, px, box.top - 14 - 14 * (text.length - 1 - j)));
      context.font = `10.5px ${ink.sans}`;
      context.textBaseline = "middle";
      let last = Infinity;
      for (const [key, label] of axis.ticks(6)) {
        const py = y(axis.to(key));
        if (py < box.top - 1 || py > box.bottom + 1 || Math.abs(py - last) < 13) continue;
        last = py;
        context.strokeStyle = ink.soft;
        context.lineWidth = 1;
        line(context, px - 3, py, px + 3, py);
        context.lineWidth = 3;
        context.lineJoin = "round";
        context.strokeStyle = ink.paper;
        // The last axis has its labels on the left, where there is room.
        const end = k === axes.length - 1;
        context.textAlign = end ? "right" : "left";
        context.strokeText(label, px + (end ? -6 : 6), py);
        context.fillStyle = ink.soft;
        context.fillText(label, px + (end ? -6 : 6), py);
      }
      if (column.range) {
        const [a, b] = edges(k);
        context.fillStyle = ink.front;
        context.globalAlpha = 0.22;
        context.fillRect(px - 8, y(b), 16, Math.max(2, y(a) - y(b)));
        context.globalAlpha = 1;
        context.strokeStyle = ink.front;
        context.lineWidth = 1.5;
        context.strokeRect(px - 8, y(b), 16, Math.max(2, y(a) - y(b)));
      }
    });
    context.fillStyle = ink.soft;
    context.font = `11px ${ink.sans}`;
    context.textAlign = "left";
    context.textBaseline = "alphabetic";
    if (model.metrics.length) context.fillText(`better ↓ on the first ${model.metrics.length === 1 ? "axis" : `${model.metrics.filter((c) => !c.hidden).length} axes`}`, box.left, height - 6);
  }

  // A range on its axis, between 0 and 1; open ends and single levels get some room.
  function edges(k) {
    const { column, axis } = axes[k];
    const [a, b] = column.range;
    let low = a === -Infinity ? 0 : axis.to(a);
    let high = b === Infinity ? 1 : axis.to(b);
    if (column.levels && high - low < 0.02) { low -= 0.02; high += 0.02; }
    return [Math.max(-0.03, low), Math.min(1.03, high)];
  }
  function setEdges(k, low, high) {
    const { column, axis } = axes[k];
    if (high - low < 0.004 && !column.levels) { setRange(model, column, null); return; }
    // A brush that reaches an end of the axis, to a pixel and a half, has no limit there.
    const near = 1.5 / (layout.box.bottom - layout.box.top);
    const [open, closed] = [low <= near, high >= 1 - near];
    setRange(model, column, open && closed ? null : [open ? (column.levels ? 0 : -Infinity) : axis.from(low), closed ? (column.levels ? column.levels.length - 1 : Infinity) : axis.from(high)]);
  }
  const where = (event) => { const r = canvas.getBoundingClientRect(); return [event.clientX - r.left, event.clientY - r.top]; };
  const height01 = (py) => (layout.box.bottom - py) / (layout.box.bottom - layout.box.top);
  const axisAt = (px) => { const k = Math.round((px - layout.box.left) / (layout.gap || 1)); return k >= 0 && k < axes.length && Math.abs(px - layout.x(k)) <= 26 ? k : -1; };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch" || event.button !== 0 || !layout) return;
    const [px, py] = where(event);
    const k = axisAt(px);
    if (k < 0) return;
    const t = Math.min(1, Math.max(0, height01(py)));
    view.at = k;
    view.drag = { k, from: t, mode: "new", moved: false };
    if (axes[k].column.range) {
      const [a, b] = edges(k);
      const near = 7 / (layout.box.bottom - layout.box.top);
      if (Math.abs(t - a) < near) Object.assign(view.drag, { mode: "edge", fixed: b });
      else if (Math.abs(t - b) < near) Object.assign(view.drag, { mode: "edge", fixed: a });
      else if (t > a && t < b) Object.assign(view.drag, { mode: "move", a, b });
    }
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!layout) return;
    const [px, py] = where(event);
    const { drag } = view;
    if (!drag) { canvas.style.cursor = axisAt(px) >= 0 ? "ns-resize" : "default"; return; }
    const t = Math.min(1, Math.max(0, height01(py)));
    if (Math.abs(t - drag.from) > 0.008) drag.moved = true;
    if (!drag.moved) return;
    if (drag.mode === "move") { const by = Math.min(1 - drag.b, Math.max(-drag.a, t - drag.from)); setEdges(drag.k, drag.a + by, drag.b + by); }
    else { const other = drag.mode === "edge" ? drag.fixed : drag.from; setEdges(drag.k, Math.min(t, other), Math.max(t, other)); }
  });
  const done = () => {
    if (view.drag && !view.drag.moved) setRange(model, axes[view.drag.k].column, null);
    view.drag = null;
  };
  canvas.addEventListener("pointerup", done);
  canvas.addEventListener("pointercancel", () => { view.drag = null; });
  canvas.addEventListener("focus", () => { view.focus = canvas.matches(":focus-visible"); redrawAll(); });
  canvas.addEventListener("blur", () => { view.focus = false; redrawAll(); });
  canvas.addEventListener("keydown", (event) => {
    view.focus = true;
    const { column } = axes[view.at] || {};
    if (!column) return;
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") view.at = Math.max(0, Math.min(axes.length - 1, view.at + (event.key === "ArrowRight" ? 1 : -1)));
    else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      const step = (event.key === "ArrowUp" ? 1 : -1) * (column.levels ? 1 / Math.max(1, column.levels.length - 1) : 0.05);
      let [a, b] = column.range ? edges(view.at) : [0, 1];
      if (event.shiftKey) a = Math.min(b, Math.max(0, a + step)); else b = Math.max(a, Math.min(1, b + step));
      setEdges(view.at, a, b);
    } else if (event.key === "Delete" || event.key === "Backspace" || event.key === "Escape") setRange(model, column, null);
    else return;
    event.preventDefault();
    const now = axes[view.at].column;
    requestAnimationFrame(() => announce(`${now.label}: ${now.range ? rangeText(now) : "all"}; ${integer(model.passing)} kept`));
    redrawAll();
  });
  model.listeners.add((what) => {
    if (what === "axes") setAxes();
    if (what === "filter") pickLines();
    redrawAll();
  });
  setAxes();
  redraws.add(draw);
  model.parallel = { place: (key, t) => { const k = axes.findIndex(({ column }) => column.key === key); const r = canvas.getBoundingClientRect(); return [r.left + layout.x(k), r.top + layout.y(t)]; } };
  return h("div", {}, holder, note);
}
