"""The definitions of the protocol, from the one place where they stand: the tables of metes-duster-protocol.

Invariant: nothing here is written down again; what the tables do not say, no name here says.
"""
from __future__ import annotations

import functools
import json
import os
import pathlib
import subprocess

#: Where the repository begins.
ROOT = pathlib.Path(__file__).resolve().parents[3]
#: Prints the definitions as JSON.
PRINT = ["cargo", "run", "-q", "-p", "metes-duster-protocol", "--example", "definitions"]


class Definitions:
    """Telecommands, reports, housekeeping, events and parameters, by what tells them apart."""

    def __init__(self, tables: dict):
        self.tables = tables
        self.apid = tables["apid"]
        self.names = {one["name"]: {value["number"]: value["name"] for value in one["values"]} for one in tables["enumerations"]}
        self.telecommands = {one["name"]: one for one in tables["telecommands"]}
        self.reports = {(one["service"], one["subtype"]): one for one in tables["reports"]}
        self.housekeeping = {one["sid"]: one for one in tables["housekeeping"]}
        self.events = {one["id"]: one for one in tables["events"]}
        self.science = {one["name"]: one for one in tables["science"]}

    def number(self, enumeration: str, name: str) -> int:
        """The number of a value that has a name."""
        return next(number for number, own in self.names[enumeration].items() if own == name)


@functools.cache
def load() -> Definitions:
    """The definitions of this checkout, of the programs in the folder DUSTER_BUILT where that is set."""
    built = os.environ.get("DUSTER_BUILT")
    command = [str(pathlib.Path(built, "examples/definitions"))] if built else PRINT
    return Definitions(json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout))
