// What a script took of the dry device, and what for.
// Invariant: every figure is of the document, or a sum or share of such; what is unknown is named so.

// What memory is for, with its colour.
const PARTS = {
  weights: ["weights", "series-1"], buffers: ["buffers", "series-8"], gradients: ["gradients", "series-3"], optimizer_states: ["optimiser states", "series-4"],
  activations: ["activations", "series-5"], temporaries: ["temporaries", "series-6"], unknown: ["unknown", "faint"],
};
const PASSES = { backward: "backward pass", step: "optimiser’s step" };
const known = (number) => (number === null || number === undefined ? "not known" : byteFigure(number));
const percent = (share) => `${(100 * share).toFixed(1)}\u00a0%`;
const shade = (part) => `--c:var(--${PARTS[part][1]})`;

// ---- verdict ------------------------------------------------------------

const VERDICTS = { fits: ["good", "✓ It fits."], "does not fit": ["bad", "✗ It does not fit."], undecided: ["open", "○ Undecided."] };

function fitHeading({ report, breakdown, command, script, headline, because, guessed }) {
  const [kind, words] = VERDICTS[report.verdict];
  return h("header", { class: "verdict" },
    h("p", { class: "eyebrow" }, h("b", {}, report.framework), " ", h("code", {}, command.join(" "))),
    h("h1", {}, h("code", {}, script), ` ${headline}.`),
    h("div", { class: `proof ${kind}`, id: "proof" }, h("p", {}, h("b", {}, words), " ", because)),
    h("dl", { class: "figures", id: "figures" },
      figureCell("Live at the peak", known(report.peak_live), report.peak_allocated ? [known(report.peak_allocated), " rounded"] : "the framework keeps no count"),
      figureCell("Reserved", known(report.peak_reserved), "by the framework’s allocator"),
      figureCell("Device in use", known(report.peak_device), [`${percent(report.peak_device / report.memory)} of `, known(report.memory)]),
      figureCell("Refusals", integer(report.refusals), report.error ? "the last ended the script" : report.refusals ? "survived by the script" : "for lack of memory"),
      breakdown ? figureCell("Allocations", integer(breakdown.allocations), `the peak is the ${integer(breakdown.peak.allocation)}th`) : null),
    guessed.length ? h("details", { id: "guesses" }, h("summary", {}, "What it went by"), h("pre", { id: "guessed" }, guessed.join("\n"))) : null);
}

// ---- at the peak --------------------------------------------------------

const inPass = (kind) => (kind ? `, in the ${PASSES[kind] ?? kind}` : "");
const stackOf = (lines, own) => h("ol", { class: "stack" }, lines.map((text) => h("li", { class: text === own ? "own" : null }, text)));

function peakView({ peak, refused, most }) {
  const line = (text) => h("code", {}, text ?? "a line that is not known");
  const largest = Math.max(...Object.values(peak.parts), 1);
  return h("div", {},
    h("p", { class: "lead", id: "peak-lead" }, known(peak.bytes), " are live when ", known(peak.size), " are asked for at ", line(peak.line), `${inPass(peak.pass)}.`,
      refused ? [" What is refused last are ", known(refused.bytes), " at ", line(refused.line), "."] : null),
    h("ul", { class: "bars", id: "parts" }, Object.entries(PARTS).map(([part, [name]]) => {
      const value = peak.parts[part];
      return h("li", { title: `${integer(value)} bytes; at most ${bytes(most[part])} at any time` }, h("span", {}, name),
        h("span", { class: "rail" }, h("i", { style: `${shade(part)};width:${100 * value / largest}%` })), h("span", { class: "number" }, bytes(value)), h("span", {}, percent(value / Math.max(peak.bytes, 1))));
    })),
    peak.stack.length ? h("details", { id: "peak-stack" }, h("summary", {}, "Stack of the allocation that made the peak"), stackOf(peak.stack, peak.line)) : null);
}

// ---- over time ----------------------------------------------------------

function timeView({ timeline, passes, allocations, peak }, report) {
  const high = Math.max(...timeline.live, ...timeline.reserved, report.peak_device);
  // The device's end belongs in the picture where it is near.
  const near = report.memory <= high * 1.6;
  const points = (values) => timeline.allocation.map((allocation, k) => [allocation, values[k]]);
  const shown = plot({ label: "Live bytes by what they are for, and reserved bytes, over time", reads: "allocation", height: 340, total: "live",
    x: { title: "allocation", from: 0, to: allocations }, y: { title: "bytes", show: bytes, tick: byteTick, binary: true },
    series: [...Object.entries(PARTS).map(([part, [name, colour]]) => ({ name, as: "stack", shape: "box", colour, points: points(timeline.parts[part]), on: true })),
      { name: "reserved", as: "step", colour: "ink", points: points(timeline.reserved), on: true }],
    rules: [{ value: peak.bytes, text: `peak: ${bytes(peak.bytes)} live`, colour: "ink", dashed: true }, ...(near ? [{ value: report.memory, text: `device: ${bytes(report.memory)}`, colour: "bad" }] : [])],
    bands: passes.filter(({ kind }) => kind === "backward") });
  shown.canvas.id = "timeline";
  return shown.node;
}

// ---- the blocks ---------------------------------------------------------

function blocksView({ largest, peak }) {
  return sortableTable([
    { key: "line", label: "Line", first: true, value: (row) => row.line ?? null, cell: (row) => {
      const said = row.part === null ? "all other lines" : row.line ?? "no line of Python: asked for by the framework itself";
      const name = [h("code", {}, said), row.pass ? h("small", { class: "soft" }, ` ${PASSES[row.pass] ?? row.pass}`) : null];
      return row.stack.length ? h("details", {}, h("summary", {}, name), stackOf(row.stack, row.line)) : h("span", {}, name);
    } },
    { key: "part", label: "Part", value: (row) => (row.part ? PARTS[row.part][0] : null), cell: (row) => (row.part ? h("span", { class: "part" }, h("i", { style: shade(row.part) }), PARTS[row.part][0]) : NONE) },
    { key: "bytes", label: "Bytes", numeric: true, bar: true, descending: true, value: (row) => row.bytes, cell: (row) => byteFigure(row.bytes) },
    { key: "share", label: "Share", numeric: true, descending: true, value: (row) => row.bytes, cell: (row) => percent(row.bytes / peak.bytes) },
    { key: "blocks", label: "Blocks", numeric: true, descending: true, value: (row) => row.blocks, cell: (row) => integer(row.blocks) },
    { key: "largest", label: "Largest", numeric: true, descending: true, value: (row) => row.largest, cell: (row) => byteFigure(row.largest) },
  ], largest, { sort: [null, 1], caption: "Blocks live at the peak, by line", class: "lines" }).node;
}

function fitPage(given) {
  const { breakdown, report } = given;
  const missing = `What the memory was for is not known: ${given.no_history}.`;
  frame({ title: "Does it fit? · Metes", heading: fitHeading(given), state: h("span", { class: "state" }, "dry device"), parts: [
    ...(breakdown ? [
      ["use", "At the peak", null, null, () => peakView(breakdown)],
      ["time", "Over time", "Time is counted in allocations, as a dry run has no other. Of each stretch its fullest moment is drawn. Backward passes are shaded.", null, () => timeView(breakdown, report)],
      ["blocks", "What is live at the peak, by line", "Blocks of one part that one line asked for, the most bytes first. A line opens to its stack.", null, () => blocksView(breakdown)],
    ] : [["none", "What the memory was for", null, missing, null]]),
    ["limits", "What it cannot know", null, null, () => h("ul", { class: "assumptions", id: "unknown" }, given.unknown.map((sentence) => h("li", {}, sentence)))],
  ] });
}

start(() => fitPage(readDocument({ noun: "dry run’s page", filled: "“metes device fit --report FILE.html” fills it.", again: "Run “metes device fit” again." })));
