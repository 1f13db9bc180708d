"""What connections show if ranks hang inside a collective or lose each other."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from doctor.mesh import Link, MeshBlame, culprits
from doctor.model import Confidence, Evidence
from doctor.smoke.judge.charge import SmokeCharge, worded
from doctor.smoke.judge.exits import SHELL, said
from doctor.smoke.judge.phrases import one_line
from doctor.smoke.judge.stopped_cell import EndedCell, only_host
from doctor.text.hostprogram import sections

_SAID = sections(__file__, "network.txt")
_SEEN, _CONNECTIONS, _WAYS = _SAID["how"], _SAID["whose"], _SAID["way"]
_SHOWN = 6
COMMANDS = SHELL["network"]


def failing_network(cell: EndedCell) -> tuple[MeshBlame, ...]:
    """The causes of failing connections between hosts of the cell."""
    mesh = cell.result.mesh
    if mesh is None:
        return ()
    return tuple(
        blame
        for blame in (*culprits(mesh.links), *culprits(mesh.ways))
        if any({link.source, link.target} <= set(cell.hosts) for link in blame.links)
    )


def network_charges(
    cell: EndedCell, what: str, phase: str = "join", step: int | None = None
) -> Iterator[SmokeCharge]:
    """One charge for each blame of the mesh; `what` is the text of what hangs or broke."""
    mesh = cell.result.mesh
    for blame in failing_network(cell):
        outcome = Counter(link.outcome for link in blame.links).most_common(1)[0][0]
        subject = (_WAYS if outcome == "lost" else _CONNECTIONS)[
            "common" if blame.common else blame.direction
        ]
        touched = [
            link
            for link in ((mesh.ways if outcome == "lost" else mesh.links) if mesh else ())
            if link.tested and (blame.common or {link.source, link.target} & set(blame.hosts))
        ]
        worked = sum(not link.failed for link in touched)
        words = f"{subject} {_SEEN.get(outcome, outcome)}"
        yield SmokeCharge(
            *worded("network", what=what, words=words, failed=len(blame.links), worked=worked, phase=phase),
            hosts=blame.hosts,
            victims=cell.beside(blame.hosts),
            step=step,
            confidence=Confidence.CERTAIN if blame.decided or blame.common else Confidence.SUSPECT,
            evidence=tuple(_evidence(link) for link in blame.links[:_SHOWN]),
            commands=COMMANDS,
            undecided=not blame.decided and not blame.common and len(blame.hosts) > 1,
        )


def _evidence(link: Link) -> Evidence:
    if link.outcome == "lost":
        again = f"; {link.repeats}" if link.repeats else ""
        return Evidence(f"data from {link.source}", f"lost on the way to {link.target}{again}")
    detail = f" ({link.detail})" if link.detail else ""
    return Evidence(
        f"connect from {link.source}", f"{link.target} {link.address}:{link.port}: {link.outcome}{detail}"
    )


def lost_each_other(cell: EndedCell) -> SmokeCharge:
    """The charge if ranks ended only because connections broke, and the network works again."""
    suspects, said_by = _hosts_at_broken_ends(cell)
    lone = tuple(seen.rank for seen in cell.fallen) if not suspects and len(cell.fallen) == 1 else ()
    fallen, phase = len(cell.fallen), cell.fallen[0].phase
    name = "lost connections of a host" if len(suspects) == 1 else "lost connections"
    return SmokeCharge(
        *worded(name, fallen=fallen, all=len(cell.ranks), phase=phase),
        ranks=lone,
        hosts=suspects or (() if lone else only_host(cell)),
        victims=cell.others(lone) if lone else cell.beside(suspects),
        confidence=Confidence.SUSPECT,
        evidence=tuple(Evidence(f"rank {rank}", one_line(text)) for rank, text in said_by[:_SHOWN]),
        commands=COMMANDS,
        undecided=len(suspects) > 1,
    )


def _hosts_at_broken_ends(cell: EndedCell) -> tuple[tuple[str, ...], list[tuple[int, str]]]:
    """The host that most broken connections share, or both hosts of the only one; and the ranks' reports."""
    ends: dict[str, set[str]] = defaultdict(set)
    words: list[tuple[int, str]] = []
    for seen in cell.fallen:
        own, text = cell.plan.seat(seen.rank).host, said(seen)
        words.append((seen.rank, text))
        for host in cell.hosts:
            if host != own and _contains_address(text, cell.plan.addresses.get(host, "")):
                ends[own].add(host)
                ends[host].add(own)
    ranked = sorted(ends, key=lambda host: -len(ends[host]))
    if len(ranked) == 2:
        return tuple(sorted(ranked)), words
    if len(ranked) > 2 and len(ends[ranked[0]]) > len(ends[ranked[1]]):
        return (ranked[0],), words
    return (), words


def _contains_address(text: str, address: str) -> bool:
    """Whether the text contains the address, and not as a part of another one."""
    if not address:
        return False
    return re.search(rf"(?<![0-9A-Fa-f.]){re.escape(address)}(?!\.?[0-9A-Fa-f])", text) is not None
