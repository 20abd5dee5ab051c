// What is kept: a count, a chip for each brushed axis, and all axes with ranges for the keyboard.
// Invariant: a range that is shown is the range that filters.

function filterBar(model) {
  const tally = h("p", { class: "tally", "aria-live": "polite" });
  const chips = h("div", { class: "chips" });
  const reset = h("button", { type: "button", class: "quiet reset" }, "Reset ranges");
  reset.addEventListener("click", () => resetFilter(model));
  const statuses = h("div", { class: "controls", role: "group", "aria-label": "Configurations shown" }, model.status.words.map((word, k) => {
    const box = h("input", { type: "checkbox", "data-status": word });
    box.checked = model.shown[k];
    box.addEventListener("change", () => { model.shown[k] = box.checked; refilter(model); });
    const total = model.status.values.reduce((sum, code) => sum + (code === k), 0);
    return h("label", { title: STATUS[word] || null }, box, `${word} (${integer(total)})`);
  }));
  const sync = () => {
    tally.replaceChildren(h("strong", {}, integer(model.passing)), ` of ${integer(model.n)} configurations kept`);
    const on = brushed(model);
    reset.disabled = on.length === 0;
    chips.replaceChildren(...on.map((column) => {
      const drop = h("button", { type: "button", class: "chip", title: "remove this range" }, `${column.label}: ${rangeText(column)} ×`);
      drop.addEventListener("click", () => setRange(model, column, null));
      return drop;
    }));
  };
  model.listeners.add((what) => { if (what === "filter") sync(); });
  sync();
  return h("div", { class: "filter" }, h("div", { class: "filter-head" }, tally, chips, reset), statuses, rangePanel(model));
}

const STATUS = {
  complete: "replayed to the end",
  beaten: "ended early, because a configuration of the front was better already: its figures are lower bounds",
  slow: "given up, because it took too many cycles",
  failed: "a request failed",
  beyond: "not replayed, because it guarantees less than was asked for",
};

// Every axis with its limits as inputs, so that nothing needs a pointer.
function rangePanel(model) {
  const rows = [...model.metrics, ...model.parameters].map((column) => {
    const shown = h("input", { type: "checkbox", "aria-label": `axis ${column.label}` });
    shown.checked = !column.hidden;
    shown.addEventListener("change", () => { column.hidden = !shown.checked; changed(model, "axes"); });
    const input = (side) => {
      const name = `${side ? "largest" : "smallest"} ${column.label.toLowerCase()}`;
      const node = column.levels
        ? h("select", { "aria-label": name, "data-key": column.key, "data-side": side }, column.levels.map((v, k) => h("option", { value: k }, column.show(v))))
        : h("input", { type: "number", step: "any", "aria-label": name, "data-key": column.key, "data-side": side, placeholder: Number((side ? column.high : column.low).toPrecision(6)) });
      node.addEventListener("change", () => {
        const whole = column.levels ? [0, column.levels.length - 1] : [-Infinity, Infinity];
        const range = (column.range || whole).slice();
        const value = node.value === "" ? NaN : Number(node.value);
        range[side] = Number.isNaN(value) ? whole[side] : value;
        setRange(model, column, range[0] <= whole[0] && range[1] >= whole[1] ? null : range);
      });
      return node;
    };
    const low = input(0);
    const high = input(1);
    const sync = () => {
      for (const [node, side] of [[low, 0], [high, 1]]) {
        if (document.activeElement === node) continue;
        const at = column.range ? column.range[side] : null;
        if (column.levels) node.value = String(at === null ? (side ? column.levels.length - 1 : 0) : side ? Math.floor(at) : Math.ceil(at));
        else node.value = at === null || !Number.isFinite(at) ? "" : String(Number(at.toPrecision(7)));
      }
    };
    sync();
    model.listeners.add((what) => { if (what === "filter") sync(); });
    return h("div", { class: "range-row" }, h("label", {}, shown, column.label, column.unit ? h("span", { class: "soft" }, ` ${column.unit}`) : null), low, high);
  });
  return h("details", { class: "ranges" }, h("summary", {}, "Axes and ranges as numbers"), h("div", { class: "range-grid" }, rows));
}
