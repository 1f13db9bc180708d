"""`doctor demo [NAME]`: replays a bundled recording like a live run; needs no hosts and no root."""

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
from doctor.text.speech import t
from doctor.text.terminal import put


def demo(name: str | None, request: Request) -> int:
    """The exit code: 0 if the demo was shown, whatever its verdict, so that `make demo` and scripts go on."""
    outputs = request.outputs
    refuse_unwritable(outputs, {})
    chosen = name or next(iter(DEMOS))
    recorded = load_demo(chosen)
    reading, report = judge_again(request, recorded)
    taken = STDOUT in [path for _, path in outputs.files()]
    out = sys.stderr if taken else sys.stdout
    said = t(f"A bundled recording{_of_what(reading)}: {DEMOS[chosen].title}.")
    put(f"{said}\n$ {DEMOS[chosen].command}\n", out)
    if sys.stdout.isatty():  # without a terminal nothing is drawn, so do not wait
        play(recorded, progress_line(outputs))
    deliver(report, reading, outputs)
    if name is None:
        put(f"\n{t('There is more to see:')}\n" + "".join(map(_line, list(DEMOS)[1:])), out)
    return 0


def _of_what(reading: Reading) -> str:
    facts = reading.facts
    emulated = any(getattr(facts.get(host, DEVICES), "emulated", False) for host in facts.hosts)
    return " of emulated devices" if emulated else ""


def _line(name: str) -> str:
    return f"  {f'doctor demo {name}':<20}  {t(DEMOS[name].title)}\n"
