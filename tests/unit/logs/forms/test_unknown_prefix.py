"""Prefixes of unknown launchers are learned from tracebacks."""

from pathlib import Path

from doctor.logs.forms.line import said_of
from doctor.logs.forms.prefix import PrefixLayout, layout_of
from doctor.logs.forms.times import Clock
from doctor.logs.forms.unknown_prefix import with_learned
from doctor.logs.model import Conclusion, Form, LogOutcome
from tests.support.cases import cases
from tests.support.each import each
from tests.support.fault_logs import concluded

CLOCK = Clock(1_763_640_000.0)
FRAMES = ("Traceback (most recent call last):", '  File "/work/train.py", line 40, in main', "    step()")
MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


def learned(prefix: str, lines: tuple[str, ...] = FRAMES) -> PrefixLayout:
    data = "".join(f"{prefix}{line}\n" for line in lines).encode()
    return with_learned(PrefixLayout(), data, 0, len(data), CLOCK)


@cases
def test_what_stands_before_every_line_of_a_traceback_is_a_prefix(
    prefix: str, rank: int | None, host: str | None, local: int | None
) -> None:
    said = said_of(f"{prefix}KeyError: 'labels'", learned(prefix), CLOCK)
    assert (said.form, said.rank, said.host, said.local) == (Form.PYTHON, rank, host, local)


def test_it_is_the_prefix_of_writers_with_other_numbers() -> None:
    said = said_of("[gpu9:12]:KeyError: 'labels'", learned("[gpu17:3]:"), CLOCK)
    assert (said.form, said.host, said.local) == (Form.PYTHON, "gpu9", 12)


@each("prefix", ["[2026-11-20 10:00:00,123][ERROR] ", "WARNING worker: "])
def test_the_head_of_a_log_record_is_not_a_prefix(prefix: str) -> None:
    assert learned(prefix) == PrefixLayout()


def test_what_only_the_first_line_has_is_not_a_prefix() -> None:
    data = "\n".join(("it said: Traceback (most recent call last):", *FRAMES[1:])).encode()
    assert with_learned(PrefixLayout(), data, 0, len(data), CLOCK) == PrefixLayout()


def test_a_text_that_was_pasted_with_spaces_before_each_line_is_read() -> None:
    lines = ["  node1:7389:7453 [0] NCCL INFO Bootstrap", *(f"  {line}" for line in FRAMES), f"  {MEMORY}"]
    said = said_of(lines[0], layout_of(lines), CLOCK)
    assert (said.form, said.host) == (Form.NCCL, "node1")


def test_the_steps_of_another_writer_clear_nobody(tmp_path: Path) -> None:
    of = [f"[gpu17:1]:{line}" for line in (*FRAMES, MEMORY)]
    bars = [f"[gpu17:0]: {step}/125 [00:0{step}<04:36,  2.20s/it]" for step in range(1, 5)]
    found = written(tmp_path, [*of, *bars])
    assert (found.outcome, found.charges[0].symptom) == (LogOutcome.NAMED, "torch-cuda-memory")
    assert (found.charges[0].who[0].host, found.charges[0].who[0].device) == ("gpu17", 1)


def test_a_traceback_that_was_cut_off_is_seen_behind_a_prefix(tmp_path: Path) -> None:
    assert written(tmp_path, [f"trainer-1  | {line}" for line in FRAMES]).outcome is LogOutcome.UNKNOWN


def written(folder: Path, lines: list[str]) -> Conclusion:
    path = folder / "job.log"
    path.write_text("".join(f"{line}\n" for line in lines))
    return concluded(path)
