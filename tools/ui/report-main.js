// The page: sections in order, each drawn on its own so that one bad part spares the rest.
// Invariant: whatever the data, the reader sees either the section or a sentence saying why not.

function section(id, title, lead, missing, build) {
  let body;
  if (missing) body = h("p", { class: "missing" }, missing);
  else {
    try { body = build(); } catch (error) {
      body = h("p", { class: "missing" }, `This part could not be drawn: ${error.message}. The data behind it may be damaged; write the report again.`);
    }
  }
  return h("section", { id, "aria-labelledby": `${id}-title` }, h("div", { class: "section-head" }, h("h2", { id: `${id}-title` }, title), lead ? h("p", { class: "lead" }, lead) : null), body);
}

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

function page(model) {
  const { data } = model;
  const heading = verdictSafely(model);
  const parts = [
    ["tradeoffs", "Space against time", model.configurations ? `Every evaluated configuration, replayed on the recorded trace. Lower and further left is better. The front: ${model.configurations.frontCount === 1 ? "the one" : `the ${integer(model.configurations.frontCount)}`} that no other beats in one metric without losing in another.` : null,
      absent("configurations", data.configurations, model.configurations !== null), () => tradeoffs(model)],
    ["memory", "Memory over time", "Live: bytes requested and not yet freed. Footprint: bytes taken from the system.", null,
      () => curvesView(model) || h("p", { class: "missing" }, "This part of the report has no data: neither “profile.live”, “chosen.curve” nor “curves” holds a point.")],
    ["heaps", "All named heaps", "Each replayed on the same trace. A maximum is what this replay reached; a bound is proven for every program with this live peak and these sizes.",
      absent("heaps", data.heaps, Array.isArray(data.heaps)), () => (model.heaps.length ? heapTable(model) : h("p", { class: "missing" }, "No heap was compared."))],
    ["profile", "What the program asks for", null, absent("profile", data.profile, model.profile !== null), () => profileView(model)],
    ["provenance", "Assumptions and provenance", null, null, () => provenanceView(model)],
  ];
  const nav = h("nav", { "aria-label": "Sections" }, h("a", { class: "home", href: "#page" }, "Metes"), h("div", { class: "links" }, parts.map(([id, title]) => h("a", { href: `#${id}` }, title))), themeButton());
  document.body.insertBefore(nav, document.getElementById("page"));
  document.getElementById("page").replaceChildren(heading, ...parts.map(([id, title, lead, missing, build]) => section(id, title, lead, missing, build)),
    h("footer", {}, exportBar(model), h("p", { class: "soft" }, "One file, no network. Bytes are exact; KiB, MiB and GiB are powers of 1024; hover a figure for its exact value.")));
  document.title = typeof data.title === "string" && data.title ? `${data.title} · Metes` : "Metes report";
}

function verdictSafely(model) {
  try { return verdictView(model); } catch (error) {
    return h("header", { class: "verdict" }, h("h1", {}, "The verdict could not be written."), h("p", { class: "missing" }, `${error.message}. The data behind it may be damaged; write the report again.`));
  }
}

function fatal(error) {
  const remedy = error instanceof Trouble ? error.remedy : "The data may be damaged. Write the report again; if this persists, report it with this file.";
  document.getElementById("page").replaceChildren(h("div", { class: "fatal", role: "alert" }, h("h1", {}, error.message || String(error)), h("p", {}, remedy)));
}

watchTheme();
try {
  const model = readModel(readDocument(document.getElementById("data").textContent));
  page(model);
  const watch = new ResizeObserver(redrawAll);
  for (const canvas of document.querySelectorAll("canvas")) watch.observe(canvas);
  for (const draw of redraws) draw();
  document.documentElement.dataset.ready = "yes";
} catch (error) {
  fatal(error);
  document.documentElement.dataset.ready = "no";
}
