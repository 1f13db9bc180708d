"""The files that a script names: what they contain at each command, as far as the script decides it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from doctor.job.launch import expand
from doctor.job.launch.command import read_command
from doctor.job.launch.expand import FILE, FOLDER, Value, fields, moved, one, unknown
from doctor.job.launch.indirect_options import Read
from doctor.job.launch.shell_blocks import Blocks
from doctor.job.launch.shell_flow import ShellFlow
from doctor.job.launch.shell_tests import TESTS
from doctor.job.launch.shell_tokens import Word
from doctor.job.launch.slips import Slip
from doctor.job.launch.text_programs import MOST
from doctor.job.launch.wrappers import SCRIPTS, program_name, unwrapped

_MOST_FILES = 500
_MAKES = re.compile(
    r"(?:^|[;&|]|\bthen\s|\bdo\s)\s*(?:\./\S|(?:ba)?sh\s+[\w./$]|python\S*\s+\S+\.py|[\w.]+/\S+\.(?:sh|py))"
)
"""What may write any file."""
_WRITES = re.compile(r">|\bw |(?:^|[ /])(?:tee|cp|mv|rm|touch|-\w*[io]\w*|--in-place|--output)(?:[ =.]|$)")
_RUNS = re.compile(
    r"(?:`|\$\()(?!\(|\s*(?:dirname|basename|realpath|cd|pwd|hostname|date|which|seq|nproc|wc|cat|echo|scontrol)\b)"
)
"""A program that is run for what it prints, and may write."""
_GLOB = re.compile(r"[*?\[{]")
_NAME = re.compile(r"[\w.-]+")
_READ = re.compile(
    r"cat|head|tail|wc|e?grep|cut|tr|uniq|awk|sed|sort|paste|seq|echo|printf|ls|diff|cmp|source|\.|cd|pushd|popd|mkdir|tee"
    r"|chmod|chown|exec|trap|eval|exit|return|break|continue|shift|wait|kill|true|false|:|set|unset|export|touch"
    r"|declare|typeset|local|readonly|read|mapfile|readarray|let|date|hostname|module|pwd|sleep|ulimit|conda|which"
    r"|command|\w+-smi|cp|scp|rsync|mv|ln|install|rm"
)
"""Programs and words of a shell that write no other files than those of `_written`."""
_COPY = frozenset({"cp", "scp", "rsync", "mv", "ln", "install"})


def ends_of_lines(said: str, text: str, line: str = r"[\w.-]+") -> dict[Slip, None]:
    """The slip of a file with a CR at the end of such lines."""
    cut = re.search(rf"(?m)^\s*{line}\r$", text)
    at = text[: cut.end()].count("\n") + 1 if cut else 0
    return {Slip("lines", said.rpartition("/")[2], at, cut[0].strip(), file=said): None} if cut else {}


class ShellWithFiles(ShellFlow):
    """A shell that knows what files contain: those beside the script, and those that it writes itself.

    `doubted` are the names of files that programs may have written.
    """

    def __init__(self, found: Blocks, folder: str, read: Read) -> None:
        super().__init__(found, folder)
        self.read = read
        self.beside: dict[str, tuple[str, str]] = {}
        self.doubted: set[str] = set()
        self.made: set[str] = set()  # folders
        self.asked: set[str] = set()  # the words of tests
        self.others: set[str] = set()  # programs that may have written any file

    def take_in(self, text: str) -> None:
        """Keep what files below the script's folder contain that it names."""
        words = [word for word in re.findall(r"[\w./-]+", text) if len(word) < 200 and word[-3:] != ".py"]
        for name in [*dict.fromkeys((*words, *(word.rpartition("/")[2] for word in words)))][:_MOST_FILES]:
            path = moved(self.values.get(FOLDER), name)
            below = path and path.startswith(f"{expand.START}/") and ".." not in path
            there = self.read(self.placed(path)) if path and below else None
            until = max((at.end() for at in re.finditer(re.escape(name), text)), default=0) if there else 0
            if there and not any(map(_MAKES.search, text[:until].splitlines())):
                plain = there.replace("\r\n", "\n")
                self.values[f"{FILE}{path}"] = plain
                reads = re.search(rf"(?:<|\$\(|`)[^|;\n]{{0,300}}{re.escape(name)}", text)
                self.beside[f"{FILE}{path}"] = (name, there) if reads else ("", there)

    def notice_ends(self) -> None:
        """Keep the slips of files that are read as lists, and that nothing has written."""
        for key, (name, there) in self.beside.items():
            if name and self.values.get(key) == there.replace("\r\n", "\n"):
                self.noticed |= ends_of_lines(name, there)

    def contents(self, path: str) -> str | None:
        """What a file contains there, from the script or from this machine."""
        if f"{FILE}{path}" not in self.values:
            return None if path.rpartition("/")[2] in self.doubted else self.read(self.placed(path))
        kept, (_, there) = self.values[f"{FILE}{path}"], self.beside.get(f"{FILE}{path}", ("", ""))
        written = kept if isinstance(kept, str) and kept else None
        return there if written == there.replace("\r\n", "\n") else written

    def known_files(self, program: str) -> Mapping[str, str | None]:
        """Path, or a name alone -> what it contains, None if that is not known; `*` if any may have been
        written before this program starts.
        """
        kept = ((self.placed(name[1:]), text) for name, text in self.values.items() if name[0] == FILE)
        known = {path: text if isinstance(text, str) else None for path, text in kept}
        any_file = ["*"] if self.others - {program} else []
        return {**dict.fromkeys((*any_file, *self.doubted)), **known}

    def write(self, words: Sequence[Word], given: Iterable[Value] = ()) -> None:
        """Keep what a command writes to files; `given` are the values of the variables before it."""
        line = fields(words, self.values)
        name = program_name(line[0]) if line else ""
        again = any(frame.kind == "loop" for frame in self.frames)
        for how, to, text in self._written(words, line):
            path = None if unknown(to) else moved(self.values.get(FOLDER), to)
            if path is None:
                self.doubt_files([to.rpartition("/")[2]])
                continue
            key = f"{FILE}{path}"
            new = "" if path.rpartition("/")[2] not in self.doubted else None
            before = self.values.get(key, new) if how == ">>" else ""
            known = isinstance(before, str) and text is not None and not (again and how == ">>")
            whole = f"{before}{text}" if known else ""
            if len(self.values) > _MOST_FILES:
                self.doubt_files([to])
            else:
                self.values[key] = whole if known and len(whole) < MOST else None
        said = " ".join((*line, *(value.shown for value in given if isinstance(value, expand.Partly))))
        self.others |= {"*"} if _RUNS.search(said) or (name == "sed" and "*" in said) else set()
        read = read_command(tuple(line)) if line else None
        may = name and not _READ.fullmatch(name) and name not in self.functions
        documents = [word.raw for how, word in self.simple.read if how == "<<<"]
        if wrapped := unwrapped(tuple(line)) if line else None:
            written = not wrapped.passes and name != "ssh" and _WRITES.search(" ".join(line))
            self.doubt_files(line if written else ())
        elif name in TESTS:
            self.asked |= {*line}
        elif name in ("awk", "sed", "sort") and _WRITES.search(" ".join(("", *line[1:]))):
            self.doubt_files(line)
        elif may and not (read and read.launcher):
            self.doubt_files((*line, *documents, *self.asked, *map(str, given)))
            self.others.add("*")
        elif read and read.launcher:
            self.others.add(read.program)

    def _written(self, words: Sequence[Word], line: Sequence[str]) -> Iterator[tuple[str, str, str | None]]:
        """How each file is written, its path, and the text if it is known."""
        name = program_name(line[0]) if line else ""
        given = [word for word in line[1:] if word[:1] != "-"]
        options = "".join(word for word in line[1:] if word[:1] == "-")
        for how, word in self.simple.written:
            to = one(word.parts, self.values)
            others = [each for each in self.simple.written if each[0] not in (">", ">>")]
            alone = replace(self.simple, words=tuple(words), written=())
            text = None if words else None if self.simple.words else ""
            if words and len(others) + 1 == len(self.simple.written) and to not in line:
                text = expand.output_of([alone], self.values)
            if (said := to if isinstance(to, str) else to.shown) not in ("/dev/null", "1", "2"):
                yield how[-2:] if how[-2:] == ">>" else ">", said, text if how in (">", ">>") else None
        if name == "tee":
            text = expand.input_of(self.simple, self.values)
            yield from ((">>" if "a" in options else ">", to, text) for to in given)
        elif name == "rm":
            kept = [key for key in self.values if key[0] == FILE]
            folders = [f"{moved(self.values.get(FOLDER), to)}/" for to in given]
            below = [key for key in kept if any(key[1:].startswith(folder) for folder in folders)]
            self.values |= dict.fromkeys(below, "")
            self.values |= dict.fromkeys(kept if _GLOB.search(" ".join(given)) else ())
            yield from ((">", to, "") for to in given)
        elif name == "touch":
            yield from ((">>", to, "") for to in given)
        elif name in _COPY and (name == "ln" or options or self._is_folder(given)):
            self.doubt_files(line)
        elif name in _COPY and given and ":" not in given[-1]:
            source = moved(self.values.get(FOLDER), given[0]) if len(given) == 2 else None
            yield ">", given[-1], self.contents(source) if source else None
            yield from ((">", to, "") for to in given[:-1] if name == "mv")

    def _is_folder(self, given: Sequence[str]) -> bool:
        """Whether what is copied last goes into a folder."""
        last = given[-1] if given else "/"
        place = self.placed(str(moved(self.values.get(FOLDER), last)))
        return bool(re.search(r"(?:^|/)\.{0,2}$|[*?{]", last)) or place in self.made

    def doubt_files(self, said: Iterable[str]) -> None:
        """What these words name may have been written."""
        names = {name for word in said for name in _NAME.findall(word) if not name.endswith(SCRIPTS)}
        for key in [key for key in self.values if key[0] == FILE and key.rpartition("/")[2] in names]:
            self.values[key] = None
        self.doubted |= names
