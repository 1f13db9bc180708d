"""After the command has ended badly: its output and the logs of its hosts, explained and proved."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.exam.request import Request
from doctor.logs.steps import says_step
from doctor.run.apart import StoppedPart, apart
from doctor.run.folder import PART, both_ends
from doctor.run.kernel import of_job, processes_of
from doctor.run.lives import CommandLives
from doctor.run.output import Output
from doctor.run.page_files import in_files
from doctor.text.announce import announce
from doctor.text.outfile import open_own, why_not_ours

if TYPE_CHECKING:
    from doctor.judge.verdict import Report
    from doctor.logs.explanation import Explanation
    from doctor.logs.model import LogCause

CLOCKS = 5.0
"""Seconds by which the clocks of hosts may differ."""
ASKING = 10.0
"""Seconds that it may take to reach hosts."""
OTHERS_END = 5.0
"""Seconds until the instances on other hosts have ended too."""
LOST_A_RANK = re.compile(
    rb"ChildFailedError|noticed that process rank|processes exited with non-zero status|srun: error: "
)
"""What launchers print at their end if they lost a rank: torchrun, mpirun and srun."""
MOST_OF_A_PART = 16 << 20
OWN = "doctor-output"
"""The folder of the command's output among the logs."""


@dataclass(frozen=True, slots=True)
class EndReason:
    """What `explain` says about the end."""

    named: bool
    says: str
    text: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    cause: str = ""
    """The id of the symptom, or what happened in a few words."""
    blamed: tuple[str, ...] = ()
    """The hosts that caused it, if they themselves show that and it is not the script's own fault."""
    failed: bool = False
    """Whether the command failed by itself, for sure: being told to end is not a failure."""


@dataclass(frozen=True, slots=True)
class PastCommand:
    """A command that is over. It began at `began`, in seconds since 1970. `killed`: KILL ended it. Its ranks
    may have `printed_into` files: patterns.
    """

    lives: CommandLives
    began: float
    seconds: float
    killed: bool
    printed_into: tuple[str, ...] = ()
    asks: bool = True
    """Whether its hosts are asked what they say."""


def explained(request: Request, output: Output, past: PastCommand, parts: Path | None) -> EndReason:
    """Why the command ended. In `parts` the instances on other hosts keep their output, if there are some.
    A signal that ends doctor ends the questions to the hosts; what the command printed is read all the same.
    """
    asked = replace(request, command="logs")
    try:
        return apart(partial(_explain, asked, output, past, parts))
    except StoppedPart as stop:
        name = signal.Signals(stop.number).name
        announce(f"{name} came while the end was being explained: only what was printed here is explained.")
        return apart(partial(_explain, asked, output, replace(past, asks=False)))


def printed_cause(request: Request, output: Output, *, lost: bool = False) -> EndReason | None:
    """The cause of the end that these words alone show; None if they do not show that it failed by itself.
    `lost`: it did for sure.
    """
    reason = apart(partial(read_cause, request, output))
    return reason if reason and (reason.failed or lost) else None


def read_cause(request: Request, output: Output) -> EndReason | None:
    """The cause that these words name, also if they only make it possible; in this process."""
    reason = _explain(replace(request, command="logs"), output)
    return reason if reason.named else None


def lost_a_rank(output: Output) -> bool:
    """Whether a launcher says that it lost a rank, and the training does not go on below that."""
    ends = (LOST_A_RANK.split(both_ends(stream))[1:] for stream in output.streams.values())
    return any(end and not any(map(says_step, _lines(end[-1]))) for end in ends)


def _lines(text: bytes) -> list[str]:
    return text.decode(errors="replace").splitlines()


@dataclass(frozen=True, slots=True)
class LossLook:
    """What is wrong with the losses that were printed so far, each in a sentence."""

    says: tuple[str, ...]
    why: EndReason | None = None
    """The report, if one of them was not told before."""
    lasts: bool = False
    """Whether no line shows that the losses are sound after all, since the places that were named."""


def curves_of(
    request: Request, output: Output, told: Sequence[str], since: Mapping[str, int] | None = None
) -> LossLook:
    """`since` are places in the streams at which the losses were bad."""
    from doctor.logs.explanation import headline
    from doctor.logs.fetch.private import private_folder
    from doctor.logs.loss.collect import LossCollector
    from doctor.logs.loss.judge import judge_curves
    from doctor.logs.naming import renamed
    from doctor.logs.read import read
    from doctor.logs.symptoms.match import matcher_of
    from doctor.model import Confidence
    from doctor.run.lasting import kinds_of, shows_bad_losses

    matcher = matcher_of((), ())
    with private_folder() as folder:
        names = _written(output, folder)
        logs = renamed(read([folder / OWN], matcher, loss=LossCollector), _by_stream(names))
        found = judge_curves(logs.curves, matcher.symptoms)
        says = tuple(headline(each) for each in found if each.confidence is not Confidence.SUSPECT)
        kinds = kinds_of(output, since) if says and since is not None else ()
        lasts = [shows_bad_losses(lines, folder / str(number)) for number, lines in enumerate(kinds)]
    new = not set(says) <= set(told)
    why = _explain(replace(request, command="logs"), output) if new else None
    return LossLook(says, why, bool(lasts) and all(lasts))


def _explain(
    request: Request, output: Output, past: PastCommand | None = None, parts: Path | None = None
) -> EndReason:
    """Of a command that is over, with what its hosts say."""
    from doctor.errors import DoctorError
    from doctor.logs.explain import LogOrigin, explanation_of
    from doctor.logs.fetch.onhost.agent import KERNEL
    from doctor.logs.fetch.private import private_folder
    from doctor.logs.fetch.run import fetched_logs
    from doctor.logs.fetch.script import MEGABYTE, USUAL, LogRequest
    from doctor.logs.naming import renamed
    from doctor.logs.options import LogWishes

    quiet = replace(request, outputs=replace(request.outputs, quiet=True))
    maybe: set[int] = set()
    with private_folder() as folder:
        names = _written(output, folder)
        paths, origin = [str(folder / OWN)], LogOrigin()
        if past is not None and past.asks:
            if parts is not None:
                time.sleep(OTHERS_END)
                shared = {str(copy): name for copy, name in _parts_here(parts, past.began, folder / "parts")}
                names.update(shared)
                paths += shared
            places = (*USUAL, *past.printed_into)
            if parts is not None and not shared:
                places = (*places, f"{glob.escape(str(parts))}/doctor-*/{PART}*.log")
            minutes = (time.time() - past.began + ASKING) / 60
            room = 64 * MEGABYTE
            try:
                more, origin = fetched_logs(
                    quiet, LogRequest(places, minutes, room // 4, room, kernel=True), folder
                )
                paths += more
                here = origin.transport == "local"
                margin = 0.5 if here else CLOCKS
                said = b"\n".join(both_ends(each) for each in output.streams.values())
                job = processes_of(said, past.lives.spans(), os.environ, killed=past.killed)
                for kernel in folder.rglob(KERNEL):
                    begin, until = past.began - margin, past.began + past.seconds + margin
                    text, doubtful = of_job(kernel.read_bytes(), begin, until, job, here=here)
                    kernel.write_bytes(text)
                    maybe |= doubtful
            except DoctorError as error:
                announce(f"the logs of the hosts could not be fetched: {error.message}")
        theirs = origin.named or (lambda logs: logs)
        origin = replace(
            origin,
            named=lambda logs: theirs(renamed(logs, _by_stream(names))),
            search=None,  # what the command printed is its log
        )
        try:
            explanation, report = explanation_of(
                paths, quiet, LogWishes(), fetched=origin, check=quiet if past and past.asks else None
            )
        except DoctorError as error:  # the hosts cannot be examined; what was printed can
            if past is None or not past.asks:
                raise
            announce(f"the hosts could not be examined: {error.message}")
            explanation, report = explanation_of(paths, quiet, LogWishes(), fetched=origin)
    if maybe:
        from doctor.run.doubts import with_doubts

        explanation = with_doubts(explanation, maybe)
    return _reason(not_clean(explanation) if past else explanation, report)


def not_clean(explanation: Explanation) -> Explanation:
    """The explanation. If no log complains, why the command ended is unknown: clean it is not."""
    from doctor.logs.model import LogOutcome

    found = explanation.conclusion
    if found.outcome is not LogOutcome.CLEAN:
        return explanation
    return replace(explanation, conclusion=replace(found, outcome=LogOutcome.UNKNOWN))


def _written(output: Output, folder: Path) -> dict[str, str]:
    """Write the output into files of a folder; returns the name of the stream in each."""
    (folder / OWN).mkdir()
    names = {}
    for name, stream in output.streams.items():
        path = folder / OWN / f"{name}.log"
        path.write_bytes(both_ends(stream))
        names[str(path)] = name
    return names


def _parts_here(folder: Path, began: float, into: Path) -> Iterator[tuple[Path, str]]:
    """What other instances have kept, if all hosts share the folder: copies of what is ours alone, each with
    its name there.
    """
    for path in () if why_not_ours(folder) else sorted(folder.glob(f"doctor-*/{PART}*.log")):
        with contextlib.suppress(OSError):
            inside = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            with contextlib.ExitStack() as held:
                held.callback(os.close, inside)
                run = open_own(path.parent.name, inside)
                held.callback(os.close, run)
                with open(open_own(path.name, run, folder=False), "rb") as file:
                    if os.fstat(file.fileno()).st_mtime >= began:
                        copy = into / path.parent.name / path.name
                        copy.parent.mkdir(parents=True, exist_ok=True)
                        copy.write_bytes(file.read(MOST_OF_A_PART))
                        yield copy, str(path)


def _by_stream(names: Mapping[str, str]) -> Callable[[str], str]:
    return lambda path: names.get(path, path)


def _reason(explanation: Explanation, report: Report | None) -> EndReason:
    from doctor.logs.explanation import headline, last_words
    from doctor.logs.model import LogOutcome
    from doctor.logs.report import page_of
    from doctor.logs.report_json import logs_report
    from doctor.model import Confidence

    text, files = in_files(page_of(explanation), logs_report(explanation, report))
    named = explanation.conclusion.outcome is LogOutcome.NAMED
    roots = [explanation.conclusion.charges[place] for place in explanation.roots]
    sure = named and bool(roots) and roots[0].confidence is not Confidence.SUSPECT
    says = headline(roots[0]) if sure else last_words(explanation)
    cause = (roots[0].symptom or roots[0].brief) if roots else ""
    return EndReason(
        named, says, text, files, cause, _blamed(explanation) if named else (), sure and _fails(roots[0])
    )


def _fails(cause: LogCause) -> bool:
    """Whether it is an event inside of the job, and not somebody's order to end."""
    from doctor.logs.model import Role
    from doctor.logs.symptoms.load import load_symptoms

    roles = {symptom.id: symptom.role for symptom in load_symptoms().symptoms}
    return roles.get(cause.symptom or "", cause.role) is Role.ROOT


def _blamed(explanation: Explanation) -> tuple[str, ...]:
    """The hosts of the first cause, if a check of them proves it, or it is certain and their own kernel says
    so: what a job prints may be the text of others, and accuses no host.
    """
    from doctor.logs.explanation import ProofState
    from doctor.logs.fetch.onhost.agent import KERNEL
    from doctor.model import Confidence

    if not explanation.roots:
        return ()
    place = explanation.roots[0]
    charge, proof = explanation.conclusion.charges[place], explanation.proof_of(place)
    hosts = tuple(dict.fromkeys(each.host for each in charge.who if each.host))
    kernels = {f"{host}:{KERNEL}" for host in hosts} & {line.file for line in charge.lines}
    certain = charge.confidence is Confidence.CERTAIN and len(kernels) == len(hosts)
    proved = proof is not None and proof.proved is ProofState.PROVED
    return hosts if (certain or proved) and any(map(_of_hosts, charge.checks)) else ()


def _of_hosts(check: str) -> bool:
    """Whether a check looks at hosts, and not at how the job was started or what it computes."""
    return not check.startswith(("smoke-", "launch-", "plan-", "torch-", "version-", "env-", "rank-table-"))
