"""The flight recorder: real dumps, and pickles that are not dumps."""

import json
import os
import pickle
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from doctor.agents.onhost import recorder
from doctor.agents.onhost.recorder import UnreadableDump, numbers, plain
from doctor.live.evidence import LibraryText
from doctor.live.libraries.consult import opinions
from doctor.live.libraries.opinions import Opinion, OpinionKind, Source, Trust
from tests.support.library_texts import NOW, SAMPLES, job_of, seen, text

KINDS = ("pickle", "json")


def raw(name: str) -> bytes:
    return (SAMPLES / name).read_bytes()


def dump(rank: int, body: str, at: float = 0.0) -> LibraryText:
    return text(Source.RECORDER, body, name=f"/tmp/fr_{rank}", pid=100 + rank, at=at or NOW)


def said(*texts: LibraryText, ranks: int = 2) -> Opinion:
    job = job_of(ranks)
    found = opinions(seen(job, *texts), job)
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("waits", KINDS)
@pytest.mark.parametrize("asleep", KINDS)
def test_the_rank_asleep_of_a_real_job(waits: str, asleep: str) -> None:
    found = said(
        dump(0, numbers(raw(f"recorder_waits.{waits}"))), dump(1, numbers(raw(f"recorder_asleep.{asleep}")))
    )
    assert (found.kind, found.trust) == (OpinionKind.BLAMES, Trust.STRONG)
    assert [(each.rank, each.pid) for each in found.subjects] == [(1, 101)]
    assert found.evidence == ("group 0: 1 in number 4 (gloo all_reduce); rank 1 of node1 at 3",)


def test_the_pickle_says_what_torch_would_have_read() -> None:
    read = pickle.loads(raw("recorder_waits.pickle"))
    assert plain(raw("recorder_waits.pickle")) == read
    assert plain(b"\x80\x02X\x02\x00\x00\x00a\xff.") == plain(b"\x80\x02\x8c\x02a\xff.") == "a\ufffd"


def entry(group: int, seq: int, over: bool, **more: Any) -> dict[str, Any]:
    return {
        "pg_id": group,
        "process_group": [str(group), "x"],
        "collective_seq_id": seq,
        "is_p2p": False,
        "profiling_name": "nccl:all_reduce",
        "retired": over,
        "time_created_ns": int((NOW - 30) * 1e9),
        **more,
    }


def of(*entries: Mapping[str, Any], ranks: Mapping[str, str] | None = None) -> str:
    config = {name: {"ranks": listed} for name, listed in (ranks or {}).items()}
    return json.dumps({"pg_status": {}, "pg_config": config, "entries": entries})


def test_all_in_the_same_collective() -> None:
    body = of(entry(0, 3, True), entry(0, 4, False))
    found = said(dump(0, body), dump(1, body))
    assert (found.kind, found.subjects) == (OpinionKind.LAUNCHED, ())


def test_who_ran_ahead_less_is_not_behind() -> None:
    """Both devices are in number 4; one host has merely enqueued more."""
    far = of(entry(0, 3, True), entry(0, 4, False), entry(0, 5, False), entry(0, 6, False))
    assert said(dump(0, far), dump(1, of(entry(0, 3, True), entry(0, 4, False)))).kind is OpinionKind.LAUNCHED


def test_a_young_collective_may_be_about_to_end() -> None:
    young = entry(0, 4, False, time_created_ns=int((NOW - 1) * 1e9))
    found = said(dump(0, of(entry(0, 3, True), young)), dump(1, of(entry(0, 3, True))))
    assert (found.kind, found.subjects) == (OpinionKind.SILENT, ())


def test_a_dump_from_before_the_stall_blames_nobody() -> None:
    waits, before = of(entry(0, 3, True), entry(0, 4, False)), of(entry(0, 2, True))
    assert said(dump(0, waits), dump(1, before, at=NOW - 100)).kind is OpinionKind.SILENT


def test_clocks_of_hosts_that_differ() -> None:
    """node2's clock is an hour ahead, and so are the times of its dumps."""
    job = job_of(2, 2)
    waits, late = of(entry(0, 3, True), entry(0, 4, False)), of(entry(0, 3, True))
    evidence = seen(job, dump(0, waits), of=[("node2", dump(1, late, at=NOW + 3600))])
    ahead = replace(evidence.hosts[1], at=NOW + 3600)
    (found,) = opinions(replace(evidence, hosts=(evidence.hosts[0], ahead)), job)
    assert (found.kind, found.ranks, found.trust) == (OpinionKind.BLAMES, {1}, Trust.STRONG)


def test_old_dumps_are_a_vote() -> None:
    waits = of(entry(0, 3, True), entry(0, 4, False, time_created_ns=int((NOW - 900) * 1e9)))
    found = said(dump(0, waits, at=NOW - 700), dump(1, of(entry(0, 3, True)), at=NOW - 700))
    assert (found.kind, found.ranks, found.trust) == (OpinionKind.BLAMES, {1}, Trust.VOTE)
    assert "up to 700 s old" in found.words


def test_a_chain_over_groups_ends_at_its_end() -> None:
    """Rank 2 has not come to the group of 0 and 2 because it waits for rank 3."""
    members = {"5": "[0, 2]", "6": "[2, 3]"}
    found = said(
        dump(0, of(entry(5, 9, True), entry(5, 10, False), ranks=members)),
        dump(2, of(entry(5, 9, True), entry(6, 3, True), entry(6, 4, False), ranks=members)),
        dump(3, of(entry(6, 3, True), ranks=members)),
        ranks=4,
    )
    assert (found.kind, found.ranks) == (OpinionKind.BLAMES, {3})


def test_the_end_of_a_chain_that_left_no_dump_is_not_replaced_by_its_middle() -> None:
    members = {"5": "[0, 2]", "6": "[2, 3]"}
    found = said(
        dump(0, of(entry(5, 9, True), entry(5, 10, False), ranks=members)),
        dump(2, of(entry(5, 9, True), entry(6, 3, True), entry(6, 4, False), ranks=members)),
        ranks=4,
    )
    assert (found.kind, found.subjects) == (OpinionKind.SILENT, ())


def test_who_waits_for_a_message_is_not_blamed() -> None:
    receives = entry(1, 7, False, is_p2p=True, profiling_name="nccl:recv 1<-0")
    found = said(dump(0, of(entry(0, 3, True), entry(0, 4, False))), dump(1, of(entry(0, 3, True), receives)))
    assert (found.kind, found.subjects) == (OpinionKind.SILENT, ())


def test_who_has_ended_what_another_has_not_is_not_behind() -> None:
    """Number 4 has ended for rank 1 only: something below it does not end it for rank 0."""
    first = of(entry(0, 3, True), entry(0, 4, False), entry(0, 5, False))
    found = said(dump(0, first), dump(1, of(entry(0, 3, True), entry(0, 4, True))))
    assert (found.kind, found.subjects) == (OpinionKind.SILENT, ())


def test_groups_of_one_name_and_other_members_are_not_compared() -> None:
    first = of(entry(1, 3, True), entry(1, 4, False), ranks={"1": "[0, 1]"})
    found = said(dump(0, first), dump(2, of(entry(1, 2, True), ranks={"1": "[2, 3]"})), ranks=4)
    assert found.kind is OpinionKind.SILENT


class Hostile:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch /tmp/doctor-was-here",)


def deep(count: int) -> bytes:
    return b"\x80\x02" + b"]" * count + b"a" * (count - 1) + b"."


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "why"),
    [
        (pickle.dumps(Hostile()), "more than plain values"),
        (pickle.dumps({"pg_status": Hostile()}), "more than plain values"),
        (pickle.dumps({"pg_status": {}, "x": {1, 2}}, 4), "more than plain values"),
        (pickle.dumps({"pg_status": {}}, 0), "more than plain values"),
        (raw("recorder_waits.pickle")[:-200], "cut off"),
        (raw("recorder_waits.json")[:-200], "cut off"),
        (deep(100_000), "not a dump"),
        (b'{"a":' * 100_000, "cut off"),
        (b"\x80\x02X\xff\xff\xff\xffabc.", "cut off"),
        (b"\x80\x02}(K\x01u.", "damaged"),
        (b"\x80\x02(]K\x01s.", "damaged"),
        (b"\x80\x02h\x07.", "damaged"),
        (b".", "damaged"),
        (b"", "cut off"),
        (b"\x80\x02K\x01.", "not a dump"),
        (b"N" * 60_000, "too large"),
    ],
)
def test_a_hostile_dump_gives_a_sentence_and_runs_nothing(
    data: bytes, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "MOST_STEPS", 50_000 if why == "too large" else recorder.MOST_STEPS)
    with pytest.raises(UnreadableDump, match=why):
        numbers(data)
    assert not os.path.exists("/tmp/doctor-was-here")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (5, 5),
        (-1, -1),
        (2**62, 2**62),
        ("7", 7),
        ("-1", -1),
        *((odd, None) for odd in (-2, 2**62 + 1, "-2", "--5", "²", "", "9" * 30, True, 1.5, None)),
    ],
)
def test_numbers_in_every_form(written: object, read: int | None) -> None:
    """A job writes the dump, so anything may be there."""
    data = pickle.dumps(
        {"pg_status": {"0": {"last_x": written}}, "entries": [{"pg_id": 0, "collective_seq_id": written}]}, 2
    )
    kept = json.loads(numbers(data))
    assert kept["pg_status"]["0"].get("last_x") == read
    if isinstance(written, int) and not isinstance(written, bool):
        assert kept["entries"][0].get("collective_seq_id") == read


def test_a_dump_that_holds_itself() -> None:
    """A list that contains itself, and values of other types than expected."""
    data = b"\x80\x02}q\x00(X\x09\x00\x00\x00pg_statush\x00X\x07\x00\x00\x00entries]q\x01h\x01au."
    assert json.loads(numbers(data))["entries"] == []


def test_what_the_host_could_not_read_is_said() -> None:
    problem = LibraryText(source="flight-recorder", name="/tmp/fr_0", pid=100, problem="it is cut off")
    found = said(problem)
    assert (found.kind, "it is cut off" in found.words) == (OpinionKind.SILENT, True)


@pytest.mark.parametrize("body", ["", "[]", "{", '{"entries": 7}', '{"pg_status": {"0": []}}', "[" * 100_000])
def test_texts_of_another_form(body: str) -> None:
    assert said(dump(0, body)).kind is OpinionKind.SILENT
