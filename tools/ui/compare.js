// Two traces or two results beside each other: what became worse, and by how much.
// Invariant: the verdict counts what the document says is worse; what is beside a threshold is never called equal.

const SHOW = { bytes: byteFigure, count: countFigure, ratio: (n) => h("span", { class: "figure", title: String(n) }, ratio(n)), cycles: (n) => h("span", { class: "figure", title: String(n) }, significant(n)) };
const SIGNS = { worse: ["✗", "bad"], better: ["✓", "good"], changed: ["≠", "part"], same: ["", ""] };

function compareHeading(data, findings) {
  const worse = findings.filter((one) => one.verdict === "worse");
  const better = findings.filter((one) => one.verdict === "better").length;
  const [kind, mark, title] = worse.length ? ["bad", "✗", worse.length === 1 ? "One thing is worse." : `${integer(worse.length)} things are worse.`] : ["good", "✓", "Nothing is worse."];
  return h("header", { class: "verdict" },
    h("p", { class: "eyebrow" }, h("b", {}, "Metes"), " compare"),
    h("h1", {}, h("code", {}, String(data.before?.name)), " and ", h("code", {}, String(data.after?.name))),
    h("div", { class: `proof ${kind}`, id: "proof" }, h("div", {}, h("p", {}, h("b", {}, h("span", { class: "mark", "aria-hidden": "true" }, mark), title), " ",
      `${integer(findings.length)} figures compared, ${integer(better)} better.`),
    worse.length ? h("ul", { class: "assumptions" }, worse.map((one) => h("li", {}, prose(one.sentence)))) : null)));
}

function compareTable(findings) {
  const show = (one, n) => (isNumber(n) ? (SHOW[one.unit] ?? countFigure)(n) : NONE);
  const change = (one) => (isNumber(one.before) && isNumber(one.after) && one.before !== 0 ? (one.after / one.before - 1) * 100 : null);
  return sortableTable([
    { key: "what", label: "What", first: true, value: (one) => one.what, cell: (one) => prose(one.what) },
    { key: "before", label: "Before", numeric: true, value: (one) => one.before, cell: (one) => show(one, one.before) },
    { key: "after", label: "After", numeric: true, value: (one) => one.after, cell: (one) => show(one, one.after) },
    { key: "change", label: "Change", numeric: true, descending: true, value: change, cell: (one) => { const c = change(one); return c === null ? NONE : `${c > 0 ? "+" : ""}${significant(c)}\u00a0%`; } },
    { key: "verdict", label: "Verdict", value: (one) => ["worse", "changed", "better", "same"].indexOf(one.verdict), cell: (one) => h("span", { class: SIGNS[one.verdict]?.[1] || null }, `${SIGNS[one.verdict]?.[0] ?? ""} ${one.verdict}`) },
  ], findings, { sort: ["verdict", 1], page: 50, caption: "Figures", class: "findings", empty: "Nothing was compared.", marked: (one) => (one.verdict === "worse" ? "worse" : null) }).node;
}

function comparePage(data) {
  const findings = list(data.findings).filter(isObject);
  const curves = list(data.curves).filter((one) => isObject(one) && list(one.points).length > 1);
  frame({
    title: `Compared · Metes`,
    heading: compareHeading(data, findings),
    parts: [
      ["figures", "Figures", null, null, () => compareTable(findings)],
      ...(curves.length ? [["live", "Live bytes", "Requested bytes live, over the share of each run’s events.", null, () => plot({
        series: curves.map((one, k) => ({ name: one.name, colour: `series-${SHADES[k]}`, points: one.points.map(([at, live]) => [at, live]), as: "step", on: true })),
        label: "Live bytes of both", height: 340, reads: "percent", named: true, x: { title: "percent of the events", show: significant }, y: { title: "live bytes", show: bytes, tick: byteTick, exact: exactBytes, binary: true } }).node]] : []),
      ["thresholds", "Thresholds", "What counts as worse.", null, () => h("ul", { class: "assumptions" }, list(data.thresholds).map((text) => h("li", {}, prose(text))))],
    ],
    exports: h("div", { class: "exports", role: "group", "aria-label": "Export" }, [
      ["Everything, JSON", "export-json", () => download("compare.json", "application/json", JSON.stringify(data, null, 1))],
      ["Print", "print", () => window.print()],
    ].map(([label, id, act]) => h("button", { type: "button", id, onclick: act }, label))),
  });
}

start(() => comparePage(readDocument({ noun: "comparison", version: 1, filled: "“metes compare A B -o FILE.html” fills it.", again: "Compare again." })));
