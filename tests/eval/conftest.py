"""Real parts for the evaluation's tests: a small untrained model, and the public problem files where they are."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory) -> Path:
    """A Qwen3 of three layers with random weights and a byte-level tokenizer, saved as any model is."""
    pytest.importorskip("transformers")
    from veriward.train.tiny_model import write_model

    folder = tmp_path_factory.mktemp("model") / "tiny"
    write_model(folder, seed=0)
    return folder


@pytest.fixture(scope="session")
def generator(tiny_model):
    from veriward.eval.generators import TransformersGenerator

    return TransformersGenerator(tiny_model, device="cpu", batch_size=4)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    folder = Path(os.environ.get("VERIWARD_SHARED", ROOT.parent / "shared")) / "data"
    if not folder.is_dir():
        pytest.skip(f"no problem files at {folder}; set VERIWARD_SHARED to the folder that holds data/")
    return folder


@pytest.fixture
def write_jsonl(tmp_path) -> Callable[..., Path]:
    def write(*rows: dict[str, object] | str, name: str = "problems.jsonl") -> Path:
        lines: Sequence[str] = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        path = tmp_path / name
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    return write
