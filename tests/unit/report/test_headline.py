"""The first words of a finding, and the last line of a report, name the guilty party and the fault."""

import re
from dataclasses import replace
from typing import Any

import pytest

from doctor.job.wishes import JobWishes
from doctor.model import Confidence, Finding, Place, SourcedValue, Status, View
from doctor.report.page.fault import fold_faults
from doctor.report.page.headline import last_line
from doctor.report.page.names import culprit, title, word
from doctor.report.start.go import go_line
from doctor.text.language import Language
from doctor.text.nodeset import fold
from doctor.text.speech import speaking
from tests.support.cases import cases, from_cases
from tests.support.each import each
from tests.support.recordings import FILES, heard, recording, report
from tests.support.reports import NAMES, reports, text

HEAD = re.compile(r"^(?:  └ )?(?:FAIL|WARN|HANG|BROKEN)  ", re.MULTILINE)


def finding(check: str = "shm-small", summary: str = "it is broken", **values: Any) -> Finding:
    made = Finding(
        *("f1", check, Status.FAIL, (), "", None, (), View.HOST, Confidence.CERTAIN),
        *(summary, "", "", (), None, None),
    )
    return replace(made, **values)


def at(check: str, *places: tuple[str, int], part: str = "device") -> Finding:
    hosts = tuple(dict.fromkeys(host for host, _ in places))
    where = tuple(
        Place(host, device=number) if part == "device" else Place(host, rank=number)
        for host, number in places
    )
    return finding(check, hosts=hosts, where=where)


@pytest.mark.parametrize(
    ("found", "named"),
    [
        (at("device-link-down", ("node2", 3)), "node2 NPU 3"),
        (at("device-link-down", ("node2", 3), ("node2", 4)), "node2 NPUs 3-4"),
        (at("device-link-down", ("node2", 3), ("node5", 3)), "node[2,5] NPU 3"),
        (at("device-link-down", ("node2", 3), ("node5", 1)), "node2 NPU 3, node5 NPU 1"),
        (at("gpu-xid", ("node1", 0)), "node1 GPU 0"),
        (at("smoke-hang", ("node2", 3), part="rank"), "rank 3 on node2"),
        (at("smoke-hang", ("node1", 1), ("node2", 3), part="rank"), "ranks 1, 3 on node[1-2]"),
        (finding(hosts=("node1", "node2"), where=(Place("node1"), Place("node2"))), "node[1-2]"),
        (finding(subject="plan.yaml:3"), "plan.yaml:3"),
        (finding(where=(Place("node1", peer="node2"),)), "no single host"),
    ],
)
def test_the_culprit_is_named_as_exactly_as_it_is_known(found: Finding, named: str) -> None:
    assert culprit(found) == named


def test_hosts_named_by_addresses_are_called_by_their_names() -> None:
    """As the servers of a rank table are. Hosts that reported no name keep their addresses."""
    link = at("device-link-down", ("198.18.0.3", 3))
    called = {f"198.18.0.{n + 1}": f"node{n}" for n in range(1, 5)}
    assert culprit(link, called) == "node2 (198.18.0.3) NPU 3"
    assert culprit(at("device-link-down", ("198.18.0.9", 3)), called) == "198.18.0.9 NPU 3"
    rack = finding(hosts=tuple(called))
    assert culprit(rack, called) == f"node[1-4] ({fold(called)})"
    assert culprit(at("device-link-down", ("node2", 3)), {}) == "node2 NPU 3"


def test_the_name_that_a_host_told_is_known_to_its_report() -> None:
    names = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "node4"]
    told = {"10.0.0.1": "box1", "10.0.0.3": "no name at all"}
    answers = {
        name: heard(n, names, identity={"/proc/sys/kernel/hostname": told[name]})
        for n, name in enumerate(names, 1)
        if name in told
    }
    made = report(recording(names, heard=answers))
    assert made.called == {"10.0.0.1": "box1"}, "the second one's own name is its address"


def test_names_of_hosts_are_never_broken_by_a_line() -> None:
    """They are meant to be copied, even if the terminal is narrower than they are."""
    sick = reports()["sick-hosts"]
    long = tuple(f"a-host-with-a-long-name-{n}.of.this.rack.example.org" for n in (1, 3))
    found = replace(sick.findings[0], hosts=long, nodeset=fold(long), because=None)
    lines = text(replace(sick, findings=(found,)), 40).splitlines()
    assert any(fold(long) in line for line in lines[lines.index("") :])


HANG = "it never entered tp all_reduce 165 (float32, 131072 bytes) of training step 12, and {} for it"


@cases
def test_the_fault_is_said_in_a_few_words(check: str, summary: str, said: str) -> None:
    rest = "ranks 1-2 wait for it" if check == "smoke-hang" else summary.partition(":")[0]
    assert title(finding(check, summary)) == said.format(rest)


def test_one_rank_waits_and_several_wait() -> None:
    assert title(finding("smoke-hang", HANG.format("rank 1 waits"))).endswith("; rank 1 waits for it")


def test_a_hang_is_called_so() -> None:
    assert word(finding("smoke-hang")) == "HANG"
    assert word(finding("smoke-hang", status=Status.WARN)) == "WARN"
    assert word(finding("shm-small", status=Status.CRASH)) == "BROKEN"


@pytest.mark.parametrize("verbose", [False, True])
@each("name", reports())
def test_no_sentence_begins_with_it(name: str, verbose: bool) -> None:
    shown = text(reports()[name], 400, verbose=verbose)
    assert not re.search(r"(?:^ *|[.?!] |  )Its? ", shown, re.MULTILINE)


LAST = from_cases(__file__, "LAST", dict[str, str])


@pytest.mark.parametrize("name", LAST)
def test_the_last_line_names_every_culprit(name: str) -> None:
    assert last_line(reports()[name]) == LAST[name]


@each("strict", [False, True])
def test_a_warning_is_to_be_looked_at_and_a_fault_to_be_fixed_first(strict: bool) -> None:
    """A go that says "fix first" contradicts itself."""
    few = {"limits": {"/proc/self/limits": FILES["limits"]["/proc/self/limits"].replace("20000", "500")}}
    used = {
        "swap": {"/proc/swaps": "Filename Type Size Used Priority\n/dev/sda3 partition 8388604 2097152 -2"}
    }
    answers = {"node1": heard(1, NAMES, **used), "node2": heard(2, NAMES, **few, **used)}
    made = report(recording(NAMES, heard=answers), strict=strict)
    named = f"2 warnings: {', '.join(made.warned_checks)}"
    assert sorted(made.warned_checks) == ["nofile-low", "swap-active"]
    assert named in go_line(made, NAMES)
    with speaking(Language.ZH):
        assert named.replace("2 warnings: ", "2 个告警：") in go_line(made, NAMES)
    for width in (80, 200):
        shown = " ".join(text(made, width).split())
        assert ("Fix first: " in shown, "Look at: " in shown) == (strict, not strict)
        assert ("Healthy, with 2 warnings: " in shown) is not strict


def test_a_warning_is_not_green() -> None:
    sick = reports()["sick-hosts"]
    warned = tuple(found for found in sick.findings if found.status is Status.WARN)
    made = replace(reports()["healthy"], findings=warned)
    assert last_line(made) == "Healthy, with 1 warning: node3 (memory)."
    assert "\x1b[1;33mHealthy, with" in text(made, 100, colours=True)
    assert "\x1b[1;32mHealthy: " in text(reports()["healthy"], 100, colours=True)


@pytest.mark.parametrize("width", [40, 80, 200])
@each("name", reports())
def test_no_culprit_is_dim(name: str, width: int) -> None:
    """Headlines are bold except for their id, and so is the last line with its names."""
    made = reports()[name]
    bold = "".join(part for codes, part in styled(text(made, width, colours=True)) if "1" in codes)
    dim = "".join(part for codes, part in styled(text(made, width, colours=True)) if "2" in codes)
    for fault in fold_faults([f for f in made.findings if f.status in (Status.FAIL, Status.WARN)]):
        assert word(fault.first) in bold
        assert squeezed(culprit(fault.first) + fault.title) in squeezed(bold)
        assert word(fault.first) not in dim
    assert squeezed(last_line(made)) in squeezed(bold)


def squeezed(shown: str) -> str:
    """The text without blanks, because lines end there."""
    return "".join(shown.split())


def styled(shown: str) -> list[tuple[list[str], str]]:
    """The pieces between escapes, each with the codes that apply to it."""
    codes, found = [], []
    for piece in re.split(r"(\x1b\[[\d;]*m)", shown):
        if piece.startswith("\x1b"):
            codes = [code for code in piece[2:-1].split(";") if code not in ("", "0")]
        else:
            found.append((codes, piece))
    return found


@pytest.mark.parametrize("width", [80, 100, 120])
def test_the_id_stands_at_the_right_edge(width: int) -> None:
    for made in reports().values():
        shown = text(made, width)
        ids = {found.check for found in made.findings if found.status in (Status.FAIL, Status.WARN)}
        edged = {line.split()[-1] for line in shown.splitlines() if len(line) == width}
        assert ids <= edged
        assert len(HEAD.findall(shown)) >= len(ids)


def test_a_go_says_a_number_of_ranks_that_nobody_said() -> None:
    """doctor fills it into the command for {nproc}: Slurm refuses more tasks than the job was given."""
    made = report(recording(NAMES))
    assert "; 2 ranks a host, the default (--ranks-per-host)" in go_line(made, NAMES, fills_nproc=True)
    with speaking(Language.ZH):
        assert "每台主机 2 个 rank，为默认值" in go_line(made, NAMES, fills_nproc=True)
    said = report(recording(NAMES, wishes=JobWishes(ranks_per_host=SourcedValue(2, "--ranks-per-host"))))
    assert "default" not in go_line(made, NAMES) + go_line(said, NAMES, fills_nproc=True)
