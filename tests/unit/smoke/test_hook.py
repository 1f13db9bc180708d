"""The hook in people's own jobs: its rule, its hashes and its channels."""

import json
import os
import random
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctor.smoke import hook
from doctor.smoke.hook_impl import channel, compare, place, rule, verdict
from doctor.smoke.hook_impl.digest import digest
from doctor.smoke.hook_impl.rule import divergences, from_data, neighbours
from doctor.smoke.hook_impl.verdict import Divergence, Verdict
from tests.support.cases import cases
from tests.support.limits import slowness
from tests.support.paths import ROOT


def call(*ranks: str) -> dict[int, dict[str, str]]:
    """One word per rank: the hashes of tokens, mask and labels, a letter each; "-" for none. A rank without a
    word did not call.
    """
    return {
        rank: {part: letter for part, letter in zip(rule.PARTS, word, strict=False) if letter != "-"}
        for rank, word in enumerate(ranks)
        if word
    }


FOUR = neighbours(4, 2)  # ranks 0-1 are a model-parallel group, 2-3 the other


@cases
def test_divergences_follow_the_layout(calls: list[list[str]], size: int, expected: list[list[Any]]) -> None:
    found = divergences([call(*words) for words in calls], neighbours(4, size))
    assert [[one.kind, one.part, [*one.ranks], [*one.group], one.since] for one in found] == expected
    assert all(one.sure for one in found)


@cases
def test_without_a_layout_ranks_with_equal_tokens_are_compared(
    words: list[str], expected: list[tuple[str, tuple[int, ...]]]
) -> None:
    calls = [call(*words)]
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


@cases
def test_divergences_are_explained_in_plain_text(found: list[Divergence], words: list[str]) -> None:
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


def test_a_verdict_survives_its_encoding() -> None:
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
    """As numpy's arrays: `dtype`, `shape`, `tobytes`, `tolist`."""

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
def test_an_object_that_would_be_hashed_by_its_address_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        digest(value)


def test_objects_in_an_array_are_hashed_by_their_value() -> None:
    array = Array(["a", "b"], (2,), "object")
    array.dtype.hasobject = True
    assert digest(array) == digest(["a", "b"])


def test_a_list_that_contains_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(TypeError):
        digest(endless)


# In this process.


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Verdict]]:
    """The hook as rank 0 of two, over a dictionary instead of a store; rank 1 sends the data of `other`."""
    monkeypatch.setattr(hook, "_made", 0)
    monkeypatch.setattr(hook, "_last", None)
    monkeypatch.setattr(compare, "_calls", [])
    monkeypatch.setattr(compare, "_reported", set())
    for name in ("DOCTOR_HOOK", "DOCTOR_HOOK_DIR", "DOCTOR_HOOK_TENSOR_PARALLEL", "DOCTOR_HOOK_REPLICAS"):
        monkeypatch.delenv(name, raising=False)
    store = Store()
    way = channel.StoreChannel(store)
    monkeypatch.setattr(place, "place", lambda: place.RankPlace(0, 2, "the test"))
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
    """Like torch's: `get` waits for a missing key, so a missing key must never be read."""

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


def test_a_divergence_is_printed_once(
    fresh: Callable[..., Verdict], capsys: pytest.CaptureFixture[str]
) -> None:
    for step in range(3):
        found = fresh([step], [1], other=([step], [2]), tensor_parallel=2)
        assert found.divergences == (Divergence("differs", "mask", (0, 1), (0, 1), 1),)
    assert capsys.readouterr().err.count("not the same mask") == 1


def test_unreadable_data_is_reported_and_never_called_healthy(
    fresh: Callable[..., Verdict], capsys: pytest.CaptureFixture[str]
) -> None:
    found = fresh([1], Unknown(), other=([1],), tensor_parallel=2)
    assert found.unread == ("the mask cannot be read (TypeError: a Unknown)",)
    assert (
        capsys.readouterr().err == "doctor: not compared: the mask cannot be read (TypeError: a Unknown).\n"
    )


@cases
def test_a_layout_that_does_not_fit_is_reported(
    fresh: Callable[..., Verdict], options: dict[str, int], why: str
) -> None:
    found = fresh([1], [1], other=([1], [1]), **options)
    assert found.status == "not compared"
    assert why in found.text


@cases
def test_groups_can_be_lists_of_ranks(
    fresh: Callable[..., Verdict], groups: dict[str, Any], kind: str, part: str
) -> None:
    found = fresh([1], [1], other=([1], [2]), **groups)
    assert (kind, part, (0, 1)) in [(one.kind, one.part, one.ranks) for one in found.divergences]


def test_later_calls_cost_next_to_nothing(fresh: Callable[..., Verdict]) -> None:
    for step in range(3):
        fresh([step], [1], other=([step], [1]), tensor_parallel=2)
    data = list(range(100_000))
    began = time.process_time()
    for _ in range(10_000):
        hook.batch(data, data, data)
    assert (time.process_time() - began) / 10_000 < 20e-6 * slowness()


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """The hook in a process with only these variables, and without peers."""
    for name in list(os.environ):
        if re.match("RANK|WORLD|MS_|DEVICE_ID|OMPI|SLURM|DOCTOR_HOOK", name):
            monkeypatch.delenv(name)
    monkeypatch.setattr(hook, "_made", 0)
    monkeypatch.setattr(compare, "_reported", set())

    def ask(**env: str) -> str:
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        found = hook.batch([1])
        assert found is not None
        assert found.status == "not compared"
        return found.text

    return ask


@cases
def test_what_was_not_compared_never_agrees(
    alone: Callable[..., str],
    env: dict[str, str],
    why: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    env = {name: str(table(tmp_path, value) if "TABLE" in name else value) for name, value in env.items()}
    assert why in alone(**env)
    assert why in capsys.readouterr().err


def table(folder: Path, name: str) -> Path:
    """One of the samples, or eight devices of one server in the order of the guides."""
    if name != "one_server":
        return ROOT / "tests/samples/rank_table" / f"{name}.json"
    devices = [{"device_id": str(7 - n), "device_ip": f"10.2.0.{n}", "rank_id": str(n)} for n in range(8)]
    made = {"version": "1.0", "server_list": [{"server_id": "10.9.9.9", "device": devices}]}
    path = folder / "table.json"
    path.write_text(json.dumps(made))
    return path


@pytest.mark.usefixtures("alone")
@cases
def test_the_rank_is_known_from_what_started_it(
    env: dict[str, str],
    expected: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, str(table(tmp_path, value) if "TABLE" in name else value))
    assert place.place()[:2] == expected


def test_a_python_without_what_doctor_needs(
    alone: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "doctor.smoke.hook_impl.rank_variables", None)
    said = alone(RANK="3", WORLD_SIZE="8")
    assert "cluster-doctor itself does not run in this Python" in said
    assert "python3 -m doctor.smoke.hook hook.zip" in said


@pytest.mark.usefixtures("alone")
def test_a_device_of_several_servers_is_that_of_this_host(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    servers = [
        {"server_id": server, "device": [{"device_id": "0", "rank_id": str(rank)}]}
        for rank, server in enumerate(["203.0.113.1", "127.0.0.1", "203.0.113.2"])
    ]
    path = tmp_path / "table.json"
    path.write_text(json.dumps({"server_list": servers}))
    monkeypatch.setenv("RANK_TABLE_FILE", str(path))
    monkeypatch.setenv("DEVICE_ID", "0")
    assert place.place()[:2] == (1, 3)


@cases
def test_ranks_that_were_not_compared_with_any_other_do_not_agree(
    fresh: Callable[..., Verdict], other: Any, options: dict[str, Any], why: str
) -> None:
    found = fresh([1], other=() if other is None else (other,), **options)
    assert found.status == "not compared"
    assert why in found.text


def test_without_a_layout_ranks_that_are_like_no_other_do_not_agree() -> None:
    layout = from_data([call("aAx", "cCz", "bBy", "bBy")])
    assert rule.ungrouped(call("aAx", "cCz", "bBy", "bBy"), layout) == (0, 1)
    assert rule.ungrouped(call("aAx", "cCz", "bBy", "bBy"), FOUR) == ()
    assert (
        rule.ungrouped(call("aAx", "aAx", "---", "--y"), from_data([call("aAx", "aAx", "---", "--y")])) == ()
    )


def test_replicas_are_compared(fresh: Callable[..., Verdict]) -> None:
    assert fresh([1], [1], other=([2], [2]), tensor_parallel=1).status == "agree"


def test_the_hook_draws_nothing_from_python(fresh: Callable[..., Verdict]) -> None:
    random.seed(3)
    before = random.getstate()
    fresh([1], [1], other=([1], [2]), tensor_parallel=2)
    assert random.getstate() == before
