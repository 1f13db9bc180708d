"""Says English sentences in the reader's language: `t` recognises a sentence by its template and fills the
translation. What is not recognised stays English, whole or in part.

It is called where a report, a help page or a message is written. JSON, ids, commands and evidence never go
through it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from doctor.text.catalogue import HOLE, NAMED, QUOTED, Template, read_catalogue, words
from doctor.text.language import UNTRANSLATED, Language
from doctor.text.late import late

CATALOGUE = Path(__file__).parent / "zh"
LONGEST = 2000
"""Longer texts are not sentences."""
DEEPEST = 6
_SENTENCES = late(r"(?<=[.!?]) +(?=[A-Z'\"`/(])")
_ENGLISH = late(r"[A-Za-z]")
_PROSE = late(r"[a-z]{2,}[,:;]? [a-z]{2,}")
_TWO_WORDS = late(r"\b(?:an?|[a-z]{2,}) [a-z]{2,}\b")
_QUOTE = late(r"'[^']*'|`[^`]*`|\"[^\"]*\"")
_ID = late(r"[a-z0-9]+(?:-[a-z0-9]+)+")
"""As of a check or a symptom."""
_OPTION = late(r"--?[a-z][a-z-]*")
_HAN, _LATIN = "\u4e00-\u9fff", "A-Za-z0-9"
_MARKS = "，。；：（）"
_LOOSE = late(f"(?<=[{_HAN}])(?=[{_LATIN}])|(?<=[{_LATIN}])(?=[{_HAN}])")
"""Where Chinese and Latin letters touch, a blank belongs."""
_TIGHT = late(f"(?<=[{_HAN}{_MARKS}]) (?=[{_HAN}{_MARKS}])|(?<=[{_MARKS}]) (?=[{_LATIN}])")
"""Blanks that do not belong into Chinese."""
_SEPARATORS = ((" · ", " · "), (": ", "："), (", ", "，"))
_IT = late("^(?:它的|它|其)")
_PAIR = late(r"\([^()]*\)")
_COMMENT = late(r"(.*?\s{2,}# |\s*# )(\S.*)")
_COLUMNS = late(r"(\s{2,})")
_SIGNS = {"; ": "；", ";": "；", ": ": "：", ", ": "，", ",": "，", "(": "（", ")": "）", " ": ""}
_JOINED = {"and": "和", "or": "或"}
_JOINS = late(r",? (and|or) ")
_CLOSED = {"(": ")", "[": "]", "{": "}"}
_spoken = Language.EN
_learnt: dict[str, str] = {}


def speak(lang: Language) -> None:
    """From now on, `t` translates into this language."""
    global _spoken
    _spoken = lang


def spoken() -> Language:
    return _spoken


@contextmanager
def speaking(lang: Language) -> Iterator[None]:
    before = _spoken
    speak(lang)
    try:
        yield
    finally:
        speak(before)


def learn(english: str, chinese: str) -> None:
    """Adds a translation that is kept beside its English text."""
    if chinese not in ("", UNTRANSLATED) and _learnt.get(english) != chinese:
        _learnt[english] = chinese
        _index.cache_clear()
        _said.cache_clear()


def t(text: str) -> str:
    """The text in the language that is spoken, with its blanks at both ends."""
    if _spoken is Language.EN or len(text) > LONGEST or not _ENGLISH.search(text):
        return text
    inner = text.strip()
    said = translated(inner)
    if said is None:
        return text
    start = text.index(inner)
    end = text[start + len(inner) :]
    return text[:start] + said + (end.removeprefix(" ") if said.endswith("：") else end)


def sign(english: str) -> str:
    """A punctuation mark with its blanks."""
    return english if _spoken is Language.EN else _SIGNS[english]


def spoken_end(signs: str) -> str:
    """Signs that end some words, without a blank after them."""
    return "".join(sign(each) if each in ",;)" else each for each in signs)


def t_list(text: str) -> str:
    """A list whose items are translated one by one; several lists have semicolons between them."""
    if _spoken is Language.EN:
        return text
    return "；".join("，".join(map(t, _split(each, ", "))) for each in _split(text, "; "))


def t_parts(text: str) -> str:
    """Parts with dots between them, which are translated one by one."""
    return " · ".join(map(t, text.split(" · ")))


def spoken_command(line: str) -> str:
    """A command with its comment translated: comments between commands are sentences too."""
    found = _COMMENT.fullmatch(line)
    return f"{found[1]}{t(found[2])}" if found else line


def translated(text: str) -> str | None:
    """The translation of a text, None if no part of it is known."""
    said = _said(text.strip(), 0)
    return None if said is None else _TIGHT.sub("", _LOOSE.sub(" ", said))


class _Index:
    """Templates by their rarest word; sentences without holes by themselves."""

    def __init__(self, entries: Mapping[str, str]) -> None:
        self.whole = {_key(english): chinese for english, chinese in entries.items() if "{" not in english}
        holed = [Template(english, chinese) for english, chinese in entries.items() if "{" in english]
        often = Counter(word for each in holed for word in set(each.words()))
        self.by_word: dict[str, list[Template]] = defaultdict(list)
        for each in holed:
            self.by_word[min(each.words(), key=lambda word: often[word], default="")].append(each)

    def candidates(self, text: str) -> list[Template]:
        found = [each for word in ("", *words(text)) for each in self.by_word.get(word, ())]
        return sorted(
            found, key=lambda each: (-each.fixed, "}{" in each.english, -len(each.english), each.english)
        )


@lru_cache(maxsize=1)
def _index() -> _Index:
    return _Index({**read_catalogue(CATALOGUE), **_learnt})


def _key(text: str) -> str:
    return text[:1].lower() + text[1:]


@lru_cache(maxsize=4096)
def _said(text: str, depth: int) -> str | None:
    if not _ENGLISH.search(text):
        return None
    index = _index()
    if (whole := index.whole.get(_key(text))) is not None:
        return whole
    if depth > DEEPEST:
        return None
    if said := _after_whom(text, depth):
        return said
    if "  " in text and (columns := _in_columns(text, depth)):
        return columns
    if (parts := _before_and_inside(text)) and _ID.fullmatch(parts[1]) and (said := _said(parts[0], depth)):
        return f"{said}（{parts[1]}）"
    known = index.candidates(text)
    strong = [each for each in known if not each.is_weak]
    if (said := _by_template(strong, text, depth)) is not None:
        return said
    if "\n" in text:
        return _joined(text.split("\n"), "\n", depth)
    bare = text.removesuffix(".")
    if said := index.whole.get(_key(bare)) or _by_template(strong, bare, depth):
        return _with_stop(said)
    if said := _without_it(bare, depth):
        return _with_stop(said) if bare != text else said
    whole = f"{text}."  # a title has no full stop
    if text[:1].isupper() and (
        said := index.whole.get(_key(whole)) or _by_template(_long(whole), whole, depth)
    ):
        return said.removesuffix("。")
    if said := _in_sentences(text, depth):
        return said
    if bare != text and (said := _said(bare, depth)):
        return _with_stop(said)
    return _by_template([each for each in known if each.is_weak], text, depth) or _in_parts(text, depth)


def _after_whom(text: str, depth: int) -> str | None:
    """A sentence that is known whole, whatever signs are in it, after a name or before brackets."""
    whom, colon, rest = text.partition(": ")
    begin = f"{_key(whom)}: "  # if a known sentence begins so, it is not a name
    if colon and not any(_key(each.english).startswith(begin) for each in _index().candidates(text)):
        said = _whole(rest, depth) or _in_clauses(rest, depth) or _after_whom(rest, depth)
        if not said and _OPTION.fullmatch(whom):
            said = _said(rest, depth + 1)
        subject = _said(whom, depth + 1) if said else None
        if said and (subject or not _PROSE.search(whom)):
            return f"{subject or whom}：{said}"
    return _whole(text, depth) if text.endswith(")") else None


def _in_clauses(text: str, depth: int) -> str | None:
    """A sentence of several clauses that has a template of its own."""
    if "; " not in text:
        return None
    return _by_template([each for each in _index().candidates(text) if not each.is_weak], text, depth)


def _whole(text: str, depth: int) -> str | None:
    whole = _index().whole
    if said := whole.get(_key(text)):
        return said
    at = text.find(" (")
    while text.endswith(")") and at > 0:
        inside = _in_brackets(text[at:])
        if inside and (said := whole.get(_key(text[:at]))):
            return said + "".join(f"（{_said(each, depth + 1) or each}）" for each in inside)
        at = text.find(" (", at + 1)
    return None


def _in_brackets(text: str) -> list[str]:
    """What is in brackets that follow each other: " (a) (b)"; brackets inside of others stay. Nothing if
    there is text between them."""
    several = text[2:-1].split(") (")
    if all(map(_closes, several)):
        return several
    return [text[2:-1]] if _closes(text[2:-1]) else []


def _before_and_inside(text: str) -> tuple[str, str] | None:
    """A text that ends with brackets, which may hold others."""
    at = text.find(" (")
    while text.endswith(")") and at > 0:
        if (inside := text[at + 2 : -1]) and _closes(inside):
            return text[:at], inside
        at = text.find(" (", at + 1)
    return None


def _without_it(text: str, depth: int) -> str | None:
    """The translation of a text whose "it" or "its" was left out, since its subject is named before it."""
    for lead in ("it ", "its "):
        whole = f"{lead}{_key(text)}"
        with_it = (each for each in _long(whole) if each.english.startswith("it"))
        said = _index().whole.get(whole) or _by_template(with_it, whole, depth)
        if said:
            return _IT.sub("", said)
    return None


def _long(text: str) -> list[Template]:
    return [each for each in _index().candidates(text) if not each.is_short]


def _with_stop(said: str) -> str:
    return said if said.endswith("。") else f"{said}。"


def _by_template(templates: Iterable[Template], text: str, depth: int) -> str | None:
    for each in templates:
        found = each.pattern.fullmatch(text) if _may_fit(each, text) else None
        if found is None:
            continue
        quoted = {name: value for name, value in found.groupdict().items() if name.startswith(QUOTED)}
        prose = {name: value for name, value in found.groupdict().items() if name not in quoted}
        clauses = (len(list(_split(value, "; "))) > 1 for name, value in prose.items() if name != each.listed)
        if "; " not in each.english and any(clauses):
            continue  # the clauses are said one by one
        if ": " not in each.english and any(": " in _QUOTE.sub("", value) for value in prose.values()):
            continue  # what is before a colon is said by itself
        said = {name: _said_of(name, value, depth + 1) for name, value in prose.items()}
        if not all(text.count(a) == text.count(b) for text in prose.values() for a, b in _CLOSED.items()):
            continue
        left = [name for name in prose if not said[name] and not name.startswith("command")]
        if each.is_weak and not all(not quoted and _is_name(prose[name]) for name in left):
            continue
        if each.is_short and any(_TWO_WORDS.search(prose[name]) for name in left):
            continue
        if each.is_tiny and any(map(_TWO_WORDS.search, quoted.values())):
            continue
        values = quoted | {name: _filled(value, said[name]) for name, value in prose.items()}
        return HOLE.sub(lambda hole, values=values: values[hole[1]], each.chinese)  # type: ignore[misc]
    return None


def _may_fit(template: Template, text: str) -> bool:
    """A hole at the end takes dots, but not the full stop of a sentence, and no hole takes several lines."""
    at_end = template.english.endswith("}") and text.endswith(".") and not text.endswith("...")
    return not at_end and ("\n" in template.english or "\n" not in text)


def _said_of(hole: str, value: str, depth: int) -> str | None:
    """The text of a hole. Names stay, only the words between several of them are translated."""
    if NAMED.fullmatch(hole):
        joined = (
            _JOINS.sub(lambda each: f" {_JOINED[each[1]]} ", value) if hole.startswith("names") else value
        )
        return joined if joined != value else None
    return _said(value.strip(), depth)


def _filled(english: str, said: str | None) -> str:
    return english if said is None else english.replace(english.strip(), said)


def _is_name(text: str) -> bool:
    """Whether the text has no two words in a row."""
    return not _PROSE.search(text)


def _closes(text: str) -> bool:
    """Whether no bracket is closed that was not opened."""
    left = text
    while (shorter := _PAIR.sub("", left)) != left:
        left = shorter
    return ")" not in left and "(" not in left


def _in_sentences(text: str, depth: int) -> str | None:
    for parts, between in ((_SENTENCES.split(text), ""), (_split(text, "; "), "；")):
        several = list(parts)
        if len(several) > 1 and (said := _joined(several, between, depth)):
            return said
    return None


def _in_columns(text: str, depth: int) -> str | None:
    """Columns between two blanks or more; one of a single word is a name."""
    parts = _COLUMNS.split(text)
    said = [_said(each, depth + 1) if " " in each else None for each in parts]
    return (
        "".join(each if new is None else new for each, new in zip(parts, said, strict=True))
        if any(said)
        else None
    )


def _in_parts(text: str, depth: int) -> str | None:
    """The text whose clauses or list of words are translated one by one."""
    if two := _before_and_inside(text):
        both = [_said(each, depth + 1) for each in two]
        if any(both):
            first, second = (said or each for said, each in zip(both, two, strict=True))
            return f"{first}（{second}）"
    for between, chinese in _SEPARATORS:
        parts = list(_split(text, between))
        if between == ": ":  # a title may have a colon of its own
            parts = [each for each in (parts[0], text[len(parts[0]) + len(between) :]) if each]
        if len(parts) > 1 and (said := _joined(parts, chinese, depth, all_of_it=between == ", ")):
            return said
    return None


def _joined(parts: Iterable[str], between: str, depth: int, *, all_of_it: bool = False) -> str | None:
    pairs = [(each, _said(each.strip(), depth + 1)) for each in parts]
    if not any(said for _, said in pairs):
        return None
    if all_of_it and any(said is None and not _is_name(each) for each, said in pairs):
        return None
    return between.join(_filled(each, said) for each, said in pairs)


def _split(text: str, between: str) -> Iterator[str]:
    """The parts between separators that are outside of brackets and quotes."""
    start = at = 0
    closing: list[str] = []
    while at < len(text):
        sign = text[at]
        if closing and sign == closing[-1]:
            closing.pop()
        elif sign in _CLOSED:
            closing.append(_CLOSED[sign])
        elif not closing and text.startswith(between, at):
            yield text[start:at]
            at += len(between)
            start = at
            continue
        at += 1
    yield text[start:]
