// What the probes measured over time: windows of the electric field, and the samples of every probe.
// Invariant: where a place of a picture stands for several samples, it spans from their least to their greatest.

// A line through the least and the greatest of each place.
const zigzag = (rows, scale) => rows.flatMap(([at, low, high]) => (low === high ? [[secondsOf(at), low * scale]] : [[secondsOf(at), low * scale], [secondsOf(at), high * scale]]));

function fieldView(mission, now) {
  const probe = () => mission.probes[1] ?? { unit: "codes", scale: 1 };
  const { unit } = probe();
  const shown = plot({ label: "Windows of the electric field over time", height: 300, reads: "second", x: { title: "seconds since boot", whole: false, show: significant },
    y: { title: unit === "codes" ? "field, codes" : "field", show: (v) => withUnit(v, unit), tick: tickOf(unit), signed: true },
    series: [{ name: "least to greatest", as: "line", colour: "dots", width: 1, points: [], on: true }, { name: "mean", as: "line", colour: "front", width: 2, points: [], on: true },
      { name: "root mean square", as: "line", colour: "series-4", points: [], on: false }] });
  shown.canvas.id = "field-plot";
  const none = h("p", { class: "missing" }, "No window of the field has come in yet.");
  const lead = h("p", { class: "hint", id: "field-lead" });
  const body = h("div", {}, shown.node, lead);
  now.follow.push(() => {
    const { windows } = mission;
    none.hidden = windows.length > 0;
    body.hidden = windows.length === 0;
    if (!windows.length) return;
    const { scale } = probe();
    shown.set({ "least to greatest": zigzag(windows.map(([at, , low, high]) => [at, low, high]), scale), mean: windows.map(([at, mean]) => [secondsOf(at), mean * scale]), "root mean square": windows.map(([at, , , , rms]) => [secondsOf(at), rms * scale]) });
    lead.textContent = `${integer(mission.counts.windows ?? windows.length)} windows${mission.joined > 1 ? `, ${integer(mission.joined)} to a place of the picture` : ""}.`;
  });
  return h("div", {}, none, body);
}

function samplesView(mission, now) {
  const colours = ["front", "series-1", "series-4"];
  const made = mission.probes.map((probe, k) => {
    const shown = plot({ label: `Samples of ${probe.name} over time`, height: 260, reads: "second", x: { title: "seconds since boot", whole: false, show: significant },
      y: { title: probe.unit === "codes" ? "codes" : probe.name, show: (v) => withUnit(v, probe.unit), tick: tickOf(probe.unit), signed: true },
      series: [{ name: probe.name, as: "line", colour: colours[k % colours.length], width: 1.2, points: [], on: true }] });
    shown.canvas.id = `samples-${k}`;
    const told = h("p", { class: "hint" });
    now.follow.push(() => {
      const current = mission.probes[k];
      if (!current) return;
      shown.node.hidden = !current.rows.length;
      shown.set({ [probe.name]: zigzag(current.rows, current.scale) });
      if (!current.rows.length) { told.replaceChildren(h("b", {}, current.name), " No sample has come in yet."); return; }
      told.replaceChildren(h("b", {}, current.name), ` ${integer(current.samples)} samples${isNumber(current.rate) ? ` at ${integer(current.rate)}\u00a0Hz` : ""}`, current.missing ? h("b", { class: "bad" }, `, ${integer(current.missing)} missing`) : ", none missing", current.together > 1 ? `; a place of the picture spans ${integer(current.together)} of them.` : ".");
    });
    return h("div", { class: "mission-probe" }, told, shown.node);
  });
  return h("div", {}, made);
}
