"""Hosts with emulated NPUs: the answers of their tools, the lock of the tool, and resetting it all."""

import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.lab.npus import NpuHost, Rack
from tests.support.cases import cases, from_cases
from tests.support.faults import injection
from tests.support.limits import slowness
from tests.support.npu_tools import Answer, tool

BUSY = (11, "hccn_tool is busy, please try again.\n", "")


def start(host: NpuHost, *command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(host.host.enter(command), stdout=subprocess.PIPE, text=True)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.005)


# What the tools answer.

GETTERS = ["ip", "link", "netdetect", "gateway", "lldp", "optical", "stat", "link_stat", "tls", "vnic"]
GETTERS += ["speed", "duplex", "mac", "mtu", "fec", "pfc", "process", "bandwidth"]


def test_getters(rack: Rack) -> None:
    npu = rack["node2"][6]
    for query in GETTERS:
        assert tool(npu.host, f"-i 6 -{query} -g") == (0, npu.said(query), "")
    assert "@" not in "".join(npu.said(query) or "" for query in GETTERS)
    assert rack["node2"].calls == tuple(f"-i 6 -{query} -g" for query in GETTERS)
    assert not rack.setters
    assert not rack["node1"].calls


@cases
def test_each_change_shows_in_its_answer(
    rack: Rack, change: dict[str | int, Any], arguments: str, answer: Answer
) -> None:
    host = rack["node1"]
    fine = tool(host, f"-i {arguments}")
    injection(change)(host)
    assert tool(host, f"-i {arguments}") == answer
    rack.reset()
    assert tool(host, f"-i {arguments}") == fine
    assert not rack.setters


def test_only_root_may(rack: Rack) -> None:
    host = rack["node1"]
    denied = (12, "", "permission denied: pls check this cmd run permission.\n")
    assert tool(host, "-i 0 -link -g", user="trainee") == denied
    assert host.calls == ("-i 0 -link -g",)
    assert host.host.ask("cat /etc/hccn.conf", user="trainee").returncode != 0


def test_lines_are_changed_one_by_one(rack: Rack) -> None:
    npu = rack["node1"][3]
    before = npu.said("optical") or ""
    npu.optical["Rx Power0"] = "0.0100 mW"
    npu.counters["roce_new_pkt_rty_num"] = 7
    assert tool(npu.host, "-i 3 -optical -g")[1] == before.replace("1.0189 mW", "0.0100 mW")
    assert "\nroce_new_pkt_rty_num:7\n" in tool(npu.host, "-i 3 -stat -g")[1]
    assert tool(npu.host, "-i 4 -optical -g")[1] == rack["node1"][4].said("optical") != npu.said("optical")
    del npu.optical["Vcc"]
    assert "Vcc  " not in tool(npu.host, "-i 3 -optical -g")[1]


def test_an_expired_certificate_is_reported_on_stderr(rack: Rack) -> None:
    npu = rack["node1"][3]
    npu.certificate(days_left=-2)
    code, stdout, stderr = tool(npu.host, "-i 3 -tls -g")
    assert (code, stderr) == (0, "\t tls expiration status[2](0:normal, 1:near expiration, 2:has expired)\n")
    assert stdout.count("tls expiration status[0]") == 1
    npu.certificate(days_left=20)
    assert "tls expiration status[1]" in tool(npu.host, "-i 3 -tls -g")[1]


# One call at a time.


def test_a_second_caller_is_refused(rack: Rack) -> None:
    host = rack["node1"]
    host.slow(0.5)
    first = start(host, "hccn_tool", "-i", "0", "-link", "-g")
    until(lambda: len(host.calls) == 1)
    time.sleep(0.1)  # it has logged its own call, and takes the lock next
    assert tool(host, "-i 1 -link -g") == BUSY
    assert first.communicate(timeout=10)[0] == "link status: UP\n"
    assert host.refused == ("-i 1 -link -g",)
    assert rack.refused == (("node1", "-i 1 -link -g"),)
    host.remove("delay")
    assert tool(host, "-i 1 -link -g")[0] == 0


def test_another_process_holds_the_tool(rack: Rack) -> None:
    host = rack["node1"]
    host.busy()
    assert tool(host, "-i 1 -link -g") == BUSY
    assert tool(rack["node2"], "-i 1 -link -g")[0] == 0
    host.free()
    assert tool(host, "-i 1 -link -g")[0] == 0
    host.busy(0.4)
    assert tool(host, "-i 1 -link -g") == BUSY
    until(lambda: tool(host, "-i 1 -link -g")[0] == 0)


@cases
def test_a_query_hangs(rack: Rack, query: str, device: int | None, hangs: set[str]) -> None:
    host = rack["node1"]
    host.hang(query, device)
    for call in ("-i 3 -optical -g", "-i 3 -link -g", "-i 4 -optical -g"):
        # Its lock is free again once it has ended.
        code = host.host.ask(f"timeout 0.3 hccn_tool {call}").returncode
        assert (code == 124) == (call in hangs)
    assert not host.refused


def test_a_hanging_tool_blocks_others_and_may_ignore_signals(rack: Rack) -> None:
    host = rack["node1"]
    host.hang("optical", 3, deaf=True)
    before = host.host.snapshot()
    hanging = start(host, "timeout", "0.2", "hccn_tool", "-i", "3", "-optical", "-g")
    until(lambda: bool(host.host.leftovers(before).processes) and tool(host, "-i 0 -link -g") == BUSY)
    with pytest.raises(subprocess.TimeoutExpired):
        hanging.wait(0.6)
    rack.reset()
    hanging.communicate(timeout=10)
    assert hanging.returncode == 137
    assert tool(host, "-i 3 -optical -g")[0] == 0
    assert not host.host.leftovers(before).processes


# The emulated host apart from its tools.


def test_a_rebooted_host_gets_its_emulators_again(rack: Rack) -> None:
    host = rack["node2"]
    host[0].link_up = False
    host.host.do("rm -r /usr/local/Ascend /etc/hccn.conf; touch /tmp/trace")
    rack.lab.reset()
    assert tool(host, "-i 0 -link -g")[0] == 127
    rack.reset()
    assert tool(host, "-i 0 -link -g") == (0, "link status: UP\n", "")
    assert host.host.ask("cat /etc/hccn.conf | wc -l; ls /tmp/trace").stdout == "48\n"


STATE = from_cases(__file__, "STATE", str)


def test_reset_undoes_everything_quickly(rack: Rack) -> None:
    def state() -> dict[str, str]:
        return {host.host.name: host.host.ask(STATE).stdout for host in rack}

    fine = state()
    host = rack["node2"]
    npu = host[3]
    npu.link_up, npu.address, npu.tls = False, "10.20.1.10", True
    npu.optical["Rx Power0"] = "0.0000 mW"
    npu.health("Critical", "80E01801")
    npu.processes(("python", 1, 1))
    npu.fails("stat", "Command execute failed!")
    host.drop(5)
    host.slow(0.01)
    rack.cut(rack["node1"][0])
    tool(host, "-i 6 -ip -s address 10.20.99.1 netmask 255.255.0.0")
    sick = state()
    assert {name for name in fine if sick[name] != fine[name]} == {"node1", "node2"}
    rack.reset()
    assert state() == fine
    began = time.process_time()
    rack.reset()
    assert time.process_time() - began < 0.05 * slowness()
