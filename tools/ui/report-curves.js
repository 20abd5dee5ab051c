// Memory over time: live bytes as an area, footprints as steps, the chosen heap on top.
// Invariant: footprint and live are step functions of the event index, never interpolated.

function curvesView(model) {
  const chosenCurve = model.chosen ? list(model.chosen.curve) : [];
  const clean = (points, k) => points.filter((p) => Array.isArray(p) && isNumber(p[0]) && isNumber(p[k])).map((p) => [p[0], p[k]]);
  const series = [];
  const live = model.profile && Array.isArray(model.profile.live) ? clean(model.profile.live, 1) : clean(chosenCurve, 2);
  if (live.length) series.push({ name: "live bytes", kind: "live", points: live, on: true });
  const own = clean(chosenCurve, 1);
  const chosenName = model.chosenHeap?.name || model.chosen?.spec || "chosen heap";
  if (own.length) series.push({ name: chosenName, kind: "chosen", points: own, on: true });
  const others = model.curves.filter((curve) => !(own.length && (curve.name === chosenName || curve.name === model.chosen?.spec)))
    .map((curve) => ({ name: String(curve.name), kind: "named", points: clean(curve.points, 1) })).filter((s) => s.points.length);
  const top = (s) => s.points.reduce((m, p) => Math.max(m, p[1]), 0);
  others.sort((a, b) => top(a) - top(b));
  others.forEach((s, i) => { s.colour = i; s.on = i < 3 || i === others.length - 1; });
  series.push(...others);
  if (!series.length) return null;

  let first = Infinity;
  let last = -Infinity;
  for (const s of series) for (const [e] of s.points) { first = Math.min(first, e); last = Math.max(last, e); }
  if (model.trace && isNumber(model.trace.events)) last = Math.max(last, model.trace.events);
  const view = { from: first, to: last, at: null, drag: null };
  const canvas = h("canvas", { class: "curves", tabindex: "0", role: "application",
    "aria-label": "Memory over time. Arrow keys move the reading line, plus and minus zoom, Escape shows the whole trace." });
  let box = null;
  let scaleX = null;

  const legend = h("div", { class: "legend", role: "group", "aria-label": "Curves shown" }, series.map((s) => {
    const swatch = h("i", { class: `swatch ${s.kind}`, style: s.kind === "named" ? `--c:var(--series-${s.colour % 8 + 1})` : null, "data-dash": s.colour >= 8 ? "1" : null });
    const button = h("button", { type: "button", "aria-pressed": String(s.on), title: `peak ${exactBytes(top(s))}` }, swatch, s.name, h("span", { class: "soft" }, ` ${bytes(top(s))}`));
    button.addEventListener("click", () => { s.on = !s.on; button.setAttribute("aria-pressed", String(s.on)); redrawAll(); });
    return button;
  }));
  const whole = h("button", { type: "button", class: "quiet", disabled: true }, "Whole trace");
  const zoom = (from, to) => {
    view.from = Math.max(first, from);
    view.to = Math.min(last, to);
    if (view.to - view.from < 2) { view.from = first; view.to = last; }
    whole.disabled = view.from <= first && view.to >= last;
    redrawAll();
  };
  whole.addEventListener("click", () => zoom(first, last));

  // Index of the last point at or before an event (-1: none).
  function before(points, event) {
    let a = 0;
    let b = points.length;
    while (a < b) { const m = (a + b) >> 1; if (points[m][0] <= event) a = m + 1; else b = m; }
    return a - 1;
  }

  function draw() {
    if (!canvas.clientWidth) return;
    const { context, width, height } = prepare(canvas);
    const ink = colours();
    const wideEnough = width > 720;
    box = { left: 74, top: 30, right: width - (wideEnough ? 150 : 18), bottom: height - 50 };
    const shown = series.filter((s) => s.on);
    const peak = shown.reduce((m, s) => {
      const start = Math.max(0, before(s.points, view.from));
      const end = before(s.points, view.to);
      for (let i = start; i <= end; i += 1) m = Math.max(m, s.points[i][1]);
      return m;
    }, 1);
    scaleX = makeScale(view.from, view.to, false, false);
    const scaleY = makeScale(0, peak * 1.04, false, true);
    drawAxes(context, box, { scale: scaleX, show: plainTick, title: "event →" }, { scale: scaleY, show: byteTick, title: "↑ bytes" }, ink);
    const x = (e) => box.left + scaleX.to(e) * (box.right - box.left);
    const y = (v) => box.bottom - scaleY.to(v) * (box.bottom - box.top);
    context.save();
    context.beginPath();
    context.rect(box.left, box.top - 4, box.right - box.left, box.bottom - box.top + 4);
    context.clip();
    const colour = (s) => (s.kind === "live" ? ink.live : s.kind === "chosen" ? ink.chosen : ink.series[s.colour % 8]);
    const back = shown.slice().sort((a, b) => rank(a) - rank(b));
    for (const s of back) {
      const start = Math.max(0, before(s.points, view.from));
      const end = Math.min(s.points.length - 1, before(s.points, view.to) + 1);
      context.beginPath();
      context.moveTo(x(s.points[start][0]), y(s.points[start][1]));
      for (let i = start + 1; i <= end; i += 1) { context.lineTo(x(s.points[i][0]), y(s.points[i - 1][1])); context.lineTo(x(s.points[i][0]), y(s.points[i][1])); }
      const tail = s.points[end];
      if (end === s.points.length - 1) context.lineTo(x(view.to), y(tail[1]));
      context.strokeStyle = colour(s);
      context.lineWidth = s.kind === "chosen" ? 2.5 : s.kind === "live" ? 1.2 : 1.4;
      context.setLineDash(s.kind === "named" && s.colour >= 8 ? [5, 3] : []);
      if (s.kind === "live") {
        context.save();
        context.lineTo(x(view.to), y(0));
        context.lineTo(x(s.points[start][0]), y(0));
        context.closePath();
        context.globalAlpha = 0.28;
        context.fillStyle = ink.live;
        context.fill();
        context.restore();
      } else context.stroke();
      context.setLineDash([]);
    }
    context.restore();
    if (wideEnough) label(context, shown, colour, y);
    if (view.drag?.moved) {
      context.fillStyle = ink.front;
      context.globalAlpha = 0.12;
      context.fillRect(view.drag.x0, box.top, view.drag.x1 - view.drag.x0, box.bottom - box.top);
      context.globalAlpha = 1;
    }
    if (view.at !== null) {
      context.strokeStyle = ink.ink;
      context.lineWidth = 1;
      line(context, x(view.at), box.top, x(view.at), box.bottom);
      for (const s of shown) {
        const i = before(s.points, view.at);
        if (i >= 0) dot(context, x(view.at), y(s.points[i][1]), 3.5, colour(s), ink.paper);
      }
    }
  }

  const rank = (s) => ({ live: 0, named: 1, chosen: 2 })[s.kind];

  // Names at the right ends, pushed apart so that none covers another.
  function label(context, shown, colour, y) {
    context.font = `600 12px ${colours().sans}`;
    context.textAlign = "left";
    context.textBaseline = "middle";
    const ends = shown.map((s) => { const i = Math.max(0, before(s.points, view.to)); return { s, at: Math.min(box.bottom, Math.max(box.top, y(s.points[i][1]))) }; }).sort((a, b) => a.at - b.at);
    for (let i = 1; i < ends.length; i += 1) ends[i].at = Math.max(ends[i].at, ends[i - 1].at + 15);
    let limit = box.bottom + 6;
    for (let i = ends.length - 1; i >= 0; i -= 1) { ends[i].at = Math.min(ends[i].at, limit); limit = ends[i].at - 15; }
    for (const { s, at } of ends) {
      context.fillStyle = colour(s);
      let name = s.name;
      while (name.length > 6 && context.measureText(name).width > 138) name = `${name.slice(0, -2)}…`.replace(/……$/, "…");
      context.fillText(name, box.right + 8, at);
    }
  }

  function read(event, clientX, clientY) {
    view.at = event;
    const shown = series.filter((s) => s.on);
    const lines = shown.map((s) => { const i = before(s.points, event); return [s.name, i < 0 ? null : s.points[i][1]]; })
      .sort((a, b) => (b[1] ?? -1) - (a[1] ?? -1)).map(([name, v]) => [`${bytes(v)}  ${name}`, "tip-row"]);
    showTip(clientX, clientY, [[`event ${integer(Math.round(event))}`, "tip-title"], ...lines]);
    redrawAll();
    return lines;
  }
  const eventAt = (x) => Math.min(view.to, Math.max(view.from, scaleX.from((x - box.left) / (box.right - box.left))));
  canvas.addEventListener("pointermove", (event) => {
    if (!box) return;
    const x = event.clientX - canvas.getBoundingClientRect().left;
    if (view.drag) { view.drag.x1 = Math.min(box.right, Math.max(box.left, x)); view.drag.moved ||= Math.abs(x - view.drag.x0) > 6; }
    read(eventAt(x), event.clientX, event.clientY);
  });
  canvas.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch" || event.button !== 0 || !box) return;
    const x = event.clientX - canvas.getBoundingClientRect().left;
    view.drag = { x0: Math.min(box.right, Math.max(box.left, x)), moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", () => {
    const drag = view.drag;
    view.drag = null;
    if (drag?.moved) { const [a, b] = [eventAt(drag.x0), eventAt(drag.x1)].sort((p, q) => p - q); zoom(a, b); }
  });
  canvas.addEventListener("pointercancel", () => { view.drag = null; redrawAll(); });
  canvas.addEventListener("pointerleave", () => { view.at = null; hideTip(); redrawAll(); });
  canvas.addEventListener("dblclick", () => zoom(first, last));
  canvas.addEventListener("blur", () => { view.at = null; hideTip(); redrawAll(); });
  canvas.addEventListener("keydown", (event) => {
    const middle = view.at ?? (view.from + view.to) / 2;
    const span = view.to - view.from;
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      const next = Math.min(view.to, Math.max(view.from, middle + (event.key === "ArrowRight" ? 1 : -1) * span / 50));
      const r = canvas.getBoundingClientRect();
      const lines = read(next, r.left + box.left + scaleX.to(next) * (box.right - box.left), r.top + 40);
      announce(`event ${Math.round(next)}: ${lines.map(([text]) => text).join(", ")}`);
    } else if (event.key === "+" || event.key === "=") zoom(middle - span / 4, middle + span / 4);
    else if (event.key === "-") zoom(middle - span, middle + span);
    else if (event.key === "Escape") { view.at = null; hideTip(); zoom(first, last); }
    else return;
    event.preventDefault();
  });
  redraws.add(draw);
  return h("div", {}, legend, canvas, h("div", { class: "under" }, h("p", { class: "hint" }, "Drag across the plot to look closer; double-click for the whole trace."), whole));
}
