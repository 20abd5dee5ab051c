#!/usr/bin/env python3
"""Test of the pages of many runs and of comparisons in a real browser: `python3 tools/ui/runs_test.py`.

Invented documents are filled in as the Rust side does. Needs the Debian package chromium.
"""
import copy
import unittest

import build
from filled import HOSTILE, Filled


def run(name, footprint, best, **further):
    return {"name": name, "trace": f"out/runs/{name}.trace.parquet", "events": 100, "threads": 1, "peak_live": best, "footprint": footprint,
            "best_alone": {"heap": "tlsf", "footprint": best}, "ratio": footprint / best, "measured": {"peak_live": best, "footprint": footprint},
            "equal": True, "holds": True, "deterministic": True, "output_unchanged": True} | further


def heap(name, footprint):
    return {"heap": name, "footprint": footprint, "footprint_mean": footprint / 2, "cycles_mean": 61.5, "cycles_max": 900, "constant_time": True, "guarantee": None, "chosen": name == "tlsf:second_level=8", "toml": None}


RUNS = {
    "version": 1, "kind": "runs", "title": "One heap for 3 runs", "over": "both", "heap": "tlsf:second_level=8", "toml": "[heap]\n", "why": "Least.",
    "distinct_runs": 2, "largest": {"run": "big", "footprint": 300000, "best_alone": 250000}, "mean": {"footprint": 150000.5, "best_alone": 140000, "ratio": 1.25},
    "dearest": {"run": "small", "ratio": 1.5}, "equal": True, "guarantee": None,
    "runs": [run("big", 300000, 250000), run("small", 3000, 2000), run("middle", 5000, 4900)], "left_out": [{"name": "./dies", "why": "a signal"}],
    "heaps": [heap("tlsf", 310000), heap("buddy", 500000)], "pareto": [heap("tlsf:second_level=8", 300000)],
    "configurations": 40, "space": 1000, "seconds": 2.5, "sampled": None, "unfinished": [],
}
COMPARED = {
    "version": 1, "before": {"name": "a.parquet", "heap": "tlsf"}, "after": {"name": "b.parquet", "heap": "tlsf"}, "worse": 1,
    "findings": [
        {"threshold": "leaks", "what": "blocks of 200 bytes never freed", "before": 0, "after": 20, "unit": "count", "verdict": "worse", "sentence": "20 more: a leak?"},
        {"threshold": "peak-live", "what": "peak of live bytes", "before": 2048, "after": 1024, "unit": "bytes", "verdict": "better", "sentence": ""},
    ],
    "thresholds": ["`leaks`: 1 %"], "curves": [{"name": "a.parquet", "points": [[0, 0], [50, 2048], [99, 10]]}, {"name": "b.parquet", "points": [[0, 0], [99, 1024]]}],
}


class Page(Filled):
    def open(self, data, page, width=1400, theme="light"):
        self.template = page
        super().open(data, width, theme)

    def column(self, place):
        return self.browser.run(f"[...document.querySelectorAll('table.findings tbody tr')].map((row) => row.children[{place}].innerText)")

    def test_the_heading_names_heap_cost_and_the_runs_that_decide(self):
        self.open(RUNS, build.RUNS)
        self.assertEqual(self.text("h1"), "tlsf:second_level=8 serves all 3 runs, at 1.250\u00a0× the best heap for each alone.")
        self.assertIn("Predicted = measured.", self.text("#proof"))
        figures = self.text(".figures")
        for part in ("big", "small", "1.500\u00a0×", "293\u00a0KiB", "2 different"):
            self.assertIn(part, figures)
        self.assertIn("./dies", self.text("#left"))

    def test_what_was_not_measured_or_not_equal_is_not_called_so(self):
        bare = {"measured": None, "equal": None, "holds": None}
        self.open(RUNS | {"runs": [one | bare for one in RUNS["runs"]]}, build.RUNS)
        self.assertIn("Predicted, not measured.", self.text("#proof"))
        self.open(RUNS | {"runs": RUNS["runs"] + [run("odd", 1, 1, equal=False)]}, build.RUNS)
        self.assertIn("Predicted = measured in 3 of 4 runs.", self.text("#proof"))
        self.open(RUNS | {"runs": RUNS["runs"] + [run("wrong", 1, 1, equal=False, holds=False)]}, build.RUNS)
        self.assertIn("1 run not as predicted.", self.text("#proof"))
        self.open(RUNS | {"heap": None, "toml": None}, build.RUNS)
        self.assertEqual(self.text("h1"), "No heap is as was asked for.")

    def test_runs_stand_by_what_they_pay(self):
        self.open(RUNS, build.RUNS)
        self.assertEqual(self.column(0)[:3], ["small", "big", "middle"])

    def test_a_comparison_says_what_is_worse(self):
        self.open(COMPARED, build.COMPARE)
        self.assertIn("One thing is worse.", self.text("#proof"))
        self.assertIn("20 more: a leak?", self.text("#proof li"))
        self.assertEqual(self.column(4), ["✗ worse", "✓ better"])
        self.open(COMPARED | {"findings": COMPARED["findings"][1:]}, build.COMPARE)
        self.assertIn("Nothing is worse.", self.text("#proof"))

    def test_pictures_are_drawn_and_no_width_scrolls_sideways(self):
        for data, page in ((RUNS, build.RUNS), (COMPARED, build.COMPARE)):
            for width, theme in ((380, "light"), (768, "dark"), (1400, "light")):
                self.open(data, page, width, theme)
                self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width)
                inked = self.browser.run("""[...document.querySelectorAll('canvas')].map((c) => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
                    let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n; })""")
                self.assertTrue(inked and all(n > 1000 for n in inked), inked)

    def test_text_stays_text(self):
        data = copy.deepcopy(RUNS)
        data["runs"][0]["name"] = data["largest"]["run"] = data["heap"] = data["why"] = data["left_out"][0]["name"] = HOSTILE
        self.open(data, build.RUNS)
        self.assertIsNone(self.browser.run("window.hacked ?? null"))
        data = copy.deepcopy(COMPARED)
        data["before"]["name"] = data["findings"][0]["what"] = data["findings"][0]["sentence"] = data["curves"][0]["name"] = HOSTILE
        self.open(data, build.COMPARE)
        self.assertIsNone(self.browser.run("window.hacked ?? null"))


if __name__ == "__main__":
    unittest.main()
