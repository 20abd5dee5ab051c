"""What the tests have in common: the command, a trace, a space.

Needs the command: METES, or target/release/metes of this repository.
"""

import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SPACE = str(HERE / "space.toml")
COMMAND = os.environ.setdefault(
    "METES", str(HERE.parent.parent / "target" / "release" / "metes")
)


@pytest.fixture(scope="session")
def trace(tmp_path_factory):
    """A queue of packets as a trace file."""
    place = tmp_path_factory.mktemp("trace")
    lines, live = [], []
    for serial in range(1, 301):
        size = [1514, 66, 1514, 400, 200][serial * serial % 7 % 5] + serial % 3
        lines.append(f"a,{serial},{size}")
        live.append(serial)
        while len(live) > 30 + serial * 13 % 50:
            lines.append(f"f,{live.pop(0)},0")
    text = place / "packets.csv"
    text.write_text("\n".join(lines) + "\n")
    path = place / "packets.trace.parquet"
    subprocess.run([COMMAND, "trace", "import", text, "-o", path], check=True, capture_output=True)
    return str(path)
