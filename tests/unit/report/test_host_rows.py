"""The table of hosts: what was found on which host, area by area, in as few rows as possible."""

from dataclasses import replace

import pytest

from doctor.model import HostStatus, Result, Status
from doctor.report.page.host_rows import host_rows
from tests.support.reports import reports, text


def cells(name: str) -> dict[str, tuple[dict[str, str], str]]:
    return {host: (dict(row.cells), row.verdict) for row in host_rows(reports()[name]) for host in row.hosts}


def test_each_host_has_its_faults_in_their_areas() -> None:
    rows = cells("eight-servers")
    well = {"reach": "ok", "memory": "ok", "firewall": "ok", "network": "ok", "software": "ok"}
    assert rows["node3"] == (
        well | {"memory": "1 fault", "network": "1 fault"},
        "FAIL  port-unreachable (+1)",
    )
    assert rows["node2"] == (
        well | {"memory": "1 fault", "software": "1 warning"},
        "FAIL  shm-small (+1)",
    )
    assert rows["node5"] == (well | {"memory": "1 warning"}, "WARN  swap-active")


def test_a_host_out_of_reach_was_not_read() -> None:
    found, verdict = cells("eight-servers")["node8"]
    assert (found.pop("reach"), verdict) == ("1 fault", "FAIL  host-unreachable")
    assert set(found.values()) == {"not read"}


def test_a_sound_launch_is_not_a_training() -> None:
    made = reports()["eight-servers"]
    sound = Result("launch-ranks", tuple(host.name for host in made.hosts), Status.PASS)
    assert "training" not in host_rows(replace(made, results=(*made.results, sound)))[0].cells


def test_equal_hosts_share_a_row() -> None:
    assert [row.hosts for row in host_rows(reports()["eight-servers"])][:2] == [
        ("node3",),
        ("node7",),
    ]
    assert len(host_rows(reports()["sixty-four-servers"])) == 1


def test_what_was_not_read_is_not_ok() -> None:
    assert cells("essential-unknown")["node2"][0]["memory"] == "part read"
    assert {found["software"] for found, _ in cells("no-root").values()} == {"not read"}
    assert {verdict for _, verdict in cells("smoke-not-made").values()} == {"not proved healthy"}
    assert {found["training"] for found, _ in cells("smoke-not-made").values()} == {"not read"}


def test_a_fault_of_nobody_clears_nobody() -> None:
    made = reports()["sick-hosts"]
    (fault,) = (found for found in made.findings if found.check == "port-unreachable")
    lone = replace(fault, hosts=(), nodeset="")
    rows = host_rows(replace(made, findings=(lone,)))
    assert {row.cells["network"] for row in rows} == {"undecided"}


def test_the_verdict_names_device_and_rank() -> None:
    assert cells("smoke-hung")["node3"][1] == "HANG  rank 5 smoke-hang"


def test_no_row_is_ok_where_the_host_is_not_healthy() -> None:
    for made in reports().values():
        healthy = {host.name for host in made.hosts if host.status is HostStatus.HEALTHY}
        assert {h for row in host_rows(made) if row.verdict == "ok" for h in row.hosts} <= healthy


@pytest.mark.parametrize("name", ["eight-servers", "sixty-four-servers"])
@pytest.mark.parametrize("width", [80, 100, 200])
def test_24_rows_show_who_is_guilty(name: str, width: int) -> None:
    """The prompt takes the last row."""
    lines = text(reports()[name], width).splitlines()
    table = next(number for number, line in enumerate(lines) if line.startswith("HOST"))
    assert len(lines) - table <= 23
    shown = "\n".join(lines[-23:])
    for row in host_rows(reports()[name]):
        assert row.verdict in shown
    counted = name == "sixty-four-servers"
    assert f"hosts are faulty: {'memory (64)' if counted else 'node'}" in shown
    assert f"Fix first: {'shm-small on 64 hosts' if counted else 'node'}" in shown


def test_a_hundred_different_hosts_fit_too() -> None:
    made = reports()["eight-servers"]
    hosts = tuple(replace(made.hosts[0], name=f"n{n}") for n in range(100))
    findings = tuple(
        replace(made.findings[0], id=f"f{n}", check=f"check-{n}", hosts=(f"n{n}",), nodeset=f"n{n}")
        for n in range(100)
    )
    lines = text(replace(made, hosts=hosts, findings=findings, results=()), 80).splitlines()
    table = next(number for number, line in enumerate(lines) if line.startswith("HOST"))
    more = next(number for number, line in enumerate(lines) if "more hosts in" in line)
    assert more - table <= 13
    assert lines[more] == "and 89 more hosts in 89 rows (-v)"


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_the_table_fits(width: int) -> None:
    lines = text(reports()["eight-servers"], width).splitlines()
    table = next(number for number, line in enumerate(lines) if line.startswith("HOST"))
    assert max(map(len, lines[table : lines.index("", table)])) <= width


def test_no_table_for_one_host_or_when_all_are_well() -> None:
    assert "HOST" not in text(reports()["healthy"], 80)
    assert "HOST" not in text(reports()["one-host"], 80)
    assert "HOST" not in text(reports()["eight-servers"], 80, quiet=True)
