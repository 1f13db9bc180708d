"""The emulated npu-smi: health, processes, memory, cards that drop off, and a tool that hangs."""

from tests.lab.npus import Rack
from tests.support.cases import cases
from tests.support.npu_tools import smi


def test_health_and_what_is_wrong(rack: Rack) -> None:
    host = rack["node2"]
    assert "| 3     910B1               | OK            |" in smi(host, "info")[1]
    host[3].health("Alarm", "80E18400", errors=("node type=HBM",))
    assert "| 3     910B1               | Alarm         |" in smi(host, "info")[1]
    for chip in ("", " -c 0"):
        code, stdout, _ = smi(host, f"info -t health -i 3{chip}")
        assert [line.split(":")[1].strip() for line in stdout.splitlines()] == [
            "Alarm",
            "80E18400",
            "node type=HBM",
        ]
        assert code == 0
    assert "OK" in smi(host, "info -t health -i 4")[1]
    assert "Alarm" not in smi(rack["node1"], "info")[1]


def test_processes_and_memory(rack: Rack) -> None:
    host = rack["node2"]
    host[3].processes(("python", 1234, 30000), ("", 77, 132))
    host[4].memory(50000)
    host[5].ecc(double_bit_error_count=2)
    shown = smi(host, "info")[1]
    table = shown.splitlines()
    assert (
        "| 3       0                 | 1234          | python                   | 30000                   |"
        in table
    )
    assert (
        "| 3       0                 | 77            |                          | 132                     |"
        in table
    )
    assert "33260/ 65536" in shown
    assert "50000/ 65536" in shown
    assert "No running processes found in NPU 4" in shown
    assert "HBM Double Bit Error Count               : 2\n" in smi(host, "info -t ecc -i 5")[1]
    assert "Process id:1234" in smi(host, "info -t proc-mem -i 3")[1]


def test_a_card_drops_off(rack: Rack) -> None:
    host = rack["node2"]
    host.drop(5)
    look = "ls /dev/davinci[0-9]*; grep -c 19e5d802 /proc/bus/pci/devices"
    assert host.host.ask(look).stdout.split() == [*(f"/dev/davinci{n}" for n in range(8) if n != 5), "7"]
    assert "| 5     910B1" not in smi(host, "info")[1]
    code, stdout, _ = smi(host, "info -t board -i 5")
    assert code == 1
    assert stdout.splitlines()[:2] == ["Invalid card id.", "Error parameter of -i"]
    rack.reset()
    host.drop(5, node=True)
    assert len(host.host.ask(look).stdout.split()) == 9


@cases
def test_npu_smi_hangs(rack: Rack, hang: str, answers: tuple[str, ...], hangs: tuple[str, ...]) -> None:
    host = rack["node2"]
    host.hang_smi(hang)
    for arguments in answers:
        assert smi(host, arguments)[0] == 0
    for arguments in hangs:
        assert host.host.ask(f"timeout 0.2 npu-smi {arguments}").returncode == 124


def test_npu_smi_calls_that_change_something_are_recorded(rack: Rack) -> None:
    assert smi(rack["node1"], "set -t reset -i 0 -c 0")[0] == 0
    assert rack.setters == (("node1", "npu-smi set -t reset -i 0 -c 0"),)
    assert smi(rack["node1"], "info -t spod-info -i 0 -c 0")[1] == (
        "This device does not support querying spod-info.\n"
    )
    assert smi(rack["node1"], "-h")[1].startswith("Usage: npu-smi info <watch|proc|")
