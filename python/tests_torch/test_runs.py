"""The unmodified framework on the dry device."""

import json
import os
import subprocess

import pytest

from conftest import ROOT

LLAMA = str(ROOT / "python" / "examples" / "llama.py")
MIB = 1 << 20


def test_a_training_run_and_its_trace(dry):
    status, report, said = dry.run(
        "--memory", "24GiB", "--trace", "t.trace.parquet", "--", LLAMA, "train"
    )
    assert status == 0, said
    assert report["fits"]
    assert report["peak_live"] <= report["peak_allocated"] <= report["peak_reserved"]
    assert report["peak_reserved"] == report["peak_device"]
    shown = subprocess.run(
        [os.environ["METES"], "--json", "profile", dry.place / "t.trace.parquet"],
        capture_output=True,
        check=True,
    )
    profile = json.loads(shown.stdout)
    # The trace has every block: its peak is the one that the framework counted itself.
    assert profile["peak_live"] == report["peak_live"]
    assert any("kernels did nothing" in sentence for sentence in report["unknown"])


def test_an_allocator_without_a_history(dry):
    variables = {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}
    status, report, said = dry.run("--memory", "1GiB", "--", LLAMA, "train", **variables)
    assert status == 0, said
    assert report["peak_live"] is None and report["peak_device"] > 0
    wanted = ("--memory", "1GiB", "--trace", "t.trace.parquet", "--", LLAMA, "train")
    status, report, said = dry.run(*wanted, **variables)
    # The verdict is there, and the status is its own; the trace is not, which is said.
    assert status == 0 and report["fits"] and report["trace"] is None
    assert "keeps no history" in said.splitlines()[-1] and report["no_history"]
    # A history that nothing is in.
    status, report, said = dry.run(*wanted, PYTORCH_NO_CUDA_MEMORY_CACHING="1")
    assert status == 0 and report["fits"] and report["breakdown"] is None
    assert "no history" in said.splitlines()[-1]


def test_the_same_run_allocates_the_same(dry):
    runs = [dry.run("--memory", "8GiB", "--", LLAMA, "train", "--steps", "2")[1] for _ in range(2)]
    assert runs[0] == runs[1]


def test_a_device_too_small_refuses(dry):
    status, report, _ = dry.run("--memory", "40MiB", "--", LLAMA, "train")
    assert status == 1
    assert not report["fits"]
    assert "out of memory" in report["error"]
    assert report["refusals"] == 1
    assert report["peak_device"] <= 40 * MIB


def test_the_smallest_device(dry):
    status, report, said = dry.run("--memory", "1GiB", "--smallest", "2MiB", "--", LLAMA, "train")
    assert status == 0, said
    assert report["smallest"] == report["memory"]
    assert report["peak_device"] <= report["smallest"] <= report["peak_device"] + 2 * MIB


def test_expandable_segments(dry):
    variables = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    status, report, said = dry.run("--memory", "1GiB", "--", LLAMA, "train", **variables)
    assert status == 0, said
    assert 0 < report["calls"]["cuMemSetAccess"] <= report["calls"]["cuMemMap"]
    assert "cudaMalloc" not in report["calls"]


def test_streams_pools_graphs_and_events(dry):
    script = dry.script(
        """
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    shared = torch.empty(1 << 20, device="cuda")
shared.record_stream(torch.cuda.default_stream())
start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
start.record()
end.record()
torch.cuda.synchronize()
assert start.elapsed_time(end) >= 0
pool = torch.cuda.MemPool()
with torch.cuda.use_mem_pool(pool):
    pooled = torch.empty(1 << 20, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    doubled = shared * 2
graph.replay()
assert torch.cuda.memory_stats()["num_ooms"] == 0
assert torch.nn.functional.conv2d(
    torch.empty(2, 3, 8, 8, device="cuda"), torch.empty(4, 3, 3, 3, device="cuda")
).shape == (2, 4, 6, 6)
"""
    )
    status, _, said = dry.run("--memory", "1GiB", "--", script)
    assert status == 0, said


def test_a_pluggable_allocator(dry):
    source = dry.place / "own.c"
    source.write_text(
        """
#include <stddef.h>
extern int cudaMalloc(void **, size_t);
extern int cudaFree(void *);
void *own_malloc(ptrdiff_t size, int device, void *stream) {
    void *block = NULL;
    return size == 0 || cudaMalloc(&block, (size_t)size) ? NULL : block;
}
void own_free(void *block, size_t size, int device, void *stream) { cudaFree(block); }
"""
    )
    library = dry.place / "own.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    script = dry.script(
        f"""
own = torch.cuda.memory.CUDAPluggableAllocator({str(library)!r}, "own_malloc", "own_free")
torch.cuda.memory.change_current_allocator(own)
kept = torch.empty(10 << 20, dtype=torch.uint8, device="cuda")
"""
    )
    status, report, said = dry.run("--memory", "1GiB", "--", script)
    assert status == 0, said
    # The framework keeps no count then; the device does.
    assert report["peak_live"] is None
    assert report["peak_device"] == 10 * MIB


def test_device_addresses_are_no_host_memory(dry):
    script = dry.script(
        """
import ctypes, os
block = torch.empty(64, device="cuda")
child = os.fork()
if child == 0:
    ctypes.string_at(block.data_ptr(), 1)
    os._exit(0)
assert os.WTERMSIG(os.waitpid(child, 0)[1]) == 11
"""
    )
    status, _, said = dry.run("--memory", "1GiB", "--", script)
    assert status == 0, said


def test_a_late_stream_keeps_its_blocks(dry):
    script = dry.script(
        """
import ctypes
device, side = ctypes.CDLL(None), torch.cuda.Stream()
late = ctypes.c_void_p(side.cuda_stream)
make = lambda: torch.empty(20 << 20, dtype=torch.uint8, device="cuda")
block = make()
place = block.data_ptr()
block.record_stream(side)
assert device.metes_dry_hold_stream(late) == 0
with torch.cuda.stream(side):
    block.add_(1)
del block
another = make()
assert another.data_ptr() != place
assert device.metes_dry_release_stream(late) == 0
assert make().data_ptr() == place
"""
    )
    status, _, said = dry.run("--memory", "1GiB", "--", script)
    assert status == 0, said


def test_what_the_host_read_is_said(dry):
    script = dry.script('assert torch.ones(3, device="cuda").sum().item() == 0\n')
    status, report, said = dry.run("--memory", "1GiB", "--", script)
    assert status == 0, said
    assert (report["reads"], report["read_bytes"]) == (1, 4)
    assert any("nobody computed" in sentence for sentence in report["unknown"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise ValueError('mine')", ["mine", "no verdict"]),
        ("raise SystemExit(3)", ["ended itself with 3"]),
        ("import os; os._exit(4)", ["ended with 4"]),
        ("import os; os.kill(os.getpid(), 9)", ["SIGKILL"]),
        ("torch.ones(1)", ["never used the device"]),
        ('torch.linalg.svd(torch.ones(8, 8, device="cuda"))', ["no verdict", "cusolver"]),
    ],
)
def test_no_verdict_without_an_end(dry, text, words):
    status, report, said = dry.run("--memory", "1GiB", "--", dry.script(text))
    assert (status, report) == (2, None)
    for word in words:
        assert word in said.splitlines()[-1]


def test_a_script_that_survives_a_refusal_fits(dry):
    script = dry.script(
        """
try:
    torch.empty(2 << 30, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError:
    torch.empty(1 << 20, device="cuda")
"""
    )
    status, report, said = dry.run("--memory", "1GiB", "--", script)
    assert status == 0, said
    assert report["fits"] and report["refusals"] == 1


def test_arguments_and_place_are_the_scripts_own(dry):
    (dry.place / "beside.py").write_text("VALUE = 7\n")
    script = dry.script(
        """
import sys, beside
assert sys.argv[1:] == ["--a", "b"] and __name__ == "__main__" and beside.VALUE == 7
torch.ones(1, device="cuda")
"""
    )
    status, _, said = dry.run("--memory", "1GiB", "--", script, "--a", "b")
    assert status == 0, said
