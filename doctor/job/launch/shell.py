"""A shell script -> the commands that may start ranks, each with the variables that it would see.

Nothing is run. A variable is known if the script itself gives it a plain value. A value that depends on the
machine, on arguments or on a branch that may not be taken is unknown, and is left out rather than guessed.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from shlex import quote

from doctor.job.launch import expand
from doctor.job.launch.allocation import is_scheduled
from doctor.job.launch.command import bare_program, read_command, runs_python, strange_start
from doctor.job.launch.endpoint_mentions import ITSELF, ON_ALL, drawn_by_each
from doctor.job.launch.indirect_options import Directives, Read, completed, read_directives
from doctor.job.launch.launcher import LaunchCommand
from doctor.job.launch.launchers import MASTERS, PORTS, RANK_NAMES
from doctor.job.launch.launchers.plain import PLAIN
from doctor.job.launch.launchers.torchrun import TORCHRUN
from doctor.job.launch.one_launch import one_launch
from doctor.job.launch.shell_blocks import Blocks, SimpleCommand, blocks
from doctor.job.launch.shell_flow import LONG, ShellCommand
from doctor.job.launch.shell_scripts import ShellWithScripts, parsed
from doctor.job.launch.shell_state import is_arithmetic
from doctor.job.launch.shell_tokens import READS, SSH, Word, tokens
from doctor.job.launch.slips import WRITTEN, Slip, SlipsOf
from doctor.job.launch.variables import is_kept, is_setting
from doctor.job.launch.wrappers import SCRIPTS, InnerCommand, is_known, is_python, program_name, unwrapped
from doctor.text.hostprogram import sections

_THERE = {"-d", "-e", "-f", "-r", "-s"}
_LEAVES = {"break": "turn", "continue": "turn", "return": "call", "exit": ""}
"""Commands that leave a block, and the block that each leaves."""
_ENDS = frozenset({"wait", "kill", "pkill", "killall", "fg"})
"""Commands after which what ran in the background has ended."""
_EXPORTS = frozenset({"export", "declare", "typeset", "local", "readonly"})
_MOST_STRANGE = 3
_IMAGES = (".sif", ".simg", ".sqsh")
_PATH = re.compile(r"(?:\$(?:HOME|PATH|WHOSE|PORT(?=/[0-9]{1,5}$)))?/[\w./@+,=:-]{1,400}")
_TOLD = sections(__file__, "needs.txt")
_OPTIONS = {name: re.compile(f"--?(?:{words})") for name, words in _TOLD["options"].items()}
_NAMES = {name: re.compile(words) for name, words in _TOLD["names"].items()}
_MADE_BY, _SETS = _TOLD["made by"], _TOLD["parts"]["sets"]
_MACHINE, _SEARCHED, _BY_SSH = (
    [(path, re.compile(words)) for path, words in (row.split(" ", 1) for row in _TOLD[of].values())]
    for of in ("machine", "searched", "ssh")
)
_BRINGS = r"(?:>|\b(?:tee|touch|mkdir|cp|mv|ln|wget|curl|clone|tar|unzip|rsync)\b)"
_FOLDERS = r"(?:\b(?:clone|mkdir|tar|unzip|create|virtualenv)|-m\s+venv)"
_MAKES = rf"(?:{_BRINGS}|\b(?:install|dd|venv|create|build)\b)"
_SHOWN = 6
"""How many words of a command are shown."""
_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
_COPIES = frozenset({"cp", "ln", "mv", "install", "rsync"})
_OF_A_JOB = frozenset({*MASTERS, *PORTS, *PLAIN.kept.split("|")})
_NEEDED = frozenset({*MASTERS, *PORTS, *RANK_NAMES, "WORLD_SIZE", "RANK_SIZE"})
_MEETING = frozenset({"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE"})
_ON_ONE_NODE = re.compile(r"\bsrun\t(?:.*\t)?(?:-w|--nodelist|-[Nn]\t?1|--(?:nodes|ntasks)[\t=]1)\b")
_DRAWN = re.compile(r"\bRANDOM\b|(?:\$\(|`)(?:uuidgen|date|mktemp|hostname)\b|\$\{?HOSTNAME\b")
"""What each host has another value of."""
_NAMED = re.compile(r"\$\{?([A-Za-z_]\w*)")
_OF_A_SHELL = expand.IN_BATCH.keys() | {expand.FOLDER, "OLDPWD", "HOSTNAME"}
_ONE_DEVICE = re.compile(r"\w*VISIBLE_DEVICES=\$\{SLURM_LOCALID-0\}")
"""The device of one task, where the batch script fills it in for all of them."""
_OF_A_RANK = frozenset({*RANK_NAMES, "LOCAL_RANK", "DEVICE_ID"})


@dataclass(frozen=True, slots=True)
class ShellScript:
    """`env` holds what the script has set at its end, exported or not. `copied` are patterns for the names of
    files that it copies, `made` the folders that it creates. `unread`: what it needs that is not here.
    `strange`: the lines and words of programs that are not known and seem to start ranks. `last`: the last
    program that is not known, and its first words. `text` includes that of other files that it reads.
    `slips` are the variables that it means to give to its ranks, and does not. `needs` are the paths outside
    of containers that it names and does not create, with what each is in needs.txt, or "". `files`: the names
    of those that it only reads -> what they contain.
    """

    lines: tuple[ShellCommand, ...]
    env: Mapping[str, str]
    copied: frozenset[str] = frozenset()
    made: frozenset[str] = frozenset()
    unread: tuple[tuple[str, str], ...] = ()
    strange: tuple[tuple[int, str], ...] = ()
    last: str = ""
    text: str = ""
    slips: tuple[Slip, ...] = ()
    needs: tuple[tuple[str, str], ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)


def _may_be_made(path: str, kind: str, text: str) -> bool:
    """Whether a line of the script may create this path or a folder above it, or go on without it."""
    by = _MADE_BY.get(kind, "(?!)").replace("@NAME@", re.escape(path.rpartition("/")[2]))
    may = re.search(by, text) is not None
    if may or kind in ("out", "init", "command", "log"):
        return may
    folders = [path[:end] for end in range(2, len(path)) if path[end] == "/"]
    shown = "|".join(map(re.escape, (path, *folders[1:]))).replace(r"\$HOME", r"(?:~|\$\{?HOME\}?)")
    below = filter(None, path.replace("$HOME", "/home").split("/")[2:])
    *_, name = parts = [*map(re.escape, below)] or ["(?!)"]
    made = rf"{_FOLDERS}\s[^;&|\n]*(?<![\w-])(?:{'|'.join(parts)})(?![\w-])"
    brought = rf"{_BRINGS}[^;&|\n]*(?<![\w-]){name}(?![\w.-])|{made}"
    if re.search(brought, re.sub(r"(?m)(?:^|\s)#.*", "", text)):
        return True  # in the folder to which the script has gone
    return bool(re.search(rf"{_MAKES}.*(?:{shown})|(?:{shown}).*(?:\|\|(?!.*\bexit\b)|2>/dev/null)", text))


def _data_in(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The paths of data that options name. Megatron's are the beginnings of the names of two files."""
    indexed, option = any(map(_NAMES["megatron"].fullmatch, words)), ""
    for word in words:
        option = word if word.startswith("-") else option
        if word != option and _NAMES["data"].fullmatch(option):
            ends = (".bin", ".idx") if indexed and not _NAMES["file"].fullmatch(word) else ("",)
            yield from ((word + end, "file" if _NAMES["file"].fullmatch(word) else "data") for end in ends)


def _of_hub(values: Mapping[str, expand.Value], words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The folders of models of well-known owners on a hub, if they must be there already."""
    folder = values.get("HF_HUB_CACHE") or f"{values.get('HF_HOME')}/hub"
    offline = {"1", "true", "yes"} & {str(values.get(name)).lower() for name in _OFFLINE}
    if offline and not any(map(_NAMES["cache"].fullmatch, (*words, *values))):
        for option, model in pairwise(words):
            if _NAMES["hub"].fullmatch(model) and any(
                _OPTIONS[of].fullmatch(option) for of in ("read", "model")
            ):
                yield f"{folder}/models--{model.replace('/', '--')}", "model"


def read_script(
    text: str, folder: str = "$PWD", read: Read = lambda _: None, given: Mapping[str, str] | None = None
) -> ShellScript:
    """`folder` is where the script starts; `read` returns the files that it sources; `given` is its
    environment, as far as it is known. Raises ShellError.
    """
    shell = _Shell(blocks(tokens(text)), folder, read, read_directives(text))
    shell.values.update(given or {})
    shell.exported |= {*(given or ())}
    shell.take_in(text)
    shell.read_all()
    shell.notice_ends()
    unread = shell.unread if shell.lines else [*shell.unread, *shell.started]
    known = {n: v for n, v in shell.values.items() if isinstance(v, str) and expand.START not in v}
    env = {name: value for name, value in known.items() if name[0] != expand.FILE}
    if not re.match(r"#!.*\b[kz]sh", text):
        shell.notice_braces()
    found = SlipsOf({"": text, **shell.texts})
    hosts = {one.on for one in shell.lines} or {on for each in shell.needs.values() for on in each}
    needs = [need for need, on in shell.needs.items() if ("" in on if len(hosts) < 2 else hosts <= on)]
    if is_scheduled(found.whole):  # a step may run on some nodes only, in an image, or on what was staged
        staged = _NAMES["staged"].search(found.whole)
        needs = [need for need in needs if need[0] in shell.first and not staged]
    return ShellScript(
        tuple(shell.lines),
        env,
        frozenset(shell.copied),
        frozenset(shell.made),
        tuple(dict.fromkeys(unread)),
        tuple(shell.strange)[:_MOST_STRANGE],
        shell.last,
        found.whole,
        (
            *(
                found.shown(each)
                for each in shell.noticed
                if each.kind != "late" or _is_late(each.name, found.whole, bool(unread))
            ),
            *(() if unread else shell.slips_of(found)),
        ),
        needs=tuple(need for need in needs if not _may_be_made(*need, found.whole)),
        files={name.rpartition("/")[2]: text for name, text in known.items() if name[0] == expand.FILE},
    )


def _is_late(name: str, whole: str, unread: bool) -> bool:
    """Whether nothing else sets it: it is named twice, or a shell on another host fills it in."""
    there = re.search(rf"\\\$\{{?{name}\b", whole) and not re.search(_SETS.replace("@NAME@", name), whole)
    return not unread and (whole.count(name) < 3 or bool(there))


class _Shell(ShellWithScripts):
    """A shell that knows the effect of each command."""

    def __init__(self, found: Blocks, folder: str, read: Read, directives: Directives) -> None:
        super().__init__(found, folder, read)
        self.values.update({**expand.IN_BATCH, **directives.variables})
        self.directives = directives
        self.strange: dict[tuple[int, str], None] = {}
        self.last = ""
        self.copied: set[str] = set()
        self.needs: dict[tuple[str, str], set[str]] = {}
        self.conda, self.environment, self.gone = "", "", ""
        self.elsewhere, self.hidden, self.on, self.by_ssh = False, False, "", ""
        self.brings, self.brought = False, ""  # by an unknown program, or by ranks of one on this host
        self.first: set[str] = set()  # the program that a batch script starts first
        self.lost: set[str] = set()
        self.draws: dict[int, str] = {}  # a line of ssh -> what its own text draws

    def read_all(self) -> None:
        """Read the whole script. Functions without a call count only if nothing else starts ranks."""
        self.go_through(0, len(self.blocks.commands))
        if not self.lines:
            for name in [name for name in self.functions if name not in self.called]:
                self.call(name, ())

    def slips_of(self, found: SlipsOf) -> Iterator[Slip]:
        """The slips in what was read, if it starts ranks; a job of one rank needs no variable."""
        job = one_launch(self.lines)[0]
        plain = (one for one in job if one.command.launcher is None or one.command.launcher.outer)
        ranks = [one for one in plain if runs_python(one.command)]
        several = any(one.names & _NEEDED or one.command.launcher for one in ranks)
        several |= self.values.get("WORLD_SIZE", "1") != "1"
        needed = _NEEDED if several and ranks else frozenset()
        needed -= frozenset() if any(map(found.whole.__contains__, (*MASTERS, "RANK="))) else {*PORTS}
        given = self.exported.union(*(one.names for one in self.lines))
        names = sorted(name for name in self.values.keys() - given if name in needed or is_setting(name))
        yield from found.not_exported((name, name in needed) for name in names if self.lines)
        yield from found.refused(one.command for one in job)
        yield from map(found.shown, self._drawn(job))
        numbered = [one.names for one in ranks if "RANK" in one.names]
        handed = {*re.findall(r"-x (\w+)(?=\s)", found.whole)}  # mpirun passes them on by their names
        lacks = sorted(_MEETING.difference(*numbered) if numbered else _MEETING & handed)
        words = [word for one in self.lines for word in one.words]
        meets = any(_NAMES["meets"].fullmatch(word.partition("=")[0]) for word in words)
        ssh = numbered and all(one.on for one in job) and not meets and "SendEnv" not in found.whole
        lost = sorted({"MASTER_ADDR", "MASTER_PORT"} & self.exported.intersection(lacks)) if ssh else ()
        yield from (found.shown(Slip("inside", name, ranks[0].line, needed=False)) for name in lost)
        yield from (slip for slip in found.not_set(words, lacks) if slip.name not in _OF_A_SHELL)

    def _drawn(self, job: Sequence[ShellCommand]) -> Iterator[Slip]:
        """The options of several hosts whose values each draws, as the text says that ssh takes there."""
        several = [one for one in job if one.on and one.command.options.get("nnodes") != "1"]
        for name in TORCHRUN.options.shared:
            if "master" in name:  # which a rendezvous does without
                several = [one for one in several if "rdzv_endpoint" not in one.command.options]
            values = [(one, _DRAWN.search(one.command.options.get(name, ""))) for one in several]
            own = [one for one, draw in values if draw and draw[0] in self.draws.get(one.line, "")]
            if len({one.on for one in own}) > 1:
                yield Slip("draws", f"--{name}", own[0].line)

    def notice_braces(self) -> None:
        """Keep the slip of a loop over numbers in braces that the shell does not expand."""
        at = self.blocks.commands
        for place, done in self.blocks.done.items():
            first, last = at[place].words[0].line, at[done].words[0].line
            braces = any(re.match(r"\{[^{},]*(?:\$.*\.\.|\.\..*\$)", word.raw) for word in at[place].words)
            if braces and any(first <= one.line <= last for one in self.lines):
                self.notice("braces", at[place].words[1].raw, first)

    def perform(self, words: list[Word]) -> None:
        self.notice_blank(words)
        prefix: dict[str, expand.Value] = {}
        at = 0
        while at < len(words):
            name, value, used = self.assignment(words, at)
            if not name:
                break
            prefix[name] = value
            at += used
        self.write(words[at:], prefix.values())
        if at < len(words):
            parts = (
                part for word in words[at:] for part in word.parts if part.kind not in ("text", "dynamic")
            )
            filled = {
                part.text for part in parts if part.default is None and isinstance(prefix.get(part.text), str)
            }
            for name in sorted(filled & {*_NEEDED, "NODE_RANK"} - self.values.keys()):
                self.notice("late", name, words[0].line)
            self._command(words[at:], prefix)
        else:
            self.set(prefix)

    def _command(self, words: list[Word], prefix: Mapping[str, expand.Value]) -> None:
        name = words[0].plain
        if name in _EXPORTS:
            if any(word.parts and word.parts[0].raw.startswith(("$(", "`")) for word in words[1:]):
                self.doubt_figures()
            self.export(words)
        elif name == "unset":
            for word in words[1:]:
                self.values.pop(word.plain or "", None)
        elif name in ("read", "mapfile", "readarray"):
            self._read(words, prefix.get("IFS"))
        elif name == "set" and len(words) > 1 and words[1].plain == "--":
            given = expand.fields(words[2:], self.values)
            self.arguments(None if any(map(expand.unknown, given)) else given)
        elif name == "set" and len(words) > 1 and words[1].plain in ("-a", "-o"):
            self.export_all = words[1].plain == "-a" or words[-1].plain == "allexport"
        elif name == "shift":
            self._shift(words[1].plain if len(words) > 1 else "1")
        elif name in _LEAVES:
            self.leaving = name if self.decided(_LEAVES[name]) else ""
            self.undecided |= not self.leaving
            self.passed += 0 if self.leaving else LONG
        elif name in _ENDS:
            self.waits += 1
        elif name == "let" or is_arithmetic(words[0]):
            self.calculate(words)
        else:
            self._run(words, prefix)

    def _read(self, words: Sequence[Word], by: expand.Value) -> None:
        """`read -r a b <<< …`, `read -ra list`, `mapfile -t list < …`."""
        given = [word.plain or "$" for word in words[1:]]
        names = [word for word in given if word[:1] != "-"]
        flags = {*"".join(word[1:] for word in given if word[:1] == "-")}
        text = expand.input_of(self.simple, self.values)
        if self.simple.read[-1:] and self.simple.read[-1][0] == "|":
            return  # what it sets in the shell of a pipe is lost
        one_line = words[0].plain == "read"
        as_written = "\\" not in (text or "") or "r" in flags if one_line else "t" in flags
        plain = by is None or (isinstance(by, str) and len(by) == 1)
        usual = plain and as_written and "IFS" not in self.values
        known = usual and text is not None and flags <= {"r", "a", "t"} and "$" not in given
        line, sep = (text or "").partition("\n")[0], by if isinstance(by, str) and by.strip() else None
        whole = (text or "").removesuffix("\n").split("\n") if not one_line else line.split(sep)
        whole = whole[:-1] if whole[-1:] == [""] else whole
        listed = len(names) == 1 and ("a" in flags or not one_line)
        values = {names[0]: tuple(whole)} if listed else expand.shared_out(names, line, sep)
        self.values.update(values if known and names else dict.fromkeys(names))

    def _shift(self, by: str | None) -> None:
        given = self.values.get("@")
        known = isinstance(given, tuple) and by is not None and by.isdecimal()
        self.arguments(given[int(by or 1) :] if known and isinstance(given, tuple) else None)

    def _run(self, words: list[Word], prefix: Mapping[str, expand.Value]) -> None:
        line = tuple(expand.fields(words, self.values))
        if not line:
            return
        line = self._with_script(line)
        limited = {"timeout", "flock", "sbatch", "salloc"} & set(map(program_name, line))
        self.passed += LONG if limited else 0
        wrapped = unwrapped(line)
        parts = (part for word in words for part in word.parts)
        texts = "".join(part.text if part.kind == "text" and part.quoted else " " for part in parts)
        spread = program_name(line[0]) in (*ON_ALL, "ssh") and not _ON_ONE_NODE.search("\t".join(line))
        open_names = {part.text for word in words for part in word.parts if part.kind == "variable"}
        for name in sorted(open_names & {*_NEEDED, "NODE_RANK"} - self.values.keys()):
            if line[0] == "ssh" and re.search(rf"(?<![\w$]){name}=", texts):
                self.notice("late", name, words[0].line)
        self.alike = ("HOSTNAME",) if program_name(line[0]) in ON_ALL and "HOSTNAME" in self.values else ()
        if line[0] == "ssh":
            self.draws[self.outside or words[0].line] = " ".join(_DRAWN.findall(texts))
        if wrapped and not wrapped.passes:
            own = r"|\b(?:ba|z)?sh\s+-(?:\w*[li]|-login)" if line[0] == "ssh" else r"|^\$\S*$"
            own += "" if any(word.endswith(_IMAGES) for word in line) else "|exec$"
            handed = any(re.search(_NAMES["sets"].pattern + own, word) for word in line)
            self.lost = set() if handed else {*_NAMED.findall(texts)} & self.values.keys() - _OF_A_SHELL
            of_slurm = re.findall(r"\$\{?(SLURM_\w+)", texts) if line[0] == "ssh" and not handed else ()
            self.lost |= {*of_slurm}
            self.lost -= {name.partition("ENV_")[2] for name in self.values}  # APPTAINERENV_NAME
            self.lost -= {name for name in self.lost if wrapped.outer and name.startswith("SLURM_")}
        if wrapped and self.given(prefix, lambda: self._starts_elsewhere(line, wrapped, words[0].line)):
            if spread and (drawn := drawn_by_each(texts.strip(), " ".join(line))):
                self.notice("draws", drawn, words[0].line)
            return
        if line[0] in ("cd", "pushd"):
            given = [word for word in line[1:] if word not in ("-P", "-L", "--")]
            self.gone = next((word for word in given if "HOME" in word), "")
            self.move(given[0] if len(given) == 1 else None)
        elif line[0] == "popd":
            self.move("-")
        elif line[0] == "mkdir":
            here, named = self.values.get(expand.FOLDER), (word for word in line[1:] if word[:1] != "-")
            made = (expand.moved(here, word) for word in named)
            self.made |= {self.placed(folder) if folder else "*" for folder in made}
        elif line[0] in _COPIES:
            self.brings = True
            for word in line[1:]:
                name = word.rpartition("/")[2]
                vague = expand.unknown(name) or re.fullmatch(r"-\w*[raR]\w*", word)
                self.copied.add("*" if vague else name)
        elif line[0] in (".", "source") and len(line) > 1:
            self._need([line[1], expand.moved(self.values.get(expand.FOLDER), line[1]) or ""])
            self.source(line[1], words[0].line)
            self._activate((expand.moved(self.values.get(expand.FOLDER), line[1]) or line[1], *line[2:]))
        elif line[0] in ("conda", "mamba", "micromamba") and line[1:2] == ("activate",):
            self._activate(line[1:])
        elif line[0] == "eval":
            if found := re.search(r"(/\S+)/bin/(?:conda|mamba)\b", line[-1]):
                self.conda = found[1]
            if any(word.startswith(("$(", "`")) for word in line[1:]):
                self.doubt_figures()
            if text := parsed(" ".join(line[1:])):
                self.inside(text, words[0].line)
        elif line[:2] == ("printf", "-v") and len(line) > 3:
            filling = iter(line[4:])
            filled = re.sub("%[ds]", lambda _: next(filling, "$"), line[3])
            self.set({line[2]: None if expand.unknown(filled) or "%" in filled else filled})
        elif line[0] in self.functions:
            self.set(prefix)
            self.call(line[0], line[1:])
        elif expand.unknown(line[0]) and self.functions:
            self.call_any()
            self._launch(words[0].line, line, prefix)
        elif not self.given(prefix, lambda: self.runs_script(line, words[0].line)):
            script = next((word for word in line if word.endswith(SCRIPTS)), "") if self.by_ssh else ""
            self._need(
                [expand.moved(self.values.get(expand.FOLDER), script) or ""] if script else (),
                "run" if script == line[0] else "",
            )
            before = self.brings
            self._launch(words[0].line, line, prefix)
            self.brings = before if script else self.brings

    def _with_script(self, line: tuple[str, ...]) -> tuple[str, ...]:
        """The command with the script in it that its shell reads from a file or a pipe."""
        text, said = expand.input_of(self.simple, self.values), " ".join(line)
        ssh = re.search(rf"(?:^|\s){SSH.pattern}$", READS.sub("", said))
        found = READS.search(said) if text and "$" not in line[0] else None
        if not text or not (found or ssh):
            return line
        before, given = (said[: found.start()], found["given"] or "") if found else (said, "")
        if ssh or "ssh" in line:
            return *before.split(), text if ssh and not given else f"bash -c {quote(text)} sh{given}"
        return *before.split(), "bash", "-c", text, *(["sh", *given.split()] if given else [])

    def _starts_elsewhere(self, line: tuple[str, ...], wrapped: InnerCommand, number: int) -> bool:
        """Whether what a wrapper starts starts ranks. The paths in a container are not those of the host."""
        images = [word for word in line if word.endswith(_IMAGES)]
        before = self.elsewhere, self.hidden, self.environment, self.gone, self.on
        stays = (wrapped.passes or line[0] == "sudo") and not images
        here, to = stays and is_known(line[0]), SSH.match(" ".join(line))
        user, _, there = to[1].rpartition("@") if to else ("", "", self.on)
        self.hidden |= not here and (to is None or self.elsewhere or user not in ("", "root"))
        self.elsewhere, self.on = self.elsewhere or not here, there
        by_ssh, self.by_ssh = self.by_ssh, " ".join(line) if to else self.by_ssh
        self.environment, self.gone = ("", "") if to else (self.environment, self.gone)
        started = self.starts_inside(wrapped, number)
        self.by_ssh = by_ssh
        self.elsewhere, self.hidden, self.environment, self.gone, outside = before
        for self.on in (there, outside):
            self._need(images if started else ())
            self._need(["/root"] if started and user == "root" and self.on == there else (), "root")
            ssh = " ".join(line) if to and started and self.on == there else ""
            self._need((path + each for path, words in _BY_SSH for each in words.findall(ssh)), "machine")
        return started

    def _notice_place(
        self, number: int, line: tuple[str, ...], command: LaunchCommand, seen: Mapping[str, expand.Value]
    ) -> None:
        """Keep the slips of a command that is not given what it uses where it runs."""
        partly = {name: value.shown for name, value in seen.items() if isinstance(value, expand.Partly)}
        split = [word for each in line for word in each.split("=", 1)]
        meets = (to for of, to in pairwise(split) if _NAMES["meets"].fullmatch(of))
        given = {**partly, **command.sets, **command.options}
        for name in _NAMED.findall(" ".join((*given.values(), *meets))):
            if name in self.lost and name not in self.values and not self.unread:
                self.notice("inside", name, number)
        numbers = command.options.get("rdzv_backend", "static") == "static"  # c10d numbers hosts itself
        once = numbers and re.search(r"\$\{(SLURM_\w+)-0\}", command.options.get("node_rank", ""))
        alone = _ON_ONE_NODE.search("\t".join(line))
        for name in _NAMED.findall(" ".join(command.options.values())) if command.inside else ():
            if not self.prefix and _NAMES["early"].fullmatch(name) and name not in self.values:
                self.notice("early", name, number)
        if once and "srun" in line and not alone and command.options.get("nnodes") != "1":
            self.notice("batch", once[1], number)
        several = self.directives.variables.get("SLURM_NTASKS_PER_NODE", "1") != "1"
        if several and "srun" in line and any(map(_ONE_DEVICE.fullmatch, map("=".join, partly.items()))):
            self.notice("batch", "SLURM_LOCALID", number)
        own = self.prefix and seen.get("MASTER_ADDR") is not self.handed.get("MASTER_ADDR")
        inner = command.launcher is not None and not command.launcher.outer  # it is told by an option
        master = command.options.get("master_addr", "") if inner else partly.get("MASTER_ADDR", "")
        filled = {value.shown for value in self.handed.values() if isinstance(value, expand.Partly)}
        if own and not alone and re.fullmatch(ITSELF, master) and master not in filled:
            self.notice("own", "MASTER_ADDR", number)

    def _activate(self, line: tuple[str, ...]) -> None:
        """Keep the root of conda, and the environment that is activated; one of a name may be elsewhere."""
        found = _NAMES["environment"].fullmatch(line[0])
        self.conda = found[1] if found else self.conda
        if line[0].endswith("activate"):
            name = line[1] if len(line) == 2 else found[1] if found else ""
            by_name = self.conda and "/" not in name and name not in ("", "base")
            self.environment = name if _PATH.fullmatch(name) and self.decided("") else ""
            if not (by_name and self.brings):
                self._need([f"{self.conda}/envs/{name}" if by_name else line[-1]], "env" if by_name else "")

    def _need(self, words: Iterable[str], kind: str = "") -> None:
        """Keep the absolute paths among these words, if they are certainly used on this host or one that ssh
        goes to, and not brought there.
        """
        brought = self.on and (self.brings or (self.on == self.brought and kind != "run"))
        for word in words if not self.hidden and self.decided("") and not brought else ():
            if _PATH.fullmatch(path := word.replace("${HOME}", "$HOME")):
                self.needs.setdefault((path, kind), set()).add(self.on)

    def tested(self, words: list[Word], then: Sequence[SimpleCommand]) -> None:
        """What `[ -d PATH ] || exit` looks for must be there, or `if [ ! -d PATH ]; then exit; fi`."""
        rows = [[word.plain for word in each.words] for each in then]
        names = [
            name for row in rows for name in [*({*row[:1]} - {"{", "then"} or row[1:2])] if row[-1] != "0"
        ]
        says = [*takewhile({"echo", "printf"}.__contains__, names)]
        alone = bool(rows) and rows[0][:1] not in (["{"], ["then"])
        asked = [str(expand.one(word.parts, self.values)) for word in words if word.plain != "!"]
        plain = not self.lines and len(asked) < 5  # before the launch, and with one condition
        if plain and names[len(says) :][:1] == ["exit"] and not (says and alone) and {*asked[1:2]} & _THERE:
            self._need(asked[2:3])

    def _by_variables(self, prefix: Mapping[str, expand.Value], line: Sequence[str]) -> tuple[str, ...]:
        """The launcher that a program starts with options from its variables; nothing if it starts none."""
        given = {name: self.values.get(name) for name in self.exported} | {**prefix}
        program = " ".join(map(program_name, line[:2]))
        if given.get("NNODES", "") == "" or not _NAMES["by variables"].fullmatch(program):
            return ()
        names = (*TORCHRUN.options.shared[:3], "node_rank", "nproc_per_node")
        said = ((name, given.get(name.upper())) for name in names)
        words = (f"--{name}={to if isinstance(to, str) else f'${name.upper()}'}" for name, to in said)
        return (*TORCHRUN.commands, *words)

    def _launch(self, number: int, line: tuple[str, ...], prefix: Mapping[str, expand.Value]) -> None:
        """Keep the command if it may start ranks."""
        unknown = bare_program(line) and not _NAMES["idle"].fullmatch(program_name(line[0]))
        known = any(map(_NAMES["brings"].fullmatch, map(program_name, line)))
        brought = self.brings
        self.brings |= read_command(line) is None and bool(unknown or known)
        line = (*self._by_variables(prefix, line), *line)
        if (self.prefix and read_command(line) is None) or (line[0] == "command" and "-v" in line[1:2]):
            return
        line, missing = completed((*self.prefix, *line), self.directives, self.text_here)
        self.unread += [("takes options from", missing.replace(expand.START, self.folder))] if missing else []
        line = tuple(word.replace(expand.START, "$PWD") for word in line)
        command = read_command(line)
        loop = any(frame.kind == "loop" for frame in self.frames)
        bare = command is None
        if command is None:
            program = bare_program(line)
            ranks = (loop or self.turns) and _OF_A_RANK & (self.exported | prefix.keys())
            if not program or not (ranks or _OF_A_JOB & prefix.keys()):
                said = strange_start(line)
                self.strange |= (
                    {(self.outside or number, said): None} if said and self.simple.end != "|" else {}
                )
                self.last = " ".join(line[:_SHOWN]) if program else self.last
                return
            command = LaunchCommand(None, {}, program, shown=(program,))
            self.brings = brought
        seen = {name: self.values[name] for name in sorted(self.exported) if name in self.values}
        given = {name: None if "$" in text else text for name, text in command.sets.items()}
        seen.update({name: value for name, value in (*prefix.items(), *given.items()) if is_kept(name)})
        self._notice_place(number, line, command, seen)
        folder = self.values.get(expand.FOLDER)
        programs = [word for word in line if word.endswith(".py")]
        choices = [f for f in self.frames if f.kind in ("if", "case", "list")]
        goes_out = command.launcher is not None and command.launcher.hosts_besides
        here = [] if goes_out else [line[0], folder if isinstance(folder, str) else self.gone]
        if bare and here and "/" in line[0]:
            self._need([expand.moved(folder, here.pop(0) or "") or ""], "run")
        if not (self.lines or brought):
            self.first = {expand.moved(folder, each) or "" for each in programs[:1]}
        python = next((word for word in line if is_python(program_name(word))), "python")
        beside = "" if "/" in line[0] or not self.environment else f"{self.environment}/bin/python"
        named = python if "/" in python else beside
        self._need([named] if here and command.launcher and not self.unread else (), "python")
        self.passed += LONG if self.backgrounds and self.lines and not self.lines[-1].background else 0
        split = [word for each in line for word in each.split("=", 1)]
        own = ["/tmp", "/dev/shm", *self.made]
        own += [to.rstrip("/") for name, to in pairwise(split) if _NAMES["written"].fullmatch(name)]
        contained = any("container-image" in word or word == "enroot" for word in line)
        ended = [each for each in self.lines if not each.background or each.wave < self.waits]
        later = self.brings or any(each.command.program for each in ended)
        targets = (
            str(expand.one(word.parts, self.values)) for _, word in self.simple.written if here and not later
        )
        logs = (expand.moved(folder, to.rpartition("/")[0]) for to in targets if "/" in to)
        self._need([to for to in logs if to and to != folder and not f"{to}/".startswith("/dev/")], "log")
        white = seen.get("HCCL_WHITELIST_DISABLE")
        files = [str(to) for name, to in seen.items() if _NAMES["variable"].fullmatch(f"{name} {white}")]
        self._need([*here, *programs[:1], *files])
        starts = next((w for w in line if is_known(w) or is_python(program_name(w))), line[0])
        conda = _NAMES["conda"].match(self.by_ssh)
        plain, starts = (self.by_ssh[conda.end() :], "conda") if conda else (self.by_ssh, starts)
        by_name = plain and "/" not in starts and not _NAMES["finds"].search(plain)
        self._need([f"$PATH/{starts}"] if by_name else (), "command")
        self._need((f"$WHOSE/{name}" for name in _NAMES["user"].findall(self.by_ssh)), "machine")
        before = takewhile(lambda word: not word.endswith(".py"), line)
        said = " ".join((*before, *(f"{name}={to}" for name, to in seen.items()), ""))
        for kind, rows in (("machine", _MACHINE), ("search", _SEARCHED)):
            self._need((path + each for path, words in rows for each in words.findall(said)), kind)
        if programs and programs[0][:1] != "/" and here and not self.brings:
            self._need([expand.moved(folder, programs[0]) or ""], "file")
        for name in ("PYTHONPATH", "PATH", "TMPDIR", "LD_LIBRARY_PATH", "LD_PRELOAD"):
            path = str(getattr(self.values.get(name), "shown", self.values.get(name)))
            kind = "imports" if name == "PYTHONPATH" else "search"
            self._need(re.findall(r"(?:^|:)(/[^:$'\"\s]+)(?=:|$)", path), kind)
        read = [(to, of) for of in _OPTIONS for name, to in pairwise(split) if _OPTIONS[of].fullmatch(name)]
        pairs = [*pairwise(("", *line))]
        read += [
            (to.removeprefix("file://"), "init")
            for of, to in pairwise(split)
            if to[:8] == "file:///" and _NAMES["meets"].fullmatch(of)
        ]
        read += [(to, "read") for of, to in pairs if of[:1] != "-" and _NAMES["configuration"].fullmatch(to)]
        read += [
            (f"{folder}/{it.replace('.', '/')}" + ".py" * ("." in it), "module")
            for of, it in pairs
            if of in ("-m", "--module")
        ]
        for path, kind in (*read, *_data_in(split), *_of_hub({**self.values, **prefix}, split)):
            if kind == "out" and (":" in path or "/" not in path or path[0] == "-" or contained):
                continue  # an address, a word or an option, or a path in a container
            if kind == "out":
                at_home = path.startswith(("$HOME/", "${HOME}/"))
                to = path if at_home else expand.moved(folder, path)
                self._need([f"{to}{WRITTEN}"] if to else (), kind)
            elif kind in ("read", "configured", "init") or not (
                later or any(f"{path}/".startswith(f"{each}/") for each in own)
            ):
                self._need([path], kind)
        self.brought = self.on if bare else self.brought
        self.lines.append(
            ShellCommand(
                self.outside or number,
                line,
                command,
                dict(self.known(seen)),
                frozenset(seen),
                self.known_files(command.program),
                loop,
                turn=", ".join(self.turns),
                folder=self.placed(folder) if isinstance(folder, str) else None,
                wave=self.waits,
                branches=(
                    *((f.number, f.branch) for f in choices),
                    *(each for f in choices for each in f.stated),
                ),
                passed=self.passed,
                bare=bare,
                one_of_hosts=self.directives.apart,
                apart=self.elsewhere,
                on=self.on,
                behind=loop
                and not self.counted.isdisjoint(_NAMED.findall(command.options.get("node_rank", ""))),
            )
        )
