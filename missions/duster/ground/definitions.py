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
    """The definitions of this checkout; of the file that DUSTER_DEFINITIONS names, where it is set."""
    path = os.environ.get("DUSTER_DEFINITIONS")
    if path:
        return Definitions(json.loads(pathlib.Path(path).read_text()))
    return Definitions(json.loads(subprocess.run(PRINT, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout))
