"""The line of progress while one host of several is slow."""

import pytest

from tests.lab import Lab
from tests.support.screen import in_terminal


@pytest.mark.parametrize("columns", [pytest.param(40, marks=pytest.mark.long), 100])
def test_a_slow_host_is_waited_for_by_name(lab: Lab, columns: int) -> None:
    lab["node3"].write("/run/hold", "")
    lab["node3"].program("dmesg", "while [ -e /run/hold ]; do sleep 0.05; done")
    lab["node3"].no_tool("timeout")
    argv = lab.enter(lab.doctor_argv("check", "node[1-4]", "--timeout", "30"))
    with in_terminal(argv, columns=columns, env=lab.environment()) as terminal:
        terminal.await_that(lambda t: "3/4 answered" in t.text)
        terminal.await_that(lambda t: "no move for" in t.text)
        assert len(terminal.text.splitlines()) == 1
        assert ("limit 30 s  waiting for node3" in terminal.text) is (columns == 100)
        lab["node3"].ask("rm /run/hold")
        assert terminal.await_end() in (0, 3)
    assert terminal.widest <= columns
    assert terminal.text.startswith("node[1-4]")
    assert "/4 answered" not in terminal.text
