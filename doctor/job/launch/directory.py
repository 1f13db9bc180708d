"""Find the host of the job that a name or an address refers to, using what the hosts report."""

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from doctor.job.launch.rank_env import is_loopback_name


def as_address(text: str) -> str | None:
    """An address in its normal form, for comparison; None for a name."""
    try:
        return str(ipaddress.ip_address(text.strip("[]").partition("%")[0]))
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Directory:
    """`called`: host -> its other names. `held`: host -> its addresses, for the hosts that reported them.

    `resolved`: host -> name -> the addresses to which this host resolves it.
    """

    hosts: Sequence[str]
    called: Mapping[str, frozenset[str]]
    held: Mapping[str, frozenset[str]]
    resolved: Mapping[str, Mapping[str, Sequence[str]]]
    _by_name: Mapping[str, set[str]] = field(init=False, repr=False, compare=False)
    _by_short: Mapping[str, set[str]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_name: dict[str, set[str]] = {}
        by_short: dict[str, set[str]] = {}
        for host in self.hosts:
            for name in {host.lower(), *self.called.get(host, ())}:
                by_name.setdefault(name, set()).add(host)
                if as_address(name) is None:
                    by_short.setdefault(name.partition(".")[0], set()).add(host)
        object.__setattr__(self, "_by_name", by_name)
        object.__setattr__(self, "_by_short", by_short)

    def host(self, name: str | None) -> str | None:
        """The host with that name; a short name matches a long one. None if none or several match."""
        if not name or name in self._by_name.get(name, ()):
            return name or None
        wanted = name.lower()
        fitting = self._by_name.get(wanted)
        if not fitting and as_address(wanted) is None:
            short = wanted.partition(".")[0]
            fitting = self._by_short.get(short) if wanted == short else self._by_name.get(short)
        return next(iter(fitting)) if fitting and len(fitting) == 1 else None

    def owners(self, where: str) -> frozenset[str]:
        """The hosts that a name or an address belongs to."""
        named = self.host(where)
        if named is not None:
            return frozenset({named})
        meant = self.meant(where)
        return frozenset(host for host, held in self.held.items() if meant & held)

    def meant(self, where: str) -> frozenset[str]:
        """The addresses to which any host resolves a name; loopback belongs to no host."""
        address = as_address(where)
        found = {address} if address else {a for seen in self.views(where).values() for a in seen}
        return frozenset(a for a in found if not is_loopback_name(a))

    def views(self, name: str) -> dict[str, frozenset[str]]:
        """Host -> the addresses of the name there, for the hosts that were asked; empty means "not found"."""
        return {
            host: frozenset(as_address(a) or a for a in names[name])
            for host, names in self.resolved.items()
            if name in names
        }

    def alike(self, one: str, other: str) -> bool:
        """Whether two spellings mean the same host."""
        if one == other:
            return True
        return len(self.owners(one)) == 1 and self.owners(one) == self.owners(other)
