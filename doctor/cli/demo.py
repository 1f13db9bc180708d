"""`doctor demo [NAME]`: replays a bundled recording like a live run; needs no hosts and no root."""

import sys
from dataclasses import replace

from doctor.errors import UsageError
from doctor.exam.demo import (
    ALL_DEMOS,
    DEMOS,
    HANGS,
    SLOWS,
    TRANSCRIPTS,
    evidence_of,
    load_demo,
    load_transcript,
    play,
    play_transcript,
)
from doctor.exam.examination import judge_again
from doctor.exam.progress import progress_line
from doctor.exam.request import Request
from doctor.facts.system import DEVICES
from doctor.judge.reading import Reading
from doctor.report.out.outputs import deliver, refuse_unwritable
from doctor.report.out.pages import terminal_of
from doctor.text.speech import spoken, t
from doctor.text.terminal import can_redraw, coloured, put, room


def demo(name: str | None, request: Request) -> int:
    """The exit code: 0 if the demo was shown, whatever its verdict, so that `make demo` and scripts go on."""
    outputs = request.outputs
    refuse_unwritable(outputs, {})
    chosen = name or next(iter(DEMOS))
    if chosen in TRANSCRIPTS:
        return _transcript(chosen, request)
    if chosen in (*HANGS, *SLOWS):
        return _demo_of_job(chosen, request)
    recorded = load_demo(chosen)
    reading, report = judge_again(request, recorded)
    out = terminal_of(outputs)
    put(_first_lines(chosen, _of_what(reading)), out)
    if sys.stdout.isatty():  # without a terminal nothing is drawn, so do not wait
        play(recorded, progress_line(outputs))
    deliver(report, reading, outputs)
    if name is None:
        more = ((f"doctor demo {each}", t(ALL_DEMOS[each].title)) for each in list(ALL_DEMOS)[1:])
        shown = "".join(f"  {command:<20}  {title}\n" for command, title in more)
        put(f"\n{t('There is more to see:')}\n{shown}", out)
    return 0


def _demo_of_job(name: str, request: Request) -> int:
    """The demo of a command that looks at a running job."""
    put(_first_lines(name, ""), terminal_of(request.outputs))
    if name in SLOWS:
        from doctor.cli.slow import slow
        from doctor.slow.options import SlowWishes

        slow(replace(request, command="slow", replay=evidence_of(name)), SlowWishes())
    else:
        from doctor.cli.hang import hang
        from doctor.hang.options import HangWishes

        hang(replace(request, command="hang", replay=evidence_of(name)), HangWishes())
    return 0


def _transcript(name: str, request: Request) -> int:
    outputs, out = request.outputs, sys.stdout
    if any(outputs.files()):
        raise UsageError(f"The demo {name} is a transcript: it has no report.", "doctor demo hang has one.")
    put(_first_lines(name, ""), out)
    played = load_transcript(name, spoken())
    if can_redraw(out) and coloured(out, outputs.colours) and room(out) >= played.width - 1:
        play_transcript(played, lambda piece: put(piece, out, drawn=True))
    else:
        put(played.text, out)
    return 0


def _first_lines(name: str, of_what: str) -> str:
    demo = ALL_DEMOS[name]
    return f"{t(f'A bundled recording{of_what}: {demo.title}.')}\n$ {demo.command}\n"


def _of_what(reading: Reading) -> str:
    facts = reading.facts
    emulated = any(getattr(facts.get(host, DEVICES), "emulated", False) for host in facts.hosts)
    return " of emulated devices" if emulated else ""
