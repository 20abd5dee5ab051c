// Measured and guaranteed footprint of each heap on one axis: what the guarantee costs here.
// Invariant: a heap without a finite bound has no mark for one, and is said to have none.

function guaranteeRows({ heaps, guarantee, chosen, chosenHeap }) {
  const named = heaps.filter((heap) => isNumber(heap.footprint) && heap !== chosenHeap && heap.spec !== guarantee.without?.spec)
    .map((heap) => ({ name: heap.name, footprint: heap.footprint, bytes: heap.guarantee }));
  const rows = [];
  const spec = chosen?.spec || chosenHeap?.spec;
  if (spec && isNumber(guarantee.footprint)) rows.push({ name: spec, footprint: guarantee.footprint, bytes: guarantee.bytes, kind: "chosen" });
  const without = guarantee.without;
  if (isObject(without) && isNumber(without.footprint)) rows.push({ name: without.spec, footprint: without.footprint, bytes: without.bytes, kind: "without" });
  const rank = (row) => (isNumber(row.bytes) ? row.bytes : Infinity);
  return [...rows, ...named.sort((a, b) => rank(a) - rank(b) || a.footprint - b.footprint)];
}

function guaranteeView(model) {
  const guarantee = model.data.guarantee;
  const rows = guaranteeRows({ ...model, guarantee });
  const { demand, limit, necessary } = guarantee;
  const marks = [["live", demand.live], ["necessary", necessary], ["limit", limit]];
  const values = [...rows.flatMap((row) => [row.footprint, row.bytes]), ...marks.map(([, value]) => value)].filter((v) => isNumber(v) && v > 0);
  const [low, high] = [Math.min(...values) / 1.3, Math.max(...values) * 1.3];
  const place = (v) => `${((Math.log(v / low) / Math.log(high / low)) * 100).toFixed(2)}%`;
  const mark = (kind, v, title) => (isNumber(v) && v > 0 ? h("i", { class: `mark ${kind}`, style: `left:${place(v)}`, title: `${title}: ${exactBytes(v)}` }) : null);
  const rail = (row) => h("div", { class: "reach", "aria-hidden": "true" },
    marks.map(([kind, value]) => mark(`line ${kind}`, value, kind)),
    isNumber(row.bytes) ? h("i", { class: "span", style: `left:${place(row.footprint)};right:calc(100% - ${place(row.bytes)})` }) : null,
    mark("measured", row.footprint, "measured"), mark("guaranteed", row.bytes, "guaranteed"));
  const words = { chosen: "to rely on", without: "without a guarantee" };
  const line = (row) => h("tr", { class: row.kind || "" },
    h("th", { scope: "row" }, breakable(row.name), row.kind ? h("small", {}, words[row.kind]) : null),
    h("td", { class: "number" }, bytes(row.footprint)),
    h("td", { class: "number" }, isNumber(row.bytes) ? bytes(row.bytes) : "none"),
    h("td", { class: "number" }, isNumber(row.bytes) ? ratio(row.bytes / demand.live) : NONE),
    h("td", { class: "wide" }, rail(row)));
  const heads = ["heap", "measured", "guaranteed", "× live", "on one axis"];
  const useful = guarantee.useful ? "The chosen heap’s guarantee is useful" : "No useful guarantee was found";
  return h("div", {},
    h("p", {}, `A guarantee is of every program with at most ${exactBytes(demand.live)} live in blocks of ${exactBytes(demand.min_block)} to ${exactBytes(demand.max_block)}${demand.resizes ? " that also resizes them" : ""}. ${useful}: that is ${guarantee.sentence}.`),
    h("div", { class: "scroll" }, h("table", { class: "guarantees" }, h("thead", {}, h("tr", {}, heads.map((text, k) => h("th", { scope: "col", class: k && k < 4 ? "number" : "" }, text)))), h("tbody", {}, rows.map(line)))),
    h("p", { class: "key" }, [["mark measured", "measured footprint"], ["mark guaranteed", "guaranteed footprint"], ["mark line live", "live peak"], ["mark line necessary", "necessary for any heap that does not move blocks"], ["mark line limit", "a useful guarantee is below"]]
      .map(([kind, name]) => h("span", {}, h("i", { class: kind }), name))));
}
