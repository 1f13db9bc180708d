"""Reads one entry of a file of symptoms from its YAML tree, and reports every mistake with its line."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from doctor.errors import Mistake, suggest
from doctor.logs.model import Form, Role, Symptom
from doctor.logs.symptoms.numbers import NUMBER, SPELLINGS, patterns_of
from doctor.text.hostprogram import table
from doctor.text.speech import learn
from doctor.text.textfile import shown
from doctor.text.yamlfile import Listing, Node, Scalar, YamlTable

_TEXTS, _LISTS = table(__file__, "fields.txt")
FIELDS = (*_TEXTS, "any", *_LISTS)
NEEDS = ("repeated", "last", "end", "no-step", "effect", "differs", "unfinished")

ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_FORMS = {form.value: form for form in Form}
MOST_TEXT = 2000
"""The most characters of one value."""
MOST_VALUES = 200


@dataclass(slots=True)
class SymptomEntry:
    """A symptom with its fields as they were read, for mistakes that are found later."""

    symptom: Symptom
    line: int
    given: Mapping[str, Node]

    def at(self, name: str, value: str = "") -> int:
        """The line number of a field, or of a value in it."""
        node = self.given.get(name)
        if node is None:
            return self.line
        return next((line for line, text in _values(node) if text == value), node.line)


def _values(node: Node) -> Iterator[tuple[int, str]]:
    """All values in a list, and in lists in it."""
    if isinstance(node, Scalar):
        yield node.line, node.text
    elif isinstance(node, Listing):
        for item in node.items:
            yield from _values(item)


def read_entry(
    file: str, family: str, key: Scalar, node: Node, mistakes: list[Mistake]
) -> SymptomEntry | None:
    """The entry, or None if it has mistakes."""
    before = len(mistakes)
    reader = _EntryReader(file, mistakes)
    if not ID.fullmatch(key.text):
        reader.wrong(key, f"{shown(key.text)} is not an id: lower-case letters, digits and single hyphens")
    if not isinstance(node, YamlTable):
        reader.wrong(
            key, f"{shown(key.text)} has no fields: it needs a title and a role, and a pattern or codes"
        )
        return None
    reader.table(node)
    role = reader.choice("role", tuple(each.value for each in Role))
    needs = reader.choice("needs", NEEDS)
    forms = reader.forms()
    number = reader.number()
    patterns = (*patterns_of(number, reader.choice("spellings", SPELLINGS)), *reader.patterns())
    for name in ("title", "role"):
        if name not in reader.given:
            reader.wrong(key, f"{shown(key.text)} has no {name}")
    if not ({"number", "any", "codes"} & set(reader.given)):
        reader.wrong(
            key,
            f"{shown(key.text)} has neither a pattern (`any`), a `number` nor `codes`: nothing leads to it",
        )
    if len(mistakes) > before:
        return None
    learn(reader.text("title"), reader.text("zh"))
    symptom = Symptom(
        id=key.text,
        title=reader.text("title"),
        family=family,
        role=Role(role),
        number=number,
        patterns=patterns,
        forms=forms,
        take=reader.text("take"),
        above=reader.texts("above"),
        below=reader.texts("below"),
        codes=(*((number,) if number else ()), *reader.texts("codes")),
        explains=reader.texts("explains"),
        causes=reader.texts("causes"),
        checks=reader.texts("checks"),
        remedy=reader.texts("remedy"),
        needs=needs,
        unseen=reader.text("unseen"),
        sources=reader.texts("sources"),
        versions=reader.text("versions"),
        examples=reader.texts("example"),
        counter_examples=reader.texts("not"),
        zh=reader.text("zh"),
        origin=file,
    )
    return SymptomEntry(symptom, key.line, reader.given)


class _EntryReader:
    """Reads the fields of one entry."""

    def __init__(self, file: str, mistakes: list[Mistake]) -> None:
        self.file = file
        self.mistakes = mistakes
        self.given: dict[str, Node] = {}
        self._values: dict[str, tuple[str, ...]] = {}

    def wrong(self, node: Node, message: str) -> None:
        self.mistakes.append(Mistake(self.file, node.line, message))

    def table(self, node: YamlTable) -> None:
        for key, value in node.rows:
            if key.text not in FIELDS:
                near = suggest(key.text, FIELDS) or f"the fields are {', '.join(FIELDS)}"
                self.wrong(key, f"no field is called {shown(key.text)}; {near}")
                continue
            self.given[key.text] = value
            if key.text == "any":
                continue
            if key.text in _TEXTS and not isinstance(value, Scalar):
                self.wrong(value, f"{key.text} is one text, not a list or mapping")
                continue
            self._values[key.text] = tuple(self._texts(key.text, value))

    def _texts(self, name: str, node: Node) -> Iterator[str]:
        items: Iterable[Node] = node.items if isinstance(node, Listing) else (node,)
        if isinstance(node, Listing) and len(node.items) > MOST_VALUES:
            self.wrong(node, f"{name} has more than {MOST_VALUES} values")
            return
        for item in items:
            text = self._scalar(name, item)
            if text is not None:
                yield text

    def _scalar(self, name: str, node: Node) -> str | None:
        if not isinstance(node, Scalar):
            self.wrong(node, f"{name} holds a list or mapping where a text belongs")
        elif not node.text.strip():
            self.wrong(node, f"{name} holds an empty text")
        elif len(node.text) > MOST_TEXT:
            self.wrong(node, f"{name} holds a text of more than {MOST_TEXT} characters")
        else:
            return node.text
        return None

    def text(self, name: str) -> str:
        return next(iter(self._values.get(name, ())), "")

    def texts(self, name: str) -> tuple[str, ...]:
        return self._values.get(name, ())

    def choice(self, name: str, known: tuple[str, ...]) -> str:
        value = self.text(name)
        if value and value not in known:
            self._unknown(self.given[name], name, value, known)
        return value

    def _unknown(self, node: Node, name: str, value: str, known: Iterable[str]) -> None:
        near = suggest(value, known) or f"it is one of {', '.join(known)}"
        self.wrong(node, f"no {name} is called {shown(value)}; {near}")

    def number(self) -> str:
        value = self.text("number")
        if value and not NUMBER.fullmatch(value):
            self.wrong(self.given["number"], f"number is six digits, such as 107001, not {shown(value)}")
        return value

    def forms(self) -> frozenset[Form]:
        for value in self.texts("from"):
            if value not in _FORMS:
                line = next(line for line, text in _values(self.given["from"]) if text == value)
                self._unknown(Scalar(line, value), "form", value, _FORMS)
        return frozenset(_FORMS[value] for value in self.texts("from") if value in _FORMS)

    def patterns(self) -> tuple[tuple[str, ...], ...]:
        node = self.given.get("any")
        if node is None:
            return ()
        if isinstance(node, YamlTable):
            self.wrong(node, "any is a list of lists of texts, not a mapping")
            return ()
        rows: list[tuple[str, ...]] = []
        for item in node.items if isinstance(node, Listing) else (node,):
            found = tuple(self._texts("any", item))
            if not found and isinstance(item, Listing) and not item.items:
                self.wrong(item, "any holds a pattern without a text")
            for text in found:
                if "\n" in text:
                    self.wrong(item, "a pattern stands in one line: it cannot hold a line end")
            rows.append(found)
        return tuple(rows)
