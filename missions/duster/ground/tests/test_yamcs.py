"""Yamcs, as it is, against a unit that runs: the database, the verifiers, events, archive and displays.

Starts both, and ends both; needs a Java runtime.
"""
import subprocess
import time

import pytest
from conftest import GROUND, Unit, free_port, wait_for
from yamcs.client import NotFound, YamcsClient
from yamcs.client.core.exceptions import YamcsError


@pytest.fixture(scope="module")
def yamcs(tmp_path_factory):
    """A client of Yamcs, which is connected to a unit."""
    unit = Unit("--seed", "7")
    http = free_port()
    log = tmp_path_factory.mktemp("yamcs") / "log"
    with open(log, "wb") as out:
        server = subprocess.Popen([GROUND / "yamcs/run", "--unit", f"127.0.0.1:{unit.port}", "--http", str(http), "--data", str(log.parent / "data")], stdout=out, stderr=out)
    try:
        wait_for(http, server, 120, "Yamcs")
        client = YamcsClient(f"127.0.0.1:{http}")
        processor = client.get_processor("duster", "realtime")
        until(lambda: (mode := processor.get_parameter_value("/DUSTER/SYSTEM/mode")) and mode.eng_value == "SAFE", "unit that is up")
        yield client
    except Exception:
        print(log.read_text()[-4000:])
        raise
    finally:
        server.terminate()
        unit.end()
        server.wait(20)


@pytest.fixture(scope="module")
def processor(yamcs):
    """The processor of what comes now."""
    return yamcs.get_processor("duster", "realtime")


@pytest.fixture(scope="module")
def line(processor):
    """Where telecommands go."""
    return processor.create_command_connection()


def until(wanted, what: str, patience: float = 60):
    """Waits for what `wanted` gives, if it gives something."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        found = wanted()
        if found:
            return found
        time.sleep(0.2)
    raise AssertionError(f"no {what} within {patience} s")


def stages(command) -> dict:
    """How far a telecommand came: status of each verifier."""
    return {name: ack.status for name, ack in command.acknowledgments.items() if name.startswith("Verifier_")}


def send(line, name: str, **arguments):
    """Sends a telecommand and waits for its end."""
    command = line.issue(f"/DUSTER/{name}", args=arguments)
    command.await_complete(timeout=90)
    return command


def test_a_telecommand_is_verified_at_each_stage(line):
    command = send(line, "PING")
    assert command.is_success()
    assert stages(command) == {"Verifier_Accepted": "OK", "Verifier_Started": "OK", "Verifier_Complete": "OK"}


def test_a_refusal_has_its_stage_and_reason(line):
    command = send(line, "START_SWEEP", **{"steps": 600, "from": 0, "to": 100, "dwell": 10})
    assert not command.is_success()
    assert command.error == "MODE"
    assert "NOK" in stages(command).values()
    command = send(line, "SET_MODE", mode="ACQ_FULL")
    assert (command.is_success(), command.error) == (False, "TRANSITION")


def test_arguments_out_of_range_are_not_even_sent(line):
    with pytest.raises(YamcsError, match="range"):
        line.issue("/DUSTER/START_ACQUISITION", args={"probes": 7, "rates": "OBJECTIVE", "duration": 5})
    with pytest.raises(NotFound):
        line.issue("/DUSTER/NO_SUCH_COMMAND")


def test_parameters_follow_the_unit(line, processor):
    assert send(line, "SET_MODE", mode="STANDBY").is_success()
    until(lambda: processor.get_parameter_value("/DUSTER/SYSTEM/mode").eng_value == "STANDBY", "STANDBY")
    first = processor.get_parameter_value("/DUSTER/SYSTEM/uptime").eng_value
    until(lambda: processor.get_parameter_value("/DUSTER/SYSTEM/uptime").eng_value > first, "later housekeeping")
    size = until(lambda: processor.get_parameter_value("/DUSTER/MEMORY/partition_tm_size"), "memory", 90)
    assert size.eng_value > 0
    assert send(line, "SET_PARAMETER", parameter="LOG_LEVEL", value=2).is_success()
    assert send(line, "REPORT_PARAMETER", parameter="LOG_LEVEL").is_success()
    until(lambda: processor.get_parameter_value("/DUSTER/PARAMETER/value").eng_value == 2, "the parameter's value")


def test_on_board_time_is_set_and_seen(line, processor):
    assert send(line, "SET_TIME", time="2026-11-25T12:00:00.000Z").is_success()
    value = until(lambda: (v := processor.get_parameter_value("/DUSTER/SYSTEM/uptime")).generation_time.year == 2026 and v, "packets of that time")
    assert (value.generation_time.month, value.generation_time.day) == (11, 25)


def test_a_scheduled_telecommand_is_executed(line, processor):
    """An entry of the schedule, with a telecommand in it that the ground has made before."""
    import definitions
    from duster_client import Client
    maker = Client.__new__(Client)
    maker.known, maker.sequence = definitions.load(), 0x2000
    inner = maker.packet("REPORT_MODE")
    now = processor.get_parameter_value("/DUSTER/SYSTEM/uptime").generation_time
    release = now.timestamp() + 4
    assert send(line, "ENABLE_SCHEDULE").is_success()
    before = processor.get_parameter_value("/DUSTER/MODE/mode")
    command = send(line, "INSERT_SCHEDULE", count=1, release=time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(release)), request=inner.hex())
    assert command.is_success(), command.error

    def reported():
        value = processor.get_parameter_value("/DUSTER/MODE/mode")
        return value and (before is None or value.generation_time > before.generation_time)

    until(reported, "mode, as scheduled")


def test_events_and_packets_are_archived(yamcs, line):
    archive = yamcs.get_archive("duster")
    events = until(lambda: [one for one in archive.list_events() if one.event_type == "MODE_CHANGED"], "event")
    assert any("to STANDBY" in one.message for one in events)
    names = until(lambda: (found := {one.name for one in archive.list_packets()}) >= {"/DUSTER/HK_SYSTEM", "/DUSTER/COMPLETED", "/DUSTER/ALIVE"} and found, "packets")
    assert "/DUSTER/EVENT_MODE_CHANGED" in names
    history = [one.name for one in archive.list_command_history()]
    assert "/DUSTER/PING" in history


def test_a_sweep_comes_through(yamcs, line):
    assert send(line, "SET_MODE", mode="SWEEP").is_success()
    assert send(line, "START_SWEEP", **{"steps": 600, "from": -20000, "to": 20000, "dwell": 10}).is_success()
    archive = yamcs.get_archive("duster")
    until(lambda: [one for one in archive.list_events() if one.event_type == "SWEEP_FINISHED"], "end of the sweep", 90)
    packets = [bytes(one.binary) for one in until(lambda: list(archive.list_packets(name="/DUSTER/SCIENCE")), "science")]
    assert sum(int.from_bytes(packet[37:39], "big") for packet in packets if packet[19] == 1) == 600


def test_displays_are_there(yamcs):
    names = {one.name for one in yamcs.get_storage_client().get_bucket("displays").list_objects().objects}
    assert {"System.par", "Supplies.par", "Memory.par", "Acquisition.par"} <= names
