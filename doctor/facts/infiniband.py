"""InfiniBand and RoCE ports, as the kernel's files or ibstat show them."""

import re
from dataclasses import dataclass

from doctor.api import Capture, Fact, Group, Run, UnreadableOutput
from doctor.text.hostprogram import host_program


@dataclass(frozen=True, slots=True)
class InfinibandPort:
    """`state` is active, armed, initializing or down; `physical` is LinkUp, Polling or Disabled.

    `layer` is InfiniBand or Ethernet; `rate` is the text as printed: "400 Gb/sec (4X NDR)", or "40".
    """

    device: str
    number: int
    state: str
    physical: str
    rate: str = ""
    layer: str = ""

    @property
    def name(self) -> str:
        return f"{self.device} port {self.number}"

    @property
    def is_up(self) -> bool:
        return self.state == "active"


# Not through the shared reader of files: reading a state queries the card, which may not answer.
_ASK = host_program(__file__, "infiniband.sh")
_FILE = re.compile(r"/sys/class/infiniband/([\w.-]{1,64})/ports/(\d{1,3})/(\w{1,16}):(.{0,80})")
_IBSTAT = re.compile(
    r"CA '(?P<ca>[\w.-]{1,64})'$"
    r"|\s+Port (?P<port>\d{1,3}):$"
    r"|\s+(?P<key>State|Physical state|Rate|Link layer): (?P<value>.{0,80})"
)
_KEYS = {"State": "state", "Physical state": "phys_state", "Rate": "rate", "Link layer": "link_layer"}
_STATES = {"init": "initializing", "armed": "armed", "arm": "armed"}


def _ports(capture: Capture) -> tuple[InfinibandPort, ...]:
    seen: dict[tuple[str, int], dict[str, str]] = {}
    device, port = "", -1
    for line in capture.stdout.splitlines():
        file, word = _FILE.match(line), _IBSTAT.match(line)
        if file:
            seen.setdefault((file[1], int(file[2])), {})[file[3]] = re.sub(r"^\d{1,2}: ", "", file[4]).strip()
        elif word and word["ca"]:
            device, port = word["ca"], -1
        elif word and word["port"]:
            port = int(word["port"])
        elif word and device and port >= 0:
            seen.setdefault((device, port), {})[_KEYS[word["key"]]] = word["value"].strip()
    found = [_port(*key, values) for key, values in seen.items() if values.get("state")]
    if not found:
        raise UnreadableOutput("neither /sys/class/infiniband nor ibstat shows the state of a port")
    return tuple(sorted(found, key=lambda port: (port.device, port.number)))


def _port(device: str, number: int, values: dict[str, str]) -> InfinibandPort:
    state = values["state"].lower()
    return InfinibandPort(
        device,
        number,
        _STATES.get(state, state),
        values.get("phys_state", ""),
        values.get("rate", ""),
        values.get("link_layer", ""),
    )


IB_PORTS = Fact(
    "ib-ports",
    Run(_ASK),
    _ports,
    timeout=8,
    cap=65536,
    group=Group("InfiniBand or RoCE device", ("/sys/class/infiniband/*",), 10),
)
