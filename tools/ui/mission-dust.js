// Impacts of dust: a table of what was detected, and the samples around the one that is chosen.
// Invariant: a delay is the time from the first sample above the threshold to the detection, as the unit reported both.

const dustDelay = (one) => (isNumber(one.detected) && isNumber(one.time) ? one.detected - one.time : null);

function dustView(mission, now) {
  const probe = () => mission.probes[2] ?? { unit: "codes", scale: 1 };
  const { unit } = probe();
  const shown = plot({ label: "Current of the dust probe around an impact", height: 300, reads: "ms", x: { title: "ms from the first sample", whole: false, show: significant },
    y: { title: unit === "codes" ? "current, codes" : "current", show: (v) => withUnit(v, unit), tick: tickOf(unit), signed: true },
    series: [{ name: "samples", as: "line", colour: "chosen", width: 1.6, dotted: true, points: [], on: true }] });
  shown.canvas.id = "dust-plot";
  const named = h("h3", { id: "dust-name" });
  const place = h("div", { id: "dust-table" });
  const none = h("p", { class: "missing" }, "No impact has been detected yet.");
  const body = h("div", { class: "mission-dust" }, place, h("div", {}, named, shown.node));
  const columns = [
    { key: "time", label: "At", first: true, numeric: true, value: (one) => one.time, cell: (one) => moment(one.time) },
    { key: "delay", label: "Detected after", numeric: true, bar: true, descending: true, value: dustDelay, cell: (one) => { const us = dustDelay(one); return us === null ? NONE : seconds(us / 1e6); } },
    { key: "peak", label: "Peak", numeric: true, descending: true, value: (one) => one.peak, cell: (one) => (isNumber(one.peak) ? withUnit(one.peak * probe().scale, unit) : NONE) },
    { key: "charge", label: "Charge", hint: "sum of the pulse’s samples above the baseline", numeric: true, descending: true, value: (one) => one.charge, cell: (one) => chargeOf(one, probe(), mission) },
    { key: "acquisition", label: "Acquisition", numeric: true, value: (one) => one.acquisition, cell: (one) => integer(one.acquisition) },
  ];
  let table = null;
  function pick(one) {
    now.dust = one;
    const points = list(one.samples).map((value, k) => [k / one.rate * 1e3, value * probe().scale]);
    named.textContent = `Impact at ${moment(one.time)}`;
    shown.set({ samples: points });
    table?.update();
  }
  let told = -1;
  now.follow.push(() => {
    const { dust } = mission;
    none.hidden = dust.length > 0;
    body.hidden = dust.length === 0;
    const newest = dust.reduce((most, one) => Math.max(most, one.packet), -1);
    if (!dust.length || (told === newest && !now.begun)) return;
    told = newest;
    const had = table?.state ?? { key: "time", direction: -1 };
    table = sortableTable(columns, dust, { sort: [had.key, had.direction], page: 12, caption: "Impacts of dust", onpick: pick, marked: (one) => one === now.dust && "is-selected" });
    place.replaceChildren(table.node);
    if (!now.dust || !dust.includes(now.dust)) pick(dust[dust.length - 1]);
  });
  return h("div", {}, none, body);
}

// A sum of samples is a charge where a sample is a current.
function chargeOf(one, probe) {
  if (!isNumber(one.charge)) return NONE;
  return probe.unit === "A" && one.rate > 0 ? withUnit(one.charge * probe.scale / one.rate, "C") : withUnit(one.charge * probe.scale, probe.unit);
}
