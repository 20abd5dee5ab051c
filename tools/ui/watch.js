// A device heap at one moment, and the next ones where a server has them.
// Invariant: everything on the page is of one view, but for the history.

const given = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);

function bytes(number) {
  const names = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let value = number, unit = 0;
  while (value >= 1024 && unit + 1 < names.length) { value /= 1024; unit += 1; }
  const digits = unit === 0 ? 0 : value < 10 ? 2 : value < 100 ? 1 : 0;
  return `${value.toFixed(digits)} ${names[unit]}`;
}
const grouped = (number) => String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, "\u202f");

function put(list, entries) {
  list.replaceChildren(...entries.map(([name, value, remark, bad]) => {
    const row = document.createElement("div");
    const title = document.createElement("dt"), text = document.createElement("dd");
    title.textContent = name;
    text.textContent = value;
    text.classList.toggle("bad", Boolean(bad));
    if (remark) {
      const small = document.createElement("small");
      small.textContent = remark;
      text.append(small);
    }
    row.append(title, text);
    return row;
  }));
}

// ---- the map ------------------------------------------------------------

const FILLS = [["none", "no memory"], ["idle", "idle"], ["waiting", "idle, work may still use it"], ["little", "less than a third used"], ["half", "two thirds"], ["much", "more"], ["full", "full"]];
const OPACITY = { none: 1, idle: .45, waiting: .75, little: .3, half: .55, much: .8, full: 1 };

// As `Cell::fill` of the Rust side has it.
function fill(cell, page) {
  if (cell.used === 0) return cell.mapped === 0 ? "none" : cell.waiting === 0 ? "idle" : "waiting";
  const share = cell.used / (cell.pages * page);
  return share < 1 / 3 ? "little" : share < 2 / 3 ? "half" : share < 15 / 16 ? "much" : "full";
}
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const ink = (kind) => colour(`--map-${{ none: "none", idle: "idle", waiting: "waiting" }[kind] ?? "used"}`);

let view = given.view;
let grid = { columns: 1, size: 1 };

function surface(canvas, height) {
  const width = canvas.clientWidth, scale = devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.height = `${height}px`;
  const paint = canvas.getContext("2d");
  paint.setTransform(scale, 0, 0, scale, 0, 0);
  paint.clearRect(0, 0, width, height);
  return [paint, width];
}

function drawMap() {
  const canvas = at("map"), count = Math.max(1, view.map.length);
  const width = canvas.clientWidth;
  // At least this wide, so that a cell can be pointed at; few cells are drawn larger.
  const size = Math.max(9, Math.min(26, Math.floor(Math.sqrt(width * 320 / count))));
  const columns = Math.max(1, Math.floor(width / size)), rows = Math.ceil(count / columns);
  grid = { columns, size };
  const [paint] = surface(canvas, rows * size);
  const inks = Object.fromEntries(FILLS.map(([kind]) => [kind, ink(kind)]));
  view.map.forEach((cell, number) => {
    const kind = fill(cell, view.page);
    paint.globalAlpha = OPACITY[kind];
    paint.fillStyle = inks[kind];
    paint.fillRect(number % columns * size, Math.floor(number / columns) * size, size - 1, size - 1);
  });
  paint.globalAlpha = 1;
  const first = view.map[0] ?? { pages: 0 };
  at("map-lead").textContent = `${bytes(view.addresses)} of addresses from 0x${view.start.toString(16)} on, of which at most ${bytes(view.cap)} have memory. A cell is ${first.pages === 1 ? "a page" : `${first.pages} pages`} of ${bytes(view.page)}.`;
}

function drawKey() {
  at("map-key").replaceChildren(...FILLS.map(([kind, name]) => {
    const entry = document.createElement("span"), mark = document.createElement("i");
    mark.className = "cell";
    mark.style.background = ink(kind);
    mark.style.opacity = OPACITY[kind];
    entry.append(mark, name);
    return entry;
  }));
}

at("map").addEventListener("pointermove", (event) => {
  const column = Math.floor(event.offsetX / grid.size), row = Math.floor(event.offsetY / grid.size);
  const number = row * grid.columns + column, cell = view.map[number], tip = at("tip");
  tip.hidden = !cell || column >= grid.columns;
  if (tip.hidden) return;
  const before = (view.map[0]?.pages ?? 0) * number, from = view.start + before * view.page;
  tip.textContent = `0x${from.toString(16)}, ${bytes(cell.pages * view.page)}: ${bytes(cell.used)} used; ${cell.mapped} of ${cell.pages} pages have memory, ${cell.waiting} wait for streams`;
  tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${event.clientY + 18}px`;
});
at("map").addEventListener("pointerleave", () => { at("tip").hidden = true; });

// ---- the history --------------------------------------------------------

function drawHistory() {
  const points = view.history;
  at("history-section").hidden = points.length < 2;
  if (points.length < 2) return;
  const height = 220, [paint, width] = surface(at("history"), height);
  const [first] = points[0], [last] = points[points.length - 1];
  const x = (seconds) => (seconds - first) / Math.max(last - first, 1e-9) * width;
  const y = (value) => height - 1 - value / Math.max(view.cap, 1) * (height - 14);
  paint.font = "12px sans-serif";
  paint.strokeStyle = colour("--line");
  paint.fillStyle = colour("--soft");
  for (const share of [0, .5, 1]) {
    paint.beginPath();
    paint.moveTo(0, y(view.cap * share));
    paint.lineTo(width, y(view.cap * share));
    paint.stroke();
    if (share) paint.fillText(bytes(view.cap * share), 2, y(view.cap * share) - 3);
  }
  for (const [place, name] of [[2, "--series-1"], [1, "--front"]]) {
    paint.strokeStyle = colour(name);
    paint.lineWidth = 2;
    paint.beginPath();
    points.forEach((point, number) => {
      // What lies between two looks is not known: steps, no slopes.
      if (number) paint.lineTo(x(point[0]), y(points[number - 1][place]));
      paint.lineTo(x(point[0]), y(point[place]));
    });
    paint.stroke();
  }
  at("history-lead").textContent = `The last ${(last - first).toFixed(0)} s; the highest line is the cap.`;
}

// ---- figures ------------------------------------------------------------

function drawFigures() {
  at("heap").textContent = view.heap;
  at("device").textContent = `${view.device}${view.asleep ? ", asleep" : ""}`;
  at("program").textContent = view.process.program;
  const { pages, rates } = view;
  put(at("figures"), [
    ["Used", bytes(view.requested.current), `peak ${bytes(view.requested.peak)}`],
    ["Mapped", bytes(view.reserved.current), `peak ${bytes(view.reserved.peak)}, cap ${bytes(view.cap)}`],
    ["Blocks", grouped(view.blocks.current), `peak ${grouped(view.blocks.peak)}`],
    ["Allocations a second", rates ? grouped(rates.allocations) : "–", rates ? `${grouped(rates.frees)} frees, ${bytes(rates.bytes)}` : "known from the second look on"],
    ["Largest free run", bytes(view.largest_free_run), "addresses, in whole pages"],
    ["Refused, bad frees", `${grouped(view.refusals)}, ${grouped(view.bad_frees)}`, "for lack of memory; of no block", view.refusals + view.bad_frees > 0],
  ]);
  put(at("facts"), [
    ["Allocations", grouped(view.blocks.added)], ["Frees", grouped(view.blocks.removed)],
    ["Bytes in whole granules", bytes(view.allocated.current)], ["Bytes asked for so far", bytes(view.requested.added)],
    ["Pages in use", grouped(pages.live)], ["Pages idle", grouped(pages.idle)],
    ["Idle pages waiting for streams", grouped(pages.waiting)], ["Pages spare", grouped(pages.spare)],
    ["Pages mapped so far", grouped(pages.mapped)], ["Pages moved so far", grouped(pages.moved)],
    ["Most moved by one request", grouped(pages.most_moved)], ["Streams", grouped(view.streams)],
    ["Marks of streams", grouped(view.marks)], ["Waits of the host", grouped(view.waits)],
    ["Streams ordered", grouped(view.orders)], ["Requests tried again", grouped(view.retries)],
    ["Granule", bytes(view.granule)], ["Process", String(view.process.pid)],
  ]);
}

function draw() {
  drawFigures();
  drawMap();
  drawKey();
  drawHistory();
}

function say(text, bad) {
  at("state").textContent = text;
  at("state").classList.toggle("bad", Boolean(bad));
}

async function next() {
  try {
    const answer = await fetch("/view", { cache: "no-store" });
    if (!answer.ok) throw new Error(await answer.text());
    view = await answer.json();
    draw();
    say(view.process.ended ? "the process has ended" : "live", view.process.ended);
    if (view.process.ended) return;
  } catch (error) {
    say(`no answer: ${error.message}`, true);
  }
  setTimeout(next, given.every);
}

draw();
addEventListener("resize", draw);
dark.addEventListener("change", draw);
if (given.every) {
  say("live");
  setTimeout(next, given.every);
} else {
  say(view.process.ended ? "the process has ended" : "one moment");
}
