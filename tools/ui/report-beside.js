// The program on today's allocators beside the chosen heap: what runs of it took.
// Invariant: a row has figures or says why it has none; what was not measured is not drawn as zero.

function besideTable(beside, rows) {
  const number = (key, label, show, hint, more) => ({ key, label, hint, numeric: true, value: (row) => row.median?.[key] ?? null,
    cell: (row) => (isNumber(row.median?.[key]) ? show(row.median[key]) : NONE), ...more });
  const over = (key, label) => ({ key: `${key}-ratio`, label: "× glibc", hint: `${label}, over glibc’s`, numeric: true, value: (row) => row.to_glibc?.[key] ?? null,
    cell: (row) => (isNumber(row.to_glibc?.[key]) ? h("span", { class: "figure" }, ratio(row.to_glibc[key])) : NONE) });
  const pair = (key, label, show, hint, more) => [number(key, label, show, hint, more), over(key, label)];
  return sortableTable([
    { key: "allocator", label: "Allocator", first: true, value: (row) => row.allocator, cell: (row) => h("span", { title: row.library ?? null }, row.allocator, row.allocator === "chosen" ? [" ", badge("chosen", "chosen")] : null) },
    ...pair("peak_resident", "Peak resident", byteFigure, "most bytes of memory at once, of the process that had most: program, libraries, stacks and heap", { bar: true }),
    ...pair("cpu_seconds", "CPU", seconds, "processor time in user mode and in the kernel", { bar: true }),
    ...pair("minor_faults", "Page faults", countFigure, "served without a read"),
    number("major_faults", "With a read", countFigure, "page faults that were served by a read"),
    ...(beside.instructions_counted === true ? pair("instructions", "Instructions", countFigure, "in user mode") : []),
    ...(rows.some((row) => row.failed) ? [{ key: "failed", label: "Failed", value: (row) => row.failed ?? null, cell: (row) => row.failed ?? "" }] : []),
  ], rows, { sort: [null, 1], caption: "The program on each allocator", class: "beside", marked: (row) => (row.allocator === "chosen" ? "is-chosen" : null), empty: "The program was run on none." }).node;
}

function besideView({ data }) {
  const { beside } = data;
  const rows = list(beside.rows).filter(isObject);
  const missing = list(beside.missing).filter(isObject).map((one) => `${one.allocator} (${one.from})`);
  const many = beside.runs === 1 ? "One run on each" : `${integer(beside.runs)} runs on each, by turns, in ${seconds(beside.seconds)}; of each figure the median`;
  return h("div", {},
    typeof beside.not_run === "string" ? h("p", { class: "missing" }, `Not run: ${beside.not_run}. “metes tune --beside N” runs the program N times on each.`)
      : [h("p", {}, `${many}. A peak resident set holds the program’s code, libraries and stacks, too, so it differs less than heaps do.`), besideTable(beside, rows)],
    missing.length ? h("p", { class: "hint" }, `Not installed: ${missing.join("; ")}.`) : null,
    typeof beside.not_run !== "string" && beside.instructions_counted !== true ? h("p", { class: "hint" }, "Instructions are not counted: the system has no counter for them.") : null);
}
