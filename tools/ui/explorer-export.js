// What goes out of the page: the kept configurations as CSV, or all of them from the server.
// Invariant: files carry exact figures, in the units their headings name.

function exportBar(model) {
  const { served } = model.doc;
  const button = (label, id, act) => { const b = h("button", { type: "button", id }, label); b.addEventListener("click", act); return b; };
  const link = (label, name) => h("a", { class: "button", href: `/export/${name}`, download: name }, label);
  return h("div", {}, h("div", { class: "exports", role: "group", "aria-label": "Export" },
    button("Kept configurations, CSV", "export-csv", () => download("configurations.csv", "text/csv", keptCsv(model))),
    served ? [link("All, CSV", "results.csv"), link("All, xlsx", "results.xlsx"), link("gnuplot script", "results.gp"), link("gnuplot data", "results.dat")] : null,
    button("Print", "print", () => window.print())),
  served ? null : h("p", { class: "soft" }, "All configurations for other tools: ", h("code", {}, "metes report DIR --export csv"), ", ", h("code", {}, "gnuplot"), " or ", h("code", {}, "xlsx"), "."));
}

function keptCsv(model) {
  const columns = [...model.columns.values()];
  const unit = (column) => ({ energy_fj: "energy_j", time_ps: "time_s" })[column.key] || column.key;
  const rows = [columns.map(unit)];
  for (let i = 0; i < model.n; i += 1) if (model.pass[i]) rows.push(columns.map((column) => (column.words ? column.words[column.values[i]] : column.values[i])));
  return csv(rows);
}
