"""`doctor check --notify` on real hosts: the news of each change, once, and no word of what is as it was."""

from pathlib import Path

from tests.lab import Lab
from tests.support.faults import HOSTS

CHECKS = "host-unreachable,shm-small,disk-full"


def test_each_change_is_told_once(lab: Lab, tmp_path: Path) -> None:
    said = tmp_path / "said"

    def news(*options: str) -> str:
        said.write_text("")
        command = f'echo "$DOCTOR_SUMMARY" >>{said}; grep -c shm-small >>{said}'
        words = ("--only", CHECKS, "--expect", "shm_mb=100", "--connect-timeout", "3")
        lab.doctor(
            "check", HOSTS, *words, "--report-dir", str(tmp_path / "runs"), "--notify", command, *options
        )
        return said.read_text().partition("\n")[0]

    assert news() == ""
    lab["node2"].shm("64m")
    assert news() == "node2: shm-small"
    assert said.read_text().splitlines()[1] != "0", "the page is on stdin"
    assert news() == ""
    lab["node3"].do(
        "nft add table inet t; nft add chain inet t c '{type filter hook input priority 0; policy drop;}'"
    )
    assert news() == "node3: host-unreachable"
    assert news("--only", "disk-full") == ""
    lab["node2"].shm("256m")
    lab["node3"].do("nft flush ruleset")
    assert news() == "no longer node3: host-unreachable, node2: shm-small"
    assert news() == ""
