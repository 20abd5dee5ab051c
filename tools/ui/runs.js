// One heap for many runs: what it costs each of them beside the best heap for that run alone.
// Invariant: "predicted = measured" is said only of runs that were measured and found equal; the rest is named.

function runsProof(data, runs) {
  const measured = runs.filter((run) => isObject(run.measured));
  const wrong = runs.filter((run) => run.holds === false);
  const equal = measured.filter((run) => run.equal === true).length;
  const many = (n, what) => `${integer(n)} ${what}${n === 1 ? "" : "s"}`;
  if (!runs.some((run) => typeof run.holds === "boolean")) {
    return ["open", "○", "Predicted, not measured.", "These are traces; “metes tune --commands FILE” runs commands on the emitted heap and compares."];
  }
  if (wrong.length) return ["bad", "✗", `${many(wrong.length, "run")} not as predicted.`, `First of them: ${wrong[0].name}.`];
  if (equal === runs.length) return ["good", "✓", "Predicted = measured.", `Each of ${many(runs.length, "run")} took, to the byte, what was predicted, and every block lay where it was predicted.`];
  return ["part", "≈", `Predicted = measured in ${integer(equal)} of ${many(runs.length, "run")}.`, "The others ask for other things from run to run, so that nothing can be held against them; they are marked below."];
}

function runsHeading(data, runs) {
  const eyebrow = h("p", { class: "eyebrow" }, h("b", {}, "Metes"), " ", String(data.title));
  if (typeof data.heap !== "string") {
    return h("header", { class: "verdict" }, eyebrow, h("h1", {}, "No heap is as was asked for."), h("p", { class: "lead" }, "What was found is below."));
  }
  const long = data.heap.length > 34;
  const [kind, mark, title, text] = runsProof(data, runs);
  const { largest, mean, dearest } = data;
  return h("header", { class: "verdict" }, eyebrow,
    h("h1", {}, h("code", {}, long ? `${data.heap.split(":")[0]}…` : data.heap), ` serves all ${integer(runs.length)} runs`,
      isNumber(mean?.ratio) ? `, at ${ratio(mean.ratio)} the best heap for each alone` : "", "."),
    data.why ? h("p", { class: "lead" }, prose(data.why)) : null,
    long ? code(data.heap) : null,
    h("div", { class: `proof ${kind}`, id: "proof" }, h("p", {}, h("b", {}, h("span", { class: "mark", "aria-hidden": "true" }, mark), title), " ", text)),
    h("dl", { class: "figures" },
      isObject(largest) ? figureCell("Largest footprint", byteFigure(largest.footprint), largest.run) : null,
      isObject(mean) ? figureCell("Mean footprint", byteFigure(Math.round(mean.footprint)), isNumber(mean.best_alone) ? `${bytes(Math.round(mean.best_alone))} with the best heap for each` : null) : null,
      isObject(dearest) ? figureCell("Pays most", ratio(dearest.ratio), dearest.run) : null,
      figureCell("Runs", integer(runs.length), data.distinct_runs === runs.length ? "all different" : `${integer(data.distinct_runs)} different`),
      figureCell("Heaps tried on all", integer(data.configurations), `in ${seconds(data.seconds)}`)));
}

// What runs pay for one heap, from the one that pays least: so many percent of them pay at most so much.
function runsPicture(runs) {
  const paid = runs.filter((run) => isNumber(run.ratio)).map((run) => (run.ratio - 1) * 100).sort((a, b) => a - b);
  const points = [[0, paid[0]], ...paid.map((more, k) => [(k + 1) / paid.length * 100, more])];
  const percent = (n) => `${significant(n)}\u00a0%`;
  return plot({ label: "What one heap for all costs", height: 300, reads: "percent of the runs,",
    x: { title: "percent of the runs, from the one that pays least", from: 0, to: 100, show: significant }, y: { title: "footprint above the best heap alone", show: percent, tick: percent, exact: percent },
    series: [{ name: "one heap", colour: "chosen", points, as: "area", on: true }] }).node;
}

function runsTable(runs) {
  const verdictOf = (run) => (run.equal === true ? "equal" : run.holds === true ? "differs from run to run" : run.holds === false ? "not as predicted" : null);
  const number = (key, label, value, cell, hint) => ({ key, label, numeric: true, descending: true, value, cell, hint });
  return sortableTable([
    { key: "name", label: "Run", first: true, value: (run) => run.name, cell: (run) => breakable(run.name) },
    number("events", "Requests", (run) => run.events, (run) => countFigure(run.events)),
    number("peak_live", "Live peak", (run) => run.peak_live, (run) => byteFigure(run.peak_live)),
    { ...number("footprint", "Footprint", (run) => run.footprint, (run) => byteFigure(run.footprint), "on the one heap"), bar: true },
    number("alone", "Best alone", (run) => run.best_alone?.footprint, (run) => h("span", { title: run.best_alone?.heap ?? null }, bytes(run.best_alone?.footprint)), "the best heap that was found for this run alone"),
    number("ratio", "Ratio", (run) => run.ratio, (run) => h("span", { class: "figure", title: String(run.ratio ?? "") }, ratio(run.ratio)), "footprint over that of the best heap alone"),
    { key: "verdict", label: "Measured", value: verdictOf, cell: (run) => verdictOf(run) ?? NONE },
  ], runs, { sort: ["ratio", -1], page: 25, caption: "Runs", class: "findings", empty: "There is no run." }).node;
}

function heapsTable(data) {
  const rows = [...(isObject(data.chosen) ? [{ ...data.chosen, front: list(data.pareto).some((heap) => heap?.chosen) }] : []), ...list(data.pareto).filter((heap) => !heap?.chosen).map((heap) => ({ ...heap, front: true })), ...list(data.heaps).filter((heap) => !heap?.chosen).map((heap) => ({ ...heap, front: false }))];
  const number = (key, label, show, hint) => ({ key, label, numeric: true, value: (row) => row[key], cell: (row) => show(row[key]), hint });
  return sortableTable([
    { key: "heap", label: "Heap", first: true, value: (row) => row.heap, cell: (row) => [breakable(row.heap), row.front ? [" ", badge("front", "front")] : null, row.chosen ? [" ", badge("chosen", "chosen")] : null] },
    number("footprint", "Largest footprint", byteFigure),
    number("footprint_mean", "Mean footprint", (n) => byteFigure(Math.round(n))),
    number("cycles_mean", "Mean cycles", significant),
    number("cycles_max", "Maximum cycles", countFigure),
    number("guarantee", "Guarantee", byteFigure, "what provably suffices for all that ask for no more than these runs"),
  ], rows.filter(isObject), { sort: ["footprint", 1], page: 25, caption: "Heaps on all runs", class: "findings", marked: (row) => (row.chosen ? "is-chosen" : null) }).node;
}

function runsPage(data) {
  const runs = list(data.runs).filter(isObject);
  const left = list(data.left_out).filter(isObject);
  frame({
    title: `${data.title} · Metes`,
    heading: runsHeading(data, runs),
    parts: [
      ["cost", "What it costs", "Footprint of each run on the one heap, over that on the best heap found for it alone.", runs.some((run) => isNumber(run.ratio)) ? null : "No heap was chosen.", () => runsPicture(runs)],
      ["runs", "Runs", null, null, () => runsTable(runs)],
      ...(left.length ? [["left", "Left out", null, null, () => h("ul", { class: "assumptions" }, left.map((one) => h("li", {}, h("code", {}, one.name), ": ", String(one.why))))]] : []),
      ["heaps", "Heaps", "The named heaps, and those that nothing beats in largest and mean footprint, mean and maximum cycles.", null, () => heapsTable(data)],
      ["toml", "The heap", null, typeof data.toml === "string" ? null : "No heap was chosen.", () => code(data.toml)],
    ],
    exports: h("div", { class: "exports", role: "group", "aria-label": "Export" }, [
      ["Runs, CSV", "export-runs", () => download("runs.csv", "text/csv", csv([["run", "events", "peak_live", "footprint", "best_alone", "best_alone_heap", "ratio", "equal"], ...runs.map((run) => [run.name, run.events, run.peak_live, run.footprint, run.best_alone?.footprint, run.best_alone?.heap, run.ratio, run.equal])]))],
      ["Everything, JSON", "export-json", () => download("runs.json", "application/json", JSON.stringify(data, null, 1))],
      ["Print", "print", () => window.print()],
    ].map(([label, id, act]) => h("button", { type: "button", id, onclick: act }, label))),
  });
}

start(() => runsPage(readDocument({ noun: "page of many runs", version: 1, filled: "“metes explore TRACE TRACE…” fills it.", again: "Run the command again." })));
