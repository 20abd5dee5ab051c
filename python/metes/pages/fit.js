// What a script took of the dry device, and what for.
// Invariant: every figure is of the document, or a sum or share of such; what is unknown is named so.

const given = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const NAMES = { weights: "weights", buffers: "buffers", gradients: "gradients", optimizer_states: "optimiser states", activations: "activations", temporaries: "temporaries", unknown: "unknown" };
const PARTS = Object.keys(NAMES);
const PASSES = { backward: "backward pass", step: "optimiser’s step" };

function bytes(number) {
  if (number === null || number === undefined) return "not known";
  const names = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = number, unit = 0;
  while (value >= 1024 && unit + 1 < names.length) { value /= 1024; unit += 1; }
  return `${value.toFixed(unit === 0 ? 0 : 2)} ${names[unit]}`;
}
const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");
const percent = (share) => `${(100 * share).toFixed(1)} %`;

function node(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// ---- verdict ------------------------------------------------------------

const VERDICTS = { fits: ["good", "✓ It fits."], "does not fit": ["bad", "✗ It does not fit."], undecided: ["open", "○ Undecided."] };

function drawVerdict() {
  const { report, breakdown } = given;
  const [kind, words] = VERDICTS[report.verdict];
  at("framework").textContent = report.framework;
  at("command").textContent = given.command.join(" ");
  at("headline").append(node("code", {}, given.script), ` ${given.headline}.`);
  at("proof").classList.add(kind);
  at("verdict").textContent = words;
  at("because").textContent = given.because;
  at("guesses").hidden = given.guessed.length === 0;
  at("guessed").textContent = given.guessed.join("\n");
  const cell = (label, value, note) => node("div", {}, node("dt", {}, label), node("dd", {}, value, note ? node("small", {}, note) : null));
  at("figures").append(
    cell("Live at the peak", bytes(report.peak_live), report.peak_allocated ? `${bytes(report.peak_allocated)} rounded` : "the framework keeps no count"),
    cell("Reserved", bytes(report.peak_reserved), "by the framework’s allocator"),
    cell("Device in use", bytes(report.peak_device), `${percent(report.peak_device / report.memory)} of ${bytes(report.memory)}`),
    cell("Refusals", grouped(report.refusals), report.error ? "the last ended the script" : report.refusals ? "survived by the script" : "for lack of memory"),
    breakdown ? cell("Allocations", grouped(breakdown.allocations), `the peak is the ${grouped(breakdown.peak.allocation)}th`) : null,
  );
  for (const sentence of given.unknown) at("unknown").append(node("li", {}, sentence));
}

// ---- at the peak --------------------------------------------------------

const inPass = (kind) => (kind ? `, in the ${PASSES[kind] ?? kind}` : "");

function lines(list, own) {
  return list.map((line) => node("li", { class: line === own ? "own" : null }, line));
}

function drawPeak() {
  const { peak, refused } = given.breakdown;
  const lead = at("peak-lead");
  lead.append(`${bytes(peak.bytes)} are live when ${bytes(peak.size)} are asked for at `, node("code", {}, peak.line ?? "a line that is not known"), `${inPass(peak.pass)}.`);
  if (refused) lead.append(` What is refused last are ${bytes(refused.bytes)} at `, node("code", {}, refused.line ?? "a line that is not known"), ".");
  const most = Math.max(...Object.values(peak.parts), 1);
  for (const part of PARTS) {
    const value = peak.parts[part];
    const mark = node("i", { class: part });
    mark.style.width = `${100 * value / most}%`;
    at("parts").append(node("li", { title: `${grouped(value)} bytes; at most ${bytes(given.breakdown.most[part])} at any time` }, node("span", {}, NAMES[part]), node("span", { class: "rail" }, mark), node("span", { class: "number" }, bytes(value)), node("span", {}, percent(value / Math.max(peak.bytes, 1)))));
  }
  at("peak-stack").hidden = peak.stack.length === 0;
  at("peak-stack").lastElementChild.append(...lines(peak.stack, peak.line));
}

// ---- the blocks ---------------------------------------------------------

function drawRows() {
  const total = given.breakdown.peak.bytes;
  for (const row of given.breakdown.largest) {
    const said = row.part === null ? "all other lines" : row.line ?? "no line of Python: asked for by the framework itself";
    const name = node("code", {}, said);
    const where = row.pass ? node("small", { class: "soft" }, ` ${PASSES[row.pass] ?? row.pass}`) : null;
    const head = row.stack.length
      ? node("details", {}, node("summary", {}, name, where), node("ol", { class: "stack" }, ...lines(row.stack, row.line)))
      : node("span", {}, name, where);
    const part = row.part ? node("span", { class: `part ${row.part}` }, node("i", {}), NAMES[row.part]) : "–";
    at("rows").append(node("tr", {}, node("th", { scope: "row" }, head), node("td", {}, part), ...[bytes(row.bytes), percent(row.bytes / total), grouped(row.blocks), bytes(row.largest)].map((text) => node("td", { class: "number" }, text))));
  }
}

// ---- over time ----------------------------------------------------------

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const inkOf = (part) => {
  const probe = at("key").querySelector(`.${part}`);
  return probe ? getComputedStyle(probe).backgroundColor : colour("--faint");
};

let place = (number) => number;

function drawTime() {
  const { timeline, passes, allocations, peak } = given.breakdown, { report } = given;
  const canvas = at("timeline"), width = canvas.clientWidth, height = canvas.clientHeight, scale = devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const paint = canvas.getContext("2d");
  paint.setTransform(scale, 0, 0, scale, 0, 0);
  const top = 16, floor = height - 20, high = Math.max(...timeline.live, ...timeline.reserved, report.peak_device);
  // The device's end belongs in the picture where it is near.
  const limit = report.memory <= high * 1.6 ? report.memory : null, most = Math.max(high, limit ?? 0) * 1.04;
  const x = (allocation) => allocation / Math.max(allocations, 1) * width;
  const y = (value) => floor - value / most * (floor - top);
  place = x;
  paint.font = `11px ${colour("--sans")}`;
  paint.fillStyle = colour("--bar");
  for (const pass of passes) if (pass.kind === "backward") paint.fillRect(x(pass.from), top, Math.max(x(pass.to) - x(pass.from), .5), floor - top);
  const under = timeline.allocation.map(() => 0);
  for (const part of PARTS) {
    const values = timeline.parts[part];
    paint.fillStyle = inkOf(part);
    paint.beginPath();
    paint.moveTo(x(0), y(0));
    timeline.allocation.forEach((allocation, number) => paint.lineTo(x(allocation), y(under[number] + values[number])));
    for (let number = timeline.allocation.length - 1; number >= 0; number -= 1) paint.lineTo(x(timeline.allocation[number]), y(under[number]));
    paint.closePath();
    paint.fill();
    values.forEach((value, number) => { under[number] += value; });
  }
  paint.strokeStyle = colour("--ink");
  paint.lineWidth = 1.6;
  paint.beginPath();
  timeline.allocation.forEach((allocation, number) => {
    // Segments come and go at once: steps, no slopes.
    if (number) paint.lineTo(x(allocation), y(timeline.reserved[number - 1]));
    paint.lineTo(x(allocation), y(timeline.reserved[number]));
  });
  paint.stroke();
  paint.lineWidth = 1;
  const rule = (value, text, ink, dashes) => {
    paint.strokeStyle = paint.fillStyle = ink;
    paint.setLineDash(dashes);
    paint.beginPath();
    paint.moveTo(0, y(value));
    paint.lineTo(width, y(value));
    paint.stroke();
    paint.setLineDash([]);
    paint.fillText(text, 3, y(value) - 4);
  };
  if (limit) rule(limit, `device: ${bytes(limit)}`, colour("--bad"), []);
  rule(peak.bytes, `peak: ${bytes(peak.bytes)} live`, colour("--ink"), [3, 3]);
  paint.fillStyle = colour("--soft");
  paint.fillText("0", 3, height - 6);
  const end = `${grouped(allocations)} allocations`;
  paint.fillText(end, width - paint.measureText(end).width - 3, height - 6);
  paint.strokeStyle = colour("--ink");
  paint.beginPath();
  paint.moveTo(x(peak.allocation), y(peak.bytes));
  paint.lineTo(x(peak.allocation), floor);
  paint.stroke();
}

function drawKey() {
  const entry = (kind, shape, name) => node("span", {}, node("i", { class: `${shape} ${kind}` }), name);
  at("key").append(...PARTS.map((part) => entry(part, "dot", NAMES[part])), entry("reserved", "rule", "reserved"));
  at("time-lead").textContent = "Time is counted in allocations, as a dry run has no other. Of each stretch its fullest moment is drawn. Backward passes are shaded.";
}

at("timeline").addEventListener("pointermove", (event) => {
  const { timeline } = given.breakdown, tip = at("tip");
  const number = timeline.allocation.findIndex((allocation) => place(allocation) >= event.offsetX);
  tip.hidden = number < 0;
  if (tip.hidden) return;
  tip.replaceChildren(node("div", { class: "tip-title" }, `allocation ${grouped(timeline.allocation[number])}: ${bytes(timeline.live[number])} live, ${bytes(timeline.reserved[number])} reserved`),
    ...PARTS.filter((part) => timeline.parts[part][number]).map((part) => node("div", {}, `${NAMES[part]} ${bytes(timeline.parts[part][number])}`)));
  tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${event.clientY + 18}px`;
});
at("timeline").addEventListener("pointerleave", () => { at("tip").hidden = true; });

drawVerdict();
if (given.breakdown) {
  for (const section of ["use", "time", "blocks"]) at(section).hidden = false;
  drawPeak();
  drawRows();
  drawKey();
  drawTime();
  addEventListener("resize", drawTime);
  dark.addEventListener("change", drawTime);
} else {
  at("none").hidden = false;
  at("missing").textContent = `What the memory was for is not known: ${given.no_history}.`;
}
document.documentElement.dataset.ready = "yes";
