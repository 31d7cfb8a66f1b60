"""The candidate of a response under contracts v1 and v2: last box by brace depth, else last number."""

import pytest

from veriward.rewards.extract import extract


@pytest.mark.parametrize(
    ("response", "candidate", "how"),
    [
        pytest.param(r"Draft \boxed{5}; corrected \boxed{7}.", "7", "boxed", id="the last box wins"),
        pytest.param(r"\boxed{\frac{2}{6}}", r"\frac{2}{6}", "boxed", id="nested braces are walked by depth"),
        pytest.param("\\boxed \n {3}", "3", "boxed", id="white space before the brace is allowed"),
        pytest.param(r"Final attempt: \boxed{4", "4", "last_number", id="a box that never closes is no box"),
        pytest.param(
            r"\boxed{3}, or \boxed 4.", "4", "last_number", id="an earlier box does not stand in for the last"
        ),
        pytest.param(r"\boxed{\{1\}}", r"\{1\}", "boxed", id="escaped braces are counted like any other"),
        pytest.param(r"\boxed{\{1}", "1", "last_number", id="an escaped brace can leave a box unclosed"),
        pytest.param(r"\boxed{}", "", "boxed", id="an empty box is a complete box"),
        pytest.param("Therefore the result is 4.", "4", "last_number", id="a full stop is no decimal point"),
        pytest.param("25 - 7 = 18", "18", "last_number", id="the last number is taken"),
        pytest.param("a sum of $1,234.50 in all", "1,234.50", "last_number", id="separators and decimals belong to it"),
        pytest.param("x = -7.", "-7", "last_number", id="a sign belongs to it"),
        pytest.param("so 3-5", "5", "last_number", id="an operator does not"),
        pytest.param("about 3/4 of it", "3/4", "last_number", id="a plain fraction is one number"),
        pytest.param("about 1e5", "1e5", "last_number", id="a scientific number is one number"),
        pytest.param("about .5", ".5", "last_number", id="a number may begin with its point"),
        pytest.param("It is 4.<|im_end_7|>", "4", "last_number", id="special tokens are not visible text"),
        pytest.param("<extra_id_7> [unused7] <SPECIAL_7> <｜tool▁7｜>", None, "none", id="whatever their spelling"),
        pytest.param("No idea.", None, "none", id="no number, no candidate"),
        pytest.param("", None, "none", id="nothing at all"),
    ],
)
def test_the_candidate_is_found_where_the_contract_says(response, candidate, how):
    extraction = extract(response)
    assert (extraction.candidate, extraction.how) == (candidate, how)


@pytest.mark.parametrize("response", [r"so \boxed{ 12 } is it", "it is 12 then", r"\boxed{1} \boxed{\sqrt{2}}"])
def test_the_span_points_at_the_candidate(response):
    extraction = extract(response)
    assert response[slice(*extraction.span)] == extraction.candidate


@pytest.mark.parametrize(
    ("response", "format_valid"),
    [(r"\boxed{4}", True), ("4", False), (r"\boxed{4", False), (r"\boxed{3} \boxed 4", False), ("none", False)],
)
def test_the_format_is_valid_only_with_a_complete_last_box(response, format_valid):
    assert extract(response).format_valid is format_valid
