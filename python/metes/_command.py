"""How the ``metes`` command is found and what goes wrong with it."""

import os
import shutil
import sysconfig
from pathlib import Path


class MetesError(RuntimeError):
    """What the ``metes`` command said when it could not do its work."""

    @classmethod
    def no_command(cls, program):
        """There is no such command."""
        return cls(f"there is no command {program}: put metes on the PATH, or name it in METES")


def command(metes=None) -> str:
    """The command: the one given, named by METES, installed with this package, or on the PATH."""
    installed = Path(sysconfig.get_path("scripts")) / "metes"
    own = str(installed) if installed.is_file() else None
    return metes or os.environ.get("METES") or own or shutil.which("metes") or "metes"
