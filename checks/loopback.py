"""The loopback interface, by which the processes of one host reach each other."""

from collections.abc import Iterator, Mapping

from doctor.api import Damage, Evidence, Problem, Sphere, Undecided, check, maybe
from doctor.facts.network import ADDRESSES, LINKS, UNNAMED, Counters

LO, LOCALHOST = "lo", "127.0.0.1"


@check(
    "loopback-down",
    ADDRESSES,
    maybe(LINKS),
    remedy="raise-loopback",
    sphere=Sphere.NETWORK,
    damage=Damage.BLOCKED,
)
def loopback_down(
    addresses: Mapping[str, tuple[str, ...]], links: Mapping[str, Counters] | None
) -> Iterator[Problem]:
    """The loopback interface is down, or has no address 127.0.0.1.

    Why it matters: launchers, data loaders and monitors of one host talk to each other by localhost; so does
    a host with its own addresses. torchrun, msrun and TensorBoard fail at their start with "Connection timed
    out" or "Cannot assign requested address", while connections to other hosts work.

    What to do: set it up and give it its address again. In a network namespace of its own it must be set up
    by whoever made the namespace.
    """
    if UNNAMED in addresses:
        raise Undecided(
            "the names of the interfaces are not known: neither ip nor Perl nor Python is installed there"
        )
    card = (links or {}).get(LO)
    down = card is not None and card.down
    held = any(LOCALHOST in own for own in addresses.values())
    if down or not held:
        shown = ", ".join(addresses.get(LO, ())) or "no address"
        yield Problem(
            "the loopback interface is down" if down else f"the loopback interface has no {LOCALHOST}",
            expected=f"lo is up and has {LOCALHOST}",
            actual=f"lo is {'down' if down else 'up'}, with {shown}",
            subject="interface lo",
            evidence=(Evidence("ip -o addr show", f"lo: {shown}"),),
        )
