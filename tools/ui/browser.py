"""A headless Chromium driven over its debugging pipe, with Python's standard library alone.

Invariant: one request in flight at a time; events that arrive in between are kept in order.
Needs the Debian package `chromium` (or CHROMIUM naming another build of it).
"""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync", "--disable-extensions",
         "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars", "--mute-audio"]


class Browser:
    """A browser with one page. Use as a context manager: it ends the process it started."""

    def __init__(self):
        program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
        if not program:
            raise SystemExit("ui: chromium is not installed; install the Debian package `chromium` or set CHROMIUM")
        self.profile = tempfile.mkdtemp(prefix="metes-ui-")
        to_read, self.out = os.pipe()
        self.into, to_write = os.pipe()

        def wire():  # Chromium reads requests from descriptor 3 and writes answers to 4
            read, write = os.dup(to_read), os.dup(to_write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self.process = subprocess.Popen([program, *FLAGS, f"--user-data-dir={self.profile}", "--remote-debugging-pipe", "about:blank"],
                                        preexec_fn=wire, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.rest, self.events, self.last, self.session = b"", [], 0, None
        target = next(t for t in self.ask("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        os.close(self.into)
        shutil.rmtree(self.profile, ignore_errors=True)

    def ask(self, method, **params):
        """Send one request and wait for its answer."""
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        while True:
            answer = self.receive(120)
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def receive(self, patience):
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.into], [], [], patience)
            chunk = os.read(self.into, 1 << 20) if ready else b""
            if not chunk:
                raise RuntimeError("chromium does not answer (it ended, or hangs)")
            self.rest += chunk
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def size(self, width, height, scale=1):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False)

    def theme(self, name):
        # Reduced motion: a smooth scroll under way would move what is about to be clicked.
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}, {"name": "prefers-reduced-motion", "value": "reduce"}])

    def open(self, path):
        """Load a file, or what a server of this machine has, and wait until the page says that it is drawn. Events restart with it."""
        self.ask("Page.navigate", url="about:blank")
        self.events.clear()
        self.ask("Page.navigate", url=path if str(path).startswith("http:") else pathlib.Path(path).resolve().as_uri())
        for _ in range(600):
            if self.run("document.documentElement?.dataset.ready !== undefined && document.readyState === 'complete'"):
                break
            time.sleep(0.1)
        else:
            raise RuntimeError(f"{path}: the page never finished")
        self.settle()

    def settle(self):
        """Wait for two frames, so that what was asked for is drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def run(self, script):
        """Value of a JavaScript expression in the page (promises are awaited)."""
        result = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True, userGesture=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script}: {result['exceptionDetails'].get('exception', {}).get('description', 'exception')}")
        return result["result"].get("value")

    def mouse(self, kind, x, y, **more):
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)
        self.settle()

    def drag(self, x0, y0, x1, y1):
        self.mouse("mouseMoved", x0, y0)
        self.mouse("mousePressed", x0, y0, button="left", clickCount=1)
        for k in range(1, 5):
            self.mouse("mouseMoved", x0 + (x1 - x0) * k / 4, y0 + (y1 - y0) * k / 4, button="left", buttons=1)
        self.mouse("mouseReleased", x1, y1, button="left", clickCount=1)
        self.settle()

    def key(self, name):
        code = {"Enter": 13, "Escape": 27, "ArrowRight": 39, "ArrowLeft": 37, "Tab": 9, " ": 32}[name]
        text = {"Enter": "\r", " ": " "}.get(name)
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=name, windowsVirtualKeyCode=code, **({"text": text} if text else {}))
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=name, windowsVirtualKeyCode=code)
        self.settle()

    def picture(self, path, whole=True):
        """Write a PNG of the whole page (or of the window)."""
        data = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        pathlib.Path(path).write_bytes(base64.b64decode(data["data"]))

    def faults(self):
        """Console errors, exceptions, log errors and requests beyond the page's own file since `open`."""
        out = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                out.append(f"exception: {params['exceptionDetails'].get('exception', {}).get('description')}")
            elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                out.append(f"console: {params['args']}")
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                out.append(f"log: {params['entry']['text']}")
            elif method == "Network.requestWillBeSent":
                url = params["request"]["url"]
                if not (url.startswith("file:") and params.get("type") == "Document") and not url.startswith(("data:", "blob:", "about:")):
                    out.append(f"request: {url}")
        return out
