"""Recordings: some are spoilt anywhere; others are honest recordings of healthy hosts with a part of a host's
answer destroyed.

The second kind must never end in a silent 0: it proves nothing if it lacks what an essential check needs, and
everything else that could not be read is listed.
"""

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from doctor.api import Fact, Read
from doctor.exam import examination
from doctor.exam.demo import FOLDER
from doctor.exam.request import Request
from doctor.judge.examine import facts_of
from doctor.judge.reading import Reading
from doctor.judge.registry import find_checks
from doctor.judge.verdict import Report
from doctor.model import Answer, AnswerEnd, MissingFact, Status, UnreachedHost
from doctor.probe import DAMAGED, read
from doctor.probe.frames import FILES, FRAME, THERE
from doctor.recording import Recording, decoded
from doctor.report.out.formats import FORMATS
from tests.support.paths import ROOT
from tests.support.reports import print_report
from tests.trials.fuzz.mutate import EVIL, spoilt
from tests.trials.fuzz.target import Find, printed, refuse_unsafe

SAMPLES = ROOT / "tests" / "samples" / "recordings"
HERE = Path("fuzz.run.json")
HEALTHY = ("healthy", "lab-healthy", "lab-smoke-healthy", "gpu-healthy", "npu-healthy", "one-host", "no-root")
ESSENTIAL = {"identity", "devices", "spaces"}
"""The facts of every host that an essential check cannot do without."""
GONE = ("late", "damaged", "lost")
"""The ways in which an answer can be missing; in an older recording, it may have been lost as well."""


@cache
def packed() -> dict[str, bytes]:
    files = [*sorted(SAMPLES.glob("*.run.json.gz")), *sorted(FOLDER.glob("*.run.json.gz"))]
    return {path.name.removesuffix(".run.json.gz"): gzip.decompress(path.read_bytes()) for path in files}


def honest() -> Sequence[bytes]:
    """The short recordings also by themselves, so that their few captures are spoilt often."""
    return list(packed().values())


checks = cache(find_checks)


def judged(recording: Recording, command: str = "") -> tuple[Reading, Report]:
    """The verdict of `--replay`; the bundled checks are loaded once."""
    with patch.object(examination, "find_checks", checks):
        return examination.judge_again(Request(command or recording.command), recording)


def read_recording(case: bytes) -> None:
    recording = decoded(case, HERE)
    _, report = judged(recording)
    refuse_broken(report)
    show(report)


def refuse_broken(report: Report) -> None:
    """Whatever was heard, neither a parser of ours nor a check crashes."""
    for result in report.results:
        if result.status is Status.CRASH:
            raise Find(f"{result.check} broke: {result.reason}")
    for note in report.notes:
        if "its parser broke" in note:
            raise Find(note)


def show(report: Report) -> None:
    refuse_unsafe(printed(partial(print_report, report)))
    for form in FORMATS:
        refuse_unsafe(form.write(report).decode())
    json.loads(FORMATS[0].write(report))


# A part of a host's answer is destroyed.


def broken_answers() -> Sequence[bytes]:
    return [name.encode() for name in HEALTHY]


def break_an_answer(dice: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """The name of a recording, a host, a fact, and what replaces its capture."""
    recording = _healthy(data.decode())
    host = dice.choice(sorted(recording.heard))
    fact = dice.choice(sorted(recording.heard[host].captures))
    own = recording.heard[host].captures[fact].stdout
    how = dice.choice(("spoilt", "noise", "evil", "other", *GONE))
    text = {
        "spoilt": spoilt(dice, own.encode(), []).decode("utf-8", "replace"),
        "noise": dice.randbytes(dice.choice((20, 900))).decode("latin-1"),
        "other": dice.choice([each.stdout for each in recording.heard[host].captures.values()]),
        "evil": dice.choice(EVIL),
    }.get(how, "")
    return json.dumps([data.decode(), host, fact, how, text]).encode("utf-8", "surrogatepass")


@cache
def _healthy(name: str) -> Recording:
    return decoded(packed()[name], HERE)


@cache
def _judged(name: str) -> tuple[Reading, Report]:
    recording = _healthy(name)
    reading, report = judged(recording)
    assert report.exit_code == 0
    return reading, report


def read_broken_answer(case: bytes) -> None:
    name, host, fact, how, text = json.loads(case)
    recording = _healthy(name)
    answer = recording.heard[host]
    captures, missing = {**answer.captures}, {**answer.missing}
    if how in GONE:
        del captures[fact]
    if how in GONE[:2]:
        why = DAMAGED if how == "damaged" else "its command did not end within 5 s"
        missing[fact] = MissingFact(fact, why)
    elif how != "lost":
        captures[fact] = replace(captures[fact], stdout=text)
    spoilt_one = replace(answer, captures=captures, missing=missing)
    reading, report = judged(replace(recording, heard={**recording.heard, host: spoilt_one}))
    refuse_broken(report)
    refuse_unsafe(printed(partial(print_report, report)))
    if report.exit_code != 0:
        return
    if (fact in ESSENTIAL and how in (*GONE, "noise")) or how == "damaged":
        raise Find(f"{fact} of {host} in {name} was {how}, and the exit code is 0")
    if how == "late" and not _listed(report, _judged(name)[1]) and _used(name, host, fact):
        raise Find(f"{fact} of {host} in {name} was {how}, and nothing says so")
    value = (
        reading.facts.get(host, _fact(name, fact)) if how not in GONE and _used(name, host, fact) else None
    )
    if isinstance(value, MissingFact) and not value.absent and not _listed(report, _judged(name)[1]):
        raise Find(f"{fact} of {host} in {name} could not be read, and nothing says so: {value.reason}")


def _listed(report: Report, before: Report) -> bool:
    """Whether the report lists more than without the damage."""
    return {*_told(report)} > {*_told(before)} or bool({*_told(report)} - {*_told(before)})


def _told(report: Report) -> Iterator[Any]:
    yield from report.notes
    for finding in report.findings:
        yield finding.check, finding.status, finding.hosts, finding.summary


@cache
def _facts(name: str) -> dict[str, Any]:
    skipped = {r.check for r in _judged(name)[1].results if r.status is Status.SKIP}
    ran = [check for check in checks(()).checks if check.id in _judged(name)[1].checks.scopes]
    return {fact.name: fact for fact in facts_of(check for check in ran if check.id not in skipped)}


def _used(name: str, host: str, fact: str) -> bool:
    """Whether a check that ran, or the plan, looks at the fact, and the fact was readable before."""
    known = _facts(name).get(fact)
    return known is not None and not isinstance(_judged(name)[0].facts.get(host, known), MissingFact)


def _fact(name: str, fact: str) -> Any:
    return _facts(name)[fact]


# A host's answer is spoilt before it is taken apart.

TOKEN = "0123456789abcdef" * 2


def frames() -> Sequence[bytes]:
    """The answer of one host of each healthy recording, as the probe prints it."""
    return [_framed(name) for name in HEALTHY]


def _framed(name: str) -> bytes:
    answer, facts = next(iter(_healthy(name).heard.values())), asked()
    read = {f.name for f in facts if isinstance(f.command, Read)}
    lines = (line for n in read if n in answer.captures for line in answer.captures[n].stdout.split("\n"))
    texts = {FILES: "\n".join(dict.fromkeys(lines)), THERE: ""}
    texts |= {n: capture.stdout for n, capture in answer.captures.items() if n not in read}
    out = [f"login banner of {name}".encode()]
    for fact, text in texts.items():
        payload = text.encode()
        rc = answer.captures[fact].rc if fact in answer.captures else 0
        out.append(f"{TOKEN[:FRAME]} o {fact} {rc or 0} {len(payload)}\n".encode() + payload)
    return b"\n".join([*out, f"{TOKEN} done".encode(), b""])


@cache
def asked() -> Sequence[Fact[Any]]:
    return facts_of(checks(()).checks)


def read_frames(case: bytes) -> None:
    """The answer becomes that of the second host, beside a healthy one."""
    whole = _healthy("healthy")
    host = sorted(whole.heard)[1]
    said = read(Answer(host, case, b"", 0, AnswerEnd.DONE, 0.0, 1.0), asked(), TOKEN)
    rest = {name: answer for name, answer in whole.heard.items() if name != host}
    if isinstance(said, UnreachedHost):
        whole = replace(whole, heard=rest, unreached={host: said})
    else:
        whole = replace(whole, heard={**rest, host: said})
    _, report = judged(whole)
    refuse_broken(report)
    show(report)


# The mesh's results are destroyed.


def break_the_mesh(dice: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Remove the links and listeners of some hosts."""
    tree = json.loads(packed()[data.decode()])
    names = [host["name"] for host in tree["hosts"]]
    some = dice.sample(names, dice.randrange(1, len(names) + 1))
    mesh = tree["mesh"]
    ways = dice.choice((("source",), ("target",), ("source", "target")))
    mesh["links"] = [link for link in mesh["links"] if not any(link[way] in some for way in ways)]
    if dice.random() < 0.5:
        mesh["listeners"] = [each for each in mesh["listeners"] if each["host"] not in some]
    if dice.random() < 0.3:
        mesh["shape"] = dice.choice(("full", "sparse", "ring", "none"))
    return json.dumps(tree).encode()


def meshes() -> Sequence[bytes]:
    return [name.encode() for name in HEALTHY if _healthy(name).mesh]


def read_without_mesh(case: bytes) -> None:
    recording = decoded(case, HERE)
    _, report = judged(recording)
    refuse_broken(report)
    assert recording.mesh is not None
    tested = [link for link in recording.mesh.links if link.tested]
    reached = {link.source for link in tested} & {link.target for link in tested}
    if wrong := {*report.healthy_hosts} - reached:
        raise Find(f"healthy without a connection: {sorted(wrong)}")
    if report.exit_code == 0:
        raise Find("0 without connections")
