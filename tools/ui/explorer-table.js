// The table of what is kept, a page at a time, and the boxes that pick what is compared.
// Invariant: the table shows what the filter keeps, in the order its heading says.

function explorerTable(model) {
  const rows = Array.from({ length: model.n }, (_, i) => i);
  let onlyFront = model.frontRows.length > 0;
  const cell = (column) => (i) => {
    const v = column.values[i];
    const bound = column.metric && model.status.words[model.status.values[i]] === "beaten" ? "≥\u00a0" : "";
    return h("span", { title: Number.isNaN(v) ? null : column.exact(v) }, bound, column.show(v));
  };
  const columns = [
    { key: "number", label: "Configuration", first: true, value: (i) => model.number[i],
      cell: (i) => [h("span", { class: "spec" }, nameOf(model, i)), marks({ front: model.front[i] })] },
    { key: "compare", label: "Compare", value: (i) => (model.compared.includes(i) ? 0 : 1), cell: (i) => {
      const box = h("input", { type: "checkbox", "aria-label": `compare ${nameOf(model, i)}`, "data-row": i });
      box.checked = model.compared.includes(i);
      box.addEventListener("change", () => { toggleCompared(model, i); box.checked = model.compared.includes(i); });
      return box;
    } },
    ...model.metrics.map((column) => ({ key: column.key, label: column.label, numeric: true, bar: true, hint: column.unit, value: (i) => column.values[i], cell: cell(column) })),
    ...model.parameters.map((column) => ({ key: column.key, label: column.label, numeric: !column.words, hint: column.unit, value: (i) => (column.words ? column.words[column.values[i]] : column.values[i]), cell: cell(column) })),
  ];
  const table = sortableTable(columns, rows, { sort: [model.metrics[0]?.key || "number", 1], page: 15, caption: "Configurations kept", class: "configurations",
    keep: (i) => model.pass[i] === 1 && (!onlyFront || model.front[i] === 1), onpick: (i) => select(model, i),
    marked: (i) => (model.selected === i ? "is-selected" : null), empty: "No configuration is kept: widen or reset the ranges." });
  const choice = (value, text) => {
    const input = h("input", { type: "radio", name: "which" });
    input.checked = onlyFront === value;
    input.addEventListener("change", () => { onlyFront = value; table.toStart(); table.update(); });
    return h("label", {}, input, text);
  };
  // While a brush moves, the plots follow every frame and the table when it rests.
  let waiting = 0;
  model.listeners.add((what) => {
    if (what === "filter") { table.toStart(); clearTimeout(waiting); waiting = setTimeout(() => table.update(), 120); }
    if (what === "select" || what === "compare") table.update();
  });
  return h("div", {}, h("div", { class: "controls", role: "radiogroup", "aria-label": "Rows" }, choice(true, `front only (${integer(model.frontRows.length)})`), choice(false, "all kept")), table.node);
}

// One configuration: what it is, what it costs, what can be done with it.
function detailsPanel(model) {
  const node = h("aside", { class: "details", id: "details", "aria-live": "polite" });
  const facts = (columns, i, bound) => h("table", { class: "facts" }, h("tbody", {}, columns.map((column) => h("tr", {}, h("th", { scope: "row" }, column.label), h("td", {}, h("span", { title: Number.isNaN(column.values[i]) ? null : column.exact(column.values[i]) }, column.metric ? bound : "", column.show(column.values[i])))))));
  const update = () => {
    const i = model.selected;
    if (i === null) {
      node.replaceChildren(h("p", { class: "eyebrow" }, h("b", {}, "No configuration selected")), h("p", { class: "hint" }, "Select a point of the plot or a row of the table."));
      return;
    }
    const status = model.status.words[model.status.values[i]];
    const bound = status === "beaten" ? "≥\u00a0" : "";
    const compare = h("button", { type: "button", class: "compare-button" }, model.compared.includes(i) ? "Remove from comparison" : "Compare");
    compare.disabled = !model.compared.includes(i) && model.compared.length >= MOST_COMPARED;
    compare.addEventListener("click", () => toggleCompared(model, i));
    const close = h("button", { type: "button", class: "quiet close" }, "Close");
    close.addEventListener("click", () => select(model, null));
    node.replaceChildren(h("p", { class: "eyebrow" }, h("b", {}, model.front[i] ? "Front" : status[0].toUpperCase() + status.slice(1)), model.front[i] ? "nothing beats it" : STATUS[status] || ""),
      h("h3", {}, nameOf(model, i)), facts([...model.metrics], i, bound),
      h("div", { class: "act" }, compare), emitPart(model, i), h("h4", {}, "Parameters"), facts(model.parameters, i, ""), close);
  };
  model.listeners.add((what) => { if (what === "select" || what === "compare") update(); });
  update();
  return node;
}
