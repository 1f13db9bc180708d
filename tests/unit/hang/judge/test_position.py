"""Inside or outside a collective, by the stack and by the threads."""

import pytest
from msgspec.structs import replace

from doctor.hang.judge.position import STORE, standing
from doctor.live.evidence import Connection, Frame, JobMember, Look, PythonThread, Thread
from doctor.live.threads import gloo_groups
from tests.support.cases import cases, cases_with
from tests.support.hang.written import IMPORT, LIB, MAIN, OWN

WAITING, IDLE = "0x7f00", "0x0"


def torch(name: str, file: str) -> Frame:
    return Frame(name=name, file=f"{LIB}/{file}", line=1)


def c10d(name: str) -> Frame:
    return torch(name, "distributed/distributed_c10d.py")


def line(source: str) -> Frame:
    return Frame(name="train", file=OWN, line=9, source=source)


def gloo(*groups: str, number: str = "202") -> list[Thread]:
    """For each group, its loop and two workers, one of which may wait."""
    names = [("gloo_tcp_loop", "0x0"), ("pt_gloo_runloop", "0x0")]
    found = [row for limit in groups for row in (*names, ("pt_gloo_runloop", limit))]
    return [
        Thread(tid=100 + at, name=name, state="S", syscall=(number, "0x1", "0x189", "0x0", limit))
        for at, (name, limit) in enumerate(found)
    ]


def rank(
    stack: tuple[Frame, ...],
    *threads: Thread | list[Thread],
    waits: str = "futex_do_wait",
    state: str = "S",
    limit: str = IDLE,
    number: str = "202",
) -> JobMember:
    call = (number, "0x1", "0x189", "0x0", limit) if waits.startswith("futex") or number == "219" else ()
    main = Thread(tid=7, name="python", state=state, switches=5, waits=waits, syscall=call)
    python = (PythonThread(tid=7, frames=stack),) if stack else ()
    others = (each for given in threads for each in (given if isinstance(given, list) else [given]))
    look = Look(pid=7, state=state, threads=(main, *others), python=python)
    return JobMember(host="node1", pid=7, parent=1, job="j", rank=0, a=look, b=look)


NPU = Frame(name="synchronize", file="/opt/site-packages/torch_npu/npu/utils.py", line=1)
NCCL = Thread(tid=50, name="pt_nccl_watchdg", state="S")
P2P = torch("_wait_batch_p2p", "distributed/pipelining/schedules.py")
VLLM = Frame(name="all_reduce", file="/srv/vllm/vllm/distributed/parallel_state.py", line=1)
MEGATRON = Frame(
    name="send_forward", file="/srv/megatron/core/pipeline_parallel/p2p_communication.py", line=1
)
BACKWARD = (
    Frame(name="_engine_run_backward", file=f"{LIB}/autograd/graph.py", line=979),
    line("loss.backward()"),
)


@cases_with(
    rank,
    c10d,
    torch,
    gloo,
    line,
    MAIN=MAIN,
    IDLE=IDLE,
    BACKWARD=BACKWARD,
    WAITING=WAITING,
    NCCL=NCCL,
    P2P=P2P,
    NPU=NPU,
    VLLM=VLLM,
    MEGATRON=MEGATRON,
    IMPORT=IMPORT,
)
def test_standing(member: JobMember, inside: bool | None, operation: str) -> None:
    found = standing(member)
    assert (found.inside, found.operation) == (inside, operation)


def test_the_place_is_beyond_what_wraps_the_collective() -> None:
    layer = Frame(name="forward", file="/opt/site-packages/vllm/model_executor/layers/linear.py", line=1500)
    assert standing(rank((c10d("all_reduce"), VLLM, layer))).place == "linear.py:1500"
    assert standing(rank((c10d("all_reduce"), VLLM, layer, MAIN))).function == MAIN.name


@cases
@pytest.mark.parametrize("stack", [(line("store.get(key)"), MAIN), ()], ids=["stack", "threads"])
def test_who_waits_for_the_store_is_inside(
    ends: tuple[bool, bool], inside: bool, stack: tuple[Frame, ...]
) -> None:
    member = replace(rank(stack, *gloo(IDLE), waits="poll_schedule_timeout"), master="node1:29500")
    store, other = ("10.0.0.1:29500", "10.0.0.1:8080")
    wires = [
        Connection(state="ESTAB", local="10.0.0.2:5", peer=peer, awaited=awaited)
        for peer, awaited in ((store, ends[0] and ends[1]), (other, not ends[1]))
    ]
    assert member.b is not None
    seen = replace(member, **{which: replace(member.b, connections=tuple(wires)) for which in "ab"})
    found = standing(replace(seen, between=(member.b,)))
    assert (found.inside, found.operation) == (
        (True, STORE) if inside else (None if not stack else False, "")
    )
    assert not found.moved


def own_thread(*frames: Frame, tid: int = 8) -> PythonThread:
    return PythonThread(tid=tid, name="Thread-1", frames=frames)


WRITE = Frame(name="write", file=OWN, line=30, source="lock.acquire()")
LOG = Frame(name="log_metrics", file=OWN, line=40, source="time.sleep(30)")
THREADS, POOL = "/usr/lib/python3.11/threading.py", "/usr/lib/python3.11/concurrent/futures"
RUN = Frame(name="run", file=f"{POOL}/thread.py", line=58)
RESULT = (
    Frame(name="wait", file=THREADS, line=327),
    Frame(name="Future.result", file=f"{POOL}/_base.py", line=451),
)
JOIN = (Frame(name="Thread.join", file=THREADS, line=1119),)


@cases_with(own_thread, c10d, Frame, RESULT=RESULT, WRITE=WRITE, RUN=RUN, LOG=LOG, JOIN=JOIN)
def test_a_thread_for_which_the_main_thread_waits_is_the_rank(
    main: tuple[Frame, ...], threads: list[PythonThread], inside: bool, place: str
) -> None:
    python = (PythonThread(tid=7, name="MainThread", frames=(*main, MAIN)), *threads)
    look = Look(pid=7, state="S", python=python)
    member = JobMember(host="node1", pid=7, parent=1, job="j", a=look, b=look)
    assert (standing(member).inside, standing(member).place) == (inside, place)


def test_groups_in_order_of_creation() -> None:
    def look(threads: list[Thread]) -> Look:
        return Look(pid=7, state="S", threads=tuple(threads))

    assert gloo_groups(look(gloo(IDLE, WAITING, IDLE))) == (1,)
    assert gloo_groups(look(gloo(IDLE))) == ()
    assert gloo_groups(look([])) is None
    assert gloo_groups(look([*gloo(IDLE), Thread(tid=200, name="pt_gloo_runloop", state="S")])) is None


def test_the_main_thread_is_not_always_first() -> None:
    feeder = PythonThread(tid=9, frames=(Frame(name="_feed", file="/usr/lib/python3.11/q.py", line=1),))
    main = PythonThread(tid=7, frames=(c10d("barrier"), MAIN))
    look = Look(pid=7, state="S", python=(feeder, main))
    member = JobMember(host="node1", pid=7, parent=1, job="j", a=look, b=look)
    assert standing(member).operation == "barrier"
