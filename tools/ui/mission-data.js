// What a mission has told so far: records of the probes, sweeps, windows, dust, reports; and how a later look is added.
// Invariant: a look brings only sweeps, dust and reports that are new or have grown, known by their `id`; records it
// brings whole.

const MISSION_AGAIN = "Have the page written again from the telemetry.";
const MISSION_WORDS = { noun: "mission’s page", version: 1, filled: "“metes mission run -o FILE.html” fills it.", again: MISSION_AGAIN };
const MISSION_LISTS = ["sweeps", "dust", "reports"];
const MOST_KEPT = 2000; // of a list, in a page that stays open

// A physical value with a prefix: "1.25 nA"; a count of codes keeps its digits.
const PREFIXES = [[1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"], [1e-12, "p"], [1e-15, "f"]];
function withUnit(value, unit) {
  if (!isNumber(value)) return NONE;
  if (unit === "codes") return `${groups.format(Number(value.toPrecision(7)))}\u00a0codes`;
  const size = Math.abs(value);
  const [scale, prefix] = PREFIXES.find(([least]) => size >= least * 0.9995) ?? (size === 0 ? [1, ""] : PREFIXES[PREFIXES.length - 1]);
  const shown = value / scale;
  return `${Number(shown.toPrecision(3)).toLocaleString("en-US")}\u00a0${prefix}${unit}`;
}
const tickOf = (unit) => (unit === "codes" ? plainTick : (value) => withUnit(Number(value.toPrecision(6)), unit));
const secondsOf = (us) => us / 1e6;
// Seconds since boot, as a label: exact to the millisecond.
const moment = (us) => (isNumber(us) ? `${groups.format(Math.round(us / 1e3) / 1e3)}\u00a0s` : NONE);

// The parallel arrays of a record as rows, those that are no numbers left out.
function rowsOf(record, keys) {
  const columns = keys.map((key) => list(record?.[key]));
  const length = Math.min(...columns.map((column) => column.length));
  const rows = [];
  for (let k = 0; k < length; k += 1) {
    const row = columns.map((column) => column[k]);
    if (row.every(isNumber)) rows.push(row);
  }
  return rows;
}

function readMission(doc) {
  const probe = (given) => ({ name: String(given?.name ?? "?"), unit: String(given?.unit ?? "codes"), scale: isNumber(given?.scale) ? given.scale : 1, rate: given?.rate, samples: given?.samples ?? 0, missing: given?.missing ?? 0, together: given?.together ?? 1,
    rows: rowsOf(given, ["at", "low", "high"]) });
  const bias = { unit: String(doc.bias?.unit ?? "codes"), scale: isNumber(doc.bias?.scale) ? doc.bias.scale : 1 };
  const { packets = 0, bytes: size = 0, lost = 0, unread = 0, now = 0 } = doc;
  return { title: String(doc.title ?? ""), every: isNumber(doc.every) && doc.every > 0 ? doc.every : null, packets, size, lost, unread, now, ended: Boolean(doc.ended), mode: doc.mode ?? null,
    probes: list(doc.probes).map(probe), bias, windows: rowsOf(doc.windows, ["at", "mean", "low", "high", "rms"]), joined: doc.windows?.together ?? 1,
    services: list(doc.services).filter((row) => Array.isArray(row)), counts: { ...doc.counts },
    ...Object.fromEntries(MISSION_LISTS.map((key) => [key, list(doc[key]).filter(isObject)])) };
}

// Adds a later look to what is there.
function addLook(mission, doc) {
  const later = readMission(doc);
  // A unit that was started again has told fewer packets than before: begin anew.
  const begun = later.packets < mission.packets;
  for (const key of MISSION_LISTS) {
    const had = begun ? [] : mission[key];
    const all = new Map([...had, ...later[key]].map((one) => [one.id, one]));
    later[key] = [...all.values()].slice(-MOST_KEPT);
  }
  Object.assign(mission, later, { every: mission.every, title: mission.title });
  return begun;
}
