"""Records what `doctor demo run` plays: `python -m tests.lab.transcript`, as root.

A real run of doctor around a training of three ranks on this machine, in a namespace in which it is called
node1. The file is an asciicast (version 2) with the real times; only names and paths are replaced.
"""

import codecs
import contextlib
import gzip
import json
import os
import pty
import shutil
import sys
import tempfile
import time
from pathlib import Path

from doctor.exam.demo import TRANSCRIPTS, transcript_of
from doctor.text.language import Language
from tests.support.paths import ROOT

from .record import without_this_machine

NAME, WIDTH, HEIGHT = "run", 80, 30
JOB = ROOT / "tests" / "support" / "demo_job.py"
AS_NODE1 = 'mount --bind "$1" /etc/hosts && hostname node1 && shift && exec "$@"'
QUIET = {"OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR", "PYTHONWARNINGS": "ignore"}


def record(lang: Language) -> Path:
    words = TRANSCRIPTS[NAME].command.split()
    words[2:2] = ["--lang", lang.value]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "job")
        folder.mkdir()
        shutil.copy(JOB, folder / "train.py")
        os.mkfifo(folder / "shard-0012")
        hosts = Path(place, "hosts")
        hosts.write_text("127.0.0.1 localhost node1\n")
        said = _said(["unshare", "-um", "sh", "-c", AS_NODE1, "sh", str(hosts), *words], folder)
        text = "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in said)
        text = without_this_machine(text, {str(folder): "/data/job"})
    head = {"version": 2, "width": WIDTH, "height": HEIGHT, "command": TRANSCRIPTS[NAME].command}
    file = transcript_of(NAME, lang)
    file.write_bytes(gzip.compress(f"{json.dumps(head)}\n{text}".encode(), mtime=0))
    return file


def _said(words: list[str], folder: Path) -> list[tuple[float, str, str]]:
    """What the program writes to its terminal, and when."""
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(folder)
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        plain = {"COLUMNS": str(WIDTH), "TERM": "xterm-256color", "PATH": path}
        os.execvpe(words[0], words, {**os.environ, **QUIET, **plain})
    began, said = time.monotonic(), []
    text = codecs.getincrementaldecoder("utf-8")()
    with contextlib.suppress(OSError):  # the program has ended
        while data := os.read(master, 65536):
            said.append((round(time.monotonic() - began, 2), "o", text.decode(data)))
    os.waitpid(pid, 0)
    return said


if __name__ == "__main__":
    for lang in Language:
        made = record(lang)
        print(f"{made.name}: {made.stat().st_size} bytes")
