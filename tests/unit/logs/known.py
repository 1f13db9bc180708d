"""A few symptoms, and how the tests of the reader use them."""

from pathlib import Path

from doctor.logs.model import Form, Logs, Party, Role, Symptom
from doctor.logs.read import read
from doctor.logs.sources import Input, ReadLimits
from doctor.logs.symptoms.match import Matcher


def symptom(
    id: str, *literals: str, forms: tuple[Form, ...] = (), take: str = "", role: Role = Role.ROOT
) -> Symptom:
    return Symptom(id, "something happened", "test", role, (literals,), forms=frozenset(forms), take=take)


SYMPTOMS = (
    symptom("closed", "Connection closed by remote peer", forms=(Form.NCCL,)),
    symptom("killed", "exitcode  : -9", forms=(Form.ELASTIC,)),
    symptom("oom", "Out of memory: Killed process", forms=(Form.KERNEL,)),
    symptom(
        "reset", "Connection reset by peer", forms=(Form.PYTHON, Form.TORCH), take=r"\[(?P<host>[\d.]+)\]"
    ),
    symptom("socket", "Getting socket times out", forms=(Form.CANN, Form.MINDSPORE)),
    symptom("tls", "The TLS switch is inconsistent", forms=(Form.CANN,)),
    symptom("tcp", "Your Open MPI job may now hang or fail", forms=(Form.MPI,)),
    symptom("notify", "Task run failed", forms=(Form.PLOG,)),
    symptom("exited", "Exited with exit code", forms=(Form.SLURM,)),
    symptom("lost", "Connection lost for good"),
)
MATCHER = Matcher(SYMPTOMS)
NOW = 1_763_640_000.0
"""2025-11-20 12:00."""


def logs_of(*given: Input, limits: ReadLimits | None = None) -> Logs:
    return read(given, MATCHER, limits=limits, now=NOW)


def one(tmp_path: Path, text: str | bytes, name: str = "train.log") -> Logs:
    """The result of reading one file with this text."""
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return logs_of(path)


def seen(logs: Logs) -> list[tuple[str, Party, int, int]]:
    """The symptom, its party, the line of its first occurrence, and how often it occurs."""
    return [(each.symptom.id, each.first.who, each.first.number, each.count) for each in logs.sightings]
