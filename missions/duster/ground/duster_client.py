"""A client of the unit: telecommands by name, telemetry as dictionaries, over the TCP port of `metes mission serve`.

    with Client("127.0.0.1", 10025) as unit:
        unit.command("SET_MODE", mode="STANDBY")
        unit.wait(lambda said: said["name"] == "SYSTEM")

It knows nothing of the flight software: packets are made and read by the library `spacepackets`, fields by the
definitions that the protocol prints. On the command line: `duster_client.py HOST:PORT NAME [ARGUMENT=VALUE …]` sends a
telecommand, without a name it prints what comes.

Invariant: every telecommand has a sequence count of its own; what came and was not asked for is kept in `heard`.
"""
from __future__ import annotations

import json
import random
import socket
import sys
import time

import codec
import telemetry
from definitions import Definitions, load
from spacepackets.ecss.tc import PusTc

#: Reports that end a telecommand's way: completed, or refused at some stage.
ENDS = {"COMPLETED", "REFUSED", "NOT_STARTED", "NOT_COMPLETED"}
ACKNOWLEDGE_ALL = 0b1111


class Refused(Exception):
    """The unit refused a telecommand, or did not begin or complete it."""

    def __init__(self, name: str, stage: str, code: str):
        super().__init__(f"{name}: {stage}, {code}")
        self.stage, self.code = stage, code


class Client:
    """A connection to the unit."""

    def __init__(self, host: str, port: int, known: Definitions | None = None, patience: float = 20):
        self.known = known or load()
        self.patience = patience
        self.line = socket.create_connection((host, port), timeout=patience)
        self.rest, self.heard, self.unread = b"", [], []
        # Reports of what a client before us asked for are not to be taken for ours.
        self.sequence = random.randrange(0x4000)
        self.gaps = 0
        self.last = None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends the connection; what the unit sends meanwhile is the unit's affair."""
        self.line.close()

    # ---- telecommands ------------------------------------------------------

    def packet(self, name: str, **arguments) -> bytes:
        """The packet of a telecommand, with the next sequence count."""
        table = self.known.telecommands[name]
        data = codec.write_fields(table["arguments"], arguments, self.known.names)
        if table["function"] is not None:
            data = bytes([table["function"]]) + data
        return self.raw_packet(table["service"], table["subtype"], data)

    def raw_packet(self, service: int, subtype: int, data: bytes = b"", apid: int | None = None) -> bytes:
        """The packet of a request that the definitions need not know."""
        packet = PusTc(apid=self.known.apid if apid is None else apid, service=service, message_subtype=subtype, app_data=data,
                       seq_count=self.sequence, ack_flags=ACKNOWLEDGE_ALL).pack()
        self.sequence = (self.sequence + 1) & 0x3FFF
        return bytes(packet)

    def send(self, packet: bytes) -> tuple[int, int]:
        """Sends bytes; how reports name the packet that they are."""
        self.line.sendall(packet)
        return int.from_bytes(packet[:2], "big"), int.from_bytes(packet[2:4], "big")

    def command(self, name: str, **arguments) -> list[dict]:
        """Sends a telecommand and waits for its end; all reports of it. Raises Refused."""
        return self.outcome(name, self.send(self.packet(name, **arguments)))

    def outcome(self, name: str, request: tuple[int, int]) -> list[dict]:
        """Waits for the end of the telecommand that reports name so, if it has not come; all reports of it."""
        own = dict(zip(("packet", "sequence"), request))

        def mine() -> list[dict]:
            return [said for said in self.heard if said["service"] == 1 and said["fields"]["request"] == own]

        def ended() -> bool:
            return any(said["name"] in ENDS for said in mine())

        if not ended():
            self.wait(lambda _: ended())
        reports = mine()
        if reports[-1]["name"] != "COMPLETED":
            raise Refused(name, reports[-1]["name"], reports[-1]["fields"]["code"])
        return reports

    # ---- telemetry ---------------------------------------------------------

    def receive(self, patience: float | None = None) -> list[dict]:
        """What has come, or comes within some seconds; nothing when nothing does."""
        self.line.settimeout(self.patience if patience is None else patience)
        try:
            data = self.line.recv(1 << 16)
        except TimeoutError:
            return []
        if not data:
            raise ConnectionError("the unit's side has ended the connection")
        packets, self.rest = telemetry.split(self.rest + data)
        came = []
        for packet in packets:
            try:
                said = telemetry.decode(packet, self.known)
            except ValueError as error:
                self.unread.append((packet, str(error)))
                continue
            self.count(said["sequence"])
            came.append(said)
        self.heard += came
        return came

    def count(self, sequence: int):
        """Notes a gap in the sequence counts of telemetry."""
        if self.last is not None and sequence != (self.last + 1) & 0x3FFF:
            self.gaps += 1
        self.last = sequence

    def wait(self, wanted, patience: float | None = None) -> dict:
        """The first of what comes from now on that is `wanted`. Raises TimeoutError."""
        end = time.monotonic() + (self.patience if patience is None else patience)
        while (left := end - time.monotonic()) > 0:
            # All that came is looked at: `wanted` may note more than the one.
            found = [said for said in self.receive(left) if wanted(said)]
            if found:
                return found[0]
        raise TimeoutError(f"waited in vain; last came {[said['name'] for said in self.heard[-5:]]}")


def shown(said: dict) -> str:
    """What came, on a line."""
    return json.dumps(said, default=lambda value: value.hex())


def main(words: list[str]) -> int:
    """The command line."""
    if not words or ":" not in words[0]:
        print(__doc__, file=sys.stderr)
        return 2
    host, port = words[0].rsplit(":", 1)
    with Client(host, int(port)) as unit:
        if len(words) > 1:
            arguments = dict(word.split("=", 1) for word in words[2:])
            given = {name: int(value, 0) if value.lstrip("-").isdigit() else value for name, value in arguments.items()}
            try:
                for said in unit.command(words[1], **given):
                    print(shown(said))
            except Refused as refused:
                print(refused, file=sys.stderr)
                return 1
            return 0
        while True:
            for said in unit.receive():
                print(shown(said), flush=True)
            unit.heard.clear()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
    except (OSError, KeyError, ValueError) as error:
        sys.exit(f"duster_client: {error}")
