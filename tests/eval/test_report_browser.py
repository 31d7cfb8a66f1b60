"""The report in a real browser: Chromium without a window, driven by Playwright."""

from __future__ import annotations

import shutil

import pytest

from veriward.eval.report import write_report

for module in ("jinja2", "matplotlib", "latex2mathml", "statsmodels"):
    pytest.importorskip(module)
playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'veriward[dev]'")

pytestmark = pytest.mark.slow

TEXTS = {
    "p0": r"First $\frac{1}{2} + \frac{1}{2} = 1$, so \boxed{1}",
    "p1": "The answer is 2. To explain it again, 9 + 9 = 18, so \\boxed{18}",
    "p2": "<script>document.title = 'run'</script><img src=x onerror=\"document.title='run'\">1 + 2 = 4 \\boxed{4}",
    "p3": "I do not know.",
    "p4": [("we add and add " * 60, "length")],
}


@pytest.fixture(scope="module")
def browser():
    place = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    with playwright.sync_playwright() as driver:
        try:
            opened = driver.chromium.launch(executable_path=place, args=["--no-sandbox"])
        except playwright.Error as error:
            pytest.skip(f"needs Chromium: apt install chromium, or playwright install chromium ({str(error)[:60]})")
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def report(run_folders, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    problems = run_folders.problem_set(5)
    first = run_folders.write_run(folder / "before", TEXTS, problems=problems)
    second = run_folders.write_run(folder / "after", {**TEXTS, "p3": r"\boxed{4}"}, problems=problems, weights="1" * 64)
    write_report([first, second], folder / "report.html")
    return (folder / "report.html").as_uri()


@pytest.fixture
def page(browser, report):
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    opened.complaints = []
    opened.asked = []
    opened.on("console", lambda message: opened.complaints.append(message.text))
    opened.on("pageerror", lambda error: opened.complaints.append(str(error)))
    opened.on("request", lambda request: opened.asked.append(request.url))
    opened.goto(report)
    opened.wait_for_selector("html[data-ready]")
    yield opened
    assert opened.complaints == []
    opened.close()


def rows(page):
    return page.locator("#list .row").count()


def choose(page, name):
    page.locator("#list .row", has_text=name).first.click()


def test_it_opens_without_an_error_and_asks_for_nothing_else(page, report):
    assert page.asked == [report]
    assert rows(page) == 10
    assert page.locator("#count").inner_text() == "10 of 10"


def test_hostile_text_does_not_run(page):
    choose(page, "p2")
    assert "<script>" in page.locator("#detail .text").last.inner_text()
    page.wait_for_timeout(100)
    assert page.title() != "run"
    assert page.locator("#detail img").count() == 0


@pytest.mark.parametrize(
    ("name", "value", "left"),
    [
        ("outcome", "wrong", 4),
        ("change", "gained", 2),
        ("kind", "repetition", 2),
        ("run", "1", 5),
        ("kind", "wrong_sum", 2),
    ],
)
def test_a_filter_leaves_what_it_names(page, name, value, left):
    page.select_option(f"select[name={name}]", value)
    assert (rows(page), page.locator("#count").inner_text()) == (left, f"{left} of 10")


def test_a_text_is_found_in_questions_and_responses(page):
    page.fill("input[name=text]", "EXPLAIN it again")
    assert rows(page) == 2


def test_the_answer_the_false_step_and_what_followed_the_right_answer_are_marked(page):
    choose(page, "p1")
    assert page.locator("#detail .text .right-first").inner_text() == "2"
    assert "To explain it again" in page.locator("#detail .text").last.locator(".after").first.inner_text()
    assert page.locator("#detail .text .candidate").inner_text() == "18"
    choose(page, "p2")
    assert page.locator("#detail .text .false-step").inner_text() == "1 + 2 = 4"


def test_formulas_are_mathml_and_can_be_switched_off(page):
    choose(page, "p0")
    assert page.locator("#detail math mfrac").count() == 2
    page.uncheck("input[name=maths]")
    assert page.locator("#detail math").count() == 0
    assert r"\frac{1}{2}" in page.locator("#detail .text").last.inner_text()


def test_the_arrow_keys_go_through_the_responses(page):
    choose(page, "p0")
    page.keyboard.press("ArrowDown")
    assert page.locator("#detail h3").inner_text().startswith("p1")
    assert page.url.endswith("#r1")


def test_an_address_opens_its_response(browser, report):
    opened = browser.new_page()
    opened.goto(f"{report}#r3")
    assert opened.locator("#detail h3").inner_text().startswith("p3")
    opened.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_screen(browser, report, width):
    opened = browser.new_page(viewport={"width": width, "height": 800})
    opened.goto(report)
    opened.wait_for_selector("html[data-ready]")
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    opened.close()
