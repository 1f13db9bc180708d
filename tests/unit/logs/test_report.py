"""Golden texts of conclusions at two widths; their file names carry the exit code.

`UPDATE_GOLDEN=1 pytest` on this file writes them again: read the difference before committing it.
"""

import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from doctor import cli
from doctor.logs.explanation import Explanation, last_words, told_at
from doctor.logs.model import Conclusion, LogCause, LogFile, LogLine, LogOutcome, Logs, Party
from doctor.logs.reading.stacks import own_frame, traceback_above
from doctor.logs.report import page_of
from doctor.logs.report_json import logs_report
from doctor.model import Confidence
from doctor.report.files.envelope import FindingEntry, ToolName
from doctor.report.files.envelope import as_json as written
from doctor.report.html.page import as_html
from doctor.report.markdown.page import as_markdown
from tests.support.envelopes import as_data, as_json, as_junit, as_prometheus
from tests.support.golden import compare
from tests.support.html_page import parsed
from tests.support.logs.conclusions import NOON, explaineds, oom, text
from tests.support.paths import ROOT

GOLDEN = ROOT / "tests" / "golden" / "logs"
ESCAPE, BIDI = "\x1b[2J\x1b]0;pwned\x07", "\u202e"
JSON = ("oom-proved", "unknown")


@pytest.mark.parametrize("name", explaineds())
def test_golden(name: str) -> None:
    made = explaineds()[name]
    compare(GOLDEN / f"{name}.{made.exit_code}.80.txt", text(made, 80))
    compare(GOLDEN / f"{name}.{made.exit_code}.200.txt", text(made, 200))


@pytest.mark.parametrize("name", JSON)
def test_golden_json(name: str) -> None:
    made = explaineds()[name]
    told = written(msgspec.structs.replace(logs_report(made), tool=ToolName(version="VERSION")))
    compare(GOLDEN / f"{name}.{made.exit_code}.json", told.decode())


def test_no_golden_file_is_left_over() -> None:
    stems = {name: f"{name}.{of.exit_code}" for name, of in explaineds().items()}
    wanted = {f"{stem}.{w}.txt" for stem in stems.values() for w in (80, 200)}
    assert {path.name for path in GOLDEN.iterdir()} == wanted | {f"{stems[name]}.json" for name in JSON}


@pytest.mark.parametrize("name", explaineds())
@pytest.mark.parametrize("columns", [80, 200])
def test_lines_fit_and_end_without_blanks(name: str, columns: int) -> None:
    for line in text(explaineds()[name], columns, verbose=True).splitlines():
        assert line == line.rstrip()
        assert len(line) <= columns


def test_quiet_leaves_who_is_named_and_the_last_line() -> None:
    said = text(explaineds()["oom"], 100, quiet=True).splitlines()
    assert len(said) == 3
    assert said[0].startswith("FAIL  rank 2 on node3 was killed by the kernel")
    assert said[-1] == "Named: rank 2 on node3 was killed by the kernel for lack of memory."
    assert text(explaineds()["clean"], 100, quiet=True) == "Nothing in what was read complains.\n"


def test_what_has_no_time_is_not_said_to_be_last() -> None:
    story = ((NOON, "one"), (NOON + 5, "two"), (None, "three"), (None, "four"))
    said = text(Explanation(replace(oom(), story=story)), 80)
    assert "  time not known  three" in said
    assert re.search("^ +four$", said, re.MULTILINE)
    assert list(told_at(story[2:])) == [("", "three"), ("", "four")]


def test_what_the_others_followed_from_comes_first() -> None:
    story = (
        (NOON, "rank 0 fell"),
        (NOON, "rank 3 fell"),
        (None, "rank 1 burst (2 lines)"),
        (None, "rank 2 fell"),
    )
    charge = LogCause("x-y", "rank 1 burst; ranks 0, 2 lost their connection")
    found = Conclusion(LogOutcome.NAMED, (charge,), story=story)
    lines = text(Explanation(found), 80).partition("What happened when\n")[2].splitlines()
    assert lines[0].split() == ["first", "rank", "1", "burst"]
    assert [line.split()[-2:] for line in lines[1:4]] == [[rank, "fell"] for rank in "032"]
    timed = replace(found, story=((NOON, "rank 0 fell"), (NOON + 1, "rank 1 burst (2 lines)")))
    assert "first" not in text(Explanation(timed), 80)


def test_only_the_place_of_whoever_is_accused_is_to_be_looked_at() -> None:
    frames = ("Traceback (most recent call last):", '  File "/job/train.py", line 25, in main')
    waits = LogLine("a.log", 3, "Timed out waiting", who=Party(rank=0), frames=frames)
    for rank, looks in ((1, False), (0, True)):
        charge = LogCause("x-y", "it did not join", (Party(rank=rank),), lines=(waits,))
        said = text(Explanation(Conclusion(LogOutcome.NAMED, (charge,))), 80)
        assert ("sed -n '20,30p' /job/train.py" in said) is looks


def test_verbose_quotes_every_line() -> None:
    many = tuple(LogLine("a.log", n, f"word {n}") for n in range(1, 10))
    found = Conclusion(LogOutcome.NAMED, (LogCause("x-y", "rank 1 fell", lines=many),))
    assert "a.log:9: word 9" in text(Explanation(found), 100, verbose=True)
    said = text(Explanation(found), 100)
    assert "a.log:9" not in said
    assert "and 6 more lines (-v)" in said


def test_nothing_that_was_read_is_called_healthy() -> None:
    for each in explaineds().values():
        for made in (text(each, 80), as_markdown(page_of(each)).decode(), as_html(page_of(each)).decode()):
            assert "healthy" not in made.partition("<style>")[0].lower()
            assert "healthy" not in made.partition("</style>")[2].lower()


def test_a_host_that_gave_no_log_is_not_clean() -> None:
    assert explaineds()["silent"].exit_code == 3
    assert "node2: connection refused on port 22" in text(explaineds()["silent"], 80)


def test_a_log_draws_nothing() -> None:
    evil = f"fell {ESCAPE}{BIDI}<script>alert(1)</script> @everyone"
    charge = LogCause("x-y", evil, lines=(LogLine(f"a{ESCAPE}", 1, evil),), how=(evil,), causes=(evil,))
    hostile = Explanation(
        replace(oom(), charges=(charge,), story=((NOON, evil), (1e300, evil)), open=(evil,), read=evil),
        Logs(left_out=(evil,)),
    )
    page, marks = as_html(page_of(hostile)).decode(), as_markdown(page_of(hostile)).decode()
    files = (as_json(hostile), as_junit(hostile), as_prometheus(hostile))
    shown = (text(hostile, 80), text(hostile, 80, verbose=True), page, marks)
    for made in (*shown, *(file.decode() for file in files)):
        assert "\x1b" not in made
        assert "\x07" not in made
        assert BIDI not in made
    assert "<script>" not in page
    outside = re.sub(r"`+[^`]*`+", "", marks)
    assert "<script>" not in outside
    assert "@everyone" not in outside


def test_json_has_the_fields_of_every_finding() -> None:
    first, second, _ = as_data(explaineds()["oom-proved"])["findings"]
    assert {*FindingEntry.__struct_fields__} == {*first} - {"logs"}
    assert first["check"] is None
    assert (first["id"], first["cause"], first["hosts"]) == ("f1", "kernel-oom", ["node3"])
    assert (first["status"], first["host"], first["rank"], first["pid"]) == ("fail", "node3", 2, 4711)
    assert first["logs"]["proved"]["on_hosts"] == "proved"
    assert (second["because"], second["status"]) == ("f1", "warn")
    assert second["logs"]["proved"] is None


def test_long_lines_are_wrapped_on_the_page() -> None:
    page = as_html(page_of(explaineds()["oom"])).decode()
    assert '<pre class="quoted"' in page
    assert ".quoted { white-space: pre-wrap" in page


def test_the_page_leads_with_who_is_named_and_needs_nothing_else() -> None:
    page = as_html(page_of(explaineds()["oom-proved"])).decode()
    assert "<h1" in page
    assert page.index("rank 2 on node3 was killed") < page.index("<main>")
    assert "doctor check node3 --only memory-low,kernel-log" in page
    assert "http" not in page.replace("http-equiv", "")


def test_who_is_only_suspected_is_not_named() -> None:
    found = explaineds()["oom"]
    first, *others = found.conclusion.charges
    unsure = replace(first, confidence=Confidence.SUSPECT)
    said = replace(found, conclusion=replace(found.conclusion, charges=(unsure, *others)))
    assert last_words(found).startswith("Named: ")
    assert last_words(said).startswith("Suspected: ")


def test_nobody_is_called_named_if_the_cause_is_about_nobody() -> None:
    found = explaineds()["oom"]
    limit = LogCause("slurm-time-limit", "the job reached its time limit; its last step was 40")
    said = replace(found, conclusion=replace(found.conclusion, charges=(limit,)))
    assert last_words(said) == "Cause: the job reached its time limit."
    assert page_of(said).word == "Cause"
    unsure = replace(limit, confidence=Confidence.SUSPECT)
    said = replace(found, conclusion=replace(found.conclusion, charges=(unsure,)))
    assert last_words(said) == "Possible cause: the job reached its time limit."


def test_other_attempts_stand_in_every_report() -> None:
    found = explaineds()["oom"]
    said = replace(found, conclusion=replace(found.conclusion, beside=("attempt 1 of 2 failed: rank 7",)))
    for made in (as_html(page_of(said)), as_markdown(page_of(said)), as_json(said), text(said, 200).encode()):
        assert b"attempt 1 of 2 failed: rank 7" in made


def test_a_long_name_of_a_file_is_shown_once_and_then_its_end() -> None:
    name, other = "run-of-november/attempt_0/rank0/stderr.log", "run-of-november/attempt_0/rank1/stderr.log"
    lines = (LogLine(name, 3, "fell"), LogLine(name, 9, "ended"), LogLine(other, 4, "fell too"))
    found = Conclusion(LogOutcome.NAMED, (LogCause("x-y", "rank 1 fell", lines=lines),))
    said = text(Explanation(found, Logs((LogFile(name, lines=9), LogFile(other, lines=9)))), 200)
    assert said.count(name) == 1
    assert "rank0/stderr.log:9: ended" in said
    assert f"{other}:4: fell too" in said


def test_the_page_shows_the_traceback_and_where_to_look(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = tmp_path / "told.html"
    job = ROOT / "tests" / "samples" / "logs" / "jobs" / "exception"
    assert cli.run(["explain", str(job), "--html", str(told)]) == 1
    card = parsed(told.read_bytes()).one("article")
    quotes = [each.text for each in card.all("pre")]
    assert quotes[1] == (
        "Traceback (most recent call last):\n"
        '  File "/home/user/job/train.py", line 106, in <module>\n    main()\n'
        '  File "/home/user/job/train.py", line 81, in main\n    FAULTS.get(FAULT, lambda: None)()\n'
        '  File "/home/user/job/train.py", line 56, in read_shard\n'
        '    raise ValueError("shard 0017 has 4091 tokens, 4096 expected")'
    )
    assert quotes[2] == "sed -n '51,61p' /home/user/job/train.py"
    assert "type on node2:" in card.text
    assert f"type on node2:\n        {quotes[2]}\n" in capsys.readouterr().out


def test_a_traceback_is_read_up_to_its_heading() -> None:
    above = [
        "[rank1]:     hidden(x)",
        '[rank1]:   File "/opt/venv/lib/python3.11/site-packages/lib.py", line 7, in hidden',
        '[rank0]:   File "/job/other.py", line 1, in other',
        '[rank1]:   File "/job/my train.py", line 3, in main',
        "[rank1]: Traceback (most recent call last):",
        '[rank1]:   File "/job/before.py", line 1, in before',
    ]
    frames = traceback_above(above, "[rank1]: ")
    assert len(frames) == 4
    assert frames[0].startswith("Traceback")
    assert own_frame(frames) == ("/job/my train.py", 3)
    assert traceback_above(["step 7", *above], "") == ()
    assert traceback_above(above[:1], "[rank1]: ") == ()
    assert own_frame(frames[2:]) is None
