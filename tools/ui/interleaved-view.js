// Threads in other orders: what live bytes and footprints come to, and what threads have to do with each other.
// Invariant: what was drawn and what holds for every order are told apart.

function interleavedSpread(found) {
  const heaps = list(found.heaps).filter(isObject);
  const rows = [{ name: "live bytes", recorded: found.live?.recorded, drawn: found.live?.drawn, reached: found.live?.reached, most: found.live?.bound, live: true },
    ...heaps.map((heap) => ({ name: heap.heap, recorded: heap.recorded, drawn: heap.drawn, reached: heap.at_reached, most: heap.guarantee }))];
  const number = (key, label, value, hint) => ({ key, label, hint, numeric: true, value: (row) => value(row) ?? null, cell: (row) => (isNumber(value(row)) ? byteFigure(value(row)) : NONE) });
  const drawn = (key, label) => number(key, label, (row) => row.drawn?.[key]);
  return sortableTable([
    { key: "name", label: "", first: true, value: (row) => row.name, cell: (row) => (row.live ? row.name : breakable(String(row.name))) },
    number("recorded", "Recorded", (row) => row.recorded, "in the order that was recorded"),
    drawn("least", "Least"), drawn("lower_quartile", "A quarter up to"), drawn("median", "Half up to"), drawn("upper_quartile", "Three quarters up to"), drawn("most", "Most"),
    { key: "seed", label: "Seed of the most", numeric: true, value: (row) => row.drawn?.most_seed ?? null, cell: (row) => (isNumber(row.drawn?.most_seed) ? String(row.drawn.most_seed) : NONE) },
    number("reached", "At most live", (row) => row.reached, "in the order with most live bytes that was found"),
    number("all", "In any order", (row) => row.most, "no order has more live bytes; so much memory provably suffices a heap in every order"),
  ], rows, { sort: [null, 1], caption: "Over orders", class: "interleaved" }).node;
}

// Footprints over orders: so many percent of the drawn ones take at most so much.
function interleavedPicture(found) {
  const heaps = list(found.heaps).filter((heap) => isObject(heap) && isObject(heap.drawn));
  const quartiles = (spread) => ["least", "lower_quartile", "median", "upper_quartile", "most"].map((key, k) => [25 * k, spread[key]]).filter(([, v]) => isNumber(v));
  const short = (name) => (name.length > 34 ? `${name.split(":")[0]}…` : name);
  const all = [...heaps.map((heap, k) => ({ name: short(String(heap.heap)), hint: String(heap.heap), colour: `series-${k % 8 + 1}`, points: quartiles(heap.drawn), as: "line", on: true })),
    ...(isObject(found.live?.drawn) ? [{ name: "live bytes", colour: "soft", points: quartiles(found.live.drawn), as: "line", on: true, dashed: true }] : [])];
  if (!all.length) return null;
  return plot({ label: "Memory over orders", height: 300, reads: "percent of the orders drawn,",
    x: { title: "percent of the orders drawn, from the one that takes least", from: 0, to: 100, show: significant }, y: { title: "bytes", show: bytes, tick: byteTick, exact: exactBytes, binary: true },
    series: all }).node;
}

function interleavedThreads(found) {
  const number = (key, label, show, hint) => ({ key, label, hint, numeric: true, descending: true, value: (row) => row[key] ?? null, cell: (row) => (isNumber(row[key]) ? show(row[key]) : NONE) });
  return sortableTable([
    { key: "thread", label: "Thread", first: true, value: (row) => row.thread, cell: (row) => String(row.thread) },
    number("events", "Requests", countFigure), number("allocations", "Allocations", countFigure), number("frees", "Frees", countFigure), number("resizes", "Resizes", countFigure),
    number("peak_live", "Most own live", byteFigure, "most bytes that it has allocated and nobody has freed"),
    number("freed_by_others", "Its freed by others", countFigure), number("freed_of_others", "Frees of others’", countFigure),
  ], list(found.per_thread).filter(isObject), { sort: ["events", -1], page: 25, caption: "Threads, as recorded", class: "threads", empty: "No thread made a request." }).node;
}

function interleavedSharing(found) {
  const shared = isObject(found.sharing) ? found.sharing : {};
  const share = (n) => (isNumber(n) && isNumber(found.events) && found.events > 0 ? `${integer(n)} (${significant(100 * n / found.events)}\u00a0%)` : NONE);
  const taken = list(shared.taken).filter(isObject).map((one) => h("li", {}, `If a request holds the heap’s lock for ${integer(one.held_ns)}\u00a0ns, ${share(one.operations)} find it taken.`));
  return h("ul", { class: "assumptions" },
    h("li", {}, `${share(shared.switches)} requests follow one of another thread.`),
    h("li", {}, `${integer(shared.freed_elsewhere ?? 0)} blocks, ${bytes(shared.freed_elsewhere_bytes ?? 0)}, are freed by another thread than allocated them; ${integer(shared.resized_elsewhere ?? 0)} resizes are.`),
    taken.length ? taken : h("li", {}, "How often the lock is taken is not known: the recording has no times."));
}

function interleavedSentence(found) {
  const { live } = found;
  if (!isNumber(live?.bound)) return "Nothing is known of all orders.";
  return `No order has more than ${exactBytes(live.bound)} live, ${live.exact ? "and some order has as much" : `and some order has ${exactBytes(live.reached)}`}; as recorded it was ${exactBytes(live.recorded)}.`;
}

function interleavedView(found) {
  const many = `${integer(found.shuffles)} order${found.shuffles === 1 ? "" : "s"} drawn, from seed ${found.seed} on${isNumber(found.within) ? `, no request before one recorded more than ${integer(found.within)} earlier` : ""}`;
  return h("div", {}, h("p", {}, `${many}; each keeps the order of each thread and of each block. `, h("b", {}, interleavedSentence(found))),
    interleavedSpread(found), interleavedPicture(found), h("h3", {}, "Threads"), interleavedSharing(found), interleavedThreads(found));
}
