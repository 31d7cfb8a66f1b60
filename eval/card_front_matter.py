"""What the Hub reads of a model card: `model-index` in the front matter, and the newer `.eval_results` files.

Neither form has a field for a denominator, an interval or a grading contract; they stand in `metric_args` and `notes`.
Only complete runs are in them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from veriward.eval.metrics import Summary
from veriward.eval.problems import PRESETS
from veriward.eval.runs import Run
from veriward.tool_agent.errors import need

HUB_DATASET = re.compile(r"[\w.-]+/[\w.-]+(:[\w.-]+)?")
FILES = (".jsonl", ".json", ".ndjson", ".parquet", ".csv", ".txt")

Results = Sequence[tuple[Run, Summary]]


def front_matter(model: str, results: Results) -> str:
    """Between its two lines of dashes."""
    need("huggingface_hub", extra="eval", purpose="a model card")
    from huggingface_hub import EvalResult, ModelCardData

    found = [
        EvalResult(
            task_type="text-generation",
            dataset_type=hub_name(run),
            dataset_name=run.problem_set,
            metric_type="accuracy",
            metric_value=round(100 * (summary.accuracy.value or 0.0), 2),
            metric_name=metric_name(summary),
            metric_args={
                "correct": summary.accuracy.successes,
                "n": summary.accuracy.total,
                "interval_95": None if summary.interval is None else [round(100 * end, 2) for end in summary.interval],
                "contract": str(summary.contract),
                "run": run.fingerprint,
            },
        )
        for run, summary in results
    ]
    data = ModelCardData(model_name=model, tags=["veriward"], eval_results=found or None)
    return f"---\n{data.to_yaml().strip()}\n---\n\n"


def eval_results(results: Results) -> dict[str, str]:
    """File name to YAML, for the sets that the Hub knows by name."""
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    need("yaml", extra="eval", purpose="a model card")
    import yaml

    files: dict[str, list[EvalResultEntry]] = {}
    for run, summary in results:
        dataset = hub_name(run)
        if "/" not in dataset:
            continue
        low_high = (
            "undefined"
            if summary.interval is None
            else "{:.2f} to {:.2f}".format(*(100 * end for end in summary.interval))
        )
        entry = EvalResultEntry(
            dataset_id=dataset,
            task_id="default",
            value=round(100 * (summary.accuracy.value or 0.0), 2),
            notes=f"no-tools; {metric_name(summary)}; {summary.accuracy.successes} of {summary.accuracy.total}; 95 % "
            f"interval {low_high} ({summary.interval_method}); contract {summary.contract}; run {run.fingerprint}",
        )
        files.setdefault(f"{re.sub(r'[^A-Za-z0-9._-]+', '_', dataset)}.yaml", []).append(entry)
    return {
        name: yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True)
        for name, entries in files.items()
    }


def metric_name(summary: Summary) -> str:
    return "accuracy" if summary.samples == 1 else f"accuracy, mean of {summary.samples} samples"


def hub_name(run: Run) -> str:
    """Of the data set on the Hub where the set is one, without its configuration; else the last part of its path."""
    name = str(run.settings["problems"]["name"])
    if name in PRESETS:
        return PRESETS[name].hub.split(":")[0]
    on_hub = HUB_DATASET.fullmatch(name) is not None and not name.endswith(FILES)
    return name.split(":")[0] if on_hub else run.problem_set
