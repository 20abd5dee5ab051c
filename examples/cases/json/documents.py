"""Writes 4000 sensor readings as one JSON array: documents.py FILE. Deterministic."""

import json
import sys


def main():
    state = 1
    readings = []
    for number in range(4000):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        readings.append(
            {
                "id": number,
                "station": f"station-{state >> 8 & 31:02}",
                "value": (state >> 13 & 0xFFFF) / 100,
                "tags": [f"t{state >> shift & 7}" for shift in range(4, 4 + (state >> 20 & 7))],
                "position": {"north": 48 + number / 4000, "east": 9 - number / 4000},
            }
        )
    with open(sys.argv[1], "w") as file:
        json.dump(readings, file)


main()
