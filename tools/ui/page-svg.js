// A drawing surface that writes SVG: what a plot draws on its canvas, it draws here for a file.
// Invariant: it has the part of `CanvasRenderingContext2D` that the plots use, and text is escaped.

// The name of SVG, which only the browser need know.
const SVG = new DOMParser().parseFromString("<svg></svg>", "text/html").querySelector("svg").namespaceURI;

function svgSurface(width, height, paper) {
  const out = [];
  const meter = document.createElement("canvas").getContext("2d");
  const state = { fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, globalAlpha: 1, font: "12px sans-serif", textAlign: "left", textBaseline: "alphabetic", lineJoin: "miter", dashes: [], clipped: null };
  const kept = [];
  let path = "";
  let clips = 0;
  const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  const at = (v) => Number(v.toFixed(2));
  const put = (element) => out.push(state.clipped ? `<g clip-path="url(#${state.clipped})">${element}</g>` : element);
  const stroke = () => `fill="none" stroke="${escaped(state.strokeStyle)}" stroke-width="${at(state.lineWidth)}" stroke-linejoin="${state.lineJoin}"${state.dashes.length ? ` stroke-dasharray="${state.dashes.join(" ")}"` : ""}${alpha("stroke")}`;
  const fill = () => `fill="${escaped(state.fillStyle)}"${alpha("fill")}`;
  const alpha = (kind) => (state.globalAlpha < 1 ? ` ${kind}-opacity="${at(state.globalAlpha)}"` : "");
  const text = (said, x, y, ink) => {
    const anchor = { left: "start", center: "middle", right: "end" }[state.textAlign];
    const size = parseFloat(/([\d.]+)px/.exec(state.font)[1]);
    const down = { top: 0.8, middle: 0.35, bottom: -0.2, alphabetic: 0 }[state.textBaseline] * size;
    put(`<text x="${at(x)}" y="${at(y + down)}" text-anchor="${anchor}" style="font:${escaped(state.font)}" ${ink}>${escaped(said)}</text>`);
  };
  const rectangle = (x, y, w, t) => `M${at(x)} ${at(y)}h${at(w)}v${at(t)}h${at(-w)}z`;
  return Object.assign(state, {
    beginPath() { path = ""; },
    moveTo(x, y) { path += `M${at(x)} ${at(y)}`; },
    lineTo(x, y) { path += `L${at(x)} ${at(y)}`; },
    closePath() { path += "z"; },
    rect(x, y, w, t) { path += rectangle(x, y, w, t); },
    arc(x, y, r) { path += `M${at(x - r)} ${at(y)}a${at(r)} ${at(r)} 0 1 0 ${at(2 * r)} 0a${at(r)} ${at(r)} 0 1 0 ${at(-2 * r)} 0z`; },
    fill() { put(`<path d="${path}" ${fill()}/>`); },
    stroke() { put(`<path d="${path}" ${stroke()}/>`); },
    fillRect(x, y, w, t) { put(`<path d="${rectangle(x, y, w, t)}" ${fill()}/>`); },
    strokeRect(x, y, w, t) { put(`<path d="${rectangle(x, y, w, t)}" ${stroke()}/>`); },
    fillText(said, x, y) { text(said, x, y, fill()); },
    strokeText(said, x, y) { text(said, x, y, stroke()); },
    measureText(said) { meter.font = state.font; return meter.measureText(said); },
    setLineDash(dashes) { state.dashes = dashes; },
    clip() {
      clips += 1;
      state.clipped = `clip${clips}`;
      out.push(`<clipPath id="clip${clips}"><path d="${path}"/></clipPath>`);
    },
    save() { const { fillStyle, strokeStyle, lineWidth, globalAlpha, font, textAlign, textBaseline, lineJoin, dashes, clipped } = state; kept.push({ fillStyle, strokeStyle, lineWidth, globalAlpha, font, textAlign, textBaseline, lineJoin, dashes, clipped }); },
    restore() { Object.assign(state, kept.pop()); },
    text: () => `<svg xmlns="${SVG}" viewBox="0 0 ${at(width)} ${at(height)}" width="${at(width)}" height="${at(height)}"><rect width="100%" height="100%" fill="${escaped(paper)}"/>${out.join("\n")}</svg>\n`,
  });
}
