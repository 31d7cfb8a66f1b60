"""Real stored runs for tests: given texts, verified and written as the evaluation writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from veriward.eval.problems import Problem, ProblemSet, hash_problems
from veriward.eval.runs import Run, describe_problems, read_run, response_key, run_problems, write_problems
from veriward.rewards import fields_for, get_contract, verify_many
from veriward.tool_agent.generator import Generation
from veriward.tool_agent.state import AnswerAttempt, Phase, ProblemState, content_sha256
from veriward.tool_agent.store import open_store


def problem_set(count: int = 12, *, columns: Sequence[Mapping[str, object]] | None = None, name: str = "sums"):
    """`count` problems, 'What is 1 + n?' with the reference n + 1."""
    problems = tuple(
        Problem(
            id=f"p{n}",
            question=f"What is 1 + {n}?",
            reference=str(n + 1),
            columns=dict(columns[n]) if columns else {"subject": "even" if n % 2 == 0 else "odd", "level": n % 3},
        )
        for n in range(count)
    )
    return ProblemSet(
        problems=problems,
        sha256=hash_problems(problems),
        name=name,
        question_column="question",
        reference_column="reference",
    )


def write_run(
    folder: Path,
    texts: Mapping[str, str | Sequence[str | tuple[str, str]]],
    *,
    problems: ProblemSet | None = None,
    contract: str = "v3",
    model: str = "tiny",
    weights: str = "0" * 64,
    temperature: float | None = None,
    max_new_tokens: int = 64,
    seed: int = 0,
    **settings: object,
) -> Run:
    """Store one response for each text and read the run back.

    texts   problem id to its text, or to the texts of its samples; a text may be a pair with the finish reason. A
            problem that is not in it stays missing
    """
    problems = problems or problem_set()
    asked = run_problems(problems, contract)
    many = {key: [value] if isinstance(value, str) else list(value) for key, value in texts.items()}
    samples = max(map(len, many.values()), default=1)
    described = {
        "generator": {"engine": "scripted", "model": model, "weights_sha256": weights, "batch_size": 4},
        "problems": describe_problems(problems),
        "prompt": {"template": "plain", "file_text": None, "instruction": "", "enable_thinking": None},
        "contract": {"name": contract, "fingerprint": get_contract(contract).fingerprint},
        "generation": {
            "samples": samples,
            "temperature": (1.0 if samples > 1 else 0.0) if temperature is None else temperature,
            "max_new_tokens": max_new_tokens,
            "seed": seed,
            "stop": [],
        },
        "versions": {"python": "3.11"},
        **settings,
    }
    with open_store(folder, described, durability="process") as store:
        write_problems(folder, asked)
        for problem in asked.asked:
            for sample, given in enumerate(many.get(problem.id, ())):
                text, finish = (given, "stop") if isinstance(given, str) else given
                generation = Generation(
                    text=text,
                    token_ids=tuple(text.encode()),
                    finish_reason=finish,
                    seed=sample if samples > 1 else None,
                )
                (verdict,) = verify_many(
                    [
                        {
                            "response": text,
                            "reference": problem.reference,
                            "truncated": generation.truncated,
                            **fields_for(contract, problem.columns),
                        }
                    ],
                    contract=contract,
                )
                key = response_key(problem.id, sample, samples)
                state = ProblemState(
                    problem=key,
                    content_sha256=content_sha256(problem),
                    fingerprint=store.fingerprint,
                    tools=False,
                    answers=[
                        AnswerAttempt(
                            prompt=problem.question,
                            generation=generation,
                            verdict=verdict.to_row(reference=False),
                            seconds=0.01,
                        )
                    ],
                    phase=Phase.COMPLETE,
                )
                store.write(key, state.to_row())
    return read_run(folder)
