"""From the input to the result of reading: who wrote each line, how often, and which lines complain."""

from pathlib import Path

import pytest

from doctor.logs.loss.collect import LossCollector
from doctor.logs.model import Form, Party
from doctor.logs.read import read
from tests.support.cases import cases, from_cases
from tests.unit.logs.known import MATCHER, NOW, logs_of, one, seen


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


RESET = "RuntimeError: Connection reset by peer [10.0.0.7]\n"


def test_a_symptom_has_its_place_its_party_and_its_count(tmp_path: Path) -> None:
    line = "node1:17:18 [2] misc/socket.cc:58 NCCL WARN socketProgress: Connection closed by remote peer\n"
    logs = one(tmp_path, "start\n" + line * 3 + "end\n")
    assert seen(logs) == [("closed", Party(host="node1", pid=17, device=2), 2, 3)]
    (sighting,) = logs.sightings
    assert (sighting.first.number, sighting.last.number, sighting.first.form) == (2, 4, Form.NCCL)
    assert (logs.files[0].lines, logs.files[0].last and logs.files[0].last.text) == (5, "end")


def test_a_line_counts_only_in_its_form(tmp_path: Path) -> None:
    logs = one(tmp_path, "my script: Out of memory: Killed process 12 (python)\n")
    assert logs.sightings == ()
    assert seen(one(tmp_path, "Nov 20 07:22:05 node1 kernel: Out of memory: Killed process 12\n")) == [
        ("oom", Party(host="node1"), 1, 1)
    ]


@pytest.mark.parametrize(("before", "counts"), [(7800, True), (8000, False)])
def test_the_end_of_a_very_long_line_is_not_examined(before: int, counts: bool, tmp_path: Path) -> None:
    logs = one(tmp_path, RESET.replace(": ", f": {'x ' * (before // 2)}"))
    assert bool(logs.sightings) is counts


def test_what_a_symptom_takes(tmp_path: Path) -> None:
    (sighting,) = one(tmp_path, RESET).sightings
    assert dict(sighting.taken) == {"host": "10.0.0.7"}


@cases
def test_who_wrote_a_file_by_its_name(tmp_path: Path, name: str, who: Party) -> None:
    logs = one(tmp_path, RESET, name)
    assert logs.files[0].who == who
    assert seen(logs) == [("reset", who, 1, 1)]


@cases
def test_a_folder_far_above_what_was_given_is_not_a_host(
    tmp_path: Path, given: str, host: str | None
) -> None:
    path = tmp_path / "h27" / given
    file = path / "train.log" if path.suffix != ".log" else path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(RESET)
    (found,) = logs_of(path if given != "." else tmp_path).files
    assert found.who.host == (host if given != "." else "h27")


def test_folders_in_which_the_inputs_differ_are_hosts(tmp_path: Path) -> None:
    write(tmp_path / "h27", {f"node{number}/logs/train.log": RESET for number in (1, 2)})
    files = logs_of(*sorted(tmp_path.rglob("train.log"))).files
    assert [each.who.host for each in files] == ["node1", "node2"]


def test_local_ranks_of_two_hosts_are_no_ranks(tmp_path: Path) -> None:
    folder = write(
        tmp_path, {f"node{node}/attempt_0/{local}/stderr.log": RESET for node in (1, 2) for local in (0, 1)}
    )
    logs = logs_of(folder)
    assert [file.who for file in logs.files] == [
        Party(host=f"node{node}", device=local) for node in (1, 2) for local in (0, 1)
    ]


def test_local_ranks_of_one_host_are_no_ranks_if_the_world_is_larger(tmp_path: Path) -> None:
    text = f"world_size=8\n{RESET}"
    files = {f"none_ab12/attempt_0/{local}/stderr.log": text for local in range(4)}
    assert [file.who.rank for file in logs_of(write(tmp_path, files)).files] == [None] * 4


def test_the_prefix_tells_the_rank_of_a_local_rank(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        {
            f"node{node}/attempt_0/{local}/stderr.log": f"[rank{node * 2 + local}]: {RESET}"
            for node in (0, 1)
            for local in (0, 1)
        },
    )
    assert [file.who.rank for file in logs_of(folder).files] == [0, 1, 2, 3]


def test_several_ranks_in_one_file(tmp_path: Path) -> None:
    text = "".join(f"[rank{rank}]: {RESET}" for rank in (0, 2, 2, 5))
    logs = one(tmp_path, text)
    assert logs.files[0].ranks == (0, 2, 5)
    assert logs.files[0].who == Party()
    assert seen(logs) == [
        ("reset", Party(rank=0), 1, 1),
        ("reset", Party(rank=2), 2, 2),
        ("reset", Party(rank=5), 4, 1),
    ]


def test_ranks_that_only_train_are_known_too(tmp_path: Path) -> None:
    text = "".join(f"{rank}: step {step} loss 1.5\n" for step in range(400) for rank in range(4))
    logs = one(tmp_path, text + "2: " + RESET)
    assert logs.files[0].ranks == (0, 1, 2, 3)
    assert seen(logs) == [("reset", Party(rank=2), 1601, 1)]
    assert [(line.who.rank, line.text) for line in logs.files[0].progress] == [
        (rank, f"{rank}: step 399 loss 1.5") for rank in range(4)
    ]


def test_one_rank_in_several_files(tmp_path: Path) -> None:
    folder = write(tmp_path, {"rank_1/out.log": "step 5 of 10\n", "rank_1/err.log": RESET})
    assert [file.who.rank for file in logs_of(folder).files] == [1, 1]


def test_the_rank_of_a_process_is_told_by_another_line(tmp_path: Path) -> None:
    init = "n1:17:20 [0] NCCL INFO ncclCommInitRank comm 0x5 rank {} nranks 16 cudaDev 0 - Init COMPLETE\n"
    closed = "n1:17:20 [0] misc/socket.cc:58 NCCL WARN socketProgress: Connection closed by remote peer\n"
    group = "n1:17:20 [0] NCCL INFO ncclCommInitRank comm 0x6 rank 1 nranks 2 cudaDev 0 - Init COMPLETE\n"
    logs = one(tmp_path, init.format(0) + group + closed)
    assert seen(logs) == [("closed", Party(rank=0, host="n1", pid=17, device=0), 3, 1)]
    assert logs.files[0].world == 16


def test_plog_of_one_process_in_two_folders(tmp_path: Path) -> None:
    entry = (
        "[INFO] HCCL(42,python):2025-11-20-11:56:36.712.024 [op_base.cc:1293] [42]Entry-HcclCommInit:"
        "ranks[4], rank[1], rootinfo: host ip[127.10.0.1]\n"
    )
    failed = "[ERROR] HCCL(42,python):2025-11-20-11:58:36.712.024 [a.cc:1] [42][Exec]Task run failed\n"
    folder = write(
        tmp_path,
        {"run/plog/plog-42_20251120115636.log": entry, "debug/plog/plog-42_20251120115637.log": failed},
    )
    logs = logs_of(folder)
    assert [file.who.rank for file in logs.files] == [1, 1]
    assert seen(logs) == [("notify", Party(rank=1, pid=42), 1, 1)]


ELASTIC = from_cases(__file__, "ELASTIC", str)


def test_elastics_table_has_a_party_for_each_entry(tmp_path: Path) -> None:
    logs = one(tmp_path, ELASTIC)
    assert seen(logs) == [
        ("killed", Party(rank=9, host="node4", device=1, pid=5363), 11, 1),
        ("killed", Party(rank=8, host="node4", device=0, pid=5362), 20, 1),
    ]
    assert logs.sightings[1].first.at == logs.sightings[0].first.at - 1  # type: ignore[operator]
    assert all(line.form is not Form.PLAIN for line in logs.files[0].odd)


def test_a_banner_of_open_mpi(tmp_path: Path) -> None:
    words = "Your Open MPI job may now hang or fail.\n"
    banner = "-" * 74 + "\nOpen MPI failed to TCP connect\n\n  Local host: node1\n" + words + "-" * 74 + "\n"
    assert [each[0] for each in seen(one(tmp_path, banner))] == ["tcp"]
    assert seen(one(tmp_path, words)) == []


def test_cann_goes_on_for_several_lines(tmp_path: Path) -> None:
    text = (
        "EI0006: [PID: 7277] 2024-11-28-11:59:30.645.648 Getting socket times out.\n"
        "        Possible Cause: 1. something\n"
        "        5. The TLS switch is inconsistent\n"
    )
    logs = one(tmp_path, text)
    assert [(id, who.pid) for id, who, _, _ in seen(logs)] == [("socket", 7277), ("tls", 7277)]
    assert logs.sightings[0].first.at == logs.sightings[1].first.at


def test_slurm_names_the_task(tmp_path: Path) -> None:
    logs = one(tmp_path, "srun: error: node3: task 5: Exited with exit code 1\n", "slurm-12.out")
    assert seen(logs) == [("exited", Party(rank=5, host="node3"), 1, 1)]


TRACEBACK = from_cases(__file__, "TRACEBACK", str)


def test_an_unknown_exception_is_odd_and_says_where(tmp_path: Path) -> None:
    text = "step 1\n" * 50 + TRACEBACK + TRACEBACK.replace("17", "18") + "bye\n" * 50
    logs = one(tmp_path, text)
    assert [(line.number, line.text) for line in logs.files[0].odd] == [
        (56, "KeyError: 'column 17' (/job/data.py:7, in load)")
    ]


@cases
def test_lines_that_complain_are_odd(tmp_path: Path, line: str) -> None:
    logs = one(tmp_path, f"step 1\n{line}\nstep 2\n")
    assert [each.text for each in logs.files[0].odd] == [line]


HEALTHY = from_cases(__file__, "HEALTHY", str)


def test_healthy_logs_have_nothing_odd(tmp_path: Path) -> None:
    logs = one(tmp_path, HEALTHY * 3)
    assert (logs.files[0].odd, logs.sightings) == ((), ())


def test_odd_lines_are_few_and_one_for_each_wording(tmp_path: Path) -> None:
    same = "".join(f"Error: number {number} is not there\n" for number in range(100))
    words = "".join(f"Error: {word} is not there\n" for word in "abcdefghij")
    assert len(one(tmp_path, same).files[0].odd) == 1
    first = "abcde"
    assert [line.text[7] for line in one(tmp_path, words).files[0].odd if line.text[7] in first] == [*first]
    more = words + "waiting\n" * 300 + "".join(f"Error: {word} is not there\n" for word in "klmnopqrst")
    assert {line.text[7] for line in one(tmp_path, more).files[0].odd} == {*first, *"pqrst"}


def test_what_is_kept_is_harmless_and_without_secrets(tmp_path: Path) -> None:
    text = "Error: \x1b[31mHF_TOKEN=hf_abcdefghijklmnopqrstu\x1b[0m \x07is\u202e bad" + "x" * 9000 + "\n"
    (line,) = one(tmp_path, text).files[0].odd
    assert "hf_abc" not in line.text
    assert line.text.isprintable()
    assert len(line.text) <= 2000


def test_times_of_a_file(tmp_path: Path) -> None:
    text = "2025-11-20 07:00:00 start\n" + "text\n" * 9000 + "2025-11-20 08:00:01 end\nlast\n"
    (file,) = one(tmp_path, text).files
    assert (file.last_at or 0) - (file.first_at or 0) == 3601
    assert file.lines == 9003


def test_the_last_state_of_a_progress_bar(tmp_path: Path) -> None:
    bar = "\r".join(f" {step}%|##| {step}/100 [00:01<00:02, 3.1it/s]" for step in range(60))
    logs = one(tmp_path, bar + "\r" + RESET + "\n")
    assert seen(logs) == [("reset", Party(), 1, 1)]
    bar_only = one(tmp_path, bar + "\n", "bar.log")
    assert [line.text.strip() for line in bar_only.files[0].progress] == [
        "59%|##| 59/100 [00:01<00:02, 3.1it/s]"
    ]


@pytest.mark.slow
def test_a_party_for_each_of_too_many(tmp_path: Path) -> None:
    text = "".join(f"[rank{rank}]: {RESET}" for rank in range(4500))
    logs = one(tmp_path, text)
    assert sum(each.count for each in logs.sightings) == 4500
    assert len(logs.sightings) <= 4001


def test_nothing_given() -> None:
    assert logs_of().files == ()


def test_the_other_file_of_its_folder_tells_the_rank(tmp_path: Path) -> None:
    files = {f"node{n}/attempt_0/0/stderr.log": f"[rank{n * 4}]: {RESET}" for n in (1, 2)}
    files |= {f"node{n}/attempt_0/0/stdout.log": "step 5 of 9\n" for n in (1, 2)}
    logs = logs_of(write(tmp_path, files))
    assert [file.who for file in logs.files] == [
        Party(rank=rank, host=host, device=0) for rank, host in ((4, "node1"), (8, "node2")) for _ in "oe"
    ]


def test_torchruns_table_tells_the_ranks_of_its_host(tmp_path: Path) -> None:
    files = {"node4.log": ELASTIC, "node5/attempt_0/0/stderr.log": RESET}
    files |= {f"node4/attempt_0/{local}/stderr.log": RESET for local in (0, 1)}
    ranks = {
        file.name[len(str(tmp_path)) + 1 :]: file.who.rank for file in logs_of(write(tmp_path, files)).files
    }
    assert ranks == {
        "node4.log": None,
        "node4/attempt_0/0/stderr.log": 8,
        "node4/attempt_0/1/stderr.log": 9,
        "node5/attempt_0/0/stderr.log": None,
    }


def test_gloo_tells_who_is_there(tmp_path: Path) -> None:
    line = "[Gloo] Rank {} is connected to {peers} peer ranks. Expected number of connected peer ranks is : "
    line += "{peers}\n"
    text = "".join(line.format(rank, peers=7) for rank in (4, 5)) + line.format(0, peers=1)
    (file,) = one(tmp_path, text).files
    assert (file.ranks, file.world, file.who) == ((4, 5), 8, Party())
    (alone,) = one(tmp_path, line.format(6, peers=7), "attempt_0/2/stdout.log").files
    assert alone.who == Party(rank=6, device=2)


def test_one_prefixed_rank_does_not_own_what_torchrun_prints(tmp_path: Path) -> None:
    text = f"[rank0]: {RESET}{ELASTIC}step 7\n{RESET}"
    logs = one(tmp_path, text)
    assert logs.files[0].who.rank is None
    assert [who.rank for id, who, _, _ in seen(logs) if id == "reset"] == [0, None]


def test_an_exception_without_words_is_odd_too(tmp_path: Path) -> None:
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 6\ntorch.distributed.elastic.ClosedError\n'
    )
    assert [line.number for line in one(tmp_path, text).files[0].odd] == [3]


def test_repetitions_are_without_secrets_too(tmp_path: Path) -> None:
    text = "".join(
        f"[rank1]: RuntimeError: Connection reset by peer [10.0.0.9] HF_TOKEN=hf_{'x' * 20}{n} try {n}\n"
        for n in range(3)
    )
    (sighting,) = one(tmp_path, text).sightings
    assert (sighting.count, sighting.first.number, sighting.last.number) == (3, 1, 3)
    assert "hf_x" not in sighting.first.text + sighting.last.text
    assert "try 2" in sighting.last.text


def test_losses_are_collected_with_their_rank(tmp_path: Path) -> None:
    path = tmp_path / "rank_3.log"
    path.write_text(
        "".join(f"2025-11-20 07:00:{step:02} step: {step} loss: {9 - step / 10}\n" for step in range(50))
    )
    logs = read([path], MATCHER, loss=LossCollector, now=NOW)
    (curve,) = logs.curves
    assert (curve.who, curve.total, curve.losses[:2]) == (Party(rank=3), 50, (9.0, 8.9))
    assert (curve.seconds[1] or 0) - (curve.seconds[0] or 0) == 1
    assert read([path], MATCHER, now=NOW).curves == ()


def test_a_table_of_losses(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("step,loss\n" + "".join(f"{step},{9 - step / 9000}\n" for step in range(60_000)))
    (curve,) = read([path], MATCHER, loss=LossCollector, now=NOW).curves
    assert curve.total == 60_000


@cases
def test_an_exception_that_was_caught_is_not_odd(tmp_path: Path, text: str) -> None:
    assert (
        one(tmp_path, "".join(f"{rank}: hi\n" for rank in range(4)) * text.startswith("4") + text)
        .files[0]
        .odd
        == ()
    )


def test_an_exception_of_one_rank_is_odd_while_others_go_on(tmp_path: Path) -> None:
    text = "".join(f"[rank2]: {line}\n" for line in TRACEBACK.splitlines()) + "step 8\nstep 9\n"
    assert len(one(tmp_path, text).files[0].odd) == 1
    labelled = "".join(f"4: {line}\n" for line in TRACEBACK.splitlines()) + "5: step 1\n" * 3
    assert len(one(tmp_path, labelled).files[0].odd) == 1


@cases
def test_what_complains_of_the_job(tmp_path: Path, line: str, odd: bool) -> None:
    (file,) = one(tmp_path, f"step 1\n{line}\n").files
    assert bool(file.odd) is odd


def test_messages_of_one_file_push_out_none_of_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("doctor.logs.read.MOST_SIGHTINGS", 4)
    many = "".join(
        f"node{n}:17:18 [2] a.cc:58 NCCL WARN Connection closed by remote peer\n" for n in range(9)
    )
    logs = logs_of(write(tmp_path, {"node1/a.log": many, "node2/a.log": RESET}))
    assert [each.first.file for each in logs.sightings][-1] == f"{tmp_path}/node2/a.log"
    assert logs.missed
