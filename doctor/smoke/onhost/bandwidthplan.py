"""The plan of the bandwidth phase: which hosts meet when, how much they send, and what their pages show.

Pure and without torch. One rank of each host takes part, so that hosts' links are measured and not the
ranks' shares of them. Every pair of hosts meets twice: a link that is slow in both stages is slow. Two or
three hosts have too few pairs to compare: they meet five times and send one way at a time, so that one
direction can be compared with the other, and luck with itself. In an acceptance test all do.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from doctor.smoke.onhost.shape import CellShape, CollectiveCall
from doctor.smoke.onhost.sweepplan import sweep_calls

PING = 8
"""Bytes of a small message."""
PINGS = 11
"""Turns of small messages: one to meet, then two for each of five round trips."""
PIECE = 65536
"""Bytes of the first piece of a transfer; the page shows this size for the whole transfer."""
LARGEST_PIECE = 32 * 2**20
LONG_ENOUGH, LONG_ENOUGH_ONE_WAY = 0.1, 0.05
"""Seconds that a transfer must last; shorter ones are off by a tenth. Of those one way there are five."""
ONE_WAY_UP_TO = 3
"""The most hosts that send one way at a time."""
MOST_WITH_ALL = 64
"""The most hosts of an acceptance test of which all pairs meet."""
_TURN = 0.02
_MOST_ROUNDS = 15
_MOST_TURNS = 512


Way = Literal["both", "out", "in"]


class Meeting(NamedTuple):
    """One transfer of a rank with a peer, both by their places in the cell: it sends and receives at once, or
    does only one of the two.
    """

    peer: int
    round: int
    stage: int
    way: Way = "both"


def bandwidth_calls(shape: CellShape, place: int) -> list[CollectiveCall]:
    """The calls that a rank's page shows in this phase; none with a single host, unless it is accepted."""
    timed = sweep_calls(shape, place)
    calls: list[CollectiveCall] = []
    if len(shape.hosts) < 2 and not timed:
        return calls
    wait = CollectiveCall(0, "world", "all_reduce", "float32", 4)
    for lot in lots(shape, place):
        for meeting in lot:
            both = (min(place, meeting.peer), max(place, meeting.peer))
            calls.append(CollectiveCall(0, "pair", "exchange", "uint8", PING, both))
            calls.append(CollectiveCall(0, "pair", "exchange", "uint8", PIECE, both))
        calls += [wait] if shape.pairs_at_once else []
    return [*calls, *timed, wait]


def lots(shape: CellShape, place: int) -> list[list[Meeting]]:
    """The meetings of a rank, in order; none unless it is the first rank of its host. A round is one lot,
    or several if only few pairs may meet at once: then all ranks wait for each other after each lot.
    """
    firsts = shape.firsts
    plan = few_rounds(len(firsts)) if shape.turns else rounds(len(firsts))[:_MOST_ROUNDS]
    own = firsts.index(place) if place in firsts else -1
    few = bool(shape.turns) or len(firsts) <= ONE_WAY_UP_TO
    most = shape.pairs_at_once or len(firsts)
    return [
        [
            Meeting(firsts[pair[0] + pair[1] - own], number, stage, way)
            for pair in pairs[start : start + most]
            if own in pair
            for way in _ways(few, own == pair[0])
        ]
        for stage in range(1, (shape.turns or (5 if few else 2)) + 1)
        for number, pairs in enumerate(plan)
        for start in range(0, len(pairs), most)
    ]


def _ways(few: bool, first: bool) -> tuple[Way, ...]:
    """With few hosts, one direction after the other: the host with the lower number sends first."""
    if not few:
        return ("both",)
    return ("out", "in") if first else ("in", "out")


def rounds(hosts: int) -> list[list[tuple[int, int]]]:
    """A tournament: in each round every host meets one other, an odd one out rests; all pairs meet once."""
    seats = list(range(hosts + hosts % 2))
    found: list[list[tuple[int, int]]] = []
    for _ in seats[1:]:
        facing = [sorted((seats[i], seats[-1 - i])) for i in range(len(seats) // 2)]
        found.append([(low, high) for low, high in facing if high < hosts])
        seats = [seats[0], seats[-1], *seats[1:-1]]
    return found


def few_rounds(hosts: int) -> list[list[tuple[int, int]]]:
    """All rounds; of many hosts, those in which each meets others near and far: a slow switch shows as one of
    them. Twice the logarithm of the number of hosts.
    """
    every = rounds(hosts)
    if hosts <= MOST_WITH_ALL:
        return every
    bits = range((hosts - 1).bit_length())
    near = [[(i, i ^ 1 << bit) for i in range(hosts) if i < i ^ 1 << bit < hosts] for bit in bits]
    met = {pair for pairs in near for pair in pairs}
    far = every[:: len(every) // len(bits)][: len(bits)]
    return near + [[pair for pair in pairs if pair not in met] for pairs in far]


def pairs_apart(hosts: int) -> int:
    """How many pairs of hosts of an acceptance test do not meet."""
    return hosts * (hosts - 1) // 2 - sum(map(len, few_rounds(hosts)))


class TransferPace:
    """How large the pieces of a transfer are and when it ends, agreed by both ends without further messages.

    Each piece carries the time that its sender took for the piece before. So after each piece both ends know
    both times of the piece before, and draw the same conclusion from the longer one.
    """

    def __init__(self, enough: float = LONG_ENOUGH) -> None:
        self.enough = enough
        self.size = PIECE
        """Bytes of the next piece."""
        self.turns = 0
        self.bytes = 0
        """All bytes except the first piece and pieces too small to fill the link."""
        self.seconds = 0.0
        self.queued = 0.0
        """For how many of these seconds, at most, this end waited for a processor."""
        self.done = False
        self._before = PIECE, 0.0

    def turn(self, mine: int, theirs: int, queued: float = 0.0) -> None:
        """Count a piece that went through: its bytes, and for how long this end waited for a processor. The
        microseconds belong to the piece before it, if any.
        """
        self.turns += 1
        (before, waited), self._before = self._before, (self.size, queued)
        if self.turns == 1:
            return
        seconds = max(mine, theirs, 1) / 1e6
        if self.turns > 2 and (seconds >= _TURN / 4 or before == LARGEST_PIECE):
            self.bytes += before
            self.seconds += seconds
            self.queued += waited
        self.size = min(max(int(before * _TURN / seconds), PIECE), self.size * 8, LARGEST_PIECE) // 8 * 8
        self.done = self.seconds >= self.enough or self.turns >= _MOST_TURNS
