// The heap that we would take, in one line, with its bound.
// Invariant: rule, figures and bound come with the document, made by the program that wrote it; where there
// is no advice nothing is said.

const advice = (model) => (isObject(model.doc.advice) && isNumber(model.doc.advice.number) ? model.doc.advice : null);
const adviceRow = (model) => { const given = advice(model); return given ? model.rowOf.get(given.number) : undefined; };

function adviceView(model) {
  const given = advice(model);
  const row = adviceRow(model);
  if (row === undefined) return null;
  const show = h("button", { type: "button", class: "advice-show" }, "Show it");
  show.addEventListener("click", () => { select(model, row); document.getElementById("explore").scrollIntoView(); });
  const bound = isNumber(given.heap_bytes)
    ? ["Proven: ", byteFigure(given.heap_bytes), " always suffice for this live peak and these sizes"]
    : ["No finite size is known that always suffices"];
  if (isObject(given.time)) bound.push(given.time.allocate === given.time.free ? `; allocation and free take ${given.time.allocate}` : `; allocation takes ${given.time.allocate}, free ${given.time.free}`);
  return h("div", { class: "proof advice", id: "advice" }, h("p", {}, h("b", {}, "We would take ", h("span", { class: "spec" }, nameOf(model, row)), ". "), String(given.why), " ", ...bound, "."), show);
}
