"""``metes device watch`` beside programs that use device heaps: on guarded memory, and on the model
of the CUDA driver."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from metes._command import command
from metes._device import PATH_VARIABLE, path
from test_device import MIB, PACKAGE, dry

PRELUDE = """
import ctypes, os, resource, sys
from metes import _device
from metes._device import Heap
MIB = 1 << 20
"""
#: Shows what the heap says of itself, and stays until its input ends.
SHOW = """
import json
def count(count):
    return {name: getattr(count, name) for name in ("current", "peak", "added", "removed")}
def show(heap):
    figures = heap.statistics()
    said = {name: count(getattr(figures.all, name)) for name in ("blocks", "allocated", "requested")}
    said["reserved"] = count(figures.reserved)
    said["pages"] = {
        "live": figures.live_pages, "idle": figures.idle_pages, "spare": figures.spare_pages,
        "mapped": figures.mapped, "moved": figures.moved, "most_moved": figures.most_moved}
    for name in ("cap", "page", "granule", "addresses", "streams", "marks", "waits", "orders",
                 "refusals", "retries", "bad_frees"):
        said[name] = getattr(figures, name)
    blocks = [(block.address, block.requested) for block in heap.blocks()]
    print(json.dumps(said | {"own_blocks": blocks}), flush=True)
"""


def metes(*arguments, status=0, **options):
    """What the command said."""
    done = subprocess.run(
        [command(), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )
    assert done.returncode == status, (arguments, done.returncode, done.stderr)
    return done.stdout if status == 0 else done.stderr


class Program:
    """A program with a heap, until it is told to end."""

    def __init__(self, code, **variables):
        environment = os.environ | {"PYTHONPATH": PACKAGE, PATH_VARIABLE: str(path().parent)}
        environment.pop("METES_DEVICE_WATCH", None)
        self.process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + SHOW + code + "\nsys.stdin.read()\n"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment | variables,
        )
        self.pid = self.process.pid

    def said(self):
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return json.loads(line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()


BUSY = """
heap = Heap.guarded(256 * MIB, streams=3)
kept = [heap.allocate((number % 37 + 1) * 70_000, stream=number % 2) for number in range(90)]
for address in kept[::3]:
    heap.free(address)
for wrong in (kept[0], 1):
    try:
        heap.free(wrong)
    except _device.DeviceError:
        pass
try:
    heap.allocate(200 * MIB)
except _device.DeviceError:
    pass
show(heap)
"""


def test_the_command_says_what_the_heap_says():
    with Program(BUSY, METES_DEVICE_WATCH="1") as program:
        said = program.said()
        view = json.loads(metes("--json", "device", "watch", program.pid, "--once"))
        blocks = said.pop("own_blocks")
        for name, value in said.items():
            shown = {key: view[name][key] for key in value} if isinstance(value, dict) else view[name]
            assert shown == value, name
        assert view["refusals"] == 1 and view["bad_frees"] == 2
        assert view["heap"] == f"{program.pid}.0" and view["device"] == "guarded"
        assert view["process"]["ended"] is False and view["rates"] is None
        # The map has the bytes of the blocks where they lie.
        used, start = {}, view["start"]
        for address, size in blocks:
            while size:
                page = (address - start) // view["page"]
                part = min(size, start + (page + 1) * view["page"] - address)
                used[page] = used.get(page, 0) + part
                address, size = address + part, size - part
        assert {number: cell["used"] for number, cell in enumerate(view["map"]) if cell["used"]} == used
        free, longest = 0, 0
        for number in range(view["addresses"] // view["page"]):
            free = 0 if number in used else free + 1
            longest = max(longest, free)
        assert view["largest_free_run"] == longest * view["page"]
        # Without a name, if no other heap of this machine may be watched; and by its file.
        text = metes("device", "watch", program.pid, stdin=subprocess.DEVNULL)
        assert f"{program.pid}.0 guarded" in text and "2 bad frees" in text
        assert all(len(line) <= 80 for line in text.splitlines())
        assert "\x1b" not in text


def test_a_stream_of_records_ends_with_the_program():
    code = """
heap = Heap.guarded(64 * MIB)
print("{}", flush=True)
for line in sys.stdin:
    kept = [heap.allocate(MIB) for _ in range(10)]
    for address in kept: heap.free(address)
"""
    with Program(code, METES_DEVICE_WATCH="1") as program:
        program.said()
        watch = subprocess.Popen(
            [command(), "--json", "device", "watch", str(program.pid), "--interval", "0.05"],
            stdout=subprocess.PIPE,
            text=True,
        )
        first = json.loads(watch.stdout.readline())
        program.process.stdin.write("\n")
        program.process.stdin.flush()
        view = first
        while view["blocks"]["added"] < 10 or view["blocks"]["current"]:
            view = json.loads(watch.stdout.readline())
        assert view["rates"]["seconds"] > 0 and len(view["history"]) >= 2
        program.process.stdin.close()
        program.process.wait()
        last = [json.loads(line) for line in watch.stdout][-1]
        assert last["process"]["ended"] is True and last["blocks"]["added"] == 10
        assert watch.wait() == 0
    assert "no device heap" in metes("device", "watch", program.pid, status=2)


def test_one_of_several():
    both = "one, two = Heap.guarded(64 * MIB), Heap.guarded(32 * MIB)\ntwo.allocate(5)\nshow(two)\n"
    with Program(both, METES_DEVICE_WATCH="1") as program, Program(BUSY, METES_DEVICE_WATCH="1") as other:
        program.said(), other.said()
        error = metes("device", "watch", status=2)
        for name in (f"{program.pid}.0", f"{program.pid}.1", f"{other.pid}.0"):
            assert name in error
        error = metes("device", "watch", program.pid, status=2)
        assert f"{program.pid}.1" in error and f"{other.pid}.0" not in error
        view = json.loads(metes("--json", "device", "watch", f"{program.pid}.1", "--once"))
        assert view["blocks"]["current"] == 1 and view["cap"] == 32 * MIB
        assert f"{program.pid}.0, {program.pid}.1" in metes("device", "watch", f"{program.pid}.7", status=2)


def test_a_fork_is_not_the_heaps_process():
    code = """
heap = Heap.guarded(64 * MIB)
heap.allocate(MIB)
child = os.fork()
if child == 0:
    try:
        heap.allocate(MIB)
    except _device.DeviceError:
        pass
    sys.stdin.read()
    os._exit(0)
print(json.dumps(child), flush=True)
"""
    with Program(code, METES_DEVICE_WATCH="1") as program:
        child = program.said()
        assert "no device heap" in metes("device", "watch", child, status=2)
        view = json.loads(metes("--json", "device", "watch", program.pid, "--once"))
        assert view["blocks"]["current"] == 1
        # The fork has the board still when the heap's process is gone.
        os.kill(program.pid, signal.SIGKILL)
        program.process.wait()
        for name in (program.pid, child):
            assert "no device heap" in metes("device", "watch", name, status=2)


def test_a_killed_program_leaves_nothing():
    with Program(BUSY, METES_DEVICE_WATCH="1") as program:
        program.said()
        files = [os.readlink(f"/proc/{program.pid}/fd/{file}") for file in os.listdir(f"/proc/{program.pid}/fd")]
        assert sum("metes-device-heap" in file for file in files) == 1
        watch = subprocess.Popen(
            [command(), "--json", "device", "watch", str(program.pid), "--interval", "0.05"],
            stdout=subprocess.PIPE,
            text=True,
        )
        before = json.loads(watch.stdout.readline())
        os.kill(program.pid, signal.SIGKILL)
        # A zombie, until it is waited for, has ended, too.
        last = [json.loads(line) for line in watch.stdout][-1]
        assert last["process"]["ended"] is True and last["blocks"] == before["blocks"]
        assert watch.wait() == 0


@pytest.mark.parametrize(
    "limit",
    [
        # Writing beyond such a limit would end the program.
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))",
        "resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir('/proc/self/fd'))), 64))",
    ],
)
def test_a_board_that_cannot_be_made_is_a_warning(limit):
    code = f"""
_device.library()
{limit}
heap = Heap.guarded(64 * MIB)
heap.free(heap.allocate(MIB))
heap.check()
show(heap)
"""
    with Program(code, METES_DEVICE_WATCH="1") as program:
        assert program.said()["blocks"]["added"] == 1
        assert "no device heap" in metes("device", "watch", program.pid, status=2)
        program.process.kill()
        error = program.process.stderr.read()
        assert "cannot be watched, and goes on" in error


def test_who_may_be_watched():
    """A heap of one's own if one asks, one of a device unless one does not."""
    own = "heap = Heap.guarded(64 * MIB, watch={})\nshow(heap)\n"
    device = "heap = Heap.of_device(0)\nshow(heap)\n"
    model = f"import ctypes; ctypes.CDLL({str(dry.library())!r})\n"
    none = f"{model}_device.configure(_device.Options(watch=2))\n"
    for code, variable, seen in [
        (own.format(0), None, False),
        (own.format(0), "1", True),
        (own.format(0), "0", False),
        (own.format(1), None, True),
        (own.format(1), "0", False),
        (own.format(2), None, False),
        (own.format(2), "1", True),
        (model + device, None, True),
        (model + device, "0", False),
        (none + device, None, False),
        (none + device, "1", True),
    ]:
        variables = {"METES_DEVICE_WATCH": variable} if variable else {}
        with Program(code, METES_DEVICE_BYTES=str(64 * MIB), **variables) as program:
            program.said()
            said = metes("--json", "device", "watch", program.pid, "--once", status=0 if seen else 2)
            if seen and "of_device" in code:
                assert json.loads(said)["device"] == "CUDA device 0"


def test_the_live_page():
    with Program(BUSY, METES_DEVICE_WATCH="1") as program:
        program.said()
        watch = subprocess.Popen(
            [command(), "--json", "device", "watch", str(program.pid), "--page", "--interval", "0.05"],
            stdout=subprocess.PIPE,
            text=True,
            # What this process's parent ignores, as a shell's background does, would stay ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        line, text = "", ""
        while not line.startswith("}"):
            line = watch.stdout.readline()
            text += line
        url = json.loads(text)["url"]
        assert url.startswith("http://127.0.0.1:")
        page = urllib.request.urlopen(url).read().decode()
        assert "connect-src 'self'" in page and f'"heap":"{program.pid}.0"' in page
        view = json.load(urllib.request.urlopen(url + "view"))
        assert view["refusals"] == 1
        # What another site makes a browser ask is not answered.
        for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(urllib.request.Request(url + "view", headers=headers))
        port = url.rstrip("/").rsplit(":", 1)[1]
        error = metes("device", "watch", program.pid, "--page", f"127.0.0.1:{port}", status=2)
        assert "another port" in error
        program.process.kill()
        program.process.wait()
        while not view["process"]["ended"]:
            view = json.load(urllib.request.urlopen(url + "view"))
        watch.send_signal(signal.SIGINT)
        assert watch.wait() == 0


def test_a_page_of_a_moment(tmp_path):
    with Program(BUSY, METES_DEVICE_WATCH="1") as program:
        program.said()
        page = tmp_path / "heap.html"
        metes("device", "watch", program.pid, "-o", page)
        assert "connect-src 'none'" in page.read_text()
        assert "METES_" not in page.read_text().replace("METES_DEVICE_WATCH", "")
        assert "check the path" in metes("device", "watch", program.pid, "-o", tmp_path / "no" / "x", status=2)


@pytest.mark.parametrize(("key", "status"), [(b"q", 0), (b"\x03", 0), (signal.SIGTERM, 0)])
def test_a_terminal_is_left_as_it_was(key, status):
    import termios

    with Program(BUSY, METES_DEVICE_WATCH="1") as program:
        program.said()
        own, terminal = pty.openpty()
        termios.tcsetwinsize(own, (40, 100))
        before = termios.tcgetattr(terminal)
        watch = subprocess.Popen(
            [command(), "device", "watch", str(program.pid), "--interval", "0.05"],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
            env=os.environ | {"TERM": "xterm", "LC_ALL": "C.UTF-8", "NO_COLOR": "1"},
        )

        def read_until(*wanted):
            nonlocal text
            while not all(part in text for part in wanted):
                assert select.select([own], [], [], 60)[0], text
                text += os.read(own, 65536)

        text = b""
        read_until(b"\x1b[?1049h", b"bad frees", "█".encode())
        assert b"\x1b[3" not in text, "colours, though none are wanted"
        # A smaller one: no line is longer than it is wide.
        termios.tcsetwinsize(own, (12, 50))
        os.kill(watch.pid, signal.SIGWINCH)
        text = b""
        read_until(b"\x1b[?2026l")
        text = b""
        read_until(b"\x1b[?2026h", b"\x1b[?2026l")
        if isinstance(key, bytes):
            os.write(own, key)
        else:
            watch.send_signal(key)
        text = b""
        read_until(b"\x1b[?1049l", b"\x1b[?25h")
        assert watch.wait() == status
        assert termios.tcgetattr(terminal) == before
        os.close(own), os.close(terminal)
