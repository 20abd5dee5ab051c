// How long a start takes, layer by layer.
// Invariant: published times have a mark of their own, and stand on the axis of ours.

const LAYERS = ["process", "namespaces", "OCI runtime", "container engine", "WebAssembly"];

function startRows(lab) {
  const { starts, paper } = lab;
  if (!starts.length) return h("p", { class: "missing" }, "No start was measured.");
  const all = [...starts.flatMap((one) => list(one.range)), ...starts.map((one) => one.ms), ...paper.map((one) => one.ms)].filter((v) => v > 0);
  const axis = logAxis(Math.min(...all) * 0.8, Math.max(...all) * 1.25);
  const row = (one) => {
    const subject = lab.byName.get(one.subject) ?? {};
    const colour = colourOf(subject);
    const [low, high] = list(one.range);
    const what = subject.layer === "WebAssembly" ? `${subject.engine}, ${subject.mode}${subject.start === "cached" ? ", cached" : ""}` : [subject.mode || subject.engine, subject.allocator].filter(Boolean).join(", ");
    return h("div", { class: "track-row start" }, h("b", {}, one.subject, h("small", {}, what)),
      track(axis, [h("span", { class: "span", style: `left:${axis.at(low)}%;width:${Math.max(0, axis.at(high) - axis.at(low))}%;--c:var(--${colour})`, title: `${milliseconds(low)} to ${milliseconds(high)}` }),
        mark(axis, one.ms, colour, `${milliseconds(one.ms)}, ${ratio(one.ratio)} native`)]),
      h("span", { class: "ms" }, milliseconds(one.ms)),
      h("span", { class: "cost" }, `${integer(one.faults)} faults`, h("br"), isNumber(one.calls) ? `${integer(one.calls)} system calls` : "calls not counted"));
  };
  const groups = LAYERS.map((layer) => [layer, starts.filter((one) => one.layer === layer)]).filter(([, own]) => own.length);
  return h("div", { class: "starts" },
    groups.map(([layer, own]) => [h("p", { class: "track-group" }, layer), own.map(row)]),
    paper.length ? [h("p", { class: "track-group" }, "as published, on another machine"), paper.map((one) => h("div", { class: "track-row paper-start" }, h("b", {}, one.what),
      track(axis, [mark(axis, one.ms, "ink", `${one.ms} ms, published`, true)]), h("span", { class: "ms" }, milliseconds(one.ms)), h("span", { class: "cost" }, "published")))] : null,
    trackAxis(axis, milliseconds));
}

function instances(lab) {
  const warm = list(lab.data.warm).filter(isObject);
  return sortableTable([
    { key: "engine", label: "Engine", first: true, value: (row) => row.engine, cell: (row) => row.engine },
    { key: "kernel", label: "Kernel", value: (row) => row.kernel, cell: (row) => row.kernel },
    { key: "instances", label: "Instances", numeric: true, value: (row) => row.instances, cell: (row) => integer(row.instances) },
    ...["p50", "p99", "max"].map((key) => ({ key, label: key === "max" ? "Most" : key, numeric: true, value: (row) => row.us?.[key], cell: (row) => (isNumber(row.us?.[key]) ? seconds(row.us[key] / 1e6) : NONE) })),
    { key: "faults", label: "Page faults", numeric: true, value: (row) => row.faults, cell: (row) => integer(row.faults) },
  ], warm, { sort: [null, 1], caption: "Instances of loaded modules", class: "findings", empty: "No instance was measured." }).node;
}
