// What an experiment or a benchmark found: a verdict, pictures, all figures, what is assumed.
// Invariant: the verdict says what the document holds: which checks failed, and how far our figures lie
// from the published ones; nothing is called a success that was not checked.

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function experimentHeading(data, rows) {
  const failed = list(data.contradicted).map(String);
  const both = rows.filter(({ ratio }) => isNumber(ratio));
  const ratios = both.map(({ ratio }) => ratio).sort((a, b) => a - b);
  const close = ratios.filter((v) => v >= 0.9 && v <= 1.1).length;
  const against = both.length
    ? both.length === 1 ? `One of ${integer(rows.length)} figures stands beside a published one, and is ${ratio(ratios[0])} that.`
      : `${integer(both.length)} of ${integer(rows.length)} figures stand beside a published one: ${integer(close)} within 10\u00a0% of it, all between ${ratio(ratios[0])} and ${ratio(ratios[ratios.length - 1])}.`
    : `${integer(rows.length)} figure${rows.length === 1 ? "" : "s"}, none of them beside a published value.`;
  const [kind, mark, title] = failed.length ? ["bad", "✗", failed.length === 1 ? "One check does not hold." : `${integer(failed.length)} checks do not hold.`]
    : ["good", "✓", "Everything checked holds."];
  return h("header", { class: "verdict" },
    h("p", { class: "eyebrow" }, h("b", {}, "Metes"), " ", h("code", {}, String(data.command))),
    h("h1", {}, prose(capital(String(data.title)))),
    data.paper ? h("p", { class: "lead paper" }, prose(data.paper)) : null,
    h("div", { class: `proof ${kind}`, id: "proof" }, h("div", {}, h("p", {}, h("b", {}, h("span", { class: "mark", "aria-hidden": "true" }, mark), title), " ", against),
      failed.length ? h("ul", { class: "assumptions" }, failed.map((what) => h("li", {}, prose(what)))) : null)));
}

function figureTable(rows) {
  const value = (key) => ({ value: (row) => row[key], numeric: true });
  return sortableTable([
    { key: "what", label: "What", first: true, value: (row) => row.what, cell: (row) => prose(row.what) },
    { key: "paper", label: "Paper", ...value("paper"), cell: (row) => exactly(row.paper, row.unit) },
    { key: "ours", label: "Ours", ...value("ours"), cell: (row) => exactly(row.ours, row.unit) },
    { key: "ratio", label: "Ratio", ...value("ratio"), hint: "ours over the published one", cell: (row) => exactly(row.ratio, "") },
    { key: "note", label: "Note", value: (row) => row.note || null, cell: (row) => prose(row.note) },
  ], rows, { sort: [null, 1], caption: "Figures", class: "findings", empty: "The experiment found no figure." }).node;
}
const exactly = (v, unit) => (isNumber(v) ? h("span", { title: String(v) }, valueOf(v, unit)) : NONE);

function experimentPage(data) {
  const rows = list(data.rows).filter(isObject);
  const plots = list(data.plots).filter(isObject);
  const signs = new Map();
  const assumptions = list(data.assumptions).map(String);
  frame({
    title: `${data.experiment} · Metes`,
    heading: experimentHeading(data, rows),
    parts: [
      ...(plots.length ? [["pictures", "Pictures", null, null, () => h("div", {}, plots.map((one) => categories(one, signs)))]] : []),
      ["figures", "Figures", null, null, () => figureTable(rows)],
      ["assumptions", "What is assumed", null, assumptions.length ? null : "Nothing is assumed.", () => h("ul", { class: "assumptions" }, assumptions.map((text) => h("li", {}, prose(text))))],
    ],
    exports: h("div", { class: "exports", role: "group", "aria-label": "Export" }, [
      ["Figures, CSV", "export-figures", () => download(`${data.experiment}.csv`, "text/csv", csv([["what", "paper", "ours", "ratio", "unit", "note"], ...rows.map((row) => [row.what, row.paper, row.ours, row.ratio, row.unit, row.note])]))],
      ["Everything, JSON", "export-json", () => download(`${data.experiment}.json`, "application/json", JSON.stringify(data, null, 1))],
      ["Print", "print", () => window.print()],
    ].map(([label, id, act]) => h("button", { type: "button", id, onclick: act }, label))),
  });
}

start(() => experimentPage(readDocument({ noun: "experiment’s page", filled: "“metes reproduce NAME -o FILE.html” fills it.", again: "Run the experiment again." })));
