"""What must not accuse anybody: advice, noise of healthy runs, clocks, and faults that the job survived."""

from dataclasses import replace

from doctor.logs.judge import conclude
from doctor.logs.model import Form, LogCause, LogFile, LogLine, LogOutcome, Logs, Party, Role
from doctor.model import Confidence
from tests.support.logs import endings as e
from tests.support.logs.written import Entry, File, logs, symptom

RETRY = symptom("torch-retry", title="the head was asked again", needs="repeated")
LAST = symptom("nccl-async", Role.ROOT, "an event", needs="last")


def steps(first: int, number: int) -> list[Entry]:
    return [
        Entry(10.0 * n, f"step {n}", form=Form.PLAIN, progress=True) for n in range(first, first + number)
    ]


def test_nothing_read_is_not_healthy() -> None:
    assert conclude(Logs()).outcome is LogOutcome.UNKNOWN
    assert conclude(Logs((LogFile("a.log"),))).outcome is LogOutcome.UNKNOWN


def test_a_file_that_could_not_be_read_is_not_healthy() -> None:
    found = conclude(Logs((LogFile("a.gz", lines=3, problem="damaged archive"),)))
    assert found.outcome is LogOutcome.UNKNOWN
    assert "a.gz was not read to its end: damaged archive" in found.open


def test_healthy_logs_are_clean() -> None:
    found = conclude(logs(e.rank(n) for n in range(4)))
    assert (found.outcome, found.charges, found.odd) == (LogOutcome.CLEAN, (), ())
    assert found.read == "4 files of 4 ranks on node[1-2], 12 lines"


def test_odd_lines_are_shown_and_nobody_is_guessed() -> None:
    odd = Entry(50, "ERROR: the frobnicator is out of oil", form=Form.PLAIN, odd=True)
    found = conclude(logs([e.rank(0, odd), e.rank(1)]))
    assert (found.outcome, found.charges) == (LogOutcome.UNKNOWN, ())
    assert [line.text for line in found.odd] == [odd.text]


def test_advice_is_no_evidence() -> None:
    said = Entry(50, "CUDA kernel errors might be asynchronously reported", e.ADVICE)
    assert conclude(logs([e.rank(0, said)])).outcome is LogOutcome.CLEAN


def test_a_retry_that_succeeded_is_no_fault() -> None:
    tries = [
        Entry(at, "TCP client failed to connect/validate to host node1:29500 - retrying", RETRY)
        for at in (1, 2)
    ]
    file = File("rank-1.log", (*tries, *steps(1, 3)), Party(rank=1, host="node1"), 2)
    found = conclude(logs([file, e.rank(0)]))
    assert (found.outcome, found.charges) == (LogOutcome.CLEAN, ())
    assert found.open == ("2 lines complain, and the job went on after that: left out",)


def test_once_is_not_repeated() -> None:
    one = Entry(1, "TCP client failed to connect/validate to host node1:29500 - retrying", RETRY)
    rest = [Entry(2, f"line {n}", form=Form.PLAIN) for n in range(9)]
    assert conclude(logs([File("rank-1.log", (one, *rest), Party(rank=1))])).outcome is LogOutcome.CLEAN
    assert conclude(logs([File("rank-1.log", (one,), Party(rank=1))])).outcome is LogOutcome.UNKNOWN


def test_what_needs_to_be_last_does_not_count_far_from_the_end() -> None:
    event = Entry(1, "NET/IB : mlx5_0:1: Got non-fatal async event: port error", LAST, Form.NCCL)
    rest = [Entry(1000, f"line {n}", form=Form.PLAIN) for n in range(300)]
    assert conclude(logs([File("a.log", (event, *rest), Party(rank=0))])).outcome is LogOutcome.CLEAN
    found = conclude(logs([File("a.log", (event,), Party(rank=0))]))
    assert found.outcome is LogOutcome.NAMED


def test_a_lost_connection_after_which_the_job_went_on_is_no_fault() -> None:
    lost = Entry(5, "Connection closed by peer [10.0.0.2]:1", e.CLOSED)
    file = File("rank-0.log", (lost, *steps(1, 3)), Party(rank=0, host="node1"))
    assert conclude(logs([file])).outcome is LogOutcome.CLEAN


def test_consequences_alone_name_nobody() -> None:
    found = conclude(logs([e.rank(0, *e.closed(40)(0))]))
    assert found.outcome is LogOutcome.NAMED  # of a known fault, which checks can show
    assert found.charges[0].role is Role.CONSEQUENCE
    assert found.charges[0].who == ()
    assert found.charges[0].confidence is Confidence.SUSPECT
    assert found.open == ("no log of ranks 1-3 was given: they may have ended first",)


def test_a_missing_log_is_a_question_and_no_charge() -> None:
    found = conclude(logs(e.others(e.recv(1840))))
    assert not {party.rank for charge in found.charges for party in charge.who if charge.because is None}
    assert "no log of rank 2 was given: the one without a time-out is the one to look at" in found.open


def test_the_clock_of_a_host_makes_nobody_the_latest() -> None:
    """All ranks waited, and nothing connects the clocks of the two hosts."""
    files = [
        File(f"rank-{n}.log", tuple(e.notify(100 if n < 2 else 4000)(n)), Party(rank=n, host=e.HOSTS[n]), 4)
        for n in range(4)
    ]
    found = conclude(logs(files))
    assert found.charges[0].who == ()
    assert found.charges[0].role is Role.CONSEQUENCE


def test_steps_that_all_logged_connect_the_clocks() -> None:
    found = conclude(logs([e.rank(0, *e.closed(40)(0)), e.rank(2)]))
    assert not any("clock" in each for each in found.open)


def test_the_kernel_killed_another_program_long_before() -> None:
    job = [e.rank(n, *e.closed(40)(n)) for n in (0, 1)] + [e.rank(2), e.rank(3)]
    old = e.kernel("node2", e.oom(-90_000, pid=7))
    assert all(charge.symptom != "kernel-oom" for charge in conclude(logs([*job, old])).charges)


def test_the_kernel_killed_something_that_the_job_never_missed() -> None:
    """It happened while the job, which was later told to end, was running."""
    told = e.torchrun("node2", e.exits(41, 2, -15), e.exits(41, 3, -15))
    kernel = e.kernel("node2", e.oom(30, pid=7))
    alone, beside = conclude(logs([kernel])), conclude(logs([e.rank(2), e.rank(3), told, kernel]))
    assert any(charge.symptom == "kernel-oom" for charge in alone.charges)
    assert all(charge.symptom != "kernel-oom" for charge in beside.charges)


def test_a_kill_after_sigterm_is_the_launchers() -> None:
    """Rank 3 did not end at SIGTERM, so torchrun killed it; rank 2 raised."""
    trace = Entry(40, "KeyError: 'loss'", form=Form.PYTHON, odd=True)
    stop = e.exits(41, 3, -15)
    files = [
        *e.others(e.closed(40)),
        e.rank(2, trace),
        e.torchrun("node2", e.exits(41, 2, 1), stop, e.exits(71, 3, -9)),
    ]
    found = conclude(logs(files))
    assert [party.rank for party in found.charges[0].who] == [2]
    assert found.charges[0].symptom is None
    assert "KeyError: 'loss'" in found.charges[0].says


def curve(confidence: Confidence = Confidence.STRONG) -> LogCause:
    line = LogLine("rank-1.log", 3, "step 2 loss nan")
    return LogCause(
        "loss-nan",
        "rank 1: the loss is NaN since step 2",
        (Party(rank=1),),
        lines=(line,),
        confidence=confidence,
    )


def test_a_curve_is_a_cause_where_nothing_crashed() -> None:
    found = conclude(logs(e.rank(n) for n in range(4)), from_curves=[curve()])
    assert (found.outcome, found.charges[0].symptom) == (LogOutcome.NAMED, "loss-nan")


def test_a_crash_explains_the_end_before_a_curve_does() -> None:
    oom = next(each for each in e.endings() if each.name == "oom")
    found = conclude(logs(oom.files), from_curves=[curve()])
    assert [each.symptom for each in (found.charges[0], found.charges[-1])] == ["kernel-oom", "loss-nan"]


def test_a_time_limit_is_no_crash() -> None:
    limit = next(each for each in e.endings() if each.name == "time-limit")
    found = conclude(logs(limit.files), from_curves=[curve()])
    assert [(each.symptom, each.because) for each in found.charges] == [("loss-nan", None), ("slurm-time", 0)]


def test_a_kill_that_followed_sigterm_shows_who_was_stopped() -> None:
    """Rank 1 is stopped: it neither complains nor ends on request. The log of rank 3 is missing."""
    stops = [e.exits(1841, 1, -15), e.exits(1871, 1, -9)]
    files = [e.rank(0, *e.recv(1840)(0)), e.rank(1), e.rank(2, *e.recv(1840)(2)), e.torchrun("node1", *stops)]
    found = conclude(logs([*files, e.torchrun("node2", e.exits(1841, 3, -15))]))
    first = found.charges[0]
    assert [party.rank for party in first.who] == [1]
    assert first.confidence is Confidence.SUSPECT  # rank 3 may be the guilty one
    assert "its launcher had to kill it" in first.how
    assert "stuck-process" in found.checks


def test_who_was_ended_by_its_launcher_was_alive() -> None:
    """The log of one of two torchruns: rank 1 was told to end, so it did not die first."""
    files = [
        e.rank(0, *e.closed(40)(0)),
        e.rank(1),
        e.torchrun("node1", e.exits(41, 0, 1), e.exits(41, 1, -15)),
    ]
    assert conclude(logs(files)).charges[0].who == ()


def test_the_head_is_what_all_could_not_reach() -> None:
    joined = Entry(300, "Timed out after 301 seconds waiting for clients. 1/3 clients joined.", e.CLIENTS)
    tried = Entry(
        300,
        "The client socket has failed to connect to [51c0::]:7 (errno: 113)",
        e.CONNECT,
        taken={"host": "51c0::"},
    )
    files = [
        File("node1.log", (joined,), Party(host="node1")),
        File("node2.log", (tried,), Party(host="node2")),
        File("node3.log", (tried,), Party(host="node3")),
    ]  # fmt: skip
    found = conclude(logs(files))
    assert found.charges[0].says.startswith("node1: node2 and node3 could not reach it: ")
    assert found.hosts == ("node1",)
    alone = conclude(logs(files[1:]))
    assert alone.charges[0].who == ()
    assert alone.hosts == ("node2", "node3")


def test_mpirun_names_the_host_that_ssh_did_not_reach() -> None:
    ssh = symptom("mpi-ssh", Role.ROOT, "ssh failed", ["mpi-daemon"], ("host-unreachable",))
    daemon = symptom("mpi-daemon", Role.ROOT, "a daemon did not start")
    lines = (
        Entry(
            0,
            "ssh: connect to host node3 port 22: No route to host",
            ssh,
            Form.PLAIN,
            taken={"host": "node3"},
        ),
        Entry(0, "ORTE was unable to reliably start one or more daemons.", daemon, Form.MPI),
    )
    found = conclude(logs([File("mpirun.log", lines, Party(host="head"))]))
    assert (found.charges[0].says, found.hosts) == ("node3: ssh failed", ("node3",))
    assert [each.because for each in found.charges] == [None, 0]


def test_an_exception_of_a_host_is_told_without_a_rank() -> None:
    trace = Entry(1, "ImportError: libshm.so: undefined symbol: x", form=Form.PYTHON, odd=True)
    joined = Entry(300, "Timed out after 301 seconds waiting for clients. 1/2 clients joined.", e.CLIENTS)
    files = [
        File("node1.log", (joined,), Party(host="node1")),
        File("node2.log", (trace,), Party(host="node2")),
    ]
    found = conclude(logs(files))
    assert found.charges[0].says.startswith(
        "node2 ended with an exception of the program: ImportError: libshm.so"
    )
    assert found.hosts == ("node2",)


def test_two_symptoms_of_one_line_are_one_cause() -> None:
    lost = "Heartbeat lost! (device=1)"
    twins = (symptom("npu-heartbeat", Role.ROOT), symptom("npu-heartbeat-lost", Role.ROOT))
    read = logs([File("dmesg", (Entry(1, lost, twins[0], Form.KERNEL),), Party(host="node1"))])
    line = read.sightings[0].first
    found = conclude(
        Logs(read.files, tuple(replace(read.sightings[0], symptom=each, first=line) for each in twins))
    )
    assert len([each for each in found.charges if each.because is None]) == 1
    assert found.charges[0].confidence is Confidence.STRONG


def test_the_progress_of_one_rank_is_that_of_the_job_where_nothing_else_complains() -> None:
    """Only rank 0 prints its steps; rank 1 caught an exception, and tried the head again and again."""
    tries = [
        Entry(at, "TCP client failed to connect/validate to host node1:1 - retrying", RETRY) for at in (1, 2)
    ]
    caught = Entry(3, "ValueError: caught", form=Form.PYTHON, odd=True)
    other = File("rank-1.log", (*tries, caught), Party(rank=1, host="node2"))
    assert conclude(logs([e.rank(0), other])).outcome is LogOutcome.CLEAN
    late = File("rank-1.log", (*tries, replace(caught, at=90)), Party(rank=1, host="node2"))
    assert conclude(logs([e.rank(0), late])).outcome is LogOutcome.UNKNOWN


def test_a_file_without_text_is_said_to_be_empty() -> None:
    assert conclude(Logs((LogFile("a.log", size=100),))).open == ("a.log holds no text",)


CANCELLED = symptom(
    "slurm-cancelled", Role.CONFIRMS, "the job was cancelled", explains=("slurm-step-aborted",)
)
ABORTED = symptom("slurm-step-aborted", title="Slurm ends the step")


def test_what_a_cancelled_job_led_to_is_not_told_as_its_cause() -> None:
    ends = File(
        "slurm-7.out",
        entries=(
            Entry(50, "slurmstepd: error: *** JOB 7 ON node1 CANCELLED AT x ***", CANCELLED, form=Form.SLURM),
            Entry(51, "srun: Job step aborted: Waiting up to 32 seconds", ABORTED, form=Form.SLURM),
        ),
    )
    found = conclude(logs([ends]))
    assert (found.outcome, found.charges[0].symptom) == (LogOutcome.NAMED, "slurm-cancelled")
    assert not found.charges[0].who
