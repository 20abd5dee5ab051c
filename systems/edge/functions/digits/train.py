#!/usr/bin/env python3
"""Trains the network of `digits`, and writes its weights as `weights.bin` and a request with its answer.

Data: the UCI handwritten digits that scikit-learn carries (1797 images of 8 x 8, grey from 0 to 16); of these 1437 train
and 360 test. Network: convolution 3 x 3 to 8 channels, ReLU, convolution 3 x 3 to 16 channels, ReLU, maximum of 2 x 2,
10 outputs. It is trained in floating point and rounded to 8-bit weights; the script then computes in integers as
the function does, and says how many of the test images that gets right.

    python3 -m venv venv && venv/bin/pip install scikit-learn && venv/bin/python train.py
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

FIRST, SECOND = 8, 16
HERE = Path(__file__).parent


def patches(x):
    """Windows of 3 x 3, flat: from (N, H, W, C) to (N, H - 2, W - 2, 9 C)."""
    height, width = x.shape[1] - 2, x.shape[2] - 2
    parts = [x[:, i : i + height, j : j + width] for i in range(3) for j in range(3)]
    return np.concatenate(parts, axis=3)


def back(gradient, shape):
    """The gradient of `patches`."""
    height, width, channels = gradient.shape[1], gradient.shape[2], shape[3]
    out = np.zeros(shape)
    for k in range(9):
        i, j = divmod(k, 3)
        out[:, i : i + height, j : j + width] += gradient[..., k * channels : (k + 1) * channels]
    return out


def pooled(x):
    n, _, _, c = x.shape
    return x.reshape(n, 2, 2, 2, 2, c).transpose(0, 1, 3, 2, 4, 5).reshape(n, 2, 2, 4, c).max(axis=3)


def forward(p, x):
    a = patches(x)
    b = np.maximum(a @ p[0] + p[1], 0)
    c = patches(b)
    d = np.maximum(c @ p[2] + p[3], 0)
    e = pooled(d)
    f = e.reshape(len(x), -1)
    return a, b, c, d, e, f, f @ p[4] + p[5]


def gradients(p, x, y):
    a, b, c, d, e, f, logits = forward(p, x)
    z = np.exp(logits - logits.max(axis=1, keepdims=True))
    g = z / z.sum(axis=1, keepdims=True)
    g[np.arange(len(y)), y] -= 1
    g /= len(y)
    dp4, dp5 = f.T @ g, g.sum(axis=0)
    de = (g @ p[4].T).reshape(e.shape)
    up = lambda v: v.repeat(2, axis=1).repeat(2, axis=2)
    dd = up(de) * (d == up(e)) * (d > 0)
    dp2, dp3 = c.reshape(-1, c.shape[3]).T @ dd.reshape(-1, SECOND), dd.sum(axis=(0, 1, 2))
    db = back(dd @ p[2].T, b.shape) * (b > 0)
    dp0, dp1 = a.reshape(-1, a.shape[3]).T @ db.reshape(-1, FIRST), db.sum(axis=(0, 1, 2))
    return [dp0, dp1, dp2, dp3, dp4, dp5]


def train(x, y):
    random = np.random.default_rng(1)
    shapes = [(9, FIRST), FIRST, (9 * FIRST, SECOND), SECOND, (4 * SECOND, 10), 10]
    p = [random.normal(0, (2 / s[0]) ** 0.5, s) if isinstance(s, tuple) else np.zeros(s) for s in shapes]
    m, v = [np.zeros_like(w) for w in p], [np.zeros_like(w) for w in p]
    step = 0
    for epoch in range(60):
        order = random.permutation(len(x))
        for at in range(0, len(x), 32):
            batch = order[at : at + 32]
            step += 1
            for k, g in enumerate(gradients(p, x[batch], y[batch])):
                m[k] = 0.9 * m[k] + 0.1 * g
                v[k] = 0.999 * v[k] + 0.001 * g * g
                p[k] -= 0.003 * (1 - epoch / 60) * (m[k] / (1 - 0.9**step)) / ((v[k] / (1 - 0.999**step)) ** 0.5 + 1e-8)
    return p


def rounded(p, x):
    """Weights of 8 bits, biases of 32, and the shift that brings each layer's sums back to 8 bits."""
    out, scale, value = [], 16.0, x * 16
    for layer in range(3):
        w, bias = p[2 * layer], p[2 * layer + 1]
        factor = 127 / np.abs(w).max()
        w8 = np.round(w * factor).astype(np.int64)
        b32 = np.round(bias * factor * scale).astype(np.int64)
        scale *= factor
        if layer == 2:
            out.append((w8, b32, 0))
            break
        sums = np.maximum(patches(value) @ w8 + b32, 0)
        shift = max(0, int(np.ceil(np.log2(sums.max() / 255))))
        value = np.minimum(sums.astype(np.int64) >> shift, 255)
        scale /= 2**shift
        out.append((w8, b32, shift))
    return out


def integers(layers, pixels):
    value = pixels
    for w, b, shift in layers[:2]:
        value = np.minimum(np.maximum(patches(value) @ w + b, 0) >> shift, 255)
    w, b, _ = layers[2]
    return pooled(value).reshape(len(pixels), -1) @ w + b


def main():
    images, labels = load_digits(return_X_y=True)
    pixels = images.reshape(-1, 8, 8, 1).astype(np.int64)
    train_x, test_x, train_y, test_y = train_test_split(pixels, labels, test_size=360, random_state=7, stratify=labels)
    p = train(train_x / 16.0, train_y)
    floats = forward(p, test_x / 16.0)[-1].argmax(axis=1)
    layers = rounded(p, train_x / 16.0)
    logits = integers(layers, test_x)
    print(f"right of {len(test_y)}: {(floats == test_y).sum()} in floating point, {(logits.argmax(axis=1) == test_y).sum()} in integers")
    with open(HERE / "weights.bin", "wb") as file:
        for w, b, shift in layers:
            file.write(bytes([shift]) + b.astype("<i4").tobytes() + w.astype("i1").tobytes())
    # One test image of each digit: the request, and what is answered.
    chosen = [int(np.flatnonzero(test_y == digit)[0]) for digit in range(10)]
    (HERE / "request.bin").write_bytes(test_x[chosen].astype(np.uint8).tobytes())
    lines = [f"{row.argmax()} " + " ".join(map(str, row)) for row in logits[chosen]]
    (HERE / "answer.txt").write_text("\n".join(lines) + "\n")
    # All test images, with what they are: how good the function is.
    (HERE / "test.bin").write_bytes(test_x.astype(np.uint8).tobytes())
    (HERE / "test.txt").write_text("".join(map(str, test_y)) + "\n")


if __name__ == "__main__":
    main()
