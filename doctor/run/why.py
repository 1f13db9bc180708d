"""Why a command ended, and what is wrong with its losses. It loads much, for a process of its own."""

import contextlib
import glob
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from doctor.errors import DoctorError
from doctor.exam.request import Request
from doctor.judge.verdict import Report
from doctor.logs.explain import LogOrigin, explanation_of
from doctor.logs.explanation import Explanation, ProofState, headline, last_words
from doctor.logs.fetch.onhost.agent import KERNEL
from doctor.logs.fetch.private import private_folder
from doctor.logs.fetch.run import fetched_logs
from doctor.logs.fetch.script import MEGABYTE, USUAL, LogRequest
from doctor.logs.loss.collect import LossCollector
from doctor.logs.loss.judge import judge_curves
from doctor.logs.model import LogCause, LogOutcome, Role
from doctor.logs.naming import renamed
from doctor.logs.options import LogWishes
from doctor.logs.read import read
from doctor.logs.report import page_of
from doctor.logs.report_json import logs_report
from doctor.logs.symptoms.load import load_symptoms
from doctor.logs.symptoms.match import matcher_of
from doctor.model import Confidence
from doctor.run.folder import PART, both_ends
from doctor.run.kernel import marks_of, of_job, with_doubts
from doctor.run.lasting import kinds_of, shows_bad_losses
from doctor.run.output import Output
from doctor.run.page_files import in_files
from doctor.run.reason import EndReason, LossLook, PastCommand
from doctor.text.announce import announce
from doctor.text.outfile import open_own, why_not_ours

CLOCK = 0.5
"""Seconds by which the time of the kernel may differ from that of its machine."""
CLOCKS = 5.0
"""Seconds by which the clocks of hosts may differ."""
ASKING = 10.0
"""Seconds that it may take to reach hosts."""
OTHERS_END = 5.0
"""Seconds until the instances on other hosts have ended too."""
MOST = 64 * MEGABYTE
"""The most that is fetched of all hosts; of each it is a quarter."""
MOST_OF_A_PART = 16 << 20
OWN = "doctor-output"
"""The folder of the command's output among the logs."""


def reason_of(request: Request, output: Output, past: PastCommand | None = None) -> EndReason:
    """`past`: the command is over, and its hosts are asked what they say."""
    quiet = replace(request, command="logs", outputs=replace(request.outputs, quiet=True))
    maybe = frozenset[int]()
    with private_folder() as folder:
        names = _written(output, folder)
        paths, origin = [str(folder / OWN)], LogOrigin()
        if past is not None:
            shared = {str(copy): name for copy, name in _parts_here(past.parts, past.began, folder / "parts")}
            names |= shared
            paths += shared
            try:
                more, origin = fetched_logs(quiet, _wanted(past, found=bool(shared)), folder)
                paths += more
                maybe = _keep_own(folder, output, past, here=origin.transport == "local")
            except DoctorError as error:
                announce(f"the logs of the hosts could not be fetched: {error.message}")
        theirs = origin.named or (lambda logs: logs)
        origin = replace(
            origin,
            named=lambda logs: theirs(renamed(logs, lambda path: names.get(path, path))),
            search=None,  # what the command printed is its log
        )
        try:
            explanation, report = explanation_of(
                paths, quiet, LogWishes(), fetched=origin, check=quiet if past else None
            )
        except DoctorError as error:  # the hosts cannot be examined; what was printed can
            if past is None:
                raise
            announce(f"the hosts could not be examined: {error.message}")
            explanation, report = explanation_of(paths, quiet, LogWishes(), fetched=origin)
    return _reason(not_clean(with_doubts(explanation, maybe)), report)


def _wanted(past: PastCommand, *, found: bool) -> LogRequest:
    """What is to be fetched of the hosts. `found`: what other instances kept is here."""
    places = (*USUAL, *past.printed_into)
    if past.parts is not None and not found:
        places = (*places, f"{glob.escape(str(past.parts))}/doctor-*/{PART}*.log")
    return LogRequest(places, (time.time() - past.began + ASKING) / 60, MOST // 4, MOST, kernel=True)


def _keep_own(folder: Path, output: Output, past: PastCommand, *, here: bool) -> frozenset[int]:
    """Leave in the logs of kernels what is about the job; returns the PIDs that only may be the job's."""
    margin = CLOCK if here else CLOCKS
    begin, until = past.began - margin, past.began + past.seconds + margin
    marks, lost = marks_of(b"\n".join(both_ends(each) for each in output.streams.values()), os.environ)
    maybe = frozenset[int]()
    for kernel in folder.rglob(KERNEL):
        text, doubtful = of_job(kernel.read_bytes(), begin, until, marks, lost=lost or past.killed)
        kernel.write_bytes(text)
        maybe |= doubtful
    return maybe


def losses_of(
    request: Request, output: Output, told: Sequence[str], since: Mapping[str, int] | None = None
) -> LossLook:
    """`since` are places in the streams at which the losses were bad."""
    matcher = matcher_of((), ())
    with private_folder() as folder:
        names = _written(output, folder)
        logs = renamed(read([folder / OWN], matcher, loss=LossCollector), lambda path: names.get(path, path))
        found = judge_curves(logs.curves, matcher.symptoms)
        says = tuple(headline(each) for each in found if each.confidence is not Confidence.SUSPECT)
        kinds = kinds_of(output, since) if says and since is not None else ()
        lasts = [shows_bad_losses(lines, folder / str(number)) for number, lines in enumerate(kinds)]
    why = None if set(says) <= set(told) else reason_of(request, output)
    return LossLook(says, why, bool(lasts) and all(lasts))


def not_clean(explanation: Explanation) -> Explanation:
    """The explanation. If no log complains, why the command ended is unknown: clean it is not."""
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


def _parts_here(folder: Path | None, began: float, into: Path) -> Iterator[tuple[Path, str]]:
    """What other instances have kept, if all hosts share the folder: copies of what is ours alone, each with
    its name there.
    """
    if folder is None:
        return
    time.sleep(OTHERS_END)
    for path in () if why_not_ours(folder) else sorted(folder.glob(f"doctor-*/{PART}*.log")):
        with contextlib.suppress(OSError), contextlib.ExitStack() as held:
            inside = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            held.callback(os.close, inside)
            run = open_own(path.parent.name, inside)
            held.callback(os.close, run)
            with open(open_own(path.name, run, folder=False), "rb") as file:
                if os.fstat(file.fileno()).st_mtime >= began:
                    copy = into / path.parent.name / path.name
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    copy.write_bytes(file.read(MOST_OF_A_PART))
                    yield copy, str(path)


def _reason(explanation: Explanation, report: Report | None) -> EndReason:
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
    roles = {symptom.id: symptom.role for symptom in load_symptoms().symptoms}
    return roles.get(cause.symptom or "", cause.role) is Role.ROOT


def _blamed(explanation: Explanation) -> tuple[str, ...]:
    """The hosts of the first cause, if a check of them proves it, or it is certain and their own kernel says
    so: what a job prints may be the text of others, and accuses no host.
    """
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
