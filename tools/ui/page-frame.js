// The frame of every page: its document, navigation, sections one below the other, a footer, and its start.
// Invariant: whatever the data, the reader sees each section or a sentence saying why not.

// What is wrong with a document, and what to do about it.
class Trouble extends Error {
  constructor(what, remedy) { super(what); this.remedy = remedy; }
}

// The document in the page. `noun` names the page, `filled` says what fills it, `again` what to do about a
// damaged one; `version` is the one that this page reads, where its documents have one.
function readDocument({ noun, version, filled, again }) {
  const body = document.getElementById("data").textContent.trim();
  let data = null;
  if (body !== "" && !body.startsWith("/*METES")) {
    try { data = JSON.parse(body); } catch (error) {
      throw new Trouble(`The data in this file is not valid JSON: ${error.message}.`, `The file was probably cut short or edited. ${again}`);
    }
  }
  if (data === null) throw new Trouble(`This ${noun} holds no data.`, `It is the empty template. ${filled}`);
  if (!isObject(data)) throw new Trouble(`The data in this file is not that of a ${noun}: an object was expected.`, again);
  if (version !== undefined && data.version !== version) {
    throw new Trouble(`This page reads version ${version} of the ${noun}’s document; the data is version ${JSON.stringify(data.version ?? null)}.`,
      `Page and data come from different releases of Metes. ${again}`);
  }
  return data;
}

// A section; `missing` is a sentence that stands in its place, `build` makes its nodes.
function section(id, title, lead, missing, build) {
  let body;
  if (missing) body = h("p", { class: "missing" }, missing);
  else {
    try { body = build(); } catch (error) {
      body = h("p", { class: "missing" }, `This part could not be drawn: ${error.message}. The data behind it may be damaged; have the page written again.`);
    }
  }
  return h("section", { id, "aria-labelledby": `${id}-title` }, h("div", { class: "section-head" }, h("h2", { id: `${id}-title` }, title), lead ? h("p", { class: "lead" }, lead) : null), body);
}

// Puts the page together: `heading` above, `parts` as arguments of `section`, `state` in the navigation.
function frame({ title, heading, parts, state, exports, note }) {
  const nav = h("nav", { "aria-label": "Sections" }, h("a", { class: "home", href: "#page" }, "Metes"),
    h("div", { class: "links" }, parts.map(([id, name]) => h("a", { href: `#${id}` }, name))), state ?? null, themeButton());
  const main = document.getElementById("page");
  document.body.insertBefore(nav, main);
  main.replaceChildren(heading, ...parts.map((part) => section(...part)),
    h("footer", {}, exports ?? null, h("p", { class: "soft" }, note ?? "One file, no network. ", "Bytes are exact; KiB, MiB and GiB are powers of 1024; hover a figure for its exact value.")));
  document.title = title;
}

// A figure of the heading: what it is, its value, a remark.
const figureCell = (label, value, remark, kind) => h("div", {}, h("dt", {}, label), h("dd", { class: kind ?? null }, value, remark ? h("small", {}, remark) : null));

// Text with `code` between backticks.
const prose = (text) => String(text).split("`").map((piece, k) => (k % 2 ? h("code", {}, piece) : piece));

function fatal(error) {
  const remedy = error instanceof Trouble ? error.remedy : "The data may be damaged. Have the page written again; if this persists, report it with this file.";
  document.getElementById("page").replaceChildren(h("div", { class: "fatal", role: "alert" }, h("h1", {}, error.message || String(error)), h("p", {}, remedy)));
}

// Starts the page: `build` draws it, what registered itself in `redraws` follows size and theme.
async function start(build) {
  watchTheme();
  try {
    await build();
    for (const canvas of document.querySelectorAll("canvas")) sizes.observe(canvas);
    for (const draw of redraws) draw();
    document.documentElement.dataset.ready = "yes";
  } catch (error) {
    fatal(error);
    document.documentElement.dataset.ready = "no";
  }
}
