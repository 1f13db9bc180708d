"""`doctor explain CODE`: the page of a symptom: the meaning of its message, its causes, and what to type."""

from collections.abc import Iterator, Sequence

from doctor.cli.explain.page import TextPage
from doctor.logs.explanation import HOSTS, commands
from doctor.logs.model import Role, Symptom
from doctor.logs.remedy import filled
from doctor.text.language import in_language
from doctor.text.speech import spoken, spoken_command, t
from doctor.transport.way import Way

ROLES = {
    Role.ROOT: "can be the cause",
    Role.CONSEQUENCE: "normally follows from something earlier",
    Role.CONFIRMS: "confirms a cause, but is not an event of its own",
    Role.NAMES: "names the guilty rank or host",
    Role.ADVICE: "advice, never evidence",
    Role.STATES: "says how the job runs, and accuses nobody",
}
EXAMPLES = 2
LONGEST = 400


def page_of(symptom: Symptom, checks: Sequence[str], paper: TextPage) -> Iterator[str]:
    """The page of a symptom. `checks` are the existing ones: only these are printed as commands."""
    message = bool(symptom.patterns) or symptom.role is not Role.ADVICE
    what = f"a message in logs; {ROLES[symptom.role]}" if message else "words of programs and launches"
    yield paper.head(symptom.id, what)
    title = in_language(spoken(), symptom.title, symptom.zh)
    yield paper.title(title[:1].upper() + title[1:])
    if symptom.codes:
        yield paper.heading("Codes" if message else "Words")
        yield paper.prose(", ".join(symptom.codes[:40]), "  ")
    if symptom.examples or symptom.patterns:
        yield paper.heading("In the logs")
        written = symptom.examples or tuple(" … ".join(pattern) for pattern in symptom.patterns)
        for line in written[:EXAMPLES]:
            yield paper.prose(line[:LONGEST], "  ")
    yield from _causes(symptom, paper)
    if symptom.remedy:
        yield paper.heading("What to type")
        yield from map(paper.command, (spoken_command(filled(line, {})) for line in symptom.remedy))
    known = [id for id in symptom.checks if id in checks]
    if known:
        yield paper.heading("Prove it on the hosts")
        for command in commands((HOSTS,), known, Way()):
            yield paper.command(command)
        yield paper.prose(t(f"Each check has a page: doctor explain {known[0]}"), "  ")
    if explains := [id for id in symptom.explains if "*" not in id]:
        shown = ", ".join(explains[:20])
        yield paper.paragraph(t(f"Often the cause of: {shown}."))
    if symptom.versions:
        yield paper.paragraph(t(f"Versions: {symptom.versions.rstrip('.')}."))
    if paper.verbose and symptom.sources:
        yield paper.paragraph(t(f"Known from: {'; '.join(symptom.sources)}."))
    yield from paper.origin(symptom.origin)


def _causes(symptom: Symptom, paper: TextPage) -> Iterator[str]:
    if len(symptom.causes) == 1:
        yield paper.heading("Cause") + paper.prose(t(symptom.causes[0]), "  ")
    elif symptom.causes:
        yield paper.heading("Possible causes, likeliest first")
        for number, cause in enumerate(symptom.causes, 1):
            yield paper.prose(f"{number}. {t(cause)}", "  ", "   ")
