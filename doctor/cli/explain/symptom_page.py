"""`doctor explain CODE`: the page of a symptom: the meaning of its message, its causes, and what to type."""

from collections.abc import Iterator, Sequence

from doctor.cli.explain.page import TextPage
from doctor.cli.pages import say
from doctor.logs.explanation import HOSTS, commands
from doctor.logs.model import Role, Symptom
from doctor.logs.remedy import filled
from doctor.text.language import Language, in_language
from doctor.text.printable import clean_line
from doctor.text.speech import spoken_command
from doctor.transport.way import Way

ROLES = {
    Role.ROOT: "can be the cause",
    Role.CONSEQUENCE: "normally follows from something earlier",
    Role.CONFIRMS: "confirms a cause, but is not an event of its own",
    Role.NAMES: "names the guilty rank or host",
    Role.ADVICE: "advice, never evidence",
}
EXAMPLES = 2
LONGEST = 400


def page_of(
    symptom: Symptom, checks: Sequence[str], lang: Language, paper: TextPage, *, verbose: bool = False
) -> Iterator[str]:
    """The page of a symptom. `checks` are the existing ones: only these are printed as commands."""
    message = bool(symptom.patterns) or symptom.role is not Role.ADVICE
    what = f"a message in logs; {ROLES[symptom.role]}" if message else "words of programs and launches"
    head = say(f"{symptom.id}: {what}.", lang)
    yield paper.prose(head).replace(symptom.id, paper.strong(symptom.id), 1)
    title = in_language(lang, symptom.title, symptom.zh)
    yield paper.title(title[:1].upper() + title[1:])
    if symptom.codes:
        yield paper.heading(say("Codes" if message else "Words", lang)) + paper.prose(
            ", ".join(symptom.codes[:40]), "  "
        )
    if symptom.examples or symptom.patterns:
        yield paper.heading(say("In the logs", lang))
        written = symptom.examples or tuple(" … ".join(pattern) for pattern in symptom.patterns)
        for line in written[:EXAMPLES]:
            yield paper.prose(line[:LONGEST], "  ")
    yield from _causes(symptom, lang, paper)
    if symptom.remedy:
        yield paper.heading(say("What to type", lang))
        yield from map(paper.command, (spoken_command(filled(line, {})) for line in symptom.remedy))
    known = [id for id in symptom.checks if id in checks]
    if known:
        yield paper.heading(say("Prove it on the hosts", lang))
        for command in commands((HOSTS,), known, Way()):
            yield paper.command(command)
        yield paper.prose(say(f"Each check has a page: doctor explain {known[0]}", lang), "  ")
    if explains := [id for id in symptom.explains if "*" not in id]:
        shown = ", ".join(explains[:20])
        yield paper.paragraph(say(f"Often the cause of: {shown}.", lang))
    if symptom.versions:
        yield paper.paragraph(say(f"Versions: {symptom.versions.rstrip('.')}.", lang))
    if verbose:
        if symptom.sources:
            yield paper.paragraph(say(f"Known from: {'; '.join(symptom.sources)}.", lang))
        yield "\n" + say(f"Written in {clean_line(symptom.origin)}", lang) + "\n"


def _causes(symptom: Symptom, lang: Language, paper: TextPage) -> Iterator[str]:
    if len(symptom.causes) == 1:
        yield paper.heading(say("Cause", lang)) + paper.prose(say(symptom.causes[0], lang), "  ")
    elif symptom.causes:
        yield paper.heading(say("Possible causes, likeliest first", lang))
        for number, cause in enumerate(symptom.causes, 1):
            yield paper.prose(f"{number}. {say(cause, lang)}", "  ", "   ")
