// The laboratory's document, and how its figures are written.
// Invariant: a subject has one colour on the whole page, that of what it stands for.

const milliseconds = (v) => (isNumber(v) ? seconds(v / 1000) : NONE);
const whole = (v) => (isNumber(v) ? (v < 10 && !Number.isInteger(v) ? significant(v) : integer(Math.round(v))) : NONE);

// What a subject stands for: a colour and a word.
const KINDS = {
  native: ["e-native", "native, default allocator"],
  kept: ["e-kept", "native, memory kept"],
  container: ["e-container", "container, namespaces"],
  wasm: ["e-wasm", "WebAssembly"],
  vectors: ["e-vectors", "WebAssembly with vectors"],
  metes: ["e-metes", "with a heap of Metes"],
};
function kindOf(subject) {
  if (/Metes|metes/.test(subject.allocator)) return "metes";
  if (subject.layer === "WebAssembly") return subject.vectors === "none" ? "wasm" : "vectors";
  if (subject.layer !== "process" || subject.allocator === "musl") return "container";
  return /retained/.test(subject.allocator) ? "kept" : "native";
}
const colourOf = (subject) => KINDS[kindOf(subject)][0];

function labDocument(data) {
  const subjects = list(data.subjects).filter(isObject);
  const cells = list(data.cells).filter(isObject);
  const findings = isObject(data.findings) ? data.findings : {};
  const byName = new Map(subjects.map((one) => [one.name, one]));
  const table = new Map(cells.map((one) => [`${one.subject}\n${one.kernel}`, one]));
  return {
    data, subjects, cells, byName,
    kernels: list(data.kernels).map(String),
    present: subjects.filter((one) => !one.absent),
    absent: subjects.filter((one) => one.absent),
    cell: (subject, kernel) => table.get(`${subject}\n${kernel}`),
    starts: list(findings.starts), steady: list(findings.steady), puzzle: isObject(findings.puzzle) ? findings.puzzle : null,
    paper: list(data.paper),
  };
}

// A track with a logarithmic axis from `low` to `high`.
function logAxis(low, high) {
  const at = (v) => Math.min(100, Math.max(0, (Math.log(v) - Math.log(low)) / (Math.log(high) - Math.log(low)) * 100));
  return { at, ticks: logTicks(low, high, 8, false).filter((v) => v >= low * 0.999 && v <= high * 1.001) };
}
function track(axis, marks, unit) {
  return h("div", { class: "track" },
    axis.ticks.map((v) => h("i", { style: `left:${axis.at(v)}%`, class: v === unit ? "unit" : null })), marks);
}
const trackAxis = (axis, show) => h("div", { class: "track-row track-axis", "aria-hidden": "true" }, h("span"), h("div", { class: "track" },
  axis.ticks.map((v) => h("span", { style: `left:${axis.at(v)}%` }, show(v)))));
const mark = (axis, v, colour, title, hollow) => (isNumber(v) && v > 0 ? h("span", { class: hollow ? "mark hollow" : "mark", style: `left:${axis.at(v)}%;--c:var(--${colour})`, title }) : null);
const keyOf = (kinds) => h("p", { class: "key" }, kinds.map(([colour, text, kind]) => h("span", {}, h("i", { class: kind ?? "dot", style: `background:var(--${colour})` }), text)));
