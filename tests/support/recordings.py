"""Recordings built by hand: the answers of the hosts of a small cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from doctor.api import Check
from doctor.expect import Expect
from doctor.facts.baseline import FLOOR, SINCE
from doctor.facts.smoke import SMOKE, SOAK
from doctor.job.wishes import JobWishes
from doctor.judge.examine import PreparedExam, build_report
from doctor.judge.playbook import Exam, load_exam, load_remedies
from doctor.judge.reading import read_recording
from doctor.judge.registry import find_checks
from doctor.judge.verdict import Report, Rules, essential_ids
from doctor.mesh import Link, Listener, MeshResult
from doctor.model import Capture, Host, MissingFact
from doctor.probe import HostAnswer
from doctor.recording import Recording
from doctor.savedrun import SCHEMA
from tests.support.captures import as_read
from tests.support.cases import from_cases

NOW = 1_795_167_475.0
HEALTHY = from_cases(__file__, "HEALTHY", dict[str, str])
FILES = from_cases(__file__, "FILES", dict[str, dict[str, str]])


def heard(
    number: int, names: Sequence[str], /, **changed: str | Mapping[str, str] | MissingFact
) -> HostAnswer:
    """The answer of the healthy host 10.0.0.NUMBER, with changes: text, files or a MissingFact."""
    name = names[number - 1]
    texts: dict[str, Any] = dict(HEALTHY)
    texts |= {fact: as_read(files) for fact, files in FILES.items()}
    texts["identity"] = as_read({"/proc/sys/kernel/hostname": name})
    texts["addresses"] = f"1: lo inet 127.0.0.1/8 scope\n2: eth0 inet 10.0.0.{number}/24 scope global"
    texts["names"] = "\n".join(
        f"? {peer}\n10.0.0.{n} STREAM {peer}"
        for n, peer in sorted(enumerate(names, 1), key=lambda x: x[1] != name)
    )
    for key, value in changed.items():
        texts[key.replace("_", "-")] = as_read(value) if isinstance(value, Mapping) else value
    missing = {fact: text for fact, text in texts.items() if isinstance(text, MissingFact)}
    captures = {fact: Capture(fact, 0, text) for fact, text in texts.items() if isinstance(text, str)}
    return HostAnswer(name, captures, missing, True, NOW, NOW + 0.5)


def mesh(names: Sequence[str], *failed: tuple[str, str]) -> MeshResult:
    """A mesh where every host reached every other on an ephemeral port, except for some (source, target)."""
    links = [
        Link(source, target, f"10.0.0.{n}", 40000 + n, "ephemeral", outcome)
        for n, target in enumerate(names, 1)
        for source in names
        if source != target
        for outcome in ("dropped" if (source, target) in failed else "ok",)
    ]
    listeners = [Listener(name, "ephemeral", 0, 40000 + n) for n, name in enumerate(names, 1)]
    return MeshResult("full", names[0], tuple(listeners), tuple(links), (), (), 0.5)


def recording(names: Sequence[str], /, **changed: Any) -> Recording:
    """A run over healthy hosts; `heard` gives the answers of some of them."""
    answers = {name: heard(n, names) for n, name in enumerate(names, 1)} | changed.pop("heard", {})
    plain = Recording(
        schema=SCHEMA,
        tool="0",
        command="preflight",
        exam="preflight",
        transport="ssh",
        started="2026-11-20T09:00:00Z",
        seconds=1.5,
        hosts=tuple(Host(name, f"10.0.0.{n}") for n, name in enumerate(names, 1)),
        wishes=JobWishes(),
        expect={},
        heard=answers,
        mesh=mesh(names) if len(names) > 1 else None,
    )
    return replace(plain, **changed)


def syllabus(
    checks: Sequence[Check] | None = None, exam: Exam | None = None, *, smoke: bool = False, **rules: Any
) -> PreparedExam:
    """The preflight exam without floor or baseline, by default over all bundled checks, with or without a
    smoke run.
    """
    bundled = find_checks().checks if checks is None else tuple(checks)
    lacking = {FLOOR, SINCE, SOAK} if smoke else {FLOOR, SINCE, SOAK, SMOKE}
    chosen = tuple(check for check in bundled if not lacking & {*check.needs})
    exam = exam or (load_exam("preflight", bundled) if checks is None else Exam("test"))
    rules = {"essential": essential_ids((check.id for check in chosen), exam.essential)} | rules
    return PreparedExam("preflight", exam, chosen, (), Expect(), Rules(**rules))


def report(of: Recording, *, stopped_by: int | None = None, **rules: Any) -> Report:
    reading = read_recording(replace(of, stopped_by=stopped_by))
    return build_report(reading, syllabus(smoke=of.smoke_wanted, **rules), load_remedies())


def answered(of: Recording) -> tuple[Check, ...]:
    """The checks that the recording was made for: newer checks may ask for facts that it lacks."""
    unheld = {result.check for result in report(of).results if "does not hold it" in (result.reason or "")}
    return tuple(check for check in find_checks().checks if check.id not in unheld)
