"""What a history is read as, beside marks; and the page that shows it. Without a framework."""

import subprocess
import sys

import pytest

from metes import MetesError, _page, dry
from metes._breakdown import PARTS, POINTS, parted

CALL = {"name": "_call_impl", "filename": "/x/site-packages/torch/nn/modules/module.py", "line": 1}
HERE = {"name": "forward", "filename": "/home/me/train.py", "line": 7}
INSTALLED = {"name": "forward", "filename": "/x/site-packages/models/bert.py", "line": 70}


def alloc(address, size, *frames):
    return {"action": "alloc", "addr": address, "size": size, "frames": list(frames)}


def free(address, size=0):
    return {"action": "free_completed", "addr": address, "size": size}


# Weights at 1, a batch at 2, an activation at 3, a gradient at 4 and a temporary at 5, which go
# but for the gradient, then a state at 3 again and a temporary of the step.
HISTORY = [
    {"action": "segment_alloc", "addr": 0, "size": 4096},
    alloc(1, 100, HERE),
    alloc(2, 10, HERE),
    alloc(3, 40, INSTALLED, CALL, HERE),
    alloc(4, 100),
    alloc(5, 7),
    {"action": "free_requested", "addr": 5, "size": 7},
    free(5),
    free(3),
    alloc(3, 200, HERE),
    alloc(6, 1, HERE),
    free(6),
    free(2),
    {"action": "oom", "addr": 0, "size": 9999, "frames": [HERE]},
]
MARKS = {
    "looks": [
        (1, {"weights": (1,)}),
        (5, {"weights": (1,), "gradients": (4,)}),
        (7, {"weights": (1,), "gradients": (4,), "optimizer_states": (3,)}),
    ],
    "passes": [[3, 5, "backward", "train.py:9 in step"], [5, 7, "step", "train.py:10 in step"]],
}


def test_each_block_is_counted_as_what_it_was_for():
    found = parted(HISTORY, MARKS)
    assert found["allocations"] == 7
    peak = found["peak"]
    assert peak["bytes"] == 411 and peak["allocation"] == 7 and peak["size"] == 1
    assert peak["parts"] == dict.fromkeys(PARTS, 0) | {
        "weights": 100,
        "gradients": 100,
        "optimizer_states": 200,
        "temporaries": 1,
        "unknown": 10,
    }
    # What lay at 3 before the state was none.
    assert found["most"]["activations"] == 40 and found["most"]["temporaries"] == 7
    assert found["timeline"]["reserved"] == [4096] * 7
    assert found["refused"]["bytes"] == 9999
    assert found["refused"]["line"] == "/home/me/train.py:7 in forward"


def test_lines_are_those_of_the_user_else_of_a_package_else_of_the_pass():
    rows = parted(HISTORY[:6], MARKS)["largest"]
    lines = {row["part"]: row["line"] for row in rows}
    assert lines["activations"] == "/home/me/train.py:7 in forward"
    assert lines["temporaries"] == "train.py:9 in step"
    alone = parted([alloc(1, 5, CALL, INSTALLED)], {"looks": [], "passes": []})
    assert alone["peak"]["line"] == "models/bert.py:70 in forward"
    assert alone["peak"]["parts"]["activations"] == 5


def test_what_a_backward_pass_frees_was_there_for_it():
    events = [alloc(1, 5, HERE), alloc(2, 1), free(1)]
    marks = {"looks": [], "passes": [[1, 3, "backward", None]]}
    assert parted(events, marks)["peak"]["parts"]["activations"] == 5


def test_parts_add_up_at_every_moment_and_points_are_few():
    events = []
    for number in range(5000):
        events += [alloc(number, number, HERE)]
        if number % 3:
            events.append(free(number - number % 7))
    found = parted(events, {"looks": [(n, {"weights": (n - 1,)}) for n in range(1, 900)], "passes": []})
    time = found["timeline"]
    assert len(time["live"]) <= POINTS
    for place, live in enumerate(time["live"]):
        assert sum(time["parts"][part][place] for part in PARTS) == live
    assert max(time["live"]) == found["peak"]["bytes"] == sum(found["peak"]["parts"].values())
    assert sum(row["bytes"] for row in found["largest"]) == found["peak"]["bytes"]


@pytest.mark.parametrize("events", [[], [free(1)], [{"action": "segment_alloc", "addr": 0, "size": 1}]])
def test_a_history_without_allocations(events):
    assert parted(events, {"looks": [], "passes": []}) is None


def test_the_page_holds_its_document_and_nothing_of_it_ends_an_element():
    text = _page.page({"script": "</script><!--<script>", "x": "/*METES_SCRIPT*/"})
    assert text.count("</script>") == 3 and "/*METES_STYLE*/" not in text
    assert "\\u003c/script>\\u003c!--\\u003cscript>" in text
    assert "/*METES_SCRIPT*/" in text, "text of the document is no marker"


def test_a_page_replaces_pages_alone(tmp_path):
    mine = tmp_path / "mine.html"
    mine.write_text("<p>mine</p>")
    with pytest.raises(MetesError, match="no page of Metes"):
        _page.check(mine)
    page = tmp_path / "page.html"
    for _ in range(2):
        _page.check(page)
        _page.write(page, {"script": "x"})
    assert sorted(tmp_path.iterdir()) == [mine, page]
    for bad in (tmp_path, tmp_path / "none" / "x.html"):
        with pytest.raises(MetesError, match="directory"):
            _page.check(bad)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--trace", "t.parquet"], ["--trace", "/nowhere/metes", "PATH"]),
        (["--report", "none/x.html"], ["--report", "directory"]),
        (["--snapshot", "none/x.pickle"], ["--snapshot", "directory"]),
        (["--smallest", "1MiB", "--report", "x.html"], ["--smallest", "--report"]),
    ],
)
def test_what_would_fail_after_the_run_is_refused_before(tmp_path, monkeypatch, arguments, words):
    script = tmp_path / "x.py"
    script.write_text("open('ran', 'w')")
    monkeypatch.setenv("METES", "/nowhere/metes")
    done = subprocess.run(
        [sys.executable, "-m", "metes.dry", "--memory", "1GiB", *arguments, "--", str(script)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 2 and not (tmp_path / "ran").exists()
    assert len(done.stderr.strip().splitlines()) == 1
    for word in words:
        assert word in done.stderr


def test_json_has_what_is_printed_but_not_what_is_drawn():
    report = dry.Report(
        verdict="fits", fits=True, completed=True, memory=1, peak_live=1, peak_allocated=1,
        peak_reserved=1, peak_device=1, refusals=0, error=None, framework="torch",
        breakdown=parted(HISTORY, MARKS),
    )  # fmt: skip
    shown = report.document()["breakdown"]
    assert "timeline" not in shown and shown["peak"]["parts"]["weights"] == 100


@pytest.mark.parametrize("part", _page.SHARED)
def test_what_the_page_shares_is_that_of_the_other_pages(part):
    ours = _page.PARTS / part
    assert ours.read_bytes() == (_page.PARTS.parents[2] / "tools/ui" / part).read_bytes(), f"cp tools/ui/{part} {ours}"
