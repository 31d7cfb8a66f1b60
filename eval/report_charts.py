"""The report's pictures: drawn with matplotlib, and made into SVG that the page's own style colours and sets.

Texts stay text. What matplotlib writes as inline style becomes attributes, since the page allows no inline style, and
each colour of COLOURS becomes a class, so that one picture serves a light page and a dark one. A picture comes in two
widths where a phone needs another shape than a desk.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from veriward.eval.rates import Interval
from veriward.tool_agent.errors import need

WIDE, NARROW, SMALL = 860, 340, 300
"""Pixels; SMALL pictures stand beside each other."""

COLOURS = {
    "ink": "#1f2933",
    "faint": "#5f6c7b",
    "grid": "#e4e9ee",
    "page": "#fffffe",
    "run-0": "#1763a6",
    "run-1": "#c2571a",
    "run-2": "#2c7a4b",
    "run-3": "#7a3e93",
    "run-4": "#8a6d0b",
    "run-5": "#4a5a6a",
    "correct": "#2c7a4c",
    "wrong": "#c4551b",
    "no_answer": "#8e9aa7",
    "unsupported": "#7b3f94",
    "undecided": "#b58a12",
    "timeout": "#3c6e8f",
    "crashed": "#3a444e",
    "bad_reference": "#b0b8c0",
    "cut": "#d9483b",
}
"""No two are equal, as a colour is the name of its class."""
CLASSES = {colour: name for name, colour in COLOURS.items()}
RUN_COLOURS = 6

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
FONT_SIZE = re.compile(r"(\d+(?:\.\d+)?)px")
UNPRINTED = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufffe\uffff]")
SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "veriward",
    "text.parse_math": False,
    "font.size": 12,
    "text.color": COLOURS["ink"],
    "xtick.color": COLOURS["faint"],
    "ytick.color": COLOURS["ink"],
    "axes.edgecolor": COLOURS["grid"],
    "path.simplify": True,
}
GAP = "\u00a0"
"""In front of a label; SVG leaves out a plain space there."""
SMOOTHING = 5
"""Points on each side that a line averages over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One rate of one run."""

    label: str
    said: str
    """As '41/256 = 16.0%'."""
    value: float | None
    interval: Interval | None
    run: int


def colour_of_run(number: int) -> str:
    return COLOURS[f"run-{number % RUN_COLOURS}"]


def accuracy_chart(points: Sequence[Point], name: str) -> str:
    """Each rate with its interval, on one axis from 0."""
    return both_widths(name, lambda width: draw_accuracy(points, width))


def draw_accuracy(points: Sequence[Point], width: int) -> Any:
    wide = width == WIDE
    row, top, bottom = (38, 6, 34) if wide else (54, 14, 34)
    height = top + bottom + row * len(points)
    figure, axes = empty_figure(width, height, (230 if wide else 12, 190 if wide else 14, top, bottom))
    limit = axis_limit(points)
    axes.set_xlim(0, limit)
    axes.set_ylim(len(points) - 0.5, -0.5)
    percent_axis(axes, 5 if wide else 4)
    for place, point in enumerate(points):
        colour = colour_of_run(point.run)
        whisker(axes, point, place if wide else place + 0.15, colour, 8)
        label, said = shorten(point.label, 30 if wide else 26), point.said
        if wide:
            text(axes, -14, place, label, ha="right", size=13)
            text(axes, limit, place, f"{GAP * 3}{said}", ha="left", size=12, colour=COLOURS["ink"], shift=0)
        else:
            text(axes, 0, place - 0.22, label, ha="left", size=12, shift=0)
            text(axes, limit, place - 0.22, said, ha="right", size=12, colour=COLOURS["faint"], shift=0)
    return figure


def breakdown_chart(rows: Sequence[tuple[str, Sequence[Point]]], name: str) -> str:
    """One column of the problems: a row for each of its values, in it one point for each run."""
    return as_svg(lambda: draw_breakdown(rows), name)


def draw_breakdown(rows: Sequence[tuple[str, Sequence[Point]]]) -> Any:
    runs = max(len(points) for _, points in rows)
    row = 26 + 13 * runs
    figure, axes = empty_figure(NARROW + 60, 10 + 34 + row * len(rows), (14, 18, 6, 34))
    limit = axis_limit([point for _, points in rows for point in points])
    axes.set_xlim(0, limit)
    axes.set_ylim(len(rows) * row, 0)
    percent_axis(axes, 4)
    for place, (label, points) in enumerate(rows):
        text(axes, 0, place * row + 12, shorten(label, 34), ha="left", size=12, shift=0)
        text(axes, limit, place * row + 12, points[0].label, ha="right", size=11, colour=COLOURS["faint"], shift=0)
        for number, point in enumerate(points):
            whisker(axes, point, place * row + 28 + 13 * number, colour_of_run(point.run), 6)
    return figure


def outcomes_chart(rows: Sequence[tuple[str, Mapping[str, int]]], name: str) -> str:
    """A bar for each run, as wide as all of its responses."""
    return both_widths(name, lambda width: draw_outcomes(rows, width))


def draw_outcomes(rows: Sequence[tuple[str, Mapping[str, int]]], width: int) -> Any:
    wide = width == WIDE
    row = 42 if wide else 58
    left, right = (230, 14) if wide else (2, 2)
    figure, axes = empty_figure(width, row * len(rows) + 6, (left, right, 2, 4))
    axes.set_xlim(0, 1)
    axes.set_ylim(len(rows) * row, 0)
    axes.set_xticks([])
    axes.set_yticks([])
    for place, (label, counts) in enumerate(rows):
        total, start = sum(counts.values()), 0.0
        y = place * row + (8 if wide else 26)
        text(axes, *((-14, y + 13) if wide else (0, y - 12)), shorten(label, 30), ha="right" if wide else "left",
             size=13 if wide else 12, shift=None if wide else 0)  # fmt: skip
        for outcome, count in counts.items():
            share = count / total if total else 0.0
            axes.barh(y, share, left=start, height=26, align="edge", color=COLOURS[outcome], edgecolor=COLOURS["page"])
            if share * (width - left - right) > 9 * len(str(count)) + 8:
                text(
                    axes, start + share / 2, y + 13, f"{count:,}", ha="center", size=12, colour=COLOURS["page"], shift=0
                )
            start += share
    return figure


def lengths_chart(
    complete: Sequence[int], cut: Sequence[int], bins: Sequence[float], highest: int, run: int, name: str
) -> str:
    """Tokens of the responses of one run, those that were cut off on top and in their own colour."""
    return as_svg(lambda: draw_lengths(complete, cut, bins, highest, run), name)


def draw_lengths(complete: Sequence[int], cut: Sequence[int], bins: Sequence[float], highest: int, run: int) -> Any:
    figure, axes = empty_figure(SMALL, 150, (38, 14, 8, 34))
    axes.set_xlim(bins[0], bins[-1])
    axes.set_ylim(0, highest * 1.08 or 1)
    axes.hist(
        [complete, cut],
        bins=list(bins),
        stacked=True,
        color=[colour_of_run(run), COLOURS["cut"]],
        edgecolor=COLOURS["page"],
        linewidth=0.6,
    )
    value_axes(axes, "tokens")
    return figure


def bins_for(lengths: Sequence[int], most: int = 24) -> list[float]:
    """Edges of equal bins over whole numbers, the same for every run."""
    top = max(lengths, default=1) + 1
    width = max(1, -(-top // most))
    return [float(edge) for edge in range(0, (top // width + 2) * width, width)]


def highest_bin(lengths: Sequence[int], bins: Sequence[float]) -> int:
    width = bins[1] - bins[0]
    counts: dict[int, int] = {}
    for length in lengths:
        counts[int(length // width)] = counts.get(int(length // width), 0) + 1
    return max(counts.values(), default=0)


def curve_chart(lines: Sequence[tuple[int, Sequence[tuple[int, float]]]], share: bool, name: str) -> str:
    """One number of a training run by step: a dot for each log row, and a centred mean as the line.

    lines   the number of the training run, for its colour, and its (step, value)
    """
    return as_svg(lambda: draw_curve(lines, share), name)


def draw_curve(lines: Sequence[tuple[int, Sequence[tuple[int, float]]]], share: bool) -> Any:
    figure, axes = empty_figure(SMALL, 160, (42, 48, 10, 34))
    values = [value for _, points in lines for _, value in points]
    last = max(step for _, points in lines for step, _ in points)
    first = min(step for _, points in lines for step, _ in points)
    axes.set_xlim(min(first, last - 1), last)
    low, high = min(0.0, *values), max(0.0, *values)
    spread = (high - low) or 1.0
    axes.set_ylim(*((-0.03, 1.03) if share else (low - (0.06 * spread if low < 0 else 0), high + 0.1 * spread)))
    for run, points in lines:
        steps, line = [step for step, _ in points], smooth([value for _, value in points])
        colour = colour_of_run(run)
        axes.plot(
            steps, [value for _, value in points], "o", markersize=2.6, markeredgewidth=0, color=colour, alpha=0.28
        )
        axes.plot(steps, line, color=colour, linewidth=2, solid_capstyle="round")
        said = f"{line[-1]:.0%}" if share else f"{line[-1]:.3g}"
        text(axes, last, line[-1], f"{GAP}{said}", ha="left", size=12, colour=colour, shift=0, weight="bold")
    value_axes(axes, "step", share)
    return figure


def smooth(values: Sequence[float]) -> list[float]:
    """Centred mean, narrower at both ends."""
    line = []
    for i in range(len(values)):
        reach = min(SMOOTHING, i, len(values) - 1 - i)
        window = values[i - reach : i + reach + 1]
        line.append(sum(window) / len(window))
    return line


def shares_chart(rows: Sequence[tuple[str, Sequence[tuple[int, int, int]]]], name: str) -> str:
    """Counts by name: a bar for each run, with run, count and total."""
    return as_svg(lambda: draw_shares(rows), name)


def draw_shares(rows: Sequence[tuple[str, Sequence[tuple[int, int, int]]]]) -> Any:
    runs = max(len(bars) for _, bars in rows)
    row = 24 + 15 * runs
    figure, axes = empty_figure(NARROW + 60, 6 + row * len(rows), (2, 96, 2, 4))
    most = max((count / total for _, bars in rows for _, count, total in bars if total), default=0) or 1.0
    axes.set_xlim(0, most)
    axes.set_ylim(len(rows) * row, 0)
    axes.set_xticks([])
    axes.set_yticks([])
    for place, (label, bars) in enumerate(rows):
        text(axes, 0, place * row + 11, shorten(label, 40), ha="left", size=12, shift=0)
        for number, (run, count, total) in enumerate(bars):
            y, share = place * row + 21 + 15 * number, count / total if total else 0.0
            axes.barh(y, share, height=11, align="edge", color=colour_of_run(run))
            text(axes, share, y + 6, f"{GAP}{count:,}/{total:,}", ha="left", size=11, colour=COLOURS["faint"], shift=0)
    return figure


# ------------------------------------------------------------------------------------------------------ small parts


def empty_figure(width: int, height: int, margins: tuple[int, int, int, int]) -> tuple[Any, Any]:
    """A figure in pixels and its axes; margins left, right, top, bottom."""
    from matplotlib.figure import Figure

    left, right, top, bottom = margins
    figure = Figure(figsize=(width / 72, height / 72))
    figure.patch.set_visible(False)
    axes = figure.add_axes(
        (left / width, bottom / height, (width - left - right) / width, (height - top - bottom) / height)
    )
    axes.patch.set_visible(False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.set_axisbelow(True)
    return figure, axes


def percent_axis(axes: Any, ticks: int) -> None:
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    axes.set_yticks([])
    axes.xaxis.set_major_locator(MaxNLocator(nbins=ticks, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.tick_params(axis="x", labelsize=11.5, pad=6)
    axes.grid(axis="x", color=COLOURS["grid"], linewidth=1)


def value_axes(axes: Any, below: str, share: bool = False) -> None:
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    axes.xaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=3, integer=below == "tokens"))
    if share:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.set_yticks([0, 0.5, 1])
    axes.grid(axis="y", color=COLOURS["grid"], linewidth=1)
    axes.tick_params(labelsize=11, labelcolor=COLOURS["faint"], pad=4)
    axes.set_xlabel(below, fontsize=11, color=COLOURS["faint"], labelpad=2)


def axis_limit(points: Sequence[Point]) -> float:
    """A round share above all intervals, so that small rates fill the picture too."""
    top = max(
        (edge for point in points for edge in (point.value, *(point.interval or ())) if edge is not None), default=1
    )
    return next((limit for limit in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8) if top <= 0.95 * limit), 1.0)


def whisker(axes: Any, point: Point, y: float, colour: str, size: int) -> None:
    if point.interval is not None:
        axes.plot(point.interval, [y, y], color=colour, linewidth=3, alpha=0.4, solid_capstyle="round", clip_on=False)
    if point.value is not None:
        axes.plot([point.value], [y], "o", markersize=size, color=colour, markeredgewidth=0, clip_on=False)


def text(
    axes: Any, x: float, y: float, said: str, *, ha: str, size: float, colour: str = COLOURS["ink"],
    shift: float | None = None, weight: str = "normal",
) -> None:  # fmt: skip
    """A label; without `shift` x counts pixels from the left edge of the axes, else it is a value."""
    if shift is None:
        axes.annotate(said, (0, y), xycoords=("axes fraction", "data"), xytext=(x, 0), textcoords="offset points",
                      ha=ha, va="center_baseline", fontsize=size, color=colour, annotation_clip=False)  # fmt: skip
    else:
        axes.text(x, y, said, ha=ha, va="center_baseline", fontsize=size, color=colour, fontweight=weight)


def shorten(label: str, longest: int) -> str:
    printable = UNPRINTED.sub("\ufffd", label)
    return printable if len(printable) <= longest else f"{printable[: longest - 9]}…{printable[-8:]}"


def both_widths(name: str, draw: Callable[[int], Any]) -> str:
    return as_svg(lambda: draw(WIDE), f"{name}-wide", "wide") + as_svg(lambda: draw(NARROW), f"{name}-narrow", "narrow")


# --------------------------------------------------------------------------------------------------------- to SVG


@contextmanager
def drawing() -> Iterator[None]:
    need("matplotlib", extra="eval", purpose="a report")
    import matplotlib as mpl

    with mpl.rc_context(SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph \d+")  # the page's font has the character, not matplotlib's
        yield


def as_svg(draw: Callable[[], Any], name: str, kind: str = "") -> str:
    """An SVG element for a page. `name` keeps its ids apart from those of other pictures."""
    with drawing():  # the figure too: a text decides at birth whether a `$` in it is a formula
        stream = io.StringIO()
        draw().savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    root = ElementTree.fromstring(stream.getvalue())  # noqa: S314  what was just drawn
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{SVG}}}metadata", f"{{{SVG}}}style"):
                parent.remove(child)
    for element in root.iter():
        tidy(element, name)
    width, height = (round(float(root.get(side, "0").removesuffix("pt"))) for side in ("width", "height"))
    root.attrib.clear()
    root.attrib.update(
        {"viewBox": f"0 0 {width} {height}", "width": str(width), "height": str(height), "aria-hidden": "true"}
    )
    root.set("class", f"chart {kind}".strip())
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    return ElementTree.tostring(root, encoding="unicode")


def tidy(element: ElementTree.Element, name: str) -> None:
    """Inline style to classes and attributes, ids under the picture's name."""
    style, classes = element.attrib.pop("style", ""), []
    for declaration in filter(str.strip, style.split(";")):
        key, _, value = (part.strip() for part in declaration.partition(":"))
        if key in ("fill", "stroke") and value in CLASSES:
            classes.append(f"{key}-{CLASSES[value]}")
        elif key == "font":
            if size := FONT_SIZE.search(value):
                element.set("font-size", size.group(1))
            if "bold" in value or "700" in value:
                element.set("font-weight", "600")
        elif key not in ("font-family", "stroke-linejoin"):
            element.set(key, value)
    if classes:
        element.set("class", " ".join(classes))
    if "id" in element.attrib:
        element.set("id", f"{name}-{element.attrib['id']}")
    link = element.attrib.pop(f"{{{XLINK}}}href", None)
    if link is not None:
        element.set("href", f"#{name}-{link.removeprefix('#')}")
    if "clip-path" in element.attrib:
        element.set("clip-path", element.attrib["clip-path"].replace("url(#", f"url(#{name}-"))
