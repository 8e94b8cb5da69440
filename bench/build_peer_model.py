"""Put all-MiniLM-L6-v2 where mcp-memory-service looks for it; it would download it otherwise.

The same network as its archive holds, as float32 ONNX from the published weights. There are two
homes: `padded` has the tokenizer as published, which makes every text 128 tokens long, and
`unpadded` has it without that, in the favour of the service.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import tokenizers
from onnx import TensorProto, helper

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import build_embedder as embedder  # noqa: E402

MODEL = Path(".cache/mcp_memory/onnx_models/all-MiniLM-L6-v2/onnx")
INPUTS = ("input_ids", "attention_mask")
CLOSE = 0.9999


class MaskedEncoder(embedder.Encoder):
    """The network up to the vectors of its tokens, for texts of different length side by side."""

    def build(self) -> bytes:
        """Return the model from ids and mask to the last hidden state."""
        graph = self.graph
        dimensions = embedder.DIMENSIONS
        graph.constant("heads", [0, 0, embedder.HEADS, dimensions // embedder.HEADS], np.int64)
        graph.constant("joined", [0, 0, dimensions], np.int64)
        for name, value in {"half": 0.5, "one": 1, "root2": 2**0.5}.items():
            graph.constant(name, value, np.float32)
        graph.constant("scale", (dimensions // embedder.HEADS) ** -0.5, np.float32)
        graph.constant("far", -1e9, np.float32)
        self.mask = self.blocked()
        x = self.embed_tokens()
        for number in range(embedder.LAYERS):
            x = self.layer(x, f"encoder.layer.{number}.")
        return self.serialize(x)

    def blocked(self) -> str:
        """Add what to add to the scores: nothing, or for padding very much less."""
        graph = self.graph
        axes = graph.constant("axes", [1, 2], np.int64)
        mask = graph.add("Cast", "attention_mask", to=TensorProto.FLOAT)
        padding = graph.add("Unsqueeze", graph.add("Sub", "one", mask), axes)
        return graph.add("Mul", padding, "far")

    def attend(self, x: str, prefix: str) -> str:
        """Return the context of each token; padding gives none."""
        graph = self.graph
        parts = self.linear(x, [prefix + part for part in ("query", "key", "value")])
        split = [graph.add("Reshape", part, "heads") for part in parts]
        orders = ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        query, key, value = (
            graph.add("Transpose", part, perm=order)
            for part, order in zip(split, orders, strict=True)
        )
        scores = graph.add("Mul", graph.add("MatMul", query, key), "scale")
        weights = graph.add("Softmax", graph.add("Add", scores, self.mask), axis=-1)
        context = graph.add("Transpose", graph.add("MatMul", weights, value), perm=[0, 2, 1, 3])
        return graph.add("Reshape", context, "joined")

    def serialize(self, output: str) -> bytes:
        """Return the file."""
        graph = self.graph
        states = helper.make_node("Identity", [output], ["last_hidden_state"], name="states")
        graph.nodes.append(states)
        shape = ["texts", "tokens"]
        made = helper.make_graph(
            graph.nodes,
            "all-MiniLM-L6-v2",
            [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in INPUTS],
            [
                helper.make_tensor_value_info(
                    "last_hidden_state", TensorProto.FLOAT, [*shape, embedder.DIMENSIONS]
                )
            ],
            list(graph.constants.values()),
        )
        opsets = [helper.make_opsetid("", embedder.OPSET)]
        model = helper.make_model(made, opset_imports=opsets, ir_version=embedder.IR_VERSION)
        onnx.checker.check_model(model)
        content: bytes = model.SerializeToString(deterministic=True)
        return content


def main() -> None:
    """Build both homes under the directory that is named."""
    place = Path(sys.argv[1])
    published = embedder.download()
    weights = embedder.read_safetensors(published["model.safetensors"])
    model = MaskedEncoder(weights, quantized=False).build()
    tokenizer = published["tokenizer.json"]
    variants = {"padded": tokenizer, "unpadded": embedder.trim_tokenizer(tokenizer)}
    for name, content in variants.items():
        check(weights, model, content)
        folder = place / name / MODEL
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.onnx").write_bytes(model)
        (folder / "tokenizer.json").write_bytes(content)


def check(weights: embedder.Weights, model: bytes, tokenizer: bytes) -> None:
    """Leave with a message unless it computes what the network, written in numpy, does."""
    encode = tokenizers.Tokenizer.from_buffer(tokenizer).encode
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    for sentence in embedder.SENTENCES:
        found = encode(sentence)
        ids, mask = np.array([found.ids], np.int64), np.array([found.attention_mask], np.int64)
        [states] = session.run(None, dict(zip(INPUTS, (ids, mask), strict=True)))
        mean = states[0][mask[0] == 1].mean(0)
        expected = embedder.reference(weights, ids[:, mask[0] == 1])
        if not (cosine := float(mean @ expected / np.linalg.norm(mean))) > CLOSE:
            sys.exit(f"The model computes something else: cosine {cosine:.4f} for {sentence!r}.")


if __name__ == "__main__":
    main()
