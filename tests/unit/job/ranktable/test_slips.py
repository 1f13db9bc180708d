"""Syntax errors in the JSON of a rank table: each is reported with its place and hides little else."""

from doctor.job.ranktable import Flaw, judge, read_table
from doctor.model import Severity
from tests.support.cases import cases, from_cases


def said(flaws: tuple[Flaw, ...]) -> list[tuple[str, str, str]]:
    """The place, the message and the offending text of each."""
    return [(at(flaw), flaw.message, flaw.actual) for flaw in flaws]


def at(flaw: Flaw) -> str:
    return f"{flaw.spot.line}:{flaw.spot.column}" if flaw.spot else ""


GOOD = from_cases(__file__, "GOOD", str)


@cases
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


@cases
def test_syntax_errors_that_make_the_table_unreadable(
    text: str, place: str, message: str, actual: str | None
) -> None:
    read, flaws = read_table(text)
    assert read is None
    (flaw,) = flaws
    assert (at(flaw), flaw.message, flaw.severity) == (place, message, Severity.FAIL)
    assert flaw.expected
    assert actual is None or flaw.actual == actual
