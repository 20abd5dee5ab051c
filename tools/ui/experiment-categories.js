// A value of each series for each name: bars side by side, or points that lines join where names are in order.
// Invariant: the axis begins at zero; series differ in the form of their marks or their outline, not in colour
// alone; a label that would cover another is left out, and can be read by pointing.

// The outlines of marks, in turn.
const MARKS = [
  (c, x, y) => c.arc(x, y, 4.5, 0, 7),
  (c, x, y) => c.rect(x - 4, y - 4, 8, 8),
  (c, x, y) => polygon(c, [[x, y - 5.5], [x + 5.5, y], [x, y + 5.5], [x - 5.5, y]]),
  (c, x, y) => polygon(c, [[x, y - 5.5], [x + 5.2, y + 3.5], [x - 5.2, y + 3.5]]),
  (c, x, y) => polygon(c, [[x, y + 5.5], [x + 5.2, y - 3.5], [x - 5.2, y - 3.5]]),
];
function polygon(context, corners) {
  corners.forEach(([x, y], k) => (k ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.closePath();
}
// Neighbours of the eight colours are told apart well in this order.
const SHADES = [1, 4, 2, 3, 5, 6, 7, 8];

// A value in three digits that count, with its unit.
function valueOf(v, unit = "") {
  if (!isNumber(v)) return NONE;
  const text = v !== 0 && Math.abs(v) < 0.01 ? v.toExponential(2) : Number.isInteger(v) ? integer(v) : significant(v);
  return `${unit === "%" && v > 0 ? "+" : ""}${text}${unit === "" || unit === "x" ? "" : "\u00a0"}${unit === "x" ? "\u00a0×" : unit}`;
}

// A name in lines of at most a width, cut where a word alone is wider.
function wrapped(context, name, width) {
  const lines = [];
  for (const word of String(name).split(" ")) {
    const longer = lines.length ? `${lines[lines.length - 1]} ${word}` : word;
    if (lines.length && context.measureText(longer).width <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines.slice(0, 3).map((line, k) => cut(context, k === 2 && lines.length > 3 ? `${line}…` : line, width));
}

// A picture of the report; `signs` gives each name of a series its colour and mark, the same on the whole page.
function categories(given, signs) {
  const names = list(given.names).map(String);
  const taken = new Set(list(given.series).map(({ name }) => signs.get(name)).filter((sign) => sign !== undefined));
  const series = list(given.series).map((one) => {
    if (!signs.has(one.name)) {
      let sign = 0;
      while (taken.has(sign)) sign += 1;
      taken.add(sign);
      signs.set(one.name, sign);
    }
    const sign = signs.get(one.name);
    return { ...one, sign, on: true, colour: `series-${SHADES[sign % SHADES.length]}`, shape: given.joined ? "line" : "box" };
  });
  const bars = !given.joined;
  const state = { at: null };
  const canvas = h("canvas", { class: "plot-canvas categories", tabindex: "0", role: "application",
    "aria-label": `${given.title}. Left and right move from name to name.` });
  // Bars keep a width at which they can be pointed at; what is wider than the page scrolls within its box.
  canvas.style.minWidth = `${Math.max(300, bars ? 92 + names.length * (series.length * 9 + 14) : 300)}px`;
  let geometry = null;

  function paint(context, width, height, ink, file = false) {
    const on = series.filter((one) => one.on);
    const box = { left: 62, right: width - 12, top: 34, bottom: height - 66 };
    const most = on.flatMap(({ values }) => values).reduce((m, v) => (isNumber(v) && v > m ? v : m), 0);
    const scale = makeScale(0, most > 0 ? most * (bars ? 1.08 : 1.04) : 1, false, false);
    const slot = (box.right - box.left) / Math.max(1, names.length);
    const px = (k) => box.left + (k + 0.5) * slot;
    const py = (v) => box.bottom - scale.to(v) * (box.bottom - box.top);
    const wide = Math.min(60, slot * 0.8 / Math.max(1, on.length));
    geometry = { box, slot, px, py, on, wide };
    drawAxes(context, box, { scale: { ticks: () => [] }, show: String, title: `${given.x} →` }, { scale, show: plainTick, title: `↑ ${given.y}` }, ink);
    context.strokeStyle = ink.of("rule");
    line(context, box.left, box.bottom, box.right, box.bottom);
    context.font = `11.5px ${ink.sans}`;
    context.textAlign = "center";
    context.textBaseline = "top";
    context.fillStyle = ink.soft;
    let reach = -Infinity;
    // Where only some names are given, one may take the room of those beside it.
    const room = names.filter((name) => name !== "").length < names.length ? slot * 8 : Math.max(slot - 6, bars ? 0 : 44);
    names.forEach((name, k) => {
      const lines = name === "" ? [] : wrapped(context, name, room);
      const half = Math.max(0, ...lines.map((text) => context.measureText(text).width)) / 2;
      if (!lines.length || px(k) - half < reach + 4) return;
      lines.forEach((text, row) => context.fillText(text, px(k), box.bottom + 7 + 13 * row));
      reach = px(k) + half;
    });
    if (bars) paintBars(context, ink); else paintLines(context, ink);
    if (!file && state.at !== null) {
      context.fillStyle = ink.ink;
      context.globalAlpha = 0.06;
      context.fillRect(px(state.at) - slot / 2, box.top, slot, box.bottom - box.top);
      context.globalAlpha = 1;
    }
  }

  function paintBars(context, ink) {
    const { px, py, on, wide, box } = geometry;
    const labels = [];
    on.forEach((one, k) => one.values.forEach((v, name) => {
      if (!isNumber(v)) return;
      const left = px(name) + (k - on.length / 2) * wide;
      context.fillStyle = one.reference ? ink.paper : ink.of(one.colour);
      context.strokeStyle = ink.of(one.colour);
      context.lineWidth = 1.2;
      const bar = [left, py(v), Math.max(1, wide - 2), box.bottom - py(v)];
      context.fillRect(...bar);
      if (one.reference) context.strokeRect(...bar);
      labels.push([valueOf(v), left + wide / 2 - 1, py(v) - 4]);
    }));
    context.font = `11px ${ink.sans}`;
    context.fillStyle = ink.soft;
    context.textAlign = "center";
    context.textBaseline = "bottom";
    const drawn = [];
    for (const [text, x, y] of labels) {
      const half = context.measureText(text).width / 2 + 2;
      if (half * 2 > wide + 3 && on.length > 1) continue;
      if (drawn.some(([ox, oy, reach]) => Math.abs(x - ox) < half + reach && Math.abs(y - oy) < 13)) continue;
      drawn.push([x, y, half]);
      context.fillText(text, x, y);
    }
    canvas.dataset.labels = JSON.stringify(drawn.map(([x, y, half]) => [x - half + 2, y - 11, x + half - 2, y]));
  }

  function paintLines(context, ink) {
    const { px, py, on } = geometry;
    for (const one of on) {
      context.strokeStyle = ink.of(one.colour);
      context.lineWidth = 2;
      context.lineJoin = "round";
      context.setLineDash(one.reference ? [5, 4] : []);
      context.beginPath();
      let pen = false;
      one.values.forEach((v, k) => {
        if (!isNumber(v)) { pen = false; return; }
        if (pen) context.lineTo(px(k), py(v)); else context.moveTo(px(k), py(v));
        pen = true;
      });
      context.stroke();
      context.setLineDash([]);
      // Of hundreds of moments the marks would hide the line.
      if (names.length > 60) continue;
      context.lineWidth = 1.2;
      one.values.forEach((v, k) => {
        if (!isNumber(v)) return;
        context.beginPath();
        MARKS[one.sign % MARKS.length](context, px(k), py(v));
        context.fillStyle = one.reference ? ink.paper : ink.of(one.colour);
        context.strokeStyle = one.reference ? ink.of(one.colour) : ink.paper;
        context.fill();
        context.stroke();
      });
    }
  }

  function read(k, clientX, clientY) {
    state.at = k;
    const found = series.filter((one) => one.on && isNumber(one.values[k])).map((one) => `${valueOf(one.values[k])}  ${one.name}`);
    const shown = names[k] !== "" ? names[k] : String(Math.round(1000 * k / names.length) / 10);
    showTip(clientX, clientY, [[`${given.x}: ${shown}`, "tip-title"], ...found.map((text) => [text, "tip-row"]), ...(found.length ? [[given.y, "tip-kind"]] : [])]);
    redrawAll();
    return `${given.x} ${shown}: ${found.join(", ")}`;
  }
  const leave = () => { state.at = null; hideTip(); redrawAll(); };
  canvas.addEventListener("pointermove", (event) => {
    if (!geometry) return;
    const k = Math.floor((event.clientX - canvas.getBoundingClientRect().left - geometry.box.left) / geometry.slot);
    if (k >= 0 && k < names.length) read(k, event.clientX, event.clientY); else leave();
  });
  canvas.addEventListener("pointerleave", leave);
  canvas.addEventListener("blur", leave);
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Escape") leave();
    else if (step && names.length && geometry) {
      const k = Math.max(0, Math.min(names.length - 1, state.at === null ? (step > 0 ? 0 : names.length - 1) : state.at + step));
      const r = canvas.getBoundingClientRect();
      announce(read(k, r.left + geometry.px(k), r.top + 40));
    } else return;
    event.preventDefault();
  });
  pictured(canvas, paint);
  return h("figure", { class: "picture" }, h("figcaption", {}, prose(given.title)),
    series.length > 1 ? legendOf(series, redrawAll) : null, h("div", { class: "scroll", tabindex: "-1" }, canvas),
    h("div", { class: "under" }, h("span"), saveButton(canvas, given.title, (context, width, height, ink) => paint(context, width, height, ink, true))));
}
