// Range brushes: for each metric a histogram with two handles; they filter scatter and table.
// Invariant: a handle at its end of the track means "no limit", so rounding never hides a point.

const STEPS = 1000;
const BINS = 64;

function filterView(model) {
  const c = model.configurations;
  const brushes = c.columns.map((column) => brush(model, column));
  const tally = h("p", { class: "tally", "aria-live": "polite" });
  const reset = h("button", { type: "button", class: "quiet" }, "Reset filter");
  reset.addEventListener("click", () => resetFilter(model));
  const words = h("input", { type: "search", id: "words", placeholder: "fit=best depth=80", spellcheck: "false", autocomplete: "off" });
  words.addEventListener("input", () => { c.words = words.value.split(/\s+/).filter(Boolean); applyFilter(model); });
  const sync = () => {
    tally.replaceChildren(h("strong", {}, integer(c.passing)), ` of ${integer(c.n)} configurations in range`);
    reset.disabled = !isFiltered(c);
    if (!c.words.length && words.value.trim()) words.value = "";
    for (const b of brushes) b.sync();
  };
  model.listeners.add((what) => { if (what === "filter" || what === "scale") { sync(); redrawAll(); } });
  sync();
  return h("div", { class: "filter" }, h("div", { class: "filter-head" }, tally, h("label", { class: "words" }, "Specification has", words), reset), h("div", { class: "brushes" }, brushes.map((b) => b.node)));
}

function brush(model, column) {
  const c = model.configurations;
  const canvas = h("canvas", { class: "histogram", "aria-hidden": "true" });
  const handle = (which) => h("input", { type: "range", min: 0, max: STEPS, step: 1, value: which ? STEPS : 0, class: which ? "high" : "low",
    "data-column": column.key, "aria-label": `${which ? "largest" : "smallest"} ${column.label.toLowerCase()}` });
  const low = handle(0);
  const high = handle(1);
  const words = h("output", { class: "range" });
  let scale = null;
  let bins = null;
  let logNow = null;

  function rescale() {
    if (scale && logNow === column.log) return;
    logNow = column.log;
    scale = makeScale(column.low, column.high, column.log, column.binary);
    bins = new Uint8Array(c.n);
    for (let i = 0; i < c.n; i += 1) bins[i] = Math.min(BINS - 1, Math.max(0, Math.floor(scale.to(column.values[i]) * BINS)));
  }
  function sync() {
    rescale();
    const place = (v, end) => (Number.isFinite(v) ? Math.round(Math.min(1, Math.max(0, scale.to(v))) * STEPS) : end);
    low.value = place(column.range[0], 0);
    high.value = place(column.range[1], STEPS);
    const [a, b] = column.range;
    words.textContent = a === -Infinity && b === Infinity ? `${column.show(column.low)} – ${column.show(column.high)}`
      : `${a === -Infinity ? "up to" : b === Infinity ? `from ${column.show(a)}` : `${column.show(a)} –`}${b === Infinity ? "" : ` ${column.show(b)}`}`;
    words.title = `${a === -Infinity ? column.exact(column.low) : column.exact(a)} – ${b === Infinity ? column.exact(column.high) : column.exact(b)}`;
    for (const [input, v] of [[low, Math.max(a, column.low)], [high, Math.min(b, column.high)]]) input.setAttribute("aria-valuetext", column.show(v));
    words.classList.toggle("on", a !== -Infinity || b !== Infinity);
  }
  let pending = 0;
  const moved = (event) => {
    // The handles do not pass each other.
    if (Number(low.value) > Number(high.value)) { if (event.target === low) low.value = high.value; else high.value = low.value; }
    const a = Number(low.value) === 0 ? -Infinity : scale.from(low.value / STEPS);
    const b = Number(high.value) === STEPS ? Infinity : scale.from(high.value / STEPS);
    column.range = [a, b];
    if (!pending) pending = requestAnimationFrame(() => { pending = 0; applyFilter(model); });
  };
  low.addEventListener("input", moved);
  high.addEventListener("input", moved);

  function draw() {
    if (!canvas.clientWidth) return;
    rescale();
    const { context, width, height } = prepare(canvas);
    const ink = colours();
    const all = new Uint32Array(BINS);
    const kept = new Uint32Array(BINS);
    for (let i = 0; i < c.n; i += 1) { all[bins[i]] += 1; if (c.pass[i]) kept[bins[i]] += 1; }
    const peak = Math.max(1, ...all);
    // Square root: a bar of one configuration stays visible beside one of ten thousand.
    const tall = (v) => (v ? Math.max(1.5, Math.sqrt(v / peak) * (height - 2)) : 0);
    const wide = width / BINS;
    for (let k = 0; k < BINS; k += 1) {
      context.fillStyle = ink.line;
      context.fillRect(k * wide, height - tall(all[k]), Math.max(1, wide - 1), tall(all[k]));
      context.fillStyle = ink.dots;
      context.fillRect(k * wide, height - tall(kept[k]), Math.max(1, wide - 1), tall(kept[k]));
    }
    const mark = c.chosenRow >= 0 ? column.values[c.chosenRow] : model.chosenHeap && heapValue(model.chosenHeap, column.key);
    if (isNumber(mark)) {
      context.fillStyle = ink.chosen;
      context.fillRect(Math.min(width - 2, Math.max(0, scale.to(mark) * width - 1)), 0, 2, height);
    }
  }
  redraws.add(draw);
  const node = h("fieldset", { class: "brush" }, h("legend", {}, column.label), words, canvas, h("div", { class: "track" }, low, high));
  return { node, sync };
}
