"""The database of Yamcs: the definitions of the protocol as XTCE, its event texts, and its displays.

    mdb.py DIRECTORY      writes mdb.xml, events.json and displays/*.par there

Fields of groups and of repeated groups stand side by side, their names joined by an underscore; what is counted is an
array behind its count. A telecommand has the verifiers of service 1: Accepted, Started, Complete.

Invariant: every telecommand, report, structure and event of the definitions is in it, and no other.
"""
from __future__ import annotations

import json
import pathlib
import re
import sys

import codec
from definitions import Definitions, load
from yamcs.pymdb import (AbsoluteTimeArgument, AbsoluteTimeParameter, AggregateMember, AlgorithmCheck, AcceptedVerifier, ArgumentEntry, ArgumentValue,
                         ArrayArgument, ArrayParameter, BinaryArgument, BinaryEncoding, BinaryParameter, Command, CompleteVerifier, Container,
                         EnumeratedArgument, EnumeratedMember, EnumeratedParameter, Epoch, ExecutionVerifier, FixedValueEntry, InputParameter, IntegerArgument,
                         IntegerEncoding, IntegerEncodingScheme, IntegerMember, IntegerParameter, IntegerTimeEncoding, AbsoluteTimeMember, ParameterEntry,
                         ParameterValue, Subsystem, System, UnnamedJavaAlgorithm, all_of, eq)

HEADER = 19 * 8
#: Seconds within which a stage is reported: the unit reads telecommands 50 times a second, and a dump or a ramp takes its time.
WITHIN = {1: 10, 3: 10, 7: 120}
TIME = IntegerTimeEncoding(bits=48, scale=1 / codec.FRACTIONS)


def unsigned(bits: int) -> IntegerEncoding:
    return IntegerEncoding(bits=bits)


def flat(fields: list, content: bool = False) -> list:
    """Fields without groups: (name, field). `content`: a group's name is left out."""
    out = []
    for field in fields:
        kind, name = field["kind"], field["name"]
        if kind == "group":
            out += [(inner if content else f"{name}_{inner}", one) for inner, one in flat(field["fields"], content)]
        elif kind == "repeated":
            out += [(f"{name}_{which}_{inner}", one) for which in field["names"] for inner, one in flat(field["of"]["fields"])]
        else:
            out.append((name, field))
    return out


class Database:
    """The database under construction."""

    def __init__(self, known: Definitions):
        self.known = known
        self.system = System("DUSTER", short_description="The DUSTER data processing unit")
        self.header()
        self.verification()
        for (service, _), report in sorted(known.reports.items()):
            if service != 1:
                self.report(report)
        self.structures()
        self.events()
        self.telecommands()

    def choices(self, enumeration: str) -> list:
        table = next(one for one in self.known.tables["enumerations"] if one["name"] == enumeration)
        return [(value["number"], value["name"], value["doc"]) for value in table["values"]]

    # ---- telemetry ---------------------------------------------------------

    def header(self):
        """Primary and secondary header, on which all else stands."""
        # A system of its own: Yamcs takes a type of that name further up for one that lies beside.
        place = Subsystem(self.system, "header", short_description="What every packet begins with")

        def number(name, bits, about):
            return IntegerParameter(place, name, signed=False, bits=32, encoding=unsigned(bits), short_description=about)
        version, kind, flag = number("version", 3, "Of the packet"), number("type", 1, "0: telemetry"), number("secondary_header", 1, "Present")
        self.apid = number("apid", 11, "Application process")
        flags, self.count, length = number("sequence_flags", 2, "3: whole"), number("sequence_count", 14, "Of all packets"), number("length", 16, "Bytes behind the primary header, less one")
        pus, status = number("pus_version", 4, "2: PUS-C"), number("time_status", 4, "Of the on-board time")
        self.service, self.subtype = number("service", 8, "Service type"), number("subtype", 8, "Message subtype")
        counter, destination = number("message_counter", 16, "Of messages of this kind"), number("destination", 16, "Of the packet")
        time = AbsoluteTimeParameter(place, "time", Epoch.UNIX, encoding=TIME, short_description="On-board time, CUC 4 + 2")
        entries = [version, kind, flag, self.apid, flags, self.count, length, pus, status, self.service, self.subtype, counter, destination, time]
        self.packet = Container(self.system, "packet", [ParameterEntry(one) for one in entries], abstract=True, short_description="A telemetry packet of PUS-C")

    def parameters(self, place, fields: list) -> list:
        """The entries of fields, whose parameters are made in a subsystem."""
        entries = []
        for name, field in fields:
            entries += self.entries(place, name, field)
        return entries

    def entries(self, place, name: str, field: dict) -> list:
        kind, about, units = field["kind"], field.get("doc"), field.get("unit")
        if kind in codec.NUMBERS:
            bits = 8 * codec.size(field)
            signed = kind.startswith("i")
            return [ParameterEntry(IntegerParameter(place, name, signed=signed, bits=max(32, bits), encoding=self.integer(field), short_description=about, units=units))]
        if kind == "enumeration":
            return [ParameterEntry(EnumeratedParameter(place, name, self.choices(field["enumeration"]), encoding=unsigned(8 * field["bytes"]), short_description=about))]
        if kind == "time":
            return [ParameterEntry(AbsoluteTimeParameter(place, name, Epoch.UNIX, encoding=TIME, short_description=about))]
        if kind == "bytes":
            return [ParameterEntry(BinaryParameter(place, name, encoding=BinaryEncoding(length_bits=16), short_description=about))]
        if kind == "counted":
            count = IntegerParameter(place, f"{name}_count", signed=False, encoding=unsigned(8), short_description="How many follow")
            array = ArrayParameter(place, name, self.element(field["of"]), ParameterValue(count), short_description=about)
            return [ParameterEntry(count), ParameterEntry(array)]
        if kind == "rest":  # read by the client and the science page
            return []
        raise ValueError(f"{name}: no parameter of kind {kind}")

    @staticmethod
    def integer(field: dict) -> IntegerEncoding:
        scheme = IntegerEncodingScheme.TWOS_COMPLEMENT if field["kind"].startswith("i") else IntegerEncodingScheme.UNSIGNED
        return IntegerEncoding(bits=8 * codec.size(field), scheme=scheme)

    def element(self, field: dict, name: str = "element"):
        """The type of an array's elements."""
        kind = field["kind"]
        if kind == "group":
            members = [self.element(one, inner) for inner, one in flat(field["fields"])]
            return AggregateMember(name, members)
        if kind == "enumeration":
            return EnumeratedMember(name, self.choices(field["enumeration"]), encoding=unsigned(8 * field["bytes"]))
        if kind == "time":
            return AbsoluteTimeMember(name, Epoch.UNIX, encoding=TIME)
        return IntegerMember(name, signed=kind.startswith("i"), bits=max(32, 8 * codec.size(field)), encoding=self.integer(field))

    def is_report(self, service: int, subtype: int):
        return all_of(eq(self.service, service, calibrated=False), eq(self.subtype, subtype, calibrated=False))

    def verification(self):
        """Reports of service 1: which telecommand, and why not."""
        place = Subsystem(self.system, "verification")
        request = self.parameters(place, flat([{"kind": "group", "name": "request", "fields": self.known.reports[1, 1]["fields"][0]["fields"]}]))
        apid = IntegerParameter(place, "request_apid", signed=False, encoding=unsigned(11), short_description="Application process of the telecommand")
        count = IntegerParameter(place, "request_count", signed=False, encoding=unsigned(14), short_description="Sequence count of the telecommand")
        # The same bytes again, as the verifiers want them.
        entries = [*request, ParameterEntry(apid, bitpos=HEADER + 5), ParameterEntry(count, bitpos=HEADER + 18)]
        base = Container(self.system, "verification", entries, base=self.packet, abstract=True, condition=eq(self.service, 1, calibrated=False))
        self.sent = [InputParameter("/yamcs/cmd/arg/apid", name="sentApid"), InputParameter("/yamcs/cmdHist/ccsds-seqcount", name="sentSeq"),
                     InputParameter(apid, name="rcvdApid"), InputParameter(count, name="rcvdSeq"), InputParameter(self.subtype, name="reportSubType")]
        self.codes = {}
        for (service, subtype), report in sorted(self.known.reports.items()):
            if service != 1:
                continue
            own = Subsystem(self.system, report["name"], short_description=report["doc"])
            fields = self.parameters(own, flat(report["fields"][1:]))
            self.codes |= {subtype: one.parameter for one in fields if one.parameter.name == "code"}
            if fields:
                fields[0].bitpos = HEADER + 32
            Container(self.system, report["name"], fields, base=base, condition=eq(self.subtype, subtype, calibrated=False), short_description=report["doc"], hint_partition=True)

    def report(self, report: dict):
        place = Subsystem(self.system, report["name"], short_description=report["doc"])
        Container(self.system, report["name"], self.parameters(place, flat(report["fields"])), base=self.packet, condition=self.is_report(report["service"], report["subtype"]),
                  short_description=report["doc"], hint_partition=True)

    def structures(self):
        table = [(sid, one["name"], one["doc"]) for sid, one in self.known.housekeeping.items()]
        sid = EnumeratedParameter(self.system, "structure", table, encoding=unsigned(8), short_description="Which housekeeping structure")
        base = Container(self.system, "housekeeping", [ParameterEntry(sid)], base=self.packet, abstract=True, condition=self.is_report(3, 25))
        for number, one in self.known.housekeeping.items():
            place = Subsystem(self.system, one["name"] if one["name"] not in self.taken() else f"HK_{one['name']}", short_description=one["doc"])
            Container(self.system, f"HK_{one['name']}", self.parameters(place, flat(one["fields"], content=True)), base=base, condition=eq(sid, number),
                      short_description=one["doc"], rate=one["period"] / 10 or None, hint_partition=True)

    def taken(self) -> set:
        return {one.name for one in self.system.subsystems}

    def events(self):
        event = EnumeratedParameter(self.system, "event_id", [(number, one["name"], one["doc"]) for number, one in self.known.events.items()], encoding=unsigned(8), short_description="Which event")
        base = Container(self.system, "event", [ParameterEntry(event)], base=self.packet, abstract=True, condition=eq(self.service, 5, calibrated=False))
        place = Subsystem(self.system, "EVENTS", short_description="What the unit reports by itself")
        self.texts = []
        for number, one in self.known.events.items():
            fields = flat(one["fields"])
            own = Subsystem(place, one["name"], short_description=one["doc"])
            Container(self.system, f"EVENT_{one['name']}", self.parameters(own, fields), base=base,
                      condition=all_of(eq(self.subtype, one["subtype"], calibrated=False), eq(event, number)), short_description=one["doc"], hint_partition=True)
            said = ", ".join(f"{name} {{{own.qualified_name}/{name}}}{' ' + field['unit'] if field.get('unit') else ''}" for name, field in fields)
            self.texts.append({"eventId": one["name"], "template": one["doc"].rstrip(".") + (f": {said}" if said else "")})

    # ---- telecommands ------------------------------------------------------

    def telecommands(self):
        apid = IntegerArgument("apid", signed=False, bits=32, encoding=unsigned(11), default=self.known.apid, short_description="Application process")
        acknowledge = IntegerArgument("acknowledge", signed=False, bits=32, encoding=unsigned(4), default=15, short_description="Which reports are wanted")
        service = IntegerArgument("service", signed=False, bits=32, encoding=unsigned(8))
        subtype = IntegerArgument("subtype", signed=False, bits=32, encoding=unsigned(8))
        fixed = FixedValueEntry
        base = Command(self.system, "telecommand", abstract=True, arguments=[apid, acknowledge, service, subtype], short_description="A telecommand packet of PUS-C", entries=[
            fixed("00", "version", bits=3), fixed("01", "type", bits=1), fixed("01", "secondary_header", bits=1), ArgumentEntry(apid), fixed("03", "sequence_flags", bits=2),
            fixed("0000", "sequence_count", bits=14), fixed("0000", "length", bits=16), fixed("02", "pus_version", bits=4), ArgumentEntry(acknowledge), ArgumentEntry(service),
            ArgumentEntry(subtype), fixed("0000", "source", bits=16)])
        base.accepted_verifier = AcceptedVerifier(self.verifier(1), WITHIN[1])
        base.execution_verifiers = [ExecutionVerifier(self.verifier(3), WITHIN[3], name="Started")]
        base.complete_verifiers = [CompleteVerifier(self.verifier(7), WITHIN[7])]
        for one in self.known.telecommands.values():
            arguments = [argument for name, field in flat(one["arguments"]) for argument in self.arguments(name, field)]
            entries = [ArgumentEntry(argument) for argument in arguments]
            if one["function"] is not None:
                entries.insert(0, fixed(bytes([one["function"]]), "function", bits=8))
            own = Command(self.system, one["name"], base=base, assignments={"service": one["service"], "subtype": one["subtype"]}, arguments=arguments, entries=entries,
                          short_description=one["doc"], long_description=f"Allowed in {', '.join(one['modes'])}.")
            # What lasts for a time that is told is completed behind it.
            lasts = [field["range"][1] for field in one["arguments"] if field["name"] == "duration"]
            own.complete_verifiers = [CompleteVerifier(self.verifier(7), WITHIN[7] + seconds) for seconds in lasts]

    def verifier(self, stage: int) -> AlgorithmCheck:
        """Reports of a stage: the subtype itself, and the next, which says why not."""
        text = f'org.yamcs.pus.Pus1Verifier({{stage: {stage}, template: "{{errorCode}}"}})'
        return AlgorithmCheck(UnnamedJavaAlgorithm(text, inputs=[*self.sent, InputParameter(self.codes[stage + 1], name="errorCode")]))

    def arguments(self, name: str, field: dict) -> list:
        kind, about, units = field["kind"], field.get("doc"), field.get("unit")
        least, greatest = field.get("range", (None, None))
        if kind in codec.NUMBERS:
            bits = 8 * codec.size(field)
            if least is None:
                least, greatest = (-(1 << bits - 1), (1 << bits - 1) - 1) if kind.startswith("i") else (0, (1 << bits) - 1)
            return [IntegerArgument(name, signed=kind.startswith("i"), bits=max(32, bits), minimum=least, maximum=greatest, encoding=self.integer(field), short_description=about, units=units)]
        if kind == "enumeration":
            return [EnumeratedArgument(name, self.choices(field["enumeration"]), encoding=unsigned(8 * field["bytes"]), short_description=about)]
        if kind == "time":
            return [AbsoluteTimeArgument(name, Epoch.UNIX, encoding=TIME, short_description=about)]
        if kind == "bytes":
            return [BinaryArgument(name, min_length=least, max_length=greatest, encoding=BinaryEncoding(length_bits=16), short_description=about)]
        if kind == "rest":
            return [BinaryArgument(name, min_length=least, max_length=greatest, encoding=BinaryEncoding(), short_description=about)]
        if kind == "counted":
            count = IntegerArgument(f"{name}_count", signed=False, bits=32, minimum=least, maximum=greatest, encoding=unsigned(8), short_description="How many follow")
            return [count, ArrayArgument(name, self.element(field["of"]), ArgumentValue(count), short_description=about)]
        raise ValueError(f"{name}: no argument of kind {kind}")

    # ---- files -------------------------------------------------------------

    def xtce(self) -> str:
        """The database as text."""
        text = self.system.dumps(top_comment=False)
        # Algorithms without a name are all given the same one, and only one of them would run.
        return re.sub(r'(<CustomAlgorithm name=)"Unnamed"(.*?stage: )(\d)', r'\1"stage_\3"\2\3', text, flags=re.S)

    def displays(self) -> dict:
        """Tables of parameters for the web pages of Yamcs, one a structure, by file name."""
        tables = {}
        for one in self.known.housekeeping.values():
            names = [f"/DUSTER/{one['name']}/{name}" for name, field in flat(one["fields"], content=True) if field["kind"] != "counted"]
            if names:
                tables[f"{one['name'].capitalize()}.par"] = {"$schema": "https://yamcs.org/schema/parameter-table.schema.json", "scroll": False, "parameters": names}
        return tables


def main(words: list[str]) -> int:
    """Writes the files."""
    if len(words) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    place = pathlib.Path(words[0])
    (place / "displays").mkdir(parents=True, exist_ok=True)
    database = Database(load())
    (place / "mdb.xml").write_text(database.xtce())
    (place / "events.json").write_text(json.dumps(database.texts, indent=1))
    for name, table in database.displays().items():
        (place / "displays" / name).write_text(json.dumps(table, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
