"""The dry device's launcher, without a framework: what it reads, and what it says of bad input."""

import argparse
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from metes import MetesError, dry
from metes._elf import needed


#: The grammar of quantities by examples, which the command is held to as well.
QUANTITIES = json.loads((Path(__file__).parents[2] / "core/quantity/tests/quantities.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("text", "bytes_"), QUANTITIES["sizes"].items())
def test_sizes(text, bytes_):
    assert dry.size(text) == bytes_


@pytest.mark.parametrize("text", QUANTITIES["no_sizes"])
def test_what_is_no_size(text):
    with pytest.raises(MetesError, match="GiB"):
        dry.size(text)


def test_needed_libraries_are_those_that_the_loader_would_load():
    shown = subprocess.run(["readelf", "-d", sys.executable], capture_output=True, text=True, check=True)
    listed = [line.split("[")[1].rstrip("]") for line in shown.stdout.splitlines() if "(NEEDED)" in line]
    assert "libc.so.6" in listed
    assert needed(dry.Path(sys.executable).resolve()) == listed


@pytest.mark.parametrize("data", [b"", b"x" * 100, b"\x7fELF\x02\x01" + b"\xff" * 100])
def test_what_is_no_library_needs_nothing(tmp_path, data):
    path = tmp_path / "x.so"
    path.write_bytes(data)
    assert needed(path) == []


def test_a_library_that_is_nowhere(monkeypatch, tmp_path):
    monkeypatch.setattr(dry, "LIBRARY", "libnowhere.so")
    monkeypatch.setenv("METES_LIBRARY_PATH", str(tmp_path))
    with pytest.raises(MetesError, match="METES_LIBRARY_PATH") as error:
        dry.library()
    assert str(tmp_path) in str(error.value)


def framework(monkeypatch, tmp_path, *libraries):
    """A package torch with these libraries alone, and no other."""
    place = tmp_path / "torch" / "lib"
    place.mkdir(parents=True)
    (place.parent / "__init__.py").write_text("")
    for name, data in libraries:
        (place / name).write_bytes(data)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "torch", raising=False)


def test_no_framework(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(MetesError, match="pip install torch"):
        dry.stood_for()


def test_a_framework_without_cuda(monkeypatch, tmp_path):
    framework(monkeypatch, tmp_path, ("libtorch_cpu.so", b""))
    with pytest.raises(MetesError, match="built without CUDA"):
        dry.stood_for()


def test_a_framework_for_another_cuda(monkeypatch, tmp_path):
    framework(monkeypatch, tmp_path, ("libtorch_cuda.so", b""))
    with pytest.raises(MetesError, match="CUDA 13"):
        dry.stood_for()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--memory", "24GiB", "--", "no-such-script.py"], ["no-such-script.py", "check the path"]),
        (["--memory", "much", "--", "x.py"], ["much", "24GiB"]),
        (["--memory", "1GiB", "--reserve", "1GiB", "--", "x.py"], ["--reserve"]),
        (["--memory", "1GiB", "--smallest", "0", "--", "x.py"], ["--smallest"]),
        (["--memory", "1GiB", "--smallest", "1GiB", "--trace", "t", "--", "x.py"], ["--trace"]),
        (["--memory", "1GiB", "--capability", "9", "--", "x.py"], ["'9'", "8.6"]),
        (["--memory", "1GiB"], ["script"]),
    ],
)
def test_bad_input_is_named(arguments, words):
    done = subprocess.run(
        [sys.executable, "-m", "metes.dry", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


# What the launcher asks a framework for before the script begins, and no device.
FRAMEWORK = """
from types import SimpleNamespace
backends = SimpleNamespace(
    cudnn=SimpleNamespace(), cuda=SimpleNamespace(enable_cudnn_sdp=lambda on: None)
)
_C = SimpleNamespace(_set_cudnn_enabled=lambda on: None)
cuda, accelerator = (SimpleNamespace(memory=SimpleNamespace()) for _ in range(2))
"""
LAUNCH = """
import os, sys
from metes import dry
dry.environment = lambda *_: dict(os.environ)
sys.exit(dry.main())
"""


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_ending_the_launcher_ends_the_script(tmp_path, ending):
    (tmp_path / "torch.py").write_text(FRAMEWORK)
    script = tmp_path / "script.py"
    script.write_text("import os, time; print(os.getpid(), flush=True); time.sleep(600)")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    launcher = subprocess.Popen(
        [sys.executable, "-c", LAUNCH, "--memory", "1GiB", "--", str(script)],
        env=os.environ | {"PYTHONPATH": paths, "TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell's background job, as which this may run, ignores interrupts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    begun = int(launcher.stdout.readline())
    launcher.send_signal(ending)
    _, said = launcher.communicate(timeout=60)
    assert launcher.returncode == 128 + ending
    assert "Traceback" not in said
    while Path(f"/proc/{begun}").exists():  # it was killed, and is about to go
        time.sleep(0.01)
    assert not list(scratch.iterdir())


def _wanted(**files):
    return argparse.Namespace(**({"trace": None, "snapshot": None, "report": None} | files))


@pytest.mark.parametrize("option", ["trace", "snapshot", "report"])
def test_files_of_others_are_not_written_over(tmp_path, option):
    path = tmp_path / "mine"
    for text in (b"my own words", b"PAR1 metes words", pickle.dumps({"device_traces": []})):
        path.write_bytes(text)
        with pytest.raises(MetesError, match=f"--{option} .*name another"):
            dry._check(_wanted(**{option: path}))
        assert path.read_bytes() == text


def test_files_of_earlier_runs_are_written_over(tmp_path):
    path = tmp_path / "snapshot.pickle"
    for content in (b"", pickle.dumps({dry.MARK: 1} | {"device_traces": []})):
        path.write_bytes(content)
        dry._check(_wanted(snapshot=path))
    assert dry._is_trace(b"PAR1", b"created by metes 0.1.0 PAR1")


@pytest.mark.parametrize("content", ["", "none ", "all", "KEEP"])
def test_contents_that_are_not_known(monkeypatch, content):
    monkeypatch.setenv("METES_DEVICE_CONTENT", content)
    with pytest.raises(MetesError, match="keep, host and none are known"):
        dry._check_content()
