"""A long cable: packets from and to one host of the lab arrive late, as across a city.

The kernel of a test machine may lack a queueing discipline that delays, so the frames pass through a program:
it unplugs the host's cable from the switch and connects itself between the two.

    with slow_wire(lab, lab["node3"], 0.02):
        …
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

from tests.lab import Host, Lab, LabError

# Frames are passed on as the kernel's own virtual devices do: with the header that tells a network card what
# it still has to do (check sums, cutting). Without it, large frames would arrive damaged.
_RELAY = """
import collections, select, socket, sys, time

def wire(name):
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    end.setsockopt(263, 15, 1)                    # SOL_PACKET, PACKET_VNET_HDR
    end.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)  # SO_RCVBUFFORCE
    end.bind((name, 3))                           # ETH_P_ALL
    end.setblocking(False)
    return end

late, ends = float(sys.argv[3]), [wire(sys.argv[1]), wire(sys.argv[2])]
waiting = collections.deque()
print("up", flush=True)
while True:
    pause = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
    for ready in select.select([*ends, sys.stdin], [], [], pause)[0]:
        if ready is sys.stdin:
            sys.exit()
        try:
            while True:
                frame, address = ready.recvfrom(1 << 17)
                if address[2] != 4:               # PACKET_OUTGOING: what we sent ourselves
                    waiting.append((time.monotonic() + late, ends[ready is ends[0]], frame))
        except BlockingIOError:
            pass
    while waiting and waiting[0][0] <= time.monotonic():
        _, end, frame = waiting.popleft()
        try:
            end.send(frame)
        except OSError:
            pass                                  # a full queue loses frames, as wires do
"""


@contextlib.contextmanager
def slow_wire(lab: Lab, host: Host, seconds: float, cable: int = 0) -> Iterator[None]:
    """Every frame of the host takes `seconds` longer, each way."""
    wire = host.spec.cables[cable]
    near, far = f"late{host.spec.index}", f"later{host.spec.index}"
    lab.ip(
        [
            f"link add {near} type veth peer name {far}",
            f"link set {near} up",
            f"link set {far} master {wire.switch} up",
            f"link set {wire.port} nomaster",
        ]
    )
    relay = subprocess.Popen(
        lab.enter([sys.executable, "-IS", "-c", _RELAY, wire.port, near, str(seconds)]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PATH": os.environ["PATH"]},
    )
    try:
        assert relay.stdout is not None
        if relay.stdout.readline() != "up\n":
            raise LabError("the slow wire did not come up; it says why on stderr")
        yield
    finally:
        relay.communicate("")
        lab.ip([f"link del {near}", f"link set {wire.port} master {wire.switch}"], force=True)
