"""The path of the repository."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REFUSALS = ROOT / "doctor/transport/containers/refusals.txt"
INJECTIONS = ROOT / "doctor/smoke/inject.txt"
REASONS = ROOT / "doctor/transport/reasons.txt"
CHARGES = ROOT / "doctor/smoke/judge/charges.txt"
NO_ANSWER = ROOT / "doctor/probe/no_answer.txt"
COMMANDS = ROOT / "doctor/cli/commands.txt"
FLAWS = ROOT / "doctor/job/ranktable/flaws.txt"
SAID = (
    *("smoke/judge/network.txt", "smoke/judge/exits.txt", "firewall/words.txt"),
    *("smoke/judge/phrases.txt", "facts/slowdowns.txt"),
    *(
        "cli/manpage.txt",
        "hang/advice.txt",
        "hang/judge/do.txt",
        "slow/advice.txt",
        "slow/judge/sleeps.txt",
        "rules/smoke.txt",
        "logs/blind.txt",
        "report/files/prometheus.txt",
        "report/page/measurements.txt",
        "report/page/training.txt",
        "run/end.txt",
        "text/option.txt",
    ),
)
"""Tables of words that reach a page, in doctor/."""
