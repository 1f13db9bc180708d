"""What logs say as Markdown, for tickets and chats: it fits into one comment of GitHub."""

from __future__ import annotations

from collections.abc import Iterator

from doctor.logs.explained import Explained, headline, last_words, told_at, why_unknown
from doctor.logs.model import Outcome
from doctor.logs.report import quoted, word
from doctor.report.markdown_text import block, code, folded, inline

LINES = 12
STORY = 40
ODD = 30
MOST = 60_000
"""Characters; GitHub takes 65536 in a comment."""


def as_markdown(explained: Explained) -> bytes:
    page = ""
    for part in _parts(explained):
        if len(page) + len(part) > MOST:
            page += "\nMore did not fit here: see `--json`.\n"
            break
        page += part
    return page.encode()


def _parts(explained: Explained) -> Iterator[str]:
    found = explained.conclusion
    unknown = why_unknown(explained) + ". " if found.outcome is Outcome.UNKNOWN else ""
    yield f"## cluster-doctor: {inline(unknown + last_words(explained))}\n\n{inline(explained.read)}\n"
    for place in explained.roots:
        yield _cause(explained, place)
    if found.odd and found.outcome is not Outcome.NAMED:
        yield "\n### First odd lines\n\n" + block("\n".join(map(quoted, found.odd[:ODD])), "text")
    if explained.progress and found.outcome is Outcome.UNKNOWN:
        lines = "\n".join(map(quoted, explained.progress[:ODD]))
        yield "\n### How far each rank was\n\n" + block(lines, "text")
    if found.beside:
        yield "\n### Other attempts and jobs\n\n" + "".join(f"- {inline(each)}\n" for each in found.beside)
    if any(at is not None for at, _ in found.story):
        told = [f"{when:>19}  {says}" for when, says in told_at(found.story[:STORY])]
        yield "\n### What happened when\n\n" + block("\n".join(told), "text")
    if commands := explained.proves():
        yield "\n### Prove it on the hosts\n\n" + block("\n".join(commands), "sh")
    if rows := (*found.open, *explained.unread):
        yield "\n### Not known\n\n" + "".join(f"- {inline(row)}\n" for row in rows[:ODD])


def _cause(explained: Explained, place: int) -> str:
    charge = explained.conclusion.charges[place]
    symptom = f" ({code(charge.symptom)})" if charge.symptom else ""
    text = f"\n### {word(charge)} {inline(headline(charge))}{symptom}\n\n"
    if proof := explained.proof_of(place):
        text += f"- on the hosts: **{proof.proved.value}**" + (
            f": {inline(proof.says)}\n" if proof.says else "\n"
        )
    text += "".join(f"- known by: {inline(how)}\n" for how in charge.how)
    text += "".join(f"- led to: {inline(headline(each))}\n" for each in explained.led_to(place)[:LINES])
    text += "".join(f"- cause {n}: {inline(cause)}\n" for n, cause in enumerate(charge.causes, 1))
    if charge.remedy:
        text += "\n" + block("\n".join(charge.remedy.commands), "sh")
    lines = [*charge.lines, *(line for each in explained.led_to(place) for line in each.lines)]
    if lines:
        text += "\n" + folded("Lines", "", block("\n".join(map(quoted, lines[:LINES])), "text"))
    return text
