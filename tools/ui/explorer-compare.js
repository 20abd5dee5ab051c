// Up to four configurations side by side: what they are, what they cost, and why one is better.
// Invariant: every figure is a column of the results or a field of `detail`; differences are
// taken here and nowhere stored.

// Details by row: `memory` is [event, footprint, live], `parts` the pools, `levels` the counts.
function readDetails(model) {
  const details = new Map();
  for (const entry of list(model.exploration.detail)) {
    if (!isObject(entry) || !isNumber(entry.number)) continue;
    const row = model.rowOf.get(entry.number);
    if (row !== undefined) details.set(row, { ...entry, curve: list(entry.memory) });
  }
  return details;
}

const CAUSES = ["allocate", "free", "resize", "application"];
const CAUSE_NAMES = { allocate: "allocation", free: "free", resize: "resize", application: "the program" };
// Accesses of a part by cause.
const accessesOf = (part, cause) => { const c = isObject(part[cause]) ? part[cause] : {}; return (c.reads || 0) + (c.writes || 0); };
const SHARES = [["live", "requested bytes"], ["headers", "headers"], ["control", "control structures"], ["spare", "free or rounded"]];
const partsOf = (detail) => list(detail?.parts).filter(isObject);

function compareView(model) {
  const node = h("div", { id: "comparison" });
  const update = () => {
    const rows = model.compared;
    if (!rows.length) {
      const suggest = h("button", { type: "button", class: "suggest" }, "Compare the ends of the front");
      suggest.addEventListener("click", () => {
        const walk = envelope(model.scatter.x.values, model.scatter.y.values, model.frontRows);
        for (const i of new Set([walk[0], walk[Math.floor(walk.length / 2)], walk[walk.length - 1]])) if (i !== undefined && !model.compared.includes(i) && model.compared.length < MOST_COMPARED) model.compared.push(i);
        changed(model, "compare");
      });
      node.replaceChildren(h("p", { class: "missing" }, "Nothing is chosen. Tick up to four rows of the table, press “Compare” beside a configuration, or C on a point. ", model.frontRows.length ? suggest : null));
      return;
    }
    node.replaceChildren(sideBySide(model, rows), ...insides(model, rows));
  };
  model.listeners.add((what) => { if (what === "compare") update(); });
  update();
  return node;
}

const chip = (k) => h("span", { class: "letter", style: `--c:var(--series-${k * 2 % 8 + 1})` }, LETTERS[k]);

function sideBySide(model, rows) {
  const head = h("tr", {}, h("th", {}), rows.map((i, k) => {
    const drop = h("button", { type: "button", class: "quiet drop", "aria-label": `remove ${nameOf(model, i)}` }, "×");
    drop.addEventListener("click", () => toggleCompared(model, i));
    return h("th", { scope: "col" }, chip(k), " ", h("span", { class: "spec" }, nameOf(model, i)), " ", model.front[i] ? badge("front", "front") : null, drop);
  }));
  const line = (column) => {
    const values = rows.map((i) => column.values[i]);
    const best = column.metric ? Math.min(...values.filter((v) => !Number.isNaN(v))) : null;
    const differ = new Set(values.map((v) => (Number.isNaN(v) ? "none" : v))).size > 1;
    return h("tr", { class: differ ? "differs" : null }, h("th", { scope: "row" }, column.label), values.map((v, k) => {
      const bound = column.metric && model.status.words[model.status.values[rows[k]]] === "beaten" ? "≥\u00a0" : "";
      const more = column.metric && differ && v !== best && best > 0 ? h("small", {}, ` +${significant((v / best - 1) * 100)}\u00a0%`) : null;
      return h("td", { class: column.metric && differ && v === best ? "best" : null }, h("span", { title: Number.isNaN(v) ? null : column.exact(v) }, bound, column.show(v)), more);
    }));
  };
  return h("div", { class: "scroll" }, h("table", { class: "side" }, h("caption", {}, "Configurations side by side"), h("thead", {}, head),
    h("tbody", {}, model.metrics.map(line)), h("tbody", {}, model.parameters.map(line))));
}

function insides(model, rows) {
  const known = rows.map((i, k) => ({ i, k, detail: model.details.get(i) })).filter(({ detail }) => detail);
  const without = rows.filter((i) => !model.details.has(i));
  const parts = [];
  if (without.length) parts.push(h("p", { class: "hint" }, `Without details in the folder: ${without.map((i) => nameOf(model, i)).join(", ")}. They are kept for the front and the named heaps.`));
  if (!known.length) return parts;
  parts.push(h("h3", {}, "Memory over time"), memoryChart(model, known));
  const whose = { at: 0 };
  const holder = h("div");
  const show = () => holder.replaceChildren(occupancy(model, known[whose.at]), energyTable(model, known[whose.at]));
  const tabs = h("div", { class: "legend", role: "group", "aria-label": "Heap shown" }, known.map((entry, t) => {
    const b = h("button", { type: "button", "aria-pressed": String(t === 0) }, chip(entry.k), nameOf(model, entry.i));
    b.addEventListener("click", () => { whose.at = t; for (const [u, other] of [...tabs.children].entries()) other.setAttribute("aria-pressed", String(u === t)); show(); });
    return b;
  }));
  show();
  parts.push(h("h3", {}, "Inside one heap"), tabs, holder, whyBetter(model, known));
  return parts;
}

function memoryChart(model, known) {
  const curves = known.filter(({ detail }) => list(detail.curve).length);
  if (!curves.length) return h("p", { class: "missing" }, "The details hold no curve.");
  return plot({ label: "Footprint and live bytes over the events", reads: "event", height: 360, x: { title: "event" }, y: byteAxis("bytes"), series: [
    { name: "live bytes", as: "area", shape: "area", colour: "live", points: column(curves[0].detail.curve, 2), on: true },
    ...curves.map(({ i, k, detail }) => ({ name: `${LETTERS[k]} ${nameOf(model, i)}`, as: "step", colour: `series-${k * 2 % 8 + 1}`, width: 2.2, points: column(detail.curve, 1), on: true })),
  ] }).node;
}
const byteAxis = (title) => ({ title, show: bytes, tick: byteTick, binary: true });
const column = (points, k) => points.filter((p) => Array.isArray(p) && isNumber(p[0]) && isNumber(p[k])).map((p) => [p[0], p[k]]);

// Live bytes by pool, stacked; the table beside it gives what the chart cannot be read for.
function occupancy(model, { i, detail }) {
  const parts = partsOf(detail);
  if (!parts.length) return h("p", { class: "missing" }, "The details of this heap name no pools.");
  const table = h("table", { class: "parts" }, h("caption", {}, "Pools"), h("thead", {}, h("tr", {}, ["Pool", "Level", "Footprint", ...SHARES.map(([, name]) => name), "Record accesses"].map((t, k) => h("th", { scope: "col", class: k ? "number" : null }, t)))),
    h("tbody", {}, parts.map((part) => h("tr", {}, h("th", { scope: "row" }, String(part.name)), h("td", { class: "number" }, part.level ?? NONE), h("td", { class: "number" }, byteFigure(part.footprint)),
      SHARES.map(([key]) => h("td", { class: "number" }, isNumber(part[key]) ? byteFigure(part[key]) : NONE)), h("td", { class: "number" }, countFigure(CAUSES.slice(0, 3).reduce((sum, cause) => sum + accessesOf(part, cause), 0)))))));
  const drawn = parts.filter((part) => list(part.curve).length);
  return h("div", {}, h("h4", {}, `Occupancy by pool: live bytes in each, ${nameOf(model, i)}`), drawn.length ? plot({ label: "Live bytes by pool over the events", reads: "event", height: 320, x: { title: "event" }, y: byteAxis("live bytes"), total: "live in all",
    series: drawn.map((part, k) => ({ name: String(part.name), as: "stack", shape: "box", colour: `series-${k % 8 + 1}`, points: column(part.curve, 1), on: true })) }).node : null, h("div", { class: "table" }, h("div", { class: "scroll" }, table)));
}

// Energy: accesses of each level times the energy of one, and leakage as a line of its own.
function energyTable(model, { detail }) {
  const levels = list(detail.price?.levels).filter((level) => isObject(level) && isNumber(level.read_nj));
  if (!levels.length) return h("p", { class: "hint" }, "No energy: the exploration had no memory levels with an energy table.");
  const rows = [];
  let accesses = 0;
  let leakage = 0;
  for (const level of levels) {
    const name = String(level.name ?? "level");
    for (const [what, number, each] of [["reads", level.reads, level.read_nj], ["writes", level.writes, level.write_nj]]) {
      if (!isNumber(number) || !isNumber(each)) continue;
      accesses += number * each * 1e-9;
      rows.push([name, what, countFigure(number), joules(each * 1e-9), joules(number * each * 1e-9)]);
    }
    if (isNumber(level.leakage)) {
      leakage += level.leakage;
      rows.push([name, "leakage over the run", isNumber(detail.price.time) ? seconds(detail.price.time) : NONE, isNumber(level.leakage_mw) ? `${significant(level.leakage_mw)}\u00a0mW` : NONE, joules(level.leakage)]);
    }
  }
  const sum = (label, value) => h("tr", { class: "sum" }, h("th", { scope: "row", colspan: 4 }, label), h("td", { class: "number" }, joules(value)));
  const sources = [...new Set(levels.map((level) => level.source).filter(Boolean))];
  return h("div", {}, h("h4", {}, "Energy: counts × table, leakage apart"), h("div", { class: "table" }, h("div", { class: "scroll" }, h("table", { class: "energy" }, h("caption", {}, "Energy by level"),
    h("thead", {}, h("tr", {}, ["Level", "What", "Count", "Each", "Energy"].map((t, k) => h("th", { scope: "col", class: k > 1 ? "number" : null }, t)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, k) => h(k ? "td" : "th", { scope: k ? null : "row", class: k > 1 ? "number" : null }, cell)))), sum("Accesses", accesses), sum("Leakage", leakage))))),
  sources.length ? h("p", { class: "hint" }, `Energies from ${sources.join("; ")}.`) : null);
}

// Difference of one heap against another, by pool and cause; pools are paired by name.
function whyBetter(model, known) {
  const others = [...model.details.keys()];
  const state = { one: known[0].i, other: (known[1] || {}).i ?? others.find((i) => i !== known[0].i) };
  if (state.other === undefined) return h("p", { class: "hint" }, "A second heap with details is needed to say why one is better.");
  const body = h("div");
  const pick = (key, label, rows) => {
    const node = h("select", { "aria-label": label, "data-why": key }, rows.map((i) => h("option", { value: i }, nameOf(model, i))));
    node.value = String(state[key]);
    node.addEventListener("change", () => { state[key] = Number(node.value); show(); });
    return node;
  };
  const show = () => {
    const [one, other] = [model.details.get(state.one), model.details.get(state.other)];
    const lines = (keys, of) => {
      const names = [...new Set([...partsOf(one), ...partsOf(other)].map((part) => String(part.name)))];
      return names.flatMap((name) => keys.map(([key, label]) => {
        const at = (detail) => partsOf(detail).filter((part) => String(part.name) === name).reduce((sum, part) => sum + of(part, key), 0);
        return { pool: name, cause: label, a: at(one), b: at(other) };
      })).filter(({ a, b }) => a || b).sort((x, y) => Math.abs(y.a - y.b) - Math.abs(x.a - x.b));
    };
    const groups = [
      ["Accesses", lines(CAUSES.map((c) => [c, CAUSE_NAMES[c]]), accessesOf), count, integer],
      ["Footprint", lines(SHARES, (part, key) => part[key] || 0), bytes, exactBytes],
    ];
    const signed = (d, say) => (d === 0 ? "±0" : `${d > 0 ? "+" : "−"}${say(Math.abs(d))}`);
    body.replaceChildren(...groups.map(([title, rows, say, exact]) => {
      const total = rows.reduce((s, r) => s + r.a - r.b, 0);
      const widest = Math.max(1, ...rows.map((r) => Math.abs(r.a - r.b)));
      const verdict = total === 0 ? "equal" : `${say(Math.abs(total))} ${total < 0 ? "less" : "more"}`;
      return h("div", { class: "why-group", "data-total": total }, h("h4", {}, `${title}: ${verdict}`), h("div", { class: "scroll" }, h("table", { class: "why" }, h("caption", {}, `${title} by pool and cause`),
        h("tbody", {}, rows.slice(0, 12).map((r) => { const d = r.a - r.b; return h("tr", {}, h("th", { scope: "row" }, r.pool, h("span", { class: "soft" }, ` ${r.cause}`)), h("td", { class: "rail two", "aria-hidden": "true" }, h("i", { class: d < 0 ? "less" : "more", style: `width:${(Math.abs(d) / widest * 50).toFixed(1)}%` })), h("td", { class: "number", title: `${exact(r.a)} against ${exact(r.b)}` }, signed(d, say))); })))));
    }));
  };
  show();
  return h("div", { class: "why-part" }, h("h3", {}, "Why is this one better?"), h("div", { class: "controls" }, pick("one", "this heap", known.map(({ i }) => i)), " against ", pick("other", "the heap it is held against", others)), body);
}
