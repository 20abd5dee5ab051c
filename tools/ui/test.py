#!/usr/bin/env python3
"""Test of the report page in a real browser: `python3 tools/ui/test.py`.

Loads every sample (and damaged ones) in headless Chromium and checks what a reader would see and do.
Needs: Debian packages chromium and python3-jsonschema.
"""
import copy
import json
import math
import pathlib
import re
import tempfile
import unittest
import xml.etree.ElementTree

import build
import sample
from browser import Browser

try:
    import jsonschema
except ImportError as missing:
    raise SystemExit("tools/ui/test.py: install the Debian package python3-jsonschema") from missing

SCHEMA = json.loads((build.HERE / "report.schema.json").read_text())
SAMPLES = {name: sample.document(name) for name in ("small", "large", "degenerate", "differs")}
HOSTILE = "</script><script>window.hacked=1</script><!--<script><img src=x onerror='window.hacked=1'>'\"`$(id)"


def setUpModule():
    global browser, folder
    folder = tempfile.TemporaryDirectory(prefix="metes-ui-pages-")
    browser = Browser()
    browser.ask("Browser.setDownloadBehavior", behavior="deny")


def tearDownModule():
    browser.__exit__()
    folder.cleanup()


class PageTest(unittest.TestCase):
    """Opens pages; every test ends with the check that nothing went wrong behind the scenes."""

    def open(self, data, width=1400, theme="light"):
        return self.open_text(build.fill(json.dumps(data)), width, theme)

    def open_text(self, html, width=1400, theme="light"):
        path = pathlib.Path(folder.name) / "page.html"
        path.write_text(html)
        browser.size(width, 1000)
        browser.theme(theme)
        browser.open(path)
        self.quiet()

    def quiet(self):
        browser.run("1")  # events that are under way arrive before this answer
        self.assertEqual(browser.faults(), [])

    def text(self, selector):
        return browser.run(f"document.querySelector({json.dumps(selector)})?.innerText")

    def column(self, table, index):
        return browser.run(f"[...document.querySelectorAll('{table} tbody tr')].map((r) => r.children[{index}].innerText.trim())")

    def press(self, selector):
        """Click the middle of an element with the mouse."""
        x, y = browser.run(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center', behavior: 'instant'}});"
                           " const r = e.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]; })()")
        browser.click(x, y)

    def tally(self):
        return int(self.text(".tally strong").replace(",", ""))

    def slide(self, column, which, step):
        browser.run(f"(() => {{ const e = document.querySelector('input.{which}[data-column={column}]'); e.value = {step}; e.dispatchEvent(new Event('input')); }})()")
        browser.settle()


class Samples(PageTest):
    def test_samples_follow_the_schema(self):
        for name, data in SAMPLES.items():
            with self.subTest(name):
                jsonschema.validate(data, SCHEMA)

    def test_each_sample_is_shown_whole(self):
        for name, data in SAMPLES.items():
            with self.subTest(name):
                self.open(data)
                self.assertEqual(browser.run("document.documentElement.dataset.ready"), "yes")
                self.assertEqual(browser.run("document.querySelectorAll('table.heaps tbody tr').length"), len(data["heaps"]))
                front = len(data["configurations"]["pareto"])
                self.assertEqual(browser.run("document.querySelectorAll('table.configurations tbody tr').length"), min(25, front))
                self.assertEqual(self.tally(), len(data["configurations"]["rows"]))
                self.assertIn(data["chosen"]["spec"], self.text("header"))
                self.assertIn(f"{front} point{'' if front == 1 else 's'}, none dominated", self.text("#provenance"))
                self.assertLess(browser.run("document.querySelectorAll('*').length"), 4000, "points must not be nodes")

    def test_no_width_scrolls_sideways(self):
        for width in (380, 768, 1400):
            for name in ("small", "differs", "degenerate"):
                with self.subTest(f"{name} {width}"):
                    self.open(SAMPLES[name], width)
                    self.assertLessEqual(browser.run("document.documentElement.scrollWidth"), width)

    def test_tables_keep_within_the_page_and_their_rows_low(self):
        for width in (420, 1400):
            self.open(SAMPLES["small"], width)
            boxes = browser.run("[...document.querySelectorAll('.scroll')].map((e) => { const r = e.getBoundingClientRect(); return [r.left, r.right]; })")
            self.assertGreaterEqual(len(boxes), 3)
            for left, right in boxes:
                self.assertTrue(0 <= left and right <= width, (width, left, right))
            tall = browser.run("Math.max(...[...document.querySelectorAll('table.heaps tbody tr')].map((row) => row.getBoundingClientRect().height))")
            self.assertLess(tall, 50)
        proofs = browser.run("document.querySelector('.proofs').textContent")
        for heap in SAMPLES["small"]["heaps"]:
            self.assertIn(heap["bounds"]["formula"] if heap["bounds"] and heap["bounds"]["formula"] else heap["name"], proofs)

    def test_canvases_are_drawn(self):
        inked = """[...document.querySelectorAll('canvas')].map((c) => {
            const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0;
            for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n; })"""
        for name in ("small", "large"):
            with self.subTest(name):
                self.open(SAMPLES[name])
                self.assertEqual(len(browser.run(inked)), 5)
                self.assertTrue(all(n > 500 for n in browser.run(inked)))

    def test_verdict_says_what_the_data_says(self):
        self.open(SAMPLES["small"])
        self.assertIn("Predicted = measured.", self.text("#proof"))
        self.open(SAMPLES["differs"])
        self.assertIn("Predicted ≠ measured.", self.text("#proof"))
        self.assertIn("does not allocate the same way twice", self.text("#proof"))
        self.assertIn("event 4,117", self.text("#proof"))
        self.assertIn("+12,288", self.text("#proof"))
        self.open(SAMPLES["degenerate"])
        self.assertIn("Predicted, not measured.", self.text("#proof"))

    def test_the_plot_says_how_many_configurations_its_points_stand_for(self):
        data = copy.deepcopy(SAMPLES["small"])
        rows = len(data["configurations"]["rows"])
        data["configurations"] |= {"evaluated": 56_798, "distinct": rows}
        self.open(data)
        self.assertIn(f"The {rows} different outcomes of 56,798 evaluated configurations", self.text("#tradeoffs .lead"))
        data["configurations"]["distinct"] = rows + 1
        self.open(data)
        self.assertIn(f"{rows} of the {rows + 1} different outcomes", self.text("#tradeoffs .lead"))

    def test_equality_is_never_claimed_against_the_figures(self):
        data = copy.deepcopy(SAMPLES["small"])
        data["chosen"]["measured"]["footprint"] += 1
        self.open(data)
        self.assertIn("≠", self.text("#proof"))
        data = copy.deepcopy(SAMPLES["small"])
        data["chosen"]["placements"] = {"events": 10, "equal": False, "first_difference": {"event": 3}}
        self.open(data)
        self.assertIn("not every placement", self.text("#proof"))

    def test_measured_and_guaranteed_footprint_stand_on_one_axis(self):
        data = SAMPLES["small"]
        self.open(data)
        rows = self.column("table.guarantees", 0)
        self.assertIn(data["chosen"]["spec"], rows[0])
        self.assertIn("without a guarantee", rows[1])
        guaranteed = self.column("table.guarantees", 2)
        self.assertEqual(len(rows) - guaranteed.count("none"), browser.run("document.querySelectorAll('.guarantees .span').length"))
        # A guarantee lies to the right of what was measured.
        left = lambda kind: browser.run(f"document.querySelector('tr.chosen .reach .{kind}').getBoundingClientRect().left")
        self.assertLess(left("measured"), left("guaranteed"))
        without = copy.deepcopy(data)
        without["guarantee"] = None
        self.open(without)
        self.assertEqual(browser.run("document.querySelectorAll('table.guarantees').length"), 0)

    def test_allocators_stand_beside_each_other(self):
        data = SAMPLES["differs"]
        self.open(data)
        names = self.column("table.beside", 0)
        self.assertEqual([name.split()[0] for name in names], [row["allocator"] for row in data["beside"]["rows"]])
        self.assertIn("5 runs on each", self.text("#beside"))
        self.assertIn("was ended by signal 11", self.text("table.beside tbody tr:last-child"))
        self.assertEqual(self.column("table.beside", 2)[:2], ["1.000\u00a0×", "0.862\u00a0×"])
        self.assertEqual(self.column("table.beside", 2)[-1], "–")
        self.assertIn("snmalloc (its sources)", self.text("#beside"))
        self.assertIn("Instructions are not counted", self.text("#beside"))
        data = copy.deepcopy(data)
        data["beside"] |= {"not_run": "a run takes 12 s", "rows": []}
        self.open(data)
        self.assertIn("Not run: a run takes 12 s", self.text("#beside"))
        self.assertEqual(browser.run("document.querySelectorAll('table.beside').length"), 0)

    def test_threads_are_shown_in_other_orders(self):
        self.open(SAMPLES["differs"])
        self.assertIn("No order has more than 6,400,000\u00a0B live, and some order has as much", self.text("#orders"))
        self.assertEqual(len(self.column("table.interleaved", 0)), 2)
        self.assertEqual(len(self.column("table.threads", 0)), 3)
        self.assertIn("12,345", self.text("#orders ul"))

    def test_a_dominated_point_in_the_front_is_reported(self):
        data = copy.deepcopy(SAMPLES["small"])
        worst = max(range(len(data["configurations"]["rows"])), key=lambda i: data["configurations"]["rows"][i][0])
        data["configurations"]["pareto"].append(worst)
        self.open(data)
        self.assertRegex(self.text("#provenance"), r"1 of \d+ points is dominated")


class Use(PageTest):
    def test_sorting_heaps(self):
        data = SAMPLES["small"]
        self.open(data)
        by = sorted(data["heaps"], key=lambda heap: heap["footprint"])
        first = lambda: [name.split()[0] for name in self.column("table.heaps", 0)]
        self.assertEqual(first(), [heap["name"] for heap in by])
        self.press("table.heaps th[data-key=footprint] button")
        self.assertEqual(first(), [heap["name"] for heap in reversed(by)])
        self.assertEqual(browser.run("document.querySelector('table.heaps th[data-key=footprint]').getAttribute('aria-sort')"), "descending")
        for _ in range(2):  # a heap without a bound comes last in both directions
            self.press("table.heaps th[data-key=heap_bytes] button")
            unbounded = sum(1 for heap in data["heaps"] if not heap["bounds"] or heap["bounds"]["heap_bytes"] is None)
            place = browser.run("document.querySelector('table.heaps th[data-key=heap_bytes]').cellIndex")
            bounds = self.column("table.heaps", place)
            self.assertEqual(bounds[-unbounded:], ["–"] * unbounded)
            self.assertNotIn("–", bounds[:-unbounded])
        self.quiet()

    def test_slider_filters_scatter_and_table(self):
        data = SAMPLES["large"]
        self.open(data)
        rows = data["configurations"]["rows"]
        values = [row[0] for row in rows] + [heap["footprint"] for heap in data["heaps"]]
        low, high = min(values), max(values)
        self.assertLess(high / low, 6, "the expectation below is for a linear slider")
        limit = low + 0.3 * (high - low)
        inside = [i for i, row in enumerate(rows) if row[0] <= limit]
        self.slide("footprint", "high", 300)
        self.assertEqual(self.tally(), len(inside))
        kept = len(set(inside) & set(data["configurations"]["pareto"]))
        self.assertEqual(browser.run("document.querySelectorAll('table.configurations tbody tr').length"), min(25, kept))
        cycles = [row[1] for row in rows] + [heap["cycles_mean"] for heap in data["heaps"]]
        self.slide("cycles", "low", 500)  # logarithmic: its values span more than a factor of 6
        middle = math.sqrt(min(cycles) * max(cycles))
        self.assertEqual(self.tally(), sum(1 for i in inside if rows[i][1] >= middle))
        self.press(".filter-head button")
        self.assertEqual(self.tally(), len(rows))
        self.quiet()

    def test_words_filter_by_specification(self):
        data = SAMPLES["large"]
        self.open(data)
        browser.run("document.getElementById('words').focus()")
        browser.ask("Input.insertText", text="fit=best pools=2")
        browser.settle()
        wanted = sum(1 for spec in data["configurations"]["specs"] if spec and "fit=best" in spec and "pools=2" in spec)
        self.assertGreater(wanted, 0)
        self.assertEqual(self.tally(), wanted)
        self.press(".filter-head button")
        self.assertEqual(self.tally(), 100_000)
        self.assertEqual(browser.run("document.getElementById('words').value"), "")
        self.quiet()

    def test_handles_do_not_pass_each_other(self):
        self.open(SAMPLES["small"])
        self.slide("footprint", "low", 600)
        self.slide("footprint", "high", 200)
        self.assertEqual(browser.run("document.querySelector('input.high[data-column=footprint]').value"), "600")

    def test_empty_filter_says_so(self):
        self.open(SAMPLES["small"])
        self.slide("footprint", "low", 1000)
        self.slide("cycles", "low", 1000)
        self.assertEqual(self.tally(), 0)
        self.assertIn("widen or reset", self.text("table.configurations"))
        self.quiet()

    def scatter_box(self):
        return browser.run("(() => { const e = document.querySelector('canvas.scatter'); e.scrollIntoView({block: 'center', behavior: 'instant'}); const r = e.getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; })()")

    def test_drag_filters_and_double_click_resets(self):
        self.open(SAMPLES["large"])
        x, y, w, t = self.scatter_box()
        browser.drag(x + w * 0.3, y + t * 0.3, x + w * 0.6, y + t * 0.8)
        some = self.tally()
        self.assertTrue(0 < some < 100_000, some)
        browser.drag(x + w * 0.4, y + t * 0.4, x + w * 0.5, y + t * 0.7)
        self.assertTrue(0 < self.tally() < some)
        for clicks in (1, 2):
            browser.mouse("mousePressed", x + w * 0.9, y + t * 0.1, button="left", clickCount=clicks)
            browser.mouse("mouseReleased", x + w * 0.9, y + t * 0.1, button="left", clickCount=clicks)
        browser.settle()
        self.assertEqual(self.tally(), 100_000)
        self.quiet()

    def test_hover_tells_and_click_shows_the_same_point(self):
        for name in ("small", "large"):
            with self.subTest(name):
                self.open(SAMPLES[name])
                x, y, w, t = self.scatter_box()
                found = None
                for k in range(400):
                    px, py = x + w * (0.2 + 0.6 * (k % 20) / 20), y + t * (0.15 + 0.6 * (k // 20) / 20)
                    browser.mouse("mouseMoved", px, py)
                    if not browser.run("document.getElementById('tip').hidden"):
                        found = self.text(".tip-title")
                        break
                self.assertIsNotNone(found, "no point under 400 places of the pointer")
                browser.click(px, py)
                self.assertEqual(self.text("#details h3"), found)
                self.assertIn("Selected", self.text("#details"))
                self.quiet()

    def test_keyboard_walks_the_front(self):
        self.open(SAMPLES["small"])
        before = self.text("#details h3")
        browser.run("document.querySelector('canvas.scatter').focus()")
        browser.key("ArrowRight")
        browser.key("ArrowRight")
        self.assertTrue(self.text("#say").startswith("Front 2 of"))
        browser.key("Enter")
        self.assertNotEqual(self.text("#details h3"), before)
        browser.key("Escape")
        self.assertEqual(self.text("#details h3"), before)

    def test_row_opens_details_with_commands(self):
        self.open(SAMPLES["small"])
        self.press("table.heaps tbody tr:last-child .pick")
        last = SAMPLES["small"]["heaps"]
        worst = max(last, key=lambda heap: heap["footprint"])
        self.assertEqual(self.text("#details h3"), worst["name"])
        self.assertIn(f"metes replay trace.parquet --heap {worst['spec']}", self.text("#details").replace("\n", " "))
        self.press("#details .close")
        self.assertIn("Chosen heap", self.text("#details"))

    def test_pages_of_all_configurations(self):
        self.open(SAMPLES["large"])
        self.press("#tradeoffs input[name=which]:not(:checked)")
        self.assertIn("1–25 of 100,000", self.text("#tradeoffs .pager"))
        first = self.column("table.configurations", 1)
        self.press("#tradeoffs .pager button:last-child")
        self.assertIn("26–50 of 100,000", self.text("#tradeoffs .pager"))
        self.press("table.configurations th[data-key=footprint] button")
        self.assertNotEqual(self.column("table.configurations", 1), first)
        self.assertIn("1–25 of 100,000", self.text("#tradeoffs .pager"))

    def test_curves_toggle_and_zoom(self):
        self.open(SAMPLES["small"])
        box = lambda: browser.run("(() => { const r = document.querySelector('#memory canvas').getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; })()")

        def picture():
            browser.mouse("mouseMoved", 1, 1)
            browser.settle()
            return hash(browser.run("document.querySelector('#memory canvas').toDataURL()"))

        whole = picture()
        self.press("#memory .legend button[aria-pressed=true]")
        self.assertNotEqual(picture(), whole)
        self.press("#memory .legend button")
        self.assertEqual(picture(), whole)
        x, y, w, t = box()
        browser.drag(x + w * 0.3, y + t * 0.5, x + w * 0.5, y + t * 0.5)
        along = picture()
        self.assertNotEqual(along, whole)
        self.assertFalse(browser.run("document.querySelector('#memory .whole').disabled"))
        self.press("#memory .whole")
        self.assertTrue(browser.run("document.querySelector('#memory .whole').disabled"))
        self.assertEqual(picture(), whole)
        x, y, w, t = box()
        browser.drag(x + w * 0.3, y + t * 0.3, x + w * 0.5, y + t * 0.7)
        self.assertNotIn(picture(), (along, whole), "a rectangle looks closer in both directions")
        self.press("#memory .whole")
        browser.run("document.querySelector('#memory canvas').focus()")
        browser.key("ArrowRight")
        self.assertTrue(self.text("#say").startswith("event "))
        self.quiet()

    def test_a_double_click_leaves_one_curve(self):
        self.open(SAMPLES["small"])
        browser.run("document.querySelector('#memory .legend button:last-child').dispatchEvent(new MouseEvent('dblclick', { bubbles: true }))")
        on = browser.run("[...document.querySelectorAll('#memory .legend button')].map((b) => b.getAttribute('aria-pressed'))")
        self.assertEqual(on.count("true"), 1)
        self.assertEqual(on[-1], "true")

    def test_the_reading_says_what_the_curves_have(self):
        data = SAMPLES["small"]
        self.open(data)
        browser.run("document.querySelector('#memory canvas').focus()")
        browser.key("ArrowRight")
        event = int(re.match(r"event ([\d,]+)", self.text("#say"))[1].replace(",", ""))
        live = [value for at, value in data["profile"]["live"] if at <= event][-1]
        self.assertIn(f"{live / 2**20:.2f}\u00a0MiB live bytes", self.text("#say"))

    def test_a_plot_is_saved_as_a_picture(self):
        self.open(SAMPLES["small"])
        picture = self.saved("#memory .save")
        root = xml.etree.ElementTree.fromstring(picture)
        self.assertTrue(root.tag.endswith("}svg"), root.tag)
        words = [node.text for node in root.iter() if node.tag.endswith("}text")]
        self.assertIn("event →", words)
        self.assertIn("kingsley", words)
        self.assertNotIn("NaN", picture)
        self.assertGreaterEqual(sum(node.tag.endswith("}path") for node in root.iter()), 6)

    def saved(self, button):
        browser.run("window.savedBlob = null; URL.createObjectURL = ((make) => (blob) => { window.savedBlob = blob; return make.call(URL, blob); })(URL.createObjectURL)")
        self.press(button)
        return browser.run("window.savedBlob.text()")

    def test_exports(self):
        data = SAMPLES["small"]
        self.open(data)
        self.slide("footprint", "high", 400)
        lines = self.saved("#export-configurations").strip().split("\n")
        self.assertEqual(len(lines), self.tally() + 1)
        self.assertEqual(lines[0], "row,spec,footprint,cycles,record_accesses,front,chosen")
        heaps = self.saved("#export-heaps")
        self.assertEqual(len(heaps.strip().split("\n")), len(data["heaps"]) + 1)
        self.assertIn(str(data["heaps"][0]["footprint"]), heaps)
        self.assertEqual(json.loads(self.saved("#export-json")), data)
        script = self.saved("#export-gnuplot")
        block = re.search(r"\$configurations << EOD\n(.*?)\nEOD", script, re.S)
        self.assertEqual(len(block.group(1).split("\n")), self.tally())
        self.assertIn("plot $configurations", script)

    def test_copy_buttons_answer(self):
        self.open(SAMPLES["small"])
        self.press("#details .copy")
        self.assertIn(self.text("#details .copy"), ("Copied", "Select and copy by hand"))

    def test_every_control_has_a_name(self):
        self.open(SAMPLES["small"])
        nameless = browser.run("""[...document.querySelectorAll('button, input, select, a, canvas[tabindex]')]
            .filter((e) => !(e.innerText?.trim() || e.getAttribute('aria-label') || e.closest('label')?.innerText.trim())).map((e) => e.outerHTML)""")
        self.assertEqual(nameless, [])


class Looks(PageTest):
    def contrast(self, one, other):
        def light(colour):
            parts = [int(colour[k:k + 2], 16) / 255 for k in (1, 3, 5)]
            r, g, b = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
            return 0.2126 * r + 0.7152 * g + 0.0722 * b
        a, b = sorted((light(one), light(other)), reverse=True)
        return (a + 0.05) / (b + 0.05)

    def test_text_has_contrast_in_both_themes(self):
        for theme in ("light", "dark"):
            self.open(SAMPLES["small"], theme=theme)
            self.assertEqual(browser.run("document.documentElement.dataset.theme"), theme)
            colour = lambda name: browser.run(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}').trim()")
            for front, back, least in [(f, b, 4.5) for f in ("ink", "soft", "chosen", "front", "named") for b in ("paper", "panel")] + \
                    [("good", "good-tint", 4.5), ("bad", "bad-tint", 4.5), ("part", "part-tint", 4.5), ("ink", "bar", 4.5), ("ink", "chosen-tint", 4.5), ("paper", "chosen", 4.5)] + \
                    [(f"series-{k}", "paper", 3) for k in range(1, 9)]:
                with self.subTest(f"{theme}: {front} on {back}"):
                    self.assertGreaterEqual(self.contrast(colour(front), colour(back)), least)

    def test_theme_button(self):
        self.open(SAMPLES["small"], theme="dark")
        self.press("button.theme")
        self.assertEqual(browser.run("document.documentElement.dataset.theme"), "light")

    def test_prints_and_comes_back(self):
        self.open(SAMPLES["small"], theme="dark")
        self.assertGreater(len(browser.ask("Page.printToPDF", printBackground=True)["data"]), 20_000)
        browser.settle()
        self.assertEqual(browser.run("document.documentElement.dataset.theme"), "dark")
        self.quiet()


class BadData(PageTest):
    def message(self, raw, expected):
        self.open_text(build.template().replace(build.DATA, raw) if raw is not None else build.template())
        self.assertEqual(browser.run("document.documentElement.dataset.ready"), "no")
        self.assertIn(expected, self.text("[role=alert]"))

    def test_unreadable_documents_are_explained(self):
        self.message(None, "This report holds no data.")
        self.message("null", "This report holds no data.")
        self.message("", "This report holds no data.")
        self.message('{"version":1,"title":', "not valid JSON")
        self.message("[1,2]", "an object was expected")
        self.message("{}", "version null")
        self.message('{"version":2}', "reads version 1")

    def test_missing_sections_are_named_and_spare_the_rest(self):
        for key in ("configurations", "heaps", "profile"):
            with self.subTest(key):
                data = copy.deepcopy(SAMPLES["small"])
                del data[key]
                self.open(data)
                self.assertIn(f"“{key}” is missing", self.text("main"))
                self.assertEqual(browser.run("document.querySelectorAll('section').length"), 6)
        self.open({"version": 1})
        self.assertIn("No heap was chosen.", self.text("h1"))
        self.assertEqual(browser.run("document.querySelectorAll('.missing').length"), 4)

    def test_any_section_of_any_kind_leaves_a_readable_page(self):
        for key in SAMPLES["small"]:
            for value in (None, 7, "text", [], {}, [None], [[1, None, "x"]], {"rows": 3}):
                if key == "version":
                    continue
                with self.subTest(f"{key} = {value}"):
                    data = copy.deepcopy(SAMPLES["small"])
                    data[key] = value
                    self.open(data)
                    self.assertEqual(browser.run("document.documentElement.dataset.ready"), "yes")
                    # What is guaranteed has a section where the demand is known.
                    self.assertEqual(browser.run("document.querySelectorAll('section').length"), 5 if key == "guarantee" else 6)
                    self.assertNotIn("undefined", self.text("main"))
                    self.assertNotIn("NaN", self.text("main"))

    def test_rows_without_figures_are_counted_not_drawn(self):
        data = copy.deepcopy(SAMPLES["small"])
        data["configurations"]["rows"][:3] = [[1, None, 2], "row", [4]]
        self.open(data)
        self.assertEqual(self.tally(), len(data["configurations"]["rows"]) - 3)
        self.assertIn("3 configurations without finite figures are left out", self.text("#provenance"))

    def test_strings_are_text_never_markup(self):
        data = copy.deepcopy(SAMPLES["small"])
        data["title"] = data["host"] = data["chosen"]["why"] = data["chosen"]["toml"] = HOSTILE
        data["chosen"]["spec"] = data["heaps"][0]["name"] = data["heaps"][0]["spec"] = HOSTILE
        data["command"] = [HOSTILE]
        data["assumptions"] = [HOSTILE]
        data["heaps"][0]["bounds"]["formula"] = HOSTILE
        self.open(data)
        self.assertIsNone(browser.run("window.hacked ?? null"))
        self.assertEqual(browser.run("document.querySelectorAll('img').length"), 0)
        self.assertIn(HOSTILE, self.text("#provenance"))

    def test_nothing_in_the_page_points_outside(self):
        self.assertEqual(re.findall(r"(?:https?:)?//[a-z0-9-]+\.[a-z]{2,}", build.template()), [])
        self.assertIn("default-src 'none'", build.template())


if __name__ == "__main__":
    unittest.main()
