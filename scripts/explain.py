"""Draw how a verdict came about: the answer in its response, both readings, what each tier found, the verdict."""

from __future__ import annotations

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from veriward.rewards import Explanation, Outcome, Verdict

AROUND = 160
"""Characters of the response shown before and after the answer."""

COLOURS = {
    Outcome.CORRECT: "bold green",
    Outcome.WRONG: "bold red",
    Outcome.NO_ANSWER: "bold red",
    Outcome.BAD_REFERENCE: "bold magenta",
}
FINDINGS = {"equal": "green", "unequal": "red", "skipped": "dim"}


def show(explanation: Explanation, console: Console) -> None:
    """Print one explanation."""
    verdict = explanation.verdict
    if explanation.response is not None:
        console.print(Panel(in_context(explanation.response, verdict), title="response", title_align="left"))
    console.print(readings(explanation))
    if explanation.steps:
        console.print(steps_table(explanation))
    console.print(outcome_line(verdict))


def in_context(response: str, verdict: Verdict) -> Text:
    """The answer marked where it stands, with a little text around it."""
    if verdict.span is None:
        shown = Text(shorten(response, 2 * AROUND))
        shown.append(f"\n{' · '.join(['no answer found', *verdict.flags])}", style="yellow")
        return shown
    start, end = verdict.span
    before, after = response[max(0, start - AROUND) : start], response[end : end + AROUND]
    return Text.assemble(
        ("…" if start > AROUND else "") + visible(before),
        (visible(response[start:end]), "bold black on yellow"),
        visible(after) + ("…" if end + AROUND < len(response) else ""),
        (f"\n{' · '.join([f'taken as {verdict.extraction}', *verdict.flags])}", "dim"),
    )


def readings(explanation: Explanation) -> Table:
    """Each side as written and as read; under a refused one, the place where reading stopped."""
    verdict = explanation.verdict
    table = Table(show_header=True, header_style="dim", title_justify="left", highlight=False)
    table.add_column("")
    table.add_column("as written", overflow="fold")
    table.add_column("as read", overflow="fold")
    refused = verdict.reason.value if verdict.reason is not None else ""
    at_reference = verdict.outcome is Outcome.BAD_REFERENCE
    for name, text, normal, stopped in (
        ("answer", verdict.candidate, verdict.candidate_normal, not at_reference),
        ("reference", verdict.reference, verdict.reference_normal, at_reference),
    ):
        if text is None:
            table.add_row(name, Text("none", style="yellow"), "")
        elif stopped and explanation.refused_at is not None:
            table.add_row(name, marked(text, explanation.refused_at), Text(refused, style="yellow"))
        else:
            table.add_row(name, visible(shorten(text, 4 * AROUND)), Text(shorten(normal or "", 4 * AROUND)))
    return table


def marked(text: str, at: int) -> Text:
    """The text with a mark under one character; a long one is cut around it."""
    start = max(0, at - 30)
    piece, before = visible(text[start : at + 30]), visible(text[start:at])
    lead = "…" if start else ""
    return Text.assemble(lead + piece + "\n" + " " * len(lead + before), ("^", "bold yellow"))


def steps_table(explanation: Explanation) -> Table:
    table = Table(show_header=True, header_style="dim", highlight=False)
    table.add_column("step")
    table.add_column("found", overflow="fold")
    for step, finding in explanation.steps:
        style = next((style for word, style in FINDINGS.items() if finding.startswith(word)), "")
        table.add_row(step, Text(visible(finding), style=style))
    return table


def outcome_line(verdict: Verdict) -> Text:
    said = [verdict.outcome.value.replace("_", " ")]
    said += [value.value for value in (verdict.reason, verdict.method, verdict.certainty) if value is not None]
    facts = [f"contract {verdict.contract} ({verdict.fingerprint})", f"{verdict.microseconds:,} µs"]
    if verdict.format_valid is not None:
        facts.insert(0, f"format {'valid' if verdict.format_valid else 'not valid'}")
    facts += verdict.flags
    return Text.assemble(
        (" · ".join(said), COLOURS.get(verdict.outcome, "bold yellow")), "   ", (" · ".join(facts), "dim")
    )


def shorten(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length // 2]} … {text[-length // 2 :]}"


def visible(text: str) -> str:
    """Control characters as their escapes, so that no text can steer a terminal; one character for one elsewhere."""
    return "".join(one if one.isprintable() or one == "\n" else ascii(one)[1:-1] for one in text)
