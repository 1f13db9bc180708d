"""`--sudo` on hosts whose sudo is hostile, broken or refuses: what root alone may read is missing there, with
the reason, and the other hosts are asked as usual.
"""

import json
from typing import Any

import pytest

from tests.lab import Lab
from tests.lab.host import Host

pytestmark = pytest.mark.slow

WAY = ("--user", "trainee", "--sudo")
FLOODS = "exec yes 'sudo: nothing but words'"
LIES = "echo '1 sudo ok'; exec cat"
COUNTS = 'echo "$*" >>/tmp/sudo-calls; exec /usr/bin/sudo "$@"'


def own_sudo(host: Host, does: str) -> None:
    """A program of that name that comes first on the PATH."""
    host.write("/usr/local/bin/sudo", f"#!/bin/sh\n{does}\n", 0o755)


def calls(host: Host) -> list[str]:
    return host.do("cat /tmp/sudo-calls; rm -f /tmp/sudo-calls").splitlines()


def examined(lab: Lab, *words: str) -> tuple[int, dict[str, Any], str]:
    done = lab.doctor(*words, *WAY, "--json", "-")
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


def test_a_sudo_of_any_kind_costs_only_what_root_may_read(lab: Lab) -> None:
    lab["node1"].grant_sudo()
    own_sudo(lab["node1"], COUNTS)
    own_sudo(lab["node2"], FLOODS)
    lab["node3"].write("/etc/sudoers.d/trainee", "Defaults lecture=always\ntrainee ALL=(ALL) ALL\n", 0o440)
    own_sudo(lab["node3"], COUNTS)
    own_sudo(lab["node4"], LIES)
    _, check, said = examined(lab, "check", "node[1-4]")
    undecided = {each["summary"]: each["hosts"] for each in check["findings"]}
    assert undecided["kernel-log: sudo was refused there"] == ["node2", "node3", "node4"], said
    assert not {"node1"} & {host for hosts in undecided.values() for host in hosts}, undecided
    assert (len(calls(lab["node1"])), len(calls(lab["node3"]))) == (1, 1)
    for words in (("hang", "node[1-4]", "--for", "1"), ("logs", "node[1-4]")):
        _, report, said = examined(lab, *words)
        assert report["findings"] == []
        assert "did not answer" not in said, said
        assert "its time ran out" not in said, said
        asked = calls(lab["node1"])
        assert [each.split()[:3] for each in asked] == [["-n", "id", "-u"], ["-n", "sh", "-c"]]
        assert calls(lab["node3"]) == ["-n id -u"], "a refusal is remembered"
