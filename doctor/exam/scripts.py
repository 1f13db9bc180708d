"""The script of each host, written when its turn comes: all at once would fill the memory on many hosts."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from doctor.job.plan import JobPlan
from doctor.text.nodeset import is_host, is_ip
from doctor.transport import Script

ALL_NAMES = 16
"""Up to this many hosts, each resolves all names; beyond, only those of the head and a few others."""
MOST_TOLD = 4
"""The most hosts that the launch names and that are asked for: a name that nobody knows takes its time."""


class Scripts(Mapping[str, Script]):
    """The script of each host."""

    def __init__(self, hosts: Iterable[str], write: Callable[[str], Script]) -> None:
        self._hosts = dict.fromkeys(hosts)
        self._write = write

    def __getitem__(self, host: str) -> Script:
        if host not in self._hosts:
            raise KeyError(host)
        return self._write(host)

    def __iter__(self) -> Iterator[str]:
        return iter(self._hosts)

    def __len__(self) -> int:
        return len(self._hosts)


class NamesToAsk:
    """The names that each host resolves: what is told, and all in a small cluster, else a few."""

    def __init__(self, names: Sequence[str], plan: JobPlan) -> None:
        self._names = names
        self._place = {name: place for place, name in enumerate(names)}
        self._listed = [name for name in plan.listed if name not in self._place][:MOST_TOLD]
        self._master = [plan.master.value] if plan.master else []
        self._head = plan.head.value

    def of(self, host: str) -> tuple[str, ...]:
        return tuple(n for n in dict.fromkeys(self._names_for(host)) if is_host(n) and not is_ip(n))

    def _names_for(self, host: str) -> list[str]:
        if len(self._names) == 1:
            return [*self._master, *self._listed]
        if len(self._names) <= ALL_NAMES:
            return [*self._names, *self._master, *self._listed]
        near = (self._place[host] + step for step in (1, -1, 2, -2, 4, -4, 8, -8))
        others = (self._names[place % len(self._names)] for place in near)
        return [host, self._head, *self._master, *others, *self._listed]
