"""How long a report of many responses takes to make and to open.

    python -m veriward.scripts.bench_report                     5,000 responses
    python -m veriward.scripts.bench_report --responses 20000

Two runs of scripted responses of about 1,500 characters with formulas and steps. Opened in Chromium without a window,
through Playwright: the time until the list of responses is there, and the time of a filter and of a text search.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from veriward.eval.loop import evaluate
from veriward.eval.problems import Problem, ProblemSet, hash_problems
from veriward.eval.prompting import PromptTemplate
from veriward.eval.report import write_report
from veriward.eval.scripted import ScriptedGenerator

PLAIN = PromptTemplate(template="plain", instruction="")
TRIES = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--responses", type=int, default=5_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-report-") as place:
        folder = Path(place)
        runs = [scripted(folder / name, options.responses // 2, seed) for seed, name in enumerate(("before", "after"))]
        started = time.perf_counter()
        size = write_report(runs, folder / "report.html")
        row = {
            "responses": sum(len(run.rows) for run in runs),
            "seconds to make": round(time.perf_counter() - started, 2),
        }
        row |= {"MB": round(size / 1e6, 2), **opened((folder / "report.html").as_uri())}
    if options.json:
        print(json.dumps(row))
        return
    table = Table(show_header=False)
    for name, value in row.items():
        table.add_row(name, f"{value:,}")
    Console().print(table)


def scripted(folder: Path, count: int, seed: int) -> Any:
    draw = random.Random(seed)
    problems = [
        Problem(id=f"p{n}", question=f"What is ${n} + 1$, and why?", reference=str(n + 1), columns={"level": n % 5})
        for n in range(count)
    ]
    script = {problem.id: [response(int(problem.reference), draw)] for problem in problems}
    generator = ScriptedGenerator(script, {problem.id: problem.question for problem in problems}, name=f"script-{seed}")
    asked = ProblemSet(
        problems=tuple(problems),
        sha256=hash_problems(problems),
        name="sums",
        question_column="question",
        reference_column="reference",
    )
    return evaluate(generator, asked, folder, template=PLAIN, durability="process").run


def response(answer: int, draw: random.Random) -> str:
    lines = []
    for _ in range(12):
        one, other = draw.randint(1, 99), draw.randint(1, 99)
        wrong = draw.random() < 0.02
        sum_ = f"${one} + {other} = {one + other + wrong}$"
        lines.append(rf"We see that {sum_} and \(\frac{{{one}}}{{{other}}}\) is what remains of it.")
    return "\n".join(lines) + rf" So it is \boxed{{{answer if draw.random() < 0.6 else answer + 1}}}."


def opened(address: str) -> dict[str, float]:
    """Medians in seconds; nothing where there is no browser."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return {}
    times: dict[str, list[float]] = {"seconds to open": [], "seconds of a filter": [], "seconds of a search": []}
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for _ in range(TRIES):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            started = time.perf_counter()
            page.goto(address)
            page.wait_for_selector("html[data-ready]")
            times["seconds to open"].append(time.perf_counter() - started)
            started = time.perf_counter()
            page.select_option("select[name=outcome]", "wrong")
            times["seconds of a filter"].append(time.perf_counter() - started)
            started = time.perf_counter()
            page.fill("input[name=text]", "57 + 31")
            times["seconds of a search"].append(time.perf_counter() - started)
            page.close()
        browser.close()
    return {name: round(sorted(values)[len(values) // 2], 3) for name, values in times.items()}


if __name__ == "__main__":
    main()
