"""Exams and remedies: a mistake in a file is reported with its line, and values are quoted."""

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctor.errors import InputErrors, UsageError
from doctor.judge.playbook import (
    Exam,
    Playbook,
    Recipe,
    load_exam,
    load_remedies,
    placeholders,
    select,
    widened,
)
from doctor.judge.registry import find_checks
from doctor.model import Remedy, Severity
from tests.support.cases import cases
from tests.support.each import each
from tests.support.recordings import HEALTHY, heard, recording, report

CHECKS = find_checks().checks
REMEDIES = load_remedies()


def mistakes(file: Path, text: str) -> list[str]:
    file.write_text(text)
    with pytest.raises(InputErrors) as caught:
        load_exam(str(file), CHECKS)
    return [str(mistake).removeprefix(f"{file}:") for mistake in caught.value.mistakes]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mine.yaml"


def test_a_custom_exam(file: Path) -> None:
    file.write_text(
        "title: Mine\nchecks: [shm-*, nofile-low]\nskip: [shm-full]\nessential: [shm-small]\n"
        "severity: {nofile-low: fail}\nexpect: {nofile: 100000, torch: '2.10', clock_skew_s: 0.5}\n"
    )
    exam = load_exam(str(file), CHECKS)
    assert exam.severity == {"nofile-low": Severity.FAIL}
    assert exam.expect == {"nofile": 100000, "torch": "2.10", "clock_skew_s": 0.5}
    chosen, left_out = select(CHECKS, exam, (), ())
    reach = {"host-unreachable", "probe-incomplete"}
    assert {check.id for check in chosen} == {"nofile-low", "shm-small"} | reach, "no exam goes without these"
    assert left_out == ()


@cases
def test_mistakes_in_an_exam_are_reported_with_their_line(file: Path, text: str, expected: list[str]) -> None:
    found = mistakes(file, text)
    assert len(found) == len(expected)
    assert all(one.startswith(start) for one, start in zip(found, expected, strict=True)), found


@cases
def test_an_unknown_exam(name: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_exam(name, CHECKS)
    assert caught.value.message == message
    assert caught.value.hint


def test_an_exam_file_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(InputErrors, match=r"no such file|does not exist|cannot"):
        load_exam(str(tmp_path / "none.yaml"), CHECKS)


def test_checks_are_selected_by_pattern() -> None:
    exam = Exam("all", skip=("swap-*",))
    chosen, left_out = select(CHECKS, exam, ["shm-*", "swap-*"], ["shm-full"])
    reach = {"host-unreachable", "probe-incomplete"}
    assert {check.id for check in chosen} == {"shm-small"} | reach, "a dead host is never out of the question"
    assert "shm-full" in left_out
    assert "swap-active" not in left_out, "the exam took it out, not the person"
    with pytest.raises(UsageError, match="did you mean 'shm-small'"):
        select(CHECKS, exam, ["shm-smal"], [])
    for only, skip, mesh in ((["port-unreachable"], [], False), ([], ["*"], True)):
        with pytest.raises(UsageError, match="No check is left"):
            select(CHECKS, exam, only, skip, mesh=mesh)


def test_a_recipe_is_filled_with_values() -> None:
    playbook = Playbook({"x": Recipe("X", ("a {one}", "b {one} {two}", "c", "d {two}", "e 'q {one}'"))})
    assert playbook.fill("y", {}) is None
    assert playbook.fill("x", {"one": "it's"}) == Remedy("x", ("""a 'it'"'"'s'""", "c"))
    assert playbook.fill("x", {"one": ("1", "2"), "two": 3}) == Remedy(
        "x", ("a 1", "a 2", "b 1 3", "b 2 3", "c", "d 3", "e 'q 1'", "e 'q 2'")
    )


def test_many_values_make_one_loop() -> None:
    playbook = Playbook({"x": Recipe("X", ("a {one...} b", "c {one} {two}", "d _{one...}= {two}"))})
    assert playbook.fill("x", {"one": "1"}) == Remedy("x", ("a 1 b",))
    assert playbook.fill("x", {"one": ("1", "2")}) == Remedy("x", ("a 1 b", "a 2 b"))
    remedy = playbook.fill("x", {"one": ("1", "it's", "3"), "two": ("4", "{one...}")})
    each = """1 'it'"'"'s' 3"""
    assert remedy == Remedy(
        "x",
        (
            f'for n in {each}; do a "$n" b; done',
            *(f"c {one} {two}" for one in ("1", """'it'"'"'s'""", "3") for two in ("4", "'{one...}'")),
            f'for n in {each}; do d _"$n"= 4; done',
            f"""for n in {each}; do d _"$n"= '{{one...}}'; done""",
        ),
    )


@each("name", REMEDIES.recipes)
def test_loops_stand_outside_quotes_and_comments(name: str) -> None:
    for command in REMEDIES.recipes[name].commands:
        if "...}" in command:
            assert command.count("...}") == 1
            assert not set("'\"#;") & set(command)


def test_a_fault_of_many_devices_has_a_short_remedy() -> None:
    """Commands that change something are the exception: they are listed for each device."""
    numbers = tuple(str(number) for number in range(16))
    loops = {
        name: remedy.commands
        for name in REMEDIES.recipes
        if "-npu-" in name and name.startswith("look-at")
        if (remedy := REMEDIES.fill(name, {"device": numbers, "card": numbers}))
    }
    assert loops["look-at-npu-mtu"][0] == (
        f'for n in {" ".join(numbers)}; do sudo hccn_tool -i "$n" -mtu -g; done'
    )
    assert max(map(len, loops.values())) <= 3
    remedy = REMEDIES.fill("apply-hccn-conf", {"device": numbers})
    assert remedy is not None
    assert len(remedy.commands) == 16


NASTY = st.text(max_size=30) | st.sampled_from(
    [
        "$(reboot)",
        "`reboot`",
        "a;reboot",
        "a'b",
        'a"b',
        "a\nb",
        "x/e",
        "-rf /",
        "{name}",
        "\\",
        "&& reboot",
        "#",
    ]
)


@pytest.mark.slow
@given(value=NASTY)
def test_any_value_stays_one_word_of_its_command(value: str) -> None:
    """With any value each command has the same words as with a harmless one, except for that value."""
    for name, recipe in REMEDIES.recipes.items():
        for command in recipe.commands:
            lone = Playbook({name: Recipe("", (command,))})
            holes = dict.fromkeys(placeholders(command))
            remedy = lone.fill(name, dict.fromkeys(holes, value))
            harmless = lone.fill(name, dict.fromkeys(holes, "HARMLESS"))
            assert harmless is not None
            for filled in remedy.commands if remedy else ():
                (plain,) = harmless.commands
                words = shlex.split(plain)
                assert shlex.split(filled) == [word.replace("HARMLESS", value) for word in words]


def test_a_value_cannot_end_a_comment() -> None:
    remedies = Playbook({"x": Recipe("", ("# Recreate it with --add-host {name}", "echo {name}    # there"))})
    assert remedies.fill("x", {"name": "a\nreboot\n"}) is None
    assert remedies.fill("x", {"name": "a;b"}) is not None


@pytest.mark.slow
@given(values=st.lists(NASTY, min_size=3, max_size=5))
def test_any_value_stays_inside_its_loop(values: list[str]) -> None:
    for name, recipe in REMEDIES.recipes.items():
        for command in recipe.commands:
            if "...}" not in command:
                continue
            holes = dict.fromkeys(placeholders(command))
            remedy = Playbook({name: Recipe("", (command,))}).fill(name, dict.fromkeys(holes, tuple(values)))
            assert remedy is not None
            (loop,) = remedy.commands
            body = shlex.split(command.replace("{device...}", "$n").replace("{card...}", "$n"))
            words = shlex.split(loop)
            assert words[:3] == ["for", "n", "in"]
            assert words[3 : 3 + len(values)] == [*values[:-1], f"{values[-1]};"]
            assert words[3 + len(values) :] == ["do", *body[:-1], f"{body[-1]};", "done"]


@given(value=NASTY | st.from_regex(r"[\w./&;=-]{1,9}", fullmatch=True))
def test_sed_treats_every_value_as_text(value: str) -> None:
    """A `/` or `&` in the name of a host would end or change the pattern, and sed can run commands."""
    remedy = REMEDIES.fill("own-name-in-hosts", dict.fromkeys(("loopback", "address", "name"), value))
    assert remedy is not None
    if any("sed" in command for command in remedy.commands):
        assert not set(value) & set("/&\\\n ;|'$`*[]()")


def test_commands_that_checks_write_themselves_are_quoted() -> None:
    """Paths, mounts, interfaces and versions come from the hosts, which may be hostile."""
    evil = "/x;$(INJECTED)`INJECTED`"
    spaces = (
        HEALTHY["spaces"].replace("path yes /root", f"path no {evil}").replace(" 1% /\n", f" 1% {evil}\n")
    )
    interface = "eth0;INJECTED"
    hostile = heard(
        1,
        ["node1", "node2"],
        spaces=spaces.replace("83035188", "5"),
        python=f"python 3.10.1 {evil}\npackage torch 2.1.0\npackage torch-npu v;INJECTED\n",
        addresses=f"2: {interface} inet 10.0.0.1/24 scope global\n",
        links={f"/sys/class/net/{interface}/statistics/rx_errors": "999999"},
    )
    found = report(recording(["node1", "node2"], heard={"node1": hostile})).findings
    commands = [command for f in found if f.remedy for command in f.remedy.commands]
    assert sum("INJECTED" in command for command in commands) >= 5
    for command in commands:
        assert "INJECTED" not in shlex.shlex(command, posix=False, punctuation_chars=True)
        assert not any(token.startswith("INJECTED") for token in shlex.shlex(command, punctuation_chars=True))


IDS = ["shm-small", "shm-full", "nvlink-down", "device-link-down", "ib-port-down", "ports-not-reserved"]


@cases
def test_a_part_of_a_name_stands_for_the_checks_that_have_it(glob: str, taken: list[str]) -> None:
    found, notes = widened("--skip", ["ib-*", glob], IDS)
    assert found == ["ib-*", *(taken or [glob])]
    assert notes == ([f"--skip {glob} stands for {', '.join(taken)}"] if taken else [])
