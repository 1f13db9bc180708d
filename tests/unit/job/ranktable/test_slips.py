"""Syntax errors in the JSON of a rank table: each is reported with its place and hides little else."""

from __future__ import annotations

import pytest

from doctor.job.ranktable import Flaw, judge, read_table
from doctor.model import Severity


def said(flaws: tuple[Flaw, ...]) -> list[tuple[str, str, str]]:
    """The place, the message and the offending text of each."""
    return [(at(flaw), flaw.message, flaw.actual) for flaw in flaws]


def at(flaw: Flaw) -> str:
    return f"{flaw.spot.line}:{flaw.spot.column}" if flaw.spot else ""


GOOD = """{
  "status": "completed", "version": "1.0", "server_count": "1",
  "server_list": [{"server_id": "a", "device": [
    {"device_id": "0", "device_ip": "10.0.0.1", "rank_id": "0"},
    {"device_id": "1", "device_ip": "10.0.0.2", "rank_id": "1"}
  ]}]
}
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"1"}\n  ]', '"1"},\n  ]', [("5:64", "there is a comma after the last element", "},'")]),
        ('"1"}\n', '"1",}\n', [("5:63", "there is a comma after the last element", ",}'")]),
        ("  ]}]\n", "  ]}],\n", [("6:6", "there is a comma after the last element", "']}],'")]),
        ("{\n", "{ // mine\n", [("1:3", "has comments, which JSON does not have", "'// mine'")]),
        ("{\n", "{ /* a\n b */\n", [("1:3", "has comments, which JSON does not have", "'/* a'")]),
        (
            '"1"}\n',
            '"1"} # two\n',
            [("5:65", "has comments, which JSON does not have", "'# two'")],
        ),
        (
            "{\n",
            "\ufeff{\n",
            [("1:1", "begins with a byte order mark, at which Python's json stops", "'\\ufeff'")],
        ),
        (
            '"rank_id": "1"',
            '"rank_id": "5", "rank_id": "1"',
            [("5:65", "'rank_id' is given twice in one object; the last one counts", '"1"}\'')],
        ),
    ],
)
def test_syntax_errors_that_hide_nothing_leave_the_table_readable(
    old: str, new: str, expected: list[tuple[str, str, str]]
) -> None:
    assert old in GOOD
    read, flaws = read_table(GOOD.replace(old, new, 1))
    assert read is not None
    assert [entry.rank for entry in read.entries] == [0, 1]
    assert judge(read) == ()
    (flaw,), ((place, message, ending),) = flaws, expected
    assert (at(flaw), flaw.message) == (place, message)
    assert flaw.actual.endswith(ending)
    assert flaw.check == "rank-table-invalid"
    assert flaw.severity == (Severity.WARN if "byte order" in message else Severity.FAIL)


def test_all_syntax_errors_are_reported_at_once() -> None:
    text = GOOD.replace('"1"}\n', '"1",}, // last\n').replace("]}]\n", "]},]\n")
    read, flaws = read_table("/* a table */\n" + text + "# end\n")
    assert read is not None
    assert said(flaws) == [
        ("1:1", "has comments, which JSON does not have (lines 1, 6, 9)", "'/* a table */'"),
        (
            "6:63",
            "there is a comma after the last element",
            '\'"device_ip": "10.0.0.2", "rank_id": "1",}, // last\'',
        ),
        (
            "6:65",
            "there is a comma after the last element",
            '\'device_ip": "10.0.0.2", "rank_id": "1",}, // last\'',
        ),
        ("7:5", "there is a comma after the last element", "']},]'"),
    ]


def test_text_inside_quotes_is_not_a_syntax_error() -> None:
    text = GOOD.replace('"server_id": "a"', '"server_id": "a //b #c /*d, ]", "x": "\\",}"')
    read, flaws = read_table(text)
    assert flaws == ()
    assert read is not None
    assert read.server_ids == ("a //b #c /*d, ]",)
    assert judge(read) == ()


@pytest.mark.parametrize(
    ("text", "place", "message", "actual"),
    [
        ("", "1:1", "is empty", "nothing"),
        (" \n\t\n", "1:1", "is empty", "nothing"),
        ("# a\n# b\n", "1:1", "is empty", "nothing"),
        ("node1 slots=8\nnode2 # x\n", "1:1", "is not JSON", "'node1 slots=8'"),
        ("\n<html>", "2:1", "is not JSON", "'<html>'"),
        ("12 34", "1:1", "is not JSON", "'12 34'"),
        ("null", "1:1", "is not a rank table", "'null'"),
        ("[1, 2]", "1:1", "is not a rank table", "a list"),
        ("{'status': 1}", "1:2", "single quotes: JSON allows only double quotes", "'{'status': 1}'"),
        ("{\"a\": 'b'}", "1:7", "single quotes: JSON allows only double quotes", None),
        ('{"a": 1\n "b": 2}', "2:2", "a comma is missing before this", "'\"b\": 2}'"),
        ('[{"a": 1}\n {"b": 2}]', "2:2", "a comma is missing before this", "'{\"b\": 2}]'"),
        ('{"a": [{}\n {}]}', "2:2", "a comma is missing before this", "'{}]}'"),
        ('{status: "completed"}', "1:2", "a key without quotes", None),
        ('{"a": 1, 5: 2}', "1:10", "a key without quotes", None),
        ('{"a": 1,, "b": 2}', "1:9", "a comma too many", None),
        ('{"a": completed}', "1:7", "a value without quotes", None),
        ('{"a": 10.0.0.1}', "1:7", "a value without quotes", None),
        ('{"a": 192.1.*.6}', "1:7", "a value without quotes", None),
        ('{"a": *}', "1:7", "a value without quotes", None),
        ('{"a": 007}', "1:7", "a number begins with 0", None),
        ('{"a": True}', "1:7", "True is Python, not JSON", None),
        ('{"a": NaN}', "1:7", "is not a JSON value: only Python writes it", "'NaN'"),
        (
            '{"a": "NaN", "b": [-Infinity]}',
            "1:20",
            "is not a JSON value: only Python writes it",
            "'-Infinity'",
        ),
        ('{"a": "b\n}', "1:7", "a text is not closed before its line ends", '\'{"a": "b\''),
        ('{"a: "b"}', "1:7", "a quotation mark is missing: a key runs into its value", None),
        ('{"a": "b"c"}', "1:10", "a quotation mark inside a text", None),
        ('{"a": "b\tc"}', "1:9", "a control character inside a text", '\'{"a": "b\\tc"}\''),
        ('{"a": "C:\\x"}', "1:10", "a lone backslash", None),
        ('{"a": “b”}', "1:7", "a typographic quotation mark", None),
        ('{"a": 1，"b": 2}', "1:8", "a full-width comma", None),
        ('{"a"： 1}', "1:5", "a full-width colon", None),
        ('{"a":\u00a01}', "1:6", "an invisible character, not a blank", None),
        ('{"a" 1}', "1:6", "a ':' is missing after a key", None),
        ('{"a", "b"}', "1:5", "a key without a value", None),
        ('{"a": {}, "b": ["c": 1]}', "1:20", "a key and its value are outside of braces", None),
        ('{"a": [1}', "1:9", "closed with '}' what began with another bracket", None),
        ('{"a": }', "1:7", "a value is missing before this bracket", None),
        ('{"a": [, 1]}', "1:8", "a value is missing before this comma", None),
        ('{"a": {"b": [1,', "1:16", "the file ends too early: it was cut off", None),
        ('{"a": "b', "1:7", "the file ends inside the text that begins here: it was cut off", None),
        ('{"a": 1}\n{"a": 2}', "2:1", "a second document begins after the end of the first", "'{\"a\": 2}'"),
        ('{"a": 1}}', "1:9", "a closing bracket too many", None),
        ('{"a": 1} end', "1:10", "something follows after the end", None),
        ('{"a": 1 /* no end }', "1:9", "a comment begins that is never closed", None),
        ('{"a": "é", "b" 2}', "1:16", "a ':' is missing after a key", None),
    ],
)
def test_syntax_errors_that_make_the_table_unreadable(
    text: str, place: str, message: str, actual: str | None
) -> None:
    read, flaws = read_table(text)
    assert read is None
    (flaw,) = flaws
    assert (at(flaw), flaw.message, flaw.severity) == (place, message, Severity.FAIL)
    assert flaw.expected
    assert actual is None or flaw.actual == actual


def test_a_cut_off_table_says_what_would_close_it() -> None:
    _, flaws = read_table(GOOD[: GOOD.index("    {")])
    assert [flaw.expected for flaw in flaws] == ["']}]}' to close it"]
