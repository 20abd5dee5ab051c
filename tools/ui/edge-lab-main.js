// The laboratory's page: what a start costs, why long runs end as they do, every figure, what is missing.
// Invariant: the heading counts what the document holds; a checksum that differs, and that a campaign was stopped, are told before
// anything else.

// What a campaign has that was stopped before its end.
function stopped(lab) {
  if (lab.data.interrupted !== true) return null;
  const begun = new Set(lab.cells.map((one) => one.kernel).filter((kernel) => kernel !== "nothing"));
  const computing = lab.cells.filter((one) => begun.has(one.kernel));
  const short = computing.filter((one) => !one.failure && one.cold?.runs < lab.data.runs).length;
  const without = computing.filter((one) => !one.failure && !one.prolonged).length;
  return h("div", { class: "proof part", id: "interrupted" }, h("div", {},
    h("p", {}, h("b", {}, h("span", { class: "mark", "aria-hidden": "true" }, "◐"), "Stopped before its end."),
      ` This is what had been measured until then: ${integer(begun.size)} of ${integer(lab.kernels.length)} kernels were begun.`,
      short ? ` Rows with fewer than ${integer(lab.data.runs)} cold runs: ${integer(short)}.` : null,
      without && lab.data.repeats ? ` Rows without a long run: ${integer(without)}.` : null)));
}

function labHeading(lab) {
  const { data, puzzle: found, starts } = lab;
  const at = new Map(starts.map((one) => [one.subject, one]));
  const differences = list(data.differences).map(String);
  const failed = lab.cells.filter((one) => one.failure);
  const told = lab.cells.filter((one) => one.checksum && one.kernel !== "nothing").length;
  const title = found
    ? `WebAssembly beats native code in ${integer(found.wasm_beats_default)} of ${integer(found.kernels)} long runs, and in ${integer(found.wasm_beats_retained)} once native code keeps its memory`
    : "WebAssembly beside native code and containers";
  const start = (name, label, remark) => (at.has(name) ? figureCell(label, milliseconds(at.get(name).ms), remark ?? `${ratio(at.get(name).ratio)} native`) : null);
  const machine = isObject(data.machine) ? data.machine : {};
  return h("header", { class: "verdict" },
    h("p", { class: "eyebrow" }, h("b", {}, "Metes"), " ", h("code", {}, String(data.command))),
    h("h1", {}, title),
    h("p", { class: "lead" }, `${integer(lab.kernels.length)} kernels of size ${data.size} by ${integer(lab.present.length)} subjects, ${integer(data.runs)} cold runs each, subjects by turns. ${data.suite}; ${machine.processor}, ${integer(machine.cores)} cores, Linux ${machine.kernel}.`),
    h("div", { class: `proof ${differences.length || failed.length ? "bad" : told ? "good" : "open"}`, id: "proof" }, h("div", {},
      h("p", {}, h("b", {}, h("span", { class: "mark", "aria-hidden": "true" }, differences.length || failed.length ? "✗" : told ? "✓" : "○"), differences.length ? "Not every engine computes the same." : failed.length ? "Not every kernel ran everywhere." : told ? "Every engine computes the same, bit by bit." : "No kernel was run to be compared."),
        ` ${integer(told)} checksums were compared with native code.`),
      differences.length + failed.length ? h("ul", { class: "assumptions" }, differences.map((what) => h("li", {}, what)), failed.map((one) => h("li", {}, `${one.kernel} by ${one.subject}: ${one.failure}`))) : null)),
    stopped(lab),
    h("dl", { class: "figures" },
      start("native", "A process starts in", "native code"), start("ahead", "wasmtime, compiled ahead"), start("cranelift", "wasmtime, compiling"), start("crun", "An OCI runtime"), start("docker", "Docker"),
      found && isNumber(found.fault_ns) ? figureCell("A page fault costs", seconds(found.fault_ns / 1e9), "saved by keeping memory") : null));
}

function everything(lab) {
  const number = (key, label, value, show = whole, hint = null) => ({ key, label, hint, numeric: true, value, cell: (row) => show(value(row)) });
  return sortableTable([
    { key: "kernel", label: "Kernel", first: true, value: (row) => row.kernel, cell: (row) => row.kernel },
    { key: "subject", label: "Subject", value: (row) => row.subject, cell: (row) => row.subject },
    number("cold", "Start to end", (row) => row.cold?.median, milliseconds, "median of processes"),
    number("least", "Least", (row) => row.cold?.least, milliseconds),
    number("most", "Most", (row) => row.cold?.most, milliseconds),
    number("faults", "Faults", (row) => row.cold?.minor_faults, whole, "minor page faults of a process, median"),
    number("major", "Major", (row) => row.cold?.major_faults, whole, "page faults that read a disk"),
    number("voluntary", "Waited", (row) => row.cold?.voluntary, whole, "voluntary context switches"),
    number("involuntary", "Displaced", (row) => row.cold?.involuntary, whole, "involuntary context switches"),
    number("calls", "Calls", (row) => row.cold?.calls, whole, "system calls of a process"),
    number("run", "Long run", (row) => row.prolonged?.least, milliseconds, "least time of a run in one process"),
    number("run-faults", "Faults a run", (row) => row.prolonged?.faults),
    number("run-calls", "Calls a run", (row) => row.prolonged?.calls),
  ], lab.cells, { sort: [null, 1], page: 20, caption: "Every kernel by every subject", class: "findings costs", empty: "Nothing was measured." }).node;
}

function absentList(lab) {
  return h("ul", { class: "missing-list" }, lab.absent.map((one) => h("li", {}, h("b", {}, one.name), h("span", {}, `${one.engine}${one.mode ? `, ${one.mode}` : ""}: ${one.absent}`))));
}

function labTable(lab) {
  const head = ["kernel", "subject", "cold_median_ms", "cold_least_ms", "cold_most_ms", "minor_faults", "major_faults", "voluntary", "involuntary", "system_calls", "long_least_ms", "long_median_ms", "long_faults", "long_calls", "checksum"];
  return csv([head, ...lab.cells.map(({ kernel, subject, cold, prolonged: long, checksum }) => [kernel, subject, cold?.median, cold?.least, cold?.most, cold?.minor_faults, cold?.major_faults, cold?.voluntary, cold?.involuntary, cold?.calls, long?.least, long?.median, long?.faults, long?.calls, checksum])]);
}

function labPage(data) {
  const lab = labDocument(data);
  frame({
    title: "Laboratory · Metes",
    heading: labHeading(lab),
    parts: [
      ["start", "Starting", "From the start of a process that does nothing to its end: the program alone, then layer by layer what is put around it. The bar is from the least to the most, the dot the median; the axis is logarithmic.", null, () => startRows(lab)],
      ["why", "Why WebAssembly can win", "The paper found WebAssembly faster than the container in most long runs and left open why. Each dot is a kernel’s least time over native code with the default allocator.", null, () => puzzle(lab)],
      ["runs", "Run by run", "One process runs the kernel again and again: what is compiled on the way, and what stays.", null, () => prolonged(lab)],
      ["kernels", "All kernels", null, lab.kernels.length ? null : "No kernel was measured.", () => heat(lab)],
      ["instances", "In one process", "A module that is loaded: an instance is made, run and dropped, as often as it says.", list(data.warm).length ? null : "No instance was measured.", () => instances(lab)],
      ["figures", "Every figure", null, null, () => everything(lab)],
      ["absent", "What cannot be had here", null, lab.absent.length ? null : "Everything could be had.", () => absentList(lab)],
    ],
    exports: h("div", { class: "exports", role: "group", "aria-label": "Export" }, [
      ["Figures, CSV", "export-figures", () => download("edge-lab.csv", "text/csv", labTable(lab))],
      ["Everything, JSON", "export-json", () => download("edge-lab.json", "application/json", JSON.stringify(data, null, 1))],
      ["Print", "print", () => window.print()],
    ].map(([label, id, act]) => h("button", { type: "button", id, onclick: act }, label))),
  });
}

start(() => labPage(readDocument({ noun: "laboratory’s page", version: 1, filled: "“metes edge lab -o FILE.html” fills it.", again: "Measure again." })));
