from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from veriward.eval.agent_run import run_agent
from veriward.eval.drill import SCRIPT
from veriward.eval.report import make_report, write_report
from veriward.eval.runs import read_run
from veriward.eval.scripted import ScriptedGenerator
from veriward.eval.tool_problems import frozen_twelve
from veriward.tool_agent import toolbox
from veriward.tool_agent.agent import AgentSettings
from veriward.tool_agent.errors import ConfigError

for module in ("jinja2", "matplotlib", "latex2mathml", "statsmodels"):
    pytest.importorskip(module)

HOSTILE = "</script><script>document.title='run'</script><img src=x onerror=\"document.title='run'\">\u2028"


@pytest.fixture
def write(run_folders, tmp_path):
    def write(name, right=range(4), extra="", **options):
        texts = {f"p{n}": rf"{extra}\boxed{{{n + 1 if n in right else 0}}}" for n in range(12)}
        return run_folders.write_run(tmp_path / name, texts, **options)

    return write


def data_of(page):
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(found)


class Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def elements(page):
    parser = Elements()
    parser.feed(page)
    return parser.found


def test_every_response_is_in_the_data_with_its_verdict(write):
    data = data_of(make_report([write("a"), write("b", range(2, 9))]))
    assert len(data["answers"]) == 24
    assert len(data["problems"]) == 12
    assert [answer["outcome"] for answer in data["answers"][:5]] == ["correct"] * 4 + ["wrong"]


def test_what_changed_is_named_in_both_runs(write):
    answers = data_of(make_report([write("a"), write("b", range(2, 9))]))["answers"]
    assert [answer.get("change") for answer in answers[12:22]] == ["lost"] * 2 + [None] * 2 + ["gained"] * 5 + [None]


def test_numbers_stand_with_interval_bounds_and_the_paired_test(write):
    page = make_report([write("a"), write("b", range(2, 9))])
    for text in ("4/12 = 33.3%", "13.8 to 60.9 %", "exact McNemar, p = 0.45", "+25.0 points", "Wilson", "0 of 70"):
        assert text in page


def test_runs_under_different_contracts_stand_apart(write):
    page = make_report([write("a"), write("b", contract="v2")])
    assert page.count('<section id="group-') == 2
    assert "exact McNemar" not in page


def test_the_page_asks_no_network_for_anything(write):
    page = make_report([write("a")])
    for tag, attributes in elements(page):
        assert tag not in ("link", "iframe", "object", "embed", "base")
        assert "src" not in attributes
        assert not re.match(r"https?:|//", attributes.get("href", "#"))
    assert "default-src 'none'" in page


def test_no_text_of_a_model_or_a_problem_is_markup(write, run_folders):
    problems = run_folders.problem_set(
        12, columns=[{"subject": HOSTILE[:60] + str(n % 2)} for n in range(12)], name=HOSTILE
    )
    page = make_report([write("a", extra=HOSTILE, model=HOSTILE, problems=problems)])
    found = elements(page)
    assert [tag for tag, _ in found].count("script") == 2
    assert not [tag for tag, _ in found if tag == "img"]
    assert not [name for _, attributes in found for name in attributes if name.startswith("on")]
    assert data_of(page)["answers"][0]["text"].startswith("</script><script>")


def test_the_policy_allows_exactly_the_pages_own_script_and_style(write):
    import base64
    import hashlib

    page = make_report([write("a")])
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    for text in (script, style):
        assert "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in page


def test_the_candidate_is_marked_where_it_stands(write):
    answer = data_of(make_report([write("a", extra="\U0001d54f ")]))["answers"][0]
    units = answer["text"].encode("utf-16-le")
    assert units[2 * answer["span"][0] : 2 * answer["span"][1]].decode("utf-16-le") == "1"


def test_the_diagnosis_is_in_the_data(run_folders, tmp_path):
    texts = {"p0": r"0 + 1 = 2: \boxed{2}", "p1": "The answer is 2. But 9 + 9 = 18: \\boxed{18}"}
    page = make_report([run_folders.write_run(tmp_path / "run", texts, problems=run_folders.problem_set(2))])
    first, second = data_of(page)["answers"]
    assert first["diagnosis"] == {"false": [0, 9], "category": "wrong_sum"}
    assert second["diagnosis"] == {"right": [14, 15], "category": "lost_right_answer"}
    assert "kind: wrong sum" in page


def test_formulas_are_trees_and_what_cannot_be_read_stays_text(run_folders, tmp_path):
    texts = {"p0": r"$\frac{1}{2}$ and $\def\a{\a\a}\a$ \boxed{1}", "p1": r"$\href{http://e}{x}$ \boxed{2}"}
    page = make_report([run_folders.write_run(tmp_path / "run", texts, problems=run_folders.problem_set(2))])
    data = data_of(page)
    assert any("mfrac" in json.dumps(tree) for tree in data["formulas"])
    assert not any("href" in json.dumps(tree) for tree in data["formulas"])


def test_training_curves_have_a_picture_for_each_component(write, tmp_path):
    folder = tmp_path / "grpo"
    folder.mkdir()
    rows = [
        {
            "step": n,
            "reward": 1.0,
            "rewards/accuracy_reward/mean": n / 9,
            "rewards/format_reward/mean": 1.0,
            "entropy": 0.1,
        }
        for n in range(1, 9)
    ]
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows) + '{"step": 9, "rew')
    page = make_report([write("a")], training=[folder])
    for name in ("accuracy reward", "format reward", "entropy"):
        assert f"<figcaption>{name}</figcaption>" in page


@pytest.mark.parametrize("subject", ["$x^$", r"$\foo{$", "a_b^c", "\x00\x07"])
def test_a_subject_is_drawn_as_it_is_written(run_folders, tmp_path, subject):
    problems = run_folders.problem_set(12, columns=[{"subject": subject if n % 2 else "other"} for n in range(12)])
    run = run_folders.write_run(tmp_path / "run", {f"p{n}": r"\boxed{1}" for n in range(12)}, problems=problems)
    assert "<figcaption>By subject</figcaption>" in make_report([run])


def test_every_label_of_a_picture_has_a_colour_of_the_page(write):
    drawn = re.findall(r"<text[^>]*>", make_report([write("a"), write("b")]))
    assert [label for label in drawn if "fill-" not in label] == []


def test_runs_that_share_no_problem_stand_beside_each_other_and_are_not_compared(run_folders, tmp_path):
    halves = [{f"p{n}": r"\boxed{1}" for n in numbers} for numbers in (range(6), range(6, 12))]
    runs = [run_folders.write_run(tmp_path / name, texts) for name, texts in zip("ab", halves, strict=True)]
    page = make_report(runs)
    assert page.count("PARTIAL: 6 missing") == 2
    assert "a → b" not in page


def test_a_corrected_run_shows_its_first_answers_too_and_says_what_the_gate_knew(tmp_path):
    twelve = frozen_twelve()
    generator = ScriptedGenerator(SCRIPT, {problem.id: problem.question for problem in twelve.problems})
    run_agent(generator, twelve, toolbox("strict"), tmp_path / "tools", settings=AgentSettings(answer_tokens=192))
    page = make_report([read_run(tmp_path / "tools")])
    first, corrected = (page.index(f"</span>tools, {label}</th>") for label in ("first answer", "corrected"))
    assert page.index("<td>7/12 = 58.3%</td>", first) < corrected < page.index("<td>9/12 = 75.0%</td>", corrected)
    assert "the gate knew the reference" in page


def test_a_seed_of_0_is_shown(run_folders, tmp_path):
    texts = {f"p{n}": [r"\boxed{1}", r"\boxed{2}"] for n in range(12)}
    answers = data_of(make_report([run_folders.write_run(tmp_path / "run", texts)]))["answers"]
    assert [answer["seed"] for answer in answers[:2]] == [0, 1]


def test_a_number_that_training_could_not_compute_is_left_out(write, tmp_path):
    rows = [{"step": n, "reward": 1.0, "kl": float("nan") if n == 2 else 0.5} for n in range(1, 4)]
    (tmp_path / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert "<figcaption>kl</figcaption>" in make_report([write("a")], training=[tmp_path])


@pytest.mark.parametrize("content", [b"[1]\n", b"\xff\xfe\n", b'{"step": "a", "reward": 1}\n'])
def test_metrics_of_something_else_are_one_line(write, tmp_path, content):
    (tmp_path / "metrics.jsonl").write_bytes(content)
    with pytest.raises(ConfigError, match="no step was logged yet"):
        make_report([write("a")], training=[tmp_path])


def test_a_folder_without_training_is_one_line(write, tmp_path):
    with pytest.raises(ConfigError, match="wanted a training run's folder"):
        make_report([write("a")], training=[tmp_path])


def test_a_run_without_a_response_has_no_report(run_folders, tmp_path):
    with pytest.raises(ConfigError, match="holds no complete response"):
        make_report([run_folders.write_run(tmp_path / "empty", {})])


def test_the_same_runs_give_the_same_page(write, tmp_path):
    run = write("a")
    assert write_report([run], tmp_path / "one.html") == write_report([run], tmp_path / "two.html")
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_a_very_long_response_is_cut_in_its_middle_and_keeps_its_answer(run_folders, tmp_path):
    texts = {"p0": "word " * 100_000 + r"\boxed{1}"}
    page = make_report([run_folders.write_run(tmp_path / "run", texts, problems=run_folders.problem_set(1))])
    (answer,) = data_of(page)["answers"]
    assert len(answer["text"]) == 100_000
    assert answer["cut"][1] == 400_009
    assert answer["text"][answer["span"][0] : answer["span"][1]] == "1"
