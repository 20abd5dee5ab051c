// Charts of one heap or of the search: drawn by the plotting library that the file carries.
// Invariant: the library is unpacked once, when the first chart is wanted; a chart that
// cannot be drawn says why and leaves the tables beside it.

let library = null;
function plotting() {
  library ??= (async () => {
    const source = new TextDecoder().decode(await unpack("plotly"));
    // A script in the page, as the content security policy allows; it asks for nothing.
    const script = h("script");
    script.textContent = source;
    document.head.append(script);
    if (!window.Plotly) throw new Error("the plotting library did not start");
    return window.Plotly;
  })();
  return library;
}

const charts = new Set(); // draws again when the theme changes
new MutationObserver(() => { for (const draw of charts) draw(); }).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });

// A chart: `make(ink)` gives {traces, layout}; height in pixels; label for a screen reader.
function chart(label, height, make) {
  const node = h("div", { class: "chart", role: "img", "aria-label": label, style: `height:${height}px` });
  let drawn = false;
  const draw = async () => {
    if (!node.isConnected) { if (drawn) charts.delete(draw); return; }
    try {
      const Plotly = await plotting();
      const ink = colours();
      const { traces, layout } = make(ink);
      const axis = { gridcolor: ink.line, zerolinecolor: ink.line, linecolor: ink.soft, tickcolor: ink.soft, automargin: true, fixedrange: false };
      const narrow = node.clientWidth < 560;
      await Plotly.react(node, traces, {
        height, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { family: ink.sans, size: 12, color: ink.ink },
        margin: { l: 64, r: 12, t: 12, b: 44 }, hovermode: "closest", hoverlabel: { bgcolor: ink.ink, bordercolor: ink.ink, font: { color: ink.paper, family: ink.sans } },
        legend: { orientation: "h", y: narrow ? -0.35 : -0.22, x: 0, font: { size: 12 } }, ...layout,
        xaxis: { ...axis, ...layout.xaxis }, yaxis: { ...axis, ...layout.yaxis },
      }, { displayModeBar: false, responsive: true });
      drawn = true;
      node.dataset.drawn = "yes";
    } catch (error) {
      node.style.height = "auto";
      node.replaceChildren(h("p", { class: "missing" }, `This chart cannot be drawn: ${error.message}.`));
    }
  };
  charts.add(draw);
  // Not before it comes near the window: unpacking the library takes a moment.
  const near = new IntersectionObserver((seen) => { if (seen.some((s) => s.isIntersecting)) { near.disconnect(); draw(); } }, { rootMargin: "400px" });
  near.observe(node);
  return node;
}

// Tick labels of a byte axis: powers of 1024, as everywhere in the page.
function byteAxis(most) {
  const values = linearTicks(0, most, 5, true);
  return { tickvals: values, ticktext: values.map((v) => byteTick(v).replace("\u00a0", " ")), rangemode: "tozero" };
}
const stepped = (points, k) => ({ x: points.map((p) => p[0]), y: points.map((p) => p[k]), mode: "lines", type: "scatter" });
const most = (values) => values.reduce((a, b) => Math.max(a, b), 0);

function hypervolumeView(model) {
  const points = list(model.exploration.hypervolume).filter((p) => isObject(p) && isNumber(p.evaluations) && isNumber(p.hypervolume)).sort((a, b) => a.evaluations - b.evaluations);
  if (points.length < 2) return h("p", { class: "missing" }, "The folder holds no course of the hypervolume: “hypervolume” in exploration.json has fewer than two points.");
  const final = points[points.length - 1];
  const reach = (share) => points.find((p) => p.hypervolume >= share * final.hypervolume);
  const first = reach(0.99);
  return h("div", {}, chart("Hypervolume over evaluations", 320, (ink) => ({
    traces: [{ x: points.map((p) => p.evaluations), y: points.map((p) => p.hypervolume), mode: "lines+markers", type: "scatter", line: { color: ink.front, width: 2, shape: "hv" }, marker: { size: points.length > 80 ? 0.1 : 5 }, hovertemplate: "%{x:,} evaluations<br>%{y:.6g}<extra></extra>" }],
    layout: { xaxis: { title: { text: "evaluations" }, type: points[0].evaluations > 0 && final.evaluations / points[0].evaluations > 50 ? "log" : "linear" }, yaxis: { title: { text: "hypervolume" } }, showlegend: false },
  })), h("p", { class: "hint" }, `${integer(final.evaluations)} evaluations; 99 % of the final hypervolume after ${first ? integer(first.evaluations) : NONE}.`));
}
