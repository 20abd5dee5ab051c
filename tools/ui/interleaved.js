// The page of threads in other orders.
// Invariant: a figure that the document does not have is not shown as zero.

function interleavedPage(data) {
  const widest = list(data.heaps).filter((heap) => isObject(heap?.drawn)).map((heap) => [heap.heap, heap.drawn.most / heap.drawn.least]).filter(([, times]) => isNumber(times));
  const first = widest[0];
  frame({
    title: `${data.title} · Metes`,
    heading: h("header", { class: "verdict" }, h("p", { class: "eyebrow" }, h("b", {}, "Metes"), " ", String(data.trace)),
      h("h1", {}, first ? [h("code", {}, String(first[0])), first[1] === 1 ? " takes as much in every order drawn." : ` takes up to ${ratio(first[1])} as much in one order as in another.`] : String(data.title)),
      h("p", { class: "lead" }, interleavedSentence(data)),
      h("dl", { class: "figures" }, figureCell("Threads", integer(data.threads)), figureCell("Requests", countFigure(data.events)), figureCell("Orders drawn", integer(data.shuffles), `seed ${data.seed}`),
        isNumber(data.live?.bound) ? figureCell("Live in any order", byteFigure(data.live.bound), data.live.exact ? "reached" : "a bound") : null)),
    parts: [
      ["orders", "In other orders", null, null, () => h("div", {}, interleavedSpread(data), interleavedPicture(data))],
      ["threads", "Threads", null, null, () => h("div", {}, interleavedSharing(data), interleavedThreads(data))],
    ],
    exports: h("div", { class: "exports", role: "group", "aria-label": "Export" }, [
      ["Everything, JSON", "export-json", () => download("interleaved.json", "application/json", JSON.stringify(data, null, 1))],
      ["Print", "print", () => window.print()],
    ].map(([label, id, act]) => h("button", { type: "button", id, onclick: act }, label))),
  });
}

start(() => interleavedPage(readDocument({ noun: "page of threads", version: 1, filled: "“metes interleave TRACE -o FILE.html” fills it.", again: "Run the command again." })));
