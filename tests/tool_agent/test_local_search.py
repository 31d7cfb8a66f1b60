"""local_search: words in, documents out, the same ones every time."""

import hashlib
import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veriward.tool_agent.errors import ConfigError, MissingExtraError
from veriward.tool_agent.result import Category, Refused
from veriward.tool_agent.tools import local_search as module
from veriward.tool_agent.tools.documents import PASSAGE, Document, passages
from veriward.tool_agent.tools.local_search import fixed_settings, local_search, local_search_tool, terms, words

ALL = ["note-aurora", "note-orion", "note-solvent", "note-telemetry"]


def ids(found):
    return [record["id"] for record in found]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        pytest.param("telemetry port", ["note-telemetry"], id="words of one note"),
        pytest.param("ORION CHECKPOINT", ["note-orion"], id="case does not count"),
        pytest.param("the", ALL, id="ties go by id"),
        pytest.param("the the the laboratory", ["note-solvent", *ALL[:2], ALL[3]], id="a word counts once"),
        pytest.param("北極光 Aurora 批次大小", ["note-aurora"], id="scripts may be mixed"),
        pytest.param("port-4317", ["note-telemetry"], id="signs part words"),
        pytest.param("port_4317", ["note-telemetry"], id="an underscore is a sign"),
        pytest.param("zebra migration", [], id="no shared word"),
        pytest.param("vapours", [], id="no part of a word"),
        pytest.param("(z+)+$", [], id="a pattern is words"),
        pytest.param(".*", [], id="no word at all"),
        pytest.param("../../etc/passwd", [], id="a path is words"),
        pytest.param("/var/log/run.txt", [], id="words of titles do not count"),
        pytest.param("note-telemetry", ["note-telemetry"], id="an id is words"),
        pytest.param("__import__('os').system('id')", [], id="code is words"),
        pytest.param("' OR 1=1 --", [], id="a database query is words"),
    ],
)
def test_a_query_is_a_bag_of_words(query, found):
    assert ids(local_search(query)) == found


def test_a_record_holds_id_text_and_the_number_of_shared_words():
    (record,) = local_search("What port does telemetry use?")
    assert (record["id"], record["overlap"]) == ("note-telemetry", 2)
    assert record["text"].startswith("The local telemetry service listens on port 4317.")


@pytest.mark.parametrize(
    ("query", "category"),
    [("", "empty"), (" \t\n", "empty"), ("port " * 200_000, "too_long"), ("x" * 513, "too_long")],
)
def test_a_query_that_cannot_be_searched_is_refused(query, category):
    assert local_search(query).category == category


def test_512_characters_are_searched():
    assert ids(local_search("port ".ljust(512, "z"))) == ["note-telemetry"]


def test_half_a_surrogate_pair_is_refused():
    assert local_search("port \ud800").category is Category.INVALID_UNICODE


def test_the_fixed_notes_are_the_published_ones():
    assert fixed_settings()["documents"] == "29ecd06424981debfd731fffb03c099cdd4c44d3450ea507cb971039d5ddb8d9"


def test_the_fixed_notes_are_a_copy_of_the_shared_file(shared_folder):
    content = (shared_folder / "cases" / "local_search_docs.jsonl").read_bytes()
    assert hashlib.sha256(content).hexdigest() == fixed_settings()["documents"]


@given(st.text(max_size=600))
def test_any_text_gives_notes_or_a_refusal(query):
    found = local_search(query)
    assert isinstance(found, Refused) or set(ids(found)) <= set(ALL)


@given(st.lists(st.sampled_from(["the", "Port", "aurora", "x", "48", "糖"]), min_size=1), st.randoms())
def test_the_order_of_words_changes_nothing(query, random):
    other = random.sample(query, len(query))
    assert local_search(" ".join(query)) == local_search(" ".join(other))


# ---- a person's own documents ----------------------------------------------------------------------------------------


@pytest.fixture
def search(tmp_path):
    """Writes documents to a JSONL file and gives the tool over them."""
    pytest.importorskip("bm25s")

    def write(*rows):
        path = tmp_path / "notes.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return local_search_tool(path)

    return write


def test_a_rare_word_weighs_more_than_a_common_one(search):
    tool = search(
        {"id": "a", "text": "pump and valve and pump"},
        {"id": "b", "text": "pump and gasket"},
        {"id": "c", "text": "pump"},
    )
    assert ids(tool.run(query="pump gasket"))[0] == "b"


def test_documents_without_a_shared_word_are_dropped(search):
    tool = search({"id": "a", "text": "one"}, {"id": "b", "text": "two"}, {"id": "c", "text": "!!!"})
    assert ids(tool.run(query="two three")) == ["b"]


def test_equal_documents_are_ordered_by_id(search):
    tool = search(*({"id": name, "text": "the same words"} for name in "cab"))
    assert ids(tool.run(query="words")) == ["a", "b", "c"]


def test_at_most_five_passages_are_given(search):
    assert len(search(*({"id": number, "text": "word"} for number in range(20))).run(query="word")) == 5


def test_a_title_is_shown_and_searched(search):
    (record,) = search({"id": "a", "title": "Pump manual", "text": "Open the valve."}).run(query="manual")
    assert record == {"id": "a", "text": "Pump manual\nOpen the valve.", "overlap": 1}


def test_chinese_is_found_by_pairs_of_characters(search):
    tool = search({"id": "a", "text": "催化剂在高温下失效"}, {"id": "b", "text": "高空作业须知"})
    assert ids(tool.run(query="高温 temperature")) == ["a"]


def test_a_query_of_other_words_finds_nothing(search):
    assert search({"id": "a", "text": "one"}).run(query="two") == []


def test_a_blank_query_is_refused_there_too(search):
    assert search({"id": "a", "text": "one"}).run(query=" ").category is Category.EMPTY


def test_what_happens_to_the_file_later_makes_no_difference(search, tmp_path):
    tool = search({"id": "a", "text": "one"})
    (tmp_path / "notes.jsonl").unlink()
    assert ids(tool.run(query="one")) == ["a"]


def test_other_documents_are_other_settings(search):
    assert search({"id": "a", "text": "one"}).settings != search({"id": "a", "text": "two"}).settings


def test_a_folder_is_searched_by_the_paths_of_its_files(tmp_path):
    pytest.importorskip("bm25s")
    (tmp_path / "sub").mkdir()
    (tmp_path / ".git").mkdir()
    for name, text in {
        "a.md": "# Pump\n\nvalve",
        "sub/b.TXT": "valve",
        "c.py": "valve",
        ".git/d.md": "valve",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8-sig")
    assert ids(local_search_tool(tmp_path).run(query="valve")) == ["sub/b.TXT", "a.md"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b'{"id": "a", "text": "\x00"}', "a binary file, or UTF-16"),
        (b'{"id": "a", "text": "\xff"}', "not UTF-8 at byte 21"),
        (b"id,text\n", "line 1: no JSON"),
        (b"[" * 100_000, "line 1: no JSON"),
        (b'["a"]', "line 1: got list"),
        (b'\n{"text": "x"}', "line 2: id is None"),
        (b'{"id": "a"}', "line 1: text is None"),
        (b'{"id": "a", "text": " "}', "line 1: text is ' '"),
        (b'{"id": "a", "text": "x", "title": 3}', "line 1: title is 3"),
        (rb'{"id": "a", "text": "\ud800"}', "line 1: holds half a surrogate pair"),
        (b'{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}', "line 2: id 'a' stands in line 1 too"),
        (b'{"id": "a", "text": "!"}', "no word in any document"),
    ],
)
def test_a_file_that_cannot_be_searched_is_one_line(content, message, tmp_path):
    pytest.importorskip("bm25s")
    path = tmp_path / "notes.jsonl"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as error:
        local_search_tool(path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_whose_name_is_not_utf_8_is_one_line(tmp_path):
    pytest.importorskip("bm25s")
    try:
        (tmp_path / os.fsdecode(b"\xff.md")).write_text("words")
    except (OSError, UnicodeError):
        pytest.skip("this file system takes only UTF-8")
    with pytest.raises(ConfigError, match=r"the name '\\udcff.md' is not UTF-8; .*: rename it"):
        local_search_tool(tmp_path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.jsonl", "cannot be read: No such file"),
        (".", "no document in it; wanted a folder"),
        ("a" * 300, "cannot be read: File name too long"),
        ("a\0b", "cannot be read: .*null"),
    ],
)
def test_a_path_without_documents_is_one_line(name, message, tmp_path):
    pytest.importorskip("bm25s")
    with pytest.raises(ConfigError, match=message):
        local_search_tool(tmp_path / name)


def test_a_missing_library_is_one_line_with_the_install_command(tmp_path, monkeypatch):
    monkeypatch.setattr(
        module, "need", lambda name, **said: (_ for _ in ()).throw(MissingExtraError(f"{said['extra']}: {name}"))
    )
    with pytest.raises(MissingExtraError, match="agent: bm25s"):
        local_search_tool(tmp_path)


def test_the_ranking_is_the_same_in_every_process(tmp_path):
    pytest.importorskip("bm25s")
    path = tmp_path / "notes.jsonl"
    rows = [{"id": n, "text": " ".join(f"w{n * k % 17}" for k in range(9))} for n in range(60)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code = (
        "import sys; from veriward.tool_agent.tools.local_search import local_search_tool;"
        "t = local_search_tool(sys.argv[1]);"
        "print([[r['id'] for r in t.run(query=f'w{n} w{n * 3 % 17} w5')] for n in range(17)], t.settings)"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code, str(path)],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1


@given(st.text(alphabet=st.sampled_from("ab \n糖"), min_size=1, max_size=6_000))
def test_passages_are_short_and_lose_nothing(text):
    found = [passage.text for passage in passages(Document(id="a", title=None, text=text))]
    assert all(0 < len(piece) <= PASSAGE for piece in found)
    assert "".join("".join(found).split()) == "".join(text.split())


def test_passages_of_a_long_text_are_numbered_and_end_with_paragraphs():
    text = "\n\n".join(f"{number} " + "word " * 80 for number in range(4))
    found = list(passages(Document(id="a", title="T", text=text)))
    assert [passage.id for passage in found] == ["a#1", "a#2", "a#3", "a#4"]
    assert [passage.text[:3] for passage in found] == ["T\n0", "T\n1", "T\n2", "T\n3"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Straße 12b", ["strasse", "12b"]),
        ("a_b", ["a", "b"]),
        ("x²", ["x²"]),
        ("北極光abc", ["北極光abc"]),
        ("", []),
    ],
)
def test_words_are_runs_of_letters_or_digits(text, found):
    assert words(text) == found


@pytest.mark.parametrize(
    ("text", "found"), [("北極光abc", ["北極", "極光", "abc"]), ("糖", ["糖"]), ("v2的版本", ["v2", "的版", "版本"])]
)
def test_terms_part_what_has_no_blanks(text, found):
    assert terms(text) == found
