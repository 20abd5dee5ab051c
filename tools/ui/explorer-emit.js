// From a configuration to code: the server emits it; a file shows how to.
// Invariant: a heap.toml that is shown belongs to the configuration beside it.

function heapOf(model, i) {
  const number = model.number[i];
  for (const key of ["front", "named"]) {
    for (const entry of list(model.exploration[key])) if (isObject(entry) && entry.number === number && typeof entry.toml === "string") return entry.toml;
  }
  return null;
}

function emitPart(model, i) {
  const number = model.number[i];
  const toml = heapOf(model, i);
  const file = `heap-${String(number).padStart(3, "0")}.toml`;
  const parts = [h("h4", {}, "Emit")];
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
