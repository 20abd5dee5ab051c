// Where the figures of the report come from: assumptions, command, trace, exploration.
// Invariant: everything shown is a field of the document; unknown fields are listed, not dropped.

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
