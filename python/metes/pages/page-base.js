// Foundations of every page: elements, figures with units, clipboard, downloads, theme, canvases.
// Invariant: text from the data reaches the page only through text nodes and
// attributes set by `h`, never as markup, so a hostile spec string is inert.

// Create an element: h("p", {class: "note", onclick: f}, "text", child, ...).
function h(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") node.style.cssText = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

const isObject = (v) => typeof v === "object" && v !== null && !Array.isArray(v);
const isNumber = (v) => typeof v === "number" && Number.isFinite(v);
const list = (v) => (Array.isArray(v) ? v : []);

// ---- figures -------------------------------------------------------------

const NONE = "–";
const groups = new Intl.NumberFormat("en-US", { maximumFractionDigits: 20 });
const integer = (n) => (isNumber(n) ? groups.format(n) : NONE);

// Three significant digits, but never fewer digits than the integer part has.
function significant(n) {
  if (!isNumber(n)) return NONE;
  const a = Math.abs(n);
  if (a >= 100 || n === 0) return groups.format(Math.round(n));
  if (a < 1e-3) return n.toExponential(2);
  return Number(n.toPrecision(3)).toFixed(Math.max(0, 2 - Math.floor(Math.log10(a))));
}

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
function bytes(n) {
  if (!isNumber(n)) return NONE;
  let unit = 0;
  let value = n;
  while (Math.abs(value) >= 1024 && unit < BYTE_UNITS.length - 1) { value /= 1024; unit += 1; }
  // 1023.7 KiB would round to "1,024 KiB": step up instead.
  if (unit > 0 && Math.round(Math.abs(value)) === 1024 && unit < BYTE_UNITS.length - 1) { value /= 1024; unit += 1; }
  return `${unit === 0 ? groups.format(value) : significant(value)}\u00a0${BYTE_UNITS[unit]}`;
}
// An axis label: exact and short, "1.125 MiB" and "4 MiB", never "4.00 MiB".
function byteTick(n) {
  let unit = 0;
  let value = n;
  while (Math.abs(value) >= 1024 && unit < BYTE_UNITS.length - 1) { value /= 1024; unit += 1; }
  return `${groups.format(Number(value.toFixed(3)))}\u00a0${BYTE_UNITS[unit]}`;
}
const plainTick = (n) => (Math.abs(n) >= 1e5 ? count(n).replace(/\.0+(?=\D)/, "") : groups.format(Number(n.toPrecision(6))));
const exactBytes = (n) => (isNumber(n) ? `${integer(n)}\u00a0B` : NONE);

// 12,345,678 as "12.3 M"; small counts stay exact.
function count(n) {
  if (!isNumber(n)) return NONE;
  const a = Math.abs(n);
  if (a >= 1e9) return `${significant(n / 1e9)}\u00a0G`;
  if (a >= 1e6) return `${significant(n / 1e6)}\u00a0M`;
  if (a >= 1e5) return `${significant(n / 1e3)}\u00a0k`;
  return Number.isInteger(n) ? integer(n) : significant(n);
}

function seconds(s) {
  if (!isNumber(s)) return NONE;
  if (s < 1e-3) return `${significant(s * 1e6)}\u00a0µs`;
  if (s < 1) return `${significant(s * 1e3)}\u00a0ms`;
  if (s < 120) return `${significant(s)}\u00a0s`;
  return `${significant(s / 60)}\u00a0min`;
}

const ratio = (n) => (isNumber(n) ? `${n < 10 ? n.toFixed(n < 2 ? 3 : 2) : significant(n)}\u00a0×` : NONE);
// "18.2 % less", "3 % more", "equal": how `a` compares with `b`.
function compared(a, b, less = "less", more = "more") {
  if (!isNumber(a) || !isNumber(b) || b === 0) return NONE;
  const share = (a - b) / b * 100;
  if (a === b) return "equal";
  return `${significant(Math.abs(share))}\u00a0% ${share < 0 ? less : more}`;
}

// A figure in the page: short text, the exact value on hover and to a screen reader.
const byteFigure = (n) => h("span", { class: "figure", title: exactBytes(n) }, bytes(n));
const countFigure = (n) => h("span", { class: "figure", title: integer(n) }, count(n));

// The metrics known by name; a column the page does not know keeps its own name.
const METRICS = {
  footprint: { label: "Footprint", unit: "bytes taken from the system", show: bytes, tick: byteTick, exact: exactBytes, binary: true },
  cycles: { label: "Mean cycles", unit: "modelled cycles per event", show: significant, exact: (n) => `${integer(n)} cycles` },
  cycles_max: { label: "Maximum cycles", unit: "modelled cycles of one event, measured", show: count, exact: (n) => `${integer(n)} cycles` },
  record_accesses: { label: "Record accesses", unit: "reads and writes of records", show: count, exact: integer },
  energy: { label: "Energy", unit: "joules", show: (n) => `${significant(n)}\u00a0J`, exact: (n) => `${n}\u00a0J` },
};
function metric(key) {
  const label = key.replace(/_/g, " ");
  return { key, label: label[0]?.toUpperCase() + label.slice(1), unit: "", show: count, tick: plainTick, exact: integer, ...METRICS[key] };
}

// A specification that may wrap after its separators and nowhere else, if that suffices.
const breakable = (text) => String(text).split(/(?<=[,:;&])/).flatMap((part, i) => (i ? [h("wbr"), part] : [part]));

// ---- shell, clipboard, downloads -------------------------------------------

const shellWord = (w) => (/^[\w@%+=:,./-]+$/.test(w) ? w : `'${String(w).replace(/'/g, `'\\''`)}'`);
const shellLine = (words) => list(words).map((w) => shellWord(String(w))).join(" ");

function announce(text) { document.getElementById("say").textContent = text; }

async function copyText(text, button) {
  let done = false;
  try { await navigator.clipboard.writeText(text); done = true; } catch {
    // file:// pages and older browsers refuse the clipboard API: use a selection.
    const area = h("textarea", { class: "unseen" });
    area.value = text;
    document.body.append(area);
    area.select();
    try { done = document.execCommand("copy"); } catch { done = false; }
    area.remove();
  }
  const before = button.dataset.label;
  button.textContent = done ? "Copied" : "Select and copy by hand";
  announce(button.textContent);
  setTimeout(() => { button.textContent = before; }, 1600);
}

function copyButton(text, label = "Copy") {
  const button = h("button", { type: "button", class: "copy", "data-label": label }, label);
  button.addEventListener("click", () => copyText(typeof text === "function" ? text() : text, button));
  return button;
}

// A line or block of code with its copy button.
function code(text, options = {}) {
  return h("div", { class: options.block ? "code block" : "code" },
    h("pre", { tabindex: options.block ? "0" : null }, h("code", {}, options.block ? text : breakable(text))), copyButton(text));
}

// Rows as CSV; what is absent is empty.
const csvCell = (v) => (v === null || v === undefined || Number.isNaN(v) ? "" : /[",\r\n]/.test(String(v)) ? `"${String(v).replace(/"/g, '""')}"` : String(v));
const csv = (rows) => `${rows.map((row) => row.map(csvCell).join(",")).join("\n")}\n`;

function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
  announce(`Saved ${name}`);
}

// ---- theme and drawing --------------------------------------------------

const redraws = new Set(); // every canvas registers how to draw itself again
const sizes = new ResizeObserver(() => redrawAll());
let waiting = 0;
function redrawAll() {
  if (!waiting) waiting = requestAnimationFrame(() => { waiting = 0; for (const draw of redraws) draw(); });
}

const darkQuery = matchMedia("(prefers-color-scheme: dark)");
let themeChoice = "auto";
function applyTheme(force) {
  const dark = force ? force === "dark" : themeChoice === "auto" ? darkQuery.matches : themeChoice === "dark";
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}
function watchTheme() {
  applyTheme();
  darkQuery.addEventListener("change", () => { applyTheme(); redrawAll(); });
  // Paper is white: canvases have to be drawn again before they are printed.
  addEventListener("beforeprint", () => { applyTheme("light"); for (const draw of redraws) draw(); });
  addEventListener("afterprint", () => { applyTheme(); redrawAll(); });
}
function themeButton() {
  const names = { auto: "Theme: system", light: "Theme: light", dark: "Theme: dark" };
  const button = h("button", { type: "button", class: "quiet theme" }, names[themeChoice]);
  button.addEventListener("click", () => {
    themeChoice = { auto: "light", light: "dark", dark: "auto" }[themeChoice];
    button.textContent = names[themeChoice];
    applyTheme();
    redrawAll();
  });
  return button;
}
function colours() {
  const style = getComputedStyle(document.documentElement);
  const get = (name) => style.getPropertyValue(`--${name}`).trim();
  return { ink: get("ink"), soft: get("soft"), line: get("line"), panel: get("panel"), paper: get("paper"), chosen: get("chosen"),
    front: get("front"), named: get("named"), dots: get("dots"), faint: get("faint"), live: get("live"),
    of: get, sans: get("sans"), series: [1, 2, 3, 4, 5, 6, 7, 8].map((i) => get(`series-${i}`)) };
}

// Fit a canvas to its box at the screen's resolution; returns the context in CSS pixels.
function prepare(canvas) {
  const scale = Math.min(3, window.devicePixelRatio || 1);
  const { clientWidth: width, clientHeight: height } = canvas;
  const w = Math.max(1, Math.round(width * scale));
  const t = Math.max(1, Math.round(height * scale));
  if (canvas.width !== w || canvas.height !== t) { canvas.width = w; canvas.height = t; }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height, scale };
}

function showTip(x, y, lines) {
  const tip = document.getElementById("tip");
  tip.replaceChildren(...lines.map(([text, kind]) => h("div", { class: kind }, kind === "tip-title" ? breakable(text) : text)));
  tip.hidden = false;
  const { offsetWidth: w, offsetHeight: t } = tip;
  const left = x + 16 + w > innerWidth - 8 ? Math.max(8, x - w - 16) : x + 16;
  tip.style.left = `${left}px`;
  tip.style.top = `${Math.max(8, Math.min(y + 14, innerHeight - t - 8))}px`;
}
function hideTip() { document.getElementById("tip").hidden = true; }

// ---- marks on a canvas ------------------------------------------------------

function dot(context, x, y, r, fill, edge) {
  context.beginPath();
  context.arc(x, y, r, 0, 7);
  context.fillStyle = fill;
  context.fill();
  context.lineWidth = 1.25;
  context.strokeStyle = edge;
  context.stroke();
}
function ring(context, x, y, r, colour, width) {
  context.beginPath();
  context.arc(x, y, r, 0, 7);
  context.lineWidth = width;
  context.strokeStyle = colour;
  context.stroke();
}
