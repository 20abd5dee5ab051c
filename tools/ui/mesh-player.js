// The time of a run: play and pause, speed, scrubber, keys.
// Invariant: the look that is shown is one of the recording; nothing moves before somebody asks for it.

const SPEEDS = [1, 2, 5, 10, 20, 50, 100, 200, 500];
const KEYS_TOLD = "Space plays and pauses; ← and → go a look back and on, with Shift ten; Home and End to the first and the last.";

// `now`: {look, playing}; `changed()` draws the look that is shown. Answers {node, seek(look), toggle()}.
function meshPlayer(mesh, now, changed) {
  const last = mesh.looks - 1;
  // The whole in about half a minute.
  let speed = SPEEDS.find((one) => one >= mesh.looks / 30) ?? SPEEDS[SPEEDS.length - 1];
  let before = 0;
  let rest = 0;

  const button = (id, label, text, act) => h("button", { type: "button", id, "aria-label": label, title: label, onclick: act }, text);
  const play = button("play", "Play", "", () => toggle());
  const speeds = h("select", { id: "speed" }, SPEEDS.map((one) => h("option", { value: one, selected: one === speed }, String(one))));
  speeds.addEventListener("change", () => { speed = Number(speeds.value); });
  const scrubber = h("input", { type: "range", id: "scrubber", min: 0, max: last, step: 1, value: 0, "aria-label": "Time" });
  scrubber.addEventListener("input", () => seek(Number(scrubber.value)));
  const place = h("output", { id: "place", for: "scrubber" });
  const marks = h("div", { class: "mesh-marks", "aria-hidden": "true" }, mesh.deaths.map(({ look, node }) => h("i", { style: `left:${last ? look / last * 100 : 0}%`, title: `node ${node} dies` })));

  function show() {
    const told = `cycle ${integer(mesh.cycles[now.look])}`;
    scrubber.value = String(now.look);
    scrubber.setAttribute("aria-valuetext", `${told}, look ${now.look + 1} of ${mesh.looks}`);
    place.replaceChildren(h("b", {}, told), h("small", {}, `look ${integer(now.look + 1)} of ${integer(mesh.looks)}`));
    play.textContent = now.playing ? "❚❚ Pause" : "▶ Play";
    play.setAttribute("aria-label", now.playing ? "Pause" : "Play");
    play.title = now.playing ? "Pause (Space)" : "Play (Space)";
    changed();
  }
  function seek(look) {
    now.look = Math.min(last, Math.max(0, look));
    show();
  }
  function toggle() {
    now.playing = !now.playing;
    if (now.playing) {
      if (now.look === last) now.look = 0;
      before = performance.now();
      rest = 0;
      requestAnimationFrame(step);
    }
    show();
  }
  function step(time) {
    if (!now.playing) return;
    // A page that was out of sight does not leap.
    rest += Math.min(0.25, Math.max(0, (time - before) / 1000)) * speed;
    before = time;
    const steps = Math.floor(rest);
    rest -= steps;
    if (steps) {
      now.look = Math.min(last, now.look + steps);
      if (now.look === last) now.playing = false;
      show();
    }
    requestAnimationFrame(step);
  }

  document.addEventListener("keydown", (event) => {
    const { target } = event;
    if (event.altKey || event.ctrlKey || event.metaKey || target.closest("select, textarea, .scroll")) return;
    const by = event.shiftKey ? 10 : 1;
    if (event.key === " " && !target.closest("button, a, summary")) toggle();
    else if (event.key === "ArrowLeft") seek(now.look - by);
    else if (event.key === "ArrowRight") seek(now.look + by);
    else if (event.key === "Home") seek(0);
    else if (event.key === "End") seek(last);
    else return;
    event.preventDefault();
  });
  return { seek, toggle, show, node: h("div", { class: "mesh-player", role: "group", "aria-label": `Time of the run. ${KEYS_TOLD}` },
    h("div", { class: "mesh-buttons" }, button("back", "One look back (←)", "◀", () => seek(now.look - 1)), play, button("on", "One look on (→)", "▶", () => seek(now.look + 1)),
      h("label", {}, speeds, h("span", {}, " looks a second"))), place, h("div", { class: "mesh-rail" }, scrubber, marks)) };
}
