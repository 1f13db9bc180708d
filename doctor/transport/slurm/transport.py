"""Scripts and sessions through Slurm: one srun for all hosts, over Slurm's own launch tree.

A node that Slurm reports as down or took out of the job, or on which no step begins, is left out with its
reason; the step is then retried without it, since srun gives up a whole step for one node. Nothing is sent to
any node until every node has identified itself.
"""

import math
import shlex
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from doctor.model import Answer, Host, UnreachedHost
from doctor.transport import Script, Session
from doctor.transport.errors import CannotReach, cannot, quoted, rounded
from doctor.transport.slurm import errors
from doctor.transport.slurm.allocation import Allocation
from doctor.transport.slurm.output import down_nodes, job_nodes
from doctor.transport.slurm.program import SrunProgram
from doctor.transport.slurm.squeue import scontrol
from doctor.transport.slurm.step import SrunStep
from doctor.transport.slurm.task import opening
from doctor.transport.threads import ThreadedTransport, Turn

TRIES = 5
FIRST_SECONDS = 60.0
"""The time for the first node to identify itself."""
OTHERS_SECONDS = 60.0
"""The time for the other nodes, after the first: a Prolog runs before a node's first step."""
MORE_WORDS = 0.3
"""Seconds to wait after one node has failed, because others may fail at the same moment."""
SCONTROL_SECONDS = 10.0


class _Crew(ThreadedTransport):
    """The hosts that take part in one step, with their programs, which have begun, and why others do not."""

    name = "srun"
    descriptors_each = 0

    def __init__(self) -> None:
        super().__init__()
        self.step: SrunStep | None = None
        self.voices: dict[str, SrunProgram] = {}
        self.failed: dict[str, CannotReach] = {}

    def program(self, host: str, command: str, turn: Turn) -> SrunProgram:  # noqa: ARG002  # it has begun
        if host in self.failed:
            raise self.failed[host]
        return self.voices[host]

    def give_up(self, host: str) -> str:
        self.voices[host].end()
        return "it ran"


class SlurmTransport:
    """See `Transport`. Hosts are nodes of the allocation that the environment names."""

    name = "srun"

    def __init__(
        self, hosts: Sequence[Host], environ: Mapping[str, str], given: Allocation | None = None
    ) -> None:
        """`given`: the nodes were taken for this run."""
        self._names = [host.name for host in hosts]
        self._environ, self._given = environ, given
        self._down: dict[str, CannotReach] | None = None
        self._without: frozenset[str] = frozenset()
        self._steps: list[SrunStep] = []
        self.warnings: list[str] = []

    def run(
        self, scripts: Mapping[str, Script], timeout: float, until: float = math.inf
    ) -> Iterator[Answer | UnreachedHost]:
        crew = self._launch(scripts, until)
        for host, why in crew.failed.items():
            yield why.of(host)
        yield from crew.run(_begun({host: scripts[host] for host in crew.voices}), timeout, until)

    def open(self, scripts: Mapping[str, Script], until: float = math.inf) -> Session:
        return self._launch(scripts, until).open(_begun(scripts), until)

    def close(self) -> None:
        closing = [threading.Thread(target=step.close, daemon=True) for step in self._steps]
        for each in closing:
            each.start()
        for each in closing:
            each.join()
        self._steps.clear()
        if self._given is not None:
            self._given.close()

    def _launch(self, scripts: Mapping[str, Script], until: float) -> _Crew:
        if self._down is None:
            self._down = self._missing_nodes(until)
        crew = _Crew()
        crew.failed = {host: self._down[host] for host in scripts if host in self._down}
        for _ in range(TRIES):
            names = [host for host in scripts if host not in crew.failed]
            if not names:
                break
            try:
                crew.step = step = SrunStep(names, self._environ, self._without)
            except OSError as error:
                why = cannot("no Slurm", words=quoted(error.strerror or str(error)))
                crew.failed.update(dict.fromkeys(names, why))
                break
            self._steps = [*(each for each in self._steps if each.rc is None), step]
            try:
                if self._wait_for_launch(step, crew, until):
                    crew.voices = {name: step.voices[name] for name in names if name not in crew.failed}
                    step.begin(
                        {name: opening(scripts[name].command, scripts[name].stdin) for name in crew.voices}
                    )
                    return crew
            except BaseException:
                step.close()
                raise
            step.close()
        for host in scripts:
            if host not in crew.failed and crew.step:
                crew.failed[host] = errors.no_step(crew.step.words, crew.step.rc)
        return crew

    def _wait_for_launch(self, step: SrunStep, crew: _Crew, until: float) -> bool:
        """Whether the step runs on all nodes except those that it adds to `crew.failed`."""
        began = time.monotonic()
        limit = min(began + FIRST_SECONDS, until)
        greeted = 0
        while len(step.greeted) < len(step.names):
            words = step.words
            failed = {name: why for name, why in words.refused.items() if name in step.names}
            if failed or step.rc is not None:
                if step.rc is None:
                    step.wait(MORE_WORDS)
                    time.sleep(MORE_WORDS)
                for name, why in step.words.refused.items():
                    if name in step.names:
                        crew.failed[name] = cannot("no step on the node", why, node=shlex.quote(name))
                if not failed and words.option and words.option not in self._without:
                    self._without |= {words.option}
                elif not failed:
                    self._all_failed(step, crew)
                return False
            if step.greeted and not greeted:
                limit = min(time.monotonic() + OTHERS_SECONDS, until)
            greeted = len(step.greeted)
            left = limit - time.monotonic()
            if left <= 0:
                waited = time.monotonic() - began
                if time.monotonic() >= until:
                    crew.failed.update(dict.fromkeys(set(step.names) - step.greeted, cannot("no turn")))
                    return True
                if not step.greeted:
                    self._all_failed(step, crew)
                    return False
                for name in set(step.names) - step.greeted:
                    seconds, node = rounded(waited), shlex.quote(name)
                    crew.failed[name] = cannot("no task", node=node, seconds=seconds)
                return True
            step.wait(min(left, 1.0))
        return True

    def _all_failed(self, step: SrunStep, crew: _Crew) -> None:
        why = step.words
        crew.failed.update({name: errors.no_step(why, step.rc) for name in step.names})

    def _missing_nodes(self, until: float) -> dict[str, CannotReach]:
        """The nodes that Slurm itself does not reach or took out of the job: srun would refuse a step."""
        job = self._environ.get("SLURM_JOB_ID", "")
        kept = job_nodes(scontrol("job", job, self._environ, _patience(until))) if job else frozenset()
        # With --no-kill, a job goes on when a node fails, and never gets it back.
        out = [name for name in self._names if kept and name not in kept]
        gone = {name: cannot("node taken out", node=shlex.quote(name)) for name in out}
        found = down_nodes(scontrol("node", ",".join(self._names), self._environ, _patience(until)))
        return {**gone, **{node.name: errors.down(node) for node in found}}


def _patience(until: float) -> float:
    return max(0.0, min(SCONTROL_SECONDS, until - time.monotonic()))


def _begun(scripts: Mapping[str, Script]) -> dict[str, Script]:
    """The scripts without their input, which was sent with their command."""
    return {host: replace(script, stdin=b"") for host, script in scripts.items()}
