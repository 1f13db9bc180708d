"""No secret of a host, a log or a user's file leaves in any output, whole or broken over lines."""

import html
import io
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from doctor import cli
from doctor.api import Read
from doctor.cli.defaults import with_defaults
from doctor.exam import collect
from doctor.exam.collect import Collection, Order
from doctor.exam.request import Request
from doctor.exam.way import way_of
from doctor.hang.judge import judge
from doctor.hang.report import page_of
from doctor.job.wishes import JobWishes
from doctor.judge.fact_values import ASKED
from doctor.live.evidence import Frame, JobMember, LibraryText, LiveEvidence
from doctor.live.redaction import redacted
from doctor.model import Answer, AnswerEnd, Host, TableFile, UnreachedHost
from doctor.probe.frames import FILES, THERE
from doctor.recording import encoded
from doctor.report.html.page import as_html
from doctor.report.markdown.page import as_markdown
from doctor.report.out.formats import FORMATS
from doctor.smoke import events, messages
from doctor.targets.inventory import COMMAND_LINE, Targets
from doctor.transport import Script
from doctor.transport.errors import Destination, closed_at_once
from tests.support.envelopes import as_json
from tests.support.hang.reports import text as hang_text
from tests.support.hang.written import evidence
from tests.support.recordings import report
from tests.support.reports import text
from tests.support.secrets import bare, in_a_line, in_places, kinds, marked

MARKED = in_a_line()
LINES = [next(in_places(name, value)) for _, name, value in kinds()] + [bare(row) for row in MARKED]
VALUES = {value for _, _, value in kinds()} | {value for row in MARKED for value in marked(row)}
LONG = sorted(value for value in VALUES if len(value) >= 10 and '"' not in value)
"""Shorter secrets occur in other words, too; JSON writes quotes differently."""


def parts(lines: Sequence[str], size: int) -> list[Sequence[str]]:
    return [lines[at : at + size] for at in range(0, len(lines), size)]


def left(out: str) -> list[str]:
    """The secrets that are in the text, even if a line ends inside one."""
    whole = re.sub(r"[\s│|]", "", html.unescape(out))
    return [value for value in LONG if re.sub(r"\s", "", value) in whole]


def test_what_is_looked_for_is_found() -> None:
    assert left(json.dumps(LINES, ensure_ascii=False)) == LONG
    assert left("\n".join(line[:30] + "\n    " + line[30:] for line in LINES)) == LONG


def printed(*arguments: str) -> str:
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        cli.run(arguments)
    return out.getvalue()


@pytest.mark.parametrize("columns", ["80", pytest.param("4000", marks=pytest.mark.long)])
def test_quotes_of_logs(columns: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    said = ""
    for number, some in enumerate(parts(LINES, 180)):
        folder = tmp_path / f"logs{number}"
        folder.mkdir()
        for rank, few in enumerate(parts(some, 18)):
            error = f"step 1 loss 2.0\nTraceback (most recent call last):\nRuntimeError: {' ; '.join(few)}\n"
            (folder / f"hf_token={LONG[rank]}.rank{rank}.log").write_text(error)
        files = {kind: tmp_path / f"{number}.{kind}" for kind in ("json", "html", "junit", "markdown")}
        said += printed("explain", str(folder), "-v", *(f"--{kind}={path}" for kind, path in files.items()))
        said += "".join(path.read_text() for path in files.values())
    assert said.count("[hidden]") > len(LINES)
    assert left(said) == []


class Talkative:
    """A transport whose hosts answer every question with secrets; one host refuses the login with them."""

    name = "talkative"
    warnings = tuple(LINES)

    def run(
        self,
        scripts: Mapping[str, Script],
        timeout: float,  # noqa: ARG002
        until: float,  # noqa: ARG002
    ) -> Iterator[Answer | UnreachedHost]:
        for host in scripts:
            if host == "node3":
                to = Destination("node3", "node3", 22, "root")
                yield closed_at_once(to, 3, "\n".join(LINES[:3]).encode()).of(host)
            else:
                end = AnswerEnd.DONE if host == "node1" else AnswerEnd.LOST
                yield Answer(host, b"" if host == "node4" else answer(), LINES[0].encode(), 0, end, 1.0, 2.0)


TOKEN = "0123456789abcdef" * 2


def answer() -> bytes:
    few = parts(LINES, 12)
    paths = {path for fact in ASKED if isinstance(fact.command, Read) for path in fact.command.paths}
    files = "\n".join(f"{path}:{line}" for path in sorted(paths) if "*" not in path for line in LINES[:9])
    names = [fact.name for fact in ASKED if not isinstance(fact.command, Read)]
    saying = {name: "\n".join(few[number % len(few)]) for number, name in enumerate((*names, THERE))}
    frames = [*saying.items(), (FILES, files)]
    out = b"".join(
        f"\n{TOKEN[:16]} o {name} 0 {len(payload.encode())}\n{payload}\n".encode() for name, payload in frames
    )
    errors = "".join(f"\n{TOKEN[:16]} n {name}\n{saying[name]}\n" for name in names)
    return out + f"\n{TOKEN[:16]} e {len(errors.encode())}\n{errors}\n\n{TOKEN} done\n".encode()


@pytest.fixture(scope="module")
def collected() -> Collection:
    hosts = tuple(Host(f"node{n}", f"10.0.0.{n}", enter=f"docker exec -e {LINES[0]} c") for n in range(1, 5))
    env = {name.upper(): value for _, name, value in kinds() if name}
    wishes = JobWishes(env=env, table=TableFile("/t", "\n".join(LINES), "1"))
    talkative: Any = Talkative()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collect, "new_token", lambda: TOKEN)
        order = Order("check", "host", hosts, wishes, ASKED, mesh="none")
        made = Collection(order, talkative, lambda *_: None)
        made.run()
    return made


def test_what_hosts_said(collected: Collection) -> None:
    recording = collected.recording()
    assert set(recording.heard) == {"node1", "node2"}
    assert all(heard.captures for heard in recording.heard.values())
    assert left(encoded(recording).decode()) == []
    found = report(recording)
    shown = {str(width): text(found, width, verbose=True) for width in (80, 4000)}
    shown |= {form.option: form.write(found).decode() for form in FORMATS}
    assert {way: left(said) for way, said in shown.items() if left(said)} == {}
    quoting = shown.keys() - {"--prometheus", "--healthy-hosts", "--faulty-hosts"}
    assert [way for way in quoting if "[hidden]" not in shown[way]] == []


def hanging() -> LiveEvidence:
    def tells(member: JobMember, few: Sequence[str]) -> JobMember:
        frames = tuple(Frame(name="main", file=line, line=7, source=line) for line in few)
        looks = {
            which: look
            and replace(
                look,
                files=tuple(few),
                unread=tuple(few[:16]),
                python=tuple(replace(thread, frames=(*frames, *thread.frames)) for thread in look.python),
            )
            for which, look in (("a", member.a), ("b", member.b))
        }
        return replace(member, command=" ; ".join(few), **looks)

    seen = evidence(("waits", "sleeps", "waits", "waits"), ("node1", "node2"))
    library = LibraryText(
        source="nccl", which="a", pid=1, name=LINES[0], text="\n".join(LINES), problem=LINES[1]
    )
    return replace(
        seen,
        hosts=tuple(
            redacted(
                replace(
                    host,
                    members=tuple(
                        tells(member, LINES[40 * (2 * number + place) :][:40])
                        for place, member in enumerate(host.members)
                    ),
                    unread=tuple(LINES[:64]),
                    libraries=(library,),
                )
            )
            for number, host in enumerate(seen.hosts)
        ),
    )


def test_a_job_that_hangs() -> None:
    seen = hanging()
    made = judge(seen)
    ways = [msgspec.json.encode(seen).decode(), as_json(seen).decode()]
    ways += [hang_text(made, width, verbose=True) for width in (80, 4000)]
    ways += [write(page_of(made)).decode() for write in (as_html, as_markdown)]
    assert [left(said) for said in ways] == [[]] * len(ways)


def test_what_a_smoke_run_was_told() -> None:
    said = "\n".join(LINES)
    told = (
        messages.AgentTrouble(said),
        messages.RankExit(0, words=said),
        messages.StackTexts({"0": said}),
        messages.AgentLine(0, events.Error("RuntimeError", said, said)),
        messages.AgentLine(0, events.BackendEvidence(said)),
    )
    assert left("".join(msgspec.json.encode(messages.redacted(each)).decode() for each in told)) == []


def test_errors_and_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mistakes in a file are quoted without its secrets, and so are the defaults in use."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text(f"hosts:\n  node1:\n    ansible_password: {LONG[0]}\n    port: hf_token={LONG[1]}\n")
    said = printed("check", "--inventory", str(inventory), "--deadline", "1")
    said += printed("check", "--replay", str(tmp_path / f"password={LONG[2]}"))
    said += printed("explain", str(tmp_path / f"password={LONG[3]}.log"))
    (tmp_path / "cluster-doctor").mkdir()
    config = tmp_path / "cluster-doctor" / "config.yaml"
    config.write_text(f"ssh-config: password={LONG[4]}\nuzer: password={LONG[5]}\n")
    said += printed("check", "node1", "--deadline", "1")
    config.write_text(f"ssh-config: /password={LONG[6]}\nidentity: [/hf_token={LONG[7]}]\n")
    asked = with_defaults(Request("check"), os.environ)
    said += repr(way_of(asked, Targets((), COMMAND_LINE, False, JobWishes()), "ssh")) + asked.defaults
    assert "[hidden]" in said
    assert left(said) == []
