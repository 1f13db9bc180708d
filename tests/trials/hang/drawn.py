"""The random part of each trial: the victim, the step, and the conditions."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tests.trials.hang.kinds import KINDS, STANDS, Kind


@dataclass(frozen=True, slots=True)
class Victim:
    rank: int
    fault: str


@dataclass(frozen=True, slots=True)
class Drawn:
    mode: str
    fault: str
    number: int
    launcher: str
    user: str
    """The owner of the job, and the user who looks at it."""
    ranks: int
    """The number of ranks on each host."""
    victims: tuple[Victim, ...]
    step: int
    port: int
    without: tuple[int, ...]
    """The hosts on which py-spy cannot run."""

    @property
    def kind(self) -> Kind:
        return KINDS[self.fault]

    @property
    def name(self) -> str:
        return f"{self.mode} {self.fault}"

    @property
    def place(self) -> str:
        """The place, for a person to read."""
        who = " and ".join(
            f"rank {each.rank}{f' ({each.fault})' if len(self.victims) > 1 else ''}" for each in self.victims
        )
        bare = "".join(f", node{host + 1} without py-spy" for host in self.without)
        return f"{self.launcher}, {self.user}{bare}: {who}, step {self.step}"

    def host_of(self, victim: Victim) -> int:
        return victim.rank // self.ranks

    def sees_stack_of(self, victim: Victim) -> bool:
        return self.host_of(victim) not in self.without


def draw(
    mode: str,
    fault: str,
    number: int,
    *,
    hosts: int,
    ranks: int,
    launchers: Sequence[str],
    users: Sequence[str],
    without: int,
) -> Drawn | None:
    """The same trial for the same arguments; launchers take turns. None if no launcher can have this fault.

    Every other trial has hosts `without` py-spy.
    """
    kind, lot = KINDS[fault], random.Random(f"{mode} {fault} {number}")
    able = [each for each in launchers if each in kind.launchers]
    if not able:
        return None
    ranks = max(ranks, kind.ranks)
    rank, step, port = lot.randrange(hosts * ranks), lot.randrange(5, 40), lot.randrange(20_000, 30_000)
    return Drawn(
        mode=mode,
        fault=fault,
        number=number,
        launcher=able[number % len(able)],
        user=lot.choice(users),
        ranks=ranks,
        victims=_victims(lot, mode, fault, rank, ranks, hosts * ranks),
        step=step,
        port=port,
        without=tuple(sorted(lot.sample(range(hosts), without))) if lot.random() < 0.5 else (),
    )


def _victims(
    lot: random.Random, mode: str, fault: str, rank: int, ranks: int, world: int
) -> tuple[Victim, ...]:
    if fault in ("kill", "lost", "power"):
        return (Victim(rank if rank >= ranks else rank + ranks, fault),)  # the store is in rank 0
    if fault == "netdrop":  # two ranks that exchange data at every step, on different hosts
        far = (rank + max(2, ranks)) % world if mode == "tp" else 0
        last = rank - rank % ranks + ranks - 1
        pair = (rank, far) if mode == "tp" else (last, (last + 1) % world)
        return tuple(Victim(each, fault) for each in sorted(pair))
    if fault == "two":
        other = lot.choice([each for each in range(world) if each != rank])
        return tuple(Victim(each, lot.choice(STANDS)) for each in sorted((rank, other)))
    return (Victim(rank, fault),)
