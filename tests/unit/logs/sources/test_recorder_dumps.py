"""Dumps of torch's flight recorder among the logs: who is behind, who calls another collective."""

import json
import os
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from doctor.logs.judge import conclude
from doctor.logs.model import Conclusion, LogOutcome
from doctor.logs.read import read
from tests.support.fault_logs import matcher
from tests.support.paths import ROOT

TORCH = "/opt/torch/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py"
Write = Callable[[Any], bytes]
WRITE = {"pickle": lambda dump: pickle.dumps(dump, 2), "json": lambda dump: json.dumps(dump).encode()}


def entry(
    number: Any, name: str = "nccl:all_reduce", line: int = 16, over: bool = True, **more: object
) -> dict[str, Any]:
    frames = [
        {"name": "f", "filename": TORCH, "line": 3068},
        {"name": "g", "filename": "/home/user/train.py", "line": line},
    ]
    state = "completed" if over else "scheduled"
    made = {"frames": frames, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": number}
    made |= {"profiling_name": name, "input_sizes": [[4096, 1024]], "state": state, "retired": over}
    return {**made, "is_p2p": False, **more}


def dump(*entries: object) -> dict[str, Any]:
    return {
        "version": "2.10",
        "pg_config": {},
        "pg_status": {"0": {}},
        "entries": [entry(79), entry(80), *entries],
    }


def told(
    folder: Path, dumps: Sequence[object], write: Write = WRITE["pickle"], logs: Sequence[Path] = ()
) -> Conclusion:
    paths = [folder / f"fr_{rank}" for rank in range(len(dumps))]
    for path, each in zip(paths, dumps, strict=True):
        path.write_bytes(write(each))
    return conclude(read([*logs, *paths], matcher()))


WAITS = (entry(81, over=False), entry(82, over=False))
GATHERS = entry(81, "nccl:all_gather", 40, over=False)


@pytest.mark.parametrize("form", WRITE)
def test_who_never_issued_what_the_others_wait_in_is_behind(tmp_path: Path, form: str) -> None:
    first = told(tmp_path, [dump(*WAITS), dump()], WRITE[form]).charges[0]
    assert first.says.startswith("rank 1 was behind: operation 80 was the last that it enqueued, of 81")


@pytest.mark.parametrize("form", WRITE)
def test_who_issued_another_collective_is_told_with_its_line(tmp_path: Path, form: str) -> None:
    first = told(tmp_path, [dump(*WAITS), dump(GATHERS)], WRITE[form]).charges[0]
    assert first.says.startswith(
        "the ranks waited in different operations: rank 0 in ALLREDUCE, rank 1 in ALLGATHER"
    )
    assert first.how[1:] == (
        "rank 0 called it at /home/user/train.py:16",
        "rank 1 called it at /home/user/train.py:40",
    )


def test_what_dumps_show_goes_before_an_error_of_the_network(tmp_path: Path) -> None:
    log = ROOT / "tests/exam/logs/own-nccl-gather.log"
    assert "192.0.2.2 disagree" in told(tmp_path, [], logs=[log]).charges[0].says
    assert "rank 1 in ALLGATHER" in told(tmp_path, [dump(*WAITS), dump(GATHERS)], logs=[log]).charges[0].says


SOUND: dict[str, Sequence[object]] = {
    "nothing waits": [dump(), dump()],
    "one is a collective ahead that ended": [dump(entry(81)), dump()],
    "messages between two": [dump(entry(3, "nccl:send 0->1", over=False, is_p2p=True)), dump()],
}


@pytest.mark.parametrize("name", SOUND)
def test_who_waits_for_nobody_is_not_accused(tmp_path: Path, name: str) -> None:
    assert told(tmp_path, SOUND[name]).outcome is LogOutcome.CLEAN


def test_hosts_that_ran_ahead_by_different_amounts_are_not_behind(tmp_path: Path) -> None:
    found = told(tmp_path, [dump(*WAITS), dump(WAITS[0])])
    assert not [charge.says for charge in found.charges if charge.who]


def test_another_backend_of_a_group_counts_on_its_own(tmp_path: Path) -> None:
    found = told(tmp_path, [dump(*WAITS), dump(*WAITS, entry(3, "gloo:all_reduce"))])
    assert not [charge.says for charge in found.charges if charge.who]


class Hostile:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("made-by-a-pickle",)


@pytest.mark.parametrize(
    "odd",
    [
        {"pg_config": 1},
        dump({}),
        dump(entry("x")),
        dump(entry(81, over=False, profiling_name=3)),
        {"pg_config": Hostile()},
    ],
)
def test_what_is_no_dump_is_no_text_and_nothing_of_it_is_run(
    tmp_path: Path, odd: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "fr_0"
    path.write_bytes(pickle.dumps(odd, 2))
    assert read([path], matcher()).left_out == (f"{path}: not text",)
    assert os.listdir(tmp_path) == ["fr_0"]
