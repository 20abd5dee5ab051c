// From a configuration to code: the server emits it; a file shows how to.
// Invariant: a heap.toml that is shown belongs to the configuration beside it.

function heapOf(model, i) {
  const number = model.number[i];
  for (const key of ["front", "named"]) {
    for (const entry of list(model.exploration[key])) if (isObject(entry) && entry.number === number && typeof entry.toml === "string") return entry.toml;
  }
  return null;
}

// Where an exploration of a described space left a heap of the front: its place in the front names the file.
function fileOf(model, i) {
  const place = isNumber(model.exploration.version) ? list(model.exploration.front).findIndex((entry) => isObject(entry) && entry.number === model.number[i]) : -1;
  return place < 0 ? null : `pareto/${String(place + 1).padStart(3, "0")}.toml`;
}

function emitPart(model, i) {
  const number = model.number[i];
  const toml = heapOf(model, i);
  const file = `heap-${String(number).padStart(3, "0")}.toml`;
  const left = fileOf(model, i);
  const parts = [h("h4", {}, "Emit"), left ? h("p", { class: "hint" }, "In the folder it is ", h("code", {}, left), ".") : null];
  if (model.doc.served) {
    const answer = h("div", { class: "emit-answer", role: "status" });
    const button = h("button", { type: "button", class: "emit" }, "Emit as C and Rust");
    button.addEventListener("click", async () => {
      button.disabled = true;
      answer.replaceChildren("Emitting …");
      try {
        const response = await fetch("/emit", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ number }) });
        const said = await response.json();
        if (!response.ok) throw new Error(said.error || `status ${response.status}`);
        answer.replaceChildren(h("p", { class: "hint" }, `Written to ${said.directory}`), h("ul", { class: "files" }, list(said.files).map((f) => h("li", {}, h("a", { href: f.url, download: true }, f.path)))));
        announce("Emitted");
      } catch (error) { answer.replaceChildren(h("p", { class: "failure" }, `Not emitted: ${error.message}`)); }
      button.disabled = false;
    });
    parts.push(h("div", { class: "act" }, button), answer);
  }
  if (toml) {
    if (!model.doc.served) parts.push(h("p", { class: "hint" }, `Save the text as ${file}, then:`));
    parts.push(code(`metes emit --heap ${file} -o emitted --build`), h("details", {}, h("summary", {}, "heap.toml"), code(toml, { block: true })));
  } else if (!model.doc.served) parts.push(h("p", { class: "hint" }, "This file carries the heap.toml of the front and of the named heaps. For any other, open the folder itself:"), code("metes serve DIR"));
  return h("div", { class: "emit-part" }, parts);
}
