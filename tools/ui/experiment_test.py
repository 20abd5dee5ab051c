#!/usr/bin/env python3
"""Test of the page of an experiment in a real browser: `python3 tools/ui/experiment_test.py`.

Invented reports are filled in as the Rust side does. Needs the Debian package chromium.
"""
import copy
import json
import unittest
import xml.etree.ElementTree

import build
from filled import HOSTILE, Filled

HEAPS = [f"heap-{k}" for k in range(9)]
WORKLOADS = ["malloc-large", "uniform-100", "training of a language model", "rmm log"]
REPORT = {
    "command": "metes reproduce trial", "title": "a trial of `one` thing", "paper": "Somebody, 2009", "experiment": "trial",
    "rows": [
        {"what": "second", "paper": 2.0, "ours": 2.1, "ratio": 1.05, "unit": "x", "note": "of `malloc`"},
        {"what": "first", "paper": 10.0, "ours": 20.0, "ratio": 2.0, "unit": "ns", "note": ""},
        {"what": "third", "paper": None, "ours": None, "ratio": None, "unit": "", "note": "not known"},
    ],
    "assumptions": ["`one` core"], "contradicted": [],
    "plots": [
        {"title": "Arenas", "x": "workload", "names": WORKLOADS, "y": "arena / peak", "joined": False,
         "series": [{"name": heap, "values": [1.234 + k / 40 + row / 100 for row in range(4)], "reference": k == 0} for k, heap in enumerate(HEAPS)]},
        {"title": "Two", "x": "κ", "names": ["1", "2"], "y": "calls", "joined": False, "series": [{"name": "heap-1", "values": [3, None], "reference": False}]},
        {"title": "Over time", "x": "percent of the run", "names": [str(k) if k % 10 == 0 else "" for k in range(100)], "y": "MiB", "joined": True,
         "series": [{"name": "used", "values": list(range(100)), "reference": True}, {"name": "tlsf, hybrid", "values": [None] * 50 + [7] * 50, "reference": False}]},
    ],
}


class ExperimentPage(Filled):
    template = build.EXPERIMENT

    def column(self, place):
        return self.browser.run(f"[...document.querySelectorAll('table.findings tbody tr')].map((row) => row.children[{place}].innerText)")

    def test_heading_names_the_paper_and_gives_a_verdict(self):
        self.open(REPORT)
        self.assertEqual(self.text("h1"), "A trial of one thing")
        self.assertEqual(self.text(".paper"), "Somebody, 2009")
        self.assertIn("Everything checked holds.", self.text("#proof"))
        self.assertIn("2 of 3 figures stand beside a published one: 1 within 10\u00a0% of it, all between 1.050\u00a0× and 2.00\u00a0×.", self.text("#proof"))
        self.open(REPORT | {"rows": REPORT["rows"][1:]})
        self.assertIn("One of 2 figures stands beside a published one, and is 2.00\u00a0× that.", self.text("#proof"))
        self.open(REPORT | {"contradicted": ["5 > `four`"], "paper": None})
        self.assertIn("One check does not hold.", self.text("#proof"))
        self.assertIn("5 > four", self.text("#proof li"))
        self.assertEqual(self.browser.run("document.querySelectorAll('.paper').length"), 0)

    def test_figures_stand_as_given_and_can_be_sorted(self):
        self.open(REPORT)
        self.assertEqual(self.column(0), ["second", "first", "third"])
        self.assertEqual(self.column(2), ["2.10\u00a0×", "20\u00a0ns", "–"])
        self.assertEqual(self.column(4)[0], "of malloc")
        self.browser.run("document.querySelector('table.findings th[data-key=ratio] button').click()")
        self.assertEqual(self.column(0), ["second", "first", "third"])
        self.browser.run("document.querySelector('table.findings th[data-key=ratio] button').click()")
        self.assertEqual(self.column(0), ["first", "second", "third"])

    def test_no_label_covers_another(self):
        for width in (420, 1400):
            self.open(REPORT, width)
            for place in (0, 1):
                labels = json.loads(self.browser.run(f"document.querySelectorAll('canvas.categories')[{place}].dataset.labels"))
                for k, one in enumerate(labels):
                    for other in labels[:k]:
                        apart = one[0] >= other[2] or other[0] >= one[2] or one[1] >= other[3] or other[1] >= one[3]
                        self.assertTrue(apart, (width, one, other))
        self.assertEqual(len(labels), 1, "where there is room, bars carry their values")

    def test_pointing_and_keys_tell_every_series(self):
        self.open(REPORT)
        self.browser.run("document.querySelector('canvas.categories').focus()")
        self.browser.key("ArrowRight")
        self.browser.key("ArrowRight")
        said = self.text("#say")
        self.assertTrue(said.startswith("workload uniform-100: "), said)
        self.assertTrue(all(heap in said for heap in HEAPS), said)
        self.browser.run("document.querySelector('.legend button').click()")
        self.browser.key("ArrowLeft")
        self.assertNotIn("heap-0", self.text("#say"))

    def test_pictures_are_drawn_and_saved(self):
        for theme in ("light", "dark"):
            self.open(REPORT, theme=theme)
            inked = self.browser.run("""[...document.querySelectorAll('canvas')].map((c) => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
                let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n; })""")
            self.assertEqual(len(inked), 3)
            self.assertTrue(all(n > 1000 for n in inked), inked)
        self.browser.run("URL.createObjectURL = ((make) => (blob) => { window.savedBlob = blob; return make.call(URL, blob); })(URL.createObjectURL)")
        self.browser.run("document.querySelector('.save').click()")
        root = xml.etree.ElementTree.fromstring(self.browser.run("window.savedBlob.text()"))
        self.assertIn("workload →", [node.text for node in root.iter()])

    def test_no_width_scrolls_sideways(self):
        for width in (380, 768, 1400):
            self.open(REPORT, width)
            self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width)

    def test_text_stays_text(self):
        data = copy.deepcopy(REPORT)
        data["title"] = data["paper"] = data["rows"][0]["what"] = data["rows"][0]["note"] = HOSTILE
        data["plots"][0]["title"] = data["plots"][0]["series"][0]["name"] = HOSTILE
        data["contradicted"] = data["assumptions"] = [HOSTILE]
        self.open(data)
        self.assertIsNone(self.browser.run("window.hacked ?? null"))
        self.assertIn("<img", self.text("h1"))


if __name__ == "__main__":
    unittest.main()
