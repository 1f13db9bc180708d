"""Jobs with launchers and no rank yet, written down as they would be seen."""

from collections.abc import Mapping, Sequence

from doctor.live.evidence import (
    Connection,
    Frame,
    HostEvidence,
    JobMember,
    LiveEvidence,
    Look,
    PythonThread,
    ResolvedName,
    Thread,
)

LIB = "/opt/venv/lib/python3.11/site-packages/torch/distributed"
MEETS = Frame(name="next_rendezvous", file=f"{LIB}/elastic/rendezvous/static_tcp_rendezvous.py", line=76)
IMPORTS = Frame(name="_find_and_load", file="<frozen importlib._bootstrap>", line=1176)
AGE = 90.0


def address(node: int) -> str:
    return f"10.0.0.{node + 1}"


def words(node: int, of: int, *more: str, master: str = address(0), port: int = 29500) -> tuple[str, ...]:
    where = (f"--master-addr={master}", f"--master-port={port}")
    return (
        "/opt/python",
        "/opt/bin/torchrun",
        f"--nnodes={of}",
        f"--node-rank={node}",
        *where,
        *more,
        "train.py",
    )


def launcher(
    node: int,
    said: Sequence[str],
    *,
    age: float = AGE,
    user: str = "alice",
    does: str = "meets",
    pid: int = 400,
    syn: str = "",
) -> JobMember:
    """`syn`: the place to which it sends first packets in vain."""
    frame = IMPORTS if does == "imports" else MEETS
    sent = (Connection(state="SYN-SENT", local=f"{address(node)}:40000", peer=syn, backoff=4),) if syn else ()
    look = Look(
        pid=pid,
        state="S",
        threads=(Thread(tid=pid, name="torchrun", state="S", switches=5, waits="poll_schedule_timeout"),),
        connections=sent,
        python=(PythonThread(tid=pid, name="MainThread", frames=(frame,)),),
    )
    return JobMember(
        host=f"node{node + 1}",
        pid=pid,
        parent=1,
        job="",
        launcher="torchrun",
        command=" ".join(said),
        words=tuple(said),
        user=user,
        age=age,
        a=look,
        b=look,
    )


def starting(
    launchers: Sequence[JobMember],
    of: int = 4,
    *,
    may_be: Mapping[str, str] | None = None,
    names: Mapping[str, ResolvedName] | None = None,
    unreached: Sequence[str] = (),
) -> LiveEvidence:
    hosts = [f"node{node + 1}" for node in range(of)]
    seen = tuple(
        HostEvidence(
            host=host,
            starters=tuple(each for each in launchers if each.host == host),
            may_be=((may_be or {})[host],) if host in (may_be or {}) else (),
            names=((names or {})[host],) if host in (names or {}) else (),
            at=1_763_629_200.0,
            apart=2.0,
            root=True,
            stacks="py-spy 0.4.3",
            addresses=("127.0.0.1", address(node)),
        )
        for node, host in enumerate(hosts)
        if host not in unreached
    )
    lost = dict.fromkeys(unreached, "connection refused")
    return LiveEvidence(started="2025-11-20T09:00:00Z", hosts=seen, unreached=lost, asked=tuple(hosts))
