"""Proves Lemma 1, checks the unit to a depth of clocks, and sees each mutant fail.

Usage: run.py --rtl DIRECTORY --work DIRECTORY [--deep]
Needs yosys, yosys-smtbmc and yices-smt2 in the path. `--deep`: eight pages, more clocks, the mutants of the unit.

Invariant: ends with 0 only if every property holds, every cover is reached, and no mutant passes.
"""

import argparse
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
UNIT = ["rtmmu.sv", "rtmmu_check.sv", "rtmmu_ram.sv"]

# (name, file, what stands there, what the mutant has instead): each breaks Lemma 1.
LEMMA_MUTANTS = [
    ("the slot's page is not compared", "rtmmu_check.sv", " && s == page", ""),
    ("the slot may lie before the region", "rtmmu_check.sv", "c <= h && ", ""),
    ("the slot may lie beyond the stack", "rtmmu_check.sv", " && {1'b0, h} < sp", ""),
    ("h[sp] := sp, as the paper's text has it", "lemma.sv", "h[a] <= sp[first[a]][W-1:0]", "h[sp[first[a]][W-1:0]] <= sp[first[a]][W-1:0]"),
    ("unmapping leaves the stack", "lemma.sv", "begins[a] <= 1'b0;\n          sp[a] <= {1'b0, a};", "begins[a] <= 1'b0;"),
    ("a region is made inside another", "lemma.sv", "if (free) begin", "if (a <= e) begin"),
    ("a page is filled twice", "lemma.sv", "live[a] && !filled[a]", "live[a]"),
    ("the region's last page is the next one's first", "lemma.sv", "W'(b) <= e && live[b]", "W'(b) < e && live[b]"),
]
UNIT_MUTANTS = [
    ("unmapping leaves the cached translation", "rtmmu.sv", "|| !Tagged && register_i[3])", ")"),
    ("unmapping leaves the stack", "rtmmu.sv", "(fill && !mapped || make)", "(fill && !mapped || make && new_rights != 0)"),
    ("filling does not write c", "rtmmu.sv", "step == 3'd0 && (fill || make)", "step == 3'd0 && make"),
    ("a cached translation grants everything", "rtmmu.sv", "entry_rights[entry_next] <= rights;", "entry_rights[entry_next] <= 4'b1111;"),
    ("a write during an update is lost", "rtmmu.sv", "assign register_ack_o = register_select_i && (register_write_i ? write_done", "assign register_ack_o = register_select_i && (register_write_i ? 1'b1"),
    ("the last write of the stack is left out", "rtmmu.sv", "assign s_write = updating && step == 3'd5", "assign s_write = updating && step == 3'd6"),
]


def model(rtl, work, name, top, files, chparam, mutant=None):
    """Writes the SMT model of a design, changed by a mutant if there is one."""
    folder = os.path.join(work, name)
    os.makedirs(folder, exist_ok=True)
    paths = []
    for file in files:
        source = os.path.join(rtl if file in UNIT else HERE, file)
        with open(source) as text:
            content = text.read()
        if mutant is not None and mutant[1] == file:
            if content.count(mutant[2]) != 1:
                sys.exit(f"formal: the mutant '{mutant[0]}' fits {content.count(mutant[2])} places of {file}; bring it up to date")
            content = content.replace(mutant[2], mutant[3])
        path = os.path.join(folder, file)
        with open(path, "w") as out:
            out.write(content)
        paths.append(path)
    smt = os.path.join(folder, "model.smt2")
    script = [
        "read_verilog -formal -sv -D FORMAL " + " ".join(paths),
        *chparam,
        f"prep -top {top} -flatten",
        "memory_map",
        "opt -full",
        "async2sync",
        "dffunmap",
        f"write_smt2 -wires {smt}",
    ]
    done = subprocess.run(["yosys", "-q", "-p", "; ".join(script)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"formal: yosys refuses {name}:\n{done.stdout}{done.stderr}")
    return smt


def solve(smt, *options):
    """Whether the solver passes the model; its output."""
    done = subprocess.run(["yosys-smtbmc", "-s", "yices", "--noprogress", *options, smt], capture_output=True, text=True)
    output = done.stdout + done.stderr
    if "Status: PASSED" in output:
        return True, output
    if "Status: FAILED" in output or "Unreached cover" in output:
        return False, output
    sys.exit(f"formal: the solver gave no answer:\n{output[-2000:]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rtl", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--deep", action="store_true")
    arguments = parser.parse_args()
    rtl, work = arguments.rtl, arguments.work
    wrong = []

    def expect(name, holds, result):
        good, output = result
        print(f"formal: {name}: {'holds' if good else 'fails'}{'' if good == holds else ', UNEXPECTED'}", flush=True)
        if good != holds:
            wrong.append(name)
            print(output[-3000:])

    lemma_files = ["rtmmu_check.sv", "lemma.sv"]
    unit_files = ["rtmmu.sv", "rtmmu_check.sv", "rtmmu_ram.sv", "rtmmu_formal.sv"]
    smt = model(rtl, work, "lemma", "lemma", lemma_files, ["chparam -set W 2 lemma"])
    expect("Lemma 1, 4 pages, first 9 operations", True, solve(smt, "-t", "10"))
    expect("Lemma 1, 4 pages, any number of operations (induction)", True, solve(smt, "-i", "-t", "1"))
    expect("Lemma 1, covers", True, solve(smt, "-c", "-t", "10"))
    for number, mutant in enumerate(LEMMA_MUTANTS):
        smt = model(rtl, work, f"lemma-mutant-{number}", "lemma", lemma_files, ["chparam -set W 2 lemma"], mutant)
        expect(f"mutant: {mutant[0]}", False, solve(smt, "-t", "10"))
    smt = model(rtl, work, "unit", "rtmmu_formal", unit_files, [])
    depth = "27" if arguments.deep else "20"
    expect(f"the unit, 4 pages, {depth} clocks", True, solve(smt, "-t", depth))
    expect("the unit, covers", True, solve(smt, "-c", "-t", "26"))
    if arguments.deep:
        smt = model(rtl, work, "lemma-8", "lemma", lemma_files, ["chparam -set W 3 lemma"])
        expect("Lemma 1, 8 pages, first 4 operations", True, solve(smt, "-t", "5"))
        smt = model(rtl, work, "unit-tagged", "rtmmu_formal", unit_files, ["chparam -set Entries 2 rtmmu_formal"])
        expect("the unit with 2 tagged translations, 24 clocks", True, solve(smt, "-t", "24"))
        for number, mutant in enumerate(UNIT_MUTANTS):
            smt = model(rtl, work, f"unit-mutant-{number}", "rtmmu_formal", unit_files, [], mutant)
            expect(f"mutant of the unit: {mutant[0]}", False, solve(smt, "-t", "36"))
    if wrong:
        sys.exit("formal: unexpected: " + "; ".join(wrong))


main()
