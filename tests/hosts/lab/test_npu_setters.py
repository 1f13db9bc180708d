"""Setters of the emulated hccn_tool: recorded, and as effective as the real ones, so that remedies can be
tested.
"""

import pytest

from tests.lab.npus import Rack
from tests.support.cases import cases, from_cases
from tests.support.npu_tools import tool

SHOWN = ("ip", "link", "netdetect", "gateway", "tls", "mtu", "fec")

# The setter, the getter, its answer, and the line in /etc/hccn.conf.
SETTERS = from_cases(__file__, "SETTERS", list[tuple[str, str, str, str | None]])


@pytest.mark.parametrize(("setter", "query", "text", "kept"), SETTERS, ids=[case[0] for case in SETTERS])
def test_setters_change_what_getters_print(
    rack: Rack, setter: str, query: str, text: str, kept: str | None
) -> None:
    host = rack["node1"]
    fine, other = tool(host, f"-i 3 -{query} -g"), tool(host, f"-i 4 -{query} -g")
    assert tool(host, f"-i 3 {setter}") == (0, "Cmd executed successfully!\n", "")
    assert tool(host, f"-i 3 -{query} -g") == (0, text, "")
    assert tool(host, f"-i 4 -{query} -g") == other
    assert (kept or "") in host.conf
    assert rack.setters == (("node1", f"-i 3 {setter}"),)
    rack.reset()
    assert tool(host, f"-i 3 -{query} -g") == fine
    assert (kept or "nothing") not in host.conf
    assert not rack.setters


def test_tls_is_switched(rack: Rack) -> None:
    npu = rack["node1"][3]
    assert npu.tls is False
    assert tool(npu.host, "-i 3 -tls -s enable 1")[0] == 0
    assert npu.tls is True
    assert "tls_enable_3=1\n" in npu.host.conf
    assert rack["node1"][4].tls is False
    npu.tls = False
    assert "tls switch[0]" in tool(npu.host, "-i 3 -tls -g")[1]
    assert "tls_enable_3=0\n" in npu.host.conf


@cases
def test_setters_refuse(rack: Rack, setter: str, code: int, says: str) -> None:
    npu = rack["node1"][3]
    before = [npu.said(query) for query in SHOWN]
    done = tool(npu.host, f"-i 3 {setter}")
    assert (done[0], done[1]) == (code, "")
    assert done[2].startswith(says)
    assert [npu.said(query) for query in SHOWN] == before


@pytest.mark.parametrize("which", ["-i 3", "-a"])
def test_recovery_applies_the_file(rack: Rack, which: str) -> None:
    npu = rack["node1"][3]
    fine = [npu.said(query) for query in ("ip", "gateway", "netdetect")]
    npu.unconfigured()
    assert (npu.address, npu.gateway, npu.detect) == (None, None, None)
    code, stdout, _ = tool(npu.host, f"{which} -cfg recovery")
    recovered = range(8) if which == "-a" else [3]
    said = "".join(f"dev:{device} recovery success\n" for device in recovered)
    assert (code, stdout) == (0, f"{said}Cmd executed successfully!\n")
    assert [npu.said(query) for query in ("ip", "gateway", "netdetect")] == fine


def test_the_file_may_differ_from_the_device(rack: Rack) -> None:
    npu = rack["node1"][3]
    npu.host.configure(3, address="10.20.77.7", gateway=None)
    assert npu.address == "10.20.1.13"
    assert "address_3=10.20.77.7\n" in npu.host.conf
    assert "gateway_3" not in npu.host.conf
    assert tool(npu.host, "-i 3 -cfg recovery")[0] == 0
    assert npu.address == "10.20.77.7"


def test_setters_also_write_the_file(rack: Rack) -> None:
    npu = rack["node1"][3]
    npu.address, npu.netmask, npu.gateway, npu.detect = "10.20.8.8", "255.255.255.0", None, "10.20.8.1"
    kept = {line for line in npu.host.conf.splitlines() if "_3=" in line}
    assert kept >= {"address_3=10.20.8.8", "netmask_3=255.255.255.0", "netdetect_3=10.20.8.1"}
    assert not [line for line in kept if line.startswith("gateway")]
    assert (npu.address, npu.netmask, npu.gateway, npu.detect) == (
        "10.20.8.8",
        "255.255.255.0",
        None,
        "10.20.8.1",
    )
    assert not rack.setters


def test_setters_do_not_fix_a_broken_cable(rack: Rack) -> None:
    host = rack["node1"]
    host[3].link_up = False
    assert tool(host, "-i 3 -link -s up")[0] == 0
    assert not host[3].link_up
    assert tool(host, "-i 3 -link_stat -g")[1].splitlines()[4].endswith("LINK DOWN")
    host[3].link_up = True
    assert tool(host, "-i 3 -link -s down")[0] == 0
    assert not host[3].link_up
    assert tool(host, "-i 3 -cfg recovery")[0] == 0
    assert host[3].link_up
