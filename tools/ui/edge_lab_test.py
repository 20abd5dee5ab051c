#!/usr/bin/env python3
"""Test of the laboratory's page in a real browser: `python3 tools/ui/edge_lab_test.py`.

An invented campaign is filled in as the Rust side does. Needs the Debian package chromium.
"""
import copy
import json
import unittest

import build
from filled import HOSTILE, Filled

KERNELS = ["gemm", "atax", "jacobi-2d", "floyd-warshall"]
SUBJECTS = [
    # name, engine, mode, layer, allocator, vectors, start in ms, factor of a run, faults of a run, why it is absent
    ("native", "native", "", "process", "glibc", "128 bits", 0.5, 1.0, 300, None),
    ("native-retained", "native", "", "process", "glibc, retained", "128 bits", 0.5, 0.5, 0, None),
    ("native-metes", "native", "", "process", "Metes, TLSF", "128 bits", 0.7, 0.51, 0.5, None),
    ("bwrap", "native", "bwrap", "namespaces", "musl", "128 bits", 3, None, None, None),
    ("crun", "native", "crun", "OCI runtime", "musl", "128 bits", 6, 1.1, 310, None),
    ("docker", "native", "docker", "container engine", "musl", "128 bits", None, None, None, "no daemon answers"),
    ("cranelift", "wasmtime", "Cranelift", "WebAssembly", "dlmalloc", "none", 35, 0.9, 0, None),
    ("cranelift-simd", "wasmtime", "Cranelift", "WebAssembly", "dlmalloc", "128 bits", 36, 0.55, 0, None),
    ("ahead", "wasmtime", "Cranelift, ahead of time", "WebAssembly", "dlmalloc", "none", 2.4, 0.9, 0, None),
]


def campaign():
    here = [one for one in SUBJECTS if one[9] is None]
    cells = [cell(one, "nothing", one[6], None) for one in here]
    for k, kernel in enumerate(KERNELS):
        base = 2.0 * (k + 1)
        cells += [cell(one, kernel, one[6] + base * one[7], [base * one[7] * (1 + 1 / (run + 1)) for run in range(20)]) for one in here if one[7]]
    by = lambda base: [{"subject": one[0], "ms": base * one[7], "median_ms": base * one[7], "faults": one[8], "calls": 2.0, "ratio": one[7]} for one in here if one[7]]
    return {
        "version": 1, "command": "metes edge lab", "suite": "kernels of Metes", "size": "medium", "kernels": KERNELS, "runs": 25, "repeats": 30,
        "machine": {"processor": "a processor", "cores": 2, "kernel": "6.0"},
        "subjects": [dict(zip(("name", "engine", "mode", "layer", "allocator", "vectors"), one), start="cached" if one[0] == "ahead" else "cold", start_only=one[7] is None, absent=one[9]) for one in SUBJECTS],
        "cells": cells, "differences": [], "holds": True,
        "warm": [{"engine": "ahead", "kernel": "nothing", "instances": 1000, "us": {"p50": 31.0, "p99": 95.5, "max": 300.0}, "faults": 5}],
        "findings": {
            "starts": sorted(({"subject": one[0], "layer": one[3], "ms": one[6], "range": [one[6] * 0.9, one[6] * 1.7], "ratio": one[6] / 0.5, "faults": 200, "calls": 40} for one in here), key=lambda one: one["ms"]),
            "steady": [{"kernel": kernel, "fastest": "cranelift-simd", "by": by(2.0 * (k + 1))} for k, kernel in enumerate(KERNELS)],
            "puzzle": {"kernels": 4, "wasm_beats_default": 4, "wasm_beats_retained": 1, "faults": [300, 0, 0], "fault_ns": 1500.0, "retained": 0.5, "without_vectors": 1.05, "with_vectors": 1.1, "vectors_of_wasm": 0.61, "vectors_of_native": 0.7},
        },
        "paper": [{"what": "wasmtime", "ms": 46}, {"what": "container", "ms": 268}],
    }


def cell(one, kernel, total, times):
    long = times and {"ms": times, "least": min(times), "median": sorted(times)[len(times) // 2], "faults": one[8], "calls": 2.0, "voluntary": 0.0, "involuntary": 0.1}
    return {"subject": one[0], "kernel": kernel, "checksum": "00000000000000ff", "failure": None, "prolonged": long or None,
            "cold": {"runs": 25, "least": total * 0.9, "median": total, "p90": total * 1.3, "most": total * 2, "inside": total, "minor_faults": 200, "major_faults": 0, "voluntary": 3, "involuntary": 1, "calls": 40}}


class LaboratoryPage(Filled):
    template = build.EDGE_LAB

    def texts(self, selector):
        return self.browser.run(f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.innerText)")

    def test_heading_counts_what_the_document_holds(self):
        self.open(campaign())
        self.assertEqual(self.text("h1"), "WebAssembly beats native code in 4 of 4 long runs, and in 1 once native code keeps its memory")
        self.assertIn("Every engine computes the same, bit by bit. 28 checksums", self.text("#proof"))
        self.open(campaign() | {"differences": ["gemm by crun gave 1, native code 2"]})
        self.assertIn("Not every engine computes the same.", self.text("#proof"))
        self.assertIn("gemm by crun", self.text("#proof li"))

    def test_a_failure_is_told_above(self):
        data = campaign()
        data["cells"][-1]["failure"] = "it was killed"
        self.open(data)
        self.assertIn("Not every kernel ran everywhere.", self.text("#proof"))
        self.assertIn("floyd-warshall by ahead: it was killed", self.text("#proof li"))

    def test_a_campaign_that_was_stopped_says_so_above(self):
        self.open(campaign())
        self.assertFalse(self.browser.run("!!document.getElementById('interrupted')"))
        data = campaign()
        kept = [one for one in data["cells"] if one["kernel"] in ("nothing", "gemm")]
        kept[-1]["cold"]["runs"], kept[-1]["prolonged"] = 4, None
        data |= {"interrupted": True, "cells": kept, "warm": []}
        data["findings"] |= {"steady": data["findings"]["steady"][:1], "puzzle": None}
        self.open(data)
        said = self.text("#interrupted")
        self.assertIn("Stopped before its end.", said)
        self.assertIn("1 of 4 kernels were begun. Rows with fewer than 25 cold runs: 1. Rows without a long run: 1.", said)
        above = "document.getElementById('interrupted').compareDocumentPosition(document.getElementById('start')) & Node.DOCUMENT_POSITION_FOLLOWING"
        self.assertTrue(self.browser.run(above))

    def test_nothing_that_was_compared_is_no_proof(self):
        data = campaign()
        data |= {"interrupted": True, "kernels": ["gemm"], "warm": [], "cells": [one for one in data["cells"] if one["kernel"] == "nothing"]}
        data["findings"] |= {"steady": [], "puzzle": None}
        self.open(data)
        self.assertIn("No kernel was run to be compared.", self.text("#proof"))
        self.assertIn("0 of 1 kernels were begun.", self.text("#interrupted"))

    def test_starts_stand_by_layer_and_the_published_beside_them(self):
        self.open(campaign())
        groups = self.texts("#start .track-group")
        self.assertEqual(groups, ["process", "namespaces", "OCI runtime", "WebAssembly", "as published, on another machine"])
        self.assertEqual(len(self.texts("#start .track-row.start")), 8)
        at = lambda row: self.browser.run(f"document.querySelectorAll('#start .track-row')[{row}].querySelector('.mark').getBoundingClientRect().x")
        self.assertLess(at(0), at(4), "a longer start lies further right")
        self.assertEqual(self.browser.run("document.querySelectorAll('#start .mark.hollow').length"), 2)

    def test_every_kernel_has_a_mark_by_subject(self):
        self.open(campaign())
        rows = self.browser.run("[...document.querySelectorAll('#why .track-row.steady')].map((row) => [...row.querySelectorAll('.mark')].map((one) => one.title))")
        self.assertEqual(len(rows), len(KERNELS))
        self.assertTrue(all(any(title.startswith("native-retained: 0.500\u00a0× native") for title in row) for row in rows), rows)
        self.assertIn("300 faults a run", self.text("#why .steps"))

    def test_kernels_beside_native_code(self):
        self.open(campaign())
        self.assertIn("geometric mean", self.texts("#kernels tbody th"))
        self.browser.run("(() => { const way = document.getElementById('way'); way.value = 'steady'; way.dispatchEvent(new Event('change')); })()")
        means = self.texts("#kernels tr.mean td")
        self.assertEqual(means[1:], ["0.50", "0.51", "1.10", "0.90", "0.55", "0.90"])

    def test_runs_are_drawn_for_the_kernel_that_is_chosen(self):
        self.open(campaign())
        self.browser.run("(() => { const one = document.getElementById('kernel'); one.value = 'atax'; one.dispatchEvent(new Event('change')); })()")
        self.browser.settle()
        self.assertTrue(self.browser.run("document.querySelector('#runs canvas').getAttribute('aria-label')").startswith("atax, run by run"))
        inked = self.browser.run("(() => { const c = document.querySelector('#runs canvas'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n; })()")
        self.assertGreater(inked, 1000)

    def test_what_is_missing_is_listed_with_its_reason(self):
        self.open(campaign())
        self.assertEqual(len(self.texts("#absent li")), 1)
        self.assertIn("no daemon answers", self.text("#absent li"))

    def test_a_campaign_of_starts_alone_says_what_it_lacks(self):
        data = campaign()
        data |= {"kernels": [], "warm": [], "cells": [one for one in data["cells"] if one["kernel"] == "nothing"]}
        data["findings"] |= {"steady": [], "puzzle": None}
        self.open(data)
        self.assertEqual(self.text("h1"), "WebAssembly beside native code and containers")
        self.assertEqual(len(self.texts(".missing")), 4)

    def test_no_width_scrolls_sideways(self):
        for width in (380, 768, 1400):
            self.open(campaign(), width)
            self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width)

    def test_text_stays_text(self):
        data = copy.deepcopy(campaign())
        data["command"] = data["suite"] = data["paper"][0]["what"] = HOSTILE
        data["subjects"][5]["absent"] = data["subjects"][0]["mode"] = data["differences"] = [HOSTILE]
        data["differences"] = [HOSTILE]
        self.open(data)
        self.assertIsNone(self.browser.run("window.hacked ?? null"))
        self.assertIn("<img", self.text("#absent li"))


if __name__ == "__main__":
    unittest.main()
