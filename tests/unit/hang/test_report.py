"""Golden texts of judgements at two widths; their file names carry the exit code.

`UPDATE_GOLDEN=1 pytest` on this file writes them again: read the difference before committing it.
"""

import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from doctor import cli
from doctor.hang.judge import judge
from doctor.hang.report import page_of
from doctor.hang.report_json import hang_part, hang_report
from doctor.live.evidence import Frame, JobMember, LiveEvidence, Look, PythonThread
from doctor.live.evidence_file import encoded
from doctor.report.html.page import as_html
from doctor.report.markdown.page import as_markdown
from doctor.report.markdown.text import inline
from doctor.report.terminal.cards import print_page
from doctor.text.console import drawn
from tests.support.envelopes import as_data, as_junit, as_prometheus, wrong
from tests.support.golden import compare
from tests.support.hang.reports import NODES, ONE_SLEEPS, judgements, text
from tests.support.hang.trials import trials
from tests.support.hang.written import changed, evidence, looked
from tests.support.html_page import parsed
from tests.support.paths import ROOT
from tests.unit.report.test_html import check_safe
from tests.unit.report.test_markdown import shape

GOLDEN = ROOT / "tests" / "golden" / "hang"
ESCAPE, BIDI = "\x1b[2J\x1b]0;pwned\x07", "\u202e"


@pytest.mark.parametrize("name", judgements())
def test_golden(name: str) -> None:
    made = judgements()[name]
    compare(GOLDEN / f"{name}.{made.exit_code}.80.txt", text(made, 80))
    compare(GOLDEN / f"{name}.{made.exit_code}.200.txt", text(made, 200))


def test_no_golden_file_is_left_over() -> None:
    stems = [f"{name}.{of.exit_code}" for name, of in judgements().items()]
    assert {path.name for path in GOLDEN.iterdir()} == {
        f"{stem}.{w}.txt" for stem in stems for w in (80, 200)
    }


@pytest.mark.parametrize("name", judgements())
@pytest.mark.parametrize("columns", [80, 200])
def test_lines_fit_and_end_without_blanks(name: str, columns: int) -> None:
    for line in text(judgements()[name], columns, verbose=True).splitlines():
        assert line == line.rstrip()
        assert len(line) <= columns or re.search(r"doctor (check|hang) |\bssh\b", line)


def test_no_colour_in_a_log() -> None:
    assert all("\x1b" not in text(each, 80) for each in judgements().values())


def test_verbose_has_a_line_for_each_rank_and_quiet_only_who_is_named() -> None:
    made = judgements()["sleeps"]
    verbose, quiet = text(made, 100, verbose=True), text(made, 100, quiet=True)
    assert len(re.findall(r"^\d +node\d +\d+ +S +", verbose, re.MULTILINE)) == 8
    assert re.search(r"^5 +node3 +4050 +S +3 min 20 s +outside: sleeps, train.py:57$", verbose, re.MULTILINE)
    assert quiet.startswith("HANG  rank 5 on node3 (pid 4050)  sleeps in forward, train.py:57")
    assert "next time" not in quiet
    assert text(judgements()["moves"], 100, quiet=True) == "The job moves.\n"


def test_up_to_16_ranks_each_have_a_row_in_every_output() -> None:
    few = judge(evidence(["waits"] * 15 + ["sleeps"], NODES))
    many = judge(evidence(["waits"] * 16 + ["sleeps"] + ["waits"] * 3, NODES, steps=(9, 9)))
    for verbose in (False, True):
        assert len(re.findall(r"^\d+ +node\d ", text(few, 100, verbose=verbose), re.MULTILINE)) == 16
    assert len(re.findall(r"^\d+ +node\d ", text(many, 100, verbose=True), re.MULTILINE)) == 20
    brief = text(many, 100)
    assert re.search(r"^16 +node4 +9 +3 min 20 s +outside: sleeps, train.py:57$", brief, re.MULTILINE)
    assert re.search(r"^0-15, 17-19 +node\[1-4\] +9 +3 min 20 s +in all_reduce", brief, re.MULTILINE)
    for made, rows in ((few, 16), (many, 20)):
        assert as_markdown(page_of(made)).count(b" S |") >= rows


def test_places_without_end_are_counted() -> None:
    def moved(look: Look) -> Look:
        frame = Frame(name="train", file="/srv/job/train.py", line=look.pid)
        return replace(look, python=(PythonThread(tid=look.pid, name="MainThread", frames=(frame,)),))

    seen = changed(evidence(["waits"] * 40, NODES), lambda member: looked(member, moved))
    assert "24 more" in (shown := text(judge(seen), 100))
    assert "at 24 other places; -v shows all" in shown


def test_ranks_without_end_are_folded() -> None:
    shown = text(judgements()["two-of-512"], 80)
    assert "HANG  ranks 77, 300 on node[10,38]" in shown
    assert "510 ranks (0-76, 78-299, 301-511) in all_reduce" in shown
    every_other = judge(evidence(["waits" if rank % 2 else "sleeps" for rank in range(64)]))
    assert "and 24 more" in text(every_other, 80)


class TestHostileHosts:
    """A host's text draws nothing and stays on its line."""

    @staticmethod
    def poisoned() -> LiveEvidence:
        bad = f"{ESCAPE}{BIDI}\nHANG  rank 0"
        frame = Frame(name=bad, file=f"/srv/{bad}.py", line=57, source=f"sleep() # {bad}")

        def member(each: JobMember) -> JobMember:
            assert each.a is not None
            assert each.b is not None
            looks = [
                replace(
                    look,
                    python=(PythonThread(tid=look.pid, name=bad, frames=(frame,)),),
                    threads=tuple(
                        replace(t, waits="request_wait_answer" + bad if n == 0 else t.waits)
                        for n, t in enumerate(look.threads)
                    ),
                    files=(bad,),
                    unread=(bad,),
                )
                for look in (each.a, each.b)
            ]
            said = {"launcher": bad, "command": bad, "user": bad}
            if each.rank == 1:
                return replace(each, a=looks[0], b=looks[1], **said)
            return replace(each, **said)

        seen = evidence(["waits", "sleeps", "waits"])
        hosts = tuple(
            replace(host, members=tuple(map(member, host.members)), unread=(bad,)) for host in seen.hosts
        )
        return replace(seen, hosts=hosts, unreached={"node9": bad})

    @pytest.mark.parametrize("verbose", [False, True])
    def test_in_a_terminal(self, verbose: bool) -> None:
        made = judge(self.poisoned())
        shown = drawn(
            lambda console: print_page(page_of(made, apart=verbose), console, verbose=verbose),
            200,
            colour=False,
        )
        assert made.exit_code == 1
        assert not set(shown) & {"\x1b", "\x07", BIDI}
        assert shown.count("\nHANG  ") == 1

    def test_on_a_page_and_in_markdown(self) -> None:
        made = page_of(judge(self.poisoned()))
        check_safe(parsed(as_html(made)))
        text = as_markdown(made).decode()
        shape(text)
        assert not set(text) & {"\x1b", "\x07", BIDI}

    def test_in_json(self) -> None:
        made = as_data(self.poisoned())
        assert made["findings"][0]["rank"] == 1
        assert wrong(made) == []

    def test_in_junit_and_prometheus(self) -> None:
        assert b"HANG  rank 1 on node1" in as_junit(self.poisoned())
        for made in (as_junit(self.poisoned()), as_prometheus(self.poisoned())):
            assert not set(made.decode()) & {"\x1b", "\x07", BIDI}


def test_a_page_and_markdown_name_whom_the_terminal_names() -> None:
    for made in judgements().values():
        page = page_of(made)
        html, marks = parsed(as_html(page)), as_markdown(page).decode()
        shape(marks)
        for card in (card for one in (page, *page.each) for card in one.cards if card.who):
            assert card.who in html.one("header").text
            assert inline(card.who) in marks
        assert made.sentence.rstrip(".") in html.one("header").text


def test_the_rank_is_the_title_of_the_page_and_its_stack_is_there() -> None:
    page = parsed(as_html(page_of(judgements()["sleeps"])))
    assert page.one("h1").text == "Hangs rank 5 on node3 (pid 4050): sleeps in forward, train.py:57"
    card = page.one("article")
    assert "sleeps in forward, train.py:57; since 3 min 20 s" in card.text
    assert "Layer.forward: time.sleep(100000)" in card.one("pre").text
    assert len(page.one("table").all("tr")) == 1 + 8


def test_each_format_is_written_where_it_was_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen, page = tmp_path / "hang.json", tmp_path / "hang.html"
    seen.write_bytes(encoded(trials()[0].evidence))
    asked = ["--html", str(page), "--markdown", "-", "--json", str(tmp_path / "told.json")]
    code = cli.run(["hang", "--replay", str(seen), "--limit", "1", *asked])
    said = capsys.readouterr()
    told = json.loads((tmp_path / "told.json").read_text())
    assert (code, told["exit_code"]) == (1, 1)
    assert said.out.startswith("## cluster-doctor: ")
    assert "HANG  " in said.err
    assert parsed(page.read_bytes()).one("h1").text.startswith("Hangs ")


def test_of_several_jobs_each_has_its_part_of_the_page() -> None:
    page = page_of(judgements()["several"])
    first, second = (part.text for part in parsed(as_html(page)).all("section"))
    assert "port 29500" in first
    assert "HANG" in first
    assert "port 29600" in second
    assert "The job moves." in second
    assert as_markdown(page).count(b"\n### Job ") == 2


def test_json_says_it_all() -> None:
    made = hang_part(judgements()["sub-groups"])
    assert (made.state, made.confidence, made.limit_seconds) == ("hang", "strong", 1.0)
    assert [(each.ranks, each.place) for each in made.waiting] == [
        ((2, 3), "train.py:183"),
        ((0,), "train.py:176"),
    ]
    assert [(each.rank, each.waits_for) for each in made.chain] == [(2, 0), (0, 1)]
    assert [(each.rank, each.in_collective, each.does) for each in made.ranks] == [
        (0, True, None),
        (1, False, "sleeps"),
        (2, True, None),
        (3, True, None),
    ]
    assert made.job is not None
    assert (made.job.ranks, made.job.missing, made.job.hosts) == (4, (), ("node1",))


def test_a_culprit_is_a_finding() -> None:
    made = as_data(evidence(ONE_SLEEPS, NODES))
    assert (made["schema"], made["run"]["command"], made["tool"]["name"]) == (2, "hang", "cluster-doctor")
    assert (made["verdict"], made["exit_code"], made["hang"]["state"]) == ("faulty", 1, "hang")
    (found,) = made["findings"]
    assert (found["check"], found["status"], found["cause"]) == (None, "fail", "sleeps")
    assert (found["rank"], found["host"], found["pid"], found["hosts"]) == (5, "node3", 4050, ["node3"])
    assert found["evidence"][0] == {
        "source": "/srv/job/train.py:57",
        "text": "Layer.forward: time.sleep(100000)",
        "host": "node3",
    }
    assert {host["name"]: host["status"] for host in made["hosts"]} == {
        "node1": "unexamined",
        "node2": "unexamined",
        "node3": "faulty",
        "node4": "unexamined",
    }
    assert (made["summary"]["fail"], made["summary"]["faulty"], made["summary"]["healthy"]) == (1, 1, 0)


def test_of_a_job_that_moves_all_hosts_are_well() -> None:
    made = as_data(evidence(ONE_SLEEPS, NODES, silent=0.1))
    assert (made["verdict"], made["hang"]["state"], made["findings"]) == ("healthy", "moves", [])
    assert made["summary"]["healthy"] == made["summary"]["pass"] == made["summary"]["hosts"] == 4


def test_json_accuses_whom_the_exit_code_accuses() -> None:
    for trial in trials():
        found = judge(trial.evidence, limit=1.0)
        made = hang_report(found, trial.evidence)
        status = {each.status.value for each in made.findings}
        assert ("fail" in status) == (made.exit_code == 1) == bool(found.culprits)
        assert {(each.rank, each.pid) for each in made.findings} == {(e.rank, e.pid) for e in found.named}
