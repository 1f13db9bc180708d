"""Lines wrapped by containers and journald give the same results as the lines inside."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from doctor.logs.forms.line import said_of
from doctor.logs.forms.prefix import PrefixLayout
from doctor.logs.forms.times import Clock
from doctor.logs.model import Form
from tests.support.fault_logs import concluded, pasted, written
from tests.unit.logs.known import NOW
from tests.unit.logs.test_attempts import text_of

AT = "2026-11-22T01:05:00.988855923"


def docker(line: str) -> str:
    return json.dumps({"log": f"{line}\n", "stream": "stderr", "time": f"{AT}Z"}, separators=(",", ":"))


def journal(line: str) -> str:
    said = {"__CURSOR": "s=1", "__REALTIME_TIMESTAMP": "1795309500988855", "_HOSTNAME": "node7", "_PID": "88"}
    return json.dumps({**said, "SYSLOG_IDENTIFIER": "train.sh", "MESSAGE": line})


WRAPS: dict[str, Callable[[str], str]] = {
    "docker": docker,
    "cri": lambda line: f"{AT}Z stderr F {line}",
    "cri-zone": lambda line: f"{AT}+08:00 stdout F {line}",
    "journal-json": journal,
    "journal": lambda line: f"Nov 22 01:05:00 node7 train.sh[88]: {line}",
    "journal-iso": lambda line: f"2026-11-22T01:05:00+0000 node7 train.sh[88]: {line}",
}


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
@pytest.mark.parametrize("name", ["failed", "healthy", "ctrlc"])
def test_it_is_judged_as_without(name: str, wrap: Callable[[str], str], tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(text_of(name))
    plain = concluded(path)
    path.write_text("".join(f"{wrap(line)}\n" for line in text_of(name).splitlines()))
    said = concluded(path)
    assert said.outcome is plain.outcome
    assert [(each.symptom, [w.rank for w in each.who]) for each in said.charges[:1]] == [
        (each.symptom, [w.rank for w in each.who]) for each in plain.charges[:1]
    ]
    first = [
        [line.number for charge in each.charges[:1] for line in charge.lines[:1]] for each in (said, plain)
    ]
    assert first[0] == first[1]


def test_journald_tells_the_host(tmp_path: Path) -> None:
    found = written(tmp_path, *map(journal, text_of("failed").splitlines()))
    assert {each.host for each in found.charges[0].who} == {"node7"}


def test_a_line_that_is_cut_stays_as_it_is(tmp_path: Path) -> None:
    pasted(tmp_path, docker("step 1 loss 2") + "\n" + docker("RuntimeError: no")[:30] + "\n{]\n")


@pytest.mark.parametrize("tag", ["sshd", "systemd-logind"])
def test_what_services_complain_of_is_no_complaint_of_the_job(tag: str) -> None:
    said = said_of(f"Nov 21 10:00:01 node1 {tag}[12]: error: refused", PrefixLayout(), Clock(NOW))
    assert said.level == "INFO"


def test_the_kernel_in_the_journal_is_the_kernel() -> None:
    said = said_of(
        "Nov 21 10:00:01 node1 kernel: Out of memory: Killed process 7", PrefixLayout(), Clock(NOW)
    )
    assert (said.form, said.host) == (Form.KERNEL, "node1")
