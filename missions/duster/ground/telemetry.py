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
    """A packet as a dictionary: `name`, `service`, `subtype`, `sequence`, `time` in seconds, and the report's fields.

    Housekeeping and events have the name of their structure or event. Science has, in place of its data, `samples`,
    `steps` or `windows`.
    """
    try:
        tm = PusTm.unpack(packet, timestamp_len=TIME)
    except InvalidTmCrc16Error as error:
        raise ValueError("the check word is wrong") from error
    if tm.apid != known.apid:
        raise ValueError(f"application process {tm.apid}")
    source = codec.Bytes(tm.source_data)
    service, subtype = tm.service, tm.message_subtype
    said = {"service": service, "subtype": subtype, "sequence": tm.seq_count, "time": codec.read({"kind": "time"}, codec.Bytes(tm.timestamp), {})}
    if (service, subtype) == (3, 25):
        table = known.housekeeping[source.take(1)[0]]
    elif service == 5 and subtype <= 4:
        table = known.events[source.take(1)[0]]
        if table["subtype"] != subtype:
            raise ValueError(f"event {table['name']} with severity {subtype}")
    else:
        table = known.reports.get((service, subtype))
        if table is None:
            raise ValueError(f"no report ({service}, {subtype})")
    said |= {"name": table["name"], "fields": codec.read_fields(table["fields"], source, known.names)}
    if source.rest():
        raise ValueError(f"bytes are left over behind {table['name']}")
    if service == 128 and subtype >= 128:
        said["fields"] |= science(said["fields"], known)
        del said["fields"]["data"]
    return said


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
