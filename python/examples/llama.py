"""Language models of the Llama family in plain torch: training and decoding, for their memory.

    python -m metes.dry --memory 40GiB -- python/examples/llama.py train --model 1.3b
    python -m metes.dry --memory 80GiB -- python/examples/llama.py train --model 7b --checkpoint
    python -m metes.dry --memory 40GiB -- python/examples/llama.py decode --model 8b

Sequences have lengths of their own in every step, drawn from a seed, as packed text has: that is
what fragments an allocator's memory. Weights, gradients and the optimiser's state are bfloat16.

Invariant: what is asked for depends on the arguments alone.
"""

import argparse
import random
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


@dataclass(frozen=True)
class Model:
    """Dimensions of a model."""

    width: int
    layers: int
    heads: int
    #: Heads of keys and values; fewer than heads where several queries share one.
    shared: int
    hidden: int
    words: int


MODELS = {
    "tiny": Model(width=128, layers=2, heads=4, shared=2, hidden=352, words=512),
    "125m": Model(width=768, layers=12, heads=12, shared=12, hidden=2048, words=32000),
    "350m": Model(width=1024, layers=24, heads=16, shared=16, hidden=2816, words=32000),
    "1.3b": Model(width=2048, layers=24, heads=16, shared=16, hidden=5504, words=32000),
    "7b": Model(width=4096, layers=32, heads=32, shared=32, hidden=11008, words=32000),
    "8b": Model(width=4096, layers=32, heads=32, shared=8, hidden=14336, words=128256),
}


class Attention(nn.Module):
    """Causal attention with rotary positions."""

    def __init__(self, model: Model):
        super().__init__()
        self.heads, self.shared = model.heads, model.shared
        self.size = model.width // model.heads
        self.query = nn.Linear(model.width, model.heads * self.size, bias=False)
        self.key = nn.Linear(model.width, model.shared * self.size, bias=False)
        self.value = nn.Linear(model.width, model.shared * self.size, bias=False)
        self.output = nn.Linear(model.heads * self.size, model.width, bias=False)

    def forward(self, x, rotation, cache):
        batch, length, _ = x.shape
        query = rotated(self.query(x).view(batch, length, self.heads, self.size), rotation)
        key = rotated(self.key(x).view(batch, length, self.shared, self.size), rotation)
        value = self.value(x).view(batch, length, self.shared, self.size)
        query, key, value = (part.transpose(1, 2) for part in (query, key, value))
        if cache is not None:
            if cache:
                # Each step copies all there is to one word more: simple, and hard on memory.
                key = torch.cat([cache[0], key], dim=2)
                value = torch.cat([cache[1], value], dim=2)
            cache[:] = [key, value]
        mixed = F.scaled_dot_product_attention(
            query, key, value, is_causal=length > 1, enable_gqa=self.heads != self.shared
        )
        return self.output(mixed.transpose(1, 2).reshape(batch, length, -1))


class Layer(nn.Module):
    """Attention and a gated feed-forward part, each normalised before and added to its input."""

    def __init__(self, model: Model):
        super().__init__()
        self.attention = Attention(model)
        self.gate = nn.Linear(model.width, model.hidden, bias=False)
        self.up = nn.Linear(model.width, model.hidden, bias=False)
        self.down = nn.Linear(model.hidden, model.width, bias=False)
        self.before = nn.RMSNorm(model.width)
        self.between = nn.RMSNorm(model.width)

    def forward(self, x, rotation, cache=None):
        x = x + self.attention(self.before(x), rotation, cache)
        y = self.between(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """The whole model; gives the scores of all words, at each place or the last."""

    def __init__(self, model: Model, checkpointed: bool = False):
        super().__init__()
        self.model, self.checkpointed = model, checkpointed
        self.embedding = nn.Embedding(model.words, model.width)
        self.layers = nn.ModuleList(Layer(model) for _ in range(model.layers))
        self.norm = nn.RMSNorm(model.width)
        self.head = nn.Linear(model.width, model.words, bias=False)

    def forward(self, words, start=0, caches=None):
        x = self.embedding(words)
        rotation = rotation_of(start, words.shape[1], self.model.width // self.model.heads)
        for number, layer in enumerate(self.layers):
            if self.checkpointed:
                x = checkpoint(layer, x, rotation, use_reentrant=False)
            else:
                x = layer(x, rotation, caches[number] if caches else None)
        # A continuation needs the scores of the last place alone.
        x = x[:, -1:] if caches else x
        return self.head(self.norm(x))


def rotation_of(start, length, size):
    """Cosines and sines of the angles at places from ``start`` on."""
    places = torch.arange(start, start + length, device="cuda", dtype=torch.float32)
    rates = 10000.0 ** (-torch.arange(0, size, 2, device="cuda", dtype=torch.float32) / size)
    angles = torch.outer(places, rates).repeat(1, 2)[None, :, None, :]
    return angles.cos().bfloat16(), angles.sin().bfloat16()


def rotated(x, rotation):
    """``x`` turned by its place."""
    cosine, sine = rotation
    half = x.shape[-1] // 2
    return x * cosine + torch.cat([-x[..., half:], x[..., :half]], dim=-1) * sine


def made(name: str, checkpointed: bool = False) -> Llama:
    """A model on the device."""
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        return Llama(MODELS[name], checkpointed)


def train(options) -> None:
    """Steps of training with AdamW."""
    model = made(options.model, options.checkpoint)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)
    draw = random.Random(options.seed)
    for step in range(options.steps):
        length = draw.randint(options.shortest, options.longest)
        words = torch.randint(
            0, model.model.words, (options.batch, length), device="cuda", dtype=torch.int64
        )
        scores = model(words[:, :-1])
        loss = F.cross_entropy(scores.flatten(0, 1).float(), words[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        print(f"step {step + 1}: {options.batch} sequences of {length} words", flush=True)


@torch.inference_mode()
def decode(options) -> None:
    """Batches of prompts, each continued word by word with a cache of keys and values."""
    model = made(options.model)
    draw = random.Random(options.seed)
    for step in range(options.steps):
        length = draw.randint(options.shortest, options.longest)
        batch = draw.randint(1, options.batch)
        words = torch.randint(0, model.model.words, (batch, length), device="cuda")
        caches = [[] for _ in model.layers]
        count = draw.randint(1, options.words)
        start = 0
        for _ in range(count):
            scores = model(words, start, caches)
            start += words.shape[1]
            words = scores[:, -1:].argmax(dim=-1)
        del caches, scores
        print(f"batch {step + 1}: {batch} prompts of {length} words, {count} more", flush=True)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["train", "decode"])
    parser.add_argument("--model", choices=MODELS, default="tiny")
    parser.add_argument("--steps", type=int, default=4, help="steps of training, or batches")
    parser.add_argument("--batch", type=int, default=4, help="sequences at a time, at most")
    parser.add_argument("--shortest", type=int, default=64, help="words of the shortest sequence")
    parser.add_argument("--longest", type=int, default=256, help="words of the longest sequence")
    parser.add_argument("--words", type=int, default=64, help="most words to decode")
    parser.add_argument("--checkpoint", action="store_true", help="compute activations twice")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    {"train": train, "decode": decode}[options.what](options)


if __name__ == "__main__":
    main()
