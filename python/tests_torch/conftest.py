"""What the tests with a framework have in common: the command, a device, scripts.

Needs torch (scripts/dry-torch), the command and the library of the dry device.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LLAMA = str(ROOT / "python" / "examples" / "llama.py")
os.environ.setdefault("METES", str(ROOT / "target" / "release" / "metes"))


class Dry:
    """Runs scripts on the dry device."""

    def __init__(self, place):
        self.place = place

    def script(self, text):
        path = self.place / "script.py"
        path.write_text("import torch\n" + text)
        return str(path)

    def run(self, *arguments, **variables):
        """The exit status, the document if there is one, and what was said."""
        path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT / "python")]))
        done = subprocess.run(
            [sys.executable, "-m", "metes.dry", "--json", *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"PYTHONPATH": path} | variables,
            cwd=self.place,
        )
        document = json.loads(done.stdout) if done.stdout else None
        return done.returncode, document, done.stderr


@pytest.fixture
def dry(tmp_path):
    """See Dry."""
    return Dry(tmp_path)
