// Sortable tables with bars in their cells, paged so that 10^5 rows cost 25 nodes.
// Invariant: sorting is stable and total: rows without a value always come last.

const collator = new Intl.Collator("en", { numeric: true });

// columns: [{key, label, value(row), cell(row), numeric, bar, hint, first}], rows: array.
// options: {sort: [key, direction] (key null: as given), page, caption, keep(row), onpick(row), marked(row), dim(row)}
function sortableTable(columns, rows, options) {
  const state = { key: options.sort[0], direction: options.sort[1], page: 0 };
  const body = h("tbody");
  const heads = columns.map((column) => {
    const button = h("button", { type: "button", title: column.hint || null }, column.label, h("span", { class: "arrow", "aria-hidden": "true" }));
    button.addEventListener("click", () => {
      if (state.key === column.key) state.direction = -state.direction;
      else { state.key = column.key; state.direction = column.descending ? -1 : 1; }
      state.page = 0;
      update();
      announce(`Sorted by ${column.label}, ${state.direction > 0 ? "ascending" : "descending"}`);
    });
    return h("th", { scope: "col", class: column.numeric ? "number" : null, "data-key": column.key }, button);
  });
  const size = options.page || Infinity;
  const position = h("span", { class: "position" });
  const turn = (step, label) => { const b = h("button", { type: "button", class: "quiet" }, label); b.addEventListener("click", () => { state.page += step; update(); }); return b; };
  const previous = turn(-1, "Previous");
  const next = turn(1, "Next");
  const pager = h("div", { class: "pager" }, position, previous, next);

  let sorted = null;
  let sortedBy = "";
  function order() {
    const tag = `${state.key}${state.direction}`;
    if (sortedBy === tag) return sorted;
    const column = columns.find((candidate) => candidate.key === state.key);
    if (!column) return rows;
    const keyed = rows.map((row, i) => ({ row, i, v: column.value(row) }));
    const has = (v) => v !== null && v !== undefined && !Number.isNaN(v);
    keyed.sort((a, b) => {
      if (has(a.v) !== has(b.v)) return has(a.v) ? -1 : 1;
      if (!has(a.v)) return a.i - b.i;
      const d = typeof a.v === "string" || typeof b.v === "string" ? collator.compare(String(a.v), String(b.v)) : a.v - b.v;
      return d * state.direction || a.i - b.i;
    });
    sorted = keyed.map(({ row }) => row);
    sortedBy = tag;
    return sorted;
  }

  const peaks = columns.map((column) => (column.bar ? rows.reduce((most, row) => { const v = column.value(row); return isNumber(v) && v > most ? v : most; }, 0) : 0));
  function update() {
    const kept = options.keep ? order().filter(options.keep) : order();
    const pages = Math.max(1, Math.ceil(kept.length / size));
    state.page = Math.max(0, Math.min(pages - 1, state.page));
    const shown = size === Infinity ? kept : kept.slice(state.page * size, (state.page + 1) * size);
    body.replaceChildren(...shown.map((row) => h("tr", { class: [options.marked?.(row), options.dim?.(row) && "dim"].filter(Boolean).join(" ") || null },
      columns.map((column, k) => {
        const value = column.value(row);
        const width = column.bar && isNumber(value) && peaks[k] > 0 ? Math.max(0, value / peaks[k] * 100) : null;
        const content = column.cell(row);
        return h(column.first ? "th" : "td", { scope: column.first ? "row" : null,
          class: [column.numeric && "number", width !== null && "bar"].filter(Boolean).join(" ") || null,
          style: width === null ? null : `--w:${width.toFixed(2)}%` },
        column.first && options.onpick ? pickButton(content, () => options.onpick(row)) : content);
      }))));
    if (!shown.length) body.append(h("tr", {}, h("td", { colspan: columns.length, class: "empty" }, options.empty || "Nothing to show.")));
    heads.forEach((head, k) => {
      const on = columns[k].key === state.key;
      head.setAttribute("aria-sort", on ? (state.direction > 0 ? "ascending" : "descending") : "none");
    });
    pager.hidden = kept.length <= size;
    position.textContent = kept.length ? `${integer(state.page * size + 1)}–${integer(Math.min(kept.length, (state.page + 1) * size))} of ${integer(kept.length)}` : "";
    previous.disabled = state.page === 0;
    next.disabled = state.page >= pages - 1;
  }
  update();
  const table = h("table", { class: options.class || null }, h("caption", {}, options.caption), h("thead", {}, h("tr", {}, heads)), body);
  const node = h("div", { class: "table" }, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": options.caption }, table), size === Infinity ? null : pager);
  return { node, update, state, toStart: () => { state.page = 0; } };
}

function pickButton(content, pick) {
  const button = h("button", { type: "button", class: "pick" }, content);
  button.addEventListener("click", pick);
  return button;
}

const badge = (text, kind) => h("span", { class: `badge ${kind}` }, text);
const marks = (d) => [d.chosen && [" ", badge("chosen", "chosen")], d.front && [" ", badge("front", "front")]].filter(Boolean);
