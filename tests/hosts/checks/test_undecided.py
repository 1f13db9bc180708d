"""If something that the job needs could not be decided, the host is neither proved healthy nor accused."""

from tests.lab import Lab
from tests.support.faults import Examiner, apply_remedy, assert_consistent, assert_healthy


def test_a_firewall_that_counts_connections(lab: Lab, examine: Examiner) -> None:
    """One connection passes connlimit, but the job's connections may not."""
    many = ("-p", "tcp", "-m", "connlimit", "--connlimit-above", "64", "--connlimit-mask", "0")
    lab["node2"].iptables("-A", "INPUT", *many, "-j", "REJECT")
    lab["node4"].iptables("-A", "INPUT", "-m", "limit", "--limit", "5/min", "-j", "LOG")
    outcome = examine()
    assert_consistent(outcome)
    assert len(outcome.trouble) == 1, outcome.text
    (found,) = outcome.trouble
    assert (found["check"], found["status"], found["hosts"]) == ("firewall-blocks", "warn", ["node2"])
    assert outcome.hosts("unexamined") == {"node2"}
    assert outcome.code == 3
    said = " ".join(outcome.text.split())
    assert "depends on the number of connections" in said
    apply_remedy(lab, found)
    assert_healthy(examine())
