// The plot of every page: a canvas with axes, a legend whose entries switch series, a reading under the
// pointer, zoom, keyboard, and the picture as a file. Below it, the one form that values over a number
// take: steps, lines and stacked areas.
// Invariant: a step function is never interpolated; what is switched off is neither drawn nor read.

// A canvas that draws itself again with size, theme and page: `paint(context, width, height, ink)`.
// Once it has left the page it is forgotten.
function pictured(canvas, paint) {
  let seen = false;
  const draw = () => {
    if (!canvas.isConnected) { if (seen) redraws.delete(draw); return; }
    if (!canvas.clientWidth) return;
    seen = true;
    const { context, width, height } = prepare(canvas);
    paint(context, width, height, colours());
  };
  redraws.add(draw);
  sizes.observe(canvas);
  return draw;
}

// Saves what `paint` draws as an SVG file.
function saveButton(canvas, name, paint) {
  const button = h("button", { type: "button", class: "quiet save" }, "Save as SVG");
  button.addEventListener("click", () => {
    const { clientWidth: width, clientHeight: height } = canvas;
    const ink = colours();
    const surface = svgSurface(width, height, ink.paper);
    paint(surface, width, height, ink);
    download(`${name.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "plot"}.svg`, "image/svg+xml", surface.text());
  });
  return button;
}

// The legend: a button a series switches it, a double click leaves it alone on the plot.
function legendOf(series, changed) {
  const buttons = series.map((one) => {
    const button = h("button", { type: "button", "aria-pressed": String(one.on), title: one.hint ?? null },
      h("i", { class: `swatch ${one.shape ?? "line"}`, style: `--c:var(--${one.colour})` }), one.name, one.remark ? h("span", { class: "soft" }, ` ${one.remark}`) : null);
    button.addEventListener("click", () => { one.on = !one.on; sync(); });
    button.addEventListener("dblclick", () => { for (const other of series) other.on = other === one; sync(); });
    return button;
  });
  const sync = () => { buttons.forEach((button, k) => button.setAttribute("aria-pressed", String(series[k].on))); changed(); };
  return h("div", { class: "legend", role: "group", "aria-label": "Series shown" }, buttons);
}

// A name cut to a width.
function cut(context, name, width) {
  if (context.measureText(name).width <= width) return name;
  let short = name;
  while (short.length > 1 && context.measureText(`${short}…`).width > width) short = short.slice(0, -1);
  return `${short}…`;
}

// Index of the last point at or before x; -1: none. O(log points).
function lastAt(points, x) {
  let a = 0;
  let b = points.length;
  while (a < b) { const m = (a + b) >> 1; if (points[m][0] <= x) a = m + 1; else b = m; }
  return a - 1;
}

// Values over a number. Given:
//   label   what it shows, for a screen reader and the name of a saved file
//   height  in pixels; 400 unless told
//   x, y    {title, show, tick, exact, log, binary, signed, from, to}: `from` and `to` fix an end; a `signed` y goes
//           below zero where values do
//   reads   what a place on x is called: "event" gives "event 4,117"
//   series  [{name, colour (a variable of the style), points: [[x, y], …] in the order of x, on,
//            as: "step" | "line" | "area" | "stack", width, dashed, dotted, remark, hint}]
//   rules   [{value, text, colour}] across; bands [{from, to}] behind
//   named   whether series carry their names at their right ends, where there is room
//   total   what the sum of the stacked is called in the reading
// Answers {node, canvas, set(points, rules)}; `set` gives the series other points, by name.
function plot(given) {
  const { label, x: across, y: up, reads = "at" } = given;
  const { series, bands = [] } = given;
  let { rules = [] } = given;
  const view = { from: null, to: null, low: null, high: null, at: null, drag: null };
  const canvas = h("canvas", { class: "plot-canvas", style: `height:${given.height ?? 400}px`, tabindex: "0", role: "application",
    "aria-label": `${label}. Arrow keys move the reading line, plus and minus zoom, Escape shows all.` });
  let geometry = null;
  let whole = [0, 1];
  let stacks = null; // outlines of the stacked series that are on, made anew when that changes
  const shown = () => series.filter((one) => one.on);

  function measure() {
    let from = across.from ?? Infinity;
    let to = across.to ?? -Infinity;
    for (const { points } of series) {
      if (!points.length) continue;
      from = Math.min(from, points[0][0]);
      to = Math.max(to, points[points.length - 1][0]);
    }
    whole = from <= to ? [from, to] : [0, 1];
    stacks = null;
  }

  // Each stacked series lies on those before it, at every place where one of them changes.
  function stacked() {
    if (stacks) return stacks;
    const own = shown().filter((one) => one.as === "stack");
    const places = [...new Set(own.flatMap(({ points }) => points.map(([at]) => at)))].sort((a, b) => a - b);
    let below = places.map(() => 0);
    stacks = new Map();
    for (const one of own) {
      let k = -1;
      const top = places.map((at, i) => {
        while (k + 1 < one.points.length && one.points[k + 1][0] <= at) k += 1;
        return below[i] + (k < 0 ? 0 : one.points[k][1]);
      });
      stacks.set(one, places.map((at, i) => [at, top[i], below[i]]));
      below = top;
    }
    return stacks;
  }
  const outline = (one) => (one.as === "stack" ? stacked().get(one) : one.points);

  function paint(context, width, height, ink, file = false) {
    const [from, to] = [view.from ?? whole[0], view.to ?? whole[1]];
    const roomy = given.named && width > 720;
    const box = { left: 74, top: 30, right: width - (roomy ? 150 : 18), bottom: height - 50 };
    const on = shown();
    let most = rules.reduce((m, rule) => Math.max(m, rule.value), up.to ?? 0);
    let least = Infinity;
    for (const one of on) {
      const points = outline(one);
      for (let i = Math.max(0, lastAt(points, from)); i < points.length && points[i][0] <= to; i += 1) { most = Math.max(most, points[i][1]); least = Math.min(least, points[i][1]); }
    }
    const log = up.log && least > 0;
    const sx = makeScale(from, to, across.log && from > 0, across.binary);
    const floor = up.signed && least < 0 && least < Infinity ? least * 1.04 : 0;
    const sy = makeScale(view.low ?? (log ? least : floor), view.high ?? (most > 0 ? most * (up.to ? 1 : 1.04) : floor < 0 ? 0 : 1), log, up.binary);
    const px = (v) => box.left + sx.to(v) * (box.right - box.left);
    const py = (v) => box.bottom - sy.to(v) * (box.bottom - box.top);
    geometry = { box, sx, sy, px, py };
    context.fillStyle = ink.of("bar");
    for (const band of bands) if (band.to >= from && band.from <= to) context.fillRect(px(Math.max(from, band.from)), box.top, Math.max(0.5, px(Math.min(to, band.to)) - px(Math.max(from, band.from))), box.bottom - box.top);
    drawAxes(context, box, { scale: sx, show: across.tick ?? plainTick, title: `${across.title} →` }, { scale: sy, show: up.tick ?? up.show, title: `↑ ${up.title}` }, ink);
    context.save();
    context.beginPath();
    context.rect(box.left, box.top - 4, box.right - box.left, box.bottom - box.top + 8);
    context.clip();
    for (const one of on) trace(context, one, { px, py, from, to, box }, ink);
    context.restore();
    for (const rule of rules) {
      const at = py(rule.value);
      if (at < box.top - 1 || at > box.bottom + 1) continue;
      context.strokeStyle = context.fillStyle = ink.of(rule.colour);
      context.lineWidth = 1;
      context.setLineDash(rule.dashed ? [4, 3] : []);
      line(context, box.left, at, box.right, at);
      context.setLineDash([]);
      context.font = `11px ${ink.sans}`;
      context.textAlign = "right";
      context.textBaseline = "bottom";
      context.fillText(rule.text, box.right - 4, at - 2);
    }
    if (roomy) names(context, on, { py, to, box }, ink);
    if (!file) reading(context, on, ink);
  }

  function trace(context, one, { px, py, from, to, box }, ink) {
    const points = outline(one);
    const start = Math.max(0, lastAt(points, from));
    const end = Math.min(points.length - 1, lastAt(points, to) + 1);
    if (!points.length || points[start][0] > to) return;
    const steps = one.as !== "line";
    const walk = (k, forward) => {
      for (let j = 0; j <= end - start; j += 1) {
        const i = forward ? start + j : end - j;
        const at = px(points[i][0]);
        if (j && steps) context.lineTo(forward ? at : px(points[i + 1][0]), py(points[forward ? i - 1 : i][k]));
        context.lineTo(at, py(points[i][k]));
      }
    };
    const close = steps && end === points.length - 1 ? Math.min(to, whole[1]) : points[end][0];
    context.strokeStyle = context.fillStyle = ink.of(one.colour);
    context.lineWidth = one.width ?? 1.6;
    context.lineJoin = "round";
    context.beginPath();
    context.moveTo(px(points[start][0]), py(points[start][1]));
    walk(1, true);
    context.lineTo(px(close), py(points[end][1]));
    if (one.as === "area" || one.as === "stack") {
      if (one.as === "area") { context.lineTo(px(close), box.bottom); context.lineTo(px(points[start][0]), box.bottom); }
      else { context.lineTo(px(close), py(points[end][2])); walk(2, false); }
      context.closePath();
      context.globalAlpha = one.as === "area" ? 0.28 : 1;
      context.fill();
      context.globalAlpha = 1;
      return;
    }
    context.setLineDash(one.dashed ? [5, 3] : []);
    context.stroke();
    context.setLineDash([]);
    if (one.dotted) for (let i = start; i <= end; i += 1) dot(context, px(points[i][0]), py(points[i][1]), 3, ink.of(one.colour), ink.paper);
  }

  // Names at the right ends, pushed apart so that none covers another.
  function names(context, on, { py, to, box }, ink) {
    context.font = `600 12px ${ink.sans}`;
    context.textAlign = "left";
    context.textBaseline = "middle";
    const ends = on.filter((one) => one.points.length).map((one) => { const points = outline(one); return { one, at: Math.min(box.bottom, Math.max(box.top, py(points[Math.max(0, lastAt(points, to))][1]))) }; }).sort((a, b) => a.at - b.at);
    for (let i = 1; i < ends.length; i += 1) ends[i].at = Math.max(ends[i].at, ends[i - 1].at + 15);
    let limit = box.bottom + 6;
    for (let i = ends.length - 1; i >= 0; i -= 1) { ends[i].at = Math.min(ends[i].at, limit); limit = ends[i].at - 15; }
    for (const { one, at } of ends) {
      context.fillStyle = ink.of(one.colour);
      context.fillText(cut(context, one.name, 138), box.right + 8, at);
    }
  }

  function reading(context, on, ink) {
    const { box, px, py } = geometry;
    if (view.drag?.moved) {
      const { x0, x1, y0, y1 } = view.drag;
      context.fillStyle = ink.front;
      context.globalAlpha = 0.12;
      if (view.drag.tall) context.fillRect(x0, y0, x1 - x0, y1 - y0); else context.fillRect(x0, box.top, x1 - x0, box.bottom - box.top);
      context.globalAlpha = 1;
    }
    if (view.at === null) return;
    context.strokeStyle = ink.ink;
    context.lineWidth = 1;
    line(context, px(view.at), box.top, px(view.at), box.bottom);
    for (const one of on) {
      const points = outline(one);
      const i = lastAt(points, view.at);
      if (i < 0) continue;
      const at = py(points[i][1]);
      if (at >= box.top - 4 && at <= box.bottom + 4) dot(context, px(view.at), at, 3.5, ink.of(one.colour), ink.paper);
    }
  }

  // What each series has at a place; values are those of the last change before it.
  function read(at, clientX, clientY) {
    view.at = at;
    const found = shown().map((one) => { const i = lastAt(one.points, at); return [one, i < 0 ? null : one.points[i][1]]; });
    const sum = given.total ? found.reduce((all, [one, v]) => all + (one.as === "stack" ? v ?? 0 : 0), 0) : null;
    const lines = found.filter(([one, v]) => one.as !== "stack" || v).sort((a, b) => (b[1] ?? -1) - (a[1] ?? -1)).map(([one, v]) => `${up.show(v)}  ${one.name}`);
    if (sum !== null) lines.unshift(`${up.show(sum)}  ${given.total}`);
    const title = `${reads} ${(across.show ?? integer)(across.whole === false ? at : Math.round(at))}`;
    showTip(clientX, clientY, [[title, "tip-title"], ...lines.map((text) => [text, "tip-row"])]);
    redrawAll();
    return `${title}: ${lines.join(", ")}`;
  }

  const back = h("button", { type: "button", class: "quiet whole", disabled: true }, "Show all");
  function zoom(from, to, low = null, high = null) {
    const least = (whole[1] - whole[0]) * 1e-6;
    const [a, b] = [Math.max(whole[0], from), Math.min(whole[1], to)];
    const all = (a <= whole[0] && b >= whole[1]) || b - a <= least;
    Object.assign(view, all ? { from: null, to: null } : { from: a, to: b }, { low, high });
    back.disabled = all && low === null;
    redrawAll();
  }
  const leave = () => { view.at = null; hideTip(); redrawAll(); };
  const all = () => { zoom(...whole); leave(); };
  back.addEventListener("click", all);

  const spot = (event) => { const r = canvas.getBoundingClientRect(); const { box } = geometry; return [Math.min(box.right, Math.max(box.left, event.clientX - r.left)), Math.min(box.bottom, Math.max(box.top, event.clientY - r.top))]; };
  const valueAt = (x) => geometry.sx.from((x - geometry.box.left) / (geometry.box.right - geometry.box.left));
  const heightAt = (y) => geometry.sy.from((geometry.box.bottom - y) / (geometry.box.bottom - geometry.box.top));
  canvas.addEventListener("pointermove", (event) => {
    if (!geometry) return;
    const [x, y] = spot(event);
    const { drag } = view;
    if (drag) { Object.assign(drag, { x1: x, y1: y }); drag.moved ||= Math.abs(x - drag.x0) > 6; drag.tall = Math.abs(y - drag.y0) > 40; }
    read(valueAt(x), event.clientX, event.clientY);
  });
  canvas.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch" || event.button !== 0 || !geometry) return;
    const [x, y] = spot(event);
    view.drag = { x0: x, x1: x, y0: y, y1: y, moved: false, tall: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", () => {
    const { drag } = view;
    view.drag = null;
    if (!drag?.moved) return;
    const [a, b] = [valueAt(drag.x0), valueAt(drag.x1)].sort((p, q) => p - q);
    const [low, high] = drag.tall ? [heightAt(drag.y0), heightAt(drag.y1)].sort((p, q) => p - q) : [null, null];
    zoom(a, b, low, high);
  });
  canvas.addEventListener("pointercancel", () => { view.drag = null; redrawAll(); });
  canvas.addEventListener("pointerleave", leave);
  canvas.addEventListener("blur", leave);
  canvas.addEventListener("dblclick", all);
  canvas.addEventListener("keydown", (event) => {
    if (!geometry) return;
    const [from, to] = [view.from ?? whole[0], view.to ?? whole[1]];
    const middle = view.at ?? (from + to) / 2;
    const span = to - from;
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      const next = Math.min(to, Math.max(from, middle + (event.key === "ArrowRight" ? 1 : -1) * span / 50));
      const r = canvas.getBoundingClientRect();
      announce(read(next, r.left + geometry.px(next), r.top + 40));
    } else if (event.key === "+" || event.key === "=") zoom(middle - span / 4, middle + span / 4);
    else if (event.key === "-") zoom(middle - span, middle + span);
    else if (event.key === "Escape") all();
    else return;
    event.preventDefault();
  });

  pictured(canvas, paint);
  measure();
  const node = h("div", { class: "plot-part" }, series.length > 1 ? legendOf(series, () => { stacks = null; redrawAll(); }) : null, canvas, h("div", { class: "under" },
    h("p", { class: "hint" }, h("span", { class: "mouse" }, "Drag across the plot to look closer; double-click for all.")), back,
    saveButton(canvas, label, (context, width, height, ink) => paint(context, width, height, ink, true))));
  return { node, canvas, set(points, marks = rules) {
    for (const one of series) one.points = points[one.name] ?? [];
    rules = marks;
    measure();
    redrawAll();
  } };
}
