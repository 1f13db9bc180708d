"""How jobs of four ranks on two hosts end, by root cause: which line is logged in which file. Rank 2 on node2
is guilty.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from doctor.logs.model import Form, Party, Role
from tests.support.logs.written import Entry, File, symptom

CLOSED = symptom("gloo-closed", title="another rank closed the connection", checks=("kernel-log",))
RECV = symptom(
    "gloo-recv-timeout", title="a rank was waited for until the time was over", checks=("smoke-hang",)
)
WATCHDOG = symptom("nccl-watchdog", title="a collective did not end in time", checks=("smoke-hang",))
ABORT = symptom("nccl-failed-or-timed-out", title="NCCL operations failed")
SIGTERM = symptom("torchrun-sigterm", title="torchrun ended this rank because another failed")
EXIT = symptom("torchrun-exit", Role.CONFIRMS, "a rank ended")
KILLED = symptom("torchrun-sigkill", Role.ROOT, "a rank was killed", checks=("kernel-log", "memory-low"))
OOM = symptom(
    "kernel-oom", Role.ROOT, "the kernel killed for lack of memory", checks=("kernel-log", "memory-low")
)
MISMATCH = symptom(
    "gloo-mismatch", Role.ROOT, "ranks issued different collectives", ["gloo-*"], checks=("smoke-mismatch",)
)
SHM = symptom(
    "nccl-shm", Role.ROOT, "/dev/shm is too small", ["nccl-*", "gloo-*"], checks=("shm-small", "shm-full")
)
PORT = symptom(
    "torch-port", Role.ROOT, "the port of the head is taken", ["torch-connect*"], checks=("port-in-use",)
)
CONNECT = symptom("torch-connect", Role.ROOT, "the head did not answer", checks=("port-unreachable",))
CLIENTS = symptom("torch-clients", Role.ROOT, "ranks never came", checks=("launch-ranks",))
ENQUEUED = symptom("nccl-last-enqueued", Role.NAMES, "how far a rank was")
SOCKET = symptom("hccl-ei0006", title="the socket to a rank was not made", checks=("device-unreachable",))
ADVICE = symptom("torch-async-advice", Role.ADVICE, "advice")
BARRIER = symptom("gloo-barrier", Role.NAMES, "a rank did not reach the barrier", checks=("smoke-hang",))
HEARTBEAT = symptom(
    "hccl-heartbeat", Role.NAMES, "its heartbeat was lost", ["hccl-*"], checks=("host-unreachable",)
)
NOTIFY = symptom("hccl-ei0002", title="a notify was waited for in vain", checks=("device-unreachable",))
TOPO = symptom("hccl-topo-server", Role.NAMES, "ranks never came", checks=("launch-ranks",))
RETRY = symptom("nccl-connect", Role.ROOT, "a connection timed out", checks=("firewall-blocks",))
CQE = symptom("nccl-ib-retry", Role.ROOT, "InfiniBand gave up", checks=("ib-port-down",))
XID = symptom("kernel-xid", Role.ROOT, "a GPU fell off the bus", ["nccl-*", "gloo-*"], checks=("gpu-xid",))
NODE = symptom("slurm-node-failure", Role.ROOT, "the host was lost", ["*"], checks=("host-unreachable",))
TIME = symptom("slurm-time", Role.CONFIRMS, "its time limit was over")
MPI = symptom("mpi-signal", Role.NAMES, "a rank died of a signal", checks=("kernel-log",))

_SIZES = "Received data size doesn't match expected size. op.preamble.length <= op.nbytes. 8 vs 4"
_CQE = "NET/IB: Got completion from peer 10.0.0.2 with status=12"
_TIMED_OUT = "connect to 10.0.0.1<4711> returned Connection timed out, exceeded error retry count"
_XID = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
_IN_USE = "The server socket has failed to listen on any local network address. EADDRINUSE"
_NO_HEAD = "The client socket has timed out after 300000ms while trying to connect to (node1, 29500)"
_JOINED = "Timed out after 301 seconds waiting for clients. 3/4 clients joined."
_LIST = "connected rankinfo[LINE 0]: [0000000000000000],[0000000000000001],[0000000000000003];"
_NOTICED = "mpirun noticed that process rank 2 with PID 1002 on node node2 exited on signal 9 (Killed)."
_LIMIT = "*** JOB 7 ON node1 CANCELLED AT 2026-11-20 DUE TO TIME LIMIT ***"

HOSTS = {0: "node1", 1: "node1", 2: "node2", 3: "node2"}
ADDRESS = {"node1": "10.0.0.1", "node2": "10.0.0.2"}


@dataclass(frozen=True)
class Ending:
    name: str
    files: tuple[File, ...]
    who: frozenset[int]
    """The parties that the conclusion names; may be empty."""
    symptom: str | None
    decided: bool = True
    may: frozenset[int] = frozenset()
    """Further parties that it may suspect if not all logs are given."""


def rank(number: int, *entries: Entry, steps: int = 3, world: int | None = 4) -> File:
    """The rank's own log: some steps, and then its end."""
    done = [
        Entry(10.0 * n, f"step {n} loss 1.0", form=Form.PLAIN, progress=True) for n in range(1, steps + 1)
    ]
    who = Party(rank=number, host=HOSTS[number], pid=1000 + number)
    return File(f"rank-{number}.log", (*done, *entries), who, world)


def others(make: Callable[[int], Sequence[Entry]], of: Sequence[int] = (0, 1, 3)) -> list[File]:
    return [rank(each, *make(each)) for each in of]


def closed(at: float) -> Callable[[int], Sequence[Entry]]:
    """It names a neighbour in the ring, which need not be the culprit."""

    def lines(number: int) -> Sequence[Entry]:
        peer = ADDRESS[HOSTS[(number + 1) % 4]]
        text = f"RuntimeError: gloo/transport/tcp/pair.cc:547] Connection closed by peer [{peer}]:23456"
        return [Entry(at + number / 1000, text, CLOSED, taken={"peer_address": f"[{peer}]:23456"})]

    return lines


def torchrun(host: str, *entries: Entry) -> File:
    return File(f"torchrun-{host}.log", entries, Party(host=host))


def exits(at: float, number: int, code: int) -> Entry:
    means = SIGTERM if code == -15 else KILLED if code == -9 else EXIT
    who = Party(rank=number, host=HOSTS[number], pid=1000 + number)
    text = f"exitcode  : {code} (pid: {1000 + number})"
    taken = {"exitcode": str(code), "rank": str(number)}
    return Entry(at, text, means, Form.ELASTIC, who, taken)


def launchers(culprit: int, code: int, at: float = 41.0) -> list[File]:
    """Each torchrun only knows its own ranks; the one on the other host takes a victim for the cause."""
    return [
        torchrun("node1", exits(at + 1, 0, 1), exits(at + 1, 1, -15)),
        torchrun("node2", exits(at, culprit, code), exits(at, 3, -15)),
    ]


def kernel(host: str, *entries: Entry) -> File:
    return File(f"dmesg-{host}.log", entries, Party(host=host))


def oom(at: float, pid: int = 1002) -> Entry:
    text = f"Out of memory: Killed process {pid} (python3) total-vm:9kB"
    return Entry(at, text, OOM, Form.KERNEL, taken={"pid": str(pid)})


def recv(at: float) -> Callable[[int], Sequence[Entry]]:
    text = (
        "gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 1800000ms for recv operation to complete"
    )
    return lambda number: [Entry(at + number / 100, text, RECV)]


def watchdog(at: float, sequence: int, operation: str = "ALLREDUCE") -> Callable[[int], Sequence[Entry]]:
    work = f"WorkNCCL(SeqNum={sequence}, OpType={operation}, Timeout(ms)=600000)"
    text = f"Watchdog caught collective operation timeout: {work}"
    return lambda number: [
        Entry(at + number / 100, text, WATCHDOG),
        Entry(at + 1, "Some NCCL operations have failed or timed out. Due to the asynchronous", ABORT),
    ]


def notify(at: float) -> Callable[[int], Sequence[Entry]]:
    text = "EI0002: The wait execution of the Notify register times out. taskType[Notify Wait]"
    return lambda number: [Entry(at + number / 10, text, NOTIFY, Form.PLOG)]


def endings() -> list[Ending]:
    two = frozenset({2})
    trace = Entry(40, "ValueError: the batch is empty", form=Form.PYTHON, odd=True)
    heartbeat = Entry(
        130,
        "Cluster Exception Location[IP/ID]:[10.0.0.2/0], ExceptionType:[Heartbeat Lost Occurred]",
        HEARTBEAT,
        Form.PLOG,
        taken={"address": "10.0.0.2/0"},
    )
    barrier = Entry(
        70, "[Rank 0]: Rank 2 failed to pass monitoredBarrier in 30000 ms", BARRIER, taken={"rank": "2"}
    )
    node_lost = Entry(45, "srun: error: Node failure on node2", NODE, Form.SLURM, taken={"host": "node2"})
    taken = {"rank": "2", "host": "node2", "pid": "1002", "signal": "9"}
    noticed = Entry(0, _NOTICED, MPI, Form.MPI, taken=taken, timed=False)
    return [
        Ending(
            "oom",
            (*others(closed(40)), rank(2), *launchers(2, -9), kernel("node2", oom(39.9))),
            two,
            "kernel-oom",
            may=frozenset({3}),
        ),
        Ending(
            "exception",
            (*others(closed(40.5)), rank(2, trace), *launchers(2, 1)),
            two,
            None,
            may=frozenset({3}),
        ),
        Ending(
            "killed-without-kernel-log",
            (*others(closed(40)), rank(2), *launchers(2, -9)),
            two,
            "torchrun-sigkill",
            may=frozenset({3}),
        ),
        Ending(
            "skipped-collective-gloo",
            (
                *others(closed(41)),
                rank(2, Entry(40, _SIZES, MISMATCH, taken={"received": "8", "expected": "4"})),
                *launchers(2, 1),
            ),
            frozenset({1, 2, 3}),  # the rank that prints it need not be the one that skipped
            "gloo-mismatch",
            decided=False,
        ),
        Ending(
            "skipped-collective-nccl",
            (*others(watchdog(640, 8)), rank(2, *watchdog(640.1, 7, "BROADCAST")(2))),
            two,
            None,
        ),
        Ending(
            "hang-gloo",
            (
                *others(recv(1840)),
                rank(2),
                torchrun("node1", exits(1841, 0, 1), exits(1841, 1, 1)),
                torchrun("node2", exits(1841, 3, 1), exits(1841, 2, -15)),
            ),
            two,
            None,
        ),
        Ending("hang-nccl", (*others(watchdog(640, 8)), rank(2)), two, None),
        Ending("hang-hccl", (*others(notify(1876)), rank(2)), two, None),
        Ending(
            "hccl-heartbeat",
            (*others(lambda n: [*notify(1876)(n), *([heartbeat] if n == 0 else [])]), rank(2)),
            two,
            "hccl-heartbeat",
        ),
        Ending(
            "barrier",
            (*others(lambda n: [barrier] if n == 0 else closed(71)(n)), rank(2)),
            two,
            "gloo-barrier",
        ),
        Ending(
            "host-lost",
            (
                *others(recv(1840), (0, 1)),
                rank(2),
                rank(3),
                File("slurm.out", (node_lost,)),
            ),
            frozenset(),
            "slurm-node-failure",
            may=frozenset({2, 3}),
        ),
        Ending(
            "cable",
            tuple(others(lambda n: [Entry(40 + n, _CQE, CQE, Form.NCCL, taken={"peer_rank": "2"})])),
            two,
            "nccl-ib-retry",
        ),
        Ending(
            "firewall-pair",
            (
                rank(0),
                rank(1),
                rank(3),
                rank(2, Entry(40, _TIMED_OUT, RETRY, Form.NCCL, taken={"peer_rank": "0"})),
            ),
            frozenset({0, 2}),
            "nccl-connect",
            decided=False,
        ),
        Ending(
            "device",
            (
                *others(watchdog(640, 8)),
                rank(2, *watchdog(640, 8)(2)),
                kernel("node2", Entry(40, _XID, XID, Form.KERNEL)),
            ),
            frozenset(),
            "kernel-xid",
            may=frozenset({2, 3}),
        ),
        Ending(
            "shm",
            (
                *others(
                    lambda _: [
                        Entry(41, "socketProgress: Connection closed by remote peer", CLOSED, Form.NCCL)
                    ]
                ),
                rank(2, Entry(40, "Error: failed to extend /dev/shm/nccl-x to 99 bytes", SHM, Form.NCCL)),
            ),
            two,
            "nccl-shm",
        ),
        Ending(
            "port-taken",
            (
                rank(0, Entry(1, _IN_USE, PORT), steps=0),
                *(
                    rank(n, Entry(301, _NO_HEAD, CONNECT, taken={"host": "node1", "port": "29500"}), steps=0)
                    for n in (1, 2, 3)
                ),
            ),
            frozenset({0}),
            "torch-port",
            may=frozenset({1, 2, 3}),
        ),
        Ending(
            "never-came",
            (rank(0, Entry(300, _JOINED, CLIENTS), steps=0), rank(1, steps=0), rank(3, steps=0)),
            two,
            "torch-clients",
            may=frozenset({1, 3}),
        ),
        Ending(
            "topo-list",
            (rank(0, Entry(120, _LIST, TOPO, Form.PLOG), steps=0), rank(1, steps=0), rank(3, steps=0)),
            two,
            "hccl-topo-server",
        ),
        Ending(
            "mpirun",
            (*others(closed(40)), rank(2), File("mpirun.log", (noticed,))),
            two,
            "mpi-signal",
        ),
        Ending(
            "time-limit",
            (*(rank(n) for n in range(4)), File("slurm.out", (Entry(3600, _LIMIT, TIME, Form.SLURM),))),
            frozenset(),
            "slurm-time",
        ),
    ]
