"""`doctor logs HOSTS`: fetches logs into a private folder, explains them, and removes them again."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.errors import DoctorError, UsageError
from doctor.exam.host_session import HostSession, open_session
from doctor.exam.request import Request
from doctor.exam.slurm_job import of_slurm
from doctor.job.launch.files import LIMIT
from doctor.logs.explain import LogOrigin, explain_logs
from doctor.logs.fetch.private import private_folder
from doctor.logs.fetch.script import MEGABYTE, LogRequest, fetch_script
from doctor.logs.fetch.unpack import HostLogs, unpack
from doctor.logs.model import Logs
from doctor.logs.naming import renamed
from doctor.logs.options import FetchWishes
from doctor.logs.search import LogSearch
from doctor.model import Answer, UnreachedHost
from doctor.probe import TOKEN, new_token, through
from doctor.stage import Stage
from doctor.text.announce import announce
from doctor.text.durations import seconds_of
from doctor.text.grouped import grouped
from doctor.text.nodeset import fold
from doctor.text.outfile import make_folder, why_not_ours
from doctor.text.printable import clean_line
from doctor.text.redact import redact
from doctor.text.textfile import read_text
from doctor.transport.advice import is_number
from doctor.transport.question import LogsQuestion
from doctor.transport.slurm.squeue import JobOutput, SqueueRefusal, job_output

if TYPE_CHECKING:
    from doctor.exam.in_job.own_programs import Makers

DAY = 24 * 60
"""Minutes. Without --path and --since, files written in the last day are fetched."""
MOST_MINUTES = 10 * 365 * DAY
SINCE = "Examples: --since 2h, 30m, 3d or '2026-01-31 10:00'."
OF_JOB = "the job"
"""The folder for files of the job itself. No host has such a name."""
ROOM = 0.25
"""The share of a host's limit that one file may take."""


def minutes_since(text: str) -> int:
    """The age in minutes: `2h`, `30m`, `3d`, or a local time of this machine. Raises UsageError."""
    if (seconds := seconds_of(text, "h")) is None:
        try:
            seconds = time.time() - datetime.fromisoformat(text.strip()).timestamp()
        except (ValueError, OverflowError):
            raise UsageError(f"--since: {text[:60]!r} is not a time.", SINCE) from None
        if seconds < 0:
            raise UsageError(f"--since: {text[:60]} is in the future.", SINCE)
    return max(1, min(MOST_MINUTES, int(seconds / 60) + 1))


def fetch_and_explain(request: Request, wishes: FetchWishes) -> int:
    """The exit code of `explain`; 3 if no host gave a log."""
    request, environ, number = of_slurm(request)
    wanted = _wanted(request, wishes, number or os.environ.get("SLURM_JOB_ID", ""))
    with _folder(wishes.save) as folder:
        paths, source = fetched_logs(request, wanted, folder, environ, kept=wishes.save is not None)
        check = request if wishes.check else None
        return explain_logs(paths, request, wishes.logs, fetched=source, check=check)


def own_fetch(request: Request, wishes: FetchWishes) -> Makers:
    """What a rank fetches for rank 0: the places are those of its own options."""
    from doctor.exam.in_job.own_programs import OwnProgram, RequestRefusal, nothing

    def make(question: LogsQuestion) -> OwnProgram:
        if not TOKEN.fullmatch(question.token):
            raise RequestRefusal("rank 0 asked a question that a rank does not answer")
        wanted = _wanted(request, wishes, os.environ.get("SLURM_JOB_ID", ""))
        host, sudo, python = question.host, request.way.sudo, request.smoke.python
        return OwnProgram(fetch_script(wanted, question.token, host, sudo=sudo, python=python), nothing)

    return {LogsQuestion: make}


def fetched_logs(
    request: Request,
    wanted: LogRequest,
    folder: Path,
    environ: Mapping[str, str] = os.environ,
    *,
    kept: bool = False,
) -> tuple[list[str], LogOrigin]:
    """The logs of the hosts, copied into the folder: the paths to read, and where they are from."""
    session = open_session(request, environ)
    try:
        wanted = replace(wanted, output=_with_reader(wanted.output, session))
        taken, silent = _fetch_all(session, wanted, folder)
        transport = session.transport.name
    finally:
        session.close()
    _tell_left_out(taken)
    empty = [host for host, of in taken.items() if not of.files and not of.missed]
    if empty and len(empty) < len(taken):
        announce(f"no logs were found on {fold(empty)}.")
    hosts = tuple(host for host, of in taken.items() if of.files)
    output = wanted.output
    names = {
        str(_of_job(path, name, output, folder) if host == output.host else path): (host, name)
        for host, of in taken.items()
        for path, name in of.files.items()
    }
    if kept and names:
        files = "1 file was" if len(names) == 1 else f"{len(names)} files were"
        announce(f"{files} kept in {folder}")
    missed = tuple(f"{host}: {why}" for host, of in taken.items() for why in of.missed)
    local = transport == "local"
    named = partial(_rename_files, names, str(folder), local, output.files if output.nodes > 1 else ())
    search = LogSearch(
        (*output.files, *wanted.globs()),
        _since(wanted.minutes),
        outputs=frozenset(redact(_shown_name(each, output.host, local)) for each in output.files),
    )
    asked = tuple(host.name for host in session.hosts)
    source = LogOrigin(hosts, silent, missed, named, transport, asked, search, environ)
    paths = [_of_host(folder, host) for host in hosts]
    return [str(path) for path in (*paths, folder / OF_JOB) if path.exists()], source


def _of_job(path: Path, name: str, output: JobOutput, folder: Path) -> Path:
    """Where a copied file is to be read. The name and the folder of a file of the job do not say who wrote a
    line of it: it gets a name that tells the job alone.
    """
    if name not in output.files:
        return path
    kind = ("out", "err")[output.files.index(name)]
    place = folder / OF_JOB / f"slurm-{output.number}.{kind}"
    place.parent.mkdir(mode=0o700, exist_ok=True)
    return path.rename(place)


def _since(minutes: float | None) -> str:
    if minutes is None:
        return ""
    return f"{datetime.fromtimestamp(time.time() - 60 * minutes, timezone.utc):%Y-%m-%d %H:%M} UTC"


def _wanted(request: Request, wishes: FetchWishes, slurm_job: str) -> LogRequest:
    paths = tuple(path for path in wishes.paths if path.strip())
    if len(paths) < len(wishes.paths):
        raise UsageError("--path is empty.", "Example: --path '/data/job7/*.log'.")
    if bad := next((path for path in paths if not path.isprintable()), None):
        raise UsageError(f"--path: {clean_line(bad)} is not a file name.")
    since = None if wishes.since is None else minutes_since(wishes.since)
    limit = int(wishes.max_mb * MEGABYTE)
    return LogRequest(
        paths,
        since if since is not None or paths else DAY,
        max(1, int(limit * ROOM)),
        limit,
        () if paths else tuple(_folders(request)),
        JobOutput() if paths else _output(slurm_job),
        wishes.rank_user or "",
    )


def _output(number: str) -> JobOutput:
    """Where the Slurm job with this number writes.

    The number of a job proves nothing: another user, who chose the names of the files of
    that user's job, must not choose what we read.
    """
    none = JobOutput()
    if not is_number(number):
        return none
    try:
        output = job_output(number) or none
    except SqueueRefusal as error:
        announce(f"where Slurm job {number} writes is not known: {error}.")
        return none
    files = tuple(path for path in output.files if path != os.devnull and path.isprintable())
    if output.files and not files:
        announce(f"the output of Slurm job {number} goes to {clean_line(output.files[0])}.")
    elif files and output.uid != os.getuid():
        announce(f"Slurm job {number} is of another user, so its output was not read: {', '.join(files)}")
        return none
    return replace(output, files=files)


def _with_reader(output: JobOutput, session: HostSession) -> JobOutput:
    """The same output, read by a host that was asked."""
    asked = [host.name for host in session.hosts]
    if not output.files or output.host in asked:
        return output
    if session.transport.name == "local":
        return replace(output, host=asked[0])
    files = ", ".join(output.files)
    announce(f"{output.host} was not asked, so the output of the Slurm job there was not read: {files}")
    return JobOutput()


def _folders(request: Request) -> Iterator[str]:
    """The folders that the job was started in, from the variables of its ranks, and the current folder.

    Raises InputErrors.
    """
    for path in request.job.launch_files:
        folders = re.finditer(r"(?:^|\n)(?:export )?PWD=(/[^\s\0]{1,500})", read_text(path, LIMIT))
        yield from (glob.escape(found[1]) for found in folders)
    with contextlib.suppress(FileNotFoundError):  # the folder was removed meanwhile
        yield glob.escape(os.getcwd())


@contextmanager
def _folder(save: Path | None) -> Iterator[Path]:
    """The folder for logs. It must be empty, so that no other file is overwritten or read as a log."""
    if save is None:
        with private_folder() as folder:
            yield folder
        return
    try:
        if not (why := why_not_ours(save)):
            make_folder(save.absolute())
            why = why_not_ours(save)
        if why:
            raise UsageError(f"--save: {save}: {why}.", "Name a new folder.")
        if any(save.iterdir()):
            raise UsageError(f"--save: {save} is not empty.", "Name a new folder.")
    except OSError as error:
        raise UsageError(f"--save: {save}: {error.strerror}.") from None
    yield save


def _fetch_all(
    session: HostSession, wanted: LogRequest, folder: Path
) -> tuple[dict[str, HostLogs], dict[str, str]]:
    """The logs of all hosts, fetched at the same time, and the reason of each host that gave nothing."""
    hosts, way = session.hosts, session.request.way
    tokens = {host.name: new_token() for host in hosts}
    scripts = {
        host.name: through(
            fetch_script(wanted, tokens[host.name], host.name, sudo=way.sudo, python=host.python), host
        )
        for host in hosts
    }
    waiting = [host.name for host in hosts]
    taken: dict[str, HostLogs] = {}
    silent: dict[str, str] = {}
    session.line(Stage("logs", "0 answered", 0, len(hosts), waiting=waiting, limit=way.timeout))
    for outcome in session.transport.run(scripts, way.timeout, session.until):
        waiting.remove(outcome.host)
        if isinstance(outcome, UnreachedHost):
            silent[outcome.host] = outcome.summary
        else:
            taken[outcome.host] = _unpack_answer(outcome, tokens[outcome.host], folder, wanted.a_host)
        done = len(hosts) - len(waiting)
        session.line(Stage("logs", f"{done} answered", done, len(hosts), waiting=waiting, limit=way.timeout))
    return {host.name: taken[host.name] for host in hosts if host.name in taken}, silent


def _unpack_answer(answer: Answer, token: str, folder: Path, limit: int) -> HostLogs:
    try:
        return unpack(answer, token, _of_host(folder, answer.host), limit)
    except OSError as error:
        raise DoctorError(f"{folder}: the logs could not be written: {error.strerror}.") from None


def _of_host(folder: Path, host: str) -> Path:
    return folder / host.replace("/", "_")


def _tell_left_out(taken: Mapping[str, HostLogs]) -> None:
    """Print the notes, equal ones of several hosts once; logs that may hold complaints are in the report."""
    alike = grouped((redact(why), host) for host, of in taken.items() for why in of.told[:20])
    for why, hosts in list(alike.items())[:40]:
        announce(f"{fold(hosts)}: {why}")


def _shown_name(there: str, host: str, local: bool) -> str:
    return there if local else f"{host}:{there}"


def _rename_files(
    names: Mapping[str, tuple[str, str]], folder: str, local: bool, of_all: Collection[str], logs: Logs
) -> Logs:
    """Rename files to `node3:/var/log/messages`; for logs of this machine, to the plain path. What was left
    out is a list of files. `of_all`: files into which all hosts write, so they are not of the one that read
    them.
    """
    copied = re.compile(rf"{re.escape(str(folder))}/([^/]+)(/[^,]*)")

    def name(path: str) -> str:
        host, there = names.get(path, ("", ""))
        if host:
            return _shown_name(there, host, local)
        return copied.sub(r"\2" if local else r"\1:\2", path)

    hosts = {path: host for path, (host, there) in names.items() if there not in of_all}
    return renamed(logs, name, hosts.get)
