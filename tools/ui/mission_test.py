#!/usr/bin/env python3
"""Test of the page of a mission in a real browser: `python3 tools/ui/mission_test.py SCIENCE_PAGE`.

SCIENCE_PAGE is the built example of metes-duster, which writes the page of an invented mission and the truth behind it;
what the page shows is compared with the truth. A page that is served is given by a server of this test. Needs the Debian
package chromium.
"""
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import build
from browser import Browser

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"
EMPTY = {"version": 1, "title": "none", "every": None, "packets": 0, "bytes": 0, "lost": 0, "unread": 0, "now": 0, "mode": None, "ended": True,
         "bias": {"unit": "V", "scale": 1}, "probes": [], "windows": {}, "sweeps": [], "dust": [], "reports": [], "services": [], "counts": {}}


def setUpModule():
    global browser, folder, truth, view
    folder = pathlib.Path(tempfile.mkdtemp(prefix="metes-ui-mission-"))
    subprocess.run([SCIENCE_PAGE, folder, "4"], check=True)
    truth, view = (json.loads((folder / f"{name}.json").read_text()) for name in ("truth", "view"))
    browser = Browser()
    browser.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))


def tearDownModule():
    browser.__exit__()


class MissionPage(unittest.TestCase):
    def open(self, path=None, width=1400, theme="light"):
        browser.size(width, 1000)
        browser.theme(theme)
        browser.open(path or folder / "science.html")
        self.assertEqual(browser.run("document.documentElement.dataset.ready"), "yes")

    def invented(self, **more):
        """A page of another document."""
        path = folder / "invented.html"
        path.write_text(build.fill(json.dumps(EMPTY | more), build.MISSION))
        self.open(path)

    def text(self, selector):
        return browser.run(f"document.querySelector({json.dumps(selector)}).innerText")

    def facts(self, selector):
        pairs = browser.run(f"[...document.querySelectorAll({json.dumps(selector + ' > div')})].map((e) => [e.children[0].innerText, e.children[1].innerText])")
        return dict(pairs)

    def painted(self, canvas):
        """Whether something stands in a canvas that is not of one colour."""
        return browser.run(f"""(() => {{ const c = document.getElementById({json.dumps(canvas)}), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data, seen = new Set();
          for (let k = 0; k < d.length; k += 4) seen.add(d[k] << 16 | d[k + 1] << 8 | d[k + 2]); return seen.size; }})()""") > 8

    def test_the_heading_sums_up(self):
        self.open()
        self.assertEqual(browser.faults(), [])
        self.assertEqual(self.text("#headline"), f"{sum(map(len, truth['samples'])):,} samples, none missing.")
        figures = self.facts("#figures")
        self.assertEqual(figures["Sweeps"].split()[0], str(len(truth["sweeps"])))
        self.assertEqual(figures["Impacts"].split()[0], str(len(truth["dust"])))
        slowest = max(detected - at for at, detected, _, _ in truth["dust"]) / 1000
        self.assertIn(f"{slowest:.2f}", figures["Impacts"])
        self.assertEqual(self.text("#mode"), "STANDBY")

    def test_sweeps_are_those_of_the_unit(self):
        self.open()
        for number, steps in enumerate(truth["sweeps"]):
            browser.run(f"(() => {{ const s = document.getElementById('sweep'); s.value = '{number}'; s.dispatchEvent(new Event('change')); }})()")
            self.assertEqual(browser.run(f"metes.mission.sweeps[{number}].steps"), steps)
            facts = self.facts("#sweep-facts")
            self.assertEqual(facts["Steps"], f"{len(steps):,}")
            self.assertEqual(facts["Samples a step"], "50")
            self.assertIn("Electron temperature", facts)
        self.assertTrue(self.painted("sweep-plot"))

    def test_a_fit_is_shown_or_why_there_is_none(self):
        sweep = {"id": 1, "packet": 1, "acquisition": 1, "rate": 5000, "time": 0, "steps": [[k, k, 1, k] for k in range(5)], "unfit": "too few steps for a fit"}
        probes = [{"name": "Langmuir", "unit": "A", "scale": 1e-9, "rate": 5000, "samples": 5, "missing": 0, "together": 1, "at": [0], "low": [1], "high": [2]}]
        self.invented(sweeps=[sweep], probes=probes)
        self.assertEqual(self.facts("#sweep-facts")["Fit"], "too few steps for a fit")
        self.invented(sweeps=[sweep | {"fit": {"floating": None, "plasma": 2, "temperature": 1.5, "ion": 3, "electron": 400, "explained": 0.9999, "curve": [[0, 1], [4, 4]]}}], probes=probes)
        facts = self.facts("#sweep-facts")
        self.assertEqual((facts["Electron temperature"], facts["Floating potential"], facts["Electron saturation current"]), ("1.5\u00a0eV", "outside of the sweep", "400\u00a0nA"))

    def test_impacts_are_listed_and_shown(self):
        self.open()
        browser.run("document.querySelector('#dust-table th[data-key=time] button').click()")
        rows = browser.run("[...document.querySelectorAll('#dust-table tbody tr')].map((row) => [...row.children].map((cell) => cell.innerText))")
        shown = [f"{round(at / 1000) / 1000:.3f}".rstrip("0").rstrip(".") for at, *_ in sorted(truth["dust"])[:len(rows)]]
        self.assertEqual([row[0].split("\u00a0")[0] for row in rows], shown)
        browser.run("document.querySelectorAll('#dust-table .pick')[1].click()")
        second = sorted(truth["dust"])[1]
        self.assertEqual(browser.run("[metes.now.dust.time, metes.now.dust.detected, metes.now.dust.peak, metes.now.dust.charge]"), second)
        self.assertTrue(self.text("#dust-name").startswith(f"Impact at {shown[1]}"))
        self.assertEqual(browser.run("Math.max(...metes.now.dust.samples)"), second[2])

    def test_records_span_all_samples(self):
        self.open()
        for number, samples in enumerate(truth["samples"]):
            low, high = browser.run(f"[Math.min(...metes.mission.probes[{number}].rows.map((r) => r[1])), Math.max(...metes.mission.probes[{number}].rows.map((r) => r[2]))]")
            self.assertEqual((low, high), (min(samples), max(samples)))
            self.assertTrue(self.painted(f"samples-{number}"))
        self.assertTrue(self.painted("field-plot"))
        self.assertIn(f"{len(truth['windows']):,} windows", self.text("#field-lead"))

    def test_what_is_missing_is_told(self):
        probe = {"name": "DUST", "unit": "codes", "scale": 1, "rate": 10000, "samples": 9616, "missing": 384, "together": 1, "at": [0, 1], "low": [1, -5], "high": [2, 2]}
        self.invented(probes=[probe], packets=30, lost=1)
        self.assertEqual(self.text("#headline"), "9,616 samples, 384 missing.")
        self.assertIn("1 lost", self.facts("#figures")["Packets"])
        self.assertIn("384 missing", self.text("#samples"))

    def test_a_served_page_follows(self):
        later, asked = (folder / "later.json").read_bytes(), []

        class Server(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                body = (folder / "served.html").read_bytes() if self.path == "/" else later
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8" if self.path == "/" else "application/json")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.open(f"http://127.0.0.1:{server.server_address[1]}/")
        for _ in range(100):
            if self.text("#state") == "the run has ended":
                break
            time.sleep(0.1)
        self.assertEqual(self.text("#state"), "the run has ended")
        server.shutdown()
        server.server_close()
        # It asked for what is behind what it had, once, as it was then told that the run has ended.
        half = view["packets"] // 2
        self.assertEqual(asked, ["/", f"/science?after={half}"])
        self.assertEqual(self.text("#headline"), f"{sum(map(len, truth['samples'])):,} samples, none missing.")
        self.assertEqual(browser.run("metes.mission.sweeps.map((one) => one.steps)"), truth["sweeps"])
        self.assertEqual(browser.run("metes.mission.dust.length"), len(truth["dust"]))
        self.assertEqual(browser.run("metes.mission.reports.length"), len(view["reports"]))

    def test_a_server_that_is_gone_is_told(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
        page = (folder / "served.html").read_bytes()

        class Once(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200 if self.path == "/" else 500)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(page if self.path == "/" else b"no unit")

            def log_message(self, *_):
                pass

        server.RequestHandlerClass = Once
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.open(f"http://127.0.0.1:{server.server_address[1]}/")
        for _ in range(100):
            if "no answer" in self.text("#state"):
                break
            time.sleep(0.1)
        self.assertEqual(self.text("#state"), "no answer: no unit")
        server.shutdown()
        server.server_close()

    def test_exports_hold_all(self):
        self.open()
        for name, button in (("sweeps.csv", "export-sweeps"), ("dust.csv", "export-dust")):
            (folder / name).unlink(missing_ok=True)
            browser.run(f"document.getElementById({json.dumps(button)}).click()")
            for _ in range(100):
                if (folder / name).exists():
                    break
                time.sleep(0.1)
        rows = (folder / "sweeps.csv").read_text().splitlines()[1:]
        self.assertEqual(len(rows), sum(map(len, truth["sweeps"])))
        self.assertEqual([int(v) for v in rows[0].split(",")[3:]], truth["sweeps"][0][0])
        self.assertEqual(len((folder / "dust.csv").read_text().splitlines()) - 1, len(truth["dust"]))

    def test_nothing_yet(self):
        self.invented(title=HOSTILE, reports=[{"id": 1, "packet": 1, "time": 5, "severity": 4, "text": HOSTILE}])
        self.assertEqual(browser.faults(), [])
        self.assertIsNone(browser.run("window.hacked ?? null"))
        self.assertEqual(self.text("#headline"), "No sample has come in yet.")
        for section, said in (("sweeps", "No sweep"), ("field", "No window"), ("dust", "No impact")):
            self.assertIn(said, self.text(f"#{section}"))
        self.assertIn("img src=x", self.text("#reports"))

    def test_damaged_data_is_named(self):
        for text, said in (("null", "holds no data"), ('{"version": 7}', "version 7"), ("[]", "an object was expected")):
            path = folder / "damaged.html"
            path.write_text(build.fill(text, build.MISSION))
            browser.open(path)
            self.assertEqual(browser.run("document.documentElement.dataset.ready"), "no")
            self.assertIn(said, self.text(".fatal"))

    def test_it_fits_every_width(self):
        for width in (390, 768, 1400):
            for theme in ("light", "dark"):
                self.open(width=width, theme=theme)
                self.assertEqual(browser.run("document.documentElement.scrollWidth"), width)
                self.assertEqual(browser.faults(), [])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    SCIENCE_PAGE = os.path.abspath(sys.argv.pop(1))
    unittest.main()
