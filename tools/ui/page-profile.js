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
