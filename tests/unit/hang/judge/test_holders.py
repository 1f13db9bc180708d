"""Who waits for what somebody holds: a lock on a file, a lock of a parent, a thread that does not end."""

import pytest
from msgspec.structs import replace

from doctor.hang.advice import advice_of
from doctor.hang.judge import judge
from doctor.hang.judge.activity import doing
from doctor.hang.judge.judgement import Cause
from doctor.hang.judge.leaving import forked_with_lock
from doctor.live.evidence import (
    FileLock,
    Frame,
    JobMember,
    LiveEvidence,
    LockHolder,
    Look,
    PythonThread,
    Thread,
)
from tests.support.hang.written import MAIN, at_last, evidence, with_main
from tests.unit.hang.judge.test_activity import seen
from tests.unit.hang.judge.test_work import did, kind

HOLDER = LockHolder(pid=9, user="root", command="python -c hold", age=41.0, state="S", cpu=5, moved=100)
HUB = FileLock(path="/hub.lock", kind="FLOCK", by="library", holders=(HOLDER,))
SQL = Frame(name="log_run", file="/srv/job/train.py", line=40, source="db.execute(INSERT, row)")
HERE = "process 9 (python -c hold, root, for 41 s)"


def locked(member: JobMember, lock: FileLock, before: FileLock | None = None) -> JobMember:
    assert member.a is not None
    assert member.b is not None
    first = (lock if before is None else before,)
    return replace(member, a=replace(member.a, locks=first), b=replace(member.b, locks=(lock,)))


class TestALockOnAFile:
    def test_names_its_holder(self) -> None:
        found = doing(locked(did(seen("hrtimer_nanosleep")), HUB), (), 2.0)
        assert (kind(found), found.cause) == ("stands", Cause.LOCK)
        assert found.words == f"waits for the lock /hub.lock, held by {HERE}"
        lines = replace(HOLDER, command="python -c\n  hold")
        assert (
            doing(locked(did(seen("hrtimer_nanosleep")), replace(HUB, holders=(lines,))), (), 2.0).words
            == found.words
        )
        by_kernel = doing(locked(seen("locks_lock_inode_wait"), replace(HUB, by="kernel")), (), 2.0)
        assert (kind(by_kernel), by_kernel.certain, by_kernel.words) == ("stands", True, found.words)

    def test_by_the_kernel_stack_where_it_ran_at_the_other_question(self) -> None:
        tries = at_last(
            locked(did(seen("hrtimer_nanosleep")), HUB),
            lambda look: replace(with_main(look, state="R", waits=""), kernel=("hrtimer_nanosleep",)),
        )
        assert doing(tries, (), 2.0).cause is Cause.LOCK

    @pytest.mark.parametrize(
        ("now", "why"),
        [
            (replace(HOLDER, moved=5_000), "reads or writes"),
            (replace(HOLDER, cpu=160), "computes"),
            (replace(HOLDER, moved=None), "what that does may not be seen"),
        ],
    )
    def test_of_one_that_may_release_it(self, now: LockHolder, why: str) -> None:
        lock = replace(HUB, holders=(now,))
        found = doing(locked(did(seen("hrtimer_nanosleep")), lock, HUB), (), 2.0)
        assert (kind(found), found.words.endswith(why)) == ("unproved", True), found.words

    def test_that_goes_from_hand_to_hand(self) -> None:
        other = replace(HUB, holders=(replace(HOLDER, pid=10),))
        assert kind(doing(locked(did(seen("hrtimer_nanosleep")), HUB, other), (), 2.0)) == "unproved"
        assert (
            kind(doing(locked(did(seen("hrtimer_nanosleep")), HUB, replace(HUB, holders=())), (), 2.0))
            == "unproved"
        )

    def test_that_it_holds_itself(self) -> None:
        own = replace(HUB, by="kernel", holders=(replace(HOLDER, pid=7),))
        assert doing(locked(seen("locks_lock_inode_wait"), own), (), 2.0).words.endswith("held by itself")

    def test_that_nobody_holds_here(self) -> None:
        far = doing(locked(seen("locks_lock_inode_wait"), replace(HUB, by="kernel", holders=())), (), 2.0)
        assert "held by no process that can be seen here" in far.words
        left = doing(locked(did(seen("hrtimer_nanosleep")), replace(HUB, kind="", holders=())), (), 2.0)
        assert left.words == "waits for the file /hub.lock to go: no process of this host has it open"
        own = doing(
            locked(did(seen("hrtimer_nanosleep")), replace(HUB, kind="", by="own", holders=())), (), 2.0
        )
        assert own.words.startswith("sleeps again and again while the file /hub.lock exists: no process")

    def test_whose_name_it_has_while_it_sleeps_for_long(self) -> None:
        assert doing(locked(seen("hrtimer_nanosleep"), HUB), (), 2.0).cause is Cause.SLEEPS

    def test_of_a_file_that_is_only_open_counts_for_a_database(self) -> None:
        lock = replace(HUB, by="open")
        asks = locked(did(seen("hrtimer_nanosleep", stack=(SQL, MAIN))), lock)
        assert doing(asks, (), 2.0).cause is Cause.LOCK
        assert doing(locked(did(seen("hrtimer_nanosleep")), lock), (), 2.0).cause is Cause.SLEEPS

    def test_whose_name_it_has_while_it_computes(self) -> None:
        found = doing(locked(seen(state="R", cpu=(10, 200)), HUB), (), 2.0)
        assert (kind(found), found.cause) == ("unproved", Cause.COMPUTES)


def held_by(pid: int, holds: str) -> LiveEvidence:
    """Rank 1 waits for a lock of the process with this PID; rank 2 does what `holds` says."""
    made = evidence(["waits", "sleeps", holds], hosts=["node1"])
    lock = replace(HUB, holders=(replace(HOLDER, pid=pid),))
    members = tuple(did(locked(m, lock)) if m.rank == 1 else m for m in made.hosts[0].members)
    return replace(made, hosts=(replace(made.hosts[0], members=members),))


def test_the_holder_is_named_if_it_is_a_rank_that_is_outside_as_well() -> None:
    assert [each.rank for each in judge(held_by(4020, "sleeps")).culprits] == [2]
    assert [each.rank for each in judge(held_by(9, "sleeps")).culprits] == [1, 2]


def test_what_saves_the_job_comes_before_what_ends_it() -> None:
    commands = advice_of(judge(held_by(9, "waits"))).commands
    assert [each.partition("    # ")[2] for each in commands[-2:]] == [
        "ends the process that holds the lock",
        "or, to give up: ends the job, with an error in its log",
    ]


def test_what_ends_a_job_stands_alone_if_nothing_saves_it() -> None:
    commands = advice_of(judge(evidence(["waits", "sleeps"], hosts=["node1"]))).commands
    assert commands[-1].endswith("    # ends the job, with an error in its log")


def test_a_holder_is_named_with_its_whole_path() -> None:
    command = "/bin/bash /srv/training/llama/cache/backup/cache_backup.sh --every-hour --to /backup/train"
    held = replace(HUB, holders=(replace(HOLDER, command=command),))
    assert command in doing(locked(did(seen("hrtimer_nanosleep")), held), (), 2.0).words


def test_where_the_holder_is_if_it_waits_for_all() -> None:
    found = judge(held_by(4020, "waits"))
    (culprit,) = found.culprits
    assert culprit.rank == 1
    assert culprit.sentence.endswith("; that is rank 2, which waits in all_reduce, train.py:88")
    assert not any("kill 4020 " in each for each in advice_of(found).commands)


class TestALockHeldOverAFork:
    @staticmethod
    def child(
        *, op: str = "0x189", limit: str = "0x0", more: int = 0, command: str = "python train.py"
    ) -> JobMember:
        made = seen("futex_do_wait", pid=9, helps=7)
        assert made.b is not None
        main = replace(made.b.threads[0], syscall=("futex", "0x1", op, "0x0", limit))
        others = tuple(Thread(tid=10 + n, name="python", state="S") for n in range(more))
        a, b = (replace(look, threads=(main, *others)) for look in (made.a, made.b) if look)
        return replace(made, a=a, b=b, command=command)

    def test_is_proved_by_the_only_thread(self) -> None:
        parent = replace(seen("do_wait"), command="python train.py")
        assert forked_with_lock(self.child(), parent)
        found = doing(parent, [self.child()], 2.0)
        assert (kind(found), found.cause) == ("stands", Cause.FORK)
        assert found.words.startswith(
            "waits for its child 9, which waits for a lock that none of its threads holds"
        )

    @pytest.mark.parametrize(
        "child",
        [
            pytest.param({"op": "0x109"}, id="a lock of several processes"),
            pytest.param({"limit": "0x7f00"}, id="a wait that ends"),
            pytest.param({"more": 1}, id="another thread may release it"),
            pytest.param({"command": "python other.py"}, id="another program"),
        ],
    )
    def test_is_not_claimed_of_others(self, child: dict[str, str]) -> None:
        parent = replace(seen("do_wait"), command="python train.py")
        assert not forked_with_lock(self.child(**child), parent)  # type: ignore[arg-type]
        assert doing(parent, [self.child(**child)], 2.0).cause is Cause.CHILD  # type: ignore[arg-type]


class TestARankThatLeft:
    OVER = Frame(name="_shutdown", file="/usr/lib/python3.11/threading.py", line=1590)
    NAP = Frame(name="nap", file="/srv/job/train.py", line=22)
    REDUCE = Frame(name="all_reduce", file="/opt/lib/python3.11/site-packages/torch/distributed/x.py", line=1)

    def left(self, *frames: Frame) -> JobMember:
        made = seen("futex_do_wait", stack=(self.OVER,))

        def look(each: Look | None) -> Look | None:
            other = PythonThread(tid=8, name="Thread-3", frames=frames)
            return each and replace(each, python=(*each.python, other))

        return replace(made, a=look(made.a), b=look(made.b))

    def test_may_train_in_that_thread(self) -> None:
        assert kind(doing(self.left(self.REDUCE, self.NAP), (), 2.0)) == "unproved"

    def test_is_not_accused_while_it_does_something(self) -> None:
        found = doing(did(self.left(self.NAP), bytes_moved=10_000_000), (), 2.0)
        assert (kind(found), found.cause) == ("unproved", Cause.LEFT)

    def test_is_kept_by_a_child(self) -> None:
        leave = Frame(name="_exit_function", file="/usr/lib/python3.11/multiprocessing/util.py", line=360)
        child = seen("hrtimer_nanosleep", pid=9, helps=7)
        found = doing(seen("do_wait", stack=(leave,)), [child], 2.0)
        assert (kind(found), found.cause) == ("stands", Cause.LEFT)
        assert "cannot exit: it waits for its child 9, which sleeps" in found.words


def test_all_ranks_that_wait_for_one_lock_accuse_its_holder_by_name_alone() -> None:
    seen_all = evidence(["sleeps", "sleeps"], ["node1"])
    (host,) = seen_all.hosts
    waits = [locked(did(member), HUB) for member in host.members]
    found = judge(replace(seen_all, hosts=(replace(host, members=tuple(waits)),)))
    assert (found.exit_code, found.named) == (3, ())
    assert (
        found.sentence
        == f"No rank was seen in a collective: each waits for the lock /hub.lock, held by {HERE}."
    )
    assert advice_of(found).do[0] == "if nobody needs process 9 any more, end it: it holds the lock /hub.lock"
