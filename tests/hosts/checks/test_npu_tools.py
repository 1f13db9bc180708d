"""hccn_tool and npu-smi in every condition: busy, hung, missing, only for root."""

import threading
import time

from tests.lab.npus import NpuHost
from tests.support.cases import from_cases
from tests.support.faults import Outcome, assert_consistent, assert_healthy, prove
from tests.support.npu_faults import FABRIC, NpuExaminer, NpuFault, npu_examiner, victim

OF_SMI = {"device-unhealthy", "device-busy"}
OF_THE_FILE = {"device-ip-not-applied"}
OF_HCCN = from_cases(__file__, "OF_HCCN", set[str])
OF_ROOT = {"firewall-blocks", "loopback-blocked", "kernel-log", "memory-errors"}


examine = npu_examiner


def undecided_on(outcome: Outcome, host: str) -> dict[str, str]:
    """Check -> the reason why it could not decide on this host."""
    found = outcome.report["findings"]
    return {f["check"]: f["summary"] for f in found if f["status"] == "unknown" and host in f["hosts"]}


def hang_once(host: NpuHost) -> None:
    host.hang("tls", 3)
    host[5].tls = True


HUNG_ONCE = NpuFault(
    "device-tls-mismatch",
    hang_once,
    (5,),
    says=(r"TLS off, as on 22 other devices \| TLS on",),
    args=FABRIC,
    unknown=("device-tls-mismatch",),
)


def test_another_process_uses_the_tool_for_a_while(examine: NpuExaminer) -> None:
    """For two seconds after the first refused call."""

    def free() -> None:
        host.host.await_that(lambda: bool(host.refused), "call")
        time.sleep(2)
        host.free()

    host = victim(examine.rack, "busy")
    host.busy()
    other = threading.Thread(target=free)
    other.start()
    outcome = examine(*FABRIC)
    other.join()
    assert_healthy(outcome)
    assert {name for name, _ in examine.rack.refused} == {host.host.name}


def test_a_query_hangs_on_one_device(examine: NpuExaminer) -> None:
    """Everything else is known about this device, and the same query finds a fault of another one."""
    name = "one query hangs"
    host = victim(examine.rack, name).host.name
    outcome = prove(HUNG_ONCE, name, examine)
    assert not examine.rack.refused
    why = "device 3: hccn_tool did not answer within 4 s"
    assert undecided_on(outcome, host) == {"device-tls-mismatch": why}


def test_tools_that_never_answer(examine: NpuExaminer) -> None:
    """One is busy, one hangs and ignores signals, one is npu-smi: each loses only its own answers."""
    rack = examine.rack
    busy, deaf, smi = (rack[name] for name in rack.lab.names)
    before = {host.host.name: host.host.snapshot() for host in rack}
    busy.busy()
    deaf.hang(deaf=True)
    smi.hang_smi()
    outcome = examine(*FABRIC)
    told = {host.host.name: undecided_on(outcome, host.host.name) for host in rack}
    assert {(found["check"], found["status"], *found["hosts"]) for found in outcome.trouble} == {
        ("device-unhealthy", "fail", "node2"),
        ("device-unhealthy", "fail", "node3"),
    }
    assert {host: found["summary"] for found in outcome.trouble for host in found["hosts"]} == {
        "node2": "its driver does not answer: hccn_tool hangs",
        "node3": "its driver does not answer: npu-smi hangs",
    }
    assert outcome.hosts("healthy") == set()
    assert outcome.hosts("unexamined") == {"node1"}, "its network was not read"
    assert_consistent(outcome)
    assert told["node1"].keys() - {"device-unreachable"} == OF_HCCN - {"device-unreachable"}
    assert told["node2"].keys() - {"device-unreachable"} == OF_HCCN - {"device-unreachable"}
    assert told["node3"].keys() - {"device-unreachable"} == OF_SMI - {"device-unhealthy"}
    assert told["node1"]["device-ip-missing"] == "devices 0-7: hccn_tool was busy all the time"
    assert told["node2"]["device-ip-missing"] == (
        "devices 0-1: hccn_tool did not answer within 4 s; "
        "devices 2-7: not asked: hccn_tool had hung twice before"
    )
    assert told["node3"]["device-busy"] == "npus: npu-smi did not answer within 10 s"
    for each in rack:
        host = each.host
        host.await_that(lambda host=host: not host.leftovers(before[host.name]), "clean end")  # type: ignore[misc]


def test_tools_that_are_not_installed(examine: NpuExaminer) -> None:
    rack = examine.rack
    rack["node1"].without_tool()
    rack["node2"].do("rm /etc/hccn.conf")
    rack["node3"].without_smi()
    outcome = examine(*FABRIC)
    without_smi, without_tool = "npu-smi is not installed there", "its command is not installed there"
    assert [(found["check"], found["hosts"]) for found in outcome.trouble] == [
        ("probe-incomplete", ["node3"])
    ]
    assert without_smi in outcome.trouble[0]["summary"]
    reasons = {host["name"]: host["reason"] for host in outcome.report["hosts"]}
    assert reasons["node1"] == f"the NPU network was not examined ({without_tool})"
    assert reasons["node3"].startswith("probe-incomplete could not be decided")
    assert outcome.hosts("healthy") == {"node2"}
    assert outcome.code == 3
    assert_consistent(outcome)
    assert {name: set(undecided_on(outcome, name)) for name in rack.lab.names} == {
        "node1": OF_HCCN,
        "node2": OF_THE_FILE | {"device-unreachable"},  # no device is left to ping
        "node3": OF_SMI | {"device-unreachable", "probe-incomplete"},  # it may be busy: that is unknown
    }
    told = undecided_on(outcome, "node1") | undecided_on(outcome, "node3")
    del told["probe-incomplete"]
    assert all(why.endswith(": its command is not installed there") for why in told.values())
    assert undecided_on(outcome, "node2") == {
        "device-ip-not-applied": "hccn-conf: /etc/hccn.conf is not there",
        "device-unreachable": "npu-pings: none of its NPUs had another host's to ping",
    }


def test_what_an_ordinary_user_cannot_read_is_unknown(examine: NpuExaminer) -> None:
    outcome = examine(*FABRIC, user="trainee")
    assert set(outcome.unknown) == OF_HCCN | OF_ROOT
    assert not [call for host in examine.rack for call in host.calls if not call.startswith("npu-smi")]
    for name in examine.rack.lab.names:
        assert all("needs root (--sudo uses sudo -n)" in why for why in undecided_on(outcome, name).values())


def test_an_ordinary_user_finds_what_needs_no_root(examine: NpuExaminer) -> None:
    host = victim(examine.rack, "ordinary")
    host[3].health("Alarm", "80E18400")
    outcome = examine(*FABRIC, user="trainee")
    assert {found["check"]: found["hosts"] for found in outcome.trouble} == {
        "device-unhealthy": [host.host.name]
    }
    assert outcome.code == 1


def test_sudo_reads_what_needs_root(examine: NpuExaminer) -> None:
    for host in examine.rack.lab:
        host.grant_sudo()
    assert_healthy(examine("--sudo", user="trainee"))
    assert all(f"-i {device} -ip -g" in host.calls for host in examine.rack for device in range(8))
