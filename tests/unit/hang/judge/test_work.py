"""Work is not a hang: what a process gets done between the looks, and what only looks like work."""

import pytest
from msgspec.structs import replace

from doctor.hang.judge.activity import doing
from doctor.hang.judge.judgement import Activity, Cause
from doctor.hang.judge.progress import ends_of_ranks
from doctor.live.evidence import Connection, Frame, JobMember, Look, PythonThread, Thread
from tests.support.hang.written import MAIN, at_last, looked, with_main
from tests.unit.hang.judge.test_activity import seen

WIRE = Connection(state="ESTAB", local="10.0.0.1:50000", peer="10.0.9.9:443", received=100, acknowledged=100)
ASKED = replace(WIRE, last_sent=70_000, last_received=70_500)
ANSWERED = replace(WIRE, last_sent=70_500, last_received=70_000)
READ = Frame(name="read_shard", file="/srv/job/data.py", line=30)
SSL = Frame(name="read", file="/usr/lib/python3.11/ssl.py", line=1167)
WAITS = ["hrtimer_nanosleep", "futex_do_wait", "poll_schedule_timeout", "anon_pipe_read", "do_wait"]


def did(member: JobMember, *, woken: bool = True, **changes: object) -> JobMember:
    """The member, with these differences between its first and second look."""
    return at_last(
        member, lambda each: replace(with_main(each, switches=each.threads[0].switches + woken), **changes)
    )


def wired(member: JobMember, *wires: Connection, before: tuple[Connection, ...] | None = None) -> JobMember:
    assert member.a is not None
    assert member.b is not None
    a = replace(member.a, connections=wires if before is None else before)
    return replace(member, a=a, b=replace(member.b, connections=wires))


def asks(member: JobMember, tid: int, name: str = "python") -> JobMember:
    """The member, one of whose threads polls a socket of Unix."""

    def asking(each: Look | None) -> Look | None:
        rest = tuple(thread for thread in each.threads if thread.tid != tid) if each else ()
        one = next((thread for thread in each.threads if thread.tid == tid), None) if each else None
        asks = replace(one or Thread(tid=tid, name=name, state="S"), asks=("/run/judge.sock",))
        first, last = ((asks,), rest) if one else (rest, (asks,))
        return replace(each, threads=(*first, *last)) if each else None

    return replace(member, a=asking(member.a), b=asking(member.b))


def kind(found: Activity) -> str:
    return "works" if found.works else "unproved" if found.unproved else "stands"


@pytest.mark.parametrize("waits", WAITS)
class TestWhateverItWaitsForAtTheMoment:
    def test_who_did_nothing_stands_still(self, waits: str) -> None:
        assert kind(doing(seen(waits), (), 2.0)) == "stands"

    def test_much_data_is_work(self, waits: str) -> None:
        assert kind(doing(did(seen(waits), bytes_moved=100_000), (), 2.0)) == "works"
        assert kind(doing(did(seen(waits), disk=100_000), (), 2.0)) == "works"

    def test_small_reads_of_a_file_are_work(self, waits: str) -> None:
        reads = did(seen(waits), bytes_moved=8192, calls=2, positions=("3 77 8192",))
        assert kind(doing(reads, (), 2.0)) == "works"

    def test_calls_that_lead_nowhere_prove_nothing(self, waits: str) -> None:
        """As of a process that reads the same file again and again until somebody writes it."""
        assert kind(doing(did(seen(waits), calls=2), (), 2.0)) == "unproved"

    def test_an_upload_is_work(self, waits: str) -> None:
        for sent in (replace(WIRE, acknowledged=10_000_000), replace(WIRE, received=10_000_000)):
            found = doing(wired(seen(waits), sent, before=(WIRE,)), (), 2.0)
            assert kind(found) == "works"
            assert found.words == "sends or receives data over the network: 10 MB in 2 s"

    def test_a_new_connection_counts_with_all_its_bytes(self, waits: str) -> None:
        new = replace(WIRE, local="10.0.0.1:50001", acknowledged=200_000)
        assert kind(doing(wired(seen(waits), new, before=()), (), 2.0)) == "works"

    def test_what_goes_between_ranks_is_no_work(self, waits: str) -> None:
        peer = wired(seen("", pid=8), replace(WIRE, local=WIRE.peer, peer=WIRE.local))
        moved = wired(seen(waits), replace(WIRE, acknowledged=10_000_000), before=(WIRE,))
        assert kind(doing(moved, (), 2.0, ends_of_ranks([peer]))) == "stands"
        master = replace(seen(""), master="10.0.9.9:443")
        assert kind(doing(moved, (), 2.0, ends_of_ranks([master]))) == "stands"

    def test_another_line_is_not_proved_to_stand(self, waits: str) -> None:
        member = seen(waits)
        assert member.a is not None
        other = replace(member.a, python=(PythonThread(tid=7, frames=(READ, MAIN)),))
        assert kind(doing(replace(member, between=(other,)), (), 2.0)) == "unproved"


class TestLogsAndHeartbeats:
    """Those of another thread, while the main thread stands still, excuse no rank."""

    @pytest.mark.parametrize("waits", WAITS)
    def test_of_another_thread(self, waits: str) -> None:
        beats = wired(
            did(seen(waits), woken=False, bytes_moved=300, positions=("3 77 200",)),
            replace(ANSWERED, acknowledged=300),
            before=(WIRE,),
        )
        assert kind(doing(beats, (), 2.0)) == "stands"

    def test_slow_transfers_of_one_that_is_woken_look_like_it(self) -> None:
        slow = wired(did(seen("hrtimer_nanosleep")), replace(WIRE, acknowledged=20_000), before=(WIRE,))
        assert kind(doing(slow, (), 2.0)) == "unproved"
        beats = wired(seen("hrtimer_nanosleep"), replace(WIRE, acknowledged=20_000), before=(WIRE,))
        assert kind(doing(beats, (), 2.0)) == "stands"


class TestAnAnswerThatIsDue:
    @pytest.mark.parametrize("waits", ["wait_woken", "sk_wait", "poll_schedule_timeout", "do_epoll_wait"])
    def test_may_still_come(self, waits: str) -> None:
        found = doing(wired(seen(waits), ASKED), (), 2.0)
        assert kind(found) == "unproved"
        assert "10.0.9.9:443" in found.words

    def test_a_first_request_is_as_old_as_its_connection(self) -> None:
        first = replace(ASKED, last_received=ASKED.last_sent, received=0, acknowledged=151)
        assert kind(doing(wired(seen("poll_schedule_timeout", stack=()), first), (), 2.0)) == "unproved"
        opened = replace(first, acknowledged=1)
        assert kind(doing(wired(seen("poll_schedule_timeout"), opened), (), 2.0)) == "stands"

    def test_of_a_program_without_a_stack(self) -> None:
        """ssh, or curl with TLS: the other end spoke last and is silent while it works."""
        program = seen("poll_schedule_timeout", stack=(), pid=9, helps=7)
        assert kind(doing(seen("do_wait"), [wired(program, ANSWERED)], 2.0)) == "unproved"
        assert kind(doing(seen("do_wait"), [program], 2.0)) == "stands"

    def test_to_another_thread(self) -> None:
        """A thread of a pool, while the main thread waits for its result. A thread that only sends expects no
        answer.
        """
        asks = PythonThread(tid=8, frames=(SSL, MAIN))
        over_tls = wired(seen("futex_do_wait", others=(asks,)), ANSWERED)
        assert kind(doing(over_tls, (), 2.0)) == "unproved"
        idles = PythonThread(tid=8, frames=(replace(SSL, file="/usr/lib/python3.11/asyncio/events.py"), MAIN))
        assert kind(doing(wired(seen("futex_do_wait", others=(idles,)), ANSWERED), (), 2.0)) == "stands"
        sends = PythonThread(tid=8, frames=(READ, MAIN))
        assert kind(doing(wired(seen("futex_do_wait", others=(asks,)), ASKED), (), 2.0)) == "unproved"
        assert kind(doing(wired(seen("futex_do_wait", others=(sends,)), ASKED), (), 2.0)) == "stands"

    def test_of_a_local_process(self) -> None:
        """Over a socket of Unix, as ZeroMQ's."""
        zmq = Frame(name="poll", file="/opt/venv/lib/python3.11/site-packages/zmq/sugar/poll.py", line=106)
        assert kind(doing(seen("poll_schedule_timeout", stack=(zmq, MAIN)), (), 2.0)) == "unproved"
        loop = Frame(name="_run_once", file="/usr/lib/python3.11/asyncio/base_events.py", line=1898)
        assert kind(doing(seen("do_epoll_wait", stack=(loop, MAIN)), (), 2.0)) == "stands"

    def test_of_a_local_process_to_a_loop(self) -> None:
        """A loop of asyncio polls whatever it waits for; if it polls nobody, nothing will wake it."""
        loop = Frame(name="_run_once", file="/usr/lib/python3.11/asyncio/base_events.py", line=1898)
        rows = [("do_epoll_wait", stack) for stack in ((loop, MAIN), (MAIN,), ())]
        for waits, stack in (*rows, ("anon_pipe_read", (MAIN,))):
            found = doing(asks(seen(waits, stack=stack), 7), (), 2.0)
            assert (kind(found), found.words) == (
                "unproved",
                "waits for another process to answer over /run/judge.sock",
            )

    def test_of_a_local_process_to_a_loop_in_a_thread(self) -> None:
        loop = Frame(name="_run_once", file="/usr/lib/python3.11/asyncio/base_events.py", line=1898)
        inner = Frame(name="_worker", file="/usr/lib/python3.11/concurrent/futures/thread.py", line=83)
        receive = Frame(name="readinto", file="/usr/lib/python3.11/socket.py", line=706)
        runs, idles = PythonThread(tid=8, frames=(loop, MAIN)), PythonThread(tid=8, frames=(READ,))
        for waits, stack, other, wanted in (
            ("futex_do_wait", (MAIN,), runs, "unproved"),
            ("futex_do_wait", (MAIN,), idles, "stands"),
            ("hrtimer_nanosleep", (MAIN,), runs, "stands"),
        ):
            rank = seen(waits, stack=stack, others=(other,))
            assert kind(doing(asks(rank, 8), (), 2.0)) == wanted
            assert kind(doing(rank, (), 2.0)) == "stands"
        assert kind(doing(asks(seen("futex_do_wait", stack=()), 8), (), 2.0)) == "unproved"
        assert kind(doing(asks(seen("futex_do_wait", stack=()), 8, "worker.io"), (), 2.0)) == "stands"
        in_pool = PythonThread(tid=8, frames=(receive, READ, inner))
        rank = seen("do_epoll_wait", stack=(loop, MAIN), others=(in_pool,))
        assert kind(doing(rank, (), 2.0)) == "unproved"

    def test_of_a_local_process_to_a_thread_without_a_stack(self) -> None:
        for waits, name, wanted in (
            ("unix_stream_read_generic", "python", "unproved"),
            ("sk_wait_data", "python", "unproved"),
            ("ep_poll", "python", "stands"),
            ("sk_wait_data", "gloo_tcp_loop", "stands"),
        ):
            rank = seen("futex_do_wait", stack=())
            other = Thread(tid=8, name=name, state="S", waits=waits)
            rank = looked(rank, lambda each, other=other: replace(each, threads=(*each.threads, other)))  # type: ignore[misc]
            assert kind(doing(rank, (), 2.0)) == wanted

    def test_of_a_local_process_to_a_pool(self) -> None:
        pool = Frame(name="_worker", file="/usr/lib/python3.11/concurrent/futures/thread.py", line=83)
        result = Frame(name="result", file="/usr/lib/python3.11/concurrent/futures/_base.py", line=451)
        receive = Frame(name="readinto", file="/usr/lib/python3.11/socket.py", line=706)
        asks = PythonThread(tid=8, frames=(receive, READ, pool))
        waits = seen("futex_do_wait", stack=(result, MAIN), others=(asks,))
        assert kind(doing(waits, (), 2.0)) == "unproved"
        listens = PythonThread(tid=8, frames=(receive, READ))
        for stack, other in (((MAIN,), asks), ((result, MAIN), listens)):
            assert kind(doing(seen("futex_do_wait", stack=stack, others=(other,)), (), 2.0)) == "stands"

    def test_an_idle_connection_is_no_question(self) -> None:
        assert kind(doing(wired(seen("futex_do_wait"), ANSWERED), (), 2.0)) == "stands"
        assert kind(doing(wired(seen("poll_schedule_timeout"), ANSWERED), (), 2.0)) == "stands"
        reads = wired(seen("poll_schedule_timeout", stack=(SSL, MAIN)), ANSWERED)
        assert kind(doing(reads, (), 2.0)) == "unproved"

    def test_does_not_come_over_a_cut_connection(self) -> None:
        found = doing(wired(seen("wait_woken"), replace(ASKED, unacknowledged=1, backoff=4)), (), 2.0)
        assert (kind(found), found.cause) == ("stands", Cause.INPUT)
        assert found.words.endswith("what is sent there is never acknowledged")

    def test_is_not_expected_for_ever(self) -> None:
        """As from a connection whose other end disappeared without closing it."""
        for ask, wanted in ((599_000, "unproved"), (601_000, "stands")):
            wire = replace(ASKED, last_sent=ask, last_received=ask + 500)
            assert kind(doing(wired(seen("wait_woken"), wire), (), 2.0)) == wanted

    def test_of_another_worker(self) -> None:
        get = Frame(name="get", file="/opt/venv/lib/python3.11/site-packages/ray/_private/worker.py", line=9)
        assert kind(doing(seen("futex_do_wait", stack=(get, MAIN)), (), 2.0)) == "unproved"

    def test_of_a_child(self) -> None:
        child = wired(seen("poll_schedule_timeout", pid=9, helps=7, stack=()), ASKED)
        found = doing(seen("do_wait"), [child], 2.0)
        assert (kind(found), found.cause) == ("unproved", Cause.CHILD)
        locked = doing(seen("futex_do_wait"), [child], 2.0)
        assert kind(locked) == "stands", "a service of the job that waits for it itself"


class TestThreads:
    def members(self, waits: str, *, used: int = 0, moves: bool = False) -> JobMember:
        """A member with a second Python thread."""
        member = seen(waits)
        assert member.a is not None
        assert member.b is not None
        other = PythonThread(tid=8, frames=(READ, MAIN))
        last = replace(other, frames=(replace(READ, line=31 if moves else 30), MAIN))
        thread = Thread(tid=8, name="python", state="S")
        a = replace(member.a, threads=(*member.a.threads, thread), python=(*member.a.python, other))
        threads = (*member.b.threads, replace(thread, cpu=used))
        b = replace(member.b, cpu=member.b.cpu + used, threads=threads, python=(*member.b.python, last))
        return replace(member, a=a, b=b)

    def test_that_stand_still_excuse_nobody(self) -> None:
        assert kind(doing(self.members("futex_do_wait"), (), 2.0)) == "stands"

    @pytest.mark.parametrize("waits", ["futex_do_wait", "hrtimer_nanosleep"])
    def test_that_go_on(self, waits: str) -> None:
        assert kind(doing(self.members(waits, moves=True), (), 2.0)) == "unproved"
        assert kind(doing(self.members(waits, used=150), (), 2.0)) == "unproved"

    def test_of_libraries_that_spin_excuse_no_sleeper(self) -> None:
        """NCCL's threads wait in that way."""
        member = seen("hrtimer_nanosleep", cpu=(0, 200))
        assert doing(member, (), 2.0).cause is Cause.SLEEPS
        assert kind(doing(member, (), 2.0)) == "stands"


class TestChildren:
    @pytest.mark.parametrize("waits", ["do_wait", "futex_do_wait", "hrtimer_nanosleep", "anon_pipe_read"])
    def test_a_python_child_that_uploads(self, waits: str) -> None:
        send = Frame(name="send_all", file="/srv/job/upload.py", line=4)
        child = seen("hrtimer_nanosleep", pid=9, helps=7, stack=(send, MAIN))
        child = wired(child, replace(WIRE, acknowledged=5_000_000), before=(WIRE,))
        found = doing(did(seen(waits)), [child], 2.0)
        assert (kind(found), found.cause) == ("works", Cause.CHILD)
        assert found.words.startswith("waits for its child 9, which sends or receives data")

    def test_an_idle_child_excuses_nobody(self) -> None:
        child = seen("anon_pipe_read", pid=9, helps=7)
        assert kind(doing(seen("do_wait"), [child], 2.0)) == "stands"

    def test_who_sleeps_for_long_waits_for_no_child(self) -> None:
        child = seen("", state="R", cpu=(0, 150), pid=9, helps=7)
        assert kind(doing(seen("hrtimer_nanosleep"), [child], 2.0)) == "stands"
        assert kind(doing(did(seen("hrtimer_nanosleep")), [child], 2.0)) == "unproved"


def test_a_computation_is_never_proved_to_be_endless() -> None:
    spins = seen(state="R", cpu=(10, 200))
    assert spins.a is not None
    many = doing(replace(spins, between=(spins.a,) * 5), (), 2.0)
    assert (kind(many), many.words) == ("unproved", "computes, at the same line in 7 looks")
    bare = doing(seen(state="R", cpu=(10, 200), stack=()), (), 2.0)
    assert (kind(bare), bare.words) == ("unproved", "computes")
    steps = seen(state="R", cpu=(10, 200))
    assert steps.b is not None
    counts = replace(steps, b=replace(steps.b, python=(replace(steps.b.python[0], step=9),)))
    assert kind(doing(counts, (), 2.0)) == "unproved", "a loop that has no end counts, too"


def test_one_that_tries_again_may_run_in_one_of_the_looks() -> None:
    member = did(seen("hrtimer_nanosleep"))
    runs = at_last(member, lambda each: replace(with_main(each, waits=""), state="R"))
    for each in (member, runs):
        found = doing(each, (), 2.0)
        assert (found.cause, kind(found), found.words) == (Cause.SLEEPS, "stands", "sleeps again and again")


def test_storage_that_answers_now_and_then() -> None:
    slow = seen("folio_wait_bit_common", state="D")
    assert kind(doing(slow, (), 2.0)) == "stands"
    assert kind(doing(did(slow), (), 2.0)) == "unproved"


@pytest.mark.parametrize("waits", ["jbd2_log_wait_commit", "balance_dirty_pages", "folio_wait_writeback"])
def test_a_disk_that_writes_what_was_written_before(waits: str) -> None:
    """One such wait may be as long as the whole checkpoint."""
    assert kind(doing(seen(waits, state="D"), (), 2.0)) == "unproved"
    assert kind(doing(seen(waits, state="D", kernel=("nfs_file_fsync",)), (), 2.0)) == "stands"


def test_one_that_was_seen_running_is_not_proved_to_stand() -> None:
    member = seen("")
    assert kind(doing(member, (), 2.0)) == "stands"
    assert member.a is not None
    runs = replace(member, a=replace(member.a, state="R"))
    assert kind(doing(runs, (), 2.0)) == "unproved"


def test_an_import_that_reads_slowly() -> None:
    load = Frame(name="_find_and_load", file="<frozen importlib._bootstrap>", line=1176)
    assert kind(doing(seen("folio_wait_bit", stack=(load, MAIN)), (), 2.0)) == "stands"
    reads = did(seen("folio_wait_bit", stack=(load, MAIN)), calls=3)
    assert kind(doing(reads, (), 2.0)) == "unproved"
