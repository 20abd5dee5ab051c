"""The rows that take a GPU, rehearsed: every part runs on the dry device, and no figure comes."""

import json
import os
import pickle
import re
import subprocess
import sys
import time

from conftest import ROOT

EXCHANGE = str(ROOT / "python" / "examples" / "exchange.py")


def gpu(*arguments, **variables):
    """The exit status and what was said."""
    done = subprocess.run(
        [sys.executable, "-m", "metes.gpu", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")} | variables,
    )
    return done.returncode, done.stderr


def test_a_rehearsal_runs_every_part_and_measures_nothing(tmp_path):
    status, said = gpu("--rehearse", "--quick", "--output", tmp_path, "bench", "exchange", "train")
    assert status == 0, said
    # Parts add to what is there.
    status, said = gpu("--rehearse", "--quick", "--output", tmp_path, "trace")
    assert status == 0, said
    document = json.loads((tmp_path / "rehearsal.json").read_text())
    assert list(document["parts"]) == ["bench", "exchange", "train", "trace"]
    train = document["parts"]["train"]["allocators"]
    assert len(train) == 4
    for allocator in train.values():
        assert [one["outcome"] for one in allocator["rounds"]] == ["completed"]
        assert [one["steps"] for one in allocator["rounds"]] == [4]
        assert [one["seconds"] for one in allocator["rounds"]] == [[]]
    trace = document["parts"]["trace"]
    for run in trace["runs"].values():
        # A dry run against a dry run.
        assert run["same"] and run["common"] == run["allocations"]["real"] > 100
        assert run["peak_live"] == trace["predicted"]["peak_live"] == trace["predicted"]["live"]
    assert trace["smallest"]["at"]["completes"] and not trace["smallest"]["below"]["completes"]
    text = (tmp_path / "rehearsal.md").read_text()
    assert "no figures" in text
    cells = [
        cell.strip()
        for line in text.splitlines()
        if line.startswith("| ") and not line.startswith("| ---")
        for cell in line.strip("|").split("|")[1:]
    ]
    assert cells.count("not measured") > 100
    assert not any(re.search(r"\d", cell) for cell in cells), cells


def test_what_fails_is_named_and_leaves_the_rest(tmp_path):
    # The arenas of the benchmark do not fit; a driver's blocks and the framework's do for a while.
    status, said = gpu(
        *("--rehearse", "--memory", "300MiB", "--quick"), "--output", tmp_path, "bench", "train"
    )
    assert status == 1
    assert "not measured: bench, exchange, tlsf: the device has no" in said
    text = (tmp_path / "rehearsal.md").read_text()
    assert "## Not measured" in text and "- bench, exchange, sparse: request" in text
    train = json.loads((tmp_path / "rehearsal.json").read_text())["parts"]["train"]
    assert all(one["rounds"] for one in train["allocators"].values()), train


def test_bad_input_is_said(tmp_path):
    for arguments, words in [
        (["no-part"], "no part no-part: there are tests, bench"),
        (["--device", "-1", "bench"], "from 0 on"),
        (["--rehearse", "--memory", "24GB", "bench"], "no size"),
        (["--rehearse", "--memory", "0", "bench"], "no device to rehearse on"),
    ]:
        status, said = gpu("--output", tmp_path, *arguments)
        assert (status, words in said) == (2, True), said
    status, said = gpu("--output", tmp_path, "--device", "3", "bench", CUDA_VISIBLE_DEVICES="1,2")
    assert status == 2 and "names 2" in said
    # Without a driver: a reason for each part, no figures, no trace of the interpreter.
    (tmp_path / "libcuda.so.1").write_text("no library")
    status, said = gpu("--output", tmp_path, "bench", LD_LIBRARY_PATH=str(tmp_path))
    assert status == 1 and "install NVIDIA's driver" in said and "Traceback" not in said


def test_the_benchmark_has_the_same_blocks(dry):
    status, report, said = dry.run("--memory", "8GiB", "--", EXCHANGE, "--count", "2000")
    assert status == 0, said
    shown = subprocess.run(
        [os.environ["METES"], "--json", "device", "bench", "--quick", "--heap", "sparse"],
        capture_output=True,
        check=True,
    )
    workload = json.loads(shown.stdout)["workloads"][0]
    assert workload["workload"] == "uniform-100"
    assert report["peak_live"] == workload["peak_live"]


def test_sequences_are_compared(tmp_path):
    sys.path.insert(0, str(ROOT / "python"))
    from metes._sequence import compare

    def snapshot(name, sizes):
        trace = [{"action": "alloc", "size": size} for size in sizes]
        trace.insert(1, {"action": "free_requested", "size": 1})
        (tmp_path / name).write_bytes(pickle.dumps({"device_traces": [trace]}))
        return tmp_path / name

    one = snapshot("one", [512, 1024, 4096, 512])
    assert compare(one, one) == {
        "same": True,
        "allocations": {"predicted": 4, "real": 4},
        "common": 4,
        "differing": 0,
        "first_difference": None,
    }
    other = compare(one, snapshot("other", [512, 1024, 8192]))
    assert (other["same"], other["common"], other["differing"]) == (False, 2, 3)
    assert other["first_difference"] == {"at": 2, "predicted": 4096, "real": 8192}
    shorter = compare(one, snapshot("shorter", [512, 1024, 4096]))
    assert shorter["first_difference"] == {"at": 3, "predicted": 512, "real": None}


def test_what_takes_too_long_is_ended_with_its_children(tmp_path):
    mark = tmp_path / "alive"
    slow = tmp_path / "slow"
    slow.write_text(f"#!/bin/sh\n(sleep 4; touch {mark}) &\nwait\n")
    slow.chmod(0o755)
    status, said = gpu("--seconds", "1", "--output", tmp_path, "bench", METES=str(slow))
    assert status == 1 and "took longer than 1 s: allow more by --seconds" in said
    time.sleep(5)
    assert not mark.exists()
