"""The client against a unit that runs: what is right is done, what is wrong is refused with its reason.

Tests are in the order of the unit's day: it begins in SAFE, measures, and gives out what it has stored.
"""
import json
import time
import urllib.request

import pytest
from duster_client import Client, Refused


@pytest.fixture
def client(unit, known):
    """A connection of its own; whatever the test was about, telemetry has no gap and nothing unreadable."""
    with Client("127.0.0.1", unit.port, known, patience=60) as connected:
        yield connected
        assert connected.unread == []
        assert connected.gaps == 0


def named(client, name: str) -> list[dict]:
    """What came of a name."""
    return [said for said in client.heard if said["name"] == name]


def mode_of(client) -> str:
    """The mode, asked for."""
    client.command("REPORT_MODE")
    return named(client, "MODE")[-1]["fields"]["mode"]


def go(client, mode: str):
    """Changes the mode, and waits until it has changed."""
    end = time.monotonic() + 60
    asked = False
    while (now := mode_of(client)) != mode:
        assert time.monotonic() < end, f"the mode does not become {mode}"
        if now != "BOOT" and not asked:
            client.command("SET_MODE", mode=mode)
            asked = True
        client.receive(0.2)


def test_it_is_alive(client):
    reports = client.command("PING")
    assert [said["name"] for said in reports] == ["ACCEPTED", "STARTED", "COMPLETED"]
    assert named(client, "ALIVE")
    client.command("TEST_CONNECTION", apid=42)
    client.command("TEST_CONNECTION", apid=43)
    assert [said["fields"]["apid"] for said in named(client, "CONNECTED")] == [42, 43]
    with pytest.raises(Refused, match="ARGUMENT"):
        client.outcome("TEST_CONNECTION", client.send(client.raw_packet(17, 3, b"\0\7")))


def test_what_is_damaged_or_unknown_is_refused(client, known):
    damaged = bytearray(client.packet("PING"))
    damaged[-1] ^= 0x40
    with pytest.raises(Refused) as refused:
        client.outcome("PING", client.send(bytes(damaged)))
    assert (refused.value.stage, refused.value.code) == ("REFUSED", "CHECKSUM")
    client.receive(0.5)  # the unit waits for silence, lest it takes the rest of a packet for another
    for service, subtype, data, code in ((200, 1, b"", "SERVICE"), (17, 99, b"", "SUBTYPE"), (8, 1, b"\xfa", "FUNCTION"), (17, 1, b"\1", "LENGTH"), (128, 1, b"\x63", "ARGUMENT")):
        with pytest.raises(Refused) as refused:
            client.outcome("raw", client.send(client.raw_packet(service, subtype, data)))
        assert (refused.value.stage, refused.value.code) == ("REFUSED", code)
    with pytest.raises(Refused, match="APID"):
        client.outcome("raw", client.send(client.raw_packet(17, 1, apid=known.apid + 7)))
    client.command("PING")


def test_housekeeping_comes_by_itself(client, known):
    wanted = {structure["name"] for structure in known.housekeeping.values() if structure["period"]}
    end = time.monotonic() + 60
    while not wanted <= {said["name"] for said in client.heard}:
        assert time.monotonic() < end, wanted
        client.receive(1)
    memory = named(client, "MEMORY")[-1]["fields"]["memory"]["partition"]
    assert set(memory) == {"tc", "tm", "schedule", "events", "langmuir", "efield", "dust"}
    for partition in memory.values():
        assert partition["used"] <= partition["peak"] <= partition["size"]
        assert partition["refusals"] == 0


def test_what_a_mode_does_not_allow_is_refused(client, known):
    go(client, "SAFE")
    for name, arguments in (("START_SWEEP", {"steps": 600, "from": -1000, "to": 1000, "dwell": 10}), ("START_ACQUISITION", {"probes": 7, "rates": "OBJECTIVE", "duration": 60}),
                            ("HV_SET", {"voltage": 100}), ("DUMP_SCIENCE", {"acquisition": 0, "first": 0, "count": 1})):
        assert "SAFE" not in known.telecommands[name]["modes"]
        with pytest.raises(Refused) as refused:
            client.command(name, **arguments)
        assert refused.value.code == "MODE"
    with pytest.raises(Refused, match="TRANSITION"):
        client.command("SET_MODE", mode="ACQ_FULL")
    go(client, "STANDBY")
    with pytest.raises(Refused) as refused:
        client.command("HV_SET", voltage=1000)
    assert refused.value.code == "NOT_ARMED"


def test_parameters_are_set_within_their_range(client):
    client.command("SET_PARAMETER", parameter="ARM_TIMEOUT", value=30)
    client.command("REPORT_PARAMETER", parameter="ARM_TIMEOUT")
    assert named(client, "PARAMETER")[-1]["fields"] == {"parameter": "ARM_TIMEOUT", "value": 30}
    with pytest.raises(Refused, match="ARGUMENT"):
        client.command("SET_PARAMETER", parameter="ARM_TIMEOUT", value=100_000)


@pytest.mark.parametrize("steps", [600, 1000])
def test_a_sweep_has_every_step(client, steps):
    go(client, "STANDBY")
    go(client, "SWEEP")
    with pytest.raises(Refused, match="ARGUMENT"):
        client.command("START_SWEEP", **{"steps": 599, "from": 0, "to": 1, "dwell": 10})
    begun = len(client.heard)
    client.command("START_SWEEP", **{"steps": steps, "from": -30000, "to": 30000, "dwell": 10})
    if not any(said["name"] == "SWEEP_FINISHED" for said in client.heard[begun:]):
        client.wait(lambda said: said["name"] == "SWEEP_FINISHED", 120)
    acquisition = [said for said in client.heard[begun:] if said["name"] == "SWEEP_FINISHED"][-1]["fields"]["acquisition"]
    found = {}

    def come():
        for said in client.heard[begun:]:
            fields = said["fields"]
            if said["name"] == "SCIENCE" and fields["kind"] == "SWEEP" and fields["acquisition"] == acquisition:
                found.update({step["first"]: step for step in fields["elements"]})
        return len(found)

    end = time.monotonic() + 30
    while come() < steps and time.monotonic() < end:
        client.receive(1)
    codes = [found[first]["code"] for first in sorted(found)]
    assert len(codes) == steps
    assert (codes[0], codes[-1]) == (-30000, 30000)
    assert codes == sorted(codes)
    assert all(step["count"] > 0 for step in found.values())


def test_a_dump_that_was_cut_off_is_taken_up(unit, known):
    with Client("127.0.0.1", unit.port, known, patience=60) as client:
        go(client, "STANDBY")
        go(client, "ACQ_ENV")
        acquisition = client.send(client.packet("START_ACQUISITION", probes=3, rates="OBJECTIVE", duration=60))
        client.wait(lambda said: said["name"] == "SCIENCE" and said["fields"]["first"] >= 20_000, 120)
        client.command("STOP_ACQUISITION")
        with pytest.raises(Refused, match="ABORTED"):
            client.outcome("START_ACQUISITION", acquisition)
        done = [said for said in client.heard if said["name"] == "ACQUISITION_FINISHED"] or [client.wait(lambda said: said["name"] == "ACQUISITION_FINISHED")]
        acquisition, records = (done[-1]["fields"][key] for key in ("acquisition", "records"))
        go(client, "DUMP")
        client.send(client.packet("DUMP_SCIENCE", acquisition=acquisition, first=0, count=records))
        stored = lambda: [said["fields"] for said in client.heard if said["name"] == "STORED_SCIENCE"]  # noqa: E731
        while len(stored()) < records // 3:
            client.receive(5)
        had = stored()
    # The connection has ended in the midst; what was under way is lost.
    assert 0 < len(had) < records
    with Client("127.0.0.1", unit.port, known, patience=60) as client:
        try:
            client.command("STOP_DUMP")
        except Refused as refused:
            assert refused.code == "IDLE"  # it has ended without us
        client.command("DUMP_SCIENCE", acquisition=acquisition, first=len(had), count=records)

        def whole() -> dict:
            rest = [said["fields"] for said in client.heard if said["name"] == "STORED_SCIENCE" and said["fields"]["acquisition"] == acquisition]
            return {(one["probe"], one["kind"], one["first"]): one for one in had + rest}

        # The report of completion overtakes science that waits for the line.
        end = time.monotonic() + 30
        while len(whole()) < records and time.monotonic() < end:
            client.receive(1)
        assert len(whole()) == records
        for probe in ("LANGMUIR", "EFIELD"):
            own = sorted((first, one["count"]) for (name, kind, first), one in whole().items() if (name, kind) == (probe, "SAMPLES"))
            assert [first + count for first, count in own[:-1]] == [first for first, _ in own[1:]]
            assert own[0][0] == 0
        client.command("DELETE_SCIENCE", acquisition=65535)
        go(client, "STANDBY")


def test_the_page_shows_what_came(unit):
    with urllib.request.urlopen(f"http://127.0.0.1:{unit.page}/science?after=0", timeout=20) as answer:
        view = json.load(answer)
    assert view["unread"] == 0
    assert view["counts"]["sweeps"] >= 2
    assert [len(sweep["steps"]) for sweep in view["sweeps"]][:2] == [600, 1000]
    assert view["probes"][0]["samples"] > 20_000
    with urllib.request.urlopen(f"http://127.0.0.1:{unit.page}/", timeout=20) as answer:
        assert b"connect-src 'self'" in answer.read()
