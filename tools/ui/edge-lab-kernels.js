// Kernels: why WebAssembly can win a long run, run by run, and all of them beside native code.
// Invariant: a ratio is of two times of the same kernel and the same run of the laboratory.

// What explains the question, with its marks by kernel.
const MARKED = ["native-musl", "native-retained", "native-metes", "cranelift", "cranelift-simd", "v8-simd"];

function puzzle(lab) {
  const { puzzle: found, steady } = lab;
  if (!found || !steady.length) return h("p", { class: "missing" }, "No long run was measured, or not all that it takes to explain one.");
  const [faults, kept, sandbox] = list(found.faults);
  const step = (big, text) => h("div", {}, h("b", { class: "big" }, big), h("p", {}, text));
  const marked = MARKED.filter((name) => steady.some((one) => one.by.some((by) => by.subject === name)));
  const rows = steady.map((one) => ({ ...one, at: new Map(one.by.map((by) => [by.subject, by])) })).sort((a, b) => (a.at.get("native-retained")?.ratio ?? 1) - (b.at.get("native-retained")?.ratio ?? 1));
  const values = rows.flatMap((one) => marked.map((name) => one.at.get(name)?.ratio)).filter((v) => v > 0);
  const axis = logAxis(Math.min(0.5, ...values) * 0.92, Math.max(2, ...values) * 1.08);
  return h("div", {},
    h("div", { class: "steps" },
      step(`${integer(found.wasm_beats_default)} of ${integer(found.kernels)}`, "kernels are faster in WebAssembly than in native code whose allocator maps each run’s arrays and unmaps them."),
      step(`${whole(faults)} faults a run`, `native, by default (median of kernels); ${whole(kept)} where it keeps its memory, ${whole(sandbox)} in WebAssembly, whose memory stays mapped.${isNumber(found.fault_ns) ? ` A fault costs ${seconds(found.fault_ns / 1e9)}.` : ""}`),
      step(`${integer(found.wasm_beats_retained)} of ${integer(found.kernels)}`, `kernels are still faster in WebAssembly once native code keeps its memory, and then takes ${ratio(found.retained)} as long as before.`),
      step(`${ratio(found.with_vectors)}`, `is what WebAssembly with 128-bit vectors takes beside such native code. Without vectors on either side it is ${ratio(found.without_vectors)}; vectors alone make WebAssembly ${ratio(found.vectors_of_wasm)} and native code ${ratio(found.vectors_of_native)} as long.`)),
    keyOf([["rule", "native by default = 1", "dot"], ["e-container", "native with musl, as in Alpine"], ["e-kept", "native, memory kept"], ["e-metes", "with a heap of Metes"], ["e-wasm", "WebAssembly"], ["e-vectors", "with vectors"]]),
    rows.map((one) => {
      const spots = marked.map((name) => [name, one.at.get(name)]).filter(([, by]) => by);
      const all = [1, ...spots.map(([, by]) => by.ratio)];
      const [low, high] = [Math.min(...all), Math.max(...all)];
      return h("div", { class: "track-row steady" }, h("b", {}, one.kernel),
        track(axis, [h("span", { class: "reach", style: `left:${axis.at(low)}%;width:${axis.at(high) - axis.at(low)}%` }),
          spots.map(([name, by]) => mark(axis, by.ratio, colourOf(lab.byName.get(name) ?? {}), `${name}: ${ratio(by.ratio)} native, ${milliseconds(by.ms)}`))], 1),
        h("span", { class: "ms" }, milliseconds(one.at.get("native")?.ms)),
        h("span", { class: "cost" }, `${whole(one.at.get("native")?.faults)} faults a run,`, h("br"), `${whole(one.at.get("native-retained")?.faults)} kept, ${whole(one.at.get("cranelift")?.faults)} wasm`));
    }),
    trackAxis(axis, (v) => `${plainTick(v)}\u00a0×`));
}

// Run by run, a kernel at a time.
function prolonged(lab) {
  const kernels = lab.kernels.filter((kernel) => lab.present.some(({ name }) => lab.cell(name, kernel)?.prolonged));
  if (!kernels.length) return h("p", { class: "missing" }, "No long run was measured.");
  const place = h("div", {});
  const quiet = new Set(["wasmi", "native-scalar", "native-musl", "native-metes", "docker", "cranelift-heap", "winch", "ahead"]);
  const draw = (kernel) => {
    const series = lab.present.map((subject, k) => ({ subject, k, points: list(lab.cell(subject.name, kernel)?.prolonged?.ms).map((v, run) => [run + 1, v]) }))
      .filter(({ points }) => points.length)
      .map(({ subject, k, points }) => ({ name: subject.name, colour: `series-${(k % 8) + 1}`, points, on: !quiet.has(subject.name), as: "line", dotted: points.length < 40, dashed: subject.layer !== "WebAssembly" }));
    const { node } = plot({ label: `${kernel}, run by run`, height: 380, named: true, reads: "run",
      x: { title: "run in the process", show: integer, tick: plainTick }, y: { title: "time of a run", show: milliseconds, tick: milliseconds, log: true }, series });
    place.replaceChildren(node);
    redrawAll();
  };
  const choice = h("select", { id: "kernel" }, kernels.map((kernel) => h("option", { value: kernel }, kernel)));
  choice.addEventListener("change", () => draw(choice.value));
  draw(kernels[0]);
  return h("div", {}, h("div", { class: "controls" }, h("label", {}, "Kernel ", choice), h("span", { class: "hint" }, "Dashed: native code and containers.")), place);
}

// Kernels by subjects, each over native code.
function heat(lab) {
  const ways = { total: ["From start to end", (cell) => cell?.cold?.median], steady: ["In a long run", (cell) => cell?.prolonged?.least] };
  const state = { way: "total" };
  const place = h("div", { class: "heat" });
  const draw = () => {
    const [, of] = ways[state.way];
    const shown = lab.present.filter((one) => one.name !== "native" && lab.kernels.some((kernel) => isNumber(of(lab.cell(one.name, kernel)))));
    const over = (name, kernel) => { const [a, b] = [of(lab.cell(name, kernel)), of(lab.cell("native", kernel))]; return isNumber(a) && b > 0 ? a / b : null; };
    const shade = (v) => (v < 1 ? `--c:var(--good);--s:${Math.min(60, -Math.log2(v) * 45)}%` : `--c:var(--bad);--s:${Math.min(60, Math.log2(v) * 9)}%`);
    const shownCell = (v, title) => (isNumber(v) ? h("td", { style: shade(v), title }, v < 10 ? v.toFixed(2) : significant(v)) : h("td", { class: "none" }, NONE));
    const mean = (name) => { const all = lab.kernels.map((kernel) => over(name, kernel)).filter(isNumber); return all.length ? Math.exp(all.reduce((sum, v) => sum + Math.log(v), 0) / all.length) : null; };
    place.replaceChildren(h("table", {}, h("caption", {}, `Times over native code: ${ways[state.way][0]}`),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "kernel"), h("th", { scope: "col" }, "native"), shown.map(({ name }) => h("th", { scope: "col" }, breakable(name.replaceAll("-", "- ")))))),
      h("tbody", {}, lab.kernels.map((kernel) => h("tr", {}, h("th", { scope: "row" }, kernel), h("td", { class: "none", style: "color:var(--soft)" }, milliseconds(of(lab.cell("native", kernel)))),
        shown.map(({ name }) => shownCell(over(name, kernel), `${name}: ${milliseconds(of(lab.cell(name, kernel)))}`)))),
      h("tr", { class: "mean" }, h("th", { scope: "row" }, "geometric mean"), h("td", { class: "none" }, ""), shown.map(({ name }) => shownCell(mean(name), `${name}, all kernels`))))));
  };
  const choice = h("select", { id: "way" }, Object.entries(ways).map(([key, [label]]) => h("option", { value: key }, label)));
  choice.addEventListener("change", () => { state.way = choice.value; draw(); });
  draw();
  return h("div", {}, h("div", { class: "controls" }, h("label", {}, "Time ", choice), h("span", { class: "hint" }, "Times native code of the same kernel; green is faster.")), place);
}
