"""The unmodified framework on heaps of Metes, on the dry device."""

import pytest

from conftest import LLAMA

MIB = 1 << 20
ENABLED = """
import metes.torch
metes.torch.enable(memory="512MiB")
"""


def run(dry, text, memory="1GiB"):
    status, report, said = dry.run("--memory", memory, "--", dry.script(ENABLED + text))
    assert status == 0, said
    return report


def test_tensors_and_statistics(dry):
    run(
        dry,
        """
MIB = 1 << 20
assert torch.cuda.memory_allocated() == 0
kept = torch.empty(3 * MIB, dtype=torch.uint8, device="cuda")
gone = torch.empty(5 * MIB, dtype=torch.uint8, device="cuda")
small = torch.empty(100, dtype=torch.uint8, device="cuda")
nothing = torch.empty(0, device="cuda")
del gone
stats = torch.cuda.memory_stats()
assert torch.cuda.memory_allocated() == 3 * MIB + 512
assert stats["requested_bytes.all.current"] == 3 * MIB + 100
assert torch.cuda.max_memory_allocated() == 8 * MIB + 512
assert stats["allocation.small_pool.current"] == stats["allocation.large_pool.current"] == 1
assert stats["allocation.all.freed"] == 1
assert torch.cuda.memory_reserved() >= 8 * MIB
torch.cuda.reset_peak_memory_stats()
assert torch.cuda.max_memory_allocated() == 3 * MIB + 512
torch.cuda.reset_accumulated_memory_stats()
assert torch.cuda.memory_stats()["allocation.all.allocated"] == 0
assert "PyTorch CUDA memory summary" in torch.cuda.memory_summary()
free, total = torch.cuda.mem_get_info()
assert total == 1024 * MIB and free == total - torch.cuda.memory_reserved()
torch.cuda.empty_cache()
assert torch.cuda.memory_reserved() <= 6 * MIB
assert torch.cuda.mem_get_info()[0] == total - torch.cuda.memory_reserved()
metes.torch.heap().check()
""",
    )


def test_a_real_out_of_memory_error(dry):
    run(
        dry,
        """
kept = torch.empty(300 << 20, dtype=torch.uint8, device="cuda")
for _ in range(3):
    try:
        torch.empty(300 << 20, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError as error:
        assert str(error).startswith("CUDA out of memory. Tried to allocate 300.00 MiB")
        assert "stream 0x0: 300.00 MiB in 1 blocks" in str(error)
    else:
        raise AssertionError
assert torch.cuda.memory_stats()["num_ooms"] == 3
# In the thread of a backward pass, too.
class Large(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.clone()
    @staticmethod
    def backward(context, gradient):
        torch.empty(300 << 20, dtype=torch.uint8, device="cuda")
x = torch.ones(4, device="cuda", requires_grad=True)
try:
    Large.apply(x).sum().backward()
except torch.OutOfMemoryError:
    pass
else:
    raise AssertionError
del kept
torch.empty(300 << 20, dtype=torch.uint8, device="cuda")
""",
    )


def test_a_callback_gives_memory_back(dry):
    script = dry.script(
        """
import metes.torch
kept = []
def reclaim(size):
    had = bool(kept)
    kept.clear()
    return had
metes.torch.enable(memory="512MiB", on_out_of_memory=reclaim)
kept.append(torch.empty(300 << 20, dtype=torch.uint8, device="cuda"))
block = torch.empty(300 << 20, dtype=torch.uint8, device="cuda")
assert not kept and torch.cuda.memory_stats()["num_alloc_retries"] == 1
"""
    )
    status, _, said = dry.run("--memory", "1GiB", "--", script)
    assert status == 0, said


def test_snapshots_in_the_viewers_format(dry):
    run(
        dry,
        """
from torch.cuda import _memory_viz as viewer
torch.cuda.memory._record_memory_history()
kept = [torch.empty(3 << 20, dtype=torch.uint8, device="cuda") for _ in range(3)]
del kept[1]
try:
    torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError:
    pass
snapshot = torch.cuda.memory._snapshot()
trace = snapshot["device_traces"][0]
assert [entry["action"] for entry in trace] == ["alloc"] * 3 + ["free_requested", "free_completed", "oom"]
assert trace[1]["addr"] == trace[3]["addr"]
segments = torch.cuda.memory_snapshot()
assert sum(segment["total_size"] for segment in segments) == torch.cuda.memory_reserved()
blocks = [block for segment in segments for block in segment["blocks"]]
assert {block["address"] for block in blocks if block["state"] == "active_allocated"} == {
    tensor.data_ptr() for tensor in kept}
for segment in segments:
    at = segment["address"]
    for block in segment["blocks"]:
        assert block["address"] == at
        at += block["size"]
    assert at == segment["address"] + segment["total_size"]
assert "segments: " in viewer.segsum(snapshot)
assert "OutOfMemoryError" in viewer.trace(snapshot)
# Its own last step would download a program.
for view in (viewer.segments, viewer.memory):
    lines = view(snapshot, format_flamegraph=lambda lines: lines)
    assert sum(int(line.split()[-1]) for line in lines.splitlines()) == torch.cuda.memory_reserved()
assert "<html" in viewer.trace_plot(snapshot) and "<html" in viewer.segment_plot(snapshot)
torch.cuda.memory._dump_snapshot("snapshot.pickle")
torch.cuda.memory._record_memory_history(enabled=None)
torch.empty(1, device="cuda")
assert torch.cuda.memory._snapshot()["device_traces"][0] == []
""",
    )


def test_streams_wait_for_each_other(dry):
    report = run(
        dry,
        """
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    shared = torch.empty(400 << 20, dtype=torch.uint8, device="cuda")
shared.record_stream(torch.cuda.current_stream())
assert set(metes.torch.holders()) == {side.cuda_stream}
del shared
# Memory of one stream goes to another: by order, or because its work is done.
other = torch.empty(400 << 20, dtype=torch.uint8, device="cuda")
assert set(metes.torch.holders()) == {torch.cuda.current_stream().cuda_stream}
""",
    )
    assert report["calls"]["cuEventRecord"] >= 1


def test_sleep_and_wake(dry):
    run(
        dry,
        """
weights = torch.empty(100 << 20, dtype=torch.uint8, device="cuda")
address = weights.data_ptr()
free = torch.cuda.mem_get_info()[1]
metes.torch.sleep()
assert torch.cuda.mem_get_info()[0] == free
try:
    torch.empty(1, device="cuda")
except RuntimeError as error:
    assert "asleep" in str(error)
else:
    raise AssertionError
metes.torch.wake()
weights.zero_()
assert weights.data_ptr() == address and torch.cuda.memory_reserved() == 100 << 20
""",
    )


def test_a_share_of_the_memory(dry):
    run(
        dry,
        """
torch.cuda.set_per_process_memory_fraction(0.25)
torch.empty(200 << 20, dtype=torch.uint8, device="cuda")
try:
    torch.empty(300 << 20, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError as error:
    assert "256.00 MiB" in str(error)
else:
    raise AssertionError
""",
    )


def test_a_pool_inside_the_frameworks_own_allocator(dry):
    script = dry.script(
        """
import metes.torch
before = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
with metes.torch.pool(memory="512MiB") as pool:
    inside = torch.empty(30 << 20, dtype=torch.uint8, device="cuda")
    try:
        torch.empty(600 << 20, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError as error:
        # The framework's own words: it asked again, and then said so itself.
        assert "Tried to allocate 600.00 MiB" in str(error)
    else:
        raise AssertionError
heap = metes.torch.heap()
assert any(b.address <= inside.data_ptr() < b.address + b.size for b in heap.blocks())
assert not any(b.address <= before.data_ptr() < b.address + b.size for b in heap.blocks())
assert torch.cuda.memory_allocated() == 31 << 20
del inside, pool
torch.cuda.empty_cache()
heap.check()
"""
    )
    status, _, said = dry.run("--memory", "2GiB", "--", script)
    assert status == 0, said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("torch.ones(1, device='cuda')\nmetes.torch.enable()", "right after importing torch"),
        ("metes.torch.enable()\nmetes.torch.enable()", "enable it once"),
        ("metes.torch.enable(memory='24gigs')", "is no size"),
        ("metes.torch.enable(memory=0)", "leave it out"),
        ("metes.torch.enable(memory='8GiB')\ntorch.ones(1, device='cuda')", "the device has 1.00 GiB"),
    ],
)
def test_bad_input_is_named(dry, text, words):
    status, _, said = dry.run("--memory", "1GiB", "--", dry.script(f"import metes.torch\n{text}\n"))
    assert status == 2
    assert words in said


def test_a_fork_is_refused(dry):
    run(
        dry,
        """
import os
kept = torch.empty(100, device="cuda")
child = os.fork()
if child == 0:
    from metes._device import DeviceError, Heap
    try:
        Heap.known(0).allocate(1)
    except DeviceError as error:
        os._exit(0 if "fork" in str(error) else 1)
    os._exit(2)
assert os.waitpid(child, 0)[1] == 0
""",
    )


def test_a_script_that_knows_nothing_of_it(dry):
    status, report, said = dry.run(
        *("--memory", "1GiB", "--", "-m", "metes.torch", "--statistics", LLAMA, "train")
    )
    assert status == 0, said
    assert "0 bad frees" in said
    status, own, _ = dry.run("--memory", "1GiB", "--", LLAMA, "train")
    # The same program: what was requested at the peak is what it was.
    assert report["peak_live"] == own["peak_live"]
    # To within a page a block that is live then.
    assert report["peak_device"] <= 1.5 * report["peak_live"] + 64 * MIB


def test_no_script(dry):
    status, _, said = dry.run("--memory", "1GiB", "--", "-m", "metes.torch", "no-such.py")
    assert status == 2
    assert "ended itself with 2" in said and "check the path" in said


def test_graphs_keep_their_memory(dry):
    run(
        dry,
        """
MIB = 1 << 20
heap = metes.torch.heap()
x = torch.ones(10 * MIB, dtype=torch.uint8, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    first = x + 1
    inner = first.data_ptr()
    out = first * 2
    # Memory of the graph is used again in the graph.
    del first
    again = x + 3
    assert again.data_ptr() == inner
    del again
live = torch.cuda.memory_allocated()
assert live == 20 * MIB
# And by nobody else.
others = [torch.empty(10 * MIB, dtype=torch.uint8, device="cuda") for _ in range(40)]
assert inner not in {tensor.data_ptr() for tensor in others}
try:
    heap.free(inner)
except metes.torch.MetesError as error:
    assert "no block in use" in str(error)
else:
    raise AssertionError
del others
torch.cuda.empty_cache()
heap.check()
graph.replay()
# A second graph in the same pool.
second = torch.cuda.CUDAGraph()
with torch.cuda.graph(second, pool=graph.pool()):
    more = x * 5
assert more.data_ptr() == inner
before = torch.cuda.memory_reserved()
graph.reset()
assert torch.cuda.memory_reserved() == before
del more
second.reset()
heap.check()
torch.cuda.empty_cache()
assert torch.cuda.memory_reserved() < before
# A tensor of a graph may live longer than the graph.
out.zero_()
del out
torch.cuda.synchronize()
torch.cuda.empty_cache()
assert torch.cuda.memory_allocated() == 10 * MIB
heap.check()
assert heap.statistics().bad_frees == 1
""",
    )


def test_a_lack_of_memory_in_a_capture(dry):
    run(
        dry,
        """
x = torch.ones(200 << 20, dtype=torch.uint8, device="cuda")
graph = torch.cuda.CUDAGraph()
try:
    with torch.cuda.graph(graph):
        first, second = x + 1, x + 2
except torch.OutOfMemoryError as error:
    assert "graphs: 200.00 MiB in 1 blocks" in str(error), error
else:
    raise AssertionError
del x, graph
metes.torch.heap().check()
""",
    )


def test_graphed_callables(dry):
    run(
        dry,
        """
layer = torch.nn.Linear(256, 256, device="cuda")
graphed = torch.cuda.make_graphed_callables(layer, (torch.ones(8, 256, device="cuda", requires_grad=True),))
for _ in range(3):
    graphed(torch.ones(8, 256, device="cuda", requires_grad=True)).sum().backward()
metes.torch.heap().check()
""",
    )


def test_it_is_watched_unless_one_does_not_want_it(dry):
    script = """
import json, os, subprocess
def watch():
    return subprocess.run([os.environ["METES"], "--json", "device", "watch", str(os.getpid()), "--once"],
                          capture_output=True, text=True)
"""
    agree = """
def agree():
    view = json.loads(watch().stdout)
    figures, pages = metes.torch.heap().statistics(), view["pages"]
    assert view["blocks"]["current"] == figures.all.blocks.current
    assert view["requested"]["current"] == torch.cuda.memory_stats()["requested_bytes.all.current"]
    assert view["reserved"]["current"] == torch.cuda.memory_reserved()
    assert view["streams"] == figures.streams
    assert (pages["live"], pages["idle"]) == (figures.live_pages, figures.idle_pages)
    assert sum(cell["mapped"] for cell in view["map"]) == pages["live"] + pages["idle"]
    assert sum(cell["used"] > 0 for cell in view["map"]) == pages["live"]
    return sum(cell["used"] for cell in view["map"]) - view["requested"]["current"]
kept = [torch.empty(number << 20, dtype=torch.uint8, device="cuda") for number in range(1, 20)]
del kept[::3]
assert agree() == 0
x = torch.ones(10 << 20, dtype=torch.uint8, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    first = x + 1
    out = first * 2
    del first
# What the graph keeps lies there, though nobody has it.
assert agree() == 10 << 20
graph.reset()
del graph, out
assert agree() == 0
"""
    run(dry, script + agree)
    for options in (", watch=False", ""):
        text = f"import metes.torch\nmetes.torch.enable(memory='512MiB'{options})\n"
        text += script + "x = torch.ones(1, device='cuda')\nassert 'no device heap' in watch().stderr\n"
        variables = {} if options else {"METES_DEVICE_WATCH": "0"}
        status, _, said = dry.run("--memory", "1GiB", "--", dry.script(text), **variables)
        assert status == 0, said
