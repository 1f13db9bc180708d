"""The shell loop that calls the tools of devices, run by real shells, with tools that misbehave."""

import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from doctor.api import Ask, Fact, Group, Run
from doctor.facts.ascend import network
from doctor.facts.ascend.hccn_tool import TOOL, SilentDevice, asked, split_known
from doctor.facts.ascend.network import NPU_ADDRESSES, NPU_LINKS, Address
from doctor.facts.ascend.npu_smi_card import NPU_ECC, NPU_SUPER_POD
from doctor.facts.ascend.npus import NPUS
from doctor.facts.ascend.ports import NPU_PORTS
from doctor.facts.device_tools import calling, calls
from tests.support.captures import SAMPLES, printed
from tests.support.cases import cases
from tests.support.probing import HERE, SHELLS, ask

LINK = "-i $n -link -g"
shells = pytest.mark.parametrize("shell", [shell for shell in HERE if shell != "bash"])


def script(fact: Fact[Any]) -> str:
    assert isinstance(fact.command, Run)
    return fact.command.text(Ask("here"))


class Tool:
    """A tool of our own in a folder, together with devices; it logs its calls."""

    def __init__(self, folder: Path, shell: str) -> None:
        self.folder, self.shell = folder, shell
        self.log = folder / "calls"
        (folder / "bin").mkdir()
        for number in (10, 2, 0):
            (folder / f"davinci{number}").touch()
        (folder / "davinci_manager").touch()
        if shell == "busybox":
            for applet in ("timeout", "head", "awk", "sleep", "tr", "cut", "uniq", "cat"):
                (folder / "bin" / applet).symlink_to(str(shutil.which("busybox")))

    def says(self, body: str, name: str = TOOL) -> None:
        path = self.folder / "bin" / name
        path.write_text(f'#!/bin/sh\necho "$*" >>{self.log}\n{body}\n')
        path.chmod(0o755)

    @property
    def env(self) -> dict[str, str]:
        return {"PATH": f"{self.folder}/bin:{os.environ['PATH']}"}

    @property
    def at(self) -> str:
        return f"{self.folder}/davinci"

    def run(self, script: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        command = [str(shutil.which(SHELLS[self.shell][0])), *SHELLS[self.shell][1:-1], "-c", script]
        environment = {**os.environ, **self.env, "P": str(os.getpid()), **(env or {})}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30)

    def links(self, seconds: int = 15, first: str = ":") -> Mapping[int, bool | SilentDevice]:
        return printed(NPU_LINKS, self.run(asked(LINK, first=first, at=self.at, seconds=seconds)).stdout)

    def calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def tool(tmp_path: Path, shell: str) -> Tool:
    return Tool(tmp_path, shell)


@shells
def test_devices_are_asked_one_by_one_in_numeric_order(tool: Tool) -> None:
    tool.says("[ $2 = 2 ] && echo 'link status: DOWN' || echo 'link status: UP'")
    assert tool.links() == {0: True, 2: False, 10: True}
    assert tool.calls() == ["-i 0 -link -g", "-i 2 -link -g", "-i 10 -link -g"]


@shells
def test_what_it_prints_on_stderr_and_its_exit_code(tool: Tool) -> None:
    tool.says("[ $2 = 2 ] && { echo 'Command execute failed!' >&2; exit 137; }; echo 'link status: UP'")
    assert split_known(tool.links()) == (
        {0: True, 10: True},
        "device 2: Command execute failed! (exit code 137)",
    )


@shells
def test_a_tool_that_is_busy_twice_is_called_again(tool: Tool) -> None:
    tool.says(
        f"[ $(grep -c . {tool.log}) -le 2 ] && {{ echo 'hccn_tool is busy, please try again.'; exit 1; }}\n"
        "echo 'link status: UP'"
    )
    assert tool.links() == {0: True, 2: True, 10: True}
    assert len(tool.calls()) == 5


@pytest.mark.parametrize("shell", ["dash"])
def test_a_sleep_that_takes_only_whole_seconds(tool: Tool) -> None:
    tool.says(f'case $1 in *.*) exit 1; esac; exec {shutil.which("sleep")} "$@"', "sleep")
    tool.says("echo 'hccn_tool is busy, please try again.'; exit 1")
    assert split_known(tool.links(seconds=4))[0] == {}
    pauses = tool.calls().count("1")
    assert 2 <= pauses <= 5


@shells
def test_a_tool_that_stays_busy_is_given_up(tool: Tool) -> None:
    tool.says("echo 'hccn_tool is busy, please try again.'; exit 1")
    start = time.monotonic()
    assert split_known(tool.links(seconds=4)) == ({}, "devices 0,2,10: hccn_tool was busy all the time")
    assert time.monotonic() - start < 30
    assert len(tool.calls()) > 1


@shells
def test_a_device_that_hangs_loses_only_its_own_answer(tool: Tool) -> None:
    tool.says("[ $2 = 0 ] && exec sleep 30; echo 'link status: UP'")
    assert split_known(tool.links(first="L=1")) == (
        {2: True, 10: True},
        "device 0: hccn_tool did not answer within 1 s",
    )


@shells
def test_after_two_that_hang_no_more_are_asked(tool: Tool) -> None:
    tool.says("exec sleep 30")
    said = split_known(tool.links(first="L=1"))
    assert said == (
        {},
        "devices 0,2: hccn_tool did not answer within 1 s; "
        "device 10: not asked: hccn_tool had hung twice before",
    )
    assert len(tool.calls()) == 2


@shells
def test_a_call_that_cannot_be_killed_loses_only_its_own_answer(tool: Tool) -> None:
    """Like a call that waits inside the kernel: `timeout` waits with it."""
    real = shutil.which("timeout")
    tool.says("[ $2 = 0 ] && exec sleep 60; echo 'link status: UP'")
    (tool.folder / "bin" / "timeout").unlink(missing_ok=True)
    tool.says(f'case $4 in head) exec {real} "$@"; esac; shift 3; exec "$@"', "timeout")
    start = time.monotonic()
    assert split_known(tool.links(first="L=1")) == (
        {2: True, 10: True},
        "device 0: hccn_tool did not answer within 1 s, and could not be killed",
    )
    assert time.monotonic() - start < 30


@shells
def test_a_call_that_prints_without_end(tool: Tool) -> None:
    tool.says("[ $2 = 2 ] && exec yes; echo 'link status: UP'")
    assert split_known(tool.links()) == ({0: True, 10: True}, "device 2: hccn_tool printed without end")


@shells
def test_when_the_time_is_used_up(tool: Tool) -> None:
    tool.says("sleep 1.2; echo 'link status: UP'")
    known, why = split_known(tool.links(seconds=3))
    assert known.keys() <= {0, 2}
    assert "device 10: not asked: the time for hccn_tool was used up" in why.replace(
        "devices 2,10", "device 10"
    )


@shells
def test_a_tool_that_is_not_installed(tool: Tool) -> None:
    done = tool.run(asked(LINK, at=tool.at))
    assert (done.returncode, done.stdout) == (127, "")


@shells
def test_nothing_is_called_once_the_controller_is_gone(tool: Tool) -> None:
    tool.says("echo 'link status: UP'")
    tool.run(asked(LINK, at=tool.at), {"P": "99999999"})
    assert tool.calls() == []


@shells
def test_only_getters_are_called(tool: Tool) -> None:
    """For every fact; -inet6 only if there is no address."""
    tool.says("echo 'Get ipconf failed, because no ip was preset there!'; exit 3")
    facts = [fact for fact in vars(network).values() if isinstance(fact, Fact) and fact.name != "hccn-conf"]
    for fact in facts:
        text = script(fact).replace("/dev/davinci", tool.at).replace("/proc/bus/pci/devices", "/nowhere")
        found = printed(fact, tool.run(text).stdout)
        assert list(found) == [0, 2, 10]
    assert all(" -g" in f" {call}" and "-s" not in call.split() for call in tool.calls())
    assert len(tool.calls()) == 3 * (len(facts) + 1)


@shells
def test_an_address_of_the_other_family(tool: Tool) -> None:
    six = (SAMPLES / "hccn_tool" / "ip_g_inet6.txt").as_posix()
    none = (SAMPLES / "hccn_tool" / "ip_g_not_preset.stderr.txt").as_posix()
    tool.says(f"case $* in '-i 2 -ip -inet6 -g') cat {six};; *) cat {none} >&2; exit 3; esac")
    found = printed(NPU_ADDRESSES, tool.run(script(NPU_ADDRESSES).replace("/dev/davinci", tool.at)).stdout)
    assert found == {0: None, 2: Address("fd00:0:0:1::8", 64), 10: None}


@shells
def test_other_products_are_not_asked_for_the_ports_of_a_950(tool: Tool) -> None:
    box = (SAMPLES / "hccn_tool" / "dev_info_a5.txt").as_posix()
    tool.says(f"cat {box}")
    bus = tool.folder / "bus"
    text = script(NPU_PORTS).replace("/dev/davinci", tool.at).replace("/proc/bus/pci/devices", str(bus))
    bus.write_text("0100\t19e5d802\t1f\n")
    assert split_known(printed(NPU_PORTS, tool.run(text).stdout))[0] == {}
    assert tool.calls() == []
    bus.write_text("0100\t19e5d806\t1f\n")
    assert len(split_known(printed(NPU_PORTS, tool.run(text).stdout))[0]) == 3
    assert tool.calls() == ["-g -dev_info -i 0", "-g -dev_info -i 2", "-g -dev_info -i 10"]


@shells
def test_what_came_before_the_fact_was_stopped_is_kept(tool: Tool) -> None:
    """A call that still runs at that time does not delay the probe."""
    tool.says("[ $2 = 2 ] && exec sleep 60; echo 'link status: UP'")
    fact: Fact[Any] = replace(
        NPU_LINKS,
        command=Run(asked(LINK, first="L=60", at=tool.at)),
        timeout=2,
        needs_root=False,
        group=Group("NPU", (f"{tool.at}0",), 5),
    )
    start = time.monotonic()
    heard = ask([fact], tool.shell, tool.env)
    assert time.monotonic() - start < 30
    assert heard.missing == {}
    assert split_known(fact.parse(heard.captures["npu-links"])) == (
        {0: True},
        "devices 2,10: not asked: the time for hccn_tool was used up",
    )


SMI = f"""
cd {SAMPLES / "npu-smi"}
case $* in
  info) cat $BOX;;
  'info -m') cat $MAP;;
  'info -t health -i 1 -c 1') exec sleep 30;;
  'info -t health'*) cat t_health_alarm_910A.txt;;
  'info -t ecc -i 1') cat t_ecc_two_chips.txt;;
  'info -t ecc'*) cat t_ecc_910A.txt;;
  *) cat t_spod_info_not_supported.txt;;
esac"""


@shells
@cases
def test_only_unhealthy_devices_are_asked_for_their_errors(
    tool: Tool, box: str, asked_for: list[str], codes: list[int]
) -> None:
    tool.says(SMI, "npu-smi")
    done = tool.run(script(NPUS).replace("info; L=4", "info; L=1"), {"BOX": f"{box}.txt"})
    assert tool.calls() == ["info", *(f"info -t health {words}" for words in asked_for)]
    if codes:
        assert [len(npu.codes) for npu in printed(NPUS, done.stdout)] == codes


@shells
def test_cards_and_chips_are_asked_as_they_are_listed(tool: Tool) -> None:
    tool.says(SMI, "npu-smi")
    done = tool.run(script(NPU_ECC), {"MAP": "m_a3.txt"})
    assert printed(NPU_ECC, done.stdout) == {0: 0, 1: 3}
    assert tool.calls() == ["info -m", "info -t ecc -i 0", "info -t ecc -i 1"]
    assert printed(NPU_SUPER_POD, tool.run(script(NPU_SUPER_POD), {"MAP": "m_a5.txt"}).stdout) == {}
    assert tool.calls()[3:] == ["info -m", "info -t spod-info -i 0 -c 0"], "not asked again"


@shells
def test_npu_smi_is_not_installed(tool: Tool) -> None:
    for fact in (NPUS, NPU_ECC, NPU_SUPER_POD):
        assert tool.run(script(fact)).returncode == 127


@shells
def test_the_outputs_of_two_calls_are_kept_apart(tool: Tool) -> None:
    """A frame holds what was printed since the previous frame."""
    tool.says("printf 'no newline %s' $1")
    done = tool.run(f"{calling(TOOL, '/nowhere', 5)}\nq a 1\nq b 2")
    assert [(call.key, call.text) for call in calls(done.stdout, TOOL)] == [
        ("a", "no newline 1"),
        ("b", "no newline 2"),
    ]
