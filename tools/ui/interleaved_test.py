#!/usr/bin/env python3
"""Test of the page of threads in other orders in a real browser: `python3 tools/ui/interleaved_test.py`.

An invented document is filled in as the Rust side does. Needs the Debian package chromium.
"""
import copy
import unittest

import build
import sample
from filled import HOSTILE, Filled

DOCUMENT = {"version": 1, "kind": "interleaved", "title": "3 threads in any order", "created": "2026-01-15T10:42:07Z", "trace": "t.trace.parquet"} | sample.interleaved("tlsf:mapped=128KiB")


class Page(Filled):
    template = build.INTERLEAVED

    def test_what_holds_for_every_order_is_said(self):
        self.open(DOCUMENT)
        self.assertIn("takes up to 1.191\u00a0× as much in one order as in another", self.text("h1"))
        self.assertIn("No order has more than 6,400,000\u00a0B live, and some order has as much", self.text("header"))
        self.assertEqual(self.browser.run("document.querySelectorAll('table.interleaved tbody tr').length"), 2)
        self.assertEqual(self.browser.run("document.querySelectorAll('canvas').length"), 1)
        self.assertIn("find it taken", self.text("#threads"))
        data = copy.deepcopy(DOCUMENT)
        data["live"] |= {"exact": False, "reached": 6_000_000}
        self.open(data)
        self.assertIn("and some order has 6,000,000\u00a0B", self.text("header"))

    def test_what_is_not_there_is_not_zero(self):
        data = copy.deepcopy(DOCUMENT)
        data["live"]["drawn"] = data["heaps"][0]["drawn"] = None
        data["shuffles"], data["sharing"]["taken"] = 0, []
        self.open(data)
        self.assertEqual(self.browser.run("document.querySelectorAll('canvas').length"), 0)
        self.assertIn("no times", self.text("#threads"))
        for word in ("undefined", "NaN", "null"):
            self.assertNotIn(word, self.text("main"))

    def test_strings_are_text_never_markup(self):
        data = copy.deepcopy(DOCUMENT)
        data["title"] = data["trace"] = data["heaps"][0]["heap"] = HOSTILE
        self.open(data)
        self.assertIsNone(self.browser.run("window.hacked ?? null"))

    def test_no_width_scrolls_sideways(self):
        for width in (380, 1400):
            self.open(DOCUMENT, width)
            self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width)


if __name__ == "__main__":
    unittest.main()
