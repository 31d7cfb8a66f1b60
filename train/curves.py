"""The learning curves of a run: accuracy, format, length and entropy by step, as one picture.

Drawn from `metrics.jsonl` alone, so that a stopped or an old run can be drawn again:

    python -m veriward.train.curves runs/quickstart/grpo
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veriward.train.rollouts import read_lines

INK, FAINT, GRID = "#1f2933", "#8896a5", "#e4e9ee"
COLOURS = {"accuracy": "#1763a6", "format": "#c2571a", "length": "#2c7a4b", "entropy": "#7a3e93"}
SMOOTHING = 5
"""Points on each side that the line averages over; the dots are the values themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One panel: its title, the metric that it shows, and whether that is a share of completions."""

    name: str
    title: str
    metric: str
    share: bool


CURVES = (
    Curve(name="accuracy", title="Accuracy: share of correct answers", metric="outcome/correct", share=True),
    Curve(name="format", title="Format: share with a complete last box", metric="format_valid", share=True),
    Curve(name="length", title="Length: mean tokens of a response", metric="completions/mean_length", share=False),
    Curve(name="entropy", title="Entropy: mean nats per token", metric="entropy", share=False),
)


def draw_curves(run_folder: Path) -> Path | None:
    """Write RUN/curves.png; None if no step was logged yet."""
    rows = [row for row in read_lines(run_folder / "metrics.jsonl") if "reward" in row]
    if not rows:
        return None
    record = json.loads((run_folder / "run.json").read_text(encoding="utf-8"))
    completions = int(record["batch"]["completions_per_step"])
    per_point = completions_per_point([int(row["step"]) for row in rows], completions)
    figure = draw(rows, per_point, title_of(record))
    path = run_folder / "curves.png"
    figure.savefig(path, dpi=130, facecolor="white")
    return path


def completions_per_point(steps: Sequence[int], per_step: int) -> int:
    """Completions behind one point: a log row averages the steps since the row before it."""
    gaps = [later - earlier for earlier, later in zip([0, *steps], steps, strict=False)]
    return per_step * max(1, sorted(gaps)[len(gaps) // 2])


def title_of(record: dict[str, Any]) -> str:
    settings = record["settings"]
    model, problems = settings["model"]["model_name_or_path"], record["data"]["name"]
    return f"{model} on {problems}, contract {record['contract']['name']}"


def draw(rows: Sequence[dict[str, Any]], per_point: int, title: str) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 6.6), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=11, color=INK, x=0.012, ha="left")
    for axes, curve in zip(figure.subplots(2, 2).flat, CURVES, strict=True):
        points = [(int(row["step"]), float(row[curve.metric])) for row in rows if row.get(curve.metric) is not None]
        draw_panel(axes, curve, points, per_point)
    figure.supxlabel(
        f"optimizer step        each dot: {per_point} completions; line: mean of up to {2 * SMOOTHING + 1} dots; "
        "band: 95% Wilson interval, completions taken as independent",
        fontsize=8.5,
        color=FAINT,
    )
    return figure


def draw_panel(axes: Any, curve: Curve, points: Sequence[tuple[int, float]], per_point: int) -> None:
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    colour = COLOURS[curve.name]
    axes.set_title(curve.title, fontsize=10.5, color=INK, loc="left")
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, labelsize=9, length=0)
    axes.spines[:].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    if curve.share:
        axes.set_ylim(-0.02, 1.02)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    if not points:
        axes.text(0.5, 0.5, "not logged", transform=axes.transAxes, ha="center", color=FAINT)
        return
    steps, values = [step for step, _ in points], [value for _, value in points]
    if curve.share:
        bands = [wilson(value, per_point) for value in values]
        axes.fill_between(steps, [low for low, _ in bands], [high for _, high in bands], color=colour, alpha=0.13, lw=0)
    else:
        axes.set_ylim(0, max(values) * 1.15 or 1.0)
    line = smooth(values)
    axes.plot(steps, values, "o", markersize=3, color=colour, alpha=0.35)
    axes.plot(steps, line, color=colour, linewidth=2)
    axes.annotate(
        f"{line[-1]:.0%}" if curve.share else f"{line[-1]:.3g}",
        (steps[-1], line[-1]),
        textcoords="offset points",
        xytext=(6, 0),
        va="center",
        fontsize=9.5,
        fontweight="bold",
        color=colour,
    )
    axes.set_xlim(0, steps[-1] * 1.1)


def smooth(values: Sequence[float]) -> list[float]:
    """Centred mean; narrower at the start, so that it begins where the run began, and one-sided at the end."""
    line = []
    for i in range(len(values)):
        reach = min(SMOOTHING, i)
        window = values[i - reach : i + reach + 1]
        line.append(math.fsum(window) / len(window))
    return line


def wilson(share: float, total: int) -> tuple[float, float]:
    """95% interval of a share; as eval.metrics.Rate, for a share whose count was rounded away in the log."""
    from veriward.eval.rates import Rate

    interval = Rate(successes=min(total, max(0, round(share * total))), total=total).interval()
    return interval if interval is not None else (0.0, 1.0)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m veriward.train.curves RUN_FOLDER")
    print(draw_curves(Path(sys.argv[1])) or "no step was logged yet")
