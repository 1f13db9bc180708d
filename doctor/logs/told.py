"""What logs tell of the launch: which master each host was given, and where the store of the job was."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.job.launch import Launch, ProcessEnv
from doctor.logs.judge.parties import bare
from doctor.logs.model import Line, Logs

MASTER = "master-not-here"
"""The check that judges it."""
_KEEPS_THE_STORE = "torch-clients-not-joined"
"""Only rank 0 writes it."""


def launch_told(logs: Logs) -> Launch | None:
    """None where no line names a master."""
    hosts = {file.name: file.who.host for file in logs.files}

    def host(line: Line) -> str | None:
        return line.who.host or hosts.get(line.file)

    masters = tuple(dict.fromkeys((host(line), name, port) for line, name, port in _masters(logs)))
    stores = {host(each.first) for each in logs.sightings if each.symptom.id == _KEEPS_THE_STORE} - {None}
    told = [
        ProcessEnv("its log", at, {"MASTER_ADDR": name, "MASTER_PORT": port}, whole=False)
        for at, name, port in masters
    ]
    if len(stores) == 1:
        told += [ProcessEnv("its log", next(iter(stores)), {"RANK": "0"}, whole=False)]
    return Launch("the job of the logs", tuple(told), complete=False) if masters else None


def _masters(logs: Logs) -> Iterator[tuple[Line, str, str]]:
    for each in logs.sightings:
        name, port = each.taken.get("host", ""), each.taken.get("port", "")
        if each.symptom.family == "torch" and MASTER in each.symptom.checks and name and port:
            yield each.first, bare(name)[0] or name, port
