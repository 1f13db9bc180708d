"""A long cable: packets from and to one host of the lab arrive late, as across a city.

The kernel of a test machine may lack a queueing discipline that delays, so the frames pass through a program:
it unplugs the host's cable from the switch and connects itself between the two.

    with slow_wire(lab, lab["node3"], 0.02):
        …
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

from tests.lab import Host, Lab, LabError
from tests.support.cases import from_cases

# Frames are passed on as the kernel's own virtual devices do: with the header that tells a network card what
# it still has to do (check sums, cutting). Without it, large frames would arrive damaged.
_RELAY = from_cases(__file__, "_RELAY", str)


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
