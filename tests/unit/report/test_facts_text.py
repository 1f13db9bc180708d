"""`doctor facts` on a screen: equal values once, different ones as a table, with the odd one marked."""

import io
from collections.abc import Mapping
from typing import Any

import pytest
from rich.console import Console

from doctor.judge.verdict import Report
from doctor.model import MissingFact
from doctor.report.terminal.facts import print_facts
from tests.support.recordings import FILES, HEALTHY, heard, recording, report
from tests.support.reports import reports
from tests.unit.report.test_hostile import HOSTILE, hostile_report, unsafe

SHM = HEALTHY["spaces"].replace("tmpfs 12342040 0 12342040", "tmpfs {0} 0 {0}")
TORCH = "python 3.11.2 /usr/bin/python3\npackage torch {}\n"


def made(count: int, changed: Mapping[int, Mapping[str, Any]] | None = None) -> Report:
    names = [f"node{n}" for n in range(1, count + 1)]
    answers = {f"node{n}": heard(n, names, **captures) for n, captures in (changed or {}).items()}
    return report(recording(names, heard=answers, mesh=None))


def shown(of: Report, width: int = 80, *, colour: bool = False) -> str:
    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=colour, color_system="standard" if colour else None
    )
    print_facts(of, console)
    return out.getvalue()


def table(text: str) -> list[list[str]]:
    """The rows of the table, whose cells are separated by two blanks or more."""
    lines = text.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("HOST"))
    rows = lines[start : lines.index("", start)]
    return [[cell.strip() for cell in row.split("  ") if cell.strip()] for row in rows]


def ports(somaxconn: int) -> dict[str, Any]:
    return {"ports": {**FILES["ports"], "/proc/sys/net/core/somaxconn": str(somaxconn)}}


def test_64_alike_hosts_are_one_screen() -> None:
    text = shown(made(64))
    assert len(text.splitlines()) < 24
    assert max(map(len, text.splitlines())) <= 80
    assert "node[1-64]  64 hosts reported " in text
    assert "data address 10.0.0.[1-64]" in text
    assert text.endswith("\nAll hosts are alike.\n")
    assert "HOST" not in text


def test_a_table_that_just_fits_is_not_split() -> None:
    backlog = "/proc/sys/net/ipv4/tcp_max_syn_backlog"
    of = made(9, {n: {"ports": ports(1000 + n)["ports"] | {backlog: str(2000 + n)}} for n in range(1, 10)})
    text = shown(of)
    start = text.index("HOST")
    wide = max(map(len, text[start : text.index("\n\n", start)].splitlines()))
    assert shown(of, wide).count("HOST") == 1
    assert len(table(shown(of, wide))) == len(table(text))
    assert table(shown(of, wide - 1)) != table(text)


PACKAGES = "python 3.11.2 /usr/bin/python3\npackage torch 2.7.1\npackage {} {}\n"


def test_packages_in_several_versions_are_not_alike() -> None:
    of = made(4, {n: {"python": PACKAGES.format("peft", f"0.{n // 2}")} for n in (1, 2, 3, 4)})
    text = shown(of)
    assert table(text) == [
        ["HOST", "packages"],
        ["node[2-3]", "peft 0.1"],
        ["node1", "! peft 0.0"],
        ["node4", "! peft 0.2"],
    ]
    assert "alike" not in text


@pytest.mark.parametrize(
    ("answer", "unseen"),
    [
        (MissingFact("python", "its command did not end within 10 s"), "python of node[1-3] could not"),
        ("absent python3\n", "packages of node[1-3] could not be read: no interpreter was found"),
        (TORCH.format("?"), "torch of node[1-3] could not be read: its files hold no version"),
    ],
)
def test_hosts_are_not_called_alike_in_what_was_not_looked_at(answer: Any, unseen: str) -> None:
    text = " ".join(shown(made(3, {n: {"python": answer} for n in (1, 2, 3)}), 200).split())
    assert "All hosts are alike" not in text
    assert "The hosts are alike in what they reported." in text
    assert unseen in text


def test_the_same_packages_everywhere_are_alike() -> None:
    text = shown(made(3, {n: {"python": PACKAGES.format("peft", "0.1")} for n in (1, 2, 3)}))
    assert text.endswith("\nAll hosts are alike.\n")
    assert "peft" not in text


def test_the_odd_one_is_marked_and_named_at_the_end() -> None:
    text = shown(made(8, {5: {**ports(128), "spaces": SHM.format(65536)}}))
    assert table(text) == [
        ["HOST", "somaxconn", "/dev/shm"],
        ["node[1-4,6-8]", "4096", "11.8 GB"],
        ["node5", "! 128", "! 64 MB"],
    ]
    assert text.splitlines()[-1] == "! Unlike the others: node5 (somaxconn, /dev/shm)."
    assert text.count("4096") == 1, "what is in the table is not also among what is alike"
    assert max(map(len, text.splitlines())) <= 80


def test_without_colours_there_is_no_escape_and_with_them_the_odd_one_is_red() -> None:
    odd = made(4, {2: ports(128)})
    assert "\x1b" not in shown(odd)
    assert "\x1b[1;31m! 128\x1b[0m" in shown(odd, colour=True)


def test_hosts_that_differ_without_a_majority_are_shown_and_not_blamed() -> None:
    text = shown(made(2, {2: ports(128)}))
    assert table(text)[1:] == [["node1", "4096"], ["node2", "128"]]
    assert text.endswith("The hosts differ, and none is the odd one out.\n")


@pytest.mark.parametrize(("blocks", "alike"), [(65536, False), (12342040 * 95 // 100, True)])
def test_sizes_of_two_hosts_are_alike_only_within_what_firmware_reserves(blocks: int, alike: bool) -> None:
    """Neither is the odd one of two, and yet a check would name the smaller /dev/shm."""
    text = shown(made(2, {2: {"spaces": SHM.format(blocks)}}))
    assert text.endswith("All hosts are alike.\n") is alike
    assert text.endswith("The hosts differ, and none is the odd one out.\n") is not alike


def test_what_a_host_did_not_tell_is_said() -> None:
    text = shown(made(3, {3: {"memory": MissingFact("memory", "no answer")}}))
    assert table(text)[1:] == [["node[1-2]", "23.5 GB", "23.0 GB"], ["node3", "not reported", "not reported"]]


def test_a_table_that_is_too_wide_is_turned() -> None:
    many = {**ports(128), "spaces": SHM.format(65536), "python": TORCH.format("2.7.1+cu126")}
    many |= {"kernel": {**FILES["kernel"], "/proc/sys/kernel/osrelease": "5.14.0-427.13.1.el9_4.x86_64"}}
    sick = made(8, {5: many})
    assert [row[0] for row in table(shown(sick, 200))] == ["HOST", "node[1-4,6-8]", "node5"]
    turned = table(shown(sick, 60))
    assert turned[0] == ["HOST", "node[1-4,6-8]", "node5"]
    assert turned[1] == ["somaxconn", "4096", "! 128"]
    assert "torch" in [row[0] for row in turned]


def test_more_groups_than_fit_come_in_parts() -> None:
    text = shown(made(12, {n: ports(100 * n) for n in range(1, 13)} | {1: {"spaces": SHM.format(65536)}}), 40)
    assert max(map(len, text.splitlines()[-20:])) <= 40
    for n in range(2, 13):
        assert f"node{n} " in text or f"node{n}\n" in text
        assert str(100 * n) in text


def test_a_host_that_calls_itself_otherwise_is_said() -> None:
    names = {"identity": {"/proc/sys/kernel/hostname": "gpu17"}}
    assert "calls itself gpu17 (of node2)" in shown(made(3, {2: names}))
    assert "calls itself" not in shown(made(3))


@pytest.mark.parametrize("name", ["unreachable", "all-unreachable"])
def test_hosts_that_did_not_answer_come_last_with_the_reason(name: str) -> None:
    text = shown(reports()[name])
    who = {"unreachable": "node4", "all-unreachable": "node[1-4]"}[name]
    assert f"\n! {who} reported nothing: connection refused on port 22\n" in text
    assert "All hosts are alike" not in text


def test_an_answer_that_is_not_whole_is_said() -> None:
    whole = recording(["node1", "node2"])
    cut = heard(2, ["node1", "node2"])
    cut = type(cut)("node2", cut.captures, cut.missing, False, cut.started, cut.ended)
    text = shown(report(recording(["node1", "node2"], heard={"node1": whole.heard["node1"], "node2": cut})))
    assert "\n! node2 did not report everything: " in text


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_hostile_hosts_draw_nothing(width: int) -> None:
    assert unsafe(shown(hostile_report(HOSTILE), width)) == []


def test_one_host_is_not_called_alike() -> None:
    assert "alike" not in shown(made(1))
