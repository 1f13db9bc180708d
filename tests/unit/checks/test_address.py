"""Hosts that report the same data address."""

from __future__ import annotations

from dataclasses import replace

import pytest

from doctor.model import Host
from tests.support.recordings import heard, recording, report

NAMES = ["n1", "n2", "n3"]


@pytest.mark.parametrize(
    ("dialled", "found"),
    [("10.0.0.2", [("n1", "n2")]), ("10.0.0.1", [])],
    ids=["two machines", "two containers of a machine"],
)
def test_two_hosts_share_one_address(dialled: str, found: list[tuple[str, ...]]) -> None:
    """If both are on one machine and share its network, their ranks differ by port."""
    run = recording(NAMES, heard={"n2": replace(heard(2, NAMES), captures=heard(1, NAMES).captures)})
    hosts = (
        Host("n1", "10.0.0.1", data="10.0.0.1"),
        Host("n2", dialled, data="10.0.0.1"),
        Host("n3", "10.0.0.3", data="10.0.0.3"),
    )
    seen = report(replace(run, hosts=hosts))
    assert [each.hosts for each in seen.findings if each.check == "data-address-duplicate"] == found
