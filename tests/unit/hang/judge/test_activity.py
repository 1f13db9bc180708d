"""The reported activity of a rank outside every collective, by what the kernel and its stack show."""

from typing import TypedDict

import pytest
from msgspec.structs import replace

from doctor.hang.advice import advice_of
from doctor.hang.judge import judge
from doctor.hang.judge.activity import doing
from doctor.hang.judge.judgement import Activity, Cause
from doctor.live.evidence import Connection, Frame, JobMember, Look, PythonThread, Thread
from tests.support.cases import cases, cases_with
from tests.support.hang.written import COLLECTIVE, FORWARD, MAIN, at_last, changed, evidence

STACK = (FORWARD, MAIN)
MEETS = replace(COLLECTIVE, name="init_process_group")
DATALOADER = "/opt/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py"
LOADING = (
    Frame(name="select", file="/usr/lib/python3.11/selectors.py", line=415),
    Frame(name="_MultiProcessingDataLoaderIter._try_get_data", file=DATALOADER, line=1133),
    Frame(name="_MultiProcessingDataLoaderIter._next_data", file=DATALOADER, line=1327),
    MAIN,
)
LOOP = Frame(name="_worker_loop", file=DATALOADER.replace("dataloader", "_utils/worker"), line=308)
DECODE = Frame(name="decode", file="/srv/job/data.py", line=12, source="return codec.decode(raw)")
IDLE = (Frame(name="_poll", file="/usr/lib/python3.11/multiprocessing/connection.py", line=440), LOOP)


def seen(
    waits: str = "",
    *,
    state: str = "S",
    syscall: tuple[str, ...] = (),
    stack: tuple[Frame, ...] = STACK,
    gil: bool = False,
    kernel: tuple[str, ...] = (),
    files: tuple[str, ...] = (),
    cpu: tuple[int, int] = (10, 10),
    pid: int = 7,
    helps: int | None = None,
    others: tuple[PythonThread, ...] = (),
    asks: tuple[str, ...] = (),
) -> JobMember:
    look = Look(
        pid=pid,
        state=state,
        cpu=cpu[0],
        threads=(
            Thread(tid=pid, name="python", state=state, switches=5, waits=waits, syscall=syscall, asks=asks),
        ),
        kernel=kernel,
        files=files,
        python=(*others, PythonThread(tid=pid, frames=stack, owns_gil=gil)),
    )
    return JobMember(
        host="node1", pid=pid, parent=1, job="j", helps=helps, a=look, b=replace(look, cpu=cpu[1])
    )


class TestAChild:
    """A rank that waits for its own child process is suspect only if the child is idle."""

    RANK = seen("do_wait")

    def test_that_moves_data(self) -> None:
        child = seen("pipe_read", pid=9, helps=7, stack=())
        moves = at_last(child, lambda look: replace(look, bytes_moved=300_000))
        assert doing(self.RANK, [moves], 2.0).works

    def test_that_computes(self) -> None:
        found = doing(self.RANK, [seen(state="R", cpu=(0, 150), pid=9, helps=7, stack=())], 2.0)
        assert (found.cause, found.unproved) == (Cause.CHILD, True)

    def test_that_was_started_or_ended_between_the_looks(self) -> None:
        child = seen("pipe_read", pid=9, helps=7, stack=())
        for each in (replace(child, a=None), replace(child, b=Look(pid=9, state=""))):
            assert doing(self.RANK, [each], 2.0).unproved

    def test_that_sleeps_excuses_nobody(self) -> None:
        found = doing(self.RANK, [seen("hrtimer_nanosleep", pid=9, helps=7, stack=())], 2.0)
        assert (found.cause, found.works, found.unproved) == (Cause.CHILD, False, False)

    @cases_with(seen, MEETS=MEETS, MAIN=MAIN)
    def test_that_cannot_go_on_is_the_answer(self, child: JobMember, cause: Cause, words: str) -> None:
        rank = self.RANK if cause is Cause.CHILD else seen("unix_stream_read_generic")
        found = doing(rank, [child], 2.0)
        assert (found.cause, found.unproved, found.pid) == (cause, False, 9)
        assert found.words == f"waits for {words}"

    def test_that_is_stopped_beside_the_wait_for_another_host_is_none(self) -> None:
        due = Connection(state="ESTAB", local="10.0.0.1:5", peer="10.0.0.9:80", received=9, last_received=90)
        asks = at_last(seen("wait_woken"), lambda look: replace(look, connections=(due,)))
        assert doing(asks, [seen("do_signal_stop", state="T", pid=9, helps=7)], 2.0).unproved
        works = seen(state="R", cpu=(0, 150))
        assert doing(works, [seen(state="T", pid=9, helps=7)], 2.0).cause is Cause.COMPUTES

    def test_that_sleeps_while_another_process_is_to_answer_is_named_and_not_accused(self) -> None:
        rank, idle = seen("unix_stream_read_generic"), seen("anon_pipe_read", pid=8, helps=7)
        found = doing(rank, [seen("hrtimer_nanosleep", pid=9, helps=7), idle], 2.0)
        assert (found.pid, found.unproved, found.certain) == (9, True, False)
        assert found.words == (
            "waits for another process to answer; its child 9 sleeps in forward, train.py:57"
        )
        assert doing(rank, [idle], 2.0).words == "waits for another process to answer"
        typed = seen("n_tty_read")
        assert doing(typed, [seen("hrtimer_nanosleep", pid=9, helps=7)], 2.0).cause is Cause.TYPES

    def shell(self, runs: str, *states: str) -> list[JobMember]:
        """A shell that the rank waits for, and what it runs, in these states; empty: no process any more."""
        shell = replace(seen("do_wait", pid=9, helps=7, stack=()), parent=7, command="sh fetch.sh 2")
        looks = [Look(pid=10, state=state) for state in states]
        return [shell, replace(shell, pid=10, parent=9, command=runs, a=looks[0], b=looks[1])]

    @pytest.mark.parametrize("states", [("", ""), ("S", "")])
    def test_that_runs_a_sleep_again_and_again_polls(self, states: tuple[str, str]) -> None:
        found = doing(self.RANK, self.shell("sleep 2", *states), 2.0)
        words = "waits for its child 9 (sh fetch.sh 2), which runs sleep 2 again and again"
        assert (found.words, found.cause, found.certain, found.unproved) == (words, Cause.CHILD, False, False)
        assert (found.polls, found.pid) == (True, 9)
        assert found.do.startswith("look at what process 9 tests")

    def test_that_runs_one_thing_after_another_may_work(self) -> None:
        assert doing(self.RANK, self.shell("gzip a", "", ""), 2.0).unproved

    def test_that_waits_for_what_it_runs(self) -> None:
        found = doing(self.RANK, self.shell("flock x true", "S", "S"), 2.0)
        assert found.words == "waits for its child 9 (sh fetch.sh 2), which runs flock x true"

    def test_a_producer_that_has_ended_is_the_answer_and_one_that_a_shell_ran_is_none(self) -> None:
        rank, ended = seen("pipe_read"), Look(pid=9, state="Z")
        producer = replace(seen(pid=9, helps=7), parent=7, a=ended, b=ended)
        found = doing(rank, [producer], 2.0)
        assert (found.words, found.cause) == ("waits for its child 9 (ended)", Cause.ENDED)
        assert found.do.startswith("read what process 9 printed last")
        assert doing(rank, self.shell("sleep 2", "", ""), 2.0).cause is not Cause.ENDED

    def test_of_another_rank_excuses_nobody(self) -> None:
        assert not doing(self.RANK, [seen(state="R", cpu=(0, 150), pid=9, helps=8, stack=())], 2.0).unproved


def test_a_lock_of_multiprocessing_may_be_held_by_another_rank() -> None:
    """Ranks of one parent share it; one that a rank made for its own children is not such a lock."""
    started = Frame(name="BaseProcess.run", file="/usr/lib/python3.11/multiprocessing/process.py", line=108)
    for stack, call, unproved in (
        ((FORWARD, started), "0x109", True),
        ((FORWARD, started), "0x189", False),
        ((FORWARD, MAIN), "0x109", False),
    ):
        found = doing(seen("futex_do_wait", syscall=("futex", "0x7f1a", call), stack=stack), (), 2.0)
        assert (found.cause, found.unproved, found.polls) == (Cause.LOCK, unproved, unproved)


def test_a_queue_of_multiprocessing_may_be_filled_by_another_rank() -> None:
    started = Frame(name="BaseProcess.run", file="/usr/lib/python3.11/multiprocessing/process.py", line=108)
    found = doing(seen("anon_pipe_read", stack=(FORWARD, started)), (), 2.0)
    assert (found.cause, found.unproved) == (Cause.PIPE, True)
    assert found.words == "reads a pipe that stays empty, which its parent or another rank may fill"
    assert not doing(seen("anon_pipe_read"), (), 2.0).unproved


def test_a_slow_checkpoint_is_work() -> None:
    """65 KB a second, to a remote file system."""
    slow = at_last(seen("wait_on_page_bit"), lambda look: replace(look, bytes_moved=130_000))
    assert doing(slow, (), 2.0).works
    assert not doing(slow, (), 30.0).works


def test_numbers_of_calls_do_not_overrule_what_the_kernel_says() -> None:
    """73 is ppoll on one machine and flock on the other."""
    flock = seen("locks_lock_inode_wait", syscall=("73", "0x3"), files=("/data/cache.lock",))
    assert doing(flock, (), 2.0).words == "waits for a lock on a file (open: /data/cache.lock)"


class How(TypedDict, total=False):
    """How `seen` makes a process."""

    waits: str
    state: str
    syscall: tuple[str, ...]
    stack: tuple[Frame, ...]
    gil: bool
    kernel: tuple[str, ...]
    cpu: tuple[int, int]
    asks: tuple[str, ...]


@cases
def test_words(how: How, cause: Cause, words: str) -> None:
    found = doing(seen(**how), (), 2.0)
    assert (found.cause, found.words, found.works) == (cause, words, False)


LIBRARY = "/usr/lib/python3.11/"
NOTIFIED = Frame(name="Condition.wait", file=f"{LIBRARY}threading.py", line=327)
GETS = (NOTIFIED, Frame(name="Queue.get", file=f"{LIBRARY}queue.py", line=171))
RECEIVES = (
    Frame(name="Connection._recv", file=f"{LIBRARY}multiprocessing/connection.py", line=379),
    Frame(name="Queue.get", file=f"{LIBRARY}multiprocessing/queues.py", line=103),
)
SELECTS = Frame(name="EpollSelector.select", file=f"{LIBRARY}selectors.py", line=468)
LOOPS = (SELECTS, Frame(name="BaseEventLoop._run_once", file=f"{LIBRARY}asyncio/base_events.py", line=1884))
FEEDS = PythonThread(tid=8, name="Thread-1 (feed)", frames=(DECODE,))


class TestAQueue:
    def test_that_nobody_is_left_to_fill(self) -> None:
        found = doing(seen("futex_do_wait", stack=(*GETS, *STACK)), (), 2.0)
        assert (found.cause, found.certain) == (Cause.QUEUE, True)
        assert found.words == "waits for an item of a queue (no other Python thread of it is left to put one)"

    def test_that_another_thread_may_fill(self) -> None:
        found = doing(seen("futex_do_wait", stack=(*GETS, *STACK), others=(FEEDS,)), (), 2.0)
        assert (found.cause, found.words) == (Cause.QUEUE, "waits for an item of a queue")

    def test_between_processes(self) -> None:
        found = doing(seen("pipe_read", stack=(*RECEIVES, *STACK)), (), 2.0)
        assert (found.cause, found.words) == (Cause.PIPE, "waits for an item of a queue between processes")

    def test_a_wait_for_a_condition_is_none(self) -> None:
        found = doing(seen("futex_do_wait", stack=(NOTIFIED, *STACK)), (), 2.0)
        assert (found.cause, found.words) == (Cause.LOCK, "waits for a lock")


class TestALockOfAThread:
    """A thread that may hold it is in the same recording, at what it waits for itself."""

    LOGS = "/usr/lib/python3.11/logging/__init__.py"
    MINE = (
        Frame(name="Handler.acquire", file=LOGS, line=927),
        Frame(name="Handler.handle", file=LOGS, line=976),
        *STACK,
    )
    EMIT = Frame(name="Lines.emit", file="/srv/job/train.py", line=10, source="self.sock.sendall(line)")
    HANDLE = Frame(name="Handler.handle", file=LOGS, line=978)

    def found(self, *theirs: Frame, waits: str = "wait_woken", mine: tuple[Frame, ...] = MINE) -> Activity:
        rank = seen("futex_do_wait", stack=mine, others=(PythonThread(tid=8, name="sysmon", frames=theirs),))
        other = Thread(tid=8, name="python", state="S", switches=5, waits=waits)
        a, b = (replace(each, threads=(*each.threads, other)) for each in (rank.a, rank.b) if each)
        return doing(replace(rank, a=a, b=b), (), 2.0)

    def test_is_named_with_where_that_is(self) -> None:
        found = self.found(self.EMIT, self.HANDLE)
        assert found.words == (
            "waits for a lock, train.py:57, which its thread sysmon may hold: that is in emit, train.py:10"
        )
        assert (found.place, found.certain, "must not hold a lock" in found.do) == ("train.py:57", True, True)

    def test_is_named_while_it_sleeps_in_the_function_that_takes_it(self) -> None:
        takes = (replace(FORWARD, source="with lock:"), MAIN)
        assert "sysmon may hold" in self.found(FORWARD, waits="hrtimer_nanosleep", mine=takes).words
        beats = replace(FORWARD, name="beat")
        assert self.found(beats, waits="hrtimer_nanosleep", mine=takes).words == "waits for a lock"

    def test_an_event_that_only_one_thread_may_set(self) -> None:
        """Of two, either may: one that only listens sleeps in the same way."""
        begins = Frame(name="Thread._bootstrap", file=f"{LIBRARY}threading.py", line=1002)
        rank = seen("futex_do_wait", stack=(NOTIFIED, *STACK))
        for number, words in ((1, "waits for an event, train.py:57, which its thread t0 may set"), (2, "")):
            names = [(8 + n, f"t{n}") for n in range(number)]
            runs = [PythonThread(tid=tid, name=name, frames=(self.EMIT, begins)) for tid, name in names]
            own = [Thread(tid=tid, name=name, state="S", waits="wait_woken") for tid, name in names]
            a, b = (
                replace(each, threads=(*each.threads, *own), python=(*each.python, *runs))
                for each in (rank.a, rank.b)
                if each
            )
            said = doing(replace(rank, a=a, b=b), (), 2.0).words
            assert said.startswith(words or "waits for a lock"), number
            assert "event" in said or number == 2

    @pytest.mark.parametrize("waits", ["futex_do_wait", "inet_csk_accept", "hrtimer_nanosleep", ""])
    def test_of_threads_that_serve_or_rest_none_is_named(self, waits: str) -> None:
        other = replace(FORWARD, name="serve")
        assert self.found(other, waits=waits, mine=(replace(FORWARD, source="with a:"),)).words == (
            "waits for a lock"
        )

    def test_a_wait_for_an_event_takes_none(self) -> None:
        waits = (replace(FORWARD, source="done.wait()"), MAIN)
        assert self.found(replace(self.EMIT), waits="wait_woken", mine=waits).words == "waits for a lock"


class TestInput:
    READS = ("read", "0x0", "0x55", "0x2000")

    def found(self, source: str, syscall: tuple[str, ...] = READS) -> Activity:
        asks = replace(FORWARD, source=source)
        return doing(seen("anon_pipe_read", syscall=syscall, stack=(asks, MAIN), asks=("a pipe",)), (), 2.0)

    def test_at_a_pipe_waits_for_somebody(self) -> None:
        found = self.found('answer = input("overwrite? [y/N] ")')
        assert (found.cause, found.unproved) == (Cause.TYPES, False)
        assert found.words == "waits in input() for somebody to answer at its standard input"

    def test_of_a_program_that_writes_there_is_an_answer(self) -> None:
        assert self.found("for line in sys.stdin:").cause is Cause.INPUT
        assert self.found("ask = input(name)", ("read", "0x5", "0x55", "0x2000")).cause is Cause.INPUT


JIT = Frame(
    name="_jit_compile", file="/usr/lib/python3.11/site-packages/torch/utils/cpp_extension.py", line=9
)


class TestABuild:
    RANK = seen("pipe_read", stack=(JIT, *STACK))
    SHELL = replace(seen("do_wait", pid=9, helps=7, stack=()), parent=7, command="ninja -v")

    def test_that_computes_is_work(self) -> None:
        compiler = replace(seen(state="R", cpu=(0, 150), pid=10, helps=7, stack=()), parent=9)
        found = doing(self.RANK, [self.SHELL, replace(compiler, command="/usr/lib/gcc/cc1plus -quiet")], 2.0)
        assert (found.works, found.words) == (True, "compiles: process 10 (cc1plus) computes")

    def test_whose_compiler_ended_may_go_on(self) -> None:
        gone = replace(self.SHELL, pid=10, parent=9, command="cc1plus", a=Look(pid=10, state=""), b=None)
        assert doing(self.RANK, [self.SHELL, gone], 2.0).unproved

    def test_that_stands_still_is_none(self) -> None:
        assert not doing(self.RANK, [self.SHELL], 2.0).works


class TestTwoLocks:
    """The main thread and another one, each at a line that takes a lock."""

    MINE = replace(FORWARD, source="with file_lock:")
    SAVES = Frame(name="saver", file="/srv/job/train.py", line=7, source="with state_lock:")

    def found(self, theirs: Frame, waits: str = "futex_do_wait") -> Activity:
        rank = seen("futex_do_wait", stack=(self.MINE, MAIN), others=(PythonThread(tid=8, frames=(theirs,)),))
        other = Thread(tid=8, name="python", state="S", switches=5, waits=waits)
        with_it = (replace(look, threads=(*look.threads, other)) for look in (rank.a, rank.b) if look)
        a, b = with_it
        return doing(replace(rank, a=a, b=b), (), 2.0)

    def test_may_be_taken_in_two_orders(self) -> None:
        found = self.found(self.SAVES)
        assert found.words == (
            "waits for a lock, train.py:57, and its thread 8 for one, train.py:7:"
            " each may hold what the other waits for"
        )
        assert (found.cause, found.place, found.frames) == (
            Cause.LOCK,
            "train.py:57",
            (self.MINE, self.SAVES),
        )

    @pytest.mark.parametrize(
        ("theirs", "waits"),
        [
            (replace(SAVES, source="with file_lock:"), "futex_do_wait"),
            (replace(SAVES, source="event.wait()"), "futex_do_wait"),
            (SAVES, "hrtimer_nanosleep"),
        ],
    )
    def test_that_may_be_one_or_are_not_both_waited_for(self, theirs: Frame, waits: str) -> None:
        assert self.found(theirs, waits).words == "waits for a lock"


class TestAsyncio:
    def test_its_loop_that_is_idle(self) -> None:
        found = doing(seen("do_epoll_wait", stack=(*LOOPS, *STACK)), (), 2.0)
        assert (found.cause, found.unproved) == (Cause.AWAITS, False)
        assert found.words == "waits in its asyncio loop, which is idle, for an event or a task"

    def test_a_child_that_its_loop_may_wait_for(self) -> None:
        child = seen(state="R", cpu=(0, 150), pid=9, helps=7, stack=())
        found = doing(seen("do_epoll_wait", stack=(*LOOPS, *STACK)), [child], 2.0)
        assert (found.cause, found.unproved) == (Cause.CHILD, True)

    def test_a_socket_or_a_selector_without_it_is_no_loop(self) -> None:
        for stack in (
            (SELECTS, *STACK),
            (Frame(name="SocketIO.readinto", file=f"{LIBRARY}socket.py", line=706),),
        ):
            assert doing(seen("do_poll", stack=stack), (), 2.0).cause is Cause.INPUT

    def test_an_answer_that_its_loop_waits_for_stays_one(self) -> None:
        due = Connection(state="ESTAB", local="10.0.0.1:5", peer="10.0.0.9:80", received=9, last_received=90)
        rank = at_last(
            seen("do_epoll_wait", stack=(*LOOPS, *STACK)), lambda look: replace(look, connections=(due,))
        )
        assert doing(rank, (), 2.0).cause is Cause.INPUT


@pytest.mark.parametrize(
    ("rank", "do"),
    [
        (
            seen("futex_do_wait", stack=(*GETS, *STACK)),
            "look for what fills the queue that rank 1 reads at train.py:57:"
            " an exception there is in its log",
        ),
        (
            seen("pipe_write", asks=("a pipe to process 9 (gzip)",)),
            "end process 9, or have it read what rank 1 writes at train.py:57",
        ),
        (
            seen(
                "n_tty_read", stack=(Frame(name="Pdb.interaction", file=f"{LIBRARY}pdb.py", line=1), *STACK)
            ),
            "type c where the job was started, or remove the breakpoint of rank 1 at or above train.py:57",
        ),
        (seen("futex_do_wait"), "look at rank 1 at train.py:57"),
        (seen("pipe_write"), "look at rank 1 at train.py:57"),
        (
            seen("n_tty_read"),
            "type what rank 1 waits for where the job was started, or remove the question at train.py:57",
        ),
    ],
)
def test_what_to_do(rank: JobMember, do: str) -> None:
    whole = evidence(["waits", "sleeps", "waits"], hosts=("node1",))
    (said, *_) = advice_of(
        judge(changed(whole, lambda each: replace(each, a=rank.a, b=with_wires(rank, each)), 1))
    ).do
    assert said.removesuffix("; the network between the ranks is not the cause") == do


def with_wires(rank: JobMember, like: JobMember) -> Look | None:
    return rank.b and like.b and replace(rank.b, connections=like.b.connections)


def test_the_file_that_it_reads_is_named() -> None:
    files = ("/data/shard-17.jsonl", "/srv/job/out.log")
    found = doing(seen("request_wait_answer", syscall=("0", "0x9"), files=files), (), 2.0)
    assert found.words == "waits for a file system that does not answer: /data/shard-17.jsonl"
    found = doing(seen("__folio_lock", files=("/srv/job/out.log", "/data/a.bin")), (), 2.0)
    assert found.words == "waits for storage (open: /data/a.bin)"


def test_another_thread_that_holds_the_gil() -> None:
    holder = PythonThread(tid=8, name="worker", owns_gil=True, frames=(DECODE,))
    found = doing(seen("futex_do_wait", others=(holder,)), (), 2.0)
    assert (found.cause, found.words) == (
        Cause.GIL,
        "waits for the GIL, which another thread of it holds at data.py:12",
    )


class TestDataLoaders:
    RANK = seen("poll_schedule_timeout", stack=LOADING)

    def test_the_line_of_the_worker(self) -> None:
        workers = [
            seen("poll_schedule_timeout", stack=IDLE, pid=20, helps=7),
            seen("nfs_wait_bit", stack=(DECODE, LOOP), pid=21, helps=7),
        ]
        found = doing(self.RANK, workers, 2.0)
        assert found.cause is Cause.LOADER
        assert found.words == (
            "waits for its data loader: worker 21 waits for a file system that does not answer"
            " in decode, data.py:12"
        )
        assert (found.place, found.frames[0], found.certain) == ("data.py:12", DECODE, True)

    def test_a_worker_that_works_is_work(self) -> None:
        busy = seen(stack=(DECODE, LOOP), pid=21, helps=7)
        moved = at_last(busy, lambda look: replace(look, bytes_moved=3_000_000))
        assert doing(self.RANK, [moved], 2.0).works

    def test_workers_that_are_gone_idle_or_stopped(self) -> None:
        says = "waits for its data loader"
        assert doing(self.RANK, [], 2.0).words == f"{says}, and no worker of it runs"
        idle = seen("poll_schedule_timeout", stack=IDLE, pid=20, helps=7)
        assert doing(self.RANK, [idle], 2.0).words == f"{says}, whose workers seem idle"
        stopped = seen("do_signal_stop", state="T", stack=(DECODE, LOOP), pid=20, helps=7)
        assert doing(self.RANK, [stopped], 2.0).words == f"{says}: worker 20 is stopped in decode, data.py:12"
        ended = seen(state="Z", stack=(), pid=20, helps=7)
        assert doing(self.RANK, [ended], 2.0).words == f"{says}: worker 20 has ended"


def test_a_compiler_that_does_nothing_is_no_work() -> None:
    inductor = Frame(name="compile_fx", file="/opt/site-packages/torch/_inductor/compile_fx.py", line=4)
    idle = seen("do_epoll_wait", stack=(inductor, MAIN))
    assert (doing(idle, (), 2.0).words, doing(idle, (), 2.0).works) == ("waits for its compiler", False)
    helper = seen(cpu=(0, 190), state="R", pid=9, helps=7)
    assert doing(idle, [helper], 2.0).works


class TestSomebodyIsToType:
    """input(), a debugger: neither a network answer nor a lock."""

    ASKS = (Frame(name="main", file="/srv/job/train.py", line=9, source='input("continue? ")'), MAIN)
    PDB = (
        Frame(name="Pdb.interaction", file="/usr/lib/python3.11/pdb.py", line=400),
        Frame(name="Bdb.dispatch_line", file="/usr/lib/python3.11/bdb.py", line=115),
        *STACK,
    )

    @pytest.mark.parametrize(
        "member",
        [
            seen("wait_woken", syscall=("0", "0x0"), stack=ASKS),
            seen("wait_woken", stack=ASKS, kernel=("wait_woken", "n_tty_read")),
        ],
    )
    def test_at_a_terminal(self, member: JobMember) -> None:
        said = doing(member, (), 2.0)
        assert (said.cause, said.words) == (Cause.TYPES, "waits for somebody to type")

    def test_at_a_prompt(self) -> None:
        """Of python -i, whose program is over. Without stacks, any line may read."""
        prompt = seen("pipe_read", syscall=("0", "0x0"), stack=())
        said = doing(prompt, (), 2.0)
        assert (said.cause, said.words) == (Cause.TYPES, "waits for somebody to type at the prompt of Python")
        unseen = [replace(look, python=()) for look in (prompt.a, prompt.b) if look]
        assert "prompt" not in doing(replace(prompt, a=unseen[0], b=unseen[1]), (), 2.0).words

    def test_in_a_debugger(self) -> None:
        said = doing(seen("do_select", stack=self.PDB), (), 2.0)
        assert (said.cause, said.words) == (
            Cause.TYPES,
            "waits in a Python debugger for somebody to type",
        )

    def test_a_socket_is_the_network(self) -> None:
        said = doing(seen("wait_woken", syscall=("0", "0x7")), (), 2.0)
        assert said.words == "waits for an answer over the network"


def test_one_that_evaluates_alone_is_not_proved_to_hang() -> None:
    evaluates = Frame(name="evaluate", file="/srv/job/train.py", line=11, source="total += score(model)")
    said = doing(seen(state="R", cpu=(10, 200), stack=(FORWARD, evaluates, MAIN)), (), 2.0)
    assert (said.cause, said.unproved) == (Cause.COMPUTES, True)
    assert said.words == "computes: it may evaluate alone"


def test_an_import_that_reads_much_is_no_data() -> None:
    load = Frame(name="_find_and_load", file="<frozen importlib._bootstrap>", line=1176)
    member = seen(stack=(load, MAIN))
    assert member.b is not None
    said = doing(replace(member, b=replace(member.b, bytes_moved=7_000_000)), (), 2.0)
    assert (said.cause, said.works) == (Cause.IMPORTS, True)
