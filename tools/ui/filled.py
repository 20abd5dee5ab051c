"""What tests of pages have in common that are filled with a document: a browser, and the page in it.

Invariant: one browser serves the tests of a class, and is gone after them; a page has no faults when it is opened.
"""
import json
import pathlib
import tempfile
import unittest

import build
from browser import Browser

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"


class Filled(unittest.TestCase):
    """The tests of a page: `template` is one of `build`."""
    template = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="metes-ui-page-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.__exit__)
        cls.browser.ask("Browser.setDownloadBehavior", behavior="deny")

    def open(self, data, width=1400, theme="light"):
        path = pathlib.Path(self.folder.name) / "page.html"
        path.write_text(build.fill(json.dumps(data), self.template))
        self.browser.size(width, 1000)
        self.browser.theme(theme)
        self.browser.open(path)
        self.assertEqual(self.browser.faults(), [])
        self.assertEqual(self.browser.run("document.documentElement.dataset.ready"), "yes")

    def text(self, selector):
        return self.browser.run(f"document.querySelector({json.dumps(selector)}).innerText")
