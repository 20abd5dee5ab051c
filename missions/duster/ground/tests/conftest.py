"""What all tests of the ground need: the definitions, an invented mission, a unit that runs.

Invariant: a test that needs the unit starts one of its own, on a port that is free, and ends it.
"""
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

import pytest

GROUND = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(GROUND))

import definitions  # noqa: E402  (found by the line before)


#: Where programs are that were built before; without it cargo builds them.
BUILT = os.environ.get("DUSTER_BUILT")


def program(example: str | None, package: str) -> list[str]:
    """The command of an example of a package, or of `metes`."""
    if BUILT:
        return [str(pathlib.Path(BUILT) / (f"examples/{example}" if example else "metes"))]
    return ["cargo", "run", "-q", "-p", package, *(["--example", example] if example else []), "--"]


@pytest.fixture(scope="session")
def known():
    """The definitions of this checkout."""
    return definitions.load()


@pytest.fixture(scope="session")
def golden():
    """The packets on file: written by the flight software's codec, one of each kind."""
    return json.loads((definitions.ROOT / "missions/duster/protocol/tests/golden/packets.json").read_text())


@pytest.fixture(scope="session")
def invented(tmp_path_factory):
    """A folder with an invented mission's telemetry, and what it should tell."""
    place = tmp_path_factory.mktemp("invented")
    subprocess.run([*program("science_page", "metes-duster"), str(place), "4"], cwd=definitions.ROOT, check=True)
    return place


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port: int, process: subprocess.Popen, patience: float, what: str):
    """Waits until a process listens on a port."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"{what} ended with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"{what} does not listen on port {port} after {patience} s")


class Unit:
    """A unit that runs: `metes mission serve`, with its ports."""

    def __init__(self, *more: str):
        self.port, self.page = free_port(), free_port()
        command = [*program(None, "metes-cli"), "mission", "serve", "--tcp", str(self.port), "--http", str(self.page), *more]
        self.process = subprocess.Popen(command, cwd=definitions.ROOT, stdout=subprocess.DEVNULL)
        wait_for(self.port, self.process, 600, "metes mission serve")

    def end(self):
        """Ends it."""
        self.process.terminate()
        self.process.wait(20)


@pytest.fixture(scope="module")
def unit():
    """A unit for the tests of a module."""
    running = Unit("--seed", "19")
    yield running
    running.end()
