#!/usr/bin/env python3
"""Draws `picture.png`, the request, and checks an answer by numpy: picture.py ANSWER.png

    python3 -m venv venv && venv/bin/pip install pillow numpy && venv/bin/python picture.py edges.png
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

HERE = Path(__file__).parent


def drawn():
    picture = Image.new("RGB", (256, 192), (200, 210, 220))
    draw = ImageDraw.Draw(picture)
    draw.rectangle((20, 90, 120, 180), fill=(150, 60, 40), outline=(60, 20, 10), width=3)
    draw.polygon(((10, 90), (70, 30), (130, 90)), fill=(90, 40, 30))
    draw.rectangle((55, 130, 85, 180), fill=(40, 30, 20))
    draw.ellipse((180, 20, 230, 70), fill=(250, 220, 80))
    for k in range(12):
        draw.line((140, 180 - 8 * k, 250, 150 - 6 * k), fill=(30, 120 + 8 * k, 60), width=2)
    return picture


def expected(rgb):
    red, green, blue = (rgb[..., k].astype(np.int64) for k in range(3))
    grey = (77 * red + 150 * green + 29 * blue) >> 8
    for axis in (1, 0):
        wide = np.pad(grey, [(2, 2) if k == axis else (0, 0) for k in (0, 1)], mode="edge")
        shifted = [np.take(wide, range(k, k + grey.shape[axis]), axis=axis) for k in range(5)]
        grey = (sum(w * s for w, s in zip((1, 4, 6, 4, 1), shifted)) + 8) >> 4
    p = {(i, j): grey[1 + i : grey.shape[0] - 1 + i, 1 + j : grey.shape[1] - 1 + j] for i in (-1, 0, 1) for j in (-1, 0, 1)}
    across = p[-1, 1] + 2 * p[0, 1] + p[1, 1] - p[-1, -1] - 2 * p[0, -1] - p[1, -1]
    down = p[1, -1] + 2 * p[1, 0] + p[1, 1] - p[-1, -1] - 2 * p[-1, 0] - p[-1, 1]
    return np.pad(np.minimum(np.abs(across) + np.abs(down), 255), 1)


if __name__ == "__main__":
    picture = drawn()
    picture.save(HERE / "picture.png")
    if len(sys.argv) > 1:
        answer = np.asarray(Image.open(sys.argv[1]))
        assert (answer == expected(np.asarray(picture))).all(), "the answer differs"
        print("the answer is right")
