"""`doctor facts` on a lab of NPU servers: their facts, and the one server that differs from the others."""

import csv
import io

from tests.lab.npus import Rack
from tests.support.npu_faults import ALL


def rows(rack: Rack, code: int = 0) -> dict[str, dict[str, str]]:
    """The rows by host; asserts that nothing was changed on any host."""
    done = rack.lab.doctor("facts", ALL, "--csv", "-")
    assert done.returncode == code, done.stderr
    assert not rack.setters
    return {row["host"]: row for row in csv.DictReader(io.StringIO(done.stdout))}


def test_healthy_servers_are_alike(rack: Rack) -> None:
    found = rows(rack)
    assert list(found) == ["node1", "node2", "node3"]
    for each in rack:
        row = found[each.host.name]
        assert (row["devices"], row["devices_healthy"], row["device_links_up"]) == ("8", "8", "8")
        assert (row["device_addresses_set"], row["data_address"]) == ("8", each.host.address)
        assert (row["odd"], row["reason"]) == ("", "")


def test_a_server_with_a_link_that_is_down_is_the_odd_one(rack: Rack) -> None:
    rack["node2"][3].link_up = False
    found = rows(rack)
    assert {host for host, row in found.items() if row["odd"]} == {"node2"}
    assert found["node2"]["odd"] == "device_links_up"
    shown = rack.lab.doctor("facts", ALL)
    assert "! 7 of 8" in shown.stdout
    assert shown.stdout.rstrip().endswith("! Unlike the others: node2 (device links up).")
