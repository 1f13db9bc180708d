"""The only way to call a collective: `Comm._call` marks it on the rank's page; injected faults replace it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from doctor.smoke.onhost.collectiveplan import BYTES
from doctor.smoke.onhost.encoding import encoded
from doctor.smoke.onhost.framework import Framework
from doctor.smoke.onhost.page import RankPage
from doctor.smoke.onhost.schedule import join_calls
from doctor.smoke.onhost.shape import CellShape
from doctor.smoke.onhost.trainplan import beside

if TYPE_CHECKING:  # Python 3.8 cannot evaluate these
    from collections.abc import Callable

    Say = Callable[[dict[str, Any]], None]


def join(comm: Comm) -> None:
    """Use every group once, so that connections that are made on first use exist."""
    for call in join_calls(comm.shape, comm.place):
        comm.all_reduce(comm.ones(1), call.group)


class Comm:
    """The collectives of one rank. In a group of one member they do nothing and leave no mark.

    `wait` is the time spent inside them so far, `idle` that for other stages, `forming` that to make the
    groups. Roots and sources are indexes in their group, peers are places in the cell.
    """

    def __init__(
        self,
        shape: CellShape,
        place: int,
        page: RankPage,
        framework: Framework,
        groups: dict[str, Any],
        say: Say,
    ) -> None:
        self.shape = shape
        self.place = place
        self.page = page
        self.framework = framework
        self.groups = groups
        self.say = say
        self.wait = self.idle = self.forming = 0.0
        self.seq: dict[str, int] = {}
        self.sizes: dict[str, int] = {}
        self.held: dict[str, list[float]] | None = None
        """Group -> a number of the bits after its calls; if `sums`, those before and after, and sizes."""
        self.sums = False

    def ones(self, elements: int) -> Any:
        return self.framework.tensor(encoded([1] * elements, "float32"), "float32")

    def size(self, group: str) -> int:
        return len(self.shape.members(group, self.place))

    def spent(self) -> float:
        """The seconds that computing took so far: of the CPU, or by the clock if a device computes."""
        return self.framework.burnt() if self.framework.on_cpu else time.perf_counter() - self.wait

    def all_reduce(self, x: Any, group: str, *, maximum: bool = False) -> None:
        op = "all_reduce_max" if maximum else "all_reduce"
        self._call(group, op, x, lambda x: self.framework.all_reduce(x, self.groups[group], maximum=maximum))

    def broadcast(self, x: Any, group: str, source: int = 0) -> None:
        member = self.shape.members(group, self.place)[source]
        do = self.framework.broadcast
        self._call(group, "broadcast", x, lambda x, root: do(x, self.groups[group], root), member)

    def reduce(self, x: Any, group: str, root: int = 0) -> None:
        """Only the root gets the sum; what the others hold afterwards is undefined."""
        member = self.shape.members(group, self.place)[root]
        do = self.framework.reduce
        self._call(group, "reduce", x, lambda x, root: do(x, self.groups[group], root), member)

    def all_gather(self, x: Any, group: str) -> Any:
        """The tensors of all members, in the group's order."""
        about = self.groups[group], self.size(group)
        return self._call(group, "all_gather", x, lambda x: self.framework.all_gather(x, *about))

    def reduce_scatter(self, x: Any, group: str) -> Any:
        """The rank's own part of the sum, which is cut into as many parts as members."""
        about = self.groups[group], self.size(group)
        return self._call(group, "reduce_scatter", x, lambda x: self.framework.reduce_scatter(x, *about))

    def all_to_all(self, x: Any, group: str, out: list[int], back: list[int]) -> Any:
        """Part i of the result is the part that member i had for this rank; the parts have these sizes."""
        do, size, own = self.framework.all_to_all, self.framework.size_of, self.groups.get(group)
        rest = out[:-1]
        return self._call(group, "all_to_all", x, lambda x: do(x, own, [*rest, size(x) - sum(rest)], back))

    def converse(self, first: Any, do: Callable[[], None], group: str = "pair", op: str = "exchange") -> None:
        """Run many swaps with one peer, or collectives, under one mark, which shows the first tensor."""
        self._call(group, op, first, lambda _: do())

    def hand(self, move: str, out: Any, into: Any) -> None:
        """Give something to a stage beside this one, get something from it, or both; None: not that."""
        held, peer = self.shape.vpp, beside(self.shape, self.place, move)

        def do(x: Any, peer: int, tag: int) -> Any:
            given, got = (None, x) if out is None else (x, into)
            if held > 1:
                self.framework.pass_on(4 * self.shape.micro * held, tag, given, got, peer, self.groups["pp"])
            else:
                self.framework.swap(given, got, peer, self.groups["pp"], tag=tag)
            return got

        self._note(f"to {peer}", out)
        self._call("pair", move, into if out is None else out, do, peer, int(held > 1 and "backward" in move))
        self._note(f"from {peer}", into)

    def swap(self, out: Any, into: Any, peer: int) -> None:
        """Send and receive at the same time, inside `converse` and without a mark of its own."""
        self.framework.swap(out, into, peer)
        self.framework.synchronise()

    def _call(self, group: str, op: str, x: Any, do: Callable[..., Any], *about: int) -> Any:
        """`about`: the place of the root or of the peer, and the tag, if there are such."""
        if group != "pair" and self.size(group) == 1:
            return None
        self.seq[group] = self.seq.get(group, 0) + 1
        dtype = self.framework.dtype_of(x)
        size = self.framework.size_of(x) * BYTES[dtype]
        self.sizes[group] = self.sizes.get(group, 0) + size
        noted = self.held is not None and group != "pair" and op not in ("reduce", "reduce_scatter")
        gives = noted and self.sums and op != "all_reduce_max" and (not about or about[0] == self.place)
        given = self.framework.tally(x, True)[1:] if gives else (0.0, 0.0)
        self.framework.synchronise()  # time for pending computation does not count as waiting
        self.page.enter(group, self.seq[group], op, dtype, size, *about)
        began = time.perf_counter()
        result = do(x, *about)
        self.framework.synchronise()
        spent = time.perf_counter() - began
        self.wait += spent
        self.idle += spent if group in ("pair", "pp") else 0.0
        self.page.leave()
        if noted:
            self._note(group, x if result is None else result, given, float(op != "all_reduce_max"))
        return result

    def _note(self, name: str, x: Any, given: tuple[float, float] = (0.0, 0.0), adds: float = 0.0) -> None:
        if x is not None and self.held is not None:
            bits, total, _ = self.framework.tally(x, adds > 0 and self.sums)
            old, before, after, size = self.held.get(name, (0, 0.0, 0.0, 0.0))
            sums = before + given[0], after + total * adds, size + given[1]
            self.held[name] = [(31 * int(old) + bits) % 2**48, *sums]
