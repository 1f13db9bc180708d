"""The order in which a shell runs a script: blocks, loops, functions, and lists of commands.

A loop with known bounds is run turn by turn, so that each rank has its own variables; a function is read
where it is called. A branch that may not be taken decides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import takewhile

from doctor.job.launch.arithmetic import evaluate
from doctor.job.launch.expand import MOST_TURNS, Table, Value, input_of, one, output_of, shared_out
from doctor.job.launch.launcher import LaunchCommand
from doctor.job.launch.shell_blocks import Blocks, SimpleCommand
from doctor.job.launch.shell_loops import LoopTurns, carried, counter_of, lines_of, turns_of
from doctor.job.launch.shell_state import ShellState, is_arithmetic
from doctor.job.launch.shell_tests import TESTS, holds, quoted, stated
from doctor.job.launch.shell_tokens import ShellError, Word, WordPart

_GONE_THROUGH = LoopTurns("", (), None)
_MOST_VARIABLES = 2000
_MOST_LINES = 2000
_MOST_REPEATED = 40_000
"""How many commands may be read again in loops and functions."""
_DEEPEST_CALL = 10
_LONGEST_PIPE = 8
_ANSWERS = frozenset(
    {"grep", "egrep", "ping", "command", "which", "diff", "cmp", "pgrep", "mountpoint", "hash"}
)
"""Programs that are started for their answer."""
SHORT, LONG = 10, 10**6
"""Seconds in which no job ends, and those of what may wait for jobs, end them, or leave some out."""
_AT_ONCE = re.compile(
    r"(?!.*(?:`|\$\((?!\(|\s*(?:date|seq|expr|pwd|basename|dirname|hostname|echo)\b)))"
    r"(?:[A-Za-z_]\w*(?:\[\S*\])?\+?=(?:\(.*\)list$|\S*)(?:\s|$))*"
    r"(?:$|\(\(|sleep (\d)$|(?:\[\[?|test|let|true|:|false|echo|printf|cd|mkdir|rm|touch|tee|date|disown|trap"
    r"|(?:un)?set|shift|break|continue|return|exit|export|declare|typeset|local|readonly)(?:\s|$))",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """One command. `names` are all variables that it would inherit from the script, known or not. `files`:
    paths, and names alone -> what they contain when it starts, None if the script does not decide it.

    `loop`: it stands for several, in a loop with unknown bounds; if the loop was run turn by turn, `turn`
    names the value. Commands of one `background` (0: none) run one after the other. `folder` is where it is
    started. `wave`: how often the script has waited before it, or ended what ran. Of two commands in
    different branches of one choice, only one is started. `passed`: how many seconds the script has spent
    before it at the most. `bare`: it starts neither a launcher nor Python. `behind`: it is started after
    another rank has ended. `one_of_hosts`: another line or another task of a job array starts the same on
    another host. `apart`: it may run in a container or on another host; `on`: the host to which ssh goes.
    """

    line: int
    words: tuple[str, ...]
    command: LaunchCommand
    env: Mapping[str, str]
    names: frozenset[str]
    files: Mapping[str, str | None] = field(default_factory=dict, compare=False)
    loop: bool = False
    background: int = 0
    turn: str = ""
    folder: str | None = None
    wave: int = 0
    branches: tuple[tuple[int | str, int | str], ...] = ()
    passed: int = 0
    bare: bool = False
    behind: bool = False
    one_of_hosts: bool = False
    apart: bool = False
    on: str = ""

    def excludes(self, other: ShellCommand, *, blocks: bool = False) -> bool:
        """Whether only one of the two is started, because they are in different branches: of one block, or
        also of blocks whose tests cannot both hold.
        """
        mine = dict(self.branches)
        asked = [each for each in other.branches if not (blocks and isinstance(each[0], str))]
        return any(mine.get(choice, branch) != branch for choice, branch in asked)


class ShellFlow(ShellState):
    """Runs through blocks; `perform` handles one command, and `lines` are the commands that were kept."""

    def __init__(self, found: Blocks, folder: str) -> None:
        super().__init__(folder)
        self.blocks = found
        self.lines: list[ShellCommand] = []
        self.functions: dict[str, tuple[Blocks, int]] = {}
        self.called: set[str] = set()
        self.turns: list[str] = []
        self.braces: list[tuple[int, int, int]] = []
        self.repeats = _MOST_REPEATED
        self.waits = 0
        self.backgrounds = 0
        self.passed = 0
        self.leaving = ""
        self.simple = SimpleCommand((), "")
        self.negated = False
        self.undecided = False  # whether it is not known if something leaves a block
        self.counted: set[str] = set()

    def perform(self, words: list[Word]) -> None:
        """Do what one command does."""
        raise NotImplementedError

    def write(self, words: Sequence[Word], given: Iterable[Value] = ()) -> None:
        """Keep what a command writes to files."""
        raise NotImplementedError

    def tested(self, words: list[Word], then: Sequence[SimpleCommand]) -> None:
        """See what a test asks for, and what comes if it does not hold."""
        raise NotImplementedError

    def go_through(self, start: int, stop: int, words: list[Word] | None = None) -> None:
        """Read these commands, and find those in the background: alone, in a pipeline or in brackets.

        `words` are those of the first command, if it is on the line of its block's head.
        """
        groups: list[tuple[int, int, int]] = []
        first, place = self.here, start
        while place < stop and not self.leaving:
            command = self.blocks.commands[place]
            if len(self.lines) >= _MOST_LINES or len(self.values) > _MOST_VARIABLES:
                line = command.words[0].line if command.words else 1
                raise ShellError(line, "it is too long for a launch script")
            self.simple = self._with_input(place)
            if command.end == "(":
                groups.append(self.here)
            if command.words and command.words[0].plain == "}" and self.braces:
                first = self.braces.pop()
            place = self._at(place) if words is None else self._words(words, place)
            words = None
            end = self.blocks.commands[place - 1].end
            if end == ")":
                first = groups.pop() if groups else self.here
            elif end not in ("|", "&&", "||"):
                if end == "&":
                    self.put_in_background(*first)
                first = self.here

    def _with_input(self, place: int) -> SimpleCommand:
        """The command there; what a pipe gives it stands behind `|`."""
        commands, first = self.blocks.commands, place
        while first > 0 and place - first < _LONGEST_PIPE and commands[first - 1].end == "|":
            first -= 1
        piped = (
            None if first == place or commands[place].read else output_of(commands[first:place], self.values)
        )
        word = Word((WordPart("text", piped, piped, quoted=True),), 1) if piped is not None else None
        return replace(commands[place], read=(("|", word),)) if word else commands[place]

    @property
    def here(self) -> tuple[int, int, int]:
        """How many commands were kept, and the seconds and waits before this place."""
        return len(self.lines), self.passed, self.waits

    def put_in_background(self, first: int, passed: int, waits: int) -> None:
        """What has started since then, except what is in a background already. What it waits for there, the
        script does not wait for.
        """
        self.waits = waits
        self.backgrounds += 1
        group = [n for n in range(first, len(self.lines)) if not self.lines[n].background]
        self.passed += LONG if len(group) > 1 else self.passed - passed  # what follows does not wait for it
        for number in group:
            self.lines[number] = replace(self.lines[number], background=self.backgrounds, behind=False)

    def _at(self, place: int) -> int:
        """Read the command or the whole loop there; return the next position."""
        command = self.blocks.commands[place]
        if place in self.blocks.functions:
            name, _, end = self.blocks.functions[place]
            if not self.skipping():
                self.functions[name] = self.blocks, place
            return end + 1
        return self._words(list(command.words), place)

    def _words(self, words: list[Word], place: int) -> int:
        end = self.blocks.commands[place].end
        self.negated = False
        if [word.plain for word in words[:3:2]] == ["if", "!"] and end in (";", "\n") and not self.skipping():
            self.tested(words[1:], self.blocks.commands[place + 1 : place + 8])
        words, loop = self._blocks(words, end, place)
        if loop is _GONE_THROUGH:
            return self._after_loop(place)
        if loop is not None:
            return self._loop(loop, words, place)
        turned = [word.plain for word in words[1:2]] == ["!"]
        if end == ("&&" if turned else "||") and words and words[0].plain in TESTS and not self.skipping():
            self.tested(words, self.blocks.commands[place + 1 : place + 6])
        self._simple(words, end)
        return place + 1

    def _loop(self, loop: LoopTurns, rest: list[Word], place: int) -> int:
        """Run through the loop; `rest` is the rest of its head's line. If it may end early, nothing that it
        sets is known.
        """
        before, doubts, self.undecided = dict(self.values), self.undecided, False
        for value in loop.values:
            self.values[loop.name] = value
            if self._turn(loop.name, place, self.blocks.done[place], rest):
                break
        else:
            self.values[loop.name] = loop.left
        if self.undecided:
            changed = {name for name, value in self.values.items() if before.get(name, "") != value}
            self.values |= dict.fromkeys(changed)
        self.undecided |= doubts
        return self._after_loop(place)

    def _over_lines(self, loop: LoopTurns, place: int) -> bool:
        """Run through the loop, if it is known which lines it leaves out; else leave everything as it was."""
        before = (dict(self.values), set(self.exported), len(self.lines), self.waits)
        doubts, self.undecided = self.undecided, False
        for value in loop.values:
            self.values.update(shared_out(loop.name.split(), value, loop.by))
            if self._turn(loop.name.partition(" ")[0], place, self.blocks.done[place], []):
                break
        left, self.undecided = self.undecided, doubts or self.undecided
        alone = place > 0 and self.blocks.commands[place - 1].end == "|"  # in a shell of its own
        if left or alone:
            self.values = before[0] if left else before[0] | self.files_in(self.values)
        if left:
            _, self.exported, lines, self.waits = before
            del self.lines[lines:]
        return not left

    def _turn(self, name: str, start: int, done: int, words: list[Word] | None = None) -> bool:
        """Run through a loop's body once. Whether the loop is left for good."""
        depth = self.guard()
        self.turns.append(f"{name}={self.values.get(name)}")
        self.go_through(start, done, words)
        self.turns.pop()
        del self.frames[depth - 1 :]
        left = self.leaving not in ("", "continue")
        self.leaving = "" if self.leaving in ("break", "continue") else self.leaving
        return left

    def _after_loop(self, place: int) -> int:
        """The position after a loop."""
        done = self.blocks.done[place]
        self.simple = self.blocks.commands[done]
        self.write([])
        if self.blocks.commands[done].end not in ("&&", "||", "|"):
            self.close("list")
        return done + 1

    def _while(self, test: list[Word], until: bool, place: int) -> bool:
        """Run through the loop as long as its test is known; otherwise leave everything as it was."""
        done = self.blocks.done[place]
        name = counter_of(test, self.blocks.commands[place:done])
        before = (dict(self.values), set(self.exported), len(self.lines), self.waits)
        more = holds(test, self.values)
        for _ in range(MOST_TURNS):
            most = len(self.lines) < _MOST_LINES // 2 and self.afford(done - place)
            if more is None or more is until or not most:
                break
            more = until if self._turn(name, place + 1, done) else holds(test, self.values)
        if more is until:
            return True
        self.values, self.exported, lines, self.waits = before
        del self.lines[lines:]
        return False

    def call(self, name: str, given: Sequence[str]) -> None:
        found, place = self.functions[name]
        _, begin, end = found.functions[place]
        self.called.add(name)
        before = self.arguments(given)
        first = list(found.commands[begin].words)
        brace = next((n for n, word in enumerate(first) if word.plain == "{"), -1)
        self.read_other(found, begin, end, first[brace + 1 :])
        self.values.update(before)

    def read_other(self, found: Blocks, begin: int, end: int, words: list[Word] | None = None) -> None:
        """Read commands that stand elsewhere, unless this goes too deep or too far."""
        deep = sum(frame.kind == "call" for frame in self.frames) >= _DEEPEST_CALL
        if deep or not self.afford(end - begin + 10):
            return
        depth = self.guard("call")
        around, self.blocks = self.blocks, found
        self.go_through(begin, end, words)
        self.blocks = around
        del self.frames[depth - 1 :]
        self.leaving = "" if self.leaving == "return" else self.leaving

    def afford(self, commands: int) -> bool:
        if commands > self.repeats:
            return False
        self.repeats -= commands
        return True

    def _simple(self, words: list[Word], end: str) -> None:
        if end == "(" and not words:
            self.enter("(")
        if not self.skipping():
            before, text = len(self.lines), " ".join("".join(word.raw.split()) for word in words)
            self.perform(words)
            if len(self.lines) == before and text.partition(" ")[0] not in self.functions:
                self.passed += int(quick[1] or 0) if (quick := _AT_ONCE.match(text)) else LONG
            for part in (part for word in words for part in word.parts if end not in ("&", "|")):
                if part.raw.startswith(("$((", "$[", "${")):
                    evaluate(part.raw, self.values)  # so that what `$((n++))` counts is not known
        self._list(words, end)

    def _list(self, words: list[Word], end: str) -> None:
        """A command after `&&` or `||` may run or not; after a decided test this is known."""
        top = self.frames[-1] if self.frames else None
        behind = top is not None and top.kind == "list"
        if end not in ("&&", "||"):
            while end not in ("|", "(") and self.frames and self.frames[-1].kind == "list":
                self.close("list")
            if end == ")":
                self.close("(")
        elif top is not None and top.kind == "list" and top.skip:
            if end != top.mark:
                self.close("list")
        elif self.skipping():
            return
        else:
            held = None if behind or self.negated else holds(words, self.values)
            if held is None and (end == "||" or self._asks(words)):
                self.enter("list")
                self._state(words, end == "&&")
            elif held is not None and held is not (end == "&&"):
                self.enter("list", taken=False)
                self.frames[-1].mark = end

    def _asks(self, words: Sequence[Word]) -> bool:
        """Whether what stands behind `&&` depends on the answer of this command."""
        known = {*TESTS, *_ANSWERS, *self.functions}
        return bool(words) and (words[0].plain in known or is_arithmetic(words[0]))

    def _state(self, words: Sequence[Word], whole: bool = False) -> None:
        """Keep what the test of the branch says that begins here."""
        if self.frames:
            self.frames[-1].stated = stated(words) if whole else ()

    def _blocks(self, words: list[Word], end: str, place: int) -> tuple[list[Word], LoopTurns | None]:
        """Strip the leading reserved words, and track the blocks that they open and close."""
        while words:
            word = words[0].plain
            if word in ("if", "elif"):
                held = holds(words[1:], self.values) if end in (";", "\n") else None
                if word == "if":
                    self.enter("if", None if self.skipping() else held)
                else:
                    self.other_branch("if", held)
                self._state(words[1:], end in (";", "\n"))
            elif word == "else":
                self.other_branch("if", True)
                self._state(())
            elif word in ("fi", "done", "esac"):
                self.close({"fi": "if", "done": "loop", "esac": "case"}[word])
            elif word in ("for", "select", "while", "until"):
                return self._loop_head(words, place)
            elif word == "case":
                subject = one(words[1].parts, self.values) if len(words) > 1 else None
                known = subject if isinstance(subject, str) and not self._in_brackets(place) else None
                self.enter("case", None if known is None else False)
                self.frames[-1].subject = known
                words = []
            elif word == "function":
                words = words[1:]  # its name goes as well
            elif word == "{":
                self.braces.append(self.here)
                if self.frames and self.frames[-1].kind in ("list", "{"):
                    self.enter("{", taken=True)
            elif word == "}":
                self.close("{")
            elif word == "!":
                self.negated = True
            elif word == "time":
                words = words[1:] if words[1:] and words[1].plain == "-p" else words
            elif word not in ("then", "do"):
                break
            words = words[1:]
        if end == ")" and self.frames and self.frames[-1].kind == "case":
            self.other_branch("case", self._fits(self.frames[-1].subject, place))
            return [], None  # the pattern of a branch
        return words, None

    def _in_brackets(self, place: int) -> bool:
        """Whether a pattern of the `case` there may stand in brackets, or a branch go on in the next one."""
        inside = takewhile(
            lambda each: not each.words or each.words[0].plain != "esac", self.blocks.commands[place:]
        )
        return any(each.end in ("(", ";&", ";;&") for each in inside)

    def _fits(self, subject: str | None, place: int) -> bool | None:
        """Whether a branch of a `case` is taken, whose patterns end there, if those before it are not."""
        first, commands = place, self.blocks.commands
        while first > 0 and commands[first - 1].end == "|":
            first -= 1
        words = [word for command in commands[first : place + 1] for word in command.words]
        heads = [
            n for n, word in enumerate(words) if word.plain == "in" and words[max(n - 2, 0)].plain == "case"
        ]
        words = words[heads[0] + 1 :] if heads else words
        patterns = [one(quoted(word).parts, self.values) for word in words]
        if subject is None or any(not isinstance(each, str) for each in patterns):
            return None
        return any(fnmatchcase(subject, str(each)) for each in patterns)

    def _loop_head(self, words: list[Word], place: int) -> tuple[list[Word], LoopTurns | None]:
        """The rest of the line of a loop's head, and its turns if they are known."""
        done = self.blocks.done.get(place)
        if self.skipping():
            self.enter("loop")
            return [], None
        end = self.blocks.commands[place].end
        tested = words[0].plain in ("while", "until") and done is not None and end in (";", "\n")
        if tested and self._while(words[1:], words[0].plain == "until", place):
            return [], _GONE_THROUGH
        self.passed += 0 if words[0].plain == "for" else LONG
        loop, rest = turns_of(words, self.values)
        if tested and done is not None and words[0].plain == "while":
            given = input_of(self.blocks.commands[done], self.values) or input_of(self.simple, self.values)
            lines = lines_of(words[1:], given)
            inside = self.blocks.commands[place + 1 : done]
            reads = any(
                {"read", "mapfile", "head", "cat", "tail"} & {w.plain for w in each.words} and not each.read
                for each in inside
            )
            affords = lines and not reads and self.afford(len(lines.values) * (done - place))
            if lines and affords and self._over_lines(lines, place):
                return [], _GONE_THROUGH
        body = " ".join(
            word.raw for each in self.blocks.commands[place : done or place] for word in each.words
        )
        table = re.search(r"\$\{!?(\w+)\[[@*]\]", " ".join(word.raw for word in words))
        if table and isinstance(self.values.get(table[1]), Table) and re.search(r"\+\+|\+=|\+ ?1\b", body):
            loop = None  # bash does not keep the order of a table
        if loop is not None and done is not None and self.afford(len(loop.values) * (done - place)):
            if rest or not any(mark in word.raw for word in words[3:] for mark in ("$(", "`")):
                return rest, loop
            if self._over_lines(loop, place):
                return [], _GONE_THROUGH
        self.enter("loop")
        self.counted = carried(self.blocks.commands[place : done or place])
        self.values.update(dict.fromkeys(self.counted))
        if words[0].plain in ("while", "until"):
            return rest, None
        if len(words) > 1 and words[1].plain:
            self.values[words[1].plain] = None
        return rest, None

    def call_any(self) -> None:
        """Any function may be called, since the name is unknown: whatever they set becomes unknown."""
        for name in [name for name in self.functions if name not in self.called]:
            self.enter("if")
            self.call(name, ())
            self.close("if")
