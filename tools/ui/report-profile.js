// What the program asks for: sizes, lifetimes, bursts; then where the figures come from.
// Invariant: everything shown is a field of the document; unknown fields are listed, not dropped.

function profileView(model) {
  const { profile } = model;
  const sizes = list(profile.sizes).filter((s) => isObject(s) && isNumber(s.size));
  const allocations = sizes.reduce((sum, s) => sum + (s.allocations || 0), 0);
  const share = (s) => (allocations ? s.allocations / allocations : 0);
  const figure = (key, label, show, exact, hint) => ({ key, label, numeric: true, bar: true, hint, descending: true, value: (s) => s[key], cell: (s) => h("span", { title: exact(s[key]) }, show(s[key])) });
  const dominant = sizes.slice().sort((a, b) => b.allocations - a.allocations);
  const few = dominant.slice(0, 3).filter((s) => s.allocations > 0);
  const lead = few.length ? `${few.length === 1 ? "One size makes" : `${["", "", "Two", "Three"][few.length]} sizes make`} ${significant(few.reduce((sum, s) => sum + share(s), 0) * 100)}\u00a0% of all allocations: ${few.map((s) => `${exactBytes(s.size)} (${significant(share(s) * 100)}\u00a0%)`).join(", ")}. ` : "";
  const table = sortableTable([
    { key: "size", label: "Size", first: true, numeric: true, value: (s) => s.size, cell: (s) => exactBytes(s.size) },
    figure("allocations", "Allocations", count, integer, "requests of this size"),
    figure("frees", "Frees", count, integer),
    figure("mean_life_events", "Mean life, events", count, integer, "events between allocation and free"),
    figure("peak_blocks", "Peak blocks", count, integer, "blocks of this size live at once, at most (measured)"),
    figure("peak_bytes", "Peak bytes", bytes, exactBytes, "live bytes in this size, at most (measured)"),
  ], sizes, { sort: ["allocations", -1], page: 12, caption: "Sizes requested", class: "sizes", empty: "The program allocated nothing." });
  const lifetimes = list(profile.lifetimes).filter((l) => isObject(l) && isNumber(l.count));
  return h("div", {}, h("p", { class: "lead" }, lead, `${integer(sizes.length)} distinct size${sizes.length === 1 ? "" : "s"} in all.`), table.node,
    h("div", { class: "columns" },
      lifetimes.length ? h("div", {}, h("h3", {}, "Lifetimes"), bars(lifetimes.map((l) => [l.upto === null || l.upto === undefined ? "longer" : `≤ ${count(l.upto)} events`, l.count]))) : null,
      isObject(profile.bursts) && Object.keys(profile.bursts).length ? h("div", {}, h("h3", {}, "Bursts"), facts(Object.entries(profile.bursts).map(([k, v]) => [sayKey(k), isNumber(v) ? (/bytes/.test(k) ? byteFigure(v) : countFigure(v)) : typeof v === "string" ? v : JSON.stringify(v)]))) : null));
}

const sayKey = (key) => { const text = key.replace(/_/g, " "); return text.charAt(0).toUpperCase() + text.slice(1); };
const facts = (pairs) => h("dl", { class: "facts" }, pairs.map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, v))));

function bars(pairs) {
  const peak = Math.max(1, ...pairs.map(([, v]) => v));
  return h("ul", { class: "bars" }, pairs.map(([name, v]) => h("li", {}, h("span", {}, name), h("span", { class: "rail" }, h("i", { style: `width:${(v / peak * 100).toFixed(2)}%` })), countFigure(v))));
}

function provenanceView(model) {
  const { data, trace, chosen } = model;
  const c = model.configurations;
  const assumptions = list(data.assumptions).map(String);
  const known = { events: "Events", allocations: "Allocations", frees: "Frees", resizes: "Resizes", threads: "Threads", peak_live: "Peak live", peak_blocks: "Peak blocks", seconds: "Recorded in", deterministic: "Deterministic" };
  const say = (k, v) => (k === "deterministic" ? (v === true ? "yes: recordings agree" : v === false ? "no: recordings differ" : "not checked")
    : k === "seconds" ? seconds(v) : k === "peak_live" ? byteFigure(v) : isNumber(v) ? countFigure(v) : v === null || v === undefined ? NONE : String(v));
  const pairs = [];
  if (typeof data.created === "string") pairs.push(["Created", data.created]);
  if (data.host) pairs.push(["Host", isObject(data.host) ? JSON.stringify(data.host) : String(data.host)]);
  if (trace) for (const [k, v] of Object.entries(trace)) pairs.push([known[k] || sayKey(k), say(k, v)]);
  if (c) {
    for (const [k, label] of [["evaluated", "Configurations evaluated"], ["distinct", "Distinct outcomes"], ["space", "Size of the space"]]) if (isNumber(c.raw[k])) pairs.push([label, countFigure(c.raw[k])]);
    if (isNumber(c.raw.seconds)) pairs.push(["Explored in", seconds(c.raw.seconds)]);
    if (c.frontCount) pairs.push(["Front checked here", c.dominated === null ? "too large to check in the page" : c.dominated === 0 ? `${integer(c.frontCount)} point${c.frontCount === 1 ? "" : "s"}, none dominated` : `${integer(c.dominated)} of ${integer(c.frontCount)} points ${c.dominated === 1 ? "is" : "are"} dominated`]);
  }
  const emitted = chosen ? list(chosen.emitted).map(String) : [];
  return h("div", {},
    assumptions.length ? h("ol", { class: "assumptions" }, assumptions.map((a) => h("li", {}, a))) : h("p", { class: "soft" }, "No assumptions are stated."),
    list(data.command).length ? [h("h3", {}, "Command"), code(shellLine(data.command))] : null,
    emitted.length ? [h("h3", {}, "Emitted"), h("div", { class: "emitted" }, emitted.map((path) => code(path)))] : null,
    h("h3", {}, "Trace and exploration"), facts(pairs),
    model.notes.length ? [h("h3", {}, "Left out"), h("ul", {}, model.notes.map((n) => h("li", {}, n)))] : null);
}
