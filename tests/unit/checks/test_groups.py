"""Limits of the login's control groups: which decide, and what is sound."""

import pytest

from doctor.api import Capture, Expect
from doctor.facts.groups import GroupLimit, group_limits
from doctor.facts.software import ENVIRONMENT, Environment
from doctor.judge.registry import find_checks
from tests.support.cases import cases

(CHECK,) = (check for check in find_checks().checks if check.id == "group-limited")
USER = "/user.slice/user-1000.slice"


@cases
def test_what_the_files_say(said: str, limits: list[tuple[str, str, str, float]]) -> None:
    assert group_limits(said) == tuple(GroupLimit(*each) for each in limits)
    assert ENVIRONMENT.parse(Capture("environment", 0, f"{said}\nTZ=UTC\n")).groups == group_limits(said)


@cases
def test_what_is_left_to_eight_ranks(limits: list[tuple[str, str, float]], expected: list[str]) -> None:
    groups = tuple(GroupLimit(kind, file, USER, room) for kind, file, room in limits)
    told = list(CHECK.run(Environment({}, groups=groups), 8, Expect()))
    assert [f"{each.severity.value if each.severity else 'warn'}: {each.actual}" for each in told] == [
        f"{each} of {USER}" for each in expected
    ]
    for each in told:
        assert each.commands[0].startswith("sudo systemctl set-property user-1000.slice ")


def test_the_tightest_level_decides_and_the_root_s_memory_is_another_check_s() -> None:
    wide, tight = GroupLimit("pids", "pids.max", "/", 5000.0), GroupLimit("pids", "pids.max", "/a", 500.0)
    root = GroupLimit("memory", "memory.max", "/", 1.0)
    (told,) = CHECK.run(Environment({}, groups=(wide, tight, root)), 8, Expect())
    assert told.subject == "pids.max of /a"
    assert told.commands == ("# Raise pids.max of /a, or that of its container.",)


def test_without_limits_it_does_not_apply() -> None:
    with pytest.raises(Exception, match="no control group"):
        list(CHECK.run(Environment({}), 8, Expect()))
