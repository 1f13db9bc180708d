"""Nothing is changed, not even the entry that hccn_tool itself adds when it reads the TLS switch."""

import pytest

from tests.lab import Lab
from tests.lab.npus import Rack
from tests.support.faults import Examiner

TLS = ("--only", "device-tls-mismatch")
STRIP = "sed -i /tls_enable/d /etc/hccn.conf"


@pytest.fixture
def examine(rack: Rack, tmp_path_factory: pytest.TempPathFactory) -> Examiner:
    return Examiner(rack.lab, tmp_path_factory.mktemp("reports"))


def confs(lab: Lab) -> list[str]:
    return [host.ask("cat /etc/hccn.conf; stat -c %Y /etc/hccn.conf; mount | sort").stdout for host in lab]


def test_a_getter_that_writes_is_kept_from_changing_the_file(rack: Rack, examine: Examiner) -> None:
    for host in rack.lab:
        host.do(STRIP)
    before = confs(rack.lab)
    outcome = examine(*TLS, hosts="node[1-3]")
    assert confs(rack.lab) == before
    assert not outcome.unknown
    assert not rack.setters
    rack.lab["node1"].do("hccn_tool -i 0 -tls -g")
    assert confs(rack.lab) != before, "the tool does write when nothing keeps it from that"


def test_a_getter_that_could_write_is_not_run_where_it_cannot_be_confined(
    rack: Rack, examine: Examiner
) -> None:
    host = rack.lab["node2"]
    host.do(STRIP)
    host.program("unshare", "exit 1")
    before = confs(rack.lab)
    outcome = examine(*TLS, hosts="node[1-3]")
    assert confs(rack.lab) == before
    assert "would note the answer in its configuration" in outcome.unknown["device-tls-mismatch"]
