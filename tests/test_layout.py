"""The layout holds: imports point one way, nothing shadows a library, and the light parts stay light."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOLDERS: dict[str, str] = PROJECT["tool"]["setuptools"]["package-dir"]
"""Import name of each package, and its folder."""
MAY_IMPORT = {
    "rewards": set(),
    "tool_agent": {"rewards"},
    "eval": {"rewards", "tool_agent"},
    "train": {"rewards", "tool_agent", "eval"},
    "scripts": {"rewards", "tool_agent", "eval", "train"},
}
MODULES = sorted(path for package in MAY_IMPORT for path in (ROOT / package).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
JUDGES_TEXT = [path for path in MODULES if path.relative_to(ROOT).parts[0] in {"rewards", "tool_agent"}]
"""Modules that read what a model wrote."""
EXTRAS_ONLY = ("torch", "transformers", "trl", "peft", "accelerate", "datasets", "yaml", "scipy", "matplotlib", "numpy")


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of everything a file imports, also inside functions; relative imports are spelt out."""
    here = ("veriward", *path.relative_to(ROOT).parent.parts)
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else ()
            module = ".".join((*base, *filter(None, [node.module])))
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_imports_point_one_way(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    ours = [(line, name.split(".")) for line, name in imported(path) if name.startswith("veriward.")]
    wrong = [f"line {line}: {'.'.join(name)}" for line, name in ours if name[1] not in {package, *MAY_IMPORT[package]}]
    assert not wrong


@pytest.mark.parametrize("path", [*MODULES, *TESTS], ids=named)
def test_our_packages_are_imported_as_veriward_only(path: Path) -> None:
    """`from rewards import x` makes a second copy of every class."""
    wrong = [f"line {line}: {name}" for line, name in imported(path) if name.split(".")[0] in MAY_IMPORT]
    assert not wrong


@pytest.mark.parametrize("folder", ["train", "eval", "scripts"])
def test_no_module_is_named_like_a_library(folder: str) -> None:
    """A program's own folder heads its import path: eval/select.py would shadow select, and break subprocess."""
    modules = {path.stem for path in (ROOT / folder).rglob("*.py")} | {
        path.name for path in (ROOT / folder).iterdir() if (path / "__init__.py").exists()
    }
    assert not (modules - {"__init__"}) & (sys.stdlib_module_names | library_names())


def library_names() -> set[str]:
    """Import names of what is installed, and the names of our requirements, installed or not."""
    project = PROJECT["project"]
    requirements = [
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]
    required = {re.split(r"[^\w.-]", line)[0].lower().replace("-", "_") for line in requirements}
    installed = {name for name, owners in packages_distributions().items() if set(owners) != {"veriward"}}
    return installed | required


@pytest.mark.parametrize(("package", "folder"), FOLDERS.items(), ids=list(FOLDERS))
def test_every_package_is_typed(package: str, folder: str) -> None:
    assert (ROOT / folder / "py.typed").is_file()
    assert package in PROJECT["tool"]["setuptools"]["packages"]


def test_every_folder_of_modules_is_a_listed_package() -> None:
    """Setuptools would leave a forgotten folder out of the wheel without a word."""
    assert {path.parent.relative_to(ROOT).as_posix() for path in MODULES} <= set(FOLDERS.values())


def test_importing_rewards_loads_nothing_heavy() -> None:
    result = python("import sys, veriward.rewards; print(*sys.modules)")
    assert result.returncode == 0, result.stderr
    assert not {"torch", "transformers", "trl", "datasets", "sympy"} & set(result.stdout.split())


def test_help_works_on_the_core_dependencies_alone() -> None:
    """Of the command itself and of every command below it, with all that the extras bring out of reach."""
    result = python(f"""
import sys
sys.modules.update(dict.fromkeys({EXTRAS_ONLY!r}))  # None makes the import fail
import typer.main
from veriward.scripts.cli import app
veriward = typer.main.get_command(app)
for below in ([], *([name] for name in veriward.commands)):
    veriward.main([*below, "--help"], prog_name="veriward", standalone_mode=False)
""")
    assert result.returncode == 0, result.stderr
    assert "Usage: veriward" in result.stdout


def dangers(tree: ast.Module) -> Iterator[str]:
    """Ways to run or half-read a model's text, to depend on signals, and to hide a bug as a low reward."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="eval" | "exec" as name)):
                yield f"line {node.lineno}: {name}()"
            case ast.Name(id="sympify" | "parse_expr" as name) | ast.Attribute(attr="sympify" | "parse_expr" as name):
                yield f"line {node.lineno}: {name}"
            case ast.Import(names=names) if any(alias.name.split(".")[0] == "signal" for alias in names):
                yield f"line {node.lineno}: import signal"
            case ast.ImportFrom(module="signal"):
                yield f"line {node.lineno}: from signal import"
            case ast.ImportFrom(names=names) if {"sympify", "parse_expr"} & {alias.name for alias in names}:
                yield f"line {node.lineno}: import of sympify or parse_expr"
            case ast.ExceptHandler(type=caught) if catches_everything(caught) and not hands_on(node):
                yield f"line {node.lineno}: except that catches everything"


def catches_everything(caught: ast.expr | None) -> bool:
    match caught:
        case None | ast.Name(id="Exception" | "BaseException"):
            return True
        case ast.Tuple(elts=several):
            return any(map(catches_everything, several))
    return False


def hands_on(handler: ast.ExceptHandler) -> bool:
    """The first thing it does is to pass the exception on, over a pipe or to another thread."""
    calls = [node for node in ast.walk(handler.body[0]) if isinstance(node, ast.Call)]
    given = [argument for call in calls for argument in call.args if isinstance(argument, ast.Name)]
    return any(argument.id == handler.name for argument in given)


@pytest.mark.parametrize("path", JUDGES_TEXT, ids=named)
def test_model_text_is_never_run_and_no_bug_is_swallowed(path: Path) -> None:
    assert not list(dangers(tree_of(path)))


@pytest.mark.parametrize(
    "code",
    [
        "eval('1+1')",
        "exec(text)",
        "sympy.sympify(text)",
        "from sympy import sympify",
        "from sympy.parsing.sympy_parser import parse_expr as parse",
        "import signal",
        "from signal import SIGALRM",
        "try:\n    f()\nexcept:\n    pass",
        "try:\n    f()\nexcept Exception as error:\n    pass",
        "try:\n    f()\nexcept (ValueError, BaseException):\n    pass",
        "try:\n    f()\nexcept Exception as error:\n    reward = 0.0",
    ],
)
def test_the_dangers_are_seen(code: str) -> None:
    assert len(list(dangers(ast.parse(code)))) == 1


def test_imports_are_spelt_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    path = tmp_path / "eval" / "sub" / "x.py"
    path.parent.mkdir(parents=True)
    path.write_text("import a.b\nfrom . import c\nfrom ..d import e\ndef f():\n    from rewards import g\n")
    assert [name for _, name in imported(path)] == ["a.b", "veriward.eval.sub.c", "veriward.eval.d.e", "rewards.g"]
