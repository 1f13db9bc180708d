"""`python -m benchmarks.peers`: one table, one run, one machine: `doctor` against clush, pdsh and ansible.

All of them ask the same hosts of the lab (tests/lab), in turns, so that other work on the machine affects all
of them alike. The hosts share the machine's cores with the controller: the work of every host therefore
counts too.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from statistics import median

from benchmarks import contenders
from benchmarks.contenders import Contender
from benchmarks.meter import Sample, measure
from benchmarks.own import help_seconds, marginal, probe_alone, split
from benchmarks.table import MEGA, conditions, peers_table, rows
from tests.lab import Lab, missing

SECONDS_FOR_ROUNDS = 100.0
"""No round begins after this many seconds: the whole benchmark stays under three minutes."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--hosts", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    if reason := missing():
        print(f"No benchmark: {reason}.", file=sys.stderr)
        return 2
    with Lab(args.hosts) as lab:
        _offer_sftp(lab)
        nodeset = f"node[1-{args.hosts}]"
        print(conditions(args.hosts), end="\n\n", flush=True)
        peers = contenders.peers(lab, nodeset)
        ours = contenders.examinations(lab, nodeset)
        taken = _rounds(lab, [c for c in (*peers, *ours) if contenders.installed(c)], args.rounds)
        print(peers_table(peers, ours, taken, args.hosts), end="\n\n", flush=True)
        few = min(8, args.hosts // 2)
        host = ours[0]
        fewer = contenders.examinations(lab, f"node[1-{few}]")[0]
        print(
            rows(
                "against the targets",
                [
                    *_beside(peers, host, taken),
                    (
                        f"controller CPU, from {few} to {args.hosts} hosts",
                        f"{1000 * marginal(lab, fewer, host, few, args.hosts):.1f} ms a host",
                        "under 15 ms",
                    ),
                    (
                        f"peak memory of the controller, {args.hosts} hosts, with the mesh",
                        f"{median(s.peak for s in taken[ours[1].name]) / MEGA:.0f} MB",
                        "under 150 MB",
                    ),
                    ("doctor --help (median of 10)", f"{1000 * help_seconds(lab):.0f} ms", "under 200 ms"),
                    *probe_alone(lab),
                ],
            ),
            end="\n\n",
        )
        print(split(lab, nodeset))
    return 0


def _beside(
    peers: Sequence[Contender], host: Contender, taken: Mapping[str, Sequence[Sample]]
) -> Iterator[tuple[str, str, str]]:
    """The two ratios of wall times that have a target; a program that is not installed has none."""
    clush, *_, ansible = (taken.get(peer.name) for peer in peers)
    ours = median(s.wall for s in taken[host.name])
    if clush:
        yield f"`{host.name}` beside clush", f"{ours / median(s.wall for s in clush):.2f} ×", "about 1 ×"
    if ansible:
        yield f"ansible beside `{host.name}`", f"{median(s.wall for s in ansible) / ours:.1f} ×", "10 ×"


def _rounds(lab: Lab, entrants: Sequence[Contender], rounds: int) -> dict[str, list[Sample]]:
    """Each contender runs once in each round; the order rotates, because the first one finds the machine
    idle.
    """
    taken: dict[str, list[Sample]] = {c.name: [] for c in entrants}
    began = time.monotonic()
    for number in range(rounds):
        shift = number % len(entrants)
        for entrant in (*entrants[shift:], *entrants[:shift]):
            sample = measure(
                lab, entrant.argv, lab.hosts, env=entrant.env, tidy=partial(contenders.forget_masters, lab)
            )
            if trouble := entrant.trouble(sample, len(lab.hosts)):
                print(f"{entrant.name}: {trouble}", file=sys.stderr)
            taken[entrant.name].append(sample)
        spent = time.monotonic() - began
        if spent + spent / (number + 1) > SECONDS_FOR_ROUNDS:
            break
    return taken


def _offer_sftp(lab: Lab) -> None:
    """As any sshd does: ansible first tries to copy its modules by sftp, and would lose time without it."""
    for host in lab:
        host.do("""
            echo "Subsystem sftp internal-sftp" >>/etc/ssh/sshd_config
            kill -HUP "$(cat /run/sshd.pid)"
        """)
        host.await_sshd()


if __name__ == "__main__":
    sys.exit(main())
