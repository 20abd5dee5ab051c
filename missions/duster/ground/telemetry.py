"""Telemetry of the unit as Python values: the packets by `spacepackets`, their content by the definitions.

Invariant: a packet whose check word is wrong, or whose content is not that of its report, raises ValueError.
"""
from __future__ import annotations

import codec
from definitions import Definitions
from spacepackets.ecss.tm import InvalidTmCrc16Error, PusTm

#: Bytes of the time in a packet's secondary header: CUC 4 + 2.
TIME = 6
PRIMARY = 6
#: Service and subtype of science, as it comes and out of the store.
SCIENCE = {(128, 128), (128, 129)}


def split(data: bytes) -> tuple[list[bytes], bytes]:
    """The whole packets that a stream begins with, and what is left of it."""
    packets, at = [], 0
    while len(data) - at >= PRIMARY:
        length = int.from_bytes(data[at + 4:at + 6], "big") + PRIMARY + 1
        if len(data) - at < length:
            break
        packets.append(data[at:at + length])
        at += length
    return packets, data[at:]


def decode(packet: bytes, known: Definitions) -> dict:
    """A packet as a dictionary: `name`, `service`, `subtype`, `sequence`, `time` in seconds, and the report's `fields`.

    Housekeeping and events have the name of their structure or event. Fields of science have, in place of its data,
    `samples`, or `elements`: the steps of a sweep, or windows.
    """
    said = report(packet, known)
    if (said["service"], said["subtype"]) in SCIENCE:
        said["fields"] |= science(said["fields"], known)
        del said["fields"]["data"]
    return said


def report(packet: bytes, known: Definitions) -> dict:
    """A packet as a dictionary, the data of science as it is."""
    try:
        tm = PusTm.unpack(packet, timestamp_len=TIME)
    except InvalidTmCrc16Error as error:
        raise ValueError("the check word is wrong") from error
    if tm.apid != known.apid:
        raise ValueError(f"application process {tm.apid}")
    source = codec.Bytes(tm.source_data)
    service, subtype = tm.service, tm.message_subtype
    table = named(service, subtype, source, known)
    fields = codec.read_fields(table["fields"], source, known.names)
    if source.rest():
        raise ValueError(f"bytes are left over behind {table['name']}")
    time = codec.read({"kind": "time"}, codec.Bytes(tm.timestamp), {})
    return {"name": table["name"], "service": service, "subtype": subtype, "sequence": tm.seq_count, "time": time, "fields": fields}


def named(service: int, subtype: int, source: codec.Bytes, known: Definitions) -> dict:
    """The row of the definitions that says what the packet holds."""
    if (service, subtype) == (3, 25):
        table = known.housekeeping.get(source.take(1)[0])
    elif service == 5 and subtype <= 4:
        table = known.events.get(source.take(1)[0])
        if table and table["subtype"] != subtype:
            raise ValueError(f"event {table['name']} with severity {subtype}")
    else:
        table = known.reports.get((service, subtype))
    if table is None:
        raise ValueError(f"no report ({service}, {subtype})")
    return table


def science(fields: dict, known: Definitions) -> dict:
    """What stands in the data of a science packet."""
    body, source = known.science[fields["kind"]], codec.Bytes(fields["data"])
    said = codec.read_fields(body["header"], source, known.names)
    if body["element"] == "sample20":
        return said | {"samples": codec.samples(source.rest(), fields["count"])}
    of = {"kind": "group", "fields": body["element"]}
    elements = [codec.read(of, source, known.names) for _ in range(fields["count"])]
    if source.rest():
        raise ValueError("bytes are left over in science")
    return said | {"elements": elements}
