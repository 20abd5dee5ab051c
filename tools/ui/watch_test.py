#!/usr/bin/env python3
"""Test of the page of a device heap in a real browser, through Playwright: `tools/ui/watch_test.py METES`.

METES is the built command; the library of device heaps lies beside it. A program with a heap runs
beside the browser, and what the page shows is compared with what the command says as JSON.
Needs: PyPI package playwright, Debian package chromium.
"""
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from playwright.sync_api import sync_playwright

ROOT = pathlib.Path(__file__).resolve().parents[2]
WIDTHS = {"laptop": (1280, 900), "phone": (390, 844)}
#: Does what it is told, line by line, to a heap of 512 MiB.
PROGRAM = """
import random, sys
from metes._device import DeviceError, Heap
heap, draw, live = Heap.guarded(512 << 20, streams=3), random.Random(5), []
for line in sys.stdin:
    for _ in range(int(line)):
        if live and draw.random() < .45:
            heap.free(live.pop(draw.randrange(len(live))))
        else:
            try:
                live.append(heap.allocate(int(2 ** draw.uniform(10, 24.5)), stream=draw.choice((0, 16))))
            except DeviceError:
                for _ in range(len(live) // 2):
                    heap.free(live.pop(draw.randrange(len(live))))
    try:
        heap.free(3)
    except DeviceError:
        pass
    print("done", flush=True)
"""


def metes(*arguments):
    done = subprocess.run([METES, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, f"{arguments}: status {done.returncode}\n{done.stderr}"
    return done.stdout


def bytes_(number):
    """As the page has it: three digits that count."""
    value, unit = float(number), 0
    while value >= 1024 and unit < 5:
        value, unit = value / 1024, unit + 1
    if unit and round(value) == 1024 and unit < 5:
        value, unit = value / 1024, unit + 1
    digits = 0 if unit == 0 or value >= 100 or value == 0 else 2 - math.floor(math.log10(float(f"{value:.3g}")))
    shown = value if digits == 0 else float(f"{value:.3g}")
    return f"{shown:,.{max(0, digits)}f}\u00a0{['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'][unit]}"


def grouped(number):
    return f"{number:,}"


def setUpModule():
    global folder, playwright, chromium
    folder = pathlib.Path(tempfile.mkdtemp(prefix="metes-watch-"))
    playwright = sync_playwright().start()
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not program:
        raise SystemExit("ui: chromium is not installed; install the Debian package `chromium` or set CHROMIUM")
    chromium = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])


def tearDownModule():
    chromium.close()
    playwright.stop()
    shutil.rmtree(folder)


class WatchTest(unittest.TestCase):
    def setUp(self):
        self.program = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {
                "PYTHONPATH": str(ROOT / "python"),
                "METES": METES,
                "METES_LIBRARY_PATH": str(pathlib.Path(METES).parent),
                "METES_DEVICE_WATCH": "1",
            },
        )
        self.addCleanup(self.end)
        self.work(400)

    def end(self):
        self.program.kill()
        self.program.wait()
        self.program.stdin.close()
        self.program.stdout.close()

    def work(self, steps):
        self.program.stdin.write(f"{steps}\n")
        self.program.stdin.flush()
        self.assertEqual(self.program.stdout.readline(), "done\n")

    def view(self):
        return json.loads(metes("--json", "device", "watch", self.program.pid, "--once"))

    def open(self, address, size="laptop", theme="light"):
        width, height = WIDTHS[size]
        context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=theme, reduced_motion="reduce")
        self.addCleanup(context.close)
        self.page = context.new_page()
        self.faults, self.requests = [], []
        self.page.on("console", lambda m: self.faults.append(f"console: {m.text}") if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda e: self.faults.append(f"exception: {e}"))
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.goto(str(address))

    def figure(self, name, where="figures"):
        row = self.page.locator(f"#{where} > div", has=self.page.get_by_text(name, exact=True))
        return row.locator("dd").evaluate("dd => { const rest = dd.querySelector('small')?.textContent ?? ''; return dd.textContent.slice(0, dd.textContent.length - rest.length); }")

    def shows(self, view):
        """Everything on the page is of the view; the heading says what is seen, not how it was started."""
        self.assertEqual(self.page.text_content("h1"), f"{bytes_(view['requested']['current'])} in use, {bytes_(view['reserved']['current'])} mapped, of at most {bytes_(view['cap'])}.")
        self.assertEqual(self.page.text_content("#program"), view["process"]["program"])
        self.assertEqual(self.page.text_content("#heap"), view["heap"])
        self.assertEqual(self.figure("Used"), bytes_(view["requested"]["current"]))
        self.assertEqual(self.figure("Mapped"), bytes_(view["reserved"]["current"]))
        self.assertEqual(self.figure("Blocks"), grouped(view["blocks"]["current"]))
        self.assertEqual(self.figure("Largest free run"), bytes_(view["largest_free_run"]))
        for name, value in {
            "Allocations": view["blocks"]["added"],
            "Frees": view["blocks"]["removed"],
            "Pages in use": view["pages"]["live"],
            "Pages idle": view["pages"]["idle"],
            "Idle pages waiting for streams": view["pages"]["waiting"],
            "Pages moved so far": view["pages"]["moved"],
            "Process": view["process"]["pid"],
        }.items():
            self.assertEqual(self.figure(name, "facts"), grouped(value) if name != "Process" else str(value), name)
        self.assertEqual(self.figure("Refused, bad frees"), f"{grouped(view['refusals'])}, {grouped(view['bad_frees'])}")

    def cells(self):
        """What is painted, cell by cell: `fill` and whether the pixel in its middle is its colour."""
        return self.page.evaluate(
            """() => {
              const { now: { view, grid }, FILLS, OPACITY, fill, ink } = metes;
              const canvas = document.getElementById("map"), scale = devicePixelRatio;
              const all = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
              const probe = document.createElement("canvas").getContext("2d");
              FILLS.forEach(([kind], place) => {
                probe.globalAlpha = OPACITY[kind];
                probe.fillStyle = ink(kind);
                probe.fillRect(place, 0, 1, 1);
              });
              const wanted = probe.getImageData(0, 0, FILLS.length, 1).data;
              return view.map.map((cell, number) => {
                const kind = fill(cell, view.page), place = FILLS.findIndex(([name]) => name === kind);
                const x = Math.round((number % grid.columns + .4) * grid.size * scale);
                const y = Math.round((Math.floor(number / grid.columns) + .4) * grid.size * scale);
                const from = (y * canvas.width + x) * 4;
                const seen = all.data.slice(from, from + 4).join();
                return [kind, seen === wanted.slice(place * 4, place * 4 + 4).join()];
              });
            }"""
        )

    def check(self):
        self.assertEqual(self.faults, [])
        wide = self.page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        self.assertFalse(wide, "the page scrolls sideways")

    def test_a_moment_opens_from_disk(self):
        file = folder / "heap.html"
        metes("device", "watch", self.program.pid, "-o", file)
        view = self.view()
        for size in WIDTHS:
            for theme in ("light", "dark"):
                self.open(file.as_uri(), size, theme)
                self.shows(view)
                self.assertEqual(self.page.text_content("#state"), "one moment")
                self.assertFalse(self.page.is_visible("#history"))
                painted = self.cells()
                self.assertEqual(len(painted), len(view["map"]))
                self.assertTrue(all(same for _, same in painted))
                kinds = [kind for kind, _ in painted]
                for cell, kind in zip(view["map"], kinds):
                    self.assertEqual(cell["used"] == 0 and cell["mapped"] == 0, kind == "none")
                    self.assertEqual(cell["used"] > 0, kind in ("little", "half", "much", "full"))
                self.assertGreater(len(set(kinds)), 4, kinds)
                self.assertEqual(self.requests, [file.as_uri()])
                self.check()
                if os.environ.get("PICTURES"):
                    self.page.screenshot(path=f"{os.environ['PICTURES']}/moment-{size}-{theme}.png", full_page=True)

    def test_a_cell_is_explained(self):
        file = folder / "cell.html"
        metes("device", "watch", self.program.pid, "-o", file)
        self.open(file.as_uri())
        view = self.view()
        self.page.hover("#map", position={"x": 4, "y": 4})
        tip, cell = self.page.text_content("#tip"), view["map"][0]
        self.assertIn(hex(view["start"]), tip)
        self.assertIn(f"{bytes_(cell['used'])} used; {grouped(cell['mapped'])} of {grouped(cell['pages'])} pages", tip)
        self.check()

    def test_the_live_page_follows(self):
        server = subprocess.Popen([METES, "device", "watch", str(self.program.pid), "--page", "--interval", "0.1"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(server.wait)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.terminate)
        self.open(server.stdout.readline().strip())
        before = self.view()["blocks"]["added"]
        self.shows(self.view())
        for _ in range(20):
            self.work(100)
            self.page.wait_for_timeout(60)
        view = self.view()
        self.assertGreater(view["blocks"]["added"], before + 500)
        wanted = grouped(view["blocks"]["added"])
        self.page.wait_for_function("wanted => document.getElementById('facts').textContent.includes(wanted)", arg=wanted)
        self.shows(view)
        self.assertTrue(all(same for _, same in self.cells()))
        self.assertTrue(self.page.is_visible("#history"))
        self.assertEqual(self.page.text_content("#state"), "live")
        self.assertNotEqual(self.figure("Allocations a second"), "–")
        self.check()
        if os.environ.get("PICTURES"):
            self.page.screenshot(path=f"{os.environ['PICTURES']}/live.png", full_page=True)
        self.end()
        self.page.wait_for_function("() => document.getElementById('state').textContent === 'the process has ended'")
        self.shows(view)
        server.terminate()
        server.wait()
        self.assertEqual(self.faults, [])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: watch_test.py METES")
    METES = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
