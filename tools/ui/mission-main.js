// The science of a mission: sweeps, field, dust and samples as they came in, and what the unit reported.
// Invariant: a page that is a file asks nobody; a served one asks its server alone, and says when it gets no answer.

function missionHeading(mission) {
  const head = h("h1", { id: "headline" });
  const mode = h("b", { id: "mode" });
  const figures = h("dl", { class: "figures", id: "figures" });
  const follow = () => {
    const samples = mission.probes.reduce((sum, probe) => sum + probe.samples, 0);
    const missing = mission.probes.reduce((sum, probe) => sum + probe.missing, 0);
    const delays = mission.dust.map(dustDelay).filter(isNumber);
    const dusts = mission.counts.dust ?? mission.dust.length;
    const slowest = mission.counts.slowest ?? Math.max(...delays);
    mode.textContent = mission.mode ?? "";
    head.replaceChildren(samples ? `${integer(samples)} samples, ${missing ? `${integer(missing)} missing` : "none missing"}.` : "No sample has come in yet.");
    figures.replaceChildren(...[
      ...mission.probes.map((probe) => [probe.name, countFigure(probe.samples), isNumber(probe.rate) ? `samples at ${integer(probe.rate)} Hz` : "samples", probe.missing ? "bad" : null]),
      ["Sweeps", integer(mission.counts.sweeps ?? mission.sweeps.length), mission.sweeps.length ? `the last of ${integer(list(mission.sweeps[mission.sweeps.length - 1].steps).length)} steps` : "of the Langmuir probe"],
      ["Impacts", integer(dusts), dusts ? `detected within ${seconds(slowest / 1e6)}` : "of dust"],
      ["Packets", countFigure(mission.packets), mission.lost + mission.unread ? `${integer(mission.lost)} lost, ${integer(mission.unread)} unreadable` : ["none lost, ", byteFigure(mission.size)], mission.lost + mission.unread ? "bad" : null],
    ].map((cell) => figureCell(...cell)));
  };
  return { follow, node: h("header", { class: "verdict" }, h("p", { class: "eyebrow" }, h("b", {}, mission.title || "Mission"), " ", mode), head, figures) };
}

const SEVERITIES = { 1: "information", 2: "low", 3: "medium", 4: "high" };
function reportsView(mission, now) {
  const none = h("p", { class: "missing" }, "The unit has reported nothing yet.");
  const place = h("div", { id: "reports-table" });
  const columns = [
    { key: "time", label: "At", first: true, numeric: true, value: (one) => one.time, cell: (one) => moment(one.time) },
    { key: "severity", label: "Severity", value: (one) => one.severity, cell: (one) => h("span", { class: one.severity > 2 ? "bad" : null }, SEVERITIES[one.severity] ?? String(one.severity)) },
    { key: "text", label: "Report", value: (one) => one.text, cell: (one) => String(one.text) },
  ];
  let [table, told] = [null, -1];
  now.follow.push(() => {
    const { reports } = mission;
    none.hidden = reports.length > 0;
    const newest = reports.reduce((most, one) => Math.max(most, one.packet), -1);
    if (!reports.length || (told === newest && !now.begun)) return;
    told = newest;
    const had = table?.state ?? { key: "time", direction: -1 };
    table = sortableTable(columns, reports, { sort: [had.key, had.direction], page: 12, caption: "Reports" });
    place.replaceChildren(table.node);
  });
  return h("div", {}, none, place);
}

function packetsView(mission, now) {
  const body = h("dl", { class: "facts", id: "services" });
  now.follow.push(() => body.replaceChildren(...mission.services.map(([service, subtype, name, n]) => h("div", {}, h("dt", {}, `TM(${service},${subtype}) ${name}`), h("dd", {}, integer(n))))));
  return body;
}

function sweepRows(mission) {
  return csv([["sweep", "acquisition", "time_us", "dac", "first", "samples", "sum"], ...mission.sweeps.flatMap((sweep, k) => list(sweep.steps).map((step) => [k + 1, sweep.acquisition, sweep.time, ...step]))]);
}
function dustRows(mission) {
  return csv([["time_us", "detected_us", "peak", "charge", "acquisition", "rate", "samples"], ...mission.dust.map((one) => [one.time, one.detected, one.peak, one.charge, one.acquisition, one.rate, list(one.samples).join(" ")])]);
}

function missionPage(doc) {
  const mission = readMission(doc);
  const now = { sweep: mission.sweeps.length - 1, newest: true, dust: null, begun: false, follow: [] };
  const heading = missionHeading(mission);
  const state = h("span", { class: "state", id: "state", role: "status" });
  const say = (text, bad) => { state.textContent = text; state.classList.toggle("bad", Boolean(bad)); };
  frame({ title: `${mission.title || "Mission"} · Metes`, heading: heading.node, state, note: mission.every ? "Served from this machine. " : undefined,
    parts: [["sweeps", "Sweeps", null, null, () => sweepsView(mission, now)],
      ["field", "Electric field", null, null, () => fieldView(mission, now)],
      ["dust", "Dust", null, null, () => dustView(mission, now)],
      ["samples", "Samples", null, mission.probes.length ? null : "The data names no probe.", () => samplesView(mission, now)],
      ["reports", "Reports", null, null, () => reportsView(mission, now)],
      ["packets", "Packets", null, null, () => packetsView(mission, now)]],
    exports: h("div", { class: "exports", role: "group", "aria-label": "Export" }, [
      ["Sweeps, CSV", "export-sweeps", () => download("sweeps.csv", "text/csv", sweepRows(mission))],
      ["Impacts, CSV", "export-dust", () => download("dust.csv", "text/csv", dustRows(mission))],
    ].map(([label, id, act]) => h("button", { type: "button", id, onclick: act }, label))) });
  const follow = () => { heading.follow(); for (const one of now.follow) one(); redrawAll(); };
  follow();
  const told = () => say(mission.ended ? "the run has ended" : `live${mission.mode ? `: ${mission.mode}` : ""}`, false);
  async function next() {
    try {
      const answer = await fetch(`/science?after=${mission.packets}`, { cache: "no-store" });
      if (!answer.ok) throw new Error(await answer.text());
      now.begun = addLook(mission, await answer.json());
      follow();
      now.begun = false;
      told();
      if (mission.ended) return;
    } catch (error) {
      say(`no answer: ${error.message}`, true);
    }
    setTimeout(next, mission.every);
  }
  if (mission.every) {
    told();
    setTimeout(next, mission.every);
  }
  // For tests: what came in, and what is chosen.
  window.metes = { mission, now };
}

start(() => missionPage(readDocument(MISSION_WORDS)));
