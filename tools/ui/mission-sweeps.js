// Sweeps of the Langmuir probe: current over bias, and what a fit of the characteristic finds.
// Invariant: points are the means that the unit sent; a fitted curve is drawn only where the fit says it holds.

function sweepPoints(mission, sweep) {
  const scale = mission.probes[0]?.scale ?? 1;
  return list(sweep?.steps).filter((step) => Array.isArray(step) && step[2] > 0)
    .map(([code, , n, sum]) => [code * mission.bias.scale, sum / n * scale]).sort((a, b) => a[0] - b[0]);
}
function fitPoints(mission, sweep) {
  const scale = mission.probes[0]?.scale ?? 1;
  return list(sweep?.fit?.curve).map(([code, current]) => [code * mission.bias.scale, current * scale]);
}
const sweepName = (sweep, number) => `${integer(number + 1)}: acquisition ${integer(sweep.acquisition)}, at ${moment(sweep.time)}`;

function sweepFacts(mission, sweep) {
  const [volts, amperes] = [mission.bias.unit, mission.probes[0]?.unit ?? "codes"];
  const scale = mission.probes[0]?.scale ?? 1;
  const steps = list(sweep.steps);
  const asked = [["Steps", integer(steps.length)], ["Samples a step", steps.length ? spanOf(steps.map((step) => step[2])) : NONE], ["Begun", moment(sweep.time)], ["Rate", `${integer(sweep.rate)}\u00a0Hz`]];
  const fit = sweep.fit;
  if (!fit) return [...asked, ["Fit", sweep.unfit ? String(sweep.unfit) : "none"]];
  const [bias, current] = [(v) => (isNumber(v) ? withUnit(v * mission.bias.scale, volts) : NONE), (v) => withUnit(v * scale, amperes)];
  return [...asked, ["Floating potential", isNumber(fit.floating) ? bias(fit.floating) : "outside of the sweep"], ["Plasma potential", bias(fit.plasma)],
    ["Electron temperature", volts === "V" ? withUnit(fit.temperature * mission.bias.scale, "eV") : bias(fit.temperature)],
    ["Electron saturation current", current(fit.electron)], ["Ion saturation current", current(fit.ion)], ["Variance explained", isNumber(fit.explained) ? `${(100 * fit.explained).toFixed(3)} %` : NONE]];
}
function spanOf(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return low === high ? integer(low) : `${integer(low)} to ${integer(high)}`;
}

function sweepsView(mission, now) {
  const unit = mission.probes[0]?.unit ?? "codes";
  const shown = plot({ label: "Current of the Langmuir probe over its bias", height: 420, reads: "bias",
    x: { title: mission.bias.unit === "V" ? "bias, V" : "bias, codes of the DAC", show: (v) => withUnit(v, mission.bias.unit), whole: false },
    y: { title: unit === "codes" ? "mean current, codes" : "mean current", show: (v) => withUnit(v, unit), tick: tickOf(unit), signed: true },
    series: [{ name: "measured", as: "line", colour: "front", width: 2, points: [], on: true }, { name: "fitted", as: "line", colour: "chosen", dashed: true, points: [], on: true },
      { name: "sweep before", as: "line", colour: "dots", width: 1.2, points: [], on: false }] });
  shown.canvas.id = "sweep-plot";
  const chooser = h("select", { id: "sweep" });
  const facts = h("dl", { class: "facts", id: "sweep-facts" });
  const none = h("p", { class: "missing" }, "No sweep has come in yet.");
  chooser.addEventListener("change", () => { now.sweep = Number(chooser.value); now.newest = now.sweep === mission.sweeps.length - 1; draw(); });
  const body = h("div", {}, h("p", { class: "controls" }, h("label", {}, "Sweep ", chooser)), shown.node, facts);
  function draw() {
    const sweep = mission.sweeps[now.sweep];
    none.hidden = Boolean(sweep);
    body.hidden = !sweep;
    if (!sweep) return;
    shown.set({ measured: sweepPoints(mission, sweep), fitted: fitPoints(mission, sweep), "sweep before": sweepPoints(mission, mission.sweeps[now.sweep - 1]) });
    facts.replaceChildren(...sweepFacts(mission, sweep).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
  }
  now.follow.push(() => {
    if (now.newest || now.sweep >= mission.sweeps.length) now.sweep = mission.sweeps.length - 1;
    if (chooser.childElementCount !== mission.sweeps.length || now.begun) chooser.replaceChildren(...mission.sweeps.map((sweep, k) => h("option", { value: k }, sweepName(sweep, k))));
    chooser.value = String(now.sweep);
    draw();
  });
  return h("div", {}, none, body);
}
