"""The fabric of emulated NPUs: which device reaches which, and which faults separate them."""

import re
import subprocess
from collections.abc import Callable

import pytest

from tests.lab.npus import Rack
from tests.support.npu_tools import smi, tool

SOURCE = ("node1", 3)
TARGET = ("node2", 3)
Change = Callable[[Rack], object]


def ping(rack: Rack, source: tuple[str, int] = SOURCE, target: tuple[str, int] | str = TARGET) -> str:
    """The packet loss from one NPU to another, in per cent."""
    host, device = source
    address = target if isinstance(target, str) else rack[target[0]][target[1]].address
    code, stdout, stderr = tool(rack[host], f"-i {device} -ping -g address {address}")
    loss = re.search(r"received, (\S+)% packet loss\n$", stdout)
    assert loss
    assert (code, stderr) == ((0, "") if loss[1] == "0.00" else (1, "Command execute failed!\n"))
    return loss[1]


def test_what_a_ping_prints(rack: Rack) -> None:
    assert tool(rack["node1"], "-i 0 -ping -g address 10.20.2.10") == (
        0,
        "device 0 PING 10.20.2.10\n"
        "recv seq=0,time=0.034000ms\nrecv seq=1,time=0.035000ms\nrecv seq=2,time=0.036000ms\n"
        "3 packets transmitted, 3 received, 0.00% packet loss\n",
        "",
    )
    assert tool(rack["node1"], "-i 0 -ping -g address 10.10.100.10 pkt 2")[1] == (
        "device 0 PING 10.10.100.10\n"
        "recv time out seq=0\nrecv time out seq=1\n"
        "2 packets transmitted, 0 received, 100.00% packet loss\n"
    )
    assert not rack.setters


def move(at: tuple[str, int], address: str, gateway: str | None) -> Change:
    """Move a device into the segment 10.40.0.0/16, whose switch has 10.40.0.1, with or without a gateway."""

    def change(rack: Rack) -> None:
        moved = rack[at[0]][at[1]]
        moved.address, moved.gateway = address, gateway
        rack.router("10.40.0.1")

    return change


BROKEN: list[tuple[str, Change]] = [
    ("own link", lambda rack: setattr(rack["node1"][3], "link_up", False)),
    ("far link", lambda rack: setattr(rack["node2"][3], "link_up", False)),
    ("own cable cut", lambda rack: rack.cut(rack["node1"][3])),
    ("far cable cut", lambda rack: rack.cut(rack["node2"][3])),
    ("pair cut", lambda rack: rack.cut(rack["node2"][3], rack["node1"][3])),
    ("one way cut", lambda rack: rack.cut(rack["node1"][3], rack["node2"][3], back=False)),
    ("rail cut", lambda rack: rack.cut_rail(3)),
    ("far card gone", lambda rack: rack["node2"].drop(3)),
    ("far host off", lambda rack: rack["node2"].host.power_off()),
    ("own address lost", lambda rack: rack["node1"][3].unconfigured()),
    ("other segment, nobody routed", move(TARGET, "10.40.2.13", None)),
    ("far one has no gateway", move(TARGET, "10.40.2.13", None)),
    ("gateway that is none", move(TARGET, "10.40.2.13", "10.40.0.9")),
    ("own netmask too narrow", lambda rack: setattr(rack["node1"][3], "netmask", "255.255.255.0")),
]


@pytest.mark.parametrize("change", [change for _, change in BROKEN], ids=[name for name, _ in BROKEN])
def test_changes_that_cut_two_devices_off(rack: Rack, change: Change) -> None:
    address = rack["node2"][3].address
    assert address
    assert ping(rack) == "0.00"
    change(rack)
    assert ping(rack, target=rack["node2"][3].address or address) == "100.00"
    if rack["node2"].host.running:
        assert ping(rack, ("node2", 4), ("node3", 4)) == "0.00"
    rack.lab.reset()
    rack.reset()
    assert ping(rack) == "0.00"


WORKING: list[tuple[str, Change, tuple[str, int], tuple[str, int]]] = [
    ("way back of a cut", lambda r: r.cut(r["node1"][3], r["node2"][3], back=False), TARGET, SOURCE),
    ("third one of a cut", lambda r: r.cut(r["node1"][3], r["node2"][3]), SOURCE, ("node3", 3)),
    ("other rail", lambda r: r.cut_rail(2), SOURCE, TARGET),
    ("frozen host", lambda r: r["node2"].host.freeze(), SOURCE, TARGET),
    ("both routed", move(TARGET, "10.40.2.13", "10.40.0.1"), SOURCE, TARGET),
    ("both routed, back", move(TARGET, "10.40.2.13", "10.40.0.1"), TARGET, SOURCE),
    ("itself", lambda r: r.cut(r["node1"][3]), SOURCE, SOURCE),
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "source", "target"), [case[1:] for case in WORKING], ids=[case[0] for case in WORKING]
)
def test_changes_that_leave_two_devices_connected(
    rack: Rack, change: Change, source: tuple[str, int], target: tuple[str, int]
) -> None:
    change(rack)
    assert ping(rack, source, target) == "0.00"


@pytest.mark.parametrize(("holders", "lost"), [(2, "33.33"), (3, "66.67")])
def test_an_address_held_more_than_once(rack: Rack, holders: int, lost: str) -> None:
    address = rack["node2"][3].address
    for device in range(4, 3 + holders):
        rack["node3"][device].address = address
    assert ping(rack) == lost
    rack["node3"][4].link_up = False
    assert ping(rack) != lost


def test_commands_run_on_a_host_take_effect_at_once(rack: Rack) -> None:
    assert ping(rack, target="10.20.77.7") == "100.00"
    assert tool(rack["node2"], "-i 3 -ip -s address 10.20.77.7 netmask 255.255.0.0")[0] == 0
    assert ping(rack, target="10.20.77.7") == "0.00"
    assert tool(rack["node2"], "-i 3 -link -s down")[0] == 0
    assert ping(rack, target="10.20.77.7") == "100.00"


def test_net_health_follows_the_fabric(rack: Rack) -> None:
    device = rack["node1"][3]

    def health() -> str:
        return tool(rack["node1"], "-i 3 -net_health -g")[1]

    assert health() == "net health status: Success\n"
    device.detect = "10.20.250.250"
    assert health() == "net health status: Receive timeout\n"
    device.detect = rack["node3"][0].address
    assert health() == "net health status: Success\n"
    device.link_up = False
    assert health() == "net health status: Fault\n"
    device.detect = None
    assert health() == "net health status: Init\n"


def test_a_lost_ping_waits_for_its_timeout(rack: Rack) -> None:
    rack["node1"].ping_timeout(5)
    with pytest.raises(subprocess.TimeoutExpired):
        rack["node1"].host.ask("hccn_tool -i 0 -ping -g address 10.9.9.9", timeout=0.5)


# Other products.


def test_atlas_training(make_rack: Callable[..., Rack]) -> None:
    rack = make_rack("atlas-training", hosts=2)
    assert ping(rack, ("node1", 1), ("node2", 5)) == "0.00"
    assert ping(rack, ("node1", 1), ("node2", 2)) == "100.00"
    code, _, stderr = tool(rack["node1"], "-i 0 -gateway -g")
    assert (code, stderr) == (2, "Get gateway failed, because no gateway was preset there!\n")
    assert tool(rack["node1"], "-i 5 -net_health -g")[1] == "net health status: Success\n"
    assert tool(rack["node1"], "-i 0 -stat -g")[1].count("\n") == 3
    assert tool(rack["node1"], "-i 0 -ip -g")[1] == "ipaddr:192.168.100.101\nnetmask:255.255.255.0\n\n"
    assert tool(rack["node1"], "-i 0 -hccs_ping -g address 192.168.1.200")[0] == 13


def test_atlas_a3(make_rack: Callable[..., Rack]) -> None:
    rack = make_rack("atlas-a3", hosts=2)
    assert ping(rack, ("node1", 15), ("node2", 15)) == "0.00"
    address = rack["node2"].product.vnic(2, 15)[0]
    found = tool(rack["node1"], f"-i 15 -hccs_ping -g address {address}")
    assert found[0] == 0
    assert found[1].count("This pkt ping success!") == 3
    assert "3 packets transmitted, 3 received, 0.00% packets loss\n" in found[1]
    rack["node2"].host.power_off()
    lost = tool(rack["node1"], f"-i 15 -hccs_ping -g address {address}")[1]
    assert lost.count("This pkt send fail!") == 3
    assert "0 received, 100.00% packets loss\n" in lost
    node1 = rack["node1"]
    assert smi(node1, "info -t spod-info -i 7 -c 1")[1].startswith("SDID : 15\nSuper Pod Size : 384\n")
    node1[15].health("Warning", "81078603")
    assert "Warning" in smi(node1, "info -t health -i 7 -c 1")[1]
    assert "OK" in smi(node1, "info -t health -i 7 -c 0")[1]
    assert node1.host.ask("ls /dev/davinci[0-9]* | wc -l").stdout == "16\n"


def test_atlas_950(make_rack: Callable[..., Rack]) -> None:
    rack = make_rack("atlas-950", hosts=1)
    host = rack["node1"]
    assert tool(host, "-g -dev_info -i 3") == (0, host[3].said("dev_info"), "")
    host[3].link_up = False
    assert "| DOWN        |" in tool(host, "-g -dev_info -i 3")[1]
    assert tool(host, "-i 3 -link -g")[2].startswith("Please specify a valid mode.")
    assert tool(host, "-g -dev_info -i 9")[2] == "Get invalid device id.\n"
    assert smi(host, "info -t health -i 3")[1].startswith("\tNPU ID                         : 3\n")
    assert not rack.setters
