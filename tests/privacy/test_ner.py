"""A model of the same form as published ones, and so small that the test can build it."""

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import tokenizers
from onnx import TensorProto, helper, numpy_helper

from toolfold.errors import ConfigError
from toolfold.privacy.detect import Detectors
from toolfold.privacy.detectors.ner import NerDetector
from toolfold.privacy.vault import Vault

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "B-MISC"]
MARKS = {"Ada": "B-PER", "King": "I-PER", "Bob": "B-PER", "London": "B-LOC", "Monday": "B-MISC"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("ner")
    words = ["[UNK]", *MARKS]
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.save(str(directory / "tokenizer.json"))
    config = {"id2label": {str(number): label for number, label in enumerate(LABELS)}}
    (directory / "config.json").write_text(json.dumps(config))
    scores = np.zeros((len(words), len(LABELS)), np.float32)
    for word, number in vocabulary.items():
        scores[number, LABELS.index(MARKS.get(word, "O"))] = 1
    graph = helper.make_graph(
        [helper.make_node("Gather", ["scores", "input_ids"], ["logits"])],
        "ner",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, None])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, None, len(LABELS)])],
        [numpy_helper.from_array(scores, "scores")],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), directory / "model.onnx")
    return directory


def test_names_that_the_model_marks_are_concealed(model: Path) -> None:
    vault = Vault(detectors=Detectors([NerDetector(model)]))
    text = "Ada King, Bob and ada@example.org meet in London on Monday"

    assert vault.conceal_text(text) == (
        "[NAME_1], [NAME_2] and [EMAIL_1] meet in [LOCATION_1] on Monday"
    )


def test_a_long_text_is_read_to_its_end(model: Path) -> None:
    text = "word " * 2_000 + "Ada King \ud800 " + "word " * 300 + "Bob"
    spans = NerDetector(model).find(text)

    assert {text[span.start : span.end] for span in spans} == {"Ada King", "Bob"}


def test_without_the_extra_it_is_said_what_to_install(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)

    with pytest.raises(ConfigError, match=r"toolfold\[ner\]"):
        NerDetector(model).find("Ada")


def test_a_model_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"model\.onnx"):
        NerDetector(tmp_path).find("Ada")
