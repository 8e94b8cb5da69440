"""Adapt gte-small to notes and tools by contrastive training, and write the adapter.

`train_embedder.py pack DATA OUT` gathers what training needs into one folder: the weights of the
base in int8, its tokenizer, and the pairs. `train_embedder.py train IN OUT` runs where PyTorch and
a GPU are, without the rest of this repository, in two minutes on an H200; it writes `adapter.npz`,
which belongs beside this script. `build_embedder.py` merges it into the base.

The pairs are MetaTool's queries with their tools, without the tools under `not_for_training`, and
LongMemEval's questions with their evidence, without the questions of the development half. Both
are MIT-licensed, as the base is. LoCoMo and BEAM are for measuring and never trained on.

R@10 of the development halves by cosine alone, 256 tokens, computed as shipped:

              BEAM 100K  BEAM 500K  LoCoMo  LongMemEval turns  MetaTool unseen  LiveMCP tasks
    base           .592       .497    .554               .832             .886           .463
    adapted        .603       .532    .571               .946             .914           .492

In float32 the adapter of the same recipe has .604, .525, .578, .937, .911 and .483: what rounding
does to figures is noise. 800 steps, 40 or 80 % of the change, or as many tools as notes were not
better; 128 tokens find nearly as much as 256, and 512 no more.
"""

import argparse
import gzip
import json
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from numpy.typing import NDArray

try:  # where the one is, the other need not be
    import torch
except ImportError:
    import build_embedder

LAYERS = 12
HEADS = 12
BLOCK = 64
LEVELS = 63
EPSILON = 1e-12


@dataclass(frozen=True)
class Recipe:
    """All that decides what comes out, beside the pairs."""

    seed: int = 1
    steps: int = 400
    warm_up: int = 50
    rate: float = 1e-5
    temperature: float = 0.03
    dropout: float = 0.1
    notes_share: float = 0.75
    notes_at_once: int = 48
    others_for_each: int = 6
    tools_at_once: int = 256
    kept: float = 0.6
    """How much of the change is kept: part of the way back to the base keeps what it knew."""

    rank: int = 16
    quantized: bool = True
    """Whether training computes as the built model does, with rounded weights and inputs."""


def main() -> None:
    """Pack or train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=["pack", "train"])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    arguments = parser.parse_args()
    arguments.target.mkdir(parents=True, exist_ok=True)
    if arguments.step == "pack":
        pack(arguments.source, arguments.target)
    else:
        adapter = train(arguments.source, Recipe())
        np.savez_compressed(arguments.target / "adapter.npz", **adapter)


def pack(data: Path, target: Path) -> None:
    """Write weights, tokenizer and pairs; `data` is the folder of the labelled sets."""
    published = build_embedder.download()
    (target / "tokenizer.json").write_bytes(published["tokenizer.json"])
    packed: dict[str, NDArray[Any]] = {}
    for name, value in build_embedder.read_weights(published["onnx/model.onnx"]).items():
        if value.ndim == 1:
            packed[f"f:{name}"] = value
            continue
        blocks = value.T.reshape(-1, BLOCK, len(value)) if len(value) % BLOCK == 0 else value.T
        levels, scales = build_embedder.to_int8(blocks, axis=-2)
        packed[f"q:{name}"], packed[f"s:{name}"] = levels, scales.astype(np.float16)
    np.savez(target / "weights.npz", **packed)
    for name in ("metatool", "longmemeval"):
        shutil.copy(data / "train" / f"{name}.json.gz", target)
    shutil.copy(data / "metatool-tools.json", target)
    with gzip.open(data / "longmemeval-dev.json.gz") as file:
        asked = [each["question"] for each in json.load(file)]
    (target / "measured.json").write_text(json.dumps(asked))


def read_base(folder: Path) -> dict[str, NDArray[np.float32]]:
    """Return the weights that `pack` wrote."""
    packed = np.load(folder / "weights.npz")
    weights = {}
    for key in packed.files:
        kind, name = key.split(":", 1)
        if kind == "f":
            weights[name] = packed[key]
        elif kind == "q":
            scaled = packed[key] * packed[f"s:{name}"].astype(np.float32)
            weights[name] = scaled.reshape(-1, scaled.shape[-1]).T
    return {name: value.astype(np.float32) for name, value in weights.items()}


class Encoder:
    """The network over a dictionary of weights, on the GPU; `quantized` as it will be shipped."""

    def __init__(self, weights: Mapping[str, Any], tokenizer: Path) -> None:
        self.weights = weights
        self.dropout = 0.0
        self.quantized = False
        self._tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()

    def embed(self, texts: Sequence[str], tokens: int = 256) -> Any:
        """Return one normalised row for each text."""
        self._tokenizer.enable_truncation(tokens)
        encoded = [each.ids for each in self._tokenizer.encode_batch(list(texts))]
        ids = torch.zeros(len(encoded), max(map(len, encoded)), dtype=torch.long)
        mask = torch.zeros_like(ids, dtype=torch.bool)
        for row, each in enumerate(encoded):
            ids[row, : len(each)] = torch.tensor(each)
            mask[row, : len(each)] = True
        ids, mask = ids.cuda(), mask.cuda()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            hidden = self._hidden(ids, mask)
        counted = mask.unsqueeze(-1).float()
        mean = (hidden.float() * counted).sum(1) / counted.sum(1)
        return torch.nn.functional.normalize(mean, dim=-1)

    def _hidden(self, ids: Any, mask: Any) -> Any:
        functional, weights = torch.nn.functional, self.weights
        prefix = "embeddings."
        x = functional.embedding(ids, weights[prefix + "word_embeddings.weight"])
        x = x + weights[prefix + "position_embeddings.weight"][: ids.shape[1]]
        x = x + weights[prefix + "token_type_embeddings.weight"][0]
        x = self._dropped(self._normalized(x, prefix + "LayerNorm"))
        for number in range(LAYERS):
            x = self._layer(x, mask, f"encoder.layer.{number}.")
        return x

    def _layer(self, x: Any, mask: Any, prefix: str) -> Any:
        functional = torch.nn.functional
        inner = prefix + "attention.self."
        size, length, width = x.shape
        query, key, value = (
            self._linear(x, mask, inner + part).view(size, length, HEADS, -1).transpose(1, 2)
            for part in ("query", "key", "value")
        )
        context = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask[:, None, None, :], dropout_p=self.dropout
        )
        context = context.transpose(1, 2).reshape(size, length, width)
        attended = self._linear(context, mask, prefix + "attention.output.dense")
        x = self._normalized(x + self._dropped(attended), prefix + "attention.output.LayerNorm")
        wide = functional.gelu(self._linear(x, mask, prefix + "intermediate.dense"))
        narrow = self._linear(wide, mask, prefix + "output.dense")
        return self._normalized(x + self._dropped(narrow), prefix + "output.LayerNorm")

    def _linear(self, x: Any, mask: Any, name: str) -> Any:
        weight, bias = self.weights[name + ".weight"], self.weights[name + ".bias"]
        if self.quantized:
            x, weight = self._rounded_input(x, mask), self._rounded_weight(weight)
        return torch.nn.functional.linear(x, weight, bias)

    def _rounded_input(self, x: Any, mask: Any) -> Any:
        """Round as DynamicQuantizeLinear does, each text by itself; gradients pass through."""
        x = x.float()
        held = x.detach() * mask.unsqueeze(-1)
        low, high = held.amin((1, 2), keepdim=True), held.amax((1, 2), keepdim=True)
        scale = (high.clamp(min=0) - low.clamp(max=0)).clamp(min=1e-12) / 255
        zero = (-low.clamp(max=0) / scale).round()
        rounded = ((x.detach() / scale).round() + zero).clamp(0, 255) - zero
        return x + (rounded * scale - x.detach())

    def _rounded_weight(self, weight: Any) -> Any:
        """Round to seven bits, each row with its scale."""
        scale = weight.detach().abs().amax(1, keepdim=True).clamp(min=1e-12) / LEVELS
        return weight + ((weight.detach() / scale).round() * scale - weight.detach())

    def _normalized(self, x: Any, name: str) -> Any:
        gain, bias = self.weights[name + ".weight"], self.weights[name + ".bias"]
        return torch.nn.functional.layer_norm(x.float(), (x.shape[-1],), gain, bias, EPSILON)

    def _dropped(self, x: Any) -> Any:
        return torch.nn.functional.dropout(x, self.dropout, training=self.dropout > 0)


def train(source: Path, recipe: Recipe) -> dict[str, NDArray[np.float16]]:
    """Return the adapter: `u:NAME` and `v:NAME` of matrices, `d:NAME` of vectors."""
    random.seed(recipe.seed)
    torch.manual_seed(recipe.seed)
    base = {name: torch.tensor(value).cuda() for name, value in read_base(source).items()}
    weights = {name: value.clone().requires_grad_() for name, value in base.items()}
    encoder = Encoder(weights, source / "tokenizer.json")
    encoder.dropout, encoder.quantized = recipe.dropout, recipe.quantized
    losses = Losses(encoder, source, recipe)
    optimizer = torch.optim.AdamW(list(weights.values()), lr=recipe.rate, weight_decay=0.01)
    for step in range(recipe.steps):
        for group in optimizer.param_groups:
            rise = min(1, (step + 1) / recipe.warm_up)
            group["lr"] = recipe.rate * rise * (1 - step / recipe.steps)
        loss = losses.next()()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(weights.values()), 1.0)
        optimizer.step()
        if step % 50 == 0:
            print(f"train: step {step}, loss {loss.item():.3f}", flush=True)
    return {
        key: part.half().cpu().numpy()
        for name, value in weights.items()
        for key, part in _parts(name, value.detach() - base[name], recipe).items()
    }


class Losses:
    """What training tries to make small: the right one of many texts must be the nearest."""

    def __init__(self, encoder: Encoder, source: Path, recipe: Recipe) -> None:
        self._encoder, self._recipe = encoder, recipe
        held_out = set(json.loads((source / "measured.json").read_text()))
        self._tools = json.loads((source / "metatool-tools.json").read_text())
        with gzip.open(source / "metatool.json.gz") as file:
            self._queries = json.load(file)["pairs"]
        with gzip.open(source / "longmemeval.json.gz") as file:
            self._questions = [each for each in json.load(file) if each["q"] not in held_out]

    def next(self) -> Callable[[], Any]:
        """Return the loss to take next."""
        return self.of_notes if random.random() < self._recipe.notes_share else self.of_tools

    def of_tools(self) -> Any:
        """Return that of queries among the tools of one another."""
        batch = random.sample(self._queries, self._recipe.tools_at_once)
        names = sorted({tool for _, tool in batch})
        places = {name: place for place, name in enumerate(names)}
        texts = [f"{name}: {self._tools[name]}" for name in names]
        return self._loss(
            self._encoder.embed([query for query, _ in batch], 64),
            self._encoder.embed(texts, 128),
            [places[tool] for _, tool in batch],
        )

    def of_notes(self) -> Any:
        """Return that of questions among all evidence, and other turns of each history."""
        batch = random.sample(self._questions, self._recipe.notes_at_once)
        texts = [random.choice(each["pos"]) for each in batch]
        for each in batch:
            texts += random.sample(each["neg"], self._recipe.others_for_each)
        return self._loss(
            self._encoder.embed([each["q"] for each in batch], 64),
            self._encoder.embed(texts),
            list(range(len(batch))),
        )

    def _loss(self, queries: Any, texts: Any, right: list[int]) -> Any:
        nearness = queries @ texts.T / self._recipe.temperature
        return torch.nn.functional.cross_entropy(nearness, torch.tensor(right).cuda())


def _parts(name: str, change: Any, recipe: Recipe) -> dict[str, Any]:
    change = recipe.kept * change.float()
    if change.ndim == 1:
        return {f"d:{name}": change}
    if "embeddings" in name:
        return {}
    left, sizes, right = torch.linalg.svd(change, full_matrices=False)
    roots = sizes[: recipe.rank].sqrt()
    return {
        f"u:{name}": left[:, : recipe.rank] * roots,
        f"v:{name}": roots[:, None] * right[: recipe.rank],
    }


if __name__ == "__main__":
    main()
