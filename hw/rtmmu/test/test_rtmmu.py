"""Random operations on the adapter's ports against a reference in Python (cocotb).

The reference holds the plain truth: live regions, their rights, which pages were filled. The bench plays the load store
unit (an access until it is translated or refused), the special-purpose register bus, and the memory of the page table.

Invariant: every access of every run is translated to the frame the table has for it, or refused with the right cause,
and of one kind takes the same number of clocks each time.
"""

import collections
import os
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

OPERATIONS = int(os.environ.get("RTMMU_OPERATIONS", "10000"))
PAGES_LOG2 = int(os.environ.get("RTMMU_PAGES_LOG2", "6"))
PAGES = 1 << PAGES_LOG2
BASE = 0x00400000
VIRTUAL = 0x40000000
READ, WRITE = 5, 10
REGION, FILL, ENTRY, CAUSE, PAGE = 8, 9, 10, 11, 12
MISS, RIGHTS, BEYOND = 0, 1, 2


class Core:
    """The core's side of the adapter. Inputs change at the falling edge, outputs are read before the rising one."""

    def __init__(self, dut):
        self.dut = dut
        self.table = {}
        self.random = random.Random(1)

    async def clock(self):
        await FallingEdge(self.dut.clk)

    async def reset(self):
        d = self.dut
        for port in (d.enable_i, d.op_store_i, d.op_load_i, d.tlb_reload_ack_i, d.spr_bus_stb_i, d.spr_bus_we_i):
            port.value = 0
        for port in (d.virt_addr_i, d.virt_addr_match_i, d.tlb_reload_data_i, d.spr_bus_addr_i, d.spr_bus_dat_i):
            port.value = 0
        d.supervisor_mode_i.value = 1
        d.tlb_reload_pagefault_clear_i.value = 1
        d.rst.value = 1
        for _ in range(4):
            await self.clock()
        d.rst.value = 0
        await self.clock()

    async def register(self, number, value=None):
        """Writes, or reads without a value. Sometimes the core is late to take the acknowledgement."""
        d = self.dut
        d.spr_bus_addr_i.value = 0x800 + number
        d.spr_bus_we_i.value = int(value is not None)
        d.spr_bus_dat_i.value = value or 0
        d.spr_bus_stb_i.value = 1
        late = self.random.choice((0, 0, 1, 3, 9))
        clocks = 0
        while True:
            await self.clock()
            clocks += 1
            assert clocks < 50, "no acknowledgement"
            if d.spr_bus_ack_o.value:
                if late == 0:
                    break
                late -= 1
        result = int(d.spr_bus_dat_o.value) if value is None else None
        # The bus is taken in the rising edge that follows; the next access may come at once.
        d.spr_bus_stb_i.value = 0
        d.spr_bus_we_i.value = 0
        if self.random.random() < 0.5:
            await self.clock()
        return result

    async def access(self, address, store, supervisor=True):
        """(translated address or None, clocks)."""
        d = self.dut
        d.virt_addr_match_i.value = address
        d.op_store_i.value = int(store)
        d.op_load_i.value = int(not store)
        d.supervisor_mode_i.value = int(supervisor)
        d.enable_i.value = 1
        d.tlb_reload_pagefault_clear_i.value = 0
        clocks, waited = 0, 0
        while True:
            await self.clock()
            clocks += 1
            assert clocks < 100, "no answer"
            # As the load store unit: an answer in the third clock of the request; then it waits for the request to fall.
            d.tlb_reload_ack_i.value = 0
            if d.tlb_reload_req_o.value:
                assert not d.tlb_reload_pagefault_o.value
                waited += 1
                if waited == 3:
                    d.tlb_reload_data_i.value = self.table.get(int(d.tlb_reload_addr_o.value), 0)
                    d.tlb_reload_ack_i.value = 1
            else:
                waited = 0
            if not d.tlb_reload_busy_o.value:
                break
        fault = bool(d.tlb_reload_pagefault_o.value)
        assert fault == bool(d.pagefault_o.value)
        assert not d.tlb_miss_o.value
        result = None if fault else int(d.phys_addr_o.value)
        d.op_store_i.value = 0
        d.op_load_i.value = 0
        d.enable_i.value = 0
        d.tlb_reload_pagefault_clear_i.value = 1
        await self.clock()
        return result, clocks


def record(page):
    return BASE + (page << 4)


@cocotb.test()
async def random_operations(dut):
    cocotb.start_soon(Clock(dut.clk, 10, unit="ns").start())
    core = Core(dut)
    await core.reset()
    chance = random.Random(int(os.environ.get("RTMMU_SEED", "7")))
    await core.register(0, BASE)
    regions, filled, clocks = {}, {}, collections.defaultdict(collections.Counter)
    counts = dict.fromkeys(("made", "unmapped", "filled", "translated", "missed", "refused", "beyond"), 0)

    def region_of(page):
        for start, (size, rights) in regions.items():
            if start <= page < start + size:
                return start, rights
        return None

    for _ in range(OPERATIONS):
        choice = chance.random()
        page = chance.randrange(PAGES)
        if choice < 0.12:
            size = chance.randint(1, 12)
            if page + size <= PAGES and all(region_of(p) is None for p in range(page, page + size)):
                rights = chance.choice((READ, READ | WRITE, READ | WRITE, 4, 12))
                regions[page] = (size, rights)
                await core.register(REGION, record(page) | rights)
                counts["made"] += 1
        elif choice < 0.15 and regions:
            start = chance.choice(sorted(regions))
            size, _ = regions.pop(start)
            for p in range(start, start + size):
                filled.pop(p, None)
            await core.register(REGION, record(start))
            counts["unmapped"] += 1
        elif choice < 0.17:
            address = chance.choice((VIRTUAL + (PAGES << 13), 0x7FFFFFFC, VIRTUAL + ((PAGES + page) << 13)))
            assert (await core.access(address, chance.random() < 0.5))[0] is None
            assert (await core.register(CAUSE)) & 3 == BEYOND
            assert await core.register(ENTRY) == 0
            counts["beyond"] += 1
        elif choice < 0.19:
            # Outside the segment: itself for the supervisor, refused to users.
            address = chance.choice((0x1234, 0x90000000, 0x3FFFFFFC))
            assert (await core.access(address, False))[0] == address
            assert (await core.access(address, False, supervisor=False))[0] is None
            assert (await core.register(CAUSE)) & 3 == BEYOND
        else:
            store, supervisor = chance.random() < 0.5, chance.random() < 0.7
            offset = chance.randrange(0, 8192, 4)
            region = region_of(page)
            # An access that comes while a register write is at work waits for it; only the others are timed.
            rested = chance.random() < 0.8
            for _ in range(8 * rested):
                await core.clock()
            got, took = await core.access(VIRTUAL + (page << 13) + offset, store, supervisor)
            if page in filled:
                granted = region[1] >> (2 * supervisor + store) & 1
                if granted:
                    assert got == filled[page] + offset, f"page {page}"
                    counts["translated"] += 1
                    clocks["translated"][took] += rested
                else:
                    assert got is None
                    assert (await core.register(CAUSE)) == 4 * store + RIGHTS
                    assert await core.register(ENTRY) == 0
                    counts["refused"] += 1
                    clocks["refused"][took] += rested
            else:
                assert got is None, f"page {page} is not mapped"
                assert (await core.register(CAUSE)) == 4 * store + MISS
                assert await core.register(ENTRY) == record(page)
                counts["missed"] += 1
                clocks["missed"][took] += rested
                if region is not None and chance.random() < 0.8:
                    filled[page] = chance.randrange(1, 1 << 19) << 13
                    core.table[record(page)] = filled[page]
                    if chance.random() < 0.3:
                        await core.register(PAGE, record(page))
                        assert await core.register(PAGE) == 0
                    await core.register(FILL, record(region[0]))
                    if chance.random() < 0.3:
                        await core.register(PAGE, record(page))
                        assert await core.register(PAGE) == 1
                    counts["filled"] += 1
    clocks = {kind: dict(+number) for kind, number in clocks.items()}
    dut._log.info("counts %s clocks %s", counts, clocks)
    assert all(counts.values()), counts
    # A translation that is cached is given at once; all others take one time.
    assert len(clocks["missed"]) == 1 and len(clocks["refused"]) == 1
    assert len(clocks["translated"]) == 2
    # More cached translations give more at once.
    cached = min(clocks["translated"])
    share = clocks["translated"][cached] / sum(clocks["translated"].values())
    assert (share > 0.08) == (int(os.environ["RTMMU_ENTRIES"]) > 1), share
