"""The database of Yamcs says what the definitions say, read by another reader than the library that wrote it.

Layouts are counted here in bits from both sides: out of the XML, by a reader of XTCE written for this test, and out of
the definitions.
"""
import json
import re
import xml.etree.ElementTree as xml

import codec
import mdb
import pytest

SPACE = "{http://www.omg.org/spec/XTCE/20180204}"
BITS = {"u8": 8, "u16": 16, "u32": 32, "u64": 64, "i16": 16, "i32": 32, "time": 48}


class Reader:
    """An XTCE document: types, parameters and containers by their full names."""

    def __init__(self, text: str):
        self.types, self.parameters, self.containers, self.commands = {}, {}, {}, {}
        self.system(xml.fromstring(text), "")

    def system(self, node, above: str):
        place = f"{above}/{node.get('name')}"
        telemetry, commands = node.find(f"{SPACE}TelemetryMetaData"), node.find(f"{SPACE}CommandMetaData")
        for group, tags in ((telemetry, ("ParameterTypeSet", "ParameterSet", "ContainerSet")), (commands, ("ArgumentTypeSet", "MetaCommandSet"))):
            if group is None:
                continue
            for tag, kept in zip(tags, (self.types, self.parameters, self.containers) if group is telemetry else (self.types, self.commands)):
                kept |= {f"{place}/{one.get('name')}": one for one in group.findall(f"{SPACE}{tag}/*")}
        for inner in node.findall(f"{SPACE}SpaceSystem"):
            self.system(inner, place)

    def layout(self, full: str) -> tuple:
        """Bits of a type, whether it is signed, and the names of its numbers; of an array those of its elements."""
        node = self.types[full]
        place = full.rsplit("/", 1)[0]
        if node.tag.startswith(f"{SPACE}Array"):
            return ("array", self.layout(f"{place}/{node.get('arrayTypeRef')}"))
        if node.tag.startswith(f"{SPACE}Aggregate"):
            return tuple((one.get("name"), self.layout(f"{place}/{one.get('typeRef')}")) for one in node.findall(f"{SPACE}MemberList/{SPACE}Member"))
        if node.tag.startswith(f"{SPACE}Binary"):
            leading = node.find(f".//{SPACE}AlgorithmText")
            return ("bytes" if leading is not None and "LeadingSizeBinary" in leading.text and "(16)" in leading.text else "rest",)
        number = node.find(f".//{SPACE}IntegerDataEncoding")
        names = {int(one.get("value")): one.get("label") for one in node.findall(f"{SPACE}EnumerationList/{SPACE}Enumeration")}
        return (int(number.get("sizeInBits")), number.get("encoding") == "twosComplement", names)

    def container(self, name: str) -> list:
        """What a container itself holds: (name, layout), but for what lies over the bytes before."""
        place = "/DUSTER"
        entries = []
        for entry in self.containers[f"{place}/{name}"].findall(f"{SPACE}EntryList/{SPACE}ParameterRefEntry"):
            full = f"{place}/{entry.get('parameterRef')}"
            own = full.rsplit("/", 1)[0]
            entries.append((full.rsplit("/", 1)[1], self.layout(f"{own}/{self.parameters[full].get('parameterTypeRef')}")))
        return entries

    def criteria(self, name: str) -> dict:
        """What a packet must be to be of a container, its bases included."""
        base = self.containers[f"/DUSTER/{name}"].find(f"{SPACE}BaseContainer")
        if base is None:
            return {}
        own = {one.get("parameterRef").rsplit("/", 1)[-1]: one.get("value") for one in base.iter(f"{SPACE}Comparison")}
        own |= {one.find(f"{SPACE}ParameterInstanceRef").get("parameterRef").rsplit("/", 1)[-1]: one.find(f"{SPACE}Value").text for one in base.iter(f"{SPACE}Condition")}
        return self.criteria(base.get("containerRef")) | own


def wanted(field: dict, known) -> list:
    """Layouts of a field by the definitions: [(name, layout)]."""
    kind, name = field["kind"], field["name"]
    if kind == "group":
        return [(f"{name}_{inner}", layout) for one in field["fields"] for inner, layout in wanted(one, known)]
    if kind == "repeated":
        return [(f"{name}_{which}_{inner}", layout) for which in field["names"] for one in field["of"]["fields"] for inner, layout in wanted(one, known)]
    if kind == "counted":
        return [(f"{name}_count", (8, False, {})), (name, ("array", element(field["of"], known)))]
    return [(name, element(field, known))]


def element(field: dict, known):
    kind = field["kind"]
    if kind == "group":
        return tuple(pair for one in field["fields"] for pair in wanted(one, known))
    if kind == "enumeration":
        return (8 * field["bytes"], False, known.names[field["enumeration"]])
    if kind in ("bytes", "rest"):
        return (kind,)
    return (BITS[kind], kind.startswith("i"), {})


@pytest.fixture(scope="module")
def database(known):
    return mdb.Database(known)


@pytest.fixture(scope="module")
def read(database):
    return Reader(database.xtce())


def test_reports_are_laid_out_as_defined(read, known):
    for (service, subtype), report in known.reports.items():
        criteria = read.criteria(report["name"])
        assert (criteria["service"], criteria["subtype"]) == (str(service), str(subtype)), report["name"]
        fields = [pair for field in report["fields"] for pair in wanted(field, known) if pair[1] != ("rest",)]
        if service == 1:
            fields = fields[2:]  # which telecommand stands in the base
        assert read.container(report["name"]) == fields, report["name"]
    assert read.container("verification")[:2] == wanted(known.reports[1, 1]["fields"][0], known)


def test_housekeeping_is_laid_out_as_defined(read, known):
    for structure in known.housekeeping.values():
        name = f"HK_{structure['name']}"
        assert read.criteria(name) == {"service": "3", "subtype": "25", "structure": structure["name"]}
        # A group that holds all of a structure gives no name to its fields.
        fields = [pair for field in structure["fields"] for one in (field["fields"] if field["kind"] == "group" else [field]) for pair in wanted(one, known)]
        assert read.container(name) == fields, name


def test_events_are_laid_out_as_defined(read, known, database):
    for event in known.events.values():
        name = f"EVENT_{event['name']}"
        assert read.criteria(name) == {"service": "5", "subtype": str(event["subtype"]), "event_id": event["name"]}
        assert read.container(name) == [pair for field in event["fields"] for pair in wanted(field, known)], name
    assert [text["eventId"] for text in database.texts] == [event["name"] for event in known.events.values()]
    for text in database.texts:
        for parameter in re.findall(r"{([^}]*)}", text["template"]):
            assert parameter in read.parameters


def test_telecommands_are_laid_out_as_defined(read, known):
    names = {full.rsplit("/", 1)[1] for full in read.commands} - {"telecommand"}
    assert names == set(known.telecommands)
    for name, table in known.telecommands.items():
        node = read.commands[f"/DUSTER/{name}"]
        assigned = {one.get("argumentName"): one.get("argumentValue") for one in node.iter(f"{SPACE}ArgumentAssignment")}
        assert assigned == {"service": str(table["service"]), "subtype": str(table["subtype"])}
        types = {one.get("name"): f"/DUSTER/{one.get('argumentTypeRef')}" for one in node.findall(f"{SPACE}ArgumentList/{SPACE}Argument")}
        entries = list(node.find(f"{SPACE}CommandContainer/{SPACE}EntryList"))
        if table["function"] is not None:
            fixed = entries.pop(0)
            assert (fixed.get("binaryValue"), fixed.get("sizeInBits")) == (f"{table['function']:02X}", "8") or int(fixed.get("binaryValue"), 16) == table["function"]
        laid = [(one.get("argumentRef"), read.layout(types[one.get("argumentRef")])) for one in entries]
        assert laid == [pair for field in table["arguments"] for pair in wanted(field, known)], name
        for field in table["arguments"]:
            if "range" in field and field["kind"] in codec.NUMBERS:
                valid = read.types[types[field["name"]]].find(f".//{SPACE}ValidRange")
                assert [int(valid.get("minInclusive")), int(valid.get("maxInclusive"))] == field["range"], (name, field["name"])


def test_every_telecommand_is_verified(read, known):
    base = read.commands["/DUSTER/telecommand"]
    algorithms = [one for one in base.iter(f"{SPACE}CustomAlgorithm")]
    # Of two algorithms of one name, one would not run.
    assert len({one.get("name") for one in algorithms}) == len(algorithms) == 3
    stages = {int(re.search(r"stage: (\d)", one.find(f"{SPACE}AlgorithmText").text)[1]) for one in algorithms}
    assert stages == {1, 3, 7}
    for name in known.telecommands:
        node = read.commands[f"/DUSTER/{name}"]
        assert node.find(f"{SPACE}BaseMetaCommand").get("metaCommandRef") == "telecommand"
        # An acquisition is completed when it ends.
        assert [one.get("timeToStopChecking") for one in node.iter(f"{SPACE}CheckWindow")] == (["PT1H2M"] if name == "START_ACQUISITION" else [])


def test_no_type_hides_another(read):
    """Yamcs takes a type of a system above for one of the same name that lies beside."""
    for full in read.types:
        place, name = full.rsplit("/", 1)
        above = place.rsplit("/", 1)[0]
        while above:
            assert f"{above}/{name}" not in read.types, full
            above = above.rsplit("/", 1)[0]


def test_displays_show_what_there_is(read, database):
    displays = database.displays()
    assert len(displays) >= 4
    for table in displays.values():
        assert json.loads(json.dumps(table))["parameters"]
        assert set(table["parameters"]) <= set(read.parameters)
