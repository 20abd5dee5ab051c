"""Builds the adapter with Icarus Verilog and runs the random test on it; ends with 0 only if it passed.

Usage: run.py --rtl DIRECTORY --work DIRECTORY [--entries CACHED-TRANSLATIONS]
"""

import argparse
import os
import sys
import xml.etree.ElementTree

from cocotb_tools.runner import get_runner

parser = argparse.ArgumentParser()
parser.add_argument("--rtl", required=True)
parser.add_argument("--work", required=True)
parser.add_argument("--entries", default=1, type=int)
arguments = parser.parse_args()
os.environ["RTMMU_ENTRIES"] = str(arguments.entries)
runner = get_runner("icarus")
here = os.path.dirname(os.path.abspath(__file__))
pages_log2 = os.environ.setdefault("RTMMU_PAGES_LOG2", "6")
runner.build(
    sources=[os.path.join(arguments.rtl, f) for f in ("rtmmu_check.sv", "rtmmu_ram.sv", "rtmmu.sv", "mor1kx_dmmu.sv")],
    hdl_toplevel="mor1kx_dmmu",
    parameters={"OPTION_DMMU_SET_WIDTH": int(pages_log2), "OPTION_DMMU_WAYS": arguments.entries},
    build_args=["-g2012"],
    defines={"RTMMU_GARBAGE": 1},
    timescale=("1ns", "1ps"),
    build_dir=arguments.work,
    always=True,
)
results = runner.test(hdl_toplevel="mor1kx_dmmu", test_module="test_rtmmu", test_dir=here, build_dir=arguments.work,
                      results_xml=os.path.abspath(os.path.join(arguments.work, "results.xml")))
tree = xml.etree.ElementTree.parse(results)
tests = tree.findall(".//testcase")
if not tests or any(test.find("failure") is not None or test.find("error") is not None for test in tests):
    sys.exit("test: the random test of the unit failed")
