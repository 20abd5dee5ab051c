// The report: its sections in order.
// Invariant: whatever the data, the reader sees either the section or a sentence saying why not.

function absent(key, value, usable) {
  if (value === undefined) return `This part of the report has no data: “${key}” is missing.`;
  if (value === null) return `This part of the report has no data: “${key}” is empty.`;
  return usable ? null : `This part of the report has no usable data: “${key}” has an unexpected form.`;
}

function tradeoffs(model) {
  const c = model.configurations;
  if (c.n === 0) return h("p", { class: "missing" }, "No configuration was evaluated.");
  const { canvas, controls } = scatterView(model);
  return h("div", {},
    h("div", { class: "explorer" },
      h("div", { class: "plot" }, controls, canvas,
        h("p", { class: "key" }, [["dot dots", "configuration"], ["dot front", "front"], ["diamond named", "named heap"], ["diamond chosen", "chosen"]].map(([kind, name]) => h("span", {}, h("i", { class: kind }), name))),
        h("p", { class: "hint" }, h("span", { class: "mouse" }, "Drag a rectangle to keep what lies in it; double-click to keep all. "), "Select a point for its details."),
        filterView(model)),
      detailsView(model)),
    h("h3", {}, "Configurations"), configurationTable(model));
}

// How many points stand for how many configurations.
function outcomes({ n, raw }) {
  const { evaluated, distinct } = raw;
  if (!isNumber(evaluated) || evaluated <= n) return "Every evaluated configuration, replayed on the recorded trace.";
  const whole = isNumber(distinct) && distinct > n ? `${integer(n)} of the ${integer(distinct)} different outcomes` : `The ${integer(n)} different outcomes`;
  return `${whole} of ${integer(evaluated)} evaluated configurations, replayed on the recorded trace.`;
}

function page(model) {
  const { data } = model;
  const heading = verdictSafely(model);
  const parts = [
    ["tradeoffs", "Space against time", model.configurations ? `${outcomes(model.configurations)} Lower and further left is better. The front: ${model.configurations.frontCount === 1 ? "the one" : `the ${integer(model.configurations.frontCount)}`} that no other beats in one metric without losing in another.` : null,
      absent("configurations", data.configurations, model.configurations !== null), () => tradeoffs(model)],
    ...(isNumber(data.guarantee?.demand?.live) ? [["guarantee", "What may be relied on", "What each heap took here, and what is proven to suffice whatever the program does within the demand.", null, () => guaranteeView(model)]] : []),
    ...(isObject(data.beside) ? [["beside", "Beside today’s allocators", "The program on each, in the same minute.", null, () => besideView(model)]] : []),
    ...(isObject(data.interleaved) ? [["orders", "Threads in other orders", "The same requests of each thread, in other orders, on the chosen heap.", null, () => interleavedView(data.interleaved)]] : []),
    ["memory", "Memory over time", "Live: bytes requested and not yet freed. Footprint: bytes taken from the system.", null,
      () => curvesView(model) || h("p", { class: "missing" }, "This part of the report has no data: neither “profile.live”, “chosen.curve” nor “curves” holds a point.")],
    ["heaps", "All named heaps", "Each replayed on the same trace. A maximum is what this replay reached; a bound is proven for every program with this live peak and these sizes.",
      absent("heaps", data.heaps, Array.isArray(data.heaps)), () => (model.heaps.length ? heapTable(model) : h("p", { class: "missing" }, "No heap was compared."))],
    ["profile", "What the program asks for", null, absent("profile", data.profile, model.profile !== null), () => profileView(model)],
    ["provenance", "Assumptions and provenance", null, null, () => provenanceView(model)],
  ];
  frame({ title: typeof data.title === "string" && data.title ? `${data.title} · Metes` : "Metes report", heading, parts, exports: exportBar(model) });
}

function verdictSafely(model) {
  try { return verdictView(model); } catch (error) {
    return h("header", { class: "verdict" }, h("h1", {}, "The verdict could not be written."), h("p", { class: "missing" }, `${error.message}. The data behind it may be damaged; write the report again.`));
  }
}

start(() => page(readModel(readDocument({ noun: "report", version: VERSION,
  filled: "A filled report is written by “metes tune -- CMD” or “metes explore TRACE”.", again: "Write the report again with “metes tune” or “metes explore”." }))));
