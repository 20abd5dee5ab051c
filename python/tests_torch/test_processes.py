"""Processes that a script begins, and groups of one process."""

GROUP = """
import os, sys
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
if "RANK" not in os.environ:
    os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
dist.init_process_group(sys.argv[1])
given = torch.tensor([3, 1, 4], device="cuda")
dist.all_reduce(given)
dist.broadcast(given, 0)
gathered = [torch.empty(3, dtype=torch.int64, device="cuda")]
dist.all_gather(gathered, given)
assert gathered[0].tolist() == [3, 1, 4]
objects = [None]
dist.all_gather_object(objects, {"a": 1})
assert objects == [{"a": 1}]
torch.backends.cudnn.enabled = True
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Flatten(), torch.nn.Linear(7200, 512))
model = DistributedDataParallel(model.cuda())
optimizer = torch.optim.AdamW(model.parameters())
for step in range(2):
    model(torch.randn(2, 3, 32, 32, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.barrier()
dist.destroy_process_group()
"""


def test_groups_of_one_process(dry):
    peaks = []
    for backend in ("nccl", "gloo"):
        status, report, said = dry.run("--memory", "1GiB", "--", dry.script(GROUP), backend)
        assert status == 0, said
        assert "it stays off" in said
        peaks.append(report["peak_live"])
    assert peaks[0] == peaks[1] > 5 * 512 * 7200 * 4


def test_processes_of_a_launcher_have_a_verdict(dry):
    script = dry.script(GROUP)
    launched = ("-m", "torch.distributed.run", "--nproc-per-node=1", script, "nccl")
    status, report, said = dry.run("--memory", "1GiB", "--", *launched)
    assert status == 0, said
    assert report["peak_live"] > 5 * 512 * 7200 * 4
    status, report, said = dry.run("--memory", "32MiB", "--", *launched)
    assert status == 1, said
    assert "out of memory" in report["error"]


def test_more_than_one_process_names_the_remedy(dry):
    script = dry.script(
        """
import os
import torch.distributed as dist
os.environ.update(RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=2)
dist.all_reduce(torch.ones(1, device="cuda"))
"""
    )
    status, report, said = dry.run("--memory", "1GiB", "--", script)
    assert (status, report) == (2, None)
    assert "world size 1" in said.splitlines()[-1]


def test_peaks_that_a_script_resets_are_kept(dry):
    script = dry.script(
        """
block = torch.empty(100 << 20, dtype=torch.uint8, device="cuda")
del block
torch.cuda.empty_cache()
torch.cuda.reset_peak_memory_stats()
torch.accelerator.reset_peak_memory_stats()
assert torch.cuda.max_memory_allocated() == 0
block = torch.empty(10 << 20, dtype=torch.uint8, device="cuda")
"""
    )
    for runner in ((), ("-m", "metes.torch")):
        status, report, said = dry.run("--memory", "1GiB", "--", *runner, script)
        assert status == 0, said
        assert report["peak_live"] == report["peak_allocated"] == 100 << 20
        assert report["peak_reserved"] == 100 << 20
