"""Reward functions under attack: how each is named, opened in a child process, and called as TRL's trainer calls it.

The parent makes a `Target` and has it checked; the child opens it (`open_target`) and answers one case after another.
Nothing of a target is imported in the parent: whatever it does at import or in a call, only the child is at risk.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import logging
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from veriward.eval.attack.cases import AttackCase
from veriward.eval.attack.http_judge import FORMATS, FirstRequestError, HttpJudge
from veriward.rewards import CONTRACTS
from veriward.rewards.components import REFERENCE_COLUMNS, make_components
from veriward.rewards.contracts import get_contract
from veriward.tool_agent.errors import ConfigError, need

RewardFunction = Callable[..., Any]
"""TRL's call: keyword arguments, each a list with one entry a completion; returns numbers or None, or an awaitable."""

PEERS: Mapping[str, tuple[str, ...]] = {
    "math-verify": ("math-verify", "latex2sympy2_extended", "sympy"),
    "trl": ("trl", "math-verify", "latex2sympy2_extended", "sympy"),
}
"""Each peer, and the distributions whose versions its figures depend on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One reward function, by the name from which a child process can open it."""

    kind: Literal["contract", "peer", "function", "server"]
    name: str
    """A contract, a peer, 'package.module:function', or the address of a server."""
    plain: bool = False
    """Completions are texts, and no chat messages; for a function."""
    column: str | None = None
    """The one reference column that a function gets; None: every usual name."""
    server_format: str = "veriward"
    judge_model: str | None = None
    """The model that an OpenAI-compatible server is asked for."""

    @property
    def label(self) -> str:
        match self.kind, self.name:
            case "contract", name:
                return f"contract {name}"
            case "peer", "trl":
                return "TRL accuracy_reward"
            case _:
                return self.name

    def options(self) -> list[str]:
        """The options of the command that name it."""
        extras = {
            "--column": self.column,
            "--server-format": self.server_format if self.server_format != FORMATS[0] else None,
            "--judge-model": self.judge_model,
        }
        words = [f"--{self.kind}", self.name, *(["--plain"] if self.plain else [])]
        return words + [word for option, value in extras.items() if value is not None for word in (option, value)]

    def check(self) -> None:
        """Refuse in one line what cannot work, before a child is started."""
        match self.kind:
            case "contract":
                _known("contract", self.name, tuple(CONTRACTS))
            case "peer":
                _known("peer", self.name, tuple(PEERS))
                for module in ("trl", "math_verify") if self.name == "trl" else ("math_verify",):
                    need(module, extra="peers", purpose=f"veriward attack --peer {self.name}")
            case "function":
                module, _, name = self.name.partition(":")
                if not all(part.isidentifier() for part in [*module.split("."), *name.split(".")]):
                    raise ConfigError(
                        f"--function {self.name!r}: wanted package.module:function, as my_rewards:accuracy"
                    )
            case "server":
                self._check_server()

    def _check_server(self) -> None:
        _known("server format", self.server_format, FORMATS)
        parts = urlsplit(self.name)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(
                f"--server {self.name!r}: wanted an address with its scheme, as http://127.0.0.1:8000/judge"
            )
        if self.server_format == "openai" and not self.judge_model:
            raise ConfigError("--server-format openai asks a model: name it with --judge-model")

    def setup(self) -> dict[str, Any]:
        """What a child process needs to open the target, as JSON."""
        environment = dict(os.environ) if self.kind in ("function", "server") else {}
        return {"target": asdict(self), "folder": os.getcwd(), "environment": environment}

    def versions(self) -> dict[str, str]:
        """Of the packages that its figures depend on."""
        packages = {"contract": ("veriward", "python-flint"), "peer": PEERS.get(self.name, ())}.get(self.kind, ())
        return {name: version(name) for name in packages}

    @property
    def fingerprint(self) -> str | None:
        """Of a contract; nothing else has one."""
        return get_contract(self.name).fingerprint if self.kind == "contract" else None


def _known(what: str, name: str, names: Sequence[str]) -> None:
    if name not in names:
        raise ConfigError(f"unknown {what} {name!r}; wanted one of {', '.join(names)}")


# ------------------------------------------------------------------------------------------- in the child process

READY = None
"""The item that is answered with what kept the target from opening: {'refused': None} where nothing did."""


EASY = {
    "prompt": "What is 2 + 2?",
    "completion": r"The answer is $\boxed{4}$.",
    "reference": "4",
    "call": "plain",
    "answer_type": None,
}
"""A case that every target should have no trouble with."""


def case_item(case: AttackCase) -> dict[str, Any]:
    """What a child is handed of a case: never the truth."""
    return {
        "prompt": case.prompt,
        "completion": case.completion,
        "reference": case.reference,
        "call": case.call,
        "answer_type": case.answer_type,
    }


def open_target(target: dict[str, Any], folder: str, environment: dict[str, str]) -> Callable[[Any], dict[str, Any]]:
    """The function of one item that a child process serves: READY, or a case as `case_item` gives it.

    The answer to a case has `value`, the reward or None; `outcome`, where the target logs one under that name;
    `raised`, the exception in one line, or None; and `seconds`.
    """
    described = Target(**target)
    if environment:  # children start without most of it; a stranger's function may need keys, proxies, a GPU
        os.environ.pop("CUDA_VISIBLE_DEVICES", None)
        os.environ.update(environment)
    try:
        function = _open(described, folder)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a stranger's module: any failure is for the person to mend
        refused = str(error) if isinstance(error, ConfigError) else f"{described.name}: {one_line(error)}"
        return lambda _: {"refused": refused}
    columns = _reference_columns(described)
    _be_silent()
    if described.kind in ("contract", "peer"):  # what is loaded and compiled at the first call belongs to the opening
        ask(function, EASY, columns=columns)

    def answer(item: Any) -> dict[str, Any]:
        if item is READY:
            return {"refused": _first_request(function)}
        if described.kind == "peer":  # both read LaTeX between dollar signs best; TRL skips most of it where it is bare
            item = {**item, "reference": f"${item['reference']}$"}
        return ask(function, item, columns=columns, plain=described.plain)

    return answer


def _be_silent() -> None:
    """Hundreds of hostile inputs: what a target logs and prints about them would hide the report."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)


def _open(target: Target, folder: str) -> RewardFunction:
    match target.kind:
        case "contract":
            return make_components(weights={"accuracy_reward": 1.0}, contract=target.name, workers=0)[0]
        case "peer" if target.name == "math-verify":
            return open_math_verify()
        case "peer":
            from trl.rewards import accuracy_reward  # type: ignore[attr-defined,import-not-found,unused-ignore]

            return accuracy_reward
        case "function":
            return open_function(target.name, folder)
        case "server":
            token = os.environ.get("VERIWARD_SERVER_TOKEN")
            return HttpJudge(target.name, target.server_format, target.judge_model, token)


def _reference_columns(target: Target) -> tuple[str, ...]:
    match target.kind:
        case "contract" | "server":
            return ("reference",)
        case "peer":
            return ("solution",)
        case "function":
            return REFERENCE_COLUMNS if target.column is None else (target.column,)


def _first_request(function: RewardFunction) -> str | None:
    """A server that is not there, or lets nobody in, is one line before the first case."""
    if isinstance(function, HttpJudge):
        try:
            function.knock(EASY)
        except FirstRequestError as error:
            return str(error)
    return None


def open_math_verify() -> RewardFunction:
    """math-verify as its README calls it, with its own settings."""
    from math_verify import parse, verify  # type: ignore[import-not-found,import-untyped,unused-ignore]

    def math_verify(completions: Sequence[Any], solution: Sequence[str], **_columns: Any) -> list[float]:
        return [
            float(verify(parse(reference), parse(completion[0]["content"])))
            for completion, reference in zip(completions, solution, strict=True)
        ]

    return math_verify


def open_function(name: str, folder: str) -> RewardFunction:
    """A user's 'package.module:function', found with the working folder on the path.

    A class, or a function that needs no argument and takes no completions, is called once: what it returns is the
    reward function.
    """
    module_name, _, path = name.partition(":")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as missing:
        if missing.name is None or not module_name.startswith(missing.name):
            raise
        hint = f"; write {module_name.removesuffix('.py')}:{path}" if module_name.endswith(".py") else ""
        raise ConfigError(
            f"--function {name}: no module {module_name} is installed or in the working folder {folder}{hint}"
        ) from missing
    for part in path.split("."):
        if not hasattr(found, part):
            raise ConfigError(f"--function {name}: {module_name} has no {path!r}; name a function of that module")
        found = getattr(found, part)
    if inspect.isclass(found) or (inspect.isroutine(found) and _makes_a_function(found)):
        found = found()
    if not callable(found):
        raise ConfigError(f"--function {name}: wanted a function in TRL's call, got {type(found).__name__}")
    function: RewardFunction = found
    return function


def _makes_a_function(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # built-in functions have no signature
        return False
    needed = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters)
    return not needed and not open_ended and "completions" not in {p.name for p in parameters}


def ask(
    function: RewardFunction, item: Mapping[str, Any], *, columns: Sequence[str], plain: bool = False
) -> dict[str, Any]:
    """One case in TRL's call, from the place that the case names; an exception is an answer too."""
    completion = item["completion"]
    logged: dict[str, list[Any]] = {}
    arguments: dict[str, Any] = {
        "prompts": [item["prompt"] if plain else [{"role": "user", "content": item["prompt"]}]],
        "completions": [completion if plain else [{"role": "assistant", "content": completion}]],
        # No tokenizer is at hand; bytes are ids of about the right number for a function that counts them.
        "completion_ids": [list(completion.encode("utf-8", "surrogatepass"))],
        **{column: [item["reference"]] for column in columns},
        "trainer_state": None,
        "log_extra": logged.__setitem__,
        "log_metric": lambda _name, _value: None,
    }
    if item["answer_type"] is not None:
        arguments["answer_type"] = [item["answer_type"]]
    call = call_in_loop if item["call"] == "async" else call_plainly
    if item["call"] != "thread":
        return answer_of(call, function, arguments, logged)
    with ThreadPoolExecutor(max_workers=1) as executor:
        return executor.submit(answer_of, call, function, arguments, logged).result()


def answer_of(
    call: Callable[[RewardFunction, Mapping[str, Any]], Any],
    function: RewardFunction,
    arguments: Mapping[str, Any],
    logged: Mapping[str, list[Any]],
) -> dict[str, Any]:
    """What came of one call, and its seconds by the clock, less those in which this thread waited for a processor."""
    value, raised = None, None
    begun, waited = time.perf_counter(), seconds_without_processor()
    try:
        value = single_reward(call(function, arguments))
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - what a reward function raises, SystemExit too, is a finding
        raised = one_line(error)
    seconds = time.perf_counter() - begun - (seconds_without_processor() - waited)
    (outcome,) = logged.get("outcome") or [None]
    return {
        "value": value,
        "outcome": outcome if isinstance(outcome, str) and raised is None else None,
        "raised": raised,
        "seconds": max(seconds, 0.0),
    }


def seconds_without_processor() -> float:
    """How long this thread has been ready to run and was not let; 0 where the system does not say."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


def single_reward(rewards: Any) -> float | None:
    """The one value of a batch of one; what the trainer could not use raises. NaN is how TRL itself writes None."""
    if isinstance(rewards, str | bytes) or not hasattr(rewards, "__len__") or len(rewards) != 1:
        raise TypeError(f"returned {shown(rewards)}; wanted a list with one number or None for one completion")
    if rewards[0] is None:
        return None
    value = float(rewards[0])
    if math.isinf(value):
        raise ValueError(f"returned {value}, which no trainer can average")
    return None if math.isnan(value) else value


def call_plainly(function: RewardFunction, arguments: Mapping[str, Any]) -> Any:
    rewards = function(**arguments)
    return asyncio.run(_result_of(rewards)) if inspect.isawaitable(rewards) else rewards


def call_in_loop(function: RewardFunction, arguments: Mapping[str, Any]) -> Any:
    async def inside() -> Any:
        rewards = function(**arguments)
        return await rewards if inspect.isawaitable(rewards) else rewards

    return asyncio.run(inside())


async def _result_of(awaitable: Any) -> Any:
    return await awaitable


def one_line(error: BaseException) -> str:
    """An exception as its type and the start of its text."""
    return f"{type(error).__name__}: {shorten(' '.join(str(error).split()))}".rstrip(": ")


def shown(value: object) -> str:
    return shorten(repr(value))


def shorten(text: str, length: int = 160) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
