"""One srun: the same small task on each node; all share its input, and its output is split by host."""

import contextlib
import os
import re
import secrets
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence

from doctor.transport.slurm import task
from doctor.transport.slurm.output import SrunMessages, read_words
from doctor.transport.slurm.program import SrunProgram

PIECE = 64 * 1024
MOST_WORDS = 400
TOGETHER = 0.003
"""Seconds for which messages to many hosts are gathered, to be sent once."""
CLOSE_SECONDS = 3.0
TERM_SECONDS = 3.0

# The variables of Slurm that srun needs; the others are options of the job and would distort the step.
_KEPT = re.compile(
    r"SLURM_(CLUSTERS|CLUSTER_NAME|CONF|CONF_SERVER|JOB_?ID|JWT|SACK_(KEY|JWKS)|WORKING_CLUSTER)"
)
OPTIONS = ("--overlap", "--mpi=none", "--kill-on-bad-exit=0", "--no-kill", "--cpu-bind=none", "--wait=0")


def own_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for srun, without the job's variables that act as options."""
    prefixes = ("SLURM_", "SRUN_", "SLURMD_", "PMI_", "PMIX_")
    return {n: value for n, value in environ.items() if _KEPT.fullmatch(n) or not n.startswith(prefixes)}


class SrunStep:
    """A running srun. Nothing is sent to any host until `begin`."""

    def __init__(
        self, names: Sequence[str], environ: Mapping[str, str], without: frozenset[str] = frozenset()
    ) -> None:
        """Raises OSError if srun is not installed."""
        self.names = tuple(names)
        token = secrets.token_hex(16)
        self._keys = task.Keys(token, names)
        self.voices = {name: SrunProgram(name, self._news, self._one_ended) for name in names}
        self.greeted: set[str] = set()
        self.changed = threading.Condition()
        self.rc: int | None = None
        self._words: deque[str] = deque(maxlen=MOST_WORDS)
        self._unended = len(names)
        self._work = threading.Event()
        self._closing = False
        self._stop = threading.Lock()
        self._speaker: threading.Thread | None = None
        count = str(len(names))
        self._process = subprocess.Popen(
            [
                "srun",
                *(option for option in OPTIONS if option.partition("=")[0] not in without),
                f"--nodes={count}",
                f"--ntasks={count}",
                "--ntasks-per-node=1",
                f"--nodelist={','.join(names)}",
                "--label",
                "--chdir=/",
                "--job-name=doctor",
                "--export=ALL",
                "sh",
                "-c",
                task.TASK,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**own_environment(environ), task.TOKEN: token},
            start_new_session=True,
        )
        ends = [
            threading.Thread(target=self._listen, args=(stream,), name=f"srun {stream}", daemon=True)
            for stream in ("out", "err")
        ]
        for end in ends:
            end.start()
        threading.Thread(target=self._reap, args=(ends,), name="srun", daemon=True).start()

    @property
    def words(self) -> SrunMessages:
        with self.changed:
            return read_words(self._words)

    def wait(self, seconds: float) -> None:
        """Wait until something may have changed: who has greeted, what srun says, whether it lives."""
        with self.changed:
            self.changed.wait(seconds)

    def begin(self, texts: Mapping[str, list[bytes]]) -> None:
        """Give the hosts in `texts` their commands and input; the others are released."""
        for name in set(self.names) - set(texts):
            self.voices[name].end()
        first = task.openings(dict(texts))
        self._speaker = threading.Thread(target=self._speak, args=(first,), name="srun in", daemon=True)
        self._speaker.start()

    # Threads.

    def _listen(self, stream: str) -> None:
        process = self._process
        pipe = process.stdout if stream == "out" else process.stderr
        assert pipe is not None
        ear = task.StreamSplitter(self._keys)
        while True:
            data = os.read(pipe.fileno(), PIECE)
            for said in ear.hear(data) if data else ear.rest():
                if said.host is None:
                    with self.changed:
                        self._words.append(said.data[: task.LONGEST_LINE].decode("utf-8", "replace"))
                        self.changed.notify_all()
                elif said.kind == "hello":
                    with self.changed:
                        self.greeted.add(said.host)
                        self.changed.notify_all()
                elif said.kind == "contested":
                    self.voices[said.host].doubt()
                else:
                    self.voices[said.host].said(stream, said)
            if not data:
                return

    def _reap(self, ends: Sequence[threading.Thread]) -> None:
        rc = self._process.wait()
        for end in ends:
            end.join()
        words = self.words
        for voice in self.voices.values():
            voice.lost(words)
        with self.changed:
            self.rc = rc
            self.changed.notify_all()
        self._closing = True
        self._work.set()

    def _speak(self, first: bytes) -> None:
        """The only thread that writes, and therefore the one that closes."""
        self._write(first)
        let_go: set[str] = set()
        while not self._closing:
            self._work.wait()
            time.sleep(TOGETHER)
            self._work.clear()
            said: dict[tuple[bytes, ...], list[str]] = {}
            for name, voice in self.voices.items():
                if name not in let_go and (lines := voice.unsent()):
                    said.setdefault(tuple(lines), []).append(name)
            gone = [name for name, voice in self.voices.items() if voice.hung_up and name not in let_go]
            let_go.update(gone)
            rest = len(self.voices) - (len(let_go) - len(gone))
            for text, names in said.items():
                self._write(task.to_hosts(None if len(names) == rest else names, text))
            if gone and len(let_go) < len(self.voices):
                self._write(task.hang_up(gone))
        self._end_input()

    def _write(self, data: bytes) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        view = memoryview(data)
        with contextlib.suppress(OSError, ValueError):
            while view:
                view = view[os.write(pipe.fileno(), view[:PIECE]) :]

    def _news(self) -> None:
        self._work.set()

    def _one_ended(self) -> None:
        with self.changed:
            self._unended -= 1
            last = self._unended == 0
        if last:
            threading.Thread(target=self.close, name="srun close", daemon=True).start()

    # The end.

    def close(self) -> None:
        """Release every task; returns when srun is gone. Safe to call twice."""
        with self._stop:
            self._closing = True
            self._work.set()
            if self._process.poll() is None:
                if self._speaker is None:
                    self._end_input()
                for grace, number in ((CLOSE_SECONDS, signal.SIGTERM), (TERM_SECONDS, signal.SIGKILL)):
                    try:
                        self._process.wait(grace)
                        break
                    except subprocess.TimeoutExpired:
                        self._process.send_signal(number)
                self._process.wait()

    def _end_input(self) -> None:
        pipe = self._process.stdin
        with contextlib.suppress(OSError):
            if pipe is not None:
                pipe.close()
