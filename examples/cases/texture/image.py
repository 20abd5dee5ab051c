"""Writes a colour image (PPM) with edges, gradients and grain: image.py SIDE FILE.

Deterministic: the grain comes from a linear congruential generator."""

import sys


def main():
    side, path = int(sys.argv[1]), sys.argv[2]
    state = 2006
    pixels = bytearray()
    for y in range(side):
        for x in range(side):
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            grain = state >> 27
            u, v = 512 * x // side, 512 * y // side
            inside = (u - 256) ** 2 + (v - 200) ** 2 < 120**2
            tile = (u // 32 + v // 32) % 2
            base = 160 if inside else 70 + 40 * tile
            pixels += bytes(
                (min(255, base + u // 8 + grain), min(255, base + v // 8 + grain), (u ^ v) // 2 & 255)
            )
    with open(path, "wb") as file:
        file.write(b"P6\n%d %d\n255\n" % (side, side) + pixels)


main()
