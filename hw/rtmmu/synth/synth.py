"""Cells of the unit, of the data MMU it replaces, and of the whole core both ways, on three devices.

Usage: synth.py --core DIRECTORY --rtl DIRECTORY --work DIRECTORY [--json FILE] [--markdown FILE] [--deep] [--only TEXT]
DIRECTORY of the core is its `rtl/verilog`. `--deep` adds the whole core.

Invariant: each number is a count of cells after technology mapping by yosys. Nothing is placed or routed, so there is
no clock frequency here, and a placed design may need other numbers. PolarFire stands in for RTG4, for which no free
mapping infers memories; rows say so.
"""

import argparse
import collections
import glob
import json
import os
import subprocess
import sys

DEVICES = {
    "Kintex UltraScale": {
        "command": "synth_xilinx -family xcu -flatten -noiopad -noclkbuf",
        "capacity": {"LUT": 331_000, "FF": 663_000},
        "capacity_of": "XQRKU060",
    },
    "NG-LARGE": {
        "command": "synth_nanoxplore -family large -noiopad",
        "capacity": {"LUT": 137_000, "FF": 129_000},
        "capacity_of": "NanoXplore NG-LARGE",
    },
    "PolarFire (stands in for RTG4)": {
        "command": "synth_microchip -family polarfire -noiopad",
        "capacity": {"LUT": 151_000, "FF": 151_000},
        "capacity_of": "Microchip RTG4",
    },
}
# What a cell is counted as, by the beginning of its name.
CLASSES = [
    ("LUT", ("LUT", "NX_LUT", "CFG", "INV")),
    ("LUT RAM", ("RAM32", "RAM64", "RAM128", "RAM256", "NX_RFB")),
    ("FF", ("FD", "NX_DFF", "NX_BFF", "SLE")),
    ("carry", ("CARRY", "NX_CY", "ARI1")),
    ("block RAM 18 Kbit", ("RAMB18",)),
    ("block RAM 36 Kbit", ("RAMB36",)),
    ("block RAM", ("NX_RAM", "RAM1K20")),
    ("multiplier", ("DSP", "NX_DSP", "MACC")),
    ("multiplexer", ("MUXF",)),
]


def classify(cells):
    """Counts of cells by class; what no class names is kept by its own name."""
    counts = collections.Counter()
    for name, number in cells.items():
        if name.startswith(("$paramod", "\\")) or name in ("rtmmu", "rtmmu_ram", "mor1kx_dmmu", "$scopeinfo"):
            continue
        for label, beginnings in CLASSES:
            if name.startswith(beginnings):
                counts[label] += number
                break
        else:
            counts[name] += number
    return dict(sorted(counts.items()))


def synthesise(script, work, name):
    """Runs yosys on a script; the counts of cells by type."""
    statistics = os.path.join(work, name + ".json")
    program = (
        "from pyosys import libyosys as ys\n"
        "d = ys.Design()\n"
        + "".join(f"ys.run_pass({line!r}, d)\n" for line in script + [f"tee -q -o {statistics} stat -json"])
    )
    log = os.path.join(work, name + ".log")
    with open(log, "w") as output:
        done = subprocess.run([sys.executable, "-c", program], stdout=output, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(f"synth: {name} failed; see {log}")
    with open(statistics) as file:
        document = json.load(file)
    cells = document["design"]["num_cells_by_type"]
    return {key: (value["count"] if isinstance(value, dict) else value) for key, value in cells.items()}


def designs(core, rtl, deep):
    """(name, what to read and elaborate) of each design."""
    unit = f"read_verilog -sv {{}} {rtl}/rtmmu.sv {rtl}/rtmmu_check.sv {rtl}/rtmmu_ram.sv {rtl}/mor1kx_dmmu.sv"
    original = f"read_verilog -I{core} {core}/mor1kx_dmmu.v {core}/mor1kx_true_dpram_sclk.v"
    top = "hierarchy -check -top mor1kx_dmmu {}"
    yield "original data MMU, 64 entries", [original, top.format("")]
    yield "conventional", [unit.format("-DRTMMU_TABLES=0"), top.format("-chparam OPTION_DMMU_SET_WIDTH 12")]
    for bits in (10, 12, 14):
        chosen = top.format(f"-chparam OPTION_DMMU_SET_WIDTH {bits}")
        yield f"real-time unit, 2^{bits} pages", [unit.format(""), chosen]
    yield "real-time unit, 2^12 pages, tables in memory", [
        unit.format("-DRTMMU_TABLES=2"),
        top.format("-chparam OPTION_DMMU_SET_WIDTH 12"),
    ]
    yield "real-time unit, 2^12 pages, 4 tagged translations", [
        unit.format(""),
        top.format("-chparam OPTION_DMMU_SET_WIDTH 12 -chparam OPTION_DMMU_WAYS 4"),
    ]
    if not deep:
        return
    left_out = {"mor1kx-defines.v", "mor1kx-sprs.v", "mor1kx_dmmu.v"}
    files = [f for f in sorted(glob.glob(core + "/*.v")) if os.path.basename(f) not in left_out]
    files = " ".join(files + sorted(glob.glob(core + "/pfpu32/*.v")))
    # The simulated system's top is the core with nothing around it.
    core_top = "hierarchy -check -top soc_top -chparam PagesLog2 {}"
    read = f"read_verilog -sv -I{core} {os.path.join(os.path.dirname(rtl), 'sim', 'soc_top.sv')}; read_verilog -I{core} {files}"
    yield "core, original data MMU", [*read.split("; "), f"read_verilog -I{core} {core}/mor1kx_dmmu.v", core_top.format(6)]
    yield "core, real-time unit, 2^12 pages", [unit.format(""), *read.split("; "), core_top.format(12)]
    yield "core, conventional", [unit.format("-DRTMMU_TABLES=0"), *read.split("; "), core_top.format(12)]


def markdown(rows):
    """The rows as a table, and per device the core's growth and share of the device."""
    lines = ["| Device | Design | LUT | LUT RAM | FF | carry | block RAM |", "| --- | --- | ---: | ---: | ---: | ---: | ---: |"]
    for row in rows:
        cells = row["cells"]
        blocks = ", ".join(f"{cells[k]} {k.removeprefix('block RAM').strip() or 'blocks'}" for k in cells if k.startswith("block RAM"))
        lines.append(
            f"| {row['device']} | {row['design']} | {cells.get('LUT', 0)} | {cells.get('LUT RAM', 0)} "
            f"| {cells.get('FF', 0)} | {cells.get('carry', 0)} | {blocks or 0} |"
        )
    cores = [row for row in rows if row["design"].startswith("core,")]
    if cores:
        lines += ["", "| Device (capacity: table 2 of the DUSTER paper) | Core | LUT | of the device | FF | of the device |", "| --- | --- | ---: | ---: | ---: | ---: |"]
        for row in cores:
            capacity = DEVICES[row["device"]]["capacity"]
            base = next((r for r in cores if r["device"] == row["device"] and r["design"] == "core, original data MMU"), row)
            texts = []
            for kind in ("LUT", "FF"):
                count, before = row["cells"].get(kind, 0), base["cells"].get(kind, 0)
                growth = "" if row is base else f" ({100 * (count - before) / before:+.1f} %)"
                texts.append(f"{count}{growth} | {100 * count / capacity[kind]:.2f} %")
            lines.append(f"| {row['device']}: {DEVICES[row['device']]['capacity_of']} | {row['design']} | " + " | ".join(texts) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    for option in ("--core", "--rtl", "--work"):
        parser.add_argument(option, required=True)
    parser.add_argument("--json")
    parser.add_argument("--markdown")
    parser.add_argument("--deep", action="store_true")
    parser.add_argument("--only", default="", help="designs and devices whose name contains this")
    arguments = parser.parse_args()
    os.makedirs(arguments.work, exist_ok=True)
    rows = []
    for device, how in DEVICES.items():
        for design, script in designs(arguments.core, arguments.rtl, arguments.deep):
            if arguments.only not in f"{device}, {design}":
                continue
            name = "".join(c if c.isalnum() else "-" for c in f"{device} {design}")
            top = "soc_top" if design.startswith("core,") else "mor1kx_dmmu"
            cells = synthesise(script + [f"{how['command']} -top {top}"], arguments.work, name)
            rows.append({"device": device, "design": design, "cells": classify(cells)})
            print(json.dumps(rows[-1]), flush=True)
    table = markdown(rows)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"rows": rows, "placed_and_routed": False}, file, indent=1)
            file.write("\n")
    if arguments.markdown:
        with open(arguments.markdown, "w") as file:
            file.write(table)
    print(table, end="")


main()
