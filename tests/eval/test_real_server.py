"""Against a server that others wrote: `transformers serve`, started here on this machine's own address."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from veriward.eval.generators import TransformersGenerator
from veriward.eval.loop import evaluate
from veriward.eval.openai_server import OpenAIGenerator
from veriward.eval.prompting import PromptTemplate
from veriward.eval.runs import read_run
from veriward.tool_agent.errors import ConfigError

for module in ("torch", "transformers", "openai", "fastapi", "uvicorn", "jinja2", "statsmodels"):
    pytest.importorskip(module, reason=f"a real server and its run need {module}")

pytestmark = pytest.mark.slow

CHATML = (
    "{%- for message in messages %}{{- '<|im_start|>' ~ message.role ~ '\n' ~ message.content ~ '<|im_end|>\n' }}"
    "{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}"
)
"""The server looks for this start of an answer in every Qwen3, and takes the prompt for text where it is not there."""

CHAT = [{"role": "user", "content": "What is 2+3?"}]
LOCAL = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
PATIENCE_S = 90


class Served:
    """The server of one model; started again it is found at the same address."""

    def __init__(self, model: Path, log: Path):
        self.model, self.log = model, log
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self.start()

    def start(self):
        command = [Path(sys.executable).with_name("transformers"), "serve", self.model, "--host", "127.0.0.1"]
        command += ["--port", str(self.port), "--device", "cpu", "--dtype", "float32"]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **LOCAL})
        wait_for(self.answers, "the server", self.process)

    def answers(self):
        try:
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(f"http://127.0.0.1:{self.port}/health", timeout=1) as answer:
                return answer.status == 200
        except OSError:
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def asked(self):
        """Requests since its start that were answered."""
        return self.log.read_text().count('completions HTTP/1.1" 200')


def wait_for(condition, what, process):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if process.poll() is not None or time.monotonic() > end:
            pytest.fail(f"{what} did not come: exit code {process.poll()}")
        time.sleep(0.05)


@pytest.fixture(scope="module")
def model(tiny_model, tmp_path_factory):
    """Samples unless it is told not to, as chat models do; else this server ignores every temperature."""
    folder = tmp_path_factory.mktemp("served") / "tiny"
    shutil.copytree(tiny_model, folder)
    (folder / "chat_template.jinja").write_text(CHATML)
    settings = folder / "generation_config.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "do_sample": True}))
    return folder


@pytest.fixture(scope="module")
def served(model, tmp_path_factory):
    server = Served(model, tmp_path_factory.mktemp("log") / "server.log")
    yield server
    server.kill()


@pytest.fixture(autouse=True)
def past_any_proxy(monkeypatch):
    for name, value in LOCAL.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def connect(served):
    return lambda model=None, **options: OpenAIGenerator(str(model or served.model), base_url=served.url, **options)


@pytest.fixture
def problems(write_jsonl):
    return write_jsonl(*({"id": f"p{n}", "question": f"What is 1 + {n}?", "answer": str(n + 1)} for n in range(12)))


def veriward(server, problems, out, *arguments):
    command = [sys.executable, "-m", "veriward.scripts.cli", "eval", "--server", server.url, "--model", server.model]
    command += ["--problems", problems, "--out", out, *arguments]
    return list(map(str, command))


def test_the_command_leaves_texts_finish_reasons_and_token_counts(served, problems, tmp_path):
    options = ["--limit", "4", "--max-new-tokens", "8", "--json"]
    done = subprocess.run(veriward(served, problems, tmp_path / "run", *options), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["responses"] == 4
    rows = read_run(tmp_path / "run").rows
    assert [(bool(row["text"]), row["finish_reason"], row["tokens"]) for row in rows] == [(True, "length", 8)] * 4


@pytest.mark.parametrize("prompt", [CHAT, "2+3="], ids=["chat", "completion"])
def test_a_server_writes_what_the_model_writes_here(connect, model, prompt):
    here = TransformersGenerator(model, device="cpu", dtype="float32")
    ours, theirs = (one.generate([prompt], max_new_tokens=12, seed=0)[0] for one in (connect(), here))
    assert (ours.text, ours.finish_reason, ours.tokens) == (theirs.text, theirs.finish_reason, theirs.tokens)


def test_samples_are_drawn_from_their_seeds(connect):
    options = {"sample_numbers": range(3), "temperature": 1.0, "max_new_tokens": 12, "seed": 0}
    first, second = (connect(concurrency=1).generate([CHAT] * 3, **options) for _ in range(2))
    assert [one.text for one in first] == [one.text for one in second]
    assert len({one.text for one in first}) == 3


def test_another_model_than_the_served_one_is_refused_in_one_line(connect, run_folders, tmp_path):
    with pytest.raises(ConfigError, match="HTTP 400") as refused:
        evaluate(
            connect("owner/other"),
            run_folders.problem_set(2),
            tmp_path / "run",
            template=PromptTemplate(template="chat", instruction=""),
        )
    assert "\n" not in str(refused.value)


def test_a_server_killed_in_mid_run_is_one_line_and_the_run_goes_on(model, problems, tmp_path):
    server, out = Served(model, tmp_path / "server.log"), tmp_path / "run"
    command = veriward(server, problems, out, "--max-new-tokens", "120", "--batch-size", "2")
    try:
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for(lambda: len(list(out.glob("problems/**/*.json"))) >= 3, "a stored response", running)
        server.kill()
        _, said = running.communicate(timeout=PATIENCE_S)
        stored = read_run(out)
        assert running.returncode == 2
        assert [line for line in said.splitlines() if "no connection" in line] == said.splitlines()[-1:]
        assert "Traceback" not in said
        assert 3 <= len(stored.rows) < 12

        server.start()
        again = subprocess.run(command, capture_output=True, text=True)
        assert again.returncode == 0, again.stderr
        assert server.asked() == len(stored.missing)
        rows = read_run(out).rows
        assert len(rows) == 12
        assert [row for row in rows if row["id"] in {old["id"] for old in stored.rows}] == list(stored.rows)
    finally:
        server.kill()
