"""Every code block of the README is run, and prints what the README says it prints."""

import contextlib
import io
import itertools
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
BIN = Path(sys.executable).parent


def blocks(language):
    return [text for kind, text in BLOCKS if kind == language]


def commands():
    """Every command line of the README's bash blocks, continued lines joined, comments gone."""
    lines = "\n".join(blocks("bash")).replace("\\\n", " ").splitlines()
    return [" ".join(shlex.split(line, comments=True)) for line in lines if line.strip()]


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    """An untrained tiny model, its problems, checkpoints and runs, as the quickstart lays them out."""
    from veriward.train.tiny_model import write_model
    from veriward.train.tiny_problems import write_problems

    folder = tmp_path_factory.mktemp("readme") / "runs/quickstart"
    write_model(folder / "tiny/base", seed=0)
    write_problems(folder / "tiny/data", seed=0, train=64, heldout=12)
    for seed, name in enumerate(("checkpoint-1", "final"), start=1):
        write_model(folder / "grpo" / name, seed=seed)
    rows = ({"step": step, "reward": 0.5, "rewards/accuracy_reward/mean": 0.5} for step in (1, 2))
    (folder / "grpo/metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for name, model in (("before", "tiny/base"), ("after", "grpo/final")):
        asked(folder / model, folder / "tiny/data/heldout.jsonl", folder / name / "greedy")
    return folder.parents[1]


def asked(model, problems, out):
    from veriward.eval.generators import TransformersGenerator
    from veriward.eval.loop import evaluate
    from veriward.eval.problems import load_problems
    from veriward.eval.prompting import PromptTemplate

    generator = TransformersGenerator(model, device="cpu")
    evaluate(generator, load_problems(problems), out, template=PromptTemplate(instruction=""), max_new_tokens=4)


SHOWN = [
    (program, output)
    for (kind, program), (below, output) in itertools.pairwise(BLOCKS)
    if (kind, below) == ("python", "text")
]
"""Examples with what they print."""


@pytest.mark.parametrize(("program", "output"), SHOWN)
def test_an_example_prints_what_stands_below_it(program, output):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "README.md", "exec"), {})  # noqa: S102
    assert printed.getvalue() == output


@pytest.mark.slow
def test_the_trl_example_trains_with_a_model_and_a_dataset_in_place(tiny_model, monkeypatch):
    from datasets import Dataset

    monkeypatch.chdir(tiny_model)
    (block,) = [text for text in blocks("python") if "GRPOTrainer(" in text]
    local = block.replace("Qwen/Qwen3-0.6B", str(tiny_model / "runs/quickstart/tiny/base"))
    local = local.replace("=512", "=8").replace("GRPOConfig(", 'GRPOConfig(output_dir="run", max_steps=1, bf16=False, ')
    names = {"dataset": Dataset.from_dict({"prompt": ["1+2", "3+4"], "answer": ["3", "7"]})}
    exec(compile(local, "README.md", "exec"), names)  # noqa: S102
    names["trainer"].train()
    assert names["trainer"].state.global_step == 1


BEFORE, AFTER = "runs/quickstart/before/greedy", "runs/quickstart/after/greedy"
RULE = (
    r"HASH=$(sed -n 's/.*\"sha256\": \"\([0-9a-f]*\)\".*/\1/p' runs/quickstart/before/greedy/run.json | head -1) && "
    'sed "s/^set_sha256:.*/set_sha256: $HASH/; s/^n: .*/n: 12/" '
    f"{ROOT / 'docs/examples/promotion_rule.yaml'} > %s.yaml"
)
"""The rule of docs/examples for the problems made here."""

HOW = {
    "bash scripts/quickstart": ["bash", "scripts/quickstart", "--help"],
    "pip install -e . -c constraints.txt": None,
    "pip install -e .[train] -c constraints.txt": None,
    "python train/grpo.py --config quickstart_cpu --check": [
        *("python", "train/grpo.py", "--config", "quickstart_cpu", "--check"),
    ],
    "accelerate launch train/grpo.py --config train/presets/qwen3_0.6b_base_1gpu.yaml": [
        *("accelerate", "launch", "train/grpo.py", "--config", "train/presets/qwen3_0.6b_base_1gpu.yaml", "--check"),
    ],
    "veriward audit v1": ["veriward", "audit", "v1"],
    "veriward audit v2": ["veriward", "audit", "v2"],
    "veriward audit v3": ["veriward", "audit", "v3"],
    "veriward audit tools": ["veriward", "audit", "tools"],
    "veriward drill --out runs/drill": ["veriward", "drill"],
    "veriward state list runs/drill": ["bash", "-c", "$0 drill --out one && $0 state list one", "veriward"],
    "veriward state show runs/drill python-03": [
        *("bash", "-c", "$0 drill --out two && $0 state show two python-03", "veriward"),
    ],
    "veriward agent --model Qwen/Qwen3-0.6B --reader hermes --out runs/agent": ["veriward", "agent", "--help"],
    "veriward explain <think>\\boxed{9}?</think> It is $\\boxed{\\frac{\\sqrt{12}}{2}}$. sqrt(3)": [
        *("veriward", "explain", r"<think>\boxed{9}?</think> It is $\boxed{\frac{\sqrt{12}}{2}}$.", "sqrt(3)"),
    ],
    "veriward grade docs/examples/pairs.jsonl --out runs/verdicts.jsonl": [
        *("veriward", "grade", str(ROOT / "docs/examples/pairs.jsonl"), "--out", "runs/verdicts.jsonl"),
    ],
    "veriward compare-contracts docs/examples/pairs.jsonl v1 v3": [
        *("veriward", "compare-contracts", str(ROOT / "docs/examples/pairs.jsonl"), "v1", "v3"),
    ],
    "veriward check-references docs/examples/references.jsonl": [
        *("veriward", "check-references", str(ROOT / "docs/examples/references.jsonl")),
    ],
    "veriward attack --family hedges --family percent": [
        *("veriward", "attack", "--family", "hedges", "--family", "percent"),
    ],
    "veriward attack --contract v3 --peer math-verify --peer trl": [
        *("veriward", "attack", "--contract", "v3", "--peer", "math-verify", "--peer", "trl"),
        *("--per-family", "2", "--family", "percent"),
    ],
    "veriward attack --function my_rewards:accuracy_reward": [
        *("env", f"PYTHONPATH={ROOT / 'docs/examples'}"),
        *("veriward", "attack", "--function", "my_rewards:accuracy_reward", "--family", "percent"),
    ],
    "veriward verify \\boxed{x^x} 4": ["veriward", "verify", r"\boxed{x^x}", "4"],
    "accelerate launch train/grpo.py --config train/presets/quickstart_cpu.yaml --max_steps 20 --output_dir runs/try": [
        *("accelerate", "launch", "train/grpo.py", "--config", "train/presets/quickstart_cpu.yaml", "--max_steps", "1"),
        *("--per_device_train_batch_size", "16", "--output_dir", "runs/try"),
    ],
    "torchrun --nproc_per_node 2 train/grpo.py --config train/presets/quickstart_cpu.yaml --max_steps 20"
    " --output_dir runs/try2": [
        *("torchrun", "--nproc_per_node", "2", "train/grpo.py", "--config", "train/presets/quickstart_cpu.yaml"),
        *("--max_steps", "1", "--per_device_train_batch_size", "16", "--output_dir", "runs/try2"),
    ],
    "veriward eval --model runs/quickstart/tiny/base --problems runs/quickstart/tiny/data/heldout.jsonl"
    " --instruction  --max-new-tokens 48": [
        *("veriward", "eval", "--model", "runs/quickstart/tiny/base"),
        *("--problems", "runs/quickstart/tiny/data/heldout.jsonl", "--instruction", "", "--max-new-tokens", "4"),
    ],
    f"veriward compare {BEFORE} {AFTER}": ["veriward", "compare", BEFORE, AFTER],
    "cp docs/examples/promotion_rule.yaml runs/rule.yaml": ["bash", "-c", "true"],
    "veriward promote runs/rule.yaml --stamp": [
        "bash",
        "-c",
        f"{RULE % 'one'} && $0 promote one.yaml --stamp",
        "veriward",
    ],
    f"veriward promote runs/rule.yaml {BEFORE} --checkpoints runs/quickstart/grpo": [
        *(
            "bash",
            "-c",
            f"{RULE % 'two'} && $0 promote two.yaml {BEFORE} --checkpoints runs/quickstart/grpo",
            "veriward",
        ),
    ],
    f"veriward card model {AFTER} --decision runs/rule.decision.json --out runs/card/README.md": [
        *("bash", "-c"),
        f"{RULE % 'three'} && $0 promote three.yaml {BEFORE} {AFTER} && $0 card model {AFTER} --decision "
        "three.decision.json --out runs/card/README.md",
        "veriward",
    ],
    "veriward card verify runs/card/README.md": [
        *("bash", "-c", f"$0 card model {AFTER} --out card/README.md && $0 card verify card/README.md", "veriward"),
    ],
    f"veriward report {BEFORE} {AFTER} --training runs/quickstart/grpo --out runs/report.html": [
        *("veriward", "report", BEFORE, AFTER, "--training", "runs/quickstart/grpo", "--out", "runs/report.html"),
    ],
    "veriward card system runs/agent/tools runs/agent/plain --drill runs/drill --out runs/system_card.md": [
        *("veriward", "card", "system", "--help"),
    ],
}
"""Each command of the README and how it is run here: with fewer steps, on data made for the test.

The quickstart itself and the installation are what continuous integration runs around these tests.
"""


def test_every_command_of_the_readme_is_run_here():
    assert sorted(commands()) == sorted(HOW)


@pytest.mark.slow
@pytest.mark.parametrize("command", [command for command, how in HOW.items() if how], ids=lambda text: text[:60])
def test_a_command_of_the_readme_runs(command, tiny_model):
    for name in ("train", "scripts"):
        link = tiny_model / name
        if not link.exists():
            link.symlink_to(ROOT / name)
    how = list(HOW[command])
    ours = [place for place, word in enumerate(how) if (BIN / word).is_file()]
    for place in ours[:1]:  # not each of them: `trl` is a peer as well as a program
        how[place] = str(BIN / how[place])
    done = subprocess.run(how, cwd=tiny_model, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_example_of_a_config_is_valid(tmp_path, monkeypatch, capsys):
    from veriward.train.grpo import main

    monkeypatch.chdir(tmp_path)
    rows = "".join(f'{{"text": "What is {number}+3?", "key": "{number + 3}"}}\n' for number in range(8))
    Path("mine.jsonl").write_text(rows, encoding="utf-8")
    Path("mine.yaml").write_text(blocks("yaml")[0], encoding="utf-8")
    assert main(["--config", "mine.yaml", "--check"]) == 0
    assert "8 problems of mine.jsonl; every reference can be read" in capsys.readouterr().out


def test_no_placeholder_is_left():
    assert not re.findall(r"\b(?!VERIWARD_)[A-Z]{4,}_[A-Z]{4,}\b", README)
    assert "BENCH" not in README


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#]+)\)", README))
def test_every_link_of_the_readme_leads_somewhere(target):
    assert (ROOT / target).exists()
