"""Writes the report in every format that was asked for, to every place that was named."""

from __future__ import annotations

import os
import shlex
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from doctor.errors import DoctorError, UsageError
from doctor.facts.network import LISTENERS
from doctor.job.launch.forms import Go, LaunchParts
from doctor.judge.engine import Facts
from doctor.judge.reading import Reading
from doctor.judge.verdict import HostReport, Report
from doctor.model import MissingFact
from doctor.recording import encoded, save
from doctor.report.files.envelope import Envelope
from doctor.report.out.file_names import host_file, job_id, run_name
from doctor.report.out.formats import FORMATS, STDOUT, Outputs, lines
from doctor.report.out.host_files import host_files
from doctor.report.out.shadow import shadow_line, shadowed
from doctor.report.start.go import Bound, chosen, decide_go, go_line
from doctor.report.start.launch_line import (
    AUTO,
    FORMS,
    form_for,
    hostfile,
    launch_lines,
    launch_notes,
    read_form,
    tasks_on_a_node,
)
from doctor.report.start.no_go import no_go
from doctor.text.announce import announce
from doctor.text.console import draw, drawn
from doctor.text.nodeset import fold
from doctor.text.outfile import (
    add_files,
    append_line,
    is_stream,
    make_folder,
    why_not,
    why_not_ours,
    write_file,
)
from doctor.text.printable import clean_line
from doctor.text.speech import t
from doctor.text.terminal import WIDTH, put, tell

if TYPE_CHECKING:
    from rich.console import Console

Named = tuple[str, Path]
"""The name of an option, and the file that it names."""


def empty_lists(outputs: Outputs, inputs: Iterable[Named] = ()) -> None:
    """Empties lists of healthy hosts before anything else: however this run ends, nobody finds the go of an
    earlier run in its place.

    A file that this run reads is not a list of an earlier run: `refuse_unwritable` reports it.
    """
    read = {os.path.realpath(path) for _, path in inputs}
    for form, path in outputs.files():
        old = form.is_go and os.path.isfile(path) and not is_stream(path) and not why_not(path)
        if old and os.path.realpath(path) not in read:
            try:
                write_file(path, b"")
            except OSError as error:
                raise UsageError(f"{path}: cannot be written: {error.strerror}.", WRITABLE) from None


WRITABLE = "Name a file in a folder that is writable."


def refuse_unwritable(
    outputs: Outputs, others: Mapping[str, Path | None], inputs: Iterable[Named] = ()
) -> None:
    """Raises UsageError before the run if a report could not be written at its end.

    `others` are further files that will be written, by the name of their option.
    """
    files = {**others, "--shadow": outputs.shadow}
    on_stdout = []
    for form, path in outputs.files():
        if path == STDOUT and form.stdout:
            on_stdout.append(form.option)
        else:
            files[form.option] = path
    if outputs.launch is not None:
        read_form(outputs.launch)
        on_stdout.append("--print")
    if len(on_stdout) > 1:
        first, *_, last = on_stdout
        raise UsageError(f"{last} and {first} - both write to stdout.", f"Name a file for {first}.")
    named = {os.path.realpath(path): option for option, path in inputs}
    for option, path in ((option, path) for option, path in files.items() if path is not None):
        if path == STDOUT:
            *able, last = (form.option for form in FORMATS if form.stdout)
            raise UsageError(
                f"Only {', '.join(able)} and {last} can write to stdout.", f"Name a file for {option}."
            )
        if why := why_not(path):
            raise UsageError(f"{path}: cannot be written: {why}.", WRITABLE)
        if is_stream(path):
            continue
        if (place := os.path.realpath(path)) in named:
            raise UsageError(f"{option} and {named[place]} name the same file, {path}.")
        named[place] = option
    if outputs.report_dir is not None:
        make_report_folder(outputs.report_dir)
    if outputs.per_host is not None:
        make_report_folder(outputs.per_host, "--per-host")
    if outputs.shadow is not None:
        _refuse_shadow(outputs.shadow, outputs.launch)


class Attempts:
    """What is written one after the other: what cannot be written does not stop the rest."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def __call__(self, what: Path | str, write: Callable[[], object]) -> None:
        try:
            write()
        except OSError as error:
            self.failed.append(f"{what} could not be written: {error.strerror}.")

    def write(self, path: Path, data: bytes, *, for_all: bool = False) -> None:
        if path == STDOUT:
            self("stdout", partial(put, data.decode(), sys.stdout))
        else:
            self(path, partial(write_file, path, data, for_all=for_all))

    def settle(self, hint: str = "") -> None:
        """Raises DoctorError if something could not be written."""
        if self.failed:
            raise DoctorError("\n".join(self.failed), hint)


def show(report: Report, outputs: Outputs, out: TextIO) -> None:
    """Prints the report for a person. With -q nothing is printed if healthy, nor if --print turns a no-go
    into three lines, unless a check broke.
    """
    if report.broken or not outputs.quiet or (report.exit_code != 0 and outputs.launch is None):
        draw(_printer(report, outputs), out, outputs.colours)


def deliver(report: Report, reading: Reading | None, outputs: Outputs, saved_as: Path | None = None) -> int:
    """Writes everything, the terminal first, and returns the exit code. A file that cannot be written does
    not stop the others and is reported at the end.

    The launch line comes last: it is printed only if everything else could be written.
    """
    attempt = Attempts()
    on_stdout = [form for form, path in outputs.files() if path == STDOUT]
    for form in on_stdout:
        attempt(f"{form.option} on stdout", partial(put, form.write(report).decode(), sys.stdout))
    terminal = sys.stderr if on_stdout or outputs.launch is not None else sys.stdout
    attempt("The terminal report", partial(show, report, outputs, terminal))
    if reading is not None and saved_as is not None:
        attempt(saved_as, partial(save, reading.recording, saved_as))
    for form, path in outputs.files():
        if path != STDOUT:
            attempt.write(path, form.write(report), for_all=form.for_all)
    tell_who_reads(outputs)
    if (per_host := outputs.per_host) is not None:
        for name, data in host_files(report):
            attempt.write(per_host / name, data)
        if report.run.transport != "local":  # one of many machines may add its own file to the others
            attempt(per_host / SWEEP, partial(_forget_others, per_host, report.hosts))
    go, launcher = _going(report, reading, outputs) if outputs.starts_jobs else (None, "")
    kept: dict[str, Path] = {}
    if (folder := outputs.report_dir) is not None:
        files = _files(report, reading, outputs, go)
        keep = outputs.keep or add_files
        stopped = report.run.stopped_by is not None
        name = run_name(report.run.started, job_id(os.environ), os.getpid(), interrupted=stopped)
        attempt(folder, lambda: kept.update(keep(folder.absolute(), name, files)))
    if said := _in_a_log(report, outputs, kept.get(".txt"), go):
        tell(said)
    if go and outputs.launch is not None and not attempt.failed:
        tasks = tasks_on_a_node(go, report.plan, os.environ)
        when = "".join(filter(str.isalnum, report.run.started))
        start = LaunchParts(go, job_id(os.environ) or f"doctor-{when}", kept.get(HOSTS), tasks)
        tell(_spoken(start, launcher, outputs))
        attempt("The launch line", partial(put, launch_lines(start, launcher), sys.stdout))
    code = report.exit_code
    if (shadow := outputs.shadow) is not None:
        attempt(shadow, lambda: in_shadow(report, shadow))
        code = shadowed(code)
    attempt.settle(f"The verdict was: {report.verdict.value}.")
    return code


def in_shadow(report: Report, path: Path) -> int:
    """The exit code of the run in the shadow, after its line was added to the file. Raises OSError."""
    append_line(path, shadow_line(report))
    announce(f"shadow: this would have ended with {report.exit_code}; written to {path}")
    return shadowed(report.exit_code)


def write_formats(
    outputs: Outputs, envelope: Envelope, pages: Mapping[str, Callable[[], bytes]] | None = None
) -> None:
    """Writes the report of a command that runs no checks, after its text. `pages` maps the options of formats
    that need more than the envelope to their writers. A file that cannot be written does not stop the others.
    Raises DoctorError.
    """
    attempt = Attempts()
    for form, path in outputs.files():
        data = form.of_envelope(envelope) if form.of_envelope else (pages or {})[form.option]()
        attempt.write(path, data, for_all=form.for_all)
    attempt.settle()
    tell_who_reads(outputs)


def tell_who_reads(outputs: Outputs) -> None:
    """Says that the page is private, since people pass its name on to others."""
    path = outputs.html
    if path is not None and path != STDOUT and not outputs.quiet and path.is_file() and not is_stream(path):
        named = clean_line(shlex.quote(str(path)))
        announce(f"{named}: open it in a browser. Only you can read it; for others: chmod a+r {named}")


def _in_a_log(report: Report, outputs: Outputs, whole: Path | None, go: Go | None) -> str:
    """The lines for stderr in the log of a job, unless other output has the same content: empty for a go
    whose report or launch line appears, and for a no-go whose findings -q has shown.
    """
    if report.exit_code == 0:
        hosts = go.hosts if go and outputs.launch is not None else report.healthy_hosts
        return go_line(report, hosts) if outputs.quiet and hosts else ""
    if outputs.quiet and outputs.launch is None:
        return f"doctor: {t(f'the whole report is {whole}')}\n" if whole else ""
    return no_go(report, whole) if outputs.for_a_script else ""


SWEEP = ".sweep"
"""The list of the files that the latest sweep over hosts wrote, in --per-host."""


def _forget_others(folder: Path, hosts: Iterable[HostReport]) -> None:
    """Removes the files of hosts that only an earlier sweep examined."""
    listed, names = folder / SWEEP, {host_file(host.name) for host in hosts}
    for name in {Path(each).name for each in _listed(listed) if each.endswith(".json")} - names:
        (folder / name).unlink(missing_ok=True)
    write_file(listed, lines(sorted(names)))


def _listed(file: Path) -> Sequence[str]:
    """The words of our own file: in a folder for all, somebody else's list would remove files of ours."""
    with suppress(FileNotFoundError):
        about = file.lstat()
        if stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid():
            return file.read_text(errors="replace").split()
    return ()


HOSTS = ".hosts"
"""The suffix of the hostfile among the files of a run."""


def _files(report: Report, reading: Reading | None, outputs: Outputs, go: Go | None) -> dict[str, bytes]:
    """The files of a run in --report-dir, by suffix."""
    files = {form.suffix: form.write(report) for form in FORMATS if form.suffix}
    files[".txt"] = drawn(_printer(report, Outputs(verbose=outputs.verbose)), WIDTH, colour=False).encode(
        errors="replace"
    )
    if reading is not None:
        files[".run.json"] = encoded(reading.recording)
    if go is not None:
        files[HOSTS] = lines(hostfile(go))
    return files


def _going(report: Report, reading: Reading | None, outputs: Outputs) -> tuple[Go | None, str]:
    """The hosts that start the job, and the form in which they are printed."""
    form = read_form(outputs.launch) if outputs.launch is not None else "hostfile"
    if form == AUTO:
        form = form_for(chosen(report), report.plan, os.environ)
    return going(report, reading, form), form


def going(report: Report, reading: Reading | None, form: str) -> Go | None:
    """The hosts that start the job, in the order of a form of launch; None on a no-go."""
    names = chosen(report)
    return decide_go(report, _bound(reading), FORMS[form].order(names, os.environ) if names else ())


def _bound(reading: Reading | None) -> Bound:
    """The ports on which a process listens, on each host that reported them."""
    facts = reading.facts if reading else Facts({})
    known = {host: facts.get(host, LISTENERS) for host in facts.hosts}
    heard = ((host, seen) for host, seen in known.items() if not isinstance(seen, MissingFact))
    return {host: frozenset(each.port for each in seen) for host, seen in heard}


def _spoken(start: LaunchParts, form: str, outputs: Outputs) -> str:
    """The notes to a launch line: which hosts go, are spare or left out, and what is left to the user."""
    go, said = start.going, []
    if not outputs.quiet:
        parts = [f"go: {fold(go.hosts)}, head {go.head} ({go.address}, port {go.port})"]
        parts += [f"spare: {fold(go.spares)}"] if go.spares else []
        parts += [f"left out: {fold(go.left_out)}"] if go.left_out else []
        said.append("; ".join(parts))
    said += launch_notes(start, form)
    return "".join(f"doctor: {t(f'{clean_line(line)}.')}\n" for line in said)


def _printer(report: Report, outputs: Outputs) -> Callable[[Console], None]:
    from doctor.report.page.card import Medium
    from doctor.report.page.examination import page_of
    from doctor.report.terminal.cards import print_page

    on = Medium.VERBOSE if outputs.verbose else Medium.BRIEF
    return partial(print_page, page_of(report, on, quiet=outputs.quiet), verbose=outputs.verbose)


def _refuse_shadow(path: Path, launch: str | None) -> None:
    """Raises UsageError if no line can be added to the file; it is made, so that this is certain."""
    if launch is not None:
        raise UsageError(
            "--shadow cannot be combined with --print: it ends with 0 without a line to start.",
            "Leave one of them out.",
        )
    try:
        why = why_not_ours(path.parent)
        if not why:
            append_line(path, b"")
    except OSError as error:
        why = error.strerror or str(error)
    if why:
        raise UsageError(f"--shadow {path}: {why}.", "Name a file of yours in a folder of yours.")


def make_report_folder(path: Path, option: str = "--report-dir") -> None:
    """Makes sure before the run that the folder exists, is ours and is writable. Raises UsageError."""
    try:
        if why := why_not_ours(path):  # its owner could put other reports into their places
            raise UsageError(f"{option} {path}: {why}.", "Name a folder of yours, or a new one.")
        make_folder(path.absolute())
        with tempfile.TemporaryFile(dir=path):
            pass
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "that is not a name of a folder"
        raise UsageError(
            f"{option} {path}: cannot be written: {why}.", "Name a folder that is writable."
        ) from None
