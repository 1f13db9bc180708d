"""The logs of tests/samples/logs/jobs, the truth about each job, and the errors of a conclusion."""

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from doctor.logs.judge import JobFacts
from doctor.logs.judge.jobs import conclude_all
from doctor.logs.loss.collect import LossCollector
from doctor.logs.loss.judge import judge_curves
from doctor.logs.model import Conclusion, LogCause, LogOutcome, Party
from doctor.logs.read import read
from doctor.logs.symptoms.load import load_symptoms
from doctor.logs.symptoms.match import Matcher
from doctor.model import Confidence

JOBS = Path(__file__).resolve().parents[1] / "samples/logs/jobs"
HOSTS = {f"198.18.0.{10 + number}": f"node{number}" for number in range(1, 5)}


@dataclass(frozen=True, slots=True)
class Truth:
    """What faults.yaml says about one job."""

    name: str
    did: str
    guilty: Mapping[str, list[Any]]
    named: list[str] = field(default_factory=list)
    symptoms: list[str] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    quotes: str = ""

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(sorted(path for path in (JOBS / self.name).rglob("*") if path.is_file()))


@cache
def matcher() -> Matcher:
    return Matcher(load_symptoms().symptoms)


def written(folder: Path, *lines: str) -> Conclusion:
    """The conclusion of a log with these lines."""
    return pasted(folder, "".join(f"{line}\n" for line in lines))


def pasted(folder: Path, *parts: str) -> Conclusion:
    """The conclusion of a log with this text."""
    path = folder / "job.log"
    path.write_text("".join(parts))
    return concluded(path)


def concluded(*given: Path) -> Conclusion:
    """The conclusion of `doctor explain GIVEN`, without its report."""
    logs = read(given, matcher(), loss=LossCollector)
    return conclude_all(logs, JobFacts(), lambda job: judge_curves(job.curves, matcher().symptoms))


def truths() -> dict[str, Truth]:
    said = yaml.safe_load((JOBS / "faults.yaml").read_text())
    return {name: Truth(name, **entry) for name, entry in said.items() if (JOBS / name).is_dir()}


def accusations(said: Conclusion) -> list[LogCause]:
    """The causes: charges that no other charge led to."""
    return [charge for charge in said.charges if charge.because is None]


def accused(said: Conclusion) -> tuple[Party, ...]:
    return tuple(party for charge in accusations(said) for party in charge.who)


def innocents(said: Conclusion, truth: Truth) -> list[str]:
    """Parties that are accused and did nothing. A suspicion that also names the guilty party is not an
    accusation.
    """
    sure: list[tuple[str, str | int]] = []
    unsure: list[tuple[str, str | int]] = []
    for charge in accusations(said):
        named: list[tuple[str, str | int]] = [
            (word, value)
            for party in charge.who
            for word, value in (("host", host_of(party)), ("rank", party.rank))
            if value is not None
        ]
        (unsure if charge.confidence is Confidence.SUSPECT else sure).extend(named)
    wrong = [f"{word} {value}" for word, value in sure if value not in truth.guilty[f"{word}s"]]
    if not any(value in truth.guilty[f"{word}s"] for word, value in unsure):
        wrong += [f"{word} {value}" for word, value in unsure]
    return wrong


def quoted(said: Conclusion) -> str:
    """The lines that the causes show."""
    return "\n".join(line.text for charge in accusations(said) for line in charge.lines)


def host_of(party: Party) -> str | None:
    if party.host is None:
        return HOSTS.get((party.address or "").rpartition(":")[0] or (party.address or ""))
    return HOSTS.get(party.host, party.host)


def wrong(said: Conclusion, truth: Truth) -> list[str]:
    """Everything in the conclusion that is false; empty if the conclusion is right."""
    found = [f"outcome {said.outcome.value}"] if said.outcome is not LogOutcome.NAMED else []
    found += [f"innocent {each}" for each in innocents(said, truth)]
    causes = [charge.symptom or "-" for charge in accusations(said)]
    if not any(fnmatch.fnmatch(cause, glob) for cause in causes[:1] for glob in truth.symptoms):
        found.append(f"cause {', '.join(causes[:1]) or 'none'}")
    parties = accused(said)
    if "host" in truth.named and not any(host_of(party) in truth.guilty["hosts"] for party in parties):
        found.append("host not named")
    if "rank" in truth.named and not any(party.rank in truth.guilty["ranks"] for party in parties):
        found.append("rank not named")
    checks = {*said.checks, *(check for charge in accusations(said) for check in charge.checks)}
    if truth.checks and not checks & set(truth.checks):
        found.append(f"checks {', '.join(sorted(checks)) or 'none'}")
    if truth.quotes not in quoted(said):
        found.append(f"{truth.quotes} is not quoted")
    return found
