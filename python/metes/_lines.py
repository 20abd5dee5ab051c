"""Lines of a script, found among those of the framework.

Invariant: a line is of the user if its file is neither of Python, nor installed, nor ours.
"""

import functools
import os
import sysconfig

#: Files of this package.
OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
#: Files that come with Python.
PYTHON = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")})
#: Directories of what is installed.
INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


@functools.cache
def users(file: str) -> bool:
    """Whether a file is of the user."""
    return not (
        file.startswith(("<", OWN, *PYTHON)) or any(place in file for place in INSTALLED)
    )


@functools.cache
def frameworks(file: str) -> bool:
    """Whether a file says nothing of who asked: the framework's, Python's or ours."""
    if file.startswith(("<", OWN)):
        return True
    installed = any(place in file for place in INSTALLED)
    if not installed:
        return file.startswith(PYTHON)
    return any(place + "torch" + os.sep in file for place in INSTALLED)


def shown(file: str, line: int, name: str) -> str:
    """A frame, as people read it."""
    return f"{short(file)}:{line} in {name}"


@functools.cache
def short(file: str) -> str:
    """A file, from its package on."""
    for place in INSTALLED:
        if place in file:
            return file.split(place)[-1]
    here = os.getcwd() + os.sep
    return file[len(here) :] if file.startswith(here) else file


def user_line(frame) -> str | None:
    """The innermost line of the user that leads to ``frame``."""
    while frame is not None:
        code = frame.f_code
        if users(code.co_filename):
            return shown(code.co_filename, frame.f_lineno, code.co_name)
        frame = frame.f_back
    return None


def stack(frames: list[dict]) -> list[str]:
    """Frames of a history, innermost first, without those of the launcher."""
    lines = []
    for frame in frames:
        file = frame["filename"]
        # What ran the script, and what ran that.
        if file.startswith(OWN) and frame["name"] == "run" and file.endswith("_dry_run.py"):
            break
        lines.append((file, frame["line"], frame["name"]))
    while lines and lines[-1][0] == "<frozen runpy>":
        lines.pop()
    return [shown(*line) for line in lines]


def line(frames: list[dict]) -> str | None:
    """The innermost line of the user; else the innermost that is not of the framework."""
    for wanted in (users, lambda file: not frameworks(file)):
        for frame in frames:
            if wanted(frame["filename"]):
                return shown(frame["filename"], frame["line"], frame["name"])
    return None
