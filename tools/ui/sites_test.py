#!/usr/bin/env python3
"""Test of the page of sites in a real browser: `python3 tools/ui/sites_test.py`.

Invented documents are filled in as the Rust side does. Needs the Debian package chromium.
"""
import copy
import json
import unittest

import build
from filled import HOSTILE, Filled


def site(number, calls, allocations, peak, leaked=0):
    return {"site": number, "calls": calls, "allocations": allocations, "resizes": 0, "bytes": 2 * peak, "peak_blocks": 1, "peak_bytes": peak, "leaked_blocks": 0, "leaked_bytes": leaked, "temporary": allocations // 2,
            "lifetime": {"median": 1500, "most": 2_000_000_000} if allocations > 5 else None}


def function(name, every, own):
    return {"function": name, "module": "/bin/program", "all": every, "own": own}


FUNCTIONS = [function("main", 5000, 0), function("small", 1000, 1000), function("large", 4000, 4000)]
SITES = {
    "version": 2, "command": "./program --fast", "events": 1234, "by": "peak", "timed": True, "peak_live": 5000, "leaked": 100,
    "allocations": 16, "resizes": 2, "bytes": 10000, "calls": 3, "nameless": 1, "all_sites": 2, "left_out": 7,
    "sites": [site(1, ["small (a.c:3)", "main (a.c:9)"], 10, 1000, 100), site(2, ["large (a.c:5)", "main (a.c:10)"], 4, 4000), site(0, [], 2, 0)],
    "functions": [FUNCTIONS, FUNCTIONS, FUNCTIONS, FUNCTIONS[:2], FUNCTIONS[1:]],
    "names": ["everything", "main", "small", "large"],
    "nodes": [[0, 0, 16, 10000, 5000, 100, 10], [0, 1, 14, 10000, 5000, 100, 10], [1, 2, 10, 2000, 1000, 100, 8], [1, 3, 4, 8000, 4000, 0, 2]],
}


class Page(Filled):
    template = build.SITES

    def bars(self):
        """Names of the bars, with their widths in percent of the graph."""
        return dict(self.browser.run("""[...document.querySelectorAll('.flame')].map((bar) => [bar.title.split('\\n')[0],
            Math.round(bar.getBoundingClientRect().width / bar.parentNode.clientWidth * 100)])"""))

    def press(self, label):
        self.browser.run(f"[...document.querySelectorAll('button')].find((b) => b.innerText.trim() === {json.dumps(label)}).click()")

    def test_the_heading_says_who_and_how_much(self):
        self.open(SITES)
        self.assertEqual(self.text("h1"), "Who allocates in ./program --fast.")
        self.assertIn("1 of 3 calls have no name.", self.text(".verdict"))
        for part in ("4.88\u00a0KiB", "16", "and 2 resizes", "100\u00a0B"):
            self.assertIn(part, self.text(".figures"))
        self.assertIn("7 calls are too little", self.text("#flames"))

    def test_bars_are_as_wide_as_their_part_of_the_figure(self):
        self.open(SITES)
        self.assertEqual(self.bars(), {"everything": 100, "main": 100, "small": 20, "large": 80})
        self.press("Allocations")
        self.assertEqual(self.bars(), {"everything": 100, "main": 87, "small": 62, "large": 25})
        self.press("Never freed")
        self.assertEqual(self.bars(), {"everything": 100, "main": 100, "small": 100})
        self.press("Temporary")
        self.assertEqual(self.bars(), {"everything": 100, "main": 100, "small": 80, "large": 20})

    def test_a_click_zooms_and_everything_comes_back(self):
        self.open(SITES)
        self.browser.run("[...document.querySelectorAll('.flame')].find((b) => b.title.startsWith('large')).click()")
        self.assertEqual(self.bars(), {"everything": 100, "main": 100, "large": 100})
        self.press("Everything")
        self.assertEqual(self.bars()["small"], 20)

    def test_functions_follow_the_figure_and_sites_show_their_stack(self):
        self.open(SITES)
        rows = "[...document.querySelectorAll('#functions tbody tr')].map((row) => row.children[0].innerText)"
        self.assertEqual(self.browser.run(rows), ["main", "large", "small"])
        self.press("Never freed")
        self.assertEqual(self.browser.run(rows), ["main", "small"])
        self.assertIn("large (a.c:5)", self.text("#sites tbody tr"))
        self.assertIn("stack not known", self.text("#sites"))

    def test_no_width_scrolls_sideways(self):
        for width, theme in ((380, "light"), (768, "dark"), (1400, "light")):
            self.open(SITES, width, theme)
            self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width)

    def test_text_stays_text_and_damage_is_survived(self):
        data = copy.deepcopy(SITES)
        data["command"] = data["names"][2] = data["sites"][0]["calls"][0] = data["functions"][0][0]["function"] = HOSTILE
        self.open(data)
        self.assertIsNone(self.browser.run("window.hacked ?? null"))
        self.open(SITES | {"nodes": [[0, 0, 1, 1, 1, 1], [9, 1, 1, 1, 1, 1], [1, 99, "x"], 5], "sites": [5, {}], "functions": 3})
        self.open(SITES | {"nodes": [], "names": None})
        self.assertIn("No call stack was recorded.", self.text("#flames"))


if __name__ == "__main__":
    unittest.main()
