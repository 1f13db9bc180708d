"""`doctor explain WORDS`: finds the page to show by a name, a code or a message."""

import errno
import os
import re
from collections.abc import Callable, Iterable, Sequence

from doctor.cli.catalogue import CatalogueRow, of_check
from doctor.cli.explain.mentions import Mention, mentioned
from doctor.cli.explain.page import TextPage, print_page
from doctor.cli.explain.symptom_page import page_of
from doctor.errors import EXIT_INCONCLUSIVE, EXIT_OK, UsageError, suggest
from doctor.judge.playbook import by_part, exams, load_remedies
from doctor.judge.registry import check_ids
from doctor.logs.model import Role, Symptom
from doctor.logs.symptoms.lookup import REST
from doctor.logs.symptoms.match import Matcher
from doctor.text.printable import clean, clean_line
from doctor.text.speech import t

PAGES = 3
"""Up to this many pages are shown whole; if there are more, their names."""
NEAR = 5
MESSAGES = 10
_NAME = re.compile(r"[a-z][a-z-]*")


def explain_words(text: str, load: Callable[[], Matcher], paper: TextPage) -> int:
    """Looks for names of checks first, then names of symptoms, codes, settings and commands that checks are
    about, whole messages, parts of names, and parts of messages.

    `load` takes a while and is not called for the name of a check.
    """
    checks = check_ids(paper.folders)
    recipes = list(load_remedies().recipes)
    word = text.strip()
    plain = word.lower().replace("_", "-")  # shm_small, SHM-SMALL

    def show(found: Iterable[Symptom]) -> int:
        return _show(tuple(found), checks, paper)

    if plain in checks or plain in recipes or plain in exams():
        return print_page(plain, paper)
    matcher = load()
    if named := [each for each in matcher.symptoms if each.id in (word, plain)]:
        return show(named)
    if coded := matcher.lookup.by_code(word):
        return show(coded)
    if several := _codes(word.replace(",", " ").split(), matcher):
        return show(several)
    if whole := [id for id in checks if f"-{plain}-" in f"-{id}-"]:
        print_page(whole[0] if len(whole) == 1 else plain, paper)
        own = [each for each in matcher.symptoms if f"-{plain}-" in f"-{each.id}-"]
        _put_messages(
            (*own, *_causes_first(matcher.lookup.by_fragment(word))) if len(whole) > 1 else (), paper
        )
        return EXIT_OK
    said = _by_message(word, matcher)
    if said and " " in word:
        return show(said)
    if found := mentioned(word, paper.folders):
        return _show_mention(found, said or _causes_first(matcher.lookup.by_fragment(word)), paper)
    if said:
        return show(said)
    if by_part(word, checks) or by_part(word, recipes):
        return print_page(word, paper)
    ids = {each.id: each for each in matcher.symptoms}
    if parts := by_part(word, ids):
        return show(ids[id] for id in parts)
    if partly := matcher.lookup.by_fragment(word):
        return show(_causes_first(partly))
    return _unknown(word, matcher, (*checks, *recipes, *ids), paper)


def _codes(words: Sequence[str], matcher: Matcher) -> list[Symptom]:
    """The symptoms of several codes; none if one of the words does not belong to a code."""
    found: dict[str, Symptom] = {}
    at = 0
    while at < len(words):
        for long in (3, 2, 1):  # exit code -9
            if coded := matcher.lookup.by_code(" ".join(words[at : at + long])):
                found.update((each.id, each) for each in coded)
                at += long
                break
        else:
            return []
    return list(found.values())


def _by_message(text: str, matcher: Matcher) -> list[Symptom]:
    """The symptoms of a message; those that can be the cause come first. ENOSPC stands for its message."""
    if text in errno.errorcode.values():
        return _causes_first(matcher.lookup.by_fragment(os.strerror(getattr(errno, text))))
    known = (each for line in text.splitlines() for each, _ in matcher.decide(line, None))
    return _causes_first({each.id: each for each in known if not each.id.endswith(REST)}.values())


def _causes_first(found: Iterable[Symptom]) -> list[Symptom]:
    return sorted(found, key=lambda each: each.role not in (Role.ROOT, Role.NAMES))


def _show(found: Sequence[Symptom], checks: Sequence[str], paper: TextPage) -> int:
    if len(found) > PAGES:
        paper.put_rows(f"{len(found)} symptoms fit; doctor explain ID shows one:", _rows(found))
    else:
        paper.put("\n\n".join("".join(page_of(each, checks, paper)) for each in found))
    return EXIT_OK


def _rows(found: Iterable[Symptom]) -> list[CatalogueRow]:
    return [(each.id, "", t(each.title)) for each in found]


def _show_mention(found: Mention, messages: Sequence[Symptom], paper: TextPage) -> int:
    """The page of the only check that is about the word, or the titles of several; then messages about it."""
    shown = clean_line(found.word)
    if len(found.checks) == 1:
        id = found.checks[0].id
        paper.put(t(f"{id} {found.does} {shown}."), "\n\n")
        print_page(id, paper)
    else:
        head = f"{len(found.checks)} checks {found.does} {shown}; doctor explain ID shows one:"
        paper.put_rows(head, list(map(of_check, found.checks)))
    _put_messages(messages, paper)
    return EXIT_OK


def _put_messages(found: Iterable[Symptom], paper: TextPage) -> None:
    if rows := _rows({each.id: each for each in found}.values()):
        paper.put_rows("\nMessages in logs about it:", rows[:MESSAGES])


def _unknown(text: str, matcher: Matcher, names: Sequence[str], paper: TextPage) -> int:
    """Raises UsageError for an unknown name; for an unknown message, prints similar symptoms."""
    shown = clean_line(" ".join(text.split()))
    near = suggest(text, names)
    if _NAME.fullmatch(text):
        said = f"There is no check {text!r}, and no symptom, code or file of that name"
        hint = "`doctor list` shows all checks, `doctor list symptoms` all symptoms."
        raise UsageError(f"{said}; {near}" if near else f"{said}.", hint)
    cut = shown if len(shown) <= 200 else f"{shown[:199]}…"
    paper.put(clean(t(f"No known message matches: {cut}\n")))
    if found := matcher.lookup.by_words(text, NEAR):
        paper.put_rows("\nSimilar ones:", _rows(found))
    else:
        paper.put(t("Give the whole log: doctor explain FILE. Its other lines may say more.\n"))
    return EXIT_INCONCLUSIVE
