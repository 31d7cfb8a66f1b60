from __future__ import annotations

import subprocess
import sys

import pytest

from veriward.tool_agent.generator import Generation


@pytest.mark.parametrize(("finish_reason", "truncated"), [("stop", False), ("length", True)])
def test_a_response_that_the_limit_ended_is_truncated(finish_reason, truncated):
    generation = Generation(text="", token_ids=(), finish_reason=finish_reason, seed=None)
    assert generation.truncated is truncated


def test_the_protocol_imports_nothing_heavy():
    code = (
        "import sys, veriward.tool_agent.generator; sys.exit(bool({'torch', 'transformers', 'sympy'} & {*sys.modules}))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
