"""Say which torch pip is about to fetch, how large it is, and whether it fits the machine.

Part of scripts/setup.sh, which runs this file before anything is installed: standard library only.

    python scripts/torch_download.py REPORT GPU

REPORT is what `pip install --dry-run --report` wrote for torch, GPU the name of a GPU or empty. The first line of the
output is the disk space to ask for in MB, the others are for people.
"""

import json
import platform
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.request import Request, urlopen

CPU_DISK_MB = 2500
"""Measured: 1.8 GB installed; the rest is for the wheels while they are unpacked."""
CUDA_DISK_MB = 8000
"""About 2.7 GB of wheels, and what they unpack to."""
USUAL_CPU_BYTES = 190_000_000
USUAL_CUDA_BYTES = 2_700_000_000
"""With the CUDA libraries. For texts only, where the size cannot be asked for."""
OTHER_PACKAGES = "about 0.3 GB of other packages"
ANSWER_SECONDS = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchDownload:
    """The torch that pip would take from its index."""

    version: str
    cuda: str | None
    """CUDA version as 13.0, or 'of unknown version'; None for a build without CUDA."""
    size: int | None
    """Bytes of torch and all it needs; None where a server did not say."""


def main(report: Path, gpu: str) -> None:
    download = read_report(json.loads(report.read_text(encoding="utf-8")))
    print(CUDA_DISK_MB if download.cuda else CPU_DISK_MB)
    print(*describe(download, gpu=gpu, system=platform.system()), sep="\n")


def read_report(report: dict[str, list[dict[str, dict[str, str]]]]) -> TorchDownload:
    """The torch of a pip report, with the size of every file it brings."""
    versions = {item["metadata"]["name"].lower(): item["metadata"]["version"] for item in report["install"]}
    return TorchDownload(
        version=versions["torch"],
        cuda=cuda_version(versions),
        size=total_size([item["download_info"]["url"] for item in report["install"]]),
    )


def cuda_version(versions: dict[str, str]) -> str | None:
    """CUDA builds are told by the libraries they need, or by a version as 2.13.0+cu130."""
    for name, version in versions.items():
        if name.startswith("nvidia-cuda-runtime"):
            return ".".join(version.split(".")[:2])
    local = versions["torch"].partition("+")[2]
    if local.startswith("cu") or any(name.startswith(("nvidia-", "cuda-")) for name in versions):
        return "of unknown version"
    return None


def total_size(urls: Sequence[str]) -> int | None:
    """Bytes of all files together, asked of their servers; None if one does not answer."""
    with ThreadPoolExecutor(max_workers=16) as pool:
        sizes = list(pool.map(file_size, urls))
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def file_size(url: str) -> int | None:
    try:
        with urlopen(Request(url, method="HEAD"), timeout=ANSWER_SECONDS) as answer:  # noqa: S310 - pip's own addresses
            return int(answer.headers["Content-Length"])
    except (OSError, HTTPException, TypeError, ValueError):  # no answer, no length, or an address only pip understands
        return None


def describe(download: TorchDownload, *, gpu: str, system: str) -> list[str]:
    """Lines for people: the GPU, the build with its size, and a way to a better one where there is one."""
    if download.cuda:
        build = f"CUDA build ({download.cuda}), {gigabytes(download.size, USUAL_CUDA_BYTES)} with its CUDA libraries"
    else:
        build = f"{'macOS' if system == 'Darwin' else 'CPU'} build, {gigabytes(download.size, USUAL_CPU_BYTES)}"
    lines = [
        f"GPU: {gpu}" if gpu else "GPU: no NVIDIA GPU found, training runs on the CPU",
        f"torch {download.version}: {build} to download, and {OTHER_PACKAGES}",
    ]
    if download.cuda and not gpu:
        lines.append(
            f"the CPU build would do and is {gigabytes(None, USUAL_CPU_BYTES)}: to take it, stop now (Ctrl-C), set"
            " PIP_EXTRA_INDEX_URL to PyTorch's index of CPU wheels (see 'Get started' on PyTorch's site), start again"
        )
    if gpu and not download.cuda and system == "Linux":
        lines.append(
            "this build does not use the GPU: pip's settings (PIP_INDEX_URL, PIP_EXTRA_INDEX_URL, PIP_FIND_LINKS)"
            " point to CPU wheels; the quickstart needs no GPU, other runs do"
        )
    return lines


def gigabytes(size: int | None, usual: int) -> str:
    """A size in GB, with 'about' if only the usual one is known."""
    return f"about {usual / 1e9:.1f} GB" if size is None else f"{size / 1e9:.1f} GB"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
