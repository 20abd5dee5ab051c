"""Makes snapshot.pickle: python -m metes.dry --memory 24GiB -- snapshot.py snapshot.pickle

Two blocks from before the history, of which one lives on; a block that two streams use; a request
that is refused; a block of each of many sizes.
"""

import sys

import torch

early = torch.empty(3000, device="cuda")
gone = torch.empty(5000, device="cuda")
torch.cuda.memory._record_memory_history(context=None)
del gone
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    shared = torch.empty(1 << 20, device="cuda")
shared.record_stream(torch.cuda.default_stream())
del shared
torch.cuda.synchronize()
try:
    torch.empty(1 << 45, device="cuda")
except torch.OutOfMemoryError:
    pass
kept = [torch.empty(100 << index, dtype=torch.uint8, device="cuda") for index in range(20)]
del kept[::2]
torch.cuda.memory._dump_snapshot(sys.argv[1])
