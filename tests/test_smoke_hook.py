"""The hook in people's own jobs: its rule, its hashes, its channels, and a real job with its bug."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctor.smoke import hook
from doctor.smoke.hook_impl import channel, compare, rule, verdict
from doctor.smoke.hook_impl.digest import digest
from doctor.smoke.hook_impl.rule import Layout, divergences, from_data, neighbours
from doctor.smoke.hook_impl.verdict import Divergence, Verdict

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "examples/mask-under-model-parallel/train.py"


def call(*ranks: str) -> dict[int, dict[str, str]]:
    """One word a rank: the hashes of tokens, mask and labels, a letter each; "-" for none."""
    return {
        rank: {part: letter for part, letter in zip(rule.PARTS, word, strict=False) if letter != "-"}
        for rank, word in enumerate(ranks)
    }


FOUR = neighbours(4, 2)  # ranks 0-1 are a model-parallel group, 2-3 the other


@pytest.mark.parametrize(
    ("calls", "layout", "expected"),
    [
        pytest.param([call("aAx", "aAx", "bBy", "bBy")], FOUR, [], id="healthy"),
        pytest.param(
            [call("aAx", "aCx", "bBy", "bBy")],
            FOUR,
            [("differs", "mask", (0, 1), (0, 1), 1)],
            id="of two, nobody knows which is right",
        ),
        pytest.param(
            [call("aAx", "aAx", "aBx", "aAx")],
            neighbours(4, 4),
            [("differs", "mask", (2,), (0, 1, 2, 3), 1)],
            id="a majority names the odd one",
        ),
        pytest.param(
            [call("aAx", "aAx", "aBx", "aBx")],
            neighbours(4, 4),
            [("differs", "mask", (0, 1, 2, 3), (0, 1, 2, 3), 1)],
            id="two against two",
        ),
        pytest.param(
            [call("aAx", "aAx", "bBy", "bBy"), call("cCx", "cCx", "dDy", "dEy")],
            FOUR,
            [("differs", "mask", (2, 3), (2, 3), 2)],
            id="from the second call on",
        ),
        pytest.param(
            [call("aAx", "aAx", "aAx", "aAx")],
            FOUR,
            [("same", "tokens", (0, 2), (0, 2), 1), ("same", "tokens", (1, 3), (1, 3), 1)],
            id="replicas with the same data",
        ),
        pytest.param([call("aAx", "aAx", "bAy", "bAy")], FOUR, [], id="one mask for all, once"),
        pytest.param([call("aAx", "aAx", "bAy", "bAy")] * 3, FOUR, [], id="a fixed mask"),
        pytest.param(
            [call("aAx", "aAx", "bAy", "bAy"), call("cCx", "cCx", "dCy", "dCy")],
            FOUR,
            [("same", "mask", (0, 2), (0, 2), 1), ("same", "mask", (1, 3), (1, 3), 1)],
            id="a drawn mask that is the same in all replicas",
        ),
        pytest.param([call("a--", "--x", "b--", "--y")], FOUR, [], id="stages of a pipeline"),
        pytest.param([call("aAx", "bBx", "cCx", "dDx")], neighbours(4, 1), [], id="replicas only"),
        pytest.param([{0: {"tokens": "a"}, 3: {"tokens": "b"}}], FOUR, [], id="half of the ranks"),
    ],
)
def test_the_rule(calls: list[Any], layout: Layout, expected: list[Any]) -> None:
    found = divergences(calls, layout)
    assert [(one.kind, one.part, one.ranks, one.group, one.since) for one in found] == expected
    assert all(one.sure for one in found)


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([call("aAx", "aAx", "bBy", "bBy")], []),
        ([call("aAx", "aCx", "bBy", "bBy")], [("mask", (0, 1))]),
        ([call("aAx", "bBx", "aAx", "bBz")], [("labels", (1, 3))]),
        ([call("aAx", "bBx", "cCx", "dDx")], []),
    ],
)
def test_without_a_layout_ranks_with_equal_tokens_are_held_against_each_other(
    calls: list[Any], expected: list[Any]
) -> None:
    found = divergences(calls, from_data(calls))
    assert [(one.part, one.ranks) for one in found] == expected
    assert not any(one.sure for one in found)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.data())
def test_any_one_rank_that_differs_is_found_and_healthy_ranks_are_not(
    groups: int, size: int, calls: int, data: st.DataObject
) -> None:
    world = groups * size
    seen = [
        {rank: {part: f"{part} {number} {rank // size}" for part in rule.PARTS} for rank in range(world)}
        for number in range(calls)
    ]
    assert divergences(seen, neighbours(world, size)) == ()
    victim, when = data.draw(st.integers(0, world - 1)), data.draw(st.integers(0, calls - 1))
    part = data.draw(st.sampled_from(rule.PARTS))
    seen[when][victim][part] = "other"
    found = divergences(seen, neighbours(world, size))
    assert [(one.kind, one.part, one.since) for one in found] == (
        [("differs", part, when + 1)] if size > 1 else []
    )
    for one in found:
        assert victim in one.ranks
        assert one.ranks == (victim,) or size == 2


# Words.


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            [Divergence("differs", "mask", (0, 1), (0, 1), 1)],
            ["same mask inside", "ranks 0-1", "seed + replica"],
        ),
        ([Divergence("differs", "mask", (5,), (4, 5, 6, 7), 3)], ["call 3", "rank 5 of ranks 4-7"]),
        ([Divergence("differs", "tokens", (0, 1), (0, 1), 1)], ["give the sampler"]),
        (
            [Divergence("same", "tokens", (0, 2), (0, 2), 1)],
            ["same tokens in different replicas", "ranks 0, 2"],
        ),
        ([Divergence("differs", "mask", (0, 1), (0, 1), 1, False)], ["taken from the data"]),
    ],
)
def test_it_is_said_in_plain_words(found: list[Divergence], words: list[str]) -> None:
    text = verdict.explained(tuple(found))
    for word in words:
        assert word in text
    assert all(line.startswith("doctor: ") for line in text.splitlines())


def test_a_thousand_groups_take_a_few_lines() -> None:
    found = tuple(
        Divergence("differs", "mask", (rank,), (rank, rank + 1, rank + 2), 1 + rank % 20)
        for rank in range(1000)
    )
    assert len(verdict.explained(found).splitlines()) < 20


def test_a_verdict_travels() -> None:
    sent = Verdict("diverge", 2, (Divergence("differs", "mask", (0, 1), (0, 1), 1),), (7,), ("why",), "text")
    assert verdict.from_plain(json.loads(json.dumps(sent.plain()))) == sent
    assert sent.ranks == (0, 1)


# Hashes.


class Dtype(str):
    hasobject = False

    @property
    def name(self) -> str:
        return str(self)


class Array:
    """As numpy has them: `dtype`, `shape`, `tobytes`, `tolist`."""

    def __init__(self, values: Sequence[Any], shape: tuple[int, ...], dtype: str = "int64") -> None:
        self.values, self.shape, self.dtype = values, shape, Dtype(dtype)

    def tobytes(self) -> bytes:
        return b"".join(int(value).to_bytes(8, "little") for value in self.values)

    def tolist(self) -> list[Any]:
        return list(self.values)


class MindSpore:
    def __init__(self, array: Array) -> None:
        self._array = array

    def asnumpy(self) -> Array:
        return self._array


def test_equal_data_has_equal_hashes() -> None:
    assert digest([1, 2.5, "a", None, True, b"x"]) == digest((1, 2.5, "a", None, True, b"x"))
    assert digest({"b": 1, "a": [2]}) == digest({"a": [2], "b": 1})
    assert digest(MindSpore(Array([1, 2], (2,)))) == digest(Array([1, 2], (2,)))
    assert re.fullmatch("[0-9a-f]{16}", digest([]))


DIFFERENT: list[Any] = [
    None,
    0,
    1,
    True,
    1.0,
    "1",
    b"1",
    [],
    [[]],
    [1, 2],
    [[1], 2],
    ["ab", "c"],
    ["a", "bc"],
    {},
    {"a": 1},
    Array([1, 2, 3, 4], (4,)),
    Array([1, 2, 3, 4], (2, 2)),
    Array([1, 2, 3, 4], (4,), "uint64"),
    Array([1, 2, 3, 5], (4,)),
]


def test_different_data_has_different_hashes() -> None:
    assert len({digest(value) for value in DIFFERENT}) == len(DIFFERENT)


class Unknown:
    pass


@pytest.mark.parametrize("value", [Unknown(), [Unknown()], {1, 2}, lambda: 1])
def test_what_would_be_hashed_by_its_address_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        digest(value)


def test_objects_in_an_array_are_hashed_by_what_they_are() -> None:
    array = Array(["a", "b"], (2,), "object")
    array.dtype.hasobject = True
    assert digest(array) == digest(["a", "b"])


def test_a_list_in_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(TypeError):
        digest(endless)


# Several ranks at once, each a process, over files.

RANK = """
import json, os, random, sys
from doctor.smoke.hook import batch
seed = int(sys.argv[1])
out = []
for step in range(5):
    drawn = random.Random(f"{seed} {step}")
    tokens = [random.Random(f"{int(os.environ['RANK']) // 2} {step}").random() for _ in range(8)]
    verdict = batch(tokens, [drawn.random() < 0.3 for _ in range(64)], tokens, **json.loads(sys.argv[2]))
    out.append(verdict and verdict.plain())
print(json.dumps(out))
"""


def processes(
    folder: Path, seeds: Sequence[int], ranks: Sequence[int] | None = None, **options: Any
) -> list[tuple[int, list[Any], str]]:
    """Each rank: its exit code, its verdicts, and what it said. Over files, without torch."""
    started = []
    for rank in range(len(seeds)) if ranks is None else ranks:
        env = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "RANK": str(rank),
            "WORLD_SIZE": str(len(seeds)),
            "DOCTOR_HOOK_DIR": str(folder),
            **options.get("env", {}),
        }
        arguments = [RANK, str(seeds[rank]), json.dumps(options.get("arguments", {}))]
        python = options.get("python", sys.executable)
        started.append(
            subprocess.Popen(
                [python, "-c", *arguments], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        )
    ended = []
    try:
        for process in started:
            out, said = process.communicate(timeout=120)
            ended.append((process.returncode, json.loads(out or "[]"), said))
    finally:
        for process in started:
            process.kill()
    return ended


def test_the_bug_is_found_by_processes_without_torch(tmp_path: Path) -> None:
    ended = processes(tmp_path, [0, 1, 2, 2], arguments={"tensor_parallel": 2})
    for code, verdicts, _ in ended:
        assert code == 0
        assert [one["status"] for one in verdicts] == ["diverge"] * 5
        assert verdicts[0]["divergences"] == [
            {"kind": "differs", "part": "mask", "ranks": [0, 1], "group": [0, 1], "since": 1, "sure": True}
        ]
        assert [one["call"] for one in verdicts] == [1, 2, 3, 3, 3], "after the first calls it rests"
    assert ended[0][2].count("do not train on what they should") == 1, "said once, by rank 0"
    assert [said for _, _, said in ended[1:]] == ["", "", ""]


@pytest.mark.parametrize("arguments", [{"tensor_parallel": 2}, {"replicas": 2}, {"model_parallel": None}])
def test_a_healthy_job_is_silent(tmp_path: Path, arguments: dict[str, Any]) -> None:
    for code, verdicts, said in processes(tmp_path, [0, 0, 1, 1], arguments=arguments):
        assert (code, said) == (0, "")
        assert [one["status"] for one in verdicts] == ["agree"] * 5


@pytest.mark.parametrize(
    "way",
    [
        {"env": {"DOCTOR_HOOK": "strict", "DOCTOR_HOOK_REPLICAS": "2"}},
        {"arguments": {"strict": True, "tensor_parallel": 2}},
    ],
)
def test_strict_ends_every_rank(tmp_path: Path, way: dict[str, Any]) -> None:
    for code, _, said in processes(tmp_path, [0, 1, 2, 2], **way):
        assert code == 1
        assert "Diverged: doctor: the ranks do not train on what they should" in said


def test_off_is_off(tmp_path: Path) -> None:
    for code, verdicts, said in processes(tmp_path, [0, 1, 2, 3], env={"DOCTOR_HOOK": "off"}):
        assert (code, verdicts, said) == (0, [None] * 5, "")
    assert not list(tmp_path.iterdir())


def test_a_rank_that_does_not_call_holds_nobody_up(tmp_path: Path) -> None:
    began = time.monotonic()
    ended = processes(tmp_path, [0, 0, 1, 1], [0, 1, 2], arguments={"wait": 1.5, "replicas": 2})
    assert time.monotonic() - began < 60
    for code, verdicts, _ in ended:
        assert code == 0
        assert [one["status"] for one in verdicts] == ["not compared"] * 5
        assert verdicts[0]["missing"] == [3]
    assert ended[0][2] == (
        "doctor: the batches of the ranks were not compared: rank 3 did not call within 1.5 s.\n"
    )


def test_without_rank_0_the_others_go_on(tmp_path: Path) -> None:
    ended = processes(tmp_path, [0, 0, 1, 1], [1], arguments={"wait": 0.2})
    assert ended[0][1][0]["status"] == "not compared"
    assert "rank 0 did not answer" in ended[0][1][0]["text"]


def test_it_runs_on_python_3_8(tmp_path: Path) -> None:
    found = subprocess.run(
        ["sh", "-c", "command -v python3.8 && python3.8 -V"], capture_output=True, text=True
    )
    if "Python 3.8" not in found.stdout:
        pytest.skip("no Python 3.8 here")
    ended = processes(tmp_path, [0, 1, 2, 2], arguments={"tensor_parallel": 2}, python="python3.8")
    assert [one[1][0]["status"] for one in ended] == ["diverge"] * 4


# In this process.


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Verdict]]:
    """The hook as rank 0 of two, over a dictionary instead of a store; rank 1 says what `other` gives it."""
    monkeypatch.setattr(hook, "_made", 0)
    monkeypatch.setattr(hook, "_last", None)
    monkeypatch.setattr(compare, "_calls", [])
    monkeypatch.setattr(compare, "_said", set())
    for name in ("DOCTOR_HOOK", "DOCTOR_HOOK_DIR", "DOCTOR_HOOK_TENSOR_PARALLEL", "DOCTOR_HOOK_REPLICAS"):
        monkeypatch.delenv(name, raising=False)
    store = Store()
    way = channel.StoreChannel(store)
    monkeypatch.setattr(channel, "place", lambda: (0, 2))
    monkeypatch.setattr(channel, "channel", lambda: way)

    def ask(*parts: Any, other: tuple[Any, ...], **options: Any) -> Verdict:
        hashes = {part: digest(value) for part, value in zip(rule.PARTS, other, strict=False)}
        said = {"hashes": hashes, "unread": {}, "model": None, "data": None}
        way.put(f"{hook._made + 1}", "1", json.dumps(said))
        given = hook.batch(*parts, **options)
        assert given is not None
        return given

    yield ask
    assert not store.waited, "get and wait may block; add never does"


class Store:
    """As torch's: `get` waits for what is not there, which must never be asked for."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.counts: dict[str, int] = {}
        self.waited: list[str] = []

    def set(self, key: str, value: str) -> None:
        self.held[key] = value.encode()

    def get(self, key: str) -> bytes:
        if key not in self.held:
            self.waited.append(key)
        return self.held[key]

    def add(self, key: str, amount: int) -> int:
        self.counts[key] = self.counts.get(key, 0) + amount
        return self.counts[key]


def test_only_news_is_said(fresh: Callable[..., Verdict], capsys: pytest.CaptureFixture[str]) -> None:
    for step in range(3):
        found = fresh([step], [1], other=([step], [2]), tensor_parallel=2)
        assert found.divergences == (Divergence("differs", "mask", (0, 1), (0, 1), 1),)
    assert capsys.readouterr().err.count("not the same mask") == 1


def test_what_cannot_be_read_is_said_and_never_called_healthy(
    fresh: Callable[..., Verdict], capsys: pytest.CaptureFixture[str]
) -> None:
    found = fresh([1], Unknown(), other=([1],), tensor_parallel=2)
    assert found.unread == ("the mask cannot be read (TypeError: a Unknown)",)
    assert (
        capsys.readouterr().err == "doctor: not compared: the mask cannot be read (TypeError: a Unknown).\n"
    )


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"tensor_parallel": 3}, "2 ranks cannot form groups of 3"),
        ({"replicas": 5}, "2 ranks cannot be 5 replicas"),
    ],
)
def test_a_layout_that_does_not_fit_is_said(
    fresh: Callable[..., Verdict], options: dict[str, int], why: str
) -> None:
    found = fresh([1], [1], other=([1], [1]), **options)
    assert found.status == "not compared"
    assert why in found.text


@pytest.mark.parametrize(
    ("groups", "kind", "part"),
    [({"model_parallel": [0, 1]}, "differs", "mask"), ({"data_parallel": (0, 1)}, "same", "tokens")],
)
def test_groups_can_be_lists_of_ranks(
    fresh: Callable[..., Verdict], groups: dict[str, Any], kind: str, part: str
) -> None:
    found = fresh([1], [1], other=([1], [2]), **groups)
    assert (kind, part, (0, 1)) in [(one.kind, one.part, one.ranks) for one in found.divergences]


def test_later_calls_cost_next_to_nothing(fresh: Callable[..., Verdict]) -> None:
    for step in range(3):
        fresh([step], [1], other=([step], [1]), tensor_parallel=2)
    data = list(range(100_000))
    began = time.perf_counter()
    for _ in range(10_000):
        hook.batch(data, data, data)
    assert (time.perf_counter() - began) / 10_000 < 20e-6


def test_alone_there_is_nothing_to_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook, "_made", 0)
    monkeypatch.setattr(channel, "place", lambda: (0, 1))
    found = hook.batch([1])
    assert found is not None
    assert (found.status, found.text) == ("agree", "")


def test_without_a_channel_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hook, "_made", 0)
    monkeypatch.setattr(compare, "_said", set())
    monkeypatch.setattr(channel, "place", lambda: (0, 2))
    monkeypatch.setattr(channel, "channel", lambda: None)
    found = hook.batch([1])
    assert found is not None
    assert found.status == "not compared"
    assert "DOCTOR_HOOK_DIR" in capsys.readouterr().err


def test_importing_it_costs_nothing() -> None:
    code = (
        "import time; t = time.perf_counter(); import doctor.smoke.hook; t = time.perf_counter() - t\n"
        "import sys; print(t); print(*sorted(m for m in sys.modules if '.' not in m))"
    )
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    runs = [
        subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
        for _ in range(5)
    ]
    assert min(float(run.stdout.split()[0]) for run in runs) < 0.005
    assert not {"msgspec", "torch", "numpy", "dataclasses", "json"} & set(runs[0].stdout.split())


def test_the_hook_draws_nothing_from_python(fresh: Callable[..., Verdict]) -> None:
    random.seed(3)
    before = random.getstate()
    fresh([1], [1], other=([1], [2]), tensor_parallel=2)
    assert random.getstate() == before


# torch, in processes of its own: it must be the same with and without the hook.

TENSORS = """
import random, sys, warnings
warnings.simplefilter("ignore")
import torch
try:
    import numpy
except ImportError:
    numpy = None
from doctor.smoke.hook import batch
from doctor.smoke.hook_impl.digest import digest

whole = torch.arange(24).reshape(4, 6)
assert digest(whole) == digest(whole.clone())
assert digest(whole.t()) == digest(whole.t().contiguous()) != digest(whole)
assert digest(whole[:, ::2]) == digest(whole[:, ::2].clone())
kinds = [torch.zeros(4, dtype=kind) for kind in
         (torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.complex64)]
assert len({digest(one) for one in kinds}) == len(kinds)
assert digest(torch.tensor(3)) != digest(torch.tensor([3]))
assert digest(torch.zeros(0, 3)) != digest(torch.zeros(3, 0))
for odd in (torch.eye(3).to_sparse(), torch.zeros(3, device="meta")):
    try:
        digest(odd)
    except Exception:
        continue
    raise AssertionError(odd)

weight = torch.randn(3, 3, requires_grad=True)
given = weight * 2
states = torch.random.get_rng_state(), random.getstate(), numpy and str(numpy.random.get_state())
version = given._version
torch.distributed.init_process_group(
    "gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
from doctor.smoke.hook_impl import channel
real = channel.place
channel.place = lambda: (0, 2)
found = batch(given, whole, labels=whole.t(), wait=0.1)
assert found.status == "not compared" and found.missing == (1,), found
assert torch.equal(states[0], torch.random.get_rng_state())
assert states[1:] == (random.getstate(), numpy and str(numpy.random.get_state()))
assert given._version == version
given.sum().backward()
assert weight.grad.tolist() == [[2.0] * 3] * 3
print("fine")
"""


def test_tensors_are_read_and_left_alone() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", TENSORS],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.stdout == "fine\n", ran.stderr


def example(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4"]
    return subprocess.run(
        [sys.executable, "-W", "ignore", *torchrun, str(EXAMPLE), "--steps", "20", *arguments],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
            "PYTHONWARNINGS": "ignore",
            **env,
        },
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_the_example_with_its_bug_is_found_and_fixed_it_is_silent() -> None:
    bug, fixed, bare = example("--bug"), example(), example("--no-hook")
    assert [ran.returncode for ran in (bug, fixed, bare)] == [0, 0, 0], (
        bug.stderr + fixed.stderr + bare.stderr
    )
    assert (
        "doctor:   from call 1 on: not the same mask inside a model-parallel group: ranks 0-1; ranks 2-3\n"
        in bug.stderr
    )
    assert "tokens inside" not in bug.stderr
    assert "doctor" not in fixed.stdout + fixed.stderr
    assert fixed.stdout == bare.stdout, "the losses, bit for bit, as without the hook"
    last = {name: float(ran.stdout.split()[-2]) for name, ran in (("bug", bug), ("fixed", fixed))}
    assert last["bug"] > 1.5 > 0.7 > last["fixed"], last


def test_the_example_ends_when_asked_to_be_strict() -> None:
    ran = example("--bug", DOCTOR_HOOK="strict")
    assert ran.returncode == 1
    assert "Diverged: doctor: the ranks do not train on what they should" in ran.stderr
    assert "step" not in ran.stdout
