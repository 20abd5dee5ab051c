#!/usr/bin/env python3
"""Test of the page of a dry run in a real browser: `python3 tools/ui/fit_test.py`.

Invented histories go through the package's own breakdown and page. Needs the Debian package chromium.
"""
import json
import os
import pathlib
import random
import re
import sys
import tempfile
import unittest

from browser import Browser

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from metes import _page  # noqa: E402
from metes._breakdown import PARTS, parted  # noqa: E402

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"
KINDS = ("weights", "buffers", "gradients", "optimizer_states")


def history(steps=4):
    """Steps of training, as a history and what was noted beside it."""
    draw, events, looks, passes = random.Random(1), [{"action": "segment_alloc", "addr": 0, "size": 600 << 20}], [], []
    count, live = 0, {}

    def take(address, size, name):
        nonlocal count
        frames = [{"name": name, "filename": f"/home/me/{name}.py", "line": len(name)}] if name else []
        events.append({"action": "alloc", "addr": address, "size": size, "frames": frames})
        count += 1
        live[address] = size

    def drop(address):
        events.append({"action": "free_completed", "addr": address, "size": live.pop(address)})

    for number in range(20):
        take(number, 4 << 20, "model")
    looks.append((count, {"weights": tuple(range(20))}))
    for step in range(steps):
        held = [1000 + number for number in range(draw.randint(30, 60))]
        for address in held:
            take(address, 3 << 20, "layers")
        begun = count
        for number, address in enumerate(reversed(held)):
            if number < 20 and step == 0:
                take(100 + number, 4 << 20, None)
            take(5000, 9 << 20, None)
            drop(address)
            drop(5000)
        passes.append([begun, count, "backward", "train.py:30 in step"])
        seen = {"weights": tuple(range(20)), "gradients": tuple(range(100, 120))}
        looks.append((count, seen))
        if step == 0:
            for number in range(40):
                take(200 + number, 4 << 20, "adam")
        passes.append([passes[-1][1], count, "step", "train.py:31 in step"])
        looks.append((count, seen | {"optimizer_states": tuple(range(200, 240))}))
    return events, {"looks": looks, "passes": passes}


def document(verdict="fits", **more):
    words = {"fits": "fits into 1.00 GiB", "does not fit": "does not fit into 1.00 GiB", "undecided": "is undecided: it fits into 1.00 GiB, if what it guessed is right"}
    found = parted(*history())
    report = {"verdict": verdict, "framework": "torch 2.15.0", "memory": 1 << 30, "peak_live": found["peak"]["bytes"], "peak_allocated": found["peak"]["bytes"] + 4096,
              "peak_reserved": 600 << 20, "peak_device": 600 << 20, "refusals": 0, "error": None}
    return {"script": "train.py", "command": ["train.py", "--steps", "4"], "headline": words[verdict], "because": "The script came to its end.", "guessed": [],
            "report": report, "breakdown": found, "no_history": None, "unknown": ["kernels did nothing"]} | more


def setUpModule():
    global browser, folder
    folder = tempfile.TemporaryDirectory(prefix="metes-ui-fit-")
    browser = Browser()


def tearDownModule():
    browser.__exit__()
    folder.cleanup()


class FitPage(unittest.TestCase):
    def open(self, data, width=1400, theme="light"):
        path = pathlib.Path(folder.name) / "fit.html"
        path.write_text(_page.page(data))
        browser.size(width, 1000)
        browser.theme(theme)
        browser.open(path)
        self.assertEqual(browser.faults(), [])

    def text(self, selector):
        return browser.run(f"document.querySelector({json.dumps(selector)}).innerText")

    def test_every_figure_is_of_the_document(self):
        data = document()
        self.open(data)
        peak = data["breakdown"]["peak"]
        self.assertEqual(self.text("h1"), "train.py fits into 1.00 GiB.")
        self.assertIn("It fits", self.text("#proof"))
        self.assertIn(peak["line"], self.text("#peak-lead"))
        titles = browser.run("[...document.querySelectorAll('#parts li')].map((li) => li.title.replace(/,/g, '').match(/^\\d+/)[0])")
        self.assertEqual([int(title) for title in titles], [peak["parts"][part] for part in PARTS])
        self.assertEqual(browser.run("document.querySelectorAll('table.lines tbody tr').length"), len(data["breakdown"]["largest"]))
        self.assertIn("optimiser states", self.text("table.lines"))

    def test_each_verdict_has_its_colour(self):
        for verdict, kind in {"fits": "good", "does not fit": "bad", "undecided": "open"}.items():
            self.open(document(verdict, guessed=["It went by values", "  x.py:3"] if verdict == "undecided" else []))
            self.assertTrue(browser.run(f"document.getElementById('proof').classList.contains('{kind}')"))
            self.assertEqual(browser.run("document.getElementById('guesses') === null"), verdict != "undecided")

    def test_the_timeline_is_painted_in_the_colours_of_its_key(self):
        for theme in ("light", "dark"):
            self.open(document(), theme=theme)
            seen = browser.run("""(() => {
              const c = document.getElementById('timeline'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, counts = {};
              for (let i = 0; i < d.length; i += 4) { const k = `rgb(${d[i]}, ${d[i + 1]}, ${d[i + 2]})`; counts[k] = (counts[k] || 0) + 1; }
              return Object.fromEntries([...document.querySelectorAll('.legend button')].map((entry) => [entry.innerText.trim(), counts[getComputedStyle(entry.querySelector('.swatch')).backgroundColor] || 0]));
            })()""")
            seen = {part: seen[part] for part in ("weights", "gradients", "optimiser states", "activations", "temporaries")}
            for part, pixels in seen.items():
                self.assertGreater(pixels, 100, f"{theme} {part}")

    def test_pointing_tells_a_moment(self):
        self.open(document())
        x, y = browser.run("(() => { const e = document.getElementById('timeline'); e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect(); return [r.left + r.width - 22, r.top + 40]; })()")
        browser.mouse("mouseMoved", x, y)
        browser.settle()
        self.assertIn("160\u00a0MiB optimiser states", self.text("#tip"))
        time = document()["breakdown"]["timeline"]
        shown = int(re.match(r"allocation ([\d,]+)", self.text("#tip"))[1].replace(",", ""))
        live = [live for allocation, live in zip(time["allocation"], time["live"]) if allocation <= shown][-1]
        self.assertIn(f"{live / 2**20:.0f}\u00a0MiB live", self.text("#tip"))

    def test_a_part_can_be_left_out_of_the_picture(self):
        self.open(document())
        picture = "document.getElementById('timeline').toDataURL()"
        whole = browser.run(picture)
        browser.run("document.querySelector('.legend button').click()")
        browser.settle()
        self.assertNotEqual(browser.run(picture), whole)

    def test_no_width_scrolls_sideways(self):
        for width in (380, 768, 1400):
            self.open(document(), width)
            self.assertLessEqual(browser.run("document.documentElement.scrollWidth"), width)
            if os.environ.get("PICTURES"):
                browser.picture(f"{os.environ['PICTURES']}/fit-{width}.png")

    def test_without_a_history_the_rest_is_there(self):
        self.open(document(breakdown=None, no_history="this allocator keeps no history"))
        self.assertIn("keeps no history", self.text(".missing"))
        self.assertFalse(browser.run("document.getElementById('use') !== null"))
        self.assertIn("kernels did nothing", self.text("#unknown"))

    def test_text_stays_text(self):
        data = document(script=HOSTILE, headline=HOSTILE, because=HOSTILE, guessed=[HOSTILE], unknown=[HOSTILE])
        data["breakdown"]["peak"]["line"] = HOSTILE
        data["breakdown"]["largest"][0] |= {"line": HOSTILE, "stack": [HOSTILE]}
        self.open(data)
        self.assertIsNone(browser.run("window.hacked ?? null"))
        self.assertIn("<img", self.text("h1"))


if __name__ == "__main__":
    unittest.main()
