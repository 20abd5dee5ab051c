// Small charts over the time of a run, with a cursor at the look that is shown; pointing into one moves there.
// Invariant: where there are more looks than places, a place has the most of a state and the sum of a count.

const CHART_PLACES = 240;

// Given: title, series [{name, colour, of: look → value, as: "state" | "count"}], show, binary, height.
// Answers {node, follow(), set()}: `follow` moves the cursor, `set` draws what the series now are.
function timeChart(mesh, now, given, seek) {
  const { series, show } = given;
  const together = Math.max(1, Math.ceil(mesh.looks / CHART_PLACES));
  const span = (look) => [look ? mesh.cycles[look - 1] : 0, mesh.cycles[look]];
  const [start, end] = [0, mesh.cycles[mesh.looks - 1]];
  const canvas = h("canvas", { class: "mesh-chart", style: `height:${given.height ?? 132}px`, role: "img" });
  const cursor = h("i", { class: "mesh-cursor", "aria-hidden": "true" });
  const values = h("span", { class: "mesh-values" });
  const box = { left: 62, top: 8, right: 100, bottom: 100 };
  const px = (cycle) => box.left + (end > start ? (cycle - start) / (end - start) : 0) * (box.right - box.left);
  let drawn = [];

  function gather() {
    drawn = series.map((one) => {
      const places = [];
      for (let from = 0; from < mesh.looks; from += together) {
        const to = Math.min(mesh.looks, from + together);
        let value = 0;
        for (let look = from; look < to; look += 1) value = one.as === "count" ? value + one.of(look) : Math.max(value, one.of(look));
        places.push([span(from)[0], span(to - 1)[1], value]);
      }
      return { ...one, places };
    });
    const peak = (one) => one.places.reduce((m, place) => Math.max(m, place[2]), 0);
    canvas.setAttribute("aria-label", `${given.title} over time; ${drawn.map((one) => `${one.name}: most ${show(peak(one))}`).join("; ")}.`);
  }

  function paint(context, width, height, ink) {
    Object.assign(box, { right: width - 10, bottom: height - 24 });
    const highest = drawn.reduce((m, one) => one.places.reduce((n, place) => Math.max(n, place[2]), m), 0);
    const [sx, sy] = [makeScale(start, Math.max(end, 1), false, false), makeScale(0, highest > 0 ? highest * 1.05 : 1, false, given.binary)];
    drawAxes(context, box, { scale: sx, show: plainTick, title: "" }, { scale: sy, show: highest > 0 ? given.tick ?? plainTick : (v) => (v === 0 ? "0" : ""), title: "" }, ink);
    const py = (v) => box.bottom - sy.to(v) * (box.bottom - box.top);
    for (const one of drawn) {
      context.fillStyle = context.strokeStyle = ink.of(one.colour);
      context.lineWidth = 1.4;
      context.lineJoin = "round";
      context.beginPath();
      for (const [from, to, value] of one.places) { context.lineTo(px(from), py(value)); context.lineTo(px(to), py(value)); }
      context.stroke();
      context.lineTo(px(end), box.bottom);
      context.lineTo(px(start), box.bottom);
      context.closePath();
      context.globalAlpha = 0.16;
      context.fill();
      context.globalAlpha = 1;
    }
    context.strokeStyle = ink.of("bad");
    context.lineWidth = 1;
    context.setLineDash([3, 3]);
    for (const { look, node } of mesh.deaths) if (given.node?.() === undefined || given.node() === node) line(context, px(mesh.cycles[look]), box.top, px(mesh.cycles[look]), box.bottom);
    context.setLineDash([]);
    follow();
  }

  function follow() {
    cursor.style.transform = `translateX(${px(mesh.cycles[now.look])}px)`;
    Object.assign(cursor.style, { top: `${box.top}px`, height: `${box.bottom - box.top}px` });
    values.replaceChildren(...series.map((one) => h("span", {}, h("i", { class: "swatch", style: `--c:var(--${one.colour})` }), `${show(one.of(now.look))}\u00a0${one.name}`)));
  }

  const lookAt = (event) => {
    const r = canvas.getBoundingClientRect();
    const cycle = start + Math.min(1, Math.max(0, (event.clientX - r.left - box.left) / (box.right - box.left))) * (end - start);
    return lookOf(mesh, cycle);
  };
  canvas.addEventListener("pointerdown", (event) => { if (event.button === 0 && event.pointerType !== "touch") { canvas.setPointerCapture(event.pointerId); seek(lookAt(event)); } });
  canvas.addEventListener("pointermove", (event) => { if (event.buttons & 1 && event.pointerType !== "touch") seek(lookAt(event)); });
  canvas.addEventListener("click", (event) => seek(lookAt(event)));
  gather();
  const draw = pictured(canvas, paint);
  return { canvas, follow, set() { gather(); draw(); },
    node: h("figure", { class: "mesh-figure" }, h("figcaption", {}, h("b", {}, given.title), values), h("div", { class: "mesh-plot" }, canvas, cursor)) };
}
