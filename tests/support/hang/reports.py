"""Judgements of every kind, and their text."""

import json
from functools import cache

from msgspec.structs import replace

from doctor.hang.judge import Judgement, judge
from doctor.hang.report import page_of
from doctor.live.evidence import LibraryText, LiveEvidence
from doctor.live.libraries.opinions import Source
from doctor.report.terminal.cards import print_page
from doctor.text.console import drawn
from tests.support.hang.trials import of, of_another_user
from tests.support.hang.written import both, evidence, seen_from_outside

NODES = ("node1", "node2", "node3", "node4")
REFUSED = {"node3": "connection refused on port 22"}
ONE_SLEEPS = ("waits",) * 5 + ("sleeps",) + ("waits",) * 2
FLEET = tuple(f"node{number}" for number in range(1, 65))


@cache
def judgements() -> dict[str, Judgement]:
    return {
        "sleeps": judge(evidence(ONE_SLEEPS, NODES)),
        "sub-groups": judge(of("sleep", "tp")[0].evidence, limit=1.0),
        "loader": judge(of("loader")[0].evidence, limit=1.0),
        "mismatch": judge(of("skip", "tp")[0].evidence, limit=1.0),
        "checkpoint": judge(of("ckpt", "ddp")[0].evidence, limit=1.0),
        "cut": judge(of("netdrop", "tp")[0].evidence, limit=1.0),
        "another-user": judge(of_another_user(of("lock", "ddp")[0].evidence), limit=1.0),
        "unreached": judge(evidence(["waits"] * 8, NODES, unreached=REFUSED)),
        "nccl": judge(evidence(["item"] * 5 + ["sleeps"] + ["item"] * 2, NODES, device=True)),
        "two-of-512": judge(_fleet()),
        "several": judge(
            both(evidence(["waits", "sleeps"]), evidence(["waits"] * 2, job="node1:29600", silent=0.1))
        ),
        "libraries": judge(_status(evidence(ONE_SLEEPS, NODES), behind=5)),
        "libraries-against": judge(_status(evidence(ONE_SLEEPS, NODES), behind=2)),
        "stranger": judge(seen_from_outside(evidence(["waits", "stopped", "waits"], NODES[:1]))),
        "input": judge(evidence(["waits", "types"], NODES[:2])),
        "moves": judge(evidence(ONE_SLEEPS, NODES, silent=0.1)),
    }


def _status(seen: LiveEvidence, behind: int) -> LiveEvidence:
    """torch_npu's status files of a job in which one rank is a collective behind."""
    said = []
    for rank in range(8):
        begun = {"op_type": "ALLREDUCE", "comm_ids": "all", "pg_id": "0", "seq": 57 - (rank == behind)}
        body = json.dumps({"last_comm_op": [{**begun, "status": "start"}]})
        name = f"/save/torch_hccl_status-{rank}_10.0.0.1_{rank}_8_{rank + 1}_1795284713000.log"
        said += [library(Source.TORCH_NPU, body, name, which=which) for which in ("a", "b")]
    first = replace(seen.hosts[0], libraries=tuple(said))
    return replace(seen, hosts=(first, *seen.hosts[1:]))


def library(source: Source, body: str, name: str, *, which: str) -> LibraryText:
    return LibraryText(
        source=source.value, name=name, text=body, which="a" if which == "a" else "b", at=1_763_629_200.0
    )


def _fleet() -> LiveEvidence:
    return evidence(["storage" if rank in (77, 300) else "waits" for rank in range(512)], FLEET)


def text(judgement: Judgement, columns: int, *, verbose: bool = False, quiet: bool = False) -> str:
    return drawn(
        lambda console: print_page(page_of(judgement, apart=verbose), console, verbose=verbose, quiet=quiet),
        columns,
        colour=False,
    )
