#!/usr/bin/env python3
"""Test of the page of a mesh in a real browser: `python3 tools/ui/mesh_test.py MESH_PAGE`.

MESH_PAGE is the built example of metes-mesh-replay, which writes the page of a storm and the recording behind it; what
the page shows is compared with the recording. Needs the Debian package chromium.
"""
import base64
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import build
from browser import Browser

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"
EMPTY = base64.b64encode(gzip.compress(b"")).decode()
STATES = ("live", "used", "free", "parked", "held", "dead")
COUNTS = ("home", "away", "refused", "skips", "lock_wait")
#: Whether the pixel in the middle of a mark of a node has the mark's colour, by node.
SEEN = """((mark) => {
  const { mesh, picture, now } = metes, canvas = document.getElementById("mesh"), scale = devicePixelRatio;
  const context = canvas.getContext("2d"), size = picture.grid.cell;
  const place = { cross: [0, 0], refused: [.44, .44], away: [.3, -.3], lock: [-.25, .515], parked: [-.46, .3] }[mark];
  const name = { cross: "bad", refused: "bad", away: "series-4", lock: "chosen", parked: "series-3" }[mark];
  const probe = document.createElement("i");
  document.body.append(probe);
  probe.style.color = `var(--${name})`;
  const wanted = getComputedStyle(probe).color.match(/[0-9]+/g).slice(0, 3).join();
  probe.remove();
  return Array.from({ length: mesh.nodes }, (_, node) => {
    const [x, y] = picture.middle(node);
    const at = [x + place[0] * size, y + place[1] * size].map((v) => Math.round(v * scale));
    return [...context.getImageData(at[0], at[1], 1, 1).data.slice(0, 3)].join() === wanted;
  });
})"""


def grouped(number):
    return f"{number:,}"


def setUpModule():
    global browser, folder, recording
    folder = tempfile.TemporaryDirectory(prefix="metes-ui-mesh-")
    subprocess.run([MESH_PAGE, folder.name], check=True)
    recording = json.loads((pathlib.Path(folder.name) / "mesh.json").read_text())
    browser = Browser()
    browser.ask("Browser.setDownloadBehavior", behavior="deny")


def tearDownModule():
    browser.__exit__()
    folder.cleanup()


class MeshPage(unittest.TestCase):
    def open(self, path=None, width=1400, theme="light"):
        browser.size(width, 1000)
        browser.theme(theme)
        browser.open(path or pathlib.Path(folder.name) / "mesh.html")
        self.assertEqual(browser.faults(), [])
        self.assertEqual(browser.run("document.documentElement.dataset.ready"), "yes")

    def written(self, *arguments):
        """A page of another run."""
        path = pathlib.Path(folder.name) / "-".join(map(str, arguments))
        subprocess.run([MESH_PAGE, path, *map(str, arguments)], check=True)
        return path / "mesh.html"

    def invented(self, packed=EMPTY, **more):
        place = {"kind": "u8", "at": 0}
        document = {"version": 1, "title": "none", "columns": 2, "rows": 1, "heap": 64, "manager": "metes", "every": 0, "together": 1, "looks": 0, "links": [[0, 1]],
                    "cycles": place, "states": {key: place for key in STATES}, "counts": {key: place for key in COUNTS}, "packets": place} | more
        path = pathlib.Path(folder.name) / "invented.html"
        path.write_text(build.fill(json.dumps(document), build.MESH, packed))
        return path

    def text(self, selector):
        return browser.run(f"document.querySelector({json.dumps(selector)}).innerText")

    def look(self):
        return browser.run("metes.now.look")

    def seek(self, look):
        browser.run(f"metes.seek({look})")
        browser.settle()

    def death(self):
        """The look at which a node is first seen dead, and the node."""
        return next((number, node) for number, look in enumerate(recording["looks"]) for node, said in enumerate(look["nodes"]) if said["dead"])

    def test_the_page_holds_the_recording(self):
        self.open()
        looks = recording["looks"]
        self.assertGreater(len(looks), 100)
        self.assertEqual(browser.run("[...metes.mesh.cycles]"), [look["cycle"] for look in looks])
        for key in STATES + COUNTS:
            wanted = [int(look["nodes"][node][key]) for node in range(16) for look in looks]
            self.assertEqual(browser.run(f"[...metes.mesh.of[{json.dumps(key)}]]"), wanted, key)
        self.assertEqual(browser.run("[...metes.mesh.packets]"), [look["links"][link] for link in range(len(recording["links"])) for look in looks])

    def test_the_heading_sums_up(self):
        self.open()
        total = {key: sum(said[key] for look in recording["looks"] for said in look["nodes"]) for key in COUNTS}
        self.assertGreater(min(total[key] for key in ("home", "away", "refused", "lock_wait")), 0, "a run in which everything happens")
        figures = dict(zip(browser.run("[...document.querySelectorAll('.figures dt')].map((e) => e.innerText)"), browser.run("[...document.querySelectorAll('.figures dd')].map((e) => (e.querySelector('.figure')?.title ?? e.firstChild.textContent))")))
        for name, key in (("Served at home", "home"), ("Served by others", "away"), ("Refused", "refused"), ("Waited for locks", "lock_wait")):
            self.assertEqual(figures[name], grouped(total[key]), name)
        number, node = self.death()
        self.assertEqual(figures["Died"], f"node {node}")
        self.assertIn(grouped(recording["looks"][number]["cycle"]), self.text(".figures > div:last-child"))
        self.assertEqual(self.text("#manager"), recording["manager"])

    def test_marks_are_painted_where_something_is(self):
        for theme in ("light", "dark"):
            self.open(theme=theme)
            number, _ = self.death()
            busy = max(range(len(recording["looks"])), key=lambda k: sum(said["held"] + (said["refused"] > 0) for said in recording["looks"][k]["nodes"]))
            helped = max(range(len(recording["looks"])), key=lambda k: sum(said["away"] > 0 for said in recording["looks"][k]["nodes"]))
            browser.run("metes.now.chosen = -1")
            for look in (number - 1, number, busy, helped, len(recording["looks"]) - 1):
                self.seek(look)
                nodes = recording["looks"][look]["nodes"]
                wanted = {"cross": [said["dead"] for said in nodes]} | {
                    mark: [bool(said[key]) and not said["dead"] for said in nodes] for mark, key in (("lock", "held"), ("refused", "refused"), ("away", "away"))}
                for mark, where in wanted.items():
                    self.assertEqual(browser.run(f"{SEEN}({json.dumps(mark)})"), where, (theme, look, mark))

    def test_a_dead_node_is_marked_and_told(self):
        self.open()
        number, node = self.death()
        self.seek(number - 1)
        self.assertNotIn("died", self.text("#node-state"))
        self.assertFalse(any(browser.run(f"{SEEN}('cross')")))
        self.seek(number)
        self.assertIn("died between cycles", self.text("#node-state"))
        self.assertIn(f"dead: {node}", browser.run("document.getElementById('mesh').getAttribute('aria-label')"))
        self.assertEqual(browser.run("document.querySelectorAll('.mesh-marks i').length"), 1)

    def test_it_plays_to_the_end_and_pauses(self):
        self.open()
        self.assertEqual(self.look(), 0)
        speed = lambda looks: browser.run(f"document.getElementById('speed').value = '{looks}', document.getElementById('speed').dispatchEvent(new Event('change'))")
        speed(500)
        browser.run("document.getElementById('play').click()")
        self.assertEqual(self.text("#play"), "❚❚ Pause")
        last = len(recording["looks"]) - 1
        browser.run("new Promise((done) => { const wait = () => metes.now.playing ? requestAnimationFrame(wait) : done(1); wait(); })")
        self.assertEqual(self.look(), last)
        self.assertEqual(self.text("#play"), "▶ Play")
        self.assertIn(f"cycle {grouped(recording['looks'][last]['cycle'])}", self.text("#place"))
        speed(10)  # so slow that it cannot end before it is stopped
        browser.run("document.getElementById('play').click()")
        browser.run("new Promise((done) => { const wait = () => metes.now.look === 0 ? requestAnimationFrame(wait) : done(1); wait(); })")
        browser.run("document.getElementById('play').click()")
        stopped = self.look()
        browser.settle()
        self.assertEqual(self.look(), stopped)
        self.assertLess(stopped, last, "it has begun again")
        self.assertEqual(browser.faults(), [])

    def test_keys_and_scrubber_move_the_time(self):
        self.open()
        browser.key("ArrowRight")
        browser.key("ArrowRight")
        self.assertEqual(self.look(), 2)
        browser.key("ArrowLeft")
        self.assertEqual(self.look(), 1)
        browser.key(" ")
        self.assertTrue(browser.run("metes.now.playing"))
        browser.key(" ")
        self.assertFalse(browser.run("metes.now.playing"))
        browser.run("document.getElementById('scrubber').value = '70', document.getElementById('scrubber').dispatchEvent(new Event('input'))")
        browser.settle()
        self.assertEqual(self.look(), 70)
        said = browser.run("document.getElementById('scrubber').getAttribute('aria-valuetext')")
        self.assertEqual(said, f"cycle {grouped(recording['looks'][70]['cycle'])}, look 71 of {len(recording['looks'])}")
        browser.run("document.getElementById('scrubber').focus()")
        browser.key("ArrowRight")
        self.assertEqual(self.look(), 71, "the focused scrubber takes one step, too")

    def test_a_node_is_hovered_and_chosen(self):
        self.open()
        self.seek(50)
        browser.run("document.getElementById('mesh').scrollIntoView({ block: 'center' })")
        browser.settle()
        x, y = browser.run("(() => { const r = document.getElementById('mesh').getBoundingClientRect(), [x, y] = metes.picture.middle(6); return [r.left + x, r.top + y]; })()")
        browser.mouse("mouseMoved", x, y)
        said = recording["looks"][50]["nodes"][6]
        self.assertIn("node 6", self.text("#tip"))
        self.assertIn(f"served here {said['home']}, by others {said['away']}, refused {said['refused']}", self.text("#tip"))
        browser.click(x, y)
        self.assertEqual(browser.run("document.getElementById('node').value"), "6")
        self.assertEqual(browser.run("document.querySelector('#node-bytes dd').title"), f"{grouped(said['used'])}\u00a0B")
        so_far = [sum(look["nodes"][6][key] for look in recording["looks"][:51]) for key in COUNTS]
        self.assertEqual(browser.run("[...document.querySelectorAll('#node-counts tr')].map((row) => row.children[2].innerText)"), [grouped(v) for v in so_far])
        pitch = browser.run("metes.picture.grid.pitch")
        browser.mouse("mouseMoved", x + pitch / 2, y)
        for way in ([6, 7], [7, 6]):
            packets = recording["looks"][50]["links"][recording["links"].index(way)]
            self.assertIn(f"{way[0]} → {way[1]}: {packets}", self.text("#tip"))

    def test_charts_follow_and_lead(self):
        self.open()
        self.assertEqual(browser.run("document.querySelectorAll('canvas.mesh-chart').length"), 7)
        self.seek(40)
        live = sum(said["live"] for said in recording["looks"][40]["nodes"] if not said["dead"])
        self.assertEqual(browser.run("metes.mesh.totals.live[40]"), live)
        browser.run("document.querySelector('.mesh-charts canvas').scrollIntoView({ block: 'center' })")
        browser.settle()
        left, top, width = browser.run("(() => { const r = document.querySelector('.mesh-charts canvas').getBoundingClientRect(); return [r.left, r.top, r.width]; })()")
        browser.click(left + width - 11, top + 50)
        self.assertGreater(self.look(), len(recording["looks"]) - 6)
        browser.click(left + 63, top + 50)
        self.assertLess(self.look(), 5)

    def test_the_table_says_the_same(self):
        self.open()
        number, node = self.death()
        self.seek(number)
        self.assertFalse(browser.run("document.getElementById('table').open"))
        browser.run("document.querySelector('#table summary').click()")
        browser.settle()
        self.assertIn(grouped(recording["looks"][number]["cycle"]), self.text("#table-cycle"))
        rows = browser.run("[...document.querySelectorAll('#table tbody tr')].map((row) => [...row.children].map((cell) => cell.innerText))")
        self.assertEqual([row[0] for row in rows], [str(k) for k in range(16)])
        self.assertEqual(rows[node][1], "dead")
        for k, said in enumerate(recording["looks"][number]["nodes"]):
            self.assertEqual(rows[k][-5:], [grouped(said[key]) for key in COUNTS])
        browser.key("ArrowRight")
        self.assertIn(grouped(recording["looks"][number + 1]["cycle"]), self.text("#table-cycle"))

    def test_no_width_scrolls_sideways(self):
        for side in (2, 4, 32):
            path = None if side == 4 else self.written(side, 8, 4000)
            for width in (400, 768, 1400):
                self.open(path, width)
                browser.run("document.querySelector('#table summary').click()")
                browser.settle()
                self.assertLessEqual(browser.run("document.documentElement.scrollWidth"), width, side)
                if os.environ.get("PICTURES"):
                    for theme in ("light", "dark"):
                        browser.theme(theme)
                        browser.settle()
                        browser.picture(f"{os.environ['PICTURES']}/mesh-{side}-{width}-{theme}.png")

    def test_everything_is_named(self):
        self.open()
        unnamed = browser.run("[...document.querySelectorAll('canvas, button, input, select')].filter((e) => !(e.getAttribute('aria-label') || e.getAttribute('aria-hidden') || e.innerText?.trim() || e.labels?.length)).map((e) => e.outerHTML)")
        self.assertEqual(unnamed, [])

    def test_little_is_said_of_nothing(self):
        self.open(self.invented())
        self.assertIn("no look", self.text("#nodes .missing"))
        self.assertEqual(browser.run("document.querySelectorAll('.mesh-player').length"), 0)

    def test_parked_blocks_are_shown_where_there_are_any(self):
        self.open()
        self.assertNotIn("parked", self.text(".mesh-legend"))
        looks, columns = 3, bytearray()
        def place(*values):
            columns.extend(values)
            return {"kind": "u8", "at": len(columns) - len(values)}
        states = {key: place(*[0] * 6) for key in STATES} | {"used": place(20, 20, 20, 20, 20, 20), "free": place(*[20] * 6), "parked": place(0, 4, 8, 0, 0, 0)}
        document = {"looks": looks, "every": 10, "cycles": place(10, 20, 30), "states": states, "counts": {key: place(*[0] * 6) for key in COUNTS}, "packets": place(0, 1, 2)}
        self.open(self.invented(base64.b64encode(gzip.compress(bytes(columns))).decode(), **document))
        self.assertIn("parked", self.text(".mesh-legend"))
        self.assertIn("Blocks parked", self.text(".mesh-charts"))
        browser.run("metes.now.chosen = -1")
        for look, wanted in ((0, [False, False]), (1, [True, False]), (2, [True, False])):
            self.seek(look)
            self.assertEqual(browser.run(f"{SEEN}('parked')"), wanted, look)
        self.seek(2)
        browser.run("document.querySelector('#table summary').click()")
        browser.settle()
        names = browser.run("[...document.querySelectorAll('#table thead th')].map((cell) => cell.dataset.key)")
        cells = browser.run("[...document.querySelectorAll('#table tbody tr:first-child > *')].map((cell) => cell.innerText)")
        self.assertEqual(cells[names.index("parked")], "8")

    def test_damage_is_named(self):
        for more, said in (({"looks": 3}, "is damaged"), ({"version": 2}, "version"), ({"links": [[0, 9]]}, "A link leads"), ({"columns": -1}, "how large")):
            browser.open(self.invented(packed="QUJD" if "looks" in more else EMPTY, **more))
            self.assertEqual(browser.run("document.documentElement.dataset.ready"), "no")
            self.assertIn(said, self.text(".fatal"))

    def test_text_stays_text(self):
        self.open(self.invented(title=HOSTILE, manager=HOSTILE))
        self.assertIsNone(browser.run("window.hacked ?? null"))
        self.assertIn("<img", self.text("h1"))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: mesh_test.py MESH_PAGE")
    MESH_PAGE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
