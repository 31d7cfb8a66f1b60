"""scripts/quickstart and its set-up, run for real in a small checkout, with a folder as the package index.

The checkout has our scripts and stand-ins for what is large: empty torch and trl, and a main job that prints what
it was given. Nothing is fetched.
"""

import ensurepip
import os
import runpy
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from veriward.scripts.torch_download import TorchDownload, cuda_version, describe, file_size

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
TOOLS = ("bash", "cat", "cut", "df", "dirname", "grep", "mkdir", "mv", "rm", "sed", "sleep", "tail", "uname", "wc")
PYPROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
BACKEND = '''\
"""A build backend of the standard library alone, also used to write the wheels of the index."""

import os, zipfile

def write_wheel(folder, name, version, files, *metadata):
    info, file_name = f"{name}-{version}.dist-info", f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, file_name), "w") as wheel:
        for path, lines in {
            **files,
            f"{info}/METADATA": ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *metadata],
            f"{info}/WHEEL": ["Wheel-Version: 1.0", "Root-Is-Purelib: true", "Tag: py3-none-any"],
            f"{info}/RECORD": [f"{path},," for path in (*files, f"{info}/METADATA", f"{info}/WHEEL", f"{info}/RECORD")],
        }.items():
            wheel.writestr(path, "".join(f"{line}\\n" for line in lines))
    return file_name

def build_editable(folder, config_settings=None, metadata_directory=None):
    needs = [f"Requires-Dist: {name}; extra == 'train'" for name in ("torch", "trl")]
    place = {"veriward.pth": [os.path.join(os.getcwd(), "src")]}
    return write_wheel(folder, "veriward", "0.1.0", place, "Provides-Extra: train", *needs)
'''
CONSTRAINTS = f"pip=={ensurepip.version()}\nsetuptools==1.0\ntorch==1.0\n"
MAIN_JOB = """\
import os, sys
print("main job:", sys.argv[1:], os.getcwd(), os.environ["HF_HUB_OFFLINE"], os.environ["OMP_NUM_THREADS"])
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout in a folder with spaces; its constraints ask for torch 1.0 of the index beside it."""
    root = tmp_path / "my code" / "veri ward"
    (root / "src/veriward/rewards").mkdir(parents=True)
    (root / "src/veriward/rewards/__init__.py").touch()
    (root / "src/veriward/scripts").mkdir()
    (root / "src/veriward/scripts/quickstart.py").write_text(MAIN_JOB)
    (root / "scripts").mkdir()
    for name in ("quickstart", "check", "setup.sh", "torch_download.py"):
        shutil.copy(SCRIPTS / name, root / "scripts")
    (root / "pyproject.toml").write_text(PYPROJECT)
    (root / "constraints.txt").write_text(CONSTRAINTS)
    (root / "backend.py").write_text(BACKEND)
    index = tmp_path / "index"
    index.mkdir()
    write_wheel = runpy.run_path(str(root / "backend.py"))["write_wheel"]
    for name in ("torch", "trl", "setuptools"):
        write_wheel(index, name, "1.0", {f"{name}/__init__.py": []})
    return root


@pytest.fixture
def run(checkout: Path, tmp_path: Path) -> Run:
    """Starts a script of the checkout from another folder; keywords set environment variables."""

    def run(script: str, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "PYTHON", "OMP_", "VIRTUAL_ENV"))}
        settings = {
            "PYTHON": sys.executable,
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": (tmp_path / "index").as_uri(),
        }
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir(exist_ok=True)
        return subprocess.run(
            ["bash", str(checkout / "scripts" / script), *arguments],
            env={**kept, **settings, **changes},
            cwd=elsewhere,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


def path_with(folder: Path, **commands: str) -> str:
    """A PATH of the few tools that the set-up needs, and of the given commands (bash text by name)."""
    folder.mkdir(exist_ok=True)
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found
        (folder / tool).symlink_to(found)
    for name, text in commands.items():
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_text(f"#!{shutil.which('bash')}\n{text}\n")
        (folder / name).chmod(0o755)
    return str(folder)


def refusal(result: subprocess.CompletedProcess[str]) -> str:
    """The one line of an error, after the checks that every one of them must pass."""
    assert result.returncode == 2, result.stdout + result.stderr
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    return lines[0]


def test_the_life_of_an_environment(checkout: Path, run: Run, tmp_path: Path) -> None:
    """Made, used again at once, brought up to date, kept when pip fails; the slow steps happen once."""
    gpu = path_with(tmp_path / "bin", **{"nvidia-smi": "echo 'NVIDIA Fake 9000'"})
    first = run("quickstart", "--seed", "3", PATH=f"{gpu}:{os.environ['PATH']}")
    assert first.returncode == 0, first.stdout + first.stderr
    assert "GPU: NVIDIA Fake 9000" in first.stdout
    assert "torch 1.0: " in first.stdout
    assert first.stdout.splitlines()[-1] == f"main job: ['--seed', '3'] {tmp_path / 'elsewhere'} 1 1"
    assert not (checkout / ".venv-lock").exists()

    started = time.monotonic()
    again = run("quickstart", OMP_NUM_THREADS="4")
    assert time.monotonic() - started < 2
    assert again.stdout == f"main job: [] {tmp_path / 'elsewhere'} 1 4\n"

    (checkout / "constraints.txt").write_text(f"{CONSTRAINTS}# changed\n")
    updated = run("quickstart")
    assert "has changed; bringing .venv up to date" in updated.stdout
    assert "asking the package index" not in updated.stdout, "the torch that is there will do"
    assert "main job: []" in updated.stdout

    (checkout / "constraints.txt").write_text(CONSTRAINTS.replace("torch==1.0", "torch==2.0"))
    assert "this Python and system" in (line := refusal(run("quickstart")))
    assert "torch==2.0" in line
    unreachable = {"PIP_NO_INDEX": "0", "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "1"}
    assert "the package index could not be reached" in refusal(run("quickstart", **unreachable))

    (checkout / "constraints.txt").write_text(CONSTRAINTS)
    (checkout / "backend.py").write_text(BACKEND + "\nraise OSError(28, 'No space left on device')\n")
    full = refusal(run("quickstart"))
    assert "the disk is full" in full
    assert str(checkout / ".venv" / "install.log") in full

    (checkout / "backend.py").write_text(BACKEND)
    assert "making .venv again" not in run("quickstart").stdout


def finished(root: Path, fingerprint: str) -> None:
    """A .venv that looks finished, with a Python that runs."""
    (root / ".venv/bin").mkdir(parents=True)
    (root / ".venv/bin/python").symlink_to(sys.executable)
    (root / ".venv/veriward-installed").write_text(f"{fingerprint}\ntrain\n")


NOWHERE = {"PYTHON": "/nowhere/python3"}
"""Ends a set-up that wants to make an environment, before it does."""


def test_an_environment_without_its_python_is_made_again(checkout: Path, run: Run) -> None:
    finished(checkout, "3.12\tanywhere\thash")
    (checkout / ".venv/bin/python").unlink()
    (checkout / ".venv/bin/python").symlink_to("/nowhere/python3")
    assert ".venv does not work any more" in run("quickstart", **NOWHERE).stdout


def test_an_environment_that_was_moved_is_made_again(checkout: Path, run: Run) -> None:
    finished(checkout, "3.12\t/its/old/place/.venv\thash")
    assert ".venv does not work any more" in run("quickstart", **NOWHERE).stdout


def test_an_interrupted_installation_is_made_again(checkout: Path, run: Run) -> None:
    (checkout / ".venv").mkdir()
    (checkout / ".venv/veriward-unfinished").touch()
    assert "the last installation did not finish" in run("quickstart", **NOWHERE).stdout


def test_what_somebody_else_made_is_not_removed(checkout: Path, run: Run) -> None:
    (checkout / ".venv").mkdir()
    (checkout / ".venv/precious").touch()
    assert "was not made by this command" in refusal(run("quickstart"))
    assert (checkout / ".venv/precious").exists()


def test_a_python_that_is_too_old(run: Run, tmp_path: Path) -> None:
    path = path_with(tmp_path / "bin", python3="echo '3.9.18 venv'", **{"python3.13": "exit 127"})
    line = refusal(run("quickstart", PATH=path, PYTHON=""))
    assert "python3: 3.9.18; python3.13: does not run; python3.12: not found" in line
    assert "Wanted: Python 3.11, 3.12 or 3.13." in line
    assert "PYTHON=/path/to/python3.12 bash scripts/quickstart" in line


def test_no_python_at_all(checkout: Path, run: Run, tmp_path: Path) -> None:
    line = refusal(run("check", PATH=path_with(tmp_path / "bin"), PYTHON=""))
    assert "python3: not found; python3.13: not found; python3.12: not found; python3.11: not found" in line
    assert not (checkout / ".venv").exists()


def test_a_python_without_venv(run: Run, tmp_path: Path) -> None:
    path = path_with(tmp_path / "bin", python3="echo '3.11.2 no-venv'")
    assert "apt install python3-venv" in refusal(run("quickstart", PATH=path, PYTHON=""))


def test_too_little_disk(checkout: Path, run: Run, tmp_path: Path) -> None:
    table = "echo 'Filesystem 1024-blocks Used Available Capacity Mounted on'; echo 'a disk 9 9 1048576 100% /a b'"
    line = refusal(run("quickstart", PATH=f"{path_with(tmp_path / 'bin', df=table)}:{os.environ['PATH']}"))
    assert "too little disk: 1024 MB free" in line
    assert "wanted 2500 MB" in line
    assert not (checkout / ".venv").exists()


def test_a_lock_left_behind_is_taken_over(checkout: Path, run: Run) -> None:
    with subprocess.Popen(["true"]) as gone:
        pass
    (checkout / ".venv-lock").mkdir()
    (checkout / ".venv-lock/pid").write_text(f"{gone.pid}\n")
    assert "/nowhere/python3: not found" in refusal(run("quickstart", **NOWHERE))
    assert not (checkout / ".venv-lock").exists()


@pytest.mark.parametrize("script", ["quickstart", "check"])
def test_help_installs_nothing(script: str, checkout: Path, run: Run) -> None:
    result = run(script, "--help")
    assert result.returncode == 0
    assert result.stdout.startswith(f"bash scripts/{script} [")
    assert not (checkout / ".venv").exists()


@pytest.mark.parametrize(
    ("versions", "cuda"),
    [
        pytest.param({"torch": "2.13.0+cpu", "sympy": "1.14.0"}, None, id="CPU wheel"),
        pytest.param({"torch": "2.13.0", "sympy": "1.14.0"}, None, id="no libraries, as on macOS"),
        pytest.param({"torch": "2.13.0", "nvidia-cuda-runtime": "13.0.96"}, "13.0", id="libraries"),
        pytest.param({"torch": "2.6.0", "nvidia-cuda-runtime-cu12": "12.4.127"}, "12.4", id="older names of libraries"),
        pytest.param({"torch": "2.13.0+cu130"}, "of unknown version", id="libraries inside the wheel"),
    ],
)
def test_the_build_of_torch_is_told_by_what_it_needs(versions: dict[str, str], cuda: str | None) -> None:
    assert cuda_version(versions) == cuda


@pytest.mark.parametrize(
    ("cuda", "size", "gpu", "said"),
    [
        pytest.param("13.0", 2_714_000_000, "", "2.7 GB with its CUDA libraries", id="size"),
        pytest.param("13.0", None, "", "about 2.7 GB with its CUDA libraries", id="size unknown"),
        pytest.param("13.0", None, "", "set PIP_EXTRA_INDEX_URL to", id="CUDA build, no GPU"),
        pytest.param(None, 190_000_000, "NVIDIA H200", "this build does not use the GPU", id="CPU build, GPU"),
        pytest.param(None, 190_000_000, "", "no NVIDIA GPU found", id="CPU build, no GPU"),
    ],
)
def test_the_download_is_described(cuda: str | None, size: int | None, gpu: str, said: str) -> None:
    download = TorchDownload(version="2.13.0", cuda=cuda, size=size)
    assert said in "\n".join(describe(download, gpu=gpu, system="Linux"))


def test_the_size_of_a_file_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "x.whl").write_bytes(b"12345")
    assert file_size((tmp_path / "x.whl").as_uri()) == 5
    assert file_size("http://127.0.0.1:9/x.whl") is None
    assert file_size("no address") is None
