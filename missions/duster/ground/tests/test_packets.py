"""Packets that the flight software's codec wrote, read by libraries that are not ours.

`spacepackets` (Python) reads the packets on file and an invented mission, `ccsdspy` the science of that mission.
"""
import io
import json

import ccsdspy
import ccsdspy.utils
import codec
import pytest
import telemetry
from duster_client import Client
from spacepackets.ecss.tc import PusTc
from spacepackets.ecss.tm import PusTm


def test_telecommands_on_file(golden, known):
    assert {one["name"] for one in golden["telecommands"]} == set(known.telecommands)
    for one in golden["telecommands"]:
        packet = bytes.fromhex(one["packet"])
        tc = PusTc.unpack(packet)  # raises when the check word is wrong
        assert (tc.apid, tc.service, tc.message_subtype, tc.seq_count, tc.app_data.hex()) == (known.apid, one["service"], one["subtype"], one["sequence"], one["data"])


def test_the_client_writes_the_telecommands_on_file(golden, known):
    """What the definitions say of arguments gives the same bytes in Rust and in Python."""
    client = Client.__new__(Client)
    client.known = known
    for one in golden["telecommands"]:
        table = known.telecommands[one["name"]]
        data = codec.Bytes(bytes.fromhex(one["data"]))
        if table["function"] is not None:
            assert data.take(1)[0] == table["function"]
        arguments = codec.read_fields(table["arguments"], data, known.names)
        assert data.rest() == b""
        client.sequence = one["sequence"]
        assert client.packet(one["name"], **arguments).hex() == one["packet"]


def test_telemetry_on_file(golden, known):
    names = {one["name"] for table in ("reports", "housekeeping", "events") for one in known.tables[table]}
    assert {one["name"] for one in golden["telemetry"]} == names
    for one in golden["telemetry"]:
        packet = bytes.fromhex(one["packet"])
        tm = PusTm.unpack(packet, timestamp_len=telemetry.TIME)
        assert (tm.apid, tm.service, tm.message_subtype, tm.seq_count, tm.source_data.hex()) == (known.apid, one["service"], one["subtype"], one["sequence"], one["data"])
        said = telemetry.report(packet, known)
        assert (said["name"], said["time"] * codec.FRACTIONS) == (one["name"], one["time"])
        # The fields that were read give back the bytes that they were read from.
        source = codec.Bytes(tm.source_data)
        table = telemetry.named(said["service"], said["subtype"], source, known)
        assert codec.write_fields(table["fields"], said["fields"], known.names) == source.rest()


def test_a_damaged_packet_is_none(golden, known):
    for one in golden["telemetry"]:
        packet = bytearray.fromhex(one["packet"])
        packet[len(packet) // 2] ^= 4
        with pytest.raises(ValueError):
            telemetry.report(bytes(packet), known)


def test_an_invented_mission_is_read_as_it_was(invented, known):
    truth = json.loads((invented / "truth.json").read_text())
    packets, rest = telemetry.split((invented / "telemetry.bin").read_bytes())
    assert rest == b""
    said = [telemetry.decode(packet, known) for packet in packets]
    assert [one["sequence"] for one in said] == list(range(len(said)))
    science = [one["fields"] for one in said if one["name"] == "SCIENCE"]
    for number, probe in enumerate(("LANGMUIR", "EFIELD", "DUST")):
        own = [one for one in science if (one["kind"], one["probe"]) == ("SAMPLES", probe)]
        assert [one["first"] for one in own] == list(range(0, len(truth["samples"][number]), 384))
        assert [sample for one in own for sample in one["samples"]] == truth["samples"][number]
    for number, steps in enumerate(truth["sweeps"]):
        own = [one for one in science if one["kind"] == "SWEEP" and one["acquisition"] == number + 2]
        assert [[step[key] for key in ("code", "first", "count", "sum")] for one in own for step in one["elements"]] == steps
    windows = [window for one in science if one["kind"] == "FIELD" for window in one["elements"]]
    assert [[window[key] for key in ("first", "mean", "least", "greatest", "rms")] for window in windows] == truth["windows"]
    dust = [one["fields"] for one in said if one["name"] == "DUST_EVENT"]
    assert [[one[key] for key in ("time", "detected", "peak", "charge")] for one in dust] == truth["dust"]


def test_science_is_read_by_a_third_decoder(invented):
    """`ccsdspy` knows neither PUS nor us: a layout of bits, and the samples as an array of 20 bits."""
    truth = json.loads((invented / "truth.json").read_text())
    stream = io.BytesIO((invented / "telemetry.bin").read_bytes())
    field, array = ccsdspy.PacketField, ccsdspy.PacketArray
    header = [field(name, "uint", bits) for name, bits in (("pus", 8), ("service", 8), ("subtype", 8), ("counter", 16), ("destination", 16), ("seconds", 32), ("fraction", 16),
                                                           ("kind", 8), ("probe", 8), ("acquisition", 16), ("rate", 16), ("first", 32), ("time", 64), ("count", 16))]
    full = [packet for packet in ccsdspy.utils.iter_packet_bytes(stream, include_primary_header=True) if packet[7:9] == b"\x80\x80" and packet[19] == 0 and packet[37:39] == (384).to_bytes(2, "big")]
    layout = ccsdspy.FixedLength([*header, array(name="samples", data_type="uint", bit_length=20, array_shape=384), field("check", "uint", 16)])
    read = layout.load(io.BytesIO(b"".join(full)))
    for number in range(3):
        mine = read["probe"] == number
        raw = read["samples"][mine].astype("int64").reshape(-1)
        signed = [int(value) - (1 << 20) if value & 0x80000 else int(value) for value in raw]
        assert signed == truth["samples"][number][:len(signed)]
        assert len(truth["samples"][number]) - len(signed) < 384


def test_samples_of_twenty_bits():
    values = [0, 1, -1, 524287, -524288, 12345, -54321]
    for count in range(len(values) + 1):
        packed = codec.packed(values[:count])
        assert codec.samples(packed, count) == values[:count]
        with pytest.raises(ValueError):
            codec.samples(packed + b"\0", count)
