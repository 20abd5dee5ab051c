// Memory over time: live bytes as an area, footprints as steps, the chosen heap on top.
// Invariant: footprint and live are step functions of the event index, never interpolated.

function curvesView(model) {
  const chosenCurve = model.chosen ? list(model.chosen.curve) : [];
  const clean = (points, k) => points.filter((p) => Array.isArray(p) && isNumber(p[0]) && isNumber(p[k])).map((p) => [p[0], p[k]]);
  const peak = ({ points }) => points.reduce((most, p) => Math.max(most, p[1]), 0);
  const series = [];
  const live = model.profile && Array.isArray(model.profile.live) ? clean(model.profile.live, 1) : clean(chosenCurve, 2);
  if (live.length) series.push({ name: "live bytes", as: "area", shape: "area", colour: "live", points: live, on: true });
  const own = clean(chosenCurve, 1);
  const chosenName = model.chosenHeap?.name || model.chosen?.spec || "chosen heap";
  const others = model.curves.filter((curve) => !(own.length && (curve.name === chosenName || curve.name === model.chosen?.spec)))
    .map((curve) => ({ name: String(curve.name), as: "step", points: clean(curve.points, 1), width: 1.4 })).filter((one) => one.points.length);
  others.sort((a, b) => peak(a) - peak(b));
  others.forEach((one, i) => Object.assign(one, { colour: `series-${i % 8 + 1}`, dashed: i >= 8, on: i < 3 || i === others.length - 1 }));
  series.push(...others);
  if (own.length) series.push({ name: chosenName, as: "step", shape: "thick", colour: "chosen", points: own, on: true, width: 2.5 });
  if (!series.length) return null;
  for (const one of series) Object.assign(one, { remark: bytes(peak(one)), hint: `peak ${exactBytes(peak(one))}` });
  return plot({ label: "Memory over time", reads: "event", series, named: true,
    x: { title: "event", to: model.trace && isNumber(model.trace.events) ? model.trace.events : undefined }, y: { title: "bytes", show: bytes, tick: byteTick, binary: true } }).node;
}
