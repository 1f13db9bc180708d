"""`doctor demo [NAME]`: a bundled recording, replayed as if it ran; it needs no hosts and no root."""

from __future__ import annotations

import sys

from doctor.facts.system import DEVICES
from doctor.judge.reading import Reading
from doctor.report.formats import STDOUT
from doctor.report.outputs import deliver, refuse_unwritable
from doctor.run.demo import DEMOS, load_demo, play
from doctor.run.examination import judge_again
from doctor.run.progress import progress_line
from doctor.run.request import Request
from doctor.text.terminal import put


def demo(name: str | None, request: Request) -> int:
    """0 when it was shown, whatever it shows: `make demo` and scripts may go on."""
    outputs = request.outputs
    refuse_unwritable(outputs, {})
    chosen = name or next(iter(DEMOS))
    recorded = load_demo(chosen)
    reading, report = judge_again(request, recorded)
    taken = STDOUT in [path for _, path in outputs.files()]
    out = sys.stderr if taken else sys.stdout
    put(f"A bundled recording{_of_what(reading)}: {DEMOS[chosen].title}.\n$ {DEMOS[chosen].command}\n", out)
    if sys.stdout.isatty():  # nobody waits in front of a pager for what is not drawn there
        play(recorded, progress_line(outputs))
    deliver(report, reading, outputs)
    if name is None:
        put("\nThere is more to see:\n" + "".join(map(_line, list(DEMOS)[1:])), out)
    return 0


def _of_what(reading: Reading) -> str:
    facts = reading.facts
    emulated = any(getattr(facts.get(host, DEVICES), "emulated", False) for host in facts.hosts)
    return " of emulated devices" if emulated else ""


def _line(name: str) -> str:
    return f"  {f'doctor demo {name}':<20}  {DEMOS[name].title}\n"
