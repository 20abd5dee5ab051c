#!/usr/bin/env python3
"""Test of the explorer in a real browser, through Playwright: `tools/ui/explorer_test.py METES SAMPLE`.

METES is the built command, SAMPLE the built example of metes-explorer that writes result folders.
What the page shows is compared with what Python works out from the CSV export of the same folder.
Needs: PyPI package playwright, Debian package chromium.
"""
import csv
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from playwright.sync_api import sync_playwright

WIDTHS = {"laptop": (1280, 900), "phone": (390, 844)}
POINTS = 100_000


def run(*command, status=0):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert done.returncode == status, f"{command}: status {done.returncode}\n{done.stderr}"
    return done


def setUpModule():
    global folder, playwright, chromium, rows, large_rows
    folder = pathlib.Path(tempfile.mkdtemp(prefix="metes-explorer-"))
    for name, more in (("real", []), ("large", [POINTS])):
        run(SAMPLE, folder / name, *more)
        run(METES, "report", folder / name, "--explorer", "-o", folder / f"{name}.html")
        run(METES, "report", folder / name, "--export", "csv", "-o", folder / f"{name}.csv")
    read = lambda name: list(csv.DictReader(io.StringIO((folder / f"{name}.csv").read_text())))
    rows, large_rows = read("real"), read("large")
    print(f"explorer: {len(large_rows):,} configurations make a file of {(folder / 'large.html').stat().st_size:,} bytes "
          f"({(folder / 'real.html').stat().st_size:,} bytes with {len(rows)})", flush=True)
    playwright = sync_playwright().start()
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not program:
        raise SystemExit("ui: chromium is not installed; install the Debian package `chromium` or set CHROMIUM")
    chromium = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])


def tearDownModule():
    chromium.close()
    playwright.stop()
    shutil.rmtree(folder)


def kept(where, test=lambda row: True):
    """Rows that the page keeps: complete and beaten ones that pass a test."""
    return [row for row in where if row["status"] in ("complete", "beaten") and test(row)]


class ExplorerTest(unittest.TestCase):
    def open(self, address, size="laptop", theme="light"):
        width, height = WIDTHS[size]
        self.context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=theme, reduced_motion="reduce", accept_downloads=True)
        self.addCleanup(self.context.close)
        self.page = self.context.new_page()
        self.page.set_default_timeout(120_000)  # a busy machine draws 100 000 points slowly
        self.faults = []
        self.page.on("console", lambda m: self.faults.append(f"console: {m.text}") if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda e: self.faults.append(f"exception: {e}"))
        address = str(address)
        self.page.on("request", lambda r: None if r.url.startswith(("data:", "blob:")) or r.url.startswith(address) else self.faults.append(f"request: {r.url}"))
        self.page.goto(address)
        self.page.wait_for_function("() => document.documentElement.dataset.ready !== undefined")
        self.assertEqual(self.page.evaluate("document.documentElement.dataset.ready"), "yes")

    def file(self, name):
        return (folder / f"{name}.html").as_uri()

    def quiet(self):
        self.assertEqual(self.faults, [])

    def settle(self):
        self.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(() => done(1)))))")

    def tally(self):
        self.settle()
        return int(self.page.inner_text(".tally strong").replace(",", ""))

    def column(self, index):
        return self.page.eval_on_selector_all("table.configurations tbody tr", f"(all) => all.map((r) => r.children[{index}].innerText.trim())")

    def numbers(self):
        return [int(re.sub(r"\D", "", cell.split("\n")[0])) if "№" in cell else cell.split()[0] for cell in self.column(0)]

    def brush(self, key, low, high):
        """Drag along an axis, between two heights from 0 (bottom) to 1."""
        self.page.locator("canvas.parallel").scroll_into_view_if_needed()
        # On a narrow window the axes scroll: bring the wanted one into sight.
        self.page.evaluate("(key) => { const s = document.querySelector('.parallel-scroll'); const x = metes.parallel.place(key, 0)[0]; s.scrollLeft += x - s.clientWidth / 2; }", key)
        self.settle()
        x, bottom = self.page.evaluate("([key, t]) => metes.parallel.place(key, t)", [key, low])
        _, top = self.page.evaluate("([key, t]) => metes.parallel.place(key, t)", [key, high])
        self.page.mouse.move(x, bottom)
        self.page.mouse.down()
        for k in range(1, 6):
            self.page.mouse.move(x, bottom + (top - bottom) * k / 5)
        self.page.mouse.up()
        self.settle()


class Page(ExplorerTest):
    def test_loads_whole_without_errors_or_requests(self):
        for size, (width, _) in WIDTHS.items():
            for name, where in (("real", rows), ("large", large_rows)):
                with self.subTest(f"{name} {size}"):
                    self.open(self.file(name), size, "dark" if size == "phone" else "light")
                    self.assertEqual(self.tally(), len(kept(where)))
                    self.assertLessEqual(self.page.evaluate("document.documentElement.scrollWidth"), width)
                    inked = self.page.evaluate("""[...document.querySelectorAll('canvas')].map((c) => {
                        const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0;
                        for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n; })""")
                    self.assertEqual(len(inked), 3 if name == "real" else 2, "scatter, axes, and the course of a real search")
                    self.assertTrue(all(n > 1000 for n in inked), inked)
                    self.assertLess(self.page.evaluate("document.querySelectorAll('*').length"), 4000, "points must not be nodes")
                    self.quiet()

    def test_brush_filters_scatter_and_table(self):
        depths = sorted({int(row["depth"]) for row in rows})
        for size in WIDTHS:
            with self.subTest(size):
                self.open(self.file("real"), size)
                # Lower half of an axis with even places: all depths but the largest.
                self.brush("depth", 0.0, 0.6)
                wanted = kept(rows, lambda row: int(row["depth"]) in depths[:2])
                self.assertEqual(self.tally(), len(wanted))
                self.assertIn("Depth", self.page.inner_text(".chips"))
                self.page.check("#table input[type=radio] >> nth=1")
                self.page.wait_for_function(f"document.querySelector('#table .position').innerText.endsWith('of {len(wanted)}')")
                self.brush("fit", 0.6, 1.0)
                words = sorted({row["fit"] for row in rows})
                high = [word for k, word in enumerate(words) if k / (len(words) - 1) >= 0.6]
                wanted = kept(wanted, lambda row: row["fit"] in high)
                self.assertEqual(self.tally(), len(wanted))
                self.page.click(".reset")
                self.assertEqual(self.tally(), len(kept(rows)))
                self.quiet()

    def test_ranges_as_numbers_and_status(self):
        self.open(self.file("large"))
        self.page.click(".ranges summary")
        self.page.fill("input[data-key=footprint][data-side='1']", "400000")
        self.page.press("input[data-key=footprint][data-side='1']", "Tab")
        small = lambda row: int(row["footprint"]) <= 400_000
        self.assertEqual(self.tally(), len(kept(large_rows, small)))
        self.page.fill("input[data-key=accesses][data-side='0']", "100000000")
        self.page.press("input[data-key=accesses][data-side='0']", "Tab")
        both = lambda row: small(row) and int(row["accesses"]) >= 100_000_000
        self.assertEqual(self.tally(), len(kept(large_rows, both)))
        self.page.uncheck("input[data-status=beaten]")
        self.assertEqual(self.tally(), len([row for row in large_rows if row["status"] == "complete" and both(row)]))
        self.quiet()

    def test_keyboard_alone_brushes_and_selects(self):
        self.open(self.file("real"))
        self.page.focus("canvas.parallel")
        for _ in range(3):
            self.page.keyboard.press("ArrowRight")
        self.page.keyboard.press("ArrowDown")
        most = max(int(row["dedicated_pools"]) for row in rows)
        self.assertEqual(self.tally(), len(kept(rows, lambda row: int(row["dedicated_pools"]) < most)))
        self.page.keyboard.press("Delete")
        self.assertEqual(self.tally(), len(kept(rows)))
        self.page.focus("canvas.scatter")
        self.page.keyboard.press("ArrowRight")
        self.assertIn("Front 1 of", self.page.inner_text("#say"))
        self.page.keyboard.press("Enter")
        least = min((row for row in rows if row["front"] == "1"), key=lambda row: int(row["footprint"]))
        self.assertIn(least["number"] if not least["named"] else least["named"], self.page.inner_text("#details h3"))
        self.page.keyboard.press("c")
        self.assertEqual(self.page.locator("table.side thead .letter").count(), 1)
        nameless = self.page.evaluate("""[...document.querySelectorAll('button, input, select, a, canvas[tabindex]')]
            .filter((e) => !(e.textContent.trim() || e.getAttribute('aria-label') || e.closest('label')?.innerText.trim())).map((e) => e.outerHTML)""")
        self.assertEqual(nameless, [])
        self.quiet()

    def test_rectangle_in_the_scatter_keeps_what_lies_in_it(self):
        self.open(self.file("large"))
        box = self.page.locator("canvas.scatter").bounding_box()
        self.page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + box["height"] * 0.3)
        self.page.mouse.down()
        self.page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5, steps=4)
        self.page.mouse.up()
        some = self.tally()
        self.assertTrue(0 < some < POINTS, some)
        ranges = self.page.evaluate("['footprint', 'accesses'].map((key) => metes.model.columns.get(key).range)")
        inside = lambda row: all(low <= int(row[key]) <= high for key, (low, high) in zip(("footprint", "accesses"), ranges))
        self.assertEqual(some, len(kept(large_rows, inside)))

    def test_sorting(self):
        self.open(self.file("real"))
        self.page.check("#table input[type=radio] >> nth=1")
        for key in ("accesses", "footprint"):
            self.page.click(f"table.configurations th[data-key={key}] button")
            head = f"document.querySelector('table.configurations th[data-key={key}]').getAttribute('aria-sort')"
            for direction in ("ascending", "descending"):
                if self.page.evaluate(head) != direction:
                    self.page.click(f"table.configurations th[data-key={key}] button")
                by = sorted(kept(rows), key=lambda row: int(row[key]), reverse=direction == "descending")
                shown = [row["named"] or int(row["number"]) for row in by[:15]]
                ties = [int(row[key]) for row in by[:15]]
                got = self.numbers()
                values = {row["named"] or int(row["number"]): int(row[key]) for row in rows}
                self.assertEqual([values[name] for name in got], ties)
                self.assertEqual(len(set(got)), 15)
                self.assertEqual(got[0], shown[0])
        self.quiet()

    def test_comparison_shows_the_inside(self):
        for size in WIDTHS:
            with self.subTest(size):
                self.open(self.file("real"), size)
                self.page.click(".suggest")
                front = [row for row in rows if row["front"] == "1"]
                chosen = self.page.evaluate("metes.model.compared.map((i) => metes.model.number[i])")
                self.assertTrue(2 <= len(chosen) <= 4 and set(chosen) <= {int(row["number"]) for row in front})
                cells = self.page.eval_on_selector_all("table.side tbody:first-of-type tr:first-child td > span", "(all) => all.map((e) => e.title)")
                self.assertEqual([int(re.sub(r"\D", "", cell)) for cell in cells], [int(rows[i]["footprint"]) for i in chosen])
                self.settle()
                drawn = self.page.evaluate("""[...document.querySelectorAll('#comparison canvas')].map((c) => {
                    const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0;
                    for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n; })""")
                self.assertEqual(len(drawn), 2)
                self.assertTrue(all(n > 1000 for n in drawn), drawn)
                # Pools and causes make up the whole difference, as the columns have it.
                for key, group in (("accesses", 0), ("footprint", 1)):
                    total = int(self.page.locator(".why-group").nth(group).get_attribute("data-total"))
                    self.assertEqual(total, int(rows[chosen[0]][key]) - int(rows[chosen[1]][key]))
                boxes = self.page.locator("table.configurations input[type=checkbox]")
                for k in range(boxes.count()):
                    boxes.nth(k).click()
                self.assertLessEqual(self.page.locator("table.side thead .letter").count(), 4)
                self.quiet()

    def test_a_heap_is_recommended_with_its_bound(self):
        self.open(self.file("real"))
        front = [row for row in rows if row["front"] == "1"]
        fewest = min(int(row["accesses"]) for row in front)
        wanted = min((row for row in front if 2 * int(row["accesses"]) <= 3 * fewest), key=lambda row: int(row["footprint"]))
        advice = self.page.inner_text("#advice")
        self.assertIn(f"We would take {wanted['named'] or '№ ' + wanted['number']}.", advice)
        self.assertTrue("always suffice for this live peak" in advice or "No finite size is known" in advice, advice)
        self.assertEqual(self.page.evaluate("metes.model.number[metes.model.selected]"), int(wanted["number"]))
        said = json.loads((folder / "real/exploration.json").read_text())
        place = [heap["number"] for heap in said["front"]].index(int(wanted["number"])) + 1
        self.assertIn(f"pareto/{place:03}.toml", self.page.inner_text(".emit-part"))
        self.quiet()

    def test_no_point_lies_below_the_front(self):
        self.open(self.file("large"))
        below = """() => { const { x, y } = metes.model.scatter, { model } = metes, front = model.frontRows;
            const places = metes.model.scatter.places();
            let low = 0; for (let i = 0; i < model.n; i += 1) if (places[i] >= 0 && !model.front[i]
                && front.every((k) => x.values[k] > x.values[i] || y.values[k] > y.values[i])) low += 1; return low; }"""
        self.assertEqual(self.page.evaluate(below), 0)
        whole = sum(row["status"] == "complete" for row in large_rows)
        self.assertEqual(self.page.evaluate("metes.model.scatter.places().filter((cell) => cell >= 0).length"), whole)
        self.page.check("input[data-bounds]")
        self.settle()
        self.assertEqual(self.page.evaluate("metes.model.scatter.places().filter((cell) => cell >= 0).length"), POINTS)
        self.quiet()

    def test_offline_emission_shows_heap_and_command(self):
        self.open(self.file("real"))
        number = self.page.evaluate("metes.model.number[metes.model.selected]")
        said = json.loads((folder / "real/exploration.json").read_text())
        toml = next(heap["toml"] for heap in said["front"] if heap["number"] == number)
        self.assertEqual(self.page.evaluate("document.querySelector('.emit-part .block code').textContent"), toml)
        self.assertIn(f"metes emit --heap heap-{number:03}.toml -o emitted --build", self.page.inner_text(".emit-part"))
        self.assertEqual(self.page.locator("button.emit").count(), 0)
        # The text is what the command takes.
        (folder / f"heap-{number:03}.toml").write_text(toml)
        run(METES, "emit", "--heap", folder / f"heap-{number:03}.toml", "-o", folder / "emitted")

    def test_csv_of_what_is_kept(self):
        self.open(self.file("real"))
        self.brush("depth", 0.0, 0.6)
        with self.page.expect_download() as saved:
            self.page.click("#export-csv")
        got = list(csv.DictReader(io.StringIO(pathlib.Path(saved.value.path()).read_text())))
        self.assertEqual(len(got), self.tally())
        known = {row["number"]: row for row in rows}
        self.assertTrue(all(row["footprint"] == known[row["number"]]["footprint"] for row in got))

    def test_frame_time_of_a_brush(self):
        """Printed, not asserted: it is the machine's as much as the page's."""
        self.open(self.file("large"))
        script = """async () => { const column = metes.model.columns.get('depth'); const canvas = document.querySelector('canvas.parallel');
            canvas.scrollIntoView({ block: 'center' }); const frame = () => new Promise((done) => requestAnimationFrame(done)); await frame(); await frame();
            const send = (kind, t) => { const [x, y] = metes.parallel.place('depth', t); canvas.dispatchEvent(new PointerEvent(kind, { clientX: x, clientY: y, bubbles: true, pointerId: 1, button: 0 })); };
            canvas.setPointerCapture = () => {}; const times = []; send('pointerdown', 0);
            for (let k = 1; k <= 40; k += 1) { const start = performance.now(); send('pointermove', k / 40); await frame(); await frame(); times.push(performance.now() - start); }
            send('pointerup', 1); times.sort((a, b) => a - b); return [times[20], times[37]]; }"""
        median, slow = self.page.evaluate(script)
        work = self.page.evaluate("""() => { const { model } = metes; const column = model.columns.get('depth'); const times = [];
            for (let k = 0; k < 20; k += 1) { column.range = [0, k]; const start = performance.now(); metes.step(); times.push(performance.now() - start); }
            times.sort((a, b) => a - b); return times[10]; }""")
        print(f"explorer: a move of a brush over {POINTS:,} configurations: {work:.1f} ms of work in the page; "
              f"two frames later on the screen after {median:.0f} ms (median), {slow:.0f} ms (95 %)", flush=True)
        self.quiet()


class Server(ExplorerTest):
    def setUp(self):
        self.process = subprocess.Popen([METES, "serve", folder / "real", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(self.end)
        self.url = self.process.stdout.readline().strip()
        self.assertRegex(self.url, r"^http://127\.0\.0\.1:\d+/$")

    def end(self):
        self.process.terminate()
        self.assertEqual(self.process.wait(10), 0)
        self.process.stdout.close()

    def test_emits_and_offers_the_files(self):
        for size in WIDTHS:
            with self.subTest(size):
                self.open(self.url, size)
                number = self.page.evaluate("metes.model.number[metes.model.selected]")
                self.page.click("button.emit")
                self.page.wait_for_selector(".files a")
                names = self.page.eval_on_selector_all(".files a", "(all) => all.map((e) => e.textContent)")
                self.assertIn("c/heap.c", names)
                self.assertIn("heap.toml", names)
                place = folder / "real/emitted" / f"{number:03}"
                with self.page.expect_download() as saved:
                    self.page.click(".files a >> text=c/heap.c")
                self.assertEqual(pathlib.Path(saved.value.path()).read_text(), (place / "c/heap.c").read_text())
                with self.page.expect_download() as saved:
                    self.page.click("a.button >> text=All, CSV")
                self.assertEqual(len(pathlib.Path(saved.value.path()).read_text().splitlines()), len(rows) + 1)
                self.quiet()

    def test_a_port_in_use_is_said(self):
        port = self.url.rsplit(":", 1)[1].strip("/")
        done = run(METES, "serve", folder / "real", "--port", port, status=2)
        self.assertIn(f"port {port} of this machine is in use", done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1)


class BadInput(unittest.TestCase):
    def test_one_error_and_status_2(self):
        empty = folder / "empty"
        empty.mkdir()
        cut = folder / "cut"
        shutil.copytree(folder / "real", cut, ignore=shutil.ignore_patterns("emitted"))
        data = (cut / "results.parquet").read_bytes()
        (cut / "results.parquet").write_bytes(data[:len(data) // 2])
        for arguments, said in [
            (["serve", empty], "holds no results of an exploration"),
            (["report", empty, "--explorer"], "holds no results of an exploration"),
            (["report", cut, "--explorer"], "damaged or cut short"),
            (["report", cut, "--export", "csv"], "damaged or cut short"),
            (["report", folder / "real", "--explorer", "-o", folder / "no/such/page.html"], "cannot write"),
            (["report", folder / "real", "--export", "xlsx", "-o", folder / "empty"], "cannot write"),
        ]:
            with self.subTest(" ".join(map(str, arguments))):
                done = run(METES, *arguments, status=2)
                self.assertIn(said, done.stderr)
                self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: explorer_test.py METES SAMPLE [TEST...]")
    METES, SAMPLE = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    del sys.argv[1:3]
    unittest.main()
