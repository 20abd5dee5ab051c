// The flame graph: calls as bars, those that a call makes below it, as wide as their part of the figure.
// Invariant: a bar lies under the one that calls it and within its width; what is narrower than a pixel is not made.

const FLAME_ROW = 20;
const FLAME_LEAST = 1.5;

// The tree of the document's calls: each with its children, by name.
function flameTree(data) {
  const names = list(data.names);
  const nodes = list(data.nodes).filter(Array.isArray).map(([parent, name, ...figures], k) => ({ k, parent, name: String(names[name] ?? "?"), figures: figures.map((n) => (isNumber(n) ? n : 0)), children: [], depth: 0 }));
  nodes.forEach((node, k) => {
    if (k === 0 || !Number.isInteger(node.parent) || node.parent < 0 || node.parent >= k) return;
    node.up = nodes[node.parent];
    node.depth = node.up.depth + 1;
    node.up.children.push(node);
  });
  for (const node of nodes) node.children.sort((a, b) => collator.compare(a.name, b.name));
  return nodes;
}

// A colour of the page's series for a name: the same on every page.
function flameColour(name) {
  let sum = 7;
  for (let k = 0; k < name.length; k += 1) sum = (sum * 31 + name.charCodeAt(k)) >>> 0;
  return `var(--series-${sum % 8 + 1})`;
}

// The graph of a figure, the `by`th; `show` writes it. Gives the element, and a function that shows another figure.
function flameGraph(nodes, by, show) {
  const state = { by, show, root: nodes[0], wanted: "" };
  const area = h("div", { class: "flames", role: "group", "aria-label": "Flame graph" });
  const line = h("p", { class: "flame-line soft", "aria-live": "polite" });
  const found = h("span", { class: "soft" });
  const search = h("input", { type: "search", placeholder: "Function", "aria-label": "Mark functions whose name has", oninput: () => { state.wanted = search.value.toLowerCase(); draw(); } });
  const whole = h("button", { type: "button", class: "quiet", onclick: () => zoom(nodes[0]) }, "Everything");
  const part = (node) => { const all = nodes[0].figures[state.by]; return all > 0 ? ` · ${significant(node.figures[state.by] / all * 100)}\u00a0% of everything` : ""; };
  const tell = (node) => { line.textContent = `${node.name} · ${state.show(node.figures[state.by])}${part(node)}`; };
  const marked = (node) => state.wanted !== "" && node.name.toLowerCase().includes(state.wanted);
  function zoom(node) { state.root = node; draw(); announce(`Showing ${node.name}`); }

  function draw() {
    const width = area.clientWidth || 1100;
    const all = state.root.figures[state.by];
    const bars = [];
    let deepest = 0;
    let matched = 0;
    const put = (node, left, right, outer) => {
      if ((right - left) * width < FLAME_LEAST) return;
      const row = node.depth;
      deepest = Math.max(deepest, row);
      const hit = marked(node);
      if (hit && !outer) matched += node.figures[state.by];
      const bar = h("button", { type: "button", class: `flame${hit ? " hit" : ""}${node.depth < state.root.depth ? " above" : ""}`, title: `${node.name}\n${state.show(node.figures[state.by])}`, onclick: () => zoom(node), onpointerenter: () => tell(node), onfocus: () => tell(node) }, (right - left) * width > 26 ? node.name : "");
      bar.style.cssText = `left:${left * 100}%;width:calc(${(right - left) * 100}% - 1px);top:${row * FLAME_ROW}px;${(right - left) * width > 26 ? "" : "padding:0;"}--c:${node.depth === 0 ? "var(--faint)" : flameColour(node.name)}`;
      bars.push(bar);
      if (node.depth < state.root.depth) return;
      let at = left;
      for (const child of node.children) {
        const to = at + (all > 0 ? child.figures[state.by] / all : 0);
        put(child, at, to, outer || hit);
        at = to;
      }
    };
    const path = [];
    for (let node = state.root.up; node; node = node.up) path.push(node);
    for (const node of path.reverse()) put(node, 0, 1, true);
    put(state.root, 0, 1, false);
    area.replaceChildren(...bars);
    area.style.height = `${(deepest + 1) * FLAME_ROW}px`;
    found.textContent = state.wanted === "" ? "" : `${state.show(matched)} in what is marked`;
    whole.disabled = state.root === nodes[0];
    tell(state.root);
  }

  redraws.add(draw);
  sizes.observe(area);
  return {
    node: h("div", {}, h("div", { class: "controls" }, h("label", {}, "Mark ", search), found, whole), line, area),
    figure(next, write) { state.by = next; state.show = write; if (state.root.figures[next] === 0) state.root = nodes[0]; draw(); },
  };
}
