// A device heap at one moment, and the next ones where a server has them.
// Invariant: everything on the page is of one view, but for the history.

// ---- the map ------------------------------------------------------------

const FILLS = [["none", "no memory"], ["idle", "idle"], ["waiting", "idle, work may still use it"], ["little", "less than a third used"], ["half", "two thirds"], ["much", "more"], ["full", "full"]];
const OPACITY = { none: 1, idle: .45, waiting: .75, little: .3, half: .55, much: .8, full: 1 };

// As `Cell::fill` of the Rust side has it.
function fill(cell, page) {
  if (cell.used === 0) return cell.mapped === 0 ? "none" : cell.waiting === 0 ? "idle" : "waiting";
  const share = cell.used / (cell.pages * page);
  return share < 1 / 3 ? "little" : share < 2 / 3 ? "half" : share < 15 / 16 ? "much" : "full";
}
// The style's variables name each other: only a colour that is applied is one that a canvas takes.
const probe = h("i", { hidden: true });
document.body.append(probe);
function ink(kind) {
  probe.style.color = `var(--map-${{ none: "none", idle: "idle", waiting: "waiting" }[kind] ?? "used"})`;
  return getComputedStyle(probe).color;
}

function mapView(now) {
  const canvas = h("canvas", { id: "map", class: "watch-map", role: "img", "aria-label": "Map of the addresses" });
  const lead = h("p", { class: "lead", id: "map-lead" });
  const key = h("div", { class: "key", id: "map-key" });
  const grid = { columns: 1, size: 1 };
  const draw = () => {
    const { view } = now;
    const count = Math.max(1, view.map.length);
    const width = canvas.clientWidth;
    if (!width) return;
    // At least this wide, so that a cell can be pointed at; few cells are drawn larger.
    grid.size = Math.max(9, Math.min(26, Math.floor(Math.sqrt(width * 320 / count))));
    grid.columns = Math.max(1, Math.floor(width / grid.size));
    canvas.style.height = `${Math.ceil(count / grid.columns) * grid.size}px`;
    const { context } = prepare(canvas);
    const inks = Object.fromEntries(FILLS.map(([kind]) => [kind, ink(kind)]));
    view.map.forEach((cell, number) => {
      const kind = fill(cell, view.page);
      context.globalAlpha = OPACITY[kind];
      context.fillStyle = inks[kind];
      context.fillRect(number % grid.columns * grid.size, Math.floor(number / grid.columns) * grid.size, grid.size - 1, grid.size - 1);
    });
    context.globalAlpha = 1;
    key.replaceChildren(...FILLS.map(([kind, name]) => h("span", {}, h("i", { class: "cell", style: `background:${inks[kind]};opacity:${OPACITY[kind]}` }), name)));
    const first = view.map[0] ?? { pages: 0 };
    lead.replaceChildren(`${bytes(view.addresses)} of addresses from 0x${view.start.toString(16)} on, of which at most ${bytes(view.cap)} have memory. A cell is ${first.pages === 1 ? "a page" : `${integer(first.pages)} pages`} of ${bytes(view.page)}.`);
  };
  canvas.addEventListener("pointermove", (event) => {
    const { view } = now;
    const [column, row] = [event.offsetX, event.offsetY].map((at) => Math.floor(at / grid.size));
    const number = row * grid.columns + column;
    const cell = view.map[number];
    if (!cell || column >= grid.columns) { hideTip(); return; }
    const from = view.start + (view.map[0]?.pages ?? 0) * number * view.page;
    showTip(event.clientX, event.clientY, [[`0x${from.toString(16)}, ${bytes(cell.pages * view.page)}`, "tip-title"], [`${bytes(cell.used)} used; ${integer(cell.mapped)} of ${integer(cell.pages)} pages have memory, ${integer(cell.waiting)} wait for streams`, "tip-row"]]);
  });
  canvas.addEventListener("pointerleave", hideTip);
  redraws.add(draw);
  now.grid = grid;
  return h("div", {}, lead, canvas, key);
}

// ---- the history --------------------------------------------------------

function historyView(now) {
  const points = () => { const past = now.view.history; return { used: past.map((p) => [p[0], p[1]]), mapped: past.map((p) => [p[0], p[2]]) }; };
  const cap = () => [{ value: now.view.cap, text: `cap: ${bytes(now.view.cap)}`, colour: "soft" }];
  const start = points();
  // What lies between two looks is not known: steps, no slopes.
  const shown = plot({ label: "Used and mapped bytes over time", height: 280, reads: "second", x: { title: "seconds", whole: false, show: (v) => significant(v) },
    y: { title: "bytes", show: bytes, tick: byteTick, binary: true }, rules: cap(),
    series: [["used", "front"], ["mapped", "series-1"]].map(([name, colour]) => ({ name, as: "step", colour, width: 2, points: start[name], on: true })) });
  shown.canvas.id = "history";
  const lead = h("p", { class: "hint", id: "history-lead" });
  const none = h("p", { class: "missing" }, "One look makes no history: the served page, “metes device watch --page”, looks again and again.");
  now.history = () => {
    const past = now.view.history;
    const some = past.length > 1;
    none.hidden = some;
    shown.node.hidden = lead.hidden = !some;
    if (!some) return;
    shown.set(points(), cap());
    lead.textContent = `The last ${(past[past.length - 1][0] - past[0][0]).toFixed(0)} s.`;
  };
  now.history();
  return h("div", {}, none, shown.node, lead);
}

// ---- figures ------------------------------------------------------------

function figuresOf(view) {
  const { rates } = view;
  return [
    ["Used", byteFigure(view.requested.current), ["peak ", byteFigure(view.requested.peak)]],
    ["Mapped", byteFigure(view.reserved.current), ["peak ", byteFigure(view.reserved.peak), ", cap ", byteFigure(view.cap)]],
    ["Blocks", integer(view.blocks.current), `peak ${integer(view.blocks.peak)}`],
    ["Allocations a second", rates ? integer(Math.round(rates.allocations)) : NONE, rates ? `${integer(Math.round(rates.frees))} frees, ${bytes(Math.round(rates.bytes))}` : "known from the second look on"],
    ["Largest free run", byteFigure(view.largest_free_run), "addresses, in whole pages"],
    ["Refused, bad frees", `${integer(view.refusals)}, ${integer(view.bad_frees)}`, "for lack of memory; of no block", view.refusals + view.bad_frees > 0 ? "bad" : null],
  ];
}

function factsOf(view) {
  const { pages } = view;
  return [
    ["Allocations", integer(view.blocks.added)], ["Frees", integer(view.blocks.removed)],
    ["Bytes in whole granules", byteFigure(view.allocated.current)], ["Bytes asked for so far", byteFigure(view.requested.added)],
    ["Pages in use", integer(pages.live)], ["Pages idle", integer(pages.idle)],
    ["Idle pages waiting for streams", integer(pages.waiting)], ["Pages spare", integer(pages.spare)],
    ["Pages mapped so far", integer(pages.mapped)], ["Pages moved so far", integer(pages.moved)],
    ["Most moved by one request", integer(pages.most_moved)], ["Streams", integer(view.streams)],
    ["Marks of streams", integer(view.marks)], ["Waits of the host", integer(view.waits)],
    ["Streams ordered", integer(view.orders)], ["Requests tried again", integer(view.retries)],
    ["Granule", bytes(view.granule)], ["Process", String(view.process.pid)],
  ];
}

// The heading says what is seen, not the command line, which may be long and stands below it.
function headingOf(now) {
  const what = h("h1", { id: "headline" });
  const heap = h("b", { id: "heap" });
  const device = h("span", { id: "device" });
  const program = h("p", { class: "lead program" }, h("code", { id: "program" }));
  const figures = h("dl", { class: "figures", id: "figures" });
  now.heading = () => {
    const { view } = now;
    what.replaceChildren(byteFigure(view.requested.current), " in use, ", byteFigure(view.reserved.current), " mapped, of at most ", byteFigure(view.cap), ".");
    heap.textContent = view.heap;
    device.textContent = `${view.device}${view.asleep ? ", asleep" : ""}`;
    program.firstChild.textContent = view.process.program;
    figures.replaceChildren(...figuresOf(view).map((cell) => figureCell(...cell)));
  };
  now.heading();
  return h("header", { class: "verdict" }, h("p", { class: "eyebrow" }, heap, " ", device), what, program, figures);
}

function watchPage(given) {
  const now = { view: given.view };
  const state = h("span", { class: "state", id: "state", role: "status" });
  const table = h("dl", { class: "facts", id: "facts" });
  const figures = () => table.replaceChildren(...factsOf(now.view).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
  const say = (text, bad) => { state.textContent = text; state.classList.toggle("bad", Boolean(bad)); };
  figures();
  frame({ title: `${given.view.heap} · Metes`, heading: headingOf(now), state,
    note: given.every ? "Served from this machine. " : undefined,
    parts: [["addresses", "Addresses", null, null, () => mapView(now)], ["past", "History", null, null, () => historyView(now)], ["all", "All figures", null, null, () => table]] });
  async function next() {
    try {
      const answer = await fetch("/view", { cache: "no-store" });
      if (!answer.ok) throw new Error(await answer.text());
      now.view = await answer.json();
      now.heading();
      now.history();
      figures();
      redrawAll();
      say(now.view.process.ended ? "the process has ended" : "live", now.view.process.ended);
      if (now.view.process.ended) return;
    } catch (error) {
      say(`no answer: ${error.message}`, true);
    }
    setTimeout(next, given.every);
  }
  if (given.every) {
    say("live");
    setTimeout(next, given.every);
  } else say(given.view.process.ended ? "the process has ended" : "one moment");
  // For tests: the view, the grid of the map, and how its cells are painted.
  window.metes = { now, FILLS, OPACITY, fill, ink };
}

start(() => watchPage(readDocument({ noun: "device heap’s page", filled: "“metes device watch --page” serves it, with “-o FILE.html” it is one moment.", again: "Write it again with “metes device watch -o FILE.html”." })));
