"""Shell text -> words and the marks between commands. Nothing is run, and nothing is looked up.

It understands what launch scripts need: quotes, line continuations, comments, here-documents, variables with
and without braces, arrays. Any other expansion (`$(…)`, arithmetic, `${x%…}`) becomes a part that stays as
written.
"""

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

Kind = Literal["text", "variable", "dynamic"]


class ShellError(Exception):
    """A line that a shell would reject too."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


@dataclass(frozen=True, slots=True)
class WordPart:
    """A piece of a word. `text` is the piece itself or the name of a variable; `raw` is its spelling.

    `default` is the text after `:-`, for a variable that is empty.
    """

    kind: Kind
    text: str
    raw: str
    quoted: bool = False
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Word:
    parts: tuple[WordPart, ...]
    line: int

    @property
    def plain(self) -> str | None:
        """The word, if nothing in it is quoted or must be expanded."""
        literal = all(part.kind == "text" and not part.quoted for part in self.parts)
        return "".join(part.text for part in self.parts) if literal else None

    @property
    def raw(self) -> str:
        return "".join(part.raw for part in self.parts)


@dataclass(frozen=True, slots=True)
class Separator:
    """What ends a command: `;` `;;` `&` `&&` `||` `|` `(` `)`, a line end, or a redirection."""

    text: str
    line: int


_NAME = r"[A-Za-z_][A-Za-z0-9_]{0,199}"
_VARIABLE = re.compile(rf"\$(?:({_NAME})|\{{({_NAME})\}})")
_DEFAULT = re.compile(rf"\$\{{({_NAME}):?[-=]")
_PLAIN = re.compile(r"""[^\s'"\\$`;&|()<>#]+""")
_IN_QUOTES = re.compile(r'[^"\\$`]+')
_OPERATOR = re.compile(r";;&|;;|;&|;|&&|&(?!>)|\|\||\|&|\||[()]")
_REDIRECTION = re.compile(r"&?(?:<<<|<<-?|<>|>>|>\||>&|<&|<|>)")
_QUOTED = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_SHELL = r"(?:\S*/)?(?:ba|da|k|z)?sh"
READS = re.compile(rf"(?: |^){_SHELL}(?: -[ls]+)*(?:(?<=s)(?: --)?(?P<given>(?: [^\s-].{{0,200}})?))?$")
"""The end of a command that reads a script from its input."""
SSH = re.compile(r"ssh(?: -[46AaCfGgKkMNnqsTtVvXxYy]+| -[A-Za-z] ?\S+)* ([^\s-]\S*)")
_MOST_WORDS = 200
"""How many words before a here-document are looked at."""
_SPECIAL = re.compile(r"\$[0-9@*#?$!-]")


def tokens(text: str) -> list[Word | Separator]:
    """All words and marks of a file. Raises ShellError."""
    return _TokenReader(text).all()


class _TokenReader:
    def __init__(self, text: str) -> None:
        self.text = text.replace("\r\n", "\n")
        self.at = 0
        self.line = 1
        self.found: list[Word | Separator] = []
        self.documents = 0

    def all(self) -> list[Word | Separator]:
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "\n":
                self._mark("\n", 1)
                self._over(max(self.documents - self.at, 0))
            elif char.isspace():
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self._over(2)
            elif char == "#":
                self._comment()
            elif self.text.startswith("((", self.at):
                self._arithmetic()
            elif not self._redirection() and not self._operator():
                before = self.at
                self._word()
                self._over(1 if self.at == before else 0)
        return self.found

    def _over(self, length: int) -> str:
        piece = self.text[self.at : self.at + length]
        self.at += len(piece)
        self.line += piece.count("\n")
        return piece

    def _comment(self) -> None:
        end = self.text.find("\n", self.at)
        self._over((len(self.text) if end < 0 else end) - self.at)

    def _mark(self, text: str, length: int) -> None:
        self.found.append(Separator(text, self.line))
        self._over(length)

    def _operator(self) -> bool:
        match = _OPERATOR.match(self.text, self.at)
        if match:
            self._mark(match[0], len(match[0]))
        return match is not None

    def _redirection(self) -> bool:
        """Read a redirection, if there is one. Its file or the end of its here-document is the next word."""
        if self.text.startswith(("<(", ">("), self.at):
            return False
        match = _REDIRECTION.match(self.text, self.at)
        if match is None:
            return False
        before = self.found[-1] if self.found else None
        glued = self.at and self.text[self.at - 1].isdigit()
        number = ""
        if glued and isinstance(before, Word) and (before.plain or "").isdigit():
            self.found.pop()  # the 2 of 2>
            number = "2" if before.plain == "2" and match[0][0] == ">" else ""
        if match[0] in ("<<", "<<-"):
            end = re.compile(r"<<-?[ \t]*([\\'\"]?)([\w.-]{1,100})['\"]?").match(self.text, self.at)
            if end:
                self._over(len(end[0]))
                document = self._document(end[2], match[0] == "<<-", bool(end[1]))
                if not self._give_to_shell(document):
                    self.found += (Separator("redirection <<<", self.line), document)
                return True
        self._mark(f"redirection {number}{match[0]}", len(match[0]))
        return True

    def _document(self, end: str, tabs: bool, quoted: bool) -> Word:
        """The here-document that begins after this line, and after those before it."""
        begin = self.documents
        if begin <= self.at:
            line = re.compile(r"(?<!\\)\n").search(self.text, self.at)
            begin = line.end() if line else len(self.text)
        pattern = re.compile(rf"^[ \t]{{0,{99 * tabs}}}{re.escape(end)}[ \t]*$", re.MULTILINE)
        match = pattern.search(self.text, begin)
        self.documents = match.end() if match else len(self.text)
        text = self.text[begin : match.start() if match else None]
        text = re.sub(r"(?m)^\t+", "", text) if tabs else text
        try:
            reader = _TokenReader('"' + re.sub(r'(?<!\\)"', r"\"", text) + '"')
            parts = [_text(text, quoted=True)] if quoted else reader._double_quotes()
        except ShellError:
            parts = [_dynamic("$()", quoted=True)]
        return Word(tuple(parts), self.line)

    def _give_to_shell(self, document: Word) -> bool:
        """A shell that reads a here-document is given it as its text, as by `bash -c`. Whether it is one."""
        last = self.found[-_MOST_WORDS:]
        ends = (n for n, e in enumerate(last, 1) if isinstance(e, Separator) and "redirection" not in e.text)
        pairs = [*pairwise((document, *last[max(ends, default=0) :]))]
        words = [each for before, each in pairs if isinstance(before, Word) and isinstance(each, Word)]
        others = [each for before, each in pairs if not (isinstance(before, Word) and isinstance(each, Word))]
        written = " ".join(word.raw for word in words)
        shell = READS.search(written)
        at = next((n for n in reversed(range(len(words))) if re.fullmatch(_SHELL, words[n].raw)), len(words))
        given = [each for each in words[at + 1 :] if each.raw[:1] != "-"]
        if re.search(rf"(?:^|\s){SSH.pattern}$", READS.sub("", written)):
            made = [*words[: at if shell else None], document]
        elif shell and not (given and "ssh " in written):
            name = [Word((_text("sh"),), self.line), *given] if given else []
            text = _in_quotes(document) if "ssh " in written else document  # ssh joins its words
            made = [*words[: at + 1], Word((_text("-c"),), self.line), text, *name]
        else:
            return False
        self.found[len(self.found) - len(pairs) :] = [*others, *made]
        return True

    def _arithmetic(self) -> None:
        """`((…))`, also in the head of a for loop: one word that stays unevaluated."""
        line, raw = self.line, self._nested("(", ")")
        self.found.append(Word((WordPart("dynamic", raw, raw),), line))

    def _word(self, in_list: bool = False) -> None:
        line = self.line
        parts: list[WordPart] = []
        while self.at < len(self.text):
            plain = _PLAIN.match(self.text, self.at)
            char = self.text[self.at]
            if plain:
                parts.append(_text(self._over(len(plain[0]))))
            elif char == "\\":
                escaped = self._over(2)[1:]
                parts += [_text(escaped, quoted=True)] if escaped and escaped != "\n" else []
            elif char == "'":
                parts.append(_text(self._quoted("'"), quoted=True))
            elif char == '"':
                parts += self._double_quotes()
            elif self.text.startswith("$'", self.at):
                self.at += 1
                parts.append(_text(self._quoted("'"), quoted=True))
            elif char in "$`":
                parts.append(self._expansion(quoted=False))
            elif char == "#" and parts:
                parts.append(_text(self._over(1)))
            elif self.text.startswith(("<(", ">("), self.at):
                parts.append(_dynamic("$" + self._nested("(", ")")))
            elif char == "(" and not in_list and _opens_list(parts):
                self._list(parts, line)
                return
            else:
                break
        self.found.append(Word(tuple(_from_home(parts)), line))

    def _list(self, parts: list[WordPart], line: int) -> None:
        """`NAME=(a b c)`: the words up to the bracket become a separate command called `NAME=(`."""
        self.at += 1
        self.found.append(Word((_text("".join(part.text for part in parts) + "("),), line))
        while self.at < len(self.text) and self.text[self.at] != ")":
            if self.text[self.at].isspace() or self.text.startswith("\\\n", self.at):
                self._over(2 if self.text[self.at] == "\\" else 1)
            elif self.text[self.at] == "#":
                self._comment()
            else:
                before = self.at
                self._word(in_list=True)
                if self.at == before:
                    self._over(1)
                    self.found.pop()
        if self.at >= len(self.text):
            raise ShellError(line, "'(' is opened here and never closed")
        self._mark(")list", 1)

    def _quoted(self, quote: str) -> str:
        line, end = self.line, self.text.find(quote, self.at + 1)
        if end < 0:
            raise ShellError(line, f"a quote ({quote}) is opened here and never closed")
        return self._over(end + 1 - self.at)[1:-1]

    def _double_quotes(self) -> list[WordPart]:
        line = self.line
        parts = [_text("", quoted=True)]
        self.at += 1
        while self.at < len(self.text):
            plain = _IN_QUOTES.match(self.text, self.at)
            char = self.text[self.at]
            if plain:
                parts.append(_text(self._over(len(plain[0])), quoted=True))
            elif char == '"':
                self.at += 1
                return parts
            elif char == "\\":
                pair = self._over(2)
                kept = pair[1:] if pair[1:] in ('"', "\\", "$", "`") else pair
                parts += [_text(kept, quoted=True)] if pair != "\\\n" else []
            else:
                parts.append(self._expansion(quoted=True))
        raise ShellError(line, 'a quote (") is opened here and never closed')

    def _expansion(self, quoted: bool) -> WordPart:
        if self.text[self.at] == "`":
            return _dynamic(f"`{self._quoted('`')}`", quoted)
        simple = _VARIABLE.match(self.text, self.at)
        if simple:
            return WordPart("variable", simple[1] or simple[2], self._over(len(simple[0])), quoted)
        default = _DEFAULT.match(self.text, self.at)
        if default:
            raw = self._nested("{", "}")
            when_empty = raw[len(default[0]) : -1] if ":" in default[0] else None
            return WordPart("variable", default[1], raw, quoted, when_empty)
        for opening, closing in (("{", "}"), ("(", ")"), ("[", "]")):
            if self.text.startswith("$" + opening, self.at):
                return _dynamic(self._nested(opening, closing), quoted)
        special = _SPECIAL.match(self.text, self.at)
        return _dynamic(self._over(2), quoted) if special else _text(self._over(1), quoted)

    def _nested(self, opening: str, closing: str) -> str:
        """The text from here to the bracket that closes the next one; quotes may hide brackets."""
        line, at, depth = self.line, self.at, 0
        while at < len(self.text):
            char = self.text[at]
            if char == "\\":
                at += 1
            elif depth and (quoted := _QUOTED.match(self.text, at)):
                at = quoted.end() - 1
            elif char == opening:
                depth += 1
            elif char == closing:
                depth -= 1
                if not depth:
                    return self._over(at + 1 - self.at)
            at += 1
        raise ShellError(line, f"'{opening}' is opened here and never closed")


def _in_quotes(word: Word) -> Word:
    """The word for a shell that reads it a second time."""
    inner = [
        replace(each, text=each.text.replace("'", "'\\''")) if each.kind == "text" else each
        for each in word.parts
    ]
    return replace(word, parts=(_text("'", quoted=True), *inner, _text("'", quoted=True)))


def _opens_list(parts: list[WordPart]) -> bool:
    written = "".join(part.text for part in parts if part.kind == "text" and not part.quoted)
    return len(parts) > 0 and re.fullmatch(rf"{_NAME}\+?=", written) is not None


def _from_home(parts: list[WordPart]) -> list[WordPart]:
    """Unquoted `~/x` and `NAME=~/x` begin with the value of HOME."""
    first = parts[0] if parts else _text("")
    match = re.fullmatch(rf"((?:{_NAME}=)?)~(/.*|)", first.text, re.DOTALL)
    if match is None or first.quoted or first.kind != "text" or (not match[2] and len(parts) > 1):
        return parts
    home = WordPart("variable", "HOME", "$HOME")
    around = [_text(match[1])] if match[1] else []
    return [*around, home, *([_text(match[2])] if match[2] else []), *parts[1:]]


def _text(text: str, quoted: bool = False) -> WordPart:
    return WordPart("text", text, text, quoted)


def _dynamic(raw: str, quoted: bool = False) -> WordPart:
    return WordPart("dynamic", raw, raw, quoted)
