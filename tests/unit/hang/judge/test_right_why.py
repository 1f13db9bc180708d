"""The right rank with the right reason, and what helps: jobs of the exam, each with a sound or other twin."""

from collections.abc import Callable
from dataclasses import replace as changed

import pytest
from msgspec.structs import replace

from doctor.hang.advice import advice_of
from doctor.hang.judge import judged
from doctor.hang.judge.case import case_of
from doctor.hang.judge.decide import decide
from doctor.hang.judge.judgement import HangState, Judgement
from doctor.live.evidence import Frame, JobMember, LiveEvidence, Look, PythonThread
from doctor.live.evidence_file import load
from doctor.live.jobs.find import find_jobs
from tests.exam.jobs import FOLDER
from tests.support.cases import from_cases

SAID = from_cases(__file__, "SAID", dict[str, tuple[int, str, str]])
"""Job -> the rank, why, and how the first advice begins."""


def recorded(name: str) -> LiveEvidence:
    return load(FOLDER / f"{name}.json.gz")


def told(evidence: LiveEvidence) -> tuple[Judgement, str, str]:
    """The judgement, why the first that is named stands, and the first advice."""
    made = judged(evidence)
    return made, made.named[0].sentence if made.named else made.sentence, advice_of(made).do[0]


def with_looks(name: str, rank: int | None, change: Callable[[Look], Look]) -> LiveEvidence:
    """The job with all looks of this rank changed."""
    seen = recorded(name)
    members = (
        replace(each, a=each.a and change(each.a), b=each.b and change(each.b)) if each.rank == rank else each
        for each in seen.hosts[0].members
    )
    return replace(seen, hosts=(replace(seen.hosts[0], members=tuple(members)),))


@pytest.mark.parametrize("name", SAID)
def test_why_and_what_to_do(name: str) -> None:
    rank, why, do = SAID[name]
    made, says, advice = told(recorded(name))
    assert rank in [each.rank for each in made.named]
    assert len(made.named) == 1 or "all others" not in why
    assert says.startswith(why)
    assert advice.startswith(do)


def beside(look: Look) -> Look:
    """Another thread of it, at work elsewhere."""
    frame = Frame(name="run", file="/home/user/run/monitor.py", line=9, source="time.sleep(1)")
    return replace(look, python=(*look.python, PythonThread(tid=99, name="monitor", frames=(frame,))))


def shared(look: Look) -> Look:
    """Its lock is shared between processes, so that a child may release it."""
    main, *others = look.threads
    call = ("futex", "0x7f0000000000", "0x0", *main.syscall[3:])
    return replace(look, threads=(replace(main, syscall=call), *others))


@pytest.mark.parametrize("change", [beside, shared])
def test_a_lock_that_somebody_may_release_is_only_a_lock(change: Callable[[Look], Look]) -> None:
    _, says, _ = told(with_looks("handler-lock-2", 2, change))
    assert says.startswith(("waits for a lock in on_alarm", "waits for a lock or an event that it shares"))


def test_a_function_that_calls_itself_stands_still_and_one_at_other_lines_does_not() -> None:
    """A handler interrupts itself with each alarm: its stack grows, and its lines stay."""
    seen = recorded("handler-lock-2")
    assert told(seen)[0].verdict is HangState.HANG
    moved = list(seen.hosts[0].members)
    last = moved[2].b
    assert moved[2].rank == 2
    assert last
    (main,) = last.python
    frames = tuple(replace(each, line=each.line + 1) for each in main.frames)
    moved[2] = replace(moved[2], b=replace(last, python=(replace(main, frames=frames),)))
    made, says, _ = told(replace(seen, hosts=(replace(seen.hosts[0], members=tuple(moved)),)))
    assert made.verdict is not HangState.HANG
    assert "and goes from line to line" in says


def test_cells_that_sleep_beside_another_locked_file_wait_for_no_lock() -> None:
    def log(look: Look) -> Look:
        return replace(look, locks=tuple(replace(each, path="/home/user/run/log") for each in look.locks))

    def held_no_more(look: Look) -> Look:
        return replace(look, locks=())

    for change in (log, held_no_more):
        _, says, _ = told(with_looks("notebook-sqlite-1", 1, change))
        assert says == "sleeps again and again in log_run, <ipython-input-2>:5"


def test_a_pipe_to_another_process_is_not_called_unread_by_the_parent() -> None:
    seen = recorded("convert-pipe-0")
    (child,) = (each for each in seen.hosts[0].members if each.helps is not None)

    def other(look: Look) -> Look:
        main, *others = look.threads
        ends = tuple("a pipe to process 4711 (tee)" for _ in main.asks)
        return replace(look, threads=(replace(main, asks=ends), *others))

    changed = replace(child, a=child.a and other(child.a), b=child.b and other(child.b))
    members = tuple(changed if each is child else each for each in seen.hosts[0].members)
    _, says, do = told(replace(seen, hosts=(replace(seen.hosts[0], members=members),)))
    assert "writes to a pipe to process 4711 (tee), which does not read it" in says
    assert do.startswith("end process 4711, or have it read")


@pytest.mark.parametrize("name", ["get", "keys"])
def test_another_question_to_a_manager_is_no_full_queue(name: str) -> None:
    def asks(look: Look) -> Look:
        main, *others = look.python
        frames = tuple(replace(each, name=name) if each.name == "put" else each for each in main.frames)
        return replace(look, python=(replace(main, frames=frames), *others))

    seen = recorded("manager-full-1")
    members = (
        replace(each, a=each.a and asks(each.a), b=each.b and asks(each.b)) for each in seen.hosts[0].members
    )
    _, says, _ = told(replace(seen, hosts=(replace(seen.hosts[0], members=tuple(members)),)))
    assert says.startswith("waits for another process to answer over /tmp/pymp")


@pytest.mark.parametrize(
    "source", ["reply = peer.recv(4096)", "row = self.feature_store.get(key)", "ckpt.restore.wait()"]
)
def test_an_answer_that_is_due_from_a_rank_is_no_key_if_the_line_asks_no_store(source: str) -> None:
    def asks(look: Look) -> Look:
        main, *others = look.python
        first, *rest = main.frames
        frames = (replace(first, source=source), *rest)
        return replace(look, python=(replace(main, frames=frames), *others))

    for rank in (1, 2):
        _, says, _ = told(with_looks("store-unset-0", rank, asks))
        assert ("waits for input; it is due from rank 0" in says) == (rank == 1)


def test_any_rank_may_set_a_key_and_not_only_the_one_that_holds_the_store() -> None:
    """Rank 0 holds the store and is in a collective; rank 2 prepares what rank 1 waits for."""

    def like(member: JobMember, other: JobMember) -> JobMember:
        def one(own: Look | None, its: Look | None) -> Look | None:
            if own is None or its is None:
                return own
            moved = {its.pid: own.pid}
            python = tuple(replace(each, tid=moved.get(each.tid, each.tid + 100_000)) for each in its.python)
            threads = tuple(
                replace(each, tid=moved.get(each.tid, each.tid + 100_000)) for each in its.threads
            )
            return replace(own, state=its.state, cpu=its.cpu, python=python, threads=threads)

        pairs = zip(member.between, other.between, strict=False)
        between = tuple(filter(None, (one(own, its) for own, its in pairs)))
        return replace(member, a=one(member.a, other.a), b=one(member.b, other.b), between=between)

    seen = recorded("healthy-store_one")
    host = seen.hosts[0]
    first, waits, last = sorted(host.members, key=lambda each: each.rank or 0)
    members = (like(first, last), waits, like(last, first))
    made, _, _ = told(replace(seen, hosts=(replace(host, members=members),)))
    assert made.verdict is HangState.UNKNOWN
    assert [each.rank for each in made.named] == [2]


def test_who_waits_for_a_key_is_not_accused_while_the_one_that_is_to_set_it_works() -> None:
    made, _, _ = told(recorded("healthy-store_one"))
    assert (made.verdict, [each.rank for each in made.suspects]) == (HangState.UNKNOWN, [0])
    made, _, do = told(recorded("loop-key0-0"))
    assert made.sentence == "Some ranks wait for a key of the store, and none is left to set it."
    assert do.startswith("find the line that sets the key awaited at train.py:44")


def test_a_send_beside_a_collective_is_a_skipped_collective() -> None:
    def barrier(look: Look) -> Look:
        main, *others = look.python
        frames = tuple(replace(e, name=e.name.replace("recv", "barrier")) for e in main.frames)
        return replace(look, python=(replace(main, frames=frames), *others))

    made, _, do = told(with_looks("stage-tag-1", 2, barrier))
    assert made.sentence == "The ranks wait in different collectives: one was skipped, added or reordered."
    assert do.startswith("compare the order of collectives")
    assert advice_of(made).next_time
    assert not advice_of(told(recorded("stage-tag-1"))[0]).next_time


@pytest.mark.parametrize("name", ["grid-sleep-3", "stage-tag-1", "fsdp-skip_block-1"])
def test_nobody_is_called_the_only_one_at_another_place_if_there_are_more_or_only_messages(name: str) -> None:
    """Without known steps, a line says nothing: the others may have gone around a loop."""
    made, says, advice = told(recorded(name))
    assert "all others" not in says or name == "fsdp-skip_block-1"
    assert "fewer" not in advice
    assert len(made.named) > 1 or made.exit_code == 1 or name == "fsdp-skip_block-1"


def at_line(step: int | None, line: int, name: str = "train") -> Callable[[Look], Look]:
    """Its innermost frame of the user's at another line, in this step."""

    def change(look: Look) -> Look:
        main = look.python[0]
        frames = tuple(
            replace(frame, line=line, name=name) if frame.name == "train" else frame for frame in main.frames
        )
        return replace(look, python=(replace(main, step=step, frames=frames), *look.python[1:]))

    return change


@pytest.mark.parametrize(
    ("step", "line", "name", "who"),
    [
        (20, 20, "train", "ranks 0, 2"),
        (20, 99, "train", "rank 1"),
        (19, 99, "train", "ranks 0, 2"),
        (None, 99, "train", None),
        (20, 99, "evaluate", None),
    ],
)
def test_who_is_further_has_made_a_collective_fewer(
    step: int | None, line: int, name: str, who: str | None
) -> None:
    made, _, advice = told(with_looks("loop-swap-1", 1, at_line(step, line, name)))
    assert [each.rank for each in made.named] == [1]
    begins = f"find out why {who} came past" if who else "compare the order of collectives at these lines"
    assert advice.startswith(begins)


def timed(look: Look) -> Look:
    return replace(look, timed=True)


def gate(look: Look) -> Look:
    main, *others = look.python
    first = replace(main.frames[0], source="STATE_LOCK.acquire()")
    return replace(look, python=(replace(main, frames=(first, *main.frames[1:])), *others))


@pytest.mark.parametrize(
    ("change", "code"),
    [(gate, 1), (timed, 1), (lambda look: gate(timed(look)), 3)],
    ids=["no", "with", "yes"],
)
def test_a_lock_that_the_handler_of_a_timer_may_release(change: Callable[[Look], Look], code: int) -> None:
    """A lock that a line of `with` took is released by that line alone."""
    made, says, _ = told(with_looks("handler-lock-2", 2, change))
    assert made.exit_code == code
    assert says.startswith("waits for a lock that no other Python thread of it is left to release")
    assert ("the handler of a timer may end that" in says) is (code == 3)


def test_who_holds_a_rank_by_tracing_it_is_named() -> None:
    made, says, advice = told(recorded("loop-gdb-2"))
    assert (says.partition(" in ")[0], advice) == (
        "is held by a debugger (state t)",
        "leave the debugger that holds rank 2",
    )
    by = "process 812 (py-spy)"
    again, says, advice = told(with_looks("loop-gdb-2", 2, lambda look: replace(look, tracer=by)))
    assert says.startswith(f"is held by {by}, which traces it (state t)")
    assert advice == f"leave or end {by}, which traces rank 2"
    assert made.exit_code == again.exit_code == 1


def pool_of(*stacks: tuple[tuple[str, str, str], ...]) -> Callable[[Look], Look]:
    """Threads of Python, each with its functions, files and lines, the first of them as the main one."""

    def change(look: Look) -> Look:
        made = (
            PythonThread(
                tid=look.pid + at,
                name="MainThread" if at == 0 else f"pool-{at}",
                frames=tuple(
                    Frame(name=name, file=file, line=9, source=source) for name, file, source in frames
                ),
            )
            for at, frames in enumerate(stacks)
        )
        return replace(look, python=tuple(made))

    return change


LIBRARY = "/usr/lib/python3.11/concurrent/futures/"
RESULT = ("result", f"{LIBRARY}_base.py", "self._condition.wait(timeout)")
TASK = (
    RESULT,
    ("outer", "/home/user/run/data.py", "pool.submit(inner).result()"),
    ("_worker", f"{LIBRARY}thread.py", ""),
)
MAIN = (RESULT, ("main", "/home/user/run/data.py", "pool.submit(outer).result()"))
AT_WORK = (("read", "/home/user/run/data.py", "return file.read()"), ("_worker", f"{LIBRARY}thread.py", ""))
LOOP = (("run", "/home/user/run/loop.py", "select(fds)"),)


@pytest.mark.parametrize(
    ("stacks", "nested"),
    [
        ((MAIN, TASK), True),
        ((MAIN, TASK, TASK), True),
        ((MAIN, TASK, AT_WORK), False),
        ((MAIN, TASK, LOOP), False),
    ],
)
def test_a_pool_whose_threads_wait_for_its_tasks(
    stacks: tuple[tuple[tuple[str, str, str], ...], ...], nested: bool
) -> None:
    _, says, advice = told(with_looks("handler-lock-2", 2, pool_of(*stacks)))
    assert says.startswith("waits for a task of a pool of threads") is nested, says
    assert advice.startswith("give the pool of rank 2") is nested


def with_pipe(waits: str, *asks: str) -> Callable[[Look], Look]:
    """A thread of it sleeps so in the function that takes the lock."""

    def change(look: Look) -> Look:
        main = look.python[0]
        thread = replace(look.threads[0], tid=99, waits=waits, asks=asks, syscall=("write", "0xb"))
        other = PythonThread(
            tid=99, name="beat", frames=(replace(main.frames[0], line=40, source="out.write(x)"),)
        )
        return replace(look, python=(main, other), threads=(*look.threads, thread))

    return change


@pytest.mark.parametrize(
    ("waits", "asks", "ends"),
    [
        (
            "pipe_write",
            ("a pipe to process 812 (tee)",),
            ", and writes to a pipe to process 812 (tee), which does not read it",
        ),
        ("pipe_write", (), "trainer.py:40"),
        ("unix_stream_read", ("a local socket",), "trainer.py:40"),
        ("hrtimer_nanosleep", (), "trainer.py:40"),
    ],
)
def test_what_the_thread_that_holds_a_lock_writes_to(waits: str, asks: tuple[str, ...], ends: str) -> None:
    _, says, advice = told(with_looks("handler-lock-2", 2, with_pipe(waits, *asks)))
    assert "which its thread beat may hold" in says
    assert says.endswith(ends)
    assert advice.startswith(
        "end process 812, or have it read"
        if "pipe" in waits and asks
        else "look at what that thread of rank 2"
    )


def elsewhere(look: Look) -> Look:
    """Its request went to another host, to whose port no child of it listens."""
    ends = (
        replace(end, peer=end.peer.replace("127.0.0.1:28999", "10.0.0.9:28999")) for end in look.connections
    )
    return replace(look, connections=tuple(ends))


def test_a_stopped_child_that_listens_is_not_the_answer_of_another_host() -> None:
    made, says, _ = told(with_looks("own_server-stop-1", 1, elsewhere))
    assert made.exit_code == 3
    assert "(stopped)" not in says


def test_ranks_of_one_place_in_different_steps_are_not_all_further() -> None:
    seen = with_looks("loop-swap-1", 1, at_line(20, 99))
    members = (
        replace(each, b=each.b and at_line(21, 45)(each.b)) if each.rank == 2 else each
        for each in seen.hosts[0].members
    )
    made, _, advice = told(replace(seen, hosts=(replace(seen.hosts[0], members=tuple(members)),)))
    assert [each.rank for each in made.named] == [1]
    assert advice.startswith("compare the order of collectives at these lines")


@pytest.mark.parametrize(("noticed", "messages", "odd"), [(0, 0, True), (1, 0, False), (0, 1, False)])
def test_messages_and_waits_for_a_device_do_not_show_who_is_at_another_place(
    noticed: int, messages: int, odd: bool
) -> None:
    """A device may be at an earlier line than its host, and each message has its own two ends."""
    seen = recorded("loop-swap-1")
    case = case_of(seen, find_jobs(seen)[0])
    calls = {each.key: ("send" if each.rank == 1 else "recv") for each in case.standings if messages}
    standings = (
        changed(each, noticed=bool(noticed), operation=calls.get(each.key, each.operation))
        for each in case.standings
    )
    found = decide(changed(case, standings=tuple(standings)), 1.0, unreached=False)
    assert any("all others" in each.sentence for each in found.named) is odd
