"""What logs say as JSON, schema 1. Findings have the fields of every report, with `check` null."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from doctor import __version__
from doctor.errors import EXIT_FAULT, EXIT_INCONCLUSIVE, EXIT_OK
from doctor.logs.explained import Explained, headline, last_words, whom
from doctor.logs.model import Curve, Line, LogFile, Party
from doctor.model import Verdict
from doctor.report.json import SCHEMA
from doctor.text.nodeset import fold
from doctor.text.printable import escaped

_VERDICTS = {
    EXIT_OK: Verdict.HEALTHY,
    EXIT_FAULT: Verdict.FAULTY,
    EXIT_INCONCLUSIVE: Verdict.INCONCLUSIVE,
}
"""Scripts know these words; what logs can say is `logs.outcome`."""


def as_json(explained: Explained) -> bytes:
    text = msgspec.json.encode(as_data(explained))
    return escaped(msgspec.json.format(text, indent=1).decode()).encode() + b"\n"


def as_data(explained: Explained) -> dict[str, Any]:
    found = explained.conclusion
    return {
        "schema": SCHEMA,
        "tool": {"name": "cluster-doctor", "version": __version__},
        "run": {
            "command": explained.command,
            "started": explained.started,
            "seconds": explained.seconds,
        },
        "verdict": _VERDICTS[explained.exit_code].value,
        "exit_code": explained.exit_code,
        "summary": last_words(explained),
        "findings": [_finding(explained, place) for place in range(len(found.charges))],
        "logs": {
            "outcome": found.outcome.value,
            "read": found.read,
            "folder": explained.folder or None,
            "hosts": list(found.hosts),
            "checks": list(found.checks),
            "commands": list(explained.proves()),
            "ranks": sorted({rank for file in explained.logs.files for rank in _ranks(file)}),
            "timeline": [{"at": at, "says": says} for at, says in found.story],
            "odd": [_line(line) for line in found.odd],
            "progress": [_line(line) for line in explained.progress],
            "beside": list(found.beside),
            "open": list(found.open),
            "unread": list(explained.unread),
            "files": [_file(file) for file in explained.logs.files],
            "curves": [_curve(curve) for curve in explained.logs.curves],
            "fetched_from": list(explained.fetched),
        },
    }


def _finding(explained: Explained, place: int) -> dict[str, Any]:
    charge = explained.conclusion.charges[place]
    hosts = list(dict.fromkeys(each.host for each in charge.who if each.host))
    proof = explained.proof_of(place)
    return {
        "id": f"f{place + 1}",
        "check": None,
        "symptom": charge.symptom,
        "status": "fail" if explained.exit_code == EXIT_FAULT else "unknown",
        "role": charge.role.value,
        "hosts": hosts,
        "nodeset": fold(hosts),
        "subject": whom(charge.who) or None,
        "where": [_party(each) | {"port": None, "peer": each.address} for each in charge.who],
        "view": "host",
        "confidence": charge.confidence.value,
        "summary": headline(charge),
        "expected": "",
        "actual": "",
        "evidence": [{"source": f"{line.file}:{line.number}", "text": line.text} for line in charge.lines],
        "remedy": charge.remedy,
        "because": None if charge.because is None else f"f{charge.because + 1}",
        "known_by": list(charge.how),
        "causes": list(charge.causes),
        "checks": list(charge.checks),
        "count": charge.count,
        "proved": {"on_hosts": proof.proved.value, "says": proof.says} if proof else None,
    }


def _party(who: Party) -> dict[str, Any]:
    return {"host": who.host, "rank": who.rank, "device": who.device}


def _line(line: Line) -> dict[str, Any]:
    return {"file": line.file, "line": line.number, "text": line.text, "rank": line.who.rank, "at": line.at}


def _ranks(file: LogFile) -> tuple[int, ...]:
    return file.ranks or (() if file.who.rank is None else (file.who.rank,))


def _file(file: LogFile) -> dict[str, Any]:
    return {
        "name": file.name,
        "bytes": file.size,
        "lines": file.lines,
        "forms": [form.value for form in file.forms],
        "host": file.who.host,
        "ranks": list(_ranks(file)),
        "problem": file.problem or None,
    }


def _curve(curve: Curve) -> dict[str, Any]:
    """What is no number is null: JSON has no word for it."""
    return {
        "file": curve.file,
        "rank": curve.who.rank,
        "host": curve.who.host,
        "steps": list(curve.steps),
        "losses": [loss if math.isfinite(loss) else None for loss in curve.losses],
        "total": curve.total,
    }
