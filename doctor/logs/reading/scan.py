"""Reads one file once from beginning to end, in memory that does not grow with it.

Most lines are never touched: only lines with a marked sentence (sentences.py) are examined.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from itertools import takewhile

from doctor.agents.onhost.kernel_words import own_words
from doctor.logs.forms import complaint, learn
from doctor.logs.forms.block import FIRST, ends_traceback, in_block, in_table, lone, of_ray_task, spawned
from doctor.logs.forms.line import said_of
from doctor.logs.forms.line_facts import LineFacts
from doctor.logs.forms.names import named
from doctor.logs.forms.prefix import PrefixLayout, layout_of
from doctor.logs.forms.times import Clock
from doctor.logs.forms.torch import is_exception
from doctor.logs.forms.unknown_prefix import with_learned
from doctor.logs.loss.collect import LossCollector
from doctor.logs.model import HINT, Form, LogLine, Party, Role
from doctor.logs.reading import message, stacks
from doctor.logs.reading.actors import DIED, MISSED, with_actor, with_tasks
from doctor.logs.reading.attempts import MOST as MOST_PARTS
from doctor.logs.reading.attempts import attempts_of, cut, head_of, note
from doctor.logs.reading.commands import ENDED, shortened
from doctor.logs.reading.cut_off import BEGINS, FRAME, continued_from, cut_tracebacks
from doctor.logs.reading.file_scan import CUT_OFF, Decided, Scan
from doctor.logs.reading.fold import subject, who_of
from doctor.logs.reading.lines import Lines
from doctor.logs.reading.losses import Losses
from doctor.logs.reading.neighbours import values_around
from doctor.logs.reading.pods import FAMILY as PODS
from doctor.logs.reading.pods import FAR, pod_of
from doctor.logs.reading.progress import PartProgress
from doctor.logs.reading.quoted import unquoted
from doctor.logs.reading.repeats import FEW, Meaning, Repeat, Repeats, alike
from doctor.logs.reading.sentences import ENDS, LAUNCHER, ODD, SYMPTOM, TELLS, Sentences
from doctor.logs.reading.starts import begun_again, starts
from doctor.logs.reading.window import KEPT, Neighbours, Window, states, windows
from doctor.logs.reading.writers import Writers
from doctor.logs.sources import DamagedInput, InputFile, pieces
from doctor.logs.steps import says_finished, says_group_finished, says_step
from doctor.logs.symptoms.match import Matcher
from doctor.text.redact import redact

HEAD = 200
"""This number of first and of last lines are all examined."""
AT_END = 5
"""The last lines that are searched for words of complaints that healthy logs have, too."""
MOST_ODD = 5
MOST_RANKS = 65_536
MOST_REST = 3
"""The most lines of the message of an odd line that are kept besides it."""
_HEADING = re.compile(r"(?::|root error\(s\) found\.|\b\d{1,4} validation errors? for \S{1,120})\s*$")
"""How a line ends whose message stands in the next one."""
_SAYS = re.compile(r"[A-Z](?!.*[$#%]$)|[-*] |\(\d|\d{1,2}[.)] ")
"""How the next lines of a message begin; a shell's prompt or a path is none."""
MOST_AFTER = 40
"""The most lines after the exception that ended a program."""
BAR = re.compile(r"\d{1,12}/\d{1,12} \[")
_BEGINS = "Traceback (most recent"
_GOES_ON = 10
"""The least lines below an exception that show that its program went on."""
_UNCAUGHT = re.compile(r"\[rank\d{1,6}\]: ?$")
"""torch's prefix of an uncaught exception."""
MOST_SEARCHED = 200
"""The most lines of one file whose neighbours are searched for values."""
_LOOKED = 20_000
"""The most lines of one file that are examined for complaints, and the most that are examined for ranks."""

_OF_AN_END = re.compile(
    r"[ \t]|0 |\d{1,3} {2,4}\S|---|C\+\+ Trace|No stack trace in |Error Message Summary|FatalError: `"
)
"""How lines begin that go on after an exception: TensorFlow counts to 0, Paddle says that it was ended."""
_FROM_NEIGHBOURS = (*stacks.WORDS, *ENDED, *DIED, *MISSED, *FIRST)
"""With these words, a line means what its neighbours say."""
_TELLING = (b"-" * 70, b"-- Process ", b"ray::")
"""With these words, lines tell who wrote the lines below."""
_BY_OTHERS = frozenset({Form.SLURM, Form.KERNEL})
"""Forms whose lines name a host, but are written on another one."""


def scan(
    opened: InputFile, matcher: Matcher, table: Sentences, loss: type[LossCollector] | None, below: str
) -> list[Scan]:
    """A scan for each attempt of the job in the file: most files have one. `below` is the part of its name
    that may have the name of a host.
    """
    about = replace(named(opened.name), host=named(below).host)
    begin = Scan(opened.name, opened.size, opened.written, about)
    scanner = _Scanner(begin, matcher, table, loss(opened.name) if loss else None)
    problem = ""
    try:
        for window in windows(pieces(opened.stream)):
            scanner.take(window)
    except DamagedInput as error:
        problem = str(error)
    scanner.end()
    attempts = attempts_of(scanner.parts)
    for each in attempts:
        each.size = opened.stream.taken if each.size < 0 else each.size
        each.problem = problem
    return attempts


class _Scanner:
    def __init__(self, found: Scan, matcher: Matcher, table: Sentences, loss: LossCollector | None) -> None:
        self._found = found
        self.parts = [found]
        self._matcher = matcher
        self._table = table
        self._loss = loss
        self._losses: Losses | None = None
        self._progress = PartProgress(self._parse)
        self._clock = Clock(found.written)
        self._layout = PrefixLayout()
        self._begun, self._head = False, b""
        self._starts = dict[bytes, int]()
        self._looked = self._learned = 0
        self._window: Window | None = None
        self._may_end = False
        self._most_odd, self._at_end = MOST_ODD, False
        self._headless = 0, ""
        """The last indented line that continues no message, and its prefix: the next line does not either."""
        self._repeats = Repeats(self._meaning)
        self._way: tuple[str, int, PrefixLayout, int, bool] = "", 0, self._layout, 0, False
        """The part of the file, and how its lines are read."""

    def take(self, window: Window) -> None:
        lines = Lines(window, self._table)
        ended, self._may_end = self._may_end, bool(lines.all_marks & ENDS)
        if not self._begun:
            self._head, self._starts = head_of(window.text), starts(window.text)
        room = len(self.parts) < MOST_PARTS
        may = self._head and room
        again = may and window.text.count(self._head) > (not self._begun)
        begins = [*begun_again(window, self._starts, self._found.named.of_one)] if room else []
        if not room or not (ended or self._may_end or again or begins):
            self._part(lines)
            return
        for part, mark in cut(window, self._head if again else b"", begins):
            self._part(lines if part == window else Lines(part, self._table))
            if mark is not None and len(self.parts) < MOST_PARTS:
                self._found.mark = mark
                self._end_part()

    def _part(self, lines: Lines) -> None:
        if self._window is None and self.parts[-1].mark is not None:
            old = self._found
            self._found = Scan(old.name, old.size, old.written, old.named)
            self.parts.append(self._found)
        self._take(lines)
        if lines.all_marks & LAUNCHER:
            note(self._found, lines.marked(LAUNCHER))

    def _take(self, lines: Lines) -> None:
        begins, self._window = self._window is None, lines.window
        if not self._begun:
            self._begun = True
            self._clock = self._clock.near(lines.window.data)
            self._layout = layout_of(line.decode("utf-8", "replace") for line in lines.beginning())
            if self._loss:
                self._losses = Losses(self._loss, self._layout, self._clock)
        data, clock = lines.window, self._clock
        self._layout = with_learned(self._layout, data.data, data.start, data.end, clock)
        if begins:
            self._edge(lines.window, lines.window.first(HEAD), head=True)
        looked_at, repeats = self._to_look_at(lines, self._losses.take(lines) if self._losses else set())
        for place, what in looked_at:
            self._line(lines, place, what)
        for repeat in repeats:
            self._again(lines, repeat)
        self._found.lines = lines.number(len(lines.raw)) - 1
        writers = Writers(lines, self._layout)
        if len(self._found.ranks) < MOST_RANKS:
            self._found.ranks |= writers.ranks
            self._found.tasks |= writers.tasks
        self._progress.take(lines, writers)

    def _to_look_at(self, lines: Lines, losses: set[int]) -> tuple[list[tuple[int, int]], list[Repeat]]:
        """Indices of lines and what to look for in them, and the lines that only repeat them. A line that
        prints a loss is not a complaint.
        """
        wanted = SYMPTOM
        if len(self._found.odd) < MOST_ODD and self._looked < _LOOKED:
            wanted |= ODD
        if self._learned < _LOOKED:
            wanted |= TELLS
        way = self._found.name, len(self.parts), self._layout, wanted, self._found.searched < MOST_SEARCHED
        if way != self._way:
            self._way = way
            self._repeats.forget()
        found, repeats = list[tuple[int, int]](), list[Repeat]()
        together = defaultdict[tuple[bytes, int], tuple[list[bytes], list[int]]](lambda: ([], []))
        for words, places in lines.of(wanted).items():
            what = lines.marks[words] & wanted
            some = [place for place in places if place not in losses]
            if what & SYMPTOM:
                found += [(place, SYMPTOM) for place in losses.intersection(places)]
            elif self._table.may(words, b"\n".join(lines.at(some))):
                some = [place for place in some if self._table.may(words, lines.raw[place])]
            else:
                continue
            sentences, group = together[alike(words) if len(some) < FEW else words, what]
            sentences.append(words)
            group += some
        told = any(map(lines.window.data.__contains__, _TELLING))
        for (_, what), (sentences, some) in together.items():
            if len(some) >= FEW and not told:
                codes = self._matcher.numbered(sentences[0])
                some.sort()
                some, more = self._repeats.sort(lines.at(some), some, codes, lines.number(0))
                repeats += more
            found += [(place, what) for place in some]
        found.sort()
        return found, repeats

    def _meaning(self, raw: bytes) -> Meaning | None:
        """What a line says by itself; None if its neighbours may change that."""
        texts = states(raw)
        text = texts[0]
        facts = self._parse(text)
        own = text[facts.start :]
        continues = not facts.headed and (own[:1] in ("", " ", "\t") or facts.form is Form.CANN)
        alone = facts.form is Form.PLAIN and own[:1] == " " and is_exception(own.lstrip(" "), 0)
        if len(texts) > 1 or continues or any(map(text.__contains__, _FROM_NEIGHBOURS)):
            return None
        decided = self._decide(text, facts)
        around = self._found.searched < MOST_SEARCHED
        if (alone and (not decided or own[1] == " ")) or any(
            symptom.family == PODS
            or symptom.role is Role.ADVICE
            or (around and (symptom.above or symptom.below))
            for symptom, _ in decided
        ):
            return None
        odd = ""
        if not decided and self._way[3] & ODD and complaint.complains(text, facts):
            if facts.form is Form.PYTHON:
                return None
            odd = complaint.wording(text, facts)
        learned = learn.FileFacts()
        learned.line(text, facts.pid)
        symptoms = tuple((symptom.id, subject(symptom, values, facts.form)) for symptom, values in decided)
        return Meaning(facts.form, who_of(facts), symptoms, odd, str(learned))

    def _again(self, lines: Lines, repeat: Repeat) -> None:
        """Count the lines that repeat an examined one."""
        found, meaning, number = self._found, repeat.meaning, lines.number(repeat.last)
        text = states(lines.raw[repeat.last])[0]
        facts = self._parse(text)
        if meaning.symptoms:
            self._note(facts, repeat.times)
        for symptom, about in meaning.symptoms:
            found.fold.repeats(symptom, meaning.who, about, number, text, facts, repeat.times)
        if known := found.odd.get(meaning.odd):
            found.odd[meaning.odd] = known[0], replace(known[1], times=known[1].times + repeat.times)

    def _parse(self, text: str) -> LineFacts:
        return said_of(text, self._layout, self._clock)

    def end(self) -> None:
        self._end_part()
        if self._loss:
            self._found.curves = self._loss.curves()

    def _end_part(self) -> None:
        window, self._window = self._window, None
        if window is None:
            return
        self._edge(window, window.last(HEAD), head=False)
        self._found.progress = self._progress.lines(self._made)
        self._progress.begin_part()
        self._last_words(window)
        self._found.fold.finish(self._made)
        if not self._found.starts_ranks:
            self._found.ranks |= self._found.tasks
        self._looked = self._learned = 0

    def _last_words(self, window: Window) -> None:
        """Collect complaints near the end, even if there were many or equal ones before."""
        found = self._found
        bars = found.progress.values()  # a bar prints its last states again when the program ends
        on = max((each.since if BAR.search(each.text) else each.number for each in bars), default=0)
        old = {wording: each for wording, each in found.odd.items() if each[1].number < on}
        found.odd = {wording: each for wording, each in found.odd.items() if wording not in old}
        self._most_odd, self._at_end = len(found.odd) + MOST_ODD, True
        last = window.number + window.text.count(b"\n") - window.text.endswith(b"\n")
        places = dict(zip(range(last, 0, -1), window.last(HEAD), strict=False))
        for number, (start, end) in places.items():
            if number <= on:
                break
            for text in states(window.data[start:end]):
                facts = copy(self._parse(text))
                ends_traceback(text, facts, window.around(start, end, text[: facts.prefix]))
                if not self._decide(text, facts):
                    self._odd(window, start, end, number, text, facts)
        self._most_odd, self._at_end = MOST_ODD, False
        for wording, each in old.items():
            found.odd.setdefault(wording, each)
        self._cut_off(window, places)

    def _cut_off(self, window: Window, places: dict[int, tuple[int, int]]) -> None:
        at = reversed(places.items())
        lines = [(line, text) for line, (start, end) in at for text in states(window.data[start:end])[-1:]]
        cuts = cut_tracebacks(lines)
        for each in cuts:
            facts = copy(self._parse(each.text))
            facts.form = Form.PYTHON
            spawned(facts, window.around(*places[each.number]).above()[:3])
            self._found.odd[f"{CUT_OFF} {each.prefix}"] = (
                who_of(facts),
                self._made(each.number, each.text, facts),
            )
        if not cuts and lines:
            self._cut_at_both_ends(lines)

    def _cut_at_both_ends(self, lines: list[tuple[int, str]]) -> None:
        """A log that was cut at both ends of a message ends in frames or is the rest of a record."""
        parsed = [self._parse(text) for _, text in lines]
        starts = zip((text for _, text in lines), (facts.start for facts in parsed), strict=True)
        owns = [text[at:] if text[:at].strip() else text for text, at in starts]  # or all lines are indented
        begin = continued_from(owns)
        if begin is None:
            return
        frame = next(filter(None, map(FRAME.search, reversed(owns))), None)
        (number, text), facts = lines[begin], parsed[begin]
        if frame or (not begin and facts.record and facts.level in ("ERROR", "FATAL")):
            text = f"{text} … ({frame['file']}:{frame['line']})" if frame else text
            self._found.odd[CUT_OFF] = (who_of(facts), self._made(number, text, facts))

    def _line(self, lines: Lines, place: int, what: int) -> None:
        raw, number = lines.raw[place], lines.number(place)
        matched = bool(what & SYMPTOM) and self._matcher.holds(raw)
        tells = bool(what & TELLS) and any(map(raw.__contains__, learn.TRIGGERS))
        odd = bool(what & ODD) and complaint.may_complain(raw)
        for text in states(raw) if matched or tells or odd else ():
            facts = copy(self._parse(text))
            if text.startswith("  ", facts.start):
                in_table(text, facts, lines.window.around(*lines.span(place)), self._parse, self._clock)
            if tells and self._learned < _LOOKED:
                self._learned += 1
                self._found.learned.line(text, facts.pid)
            known = matched and self._symptoms(lines, place, text, facts)
            if odd and not known:
                self._odd(lines.window, *lines.span(place), number, text, facts)

    def _symptoms(self, lines: Lines, place: int, text: str, facts: LineFacts) -> bool:
        number = lines.number(place)
        around = lines.window.around(*lines.span(place), text[: facts.prefix])
        indented = facts.form is Form.PLAIN and text[facts.start : facts.start + 1] in (" ", "\t")
        prefix = text[: facts.prefix]
        if not (indented and self._headless == (number - 1, prefix)):
            in_block(text, facts, around, self._parse, self._clock)
        if indented and facts.form is Form.PLAIN:
            self._headless = number, prefix
        if stacks.INTERRUPTED in text:
            text = stacks.stopped_at(text, text[: facts.start], around.above())
        elif stacks.UNCAUGHT in text:
            text = stacks.with_what(text, around.below())
        elif stacks.NO_SPACE in text:
            text = stacks.in_semlock(text, around.above())
        elif stacks.PIPELINE in text:
            text = stacks.of_pipeline(text, around.above(), around.below())
        if any(map(text.__contains__, ENDED)):
            text = shortened(text)
        if any(map(text.__contains__, DIED)):
            text = with_actor(text, around.above(), around.below())
        if any(map(text.__contains__, MISSED)):
            text = with_tasks(text, around.below())
        decided = self._decide(text, facts)
        raised = (facts.form is Form.PYTHON or indented) and stacks.NO_SPACE not in text
        if decided and raised and self._ignored(text, facts, around.above(), around.below()):
            return True
        if decided:
            self._seen(decided, number, text, facts, around)
        advice = facts.form is Form.PYTHON and all(symptom.role is Role.ADVICE for symptom, _ in decided)
        return bool(decided) and not advice  # an exception may quote advice

    def _decide(self, text: str, facts: LineFacts) -> Decided:
        """The symptoms of a line. What a user chose is no kernel's word, nor a quotation its program's."""
        if facts.form is Form.KERNEL:
            text = text[: facts.start] + own_words(text[facts.start :])
        elif facts.form is Form.PLAIN and (facts.level in ("INFO", "DEBUG", "") or text[:1] == "{"):
            text = text[: facts.start] + unquoted(
                text[facts.start :], record=bool(facts.level) or text[:1] == "{"
            )
        return self._matcher.decide(text, facts.form)

    def _seen(self, decided: Decided, number: int, text: str, facts: LineFacts, around: Neighbours) -> None:
        self._note(facts)
        who = who_of(facts)
        fold = self._found.fold
        around_it = {}
        for symptom, values in decided:
            if (symptom.above or symptom.below) and self._found.searched < MOST_SEARCHED:
                self._found.searched += 1
                around_it[symptom.id] = {**values_around(symptom, facts, around, self._parse), **values}
            if symptom.family == PODS and (pod := pod_of(text, around.above(FAR))):
                around_it[symptom.id] = {**around_it.get(symptom.id, {}), **pod, **values}
        about = {
            symptom.id: subject(symptom, around_it.get(symptom.id, values), facts.form)
            for symptom, values in decided
        }
        fresh = [
            symptom
            for symptom, _ in decided
            if not fold.repeats(symptom.id, who, about[symptom.id], number, text, facts)
        ]
        if fresh:
            line = _with_frames(self._made(number, text, facts), text, facts, around.above)
            safe = redact(text)
            if safe != text:
                decided = self._decide(safe, facts)
            taken = {symptom.id: values for symptom, values in decided}
            ours = any(symptom.family in message.FAMILIES for symptom in fresh)
            rest = message.rest_of(text, facts, around, self._parse) if ours else []
            for symptom in fresh:
                values = message.completed(symptom, taken.get(symptom.id, {}), line.text, rest)
                fold.add(symptom, {**around_it.get(symptom.id, {}), **values}, who, about[symptom.id], line)

    def _odd(self, window: Window, start: int, end: int, number: int, text: str, facts: LineFacts) -> None:
        self._looked += 1
        if text.startswith(" ", facts.start):
            lone(text, facts, window.around(start, end), self._parse)
        if not complaint.complains(text, facts):
            return
        wording = complaint.wording(text, facts)
        known = self._found.odd.get(wording)
        if known and self._at_end and facts.rank not in (None, known[0].rank):
            wording = f"{wording} {facts.rank}"
            known = self._found.odd.get(wording)
        if known:
            who, line = known
            if number > line.number and not self._at_end:
                self._found.odd[wording] = who, replace(line, times=line.times + 1)
            elif self._at_end and number == line.number and self._is_final(text, facts, window, start, end):
                self._found.odd[wording] = who, replace(line, final=True)
            return
        if len(self._found.odd) >= self._most_odd or not wording:
            return
        frame = None
        around = window.around(start, end, text[: facts.prefix])
        rest = self._rest(text[: facts.prefix], around.below(), said=not _HEADING.search(text))
        while rest and _HEADING.search(text):
            text, rest = f"{text.rstrip()} {rest[0]}"[:KEPT], rest[1:]
        if facts.form is Form.PYTHON:
            spawned(facts, around.above())
            if of_ray_task(text, facts, around.above()):
                text = f"{text} (process {facts.pid} on {facts.host})"
            above = [line for line in around.above() if line.startswith(text[: facts.prefix])]
            frame = stacks.raised_at(above)
            if (
                not facts.record
                and not _UNCAUGHT.search(text[: facts.start])
                and self._caught(text, facts, above, around.below())
            ):
                return
        if frame:
            place = f"{frame['file']}:{frame['line']}" + (f", in {frame['where']}" if frame["where"] else "")
            place += ", of os.environ" if stacks.of_environ(above) else ""
            place += ", in a thread" if _headed(above, "Exception in thread") else ""
            if first := stacks.handled(above, text[: facts.prefix]):
                place += f', while it handled "{redact(first)}"'
            text = f"{redact(text)[: KEPT - len(place) - 3]} ({place})"
            if decided := self._decide(text, facts):  # the place shows whose message it is
                self._seen(decided, number, text, facts, around)
                return
        made = replace(
            self._made(number, text, facts),
            rest=tuple(redact(each)[:KEPT] for each in takewhile(_SAYS.match, rest)),
        )
        if frame:
            made = _with_frames(made, text, facts, around.above)
        if self._at_end and frame:
            made = replace(made, final=self._is_final(text, facts, window, start, end))
        self._found.odd[wording] = (who_of(facts), made)

    def _rest(self, prefix: str, below: Sequence[str], *, said: bool = True) -> list[str]:
        """The lines below a complaint that continue its message; the first states what is not `said` yet."""
        found = list[str]()
        for line in below[:MOST_REST]:
            own = line.removeprefix(prefix).strip()
            facts = self._parse(line)
            if not (own and line.startswith(prefix)) or facts.headed or facts.form is not Form.PLAIN:
                break
            if BEGINS in own or FRAME.match(line):
                break
            if says_step(own) or says_finished(own) or (said and complaint.complains(line, facts)):
                break
            found.append(own)
            said = True
        return found

    def _is_final(self, text: str, facts: LineFacts, window: Window, start: int, end: int) -> bool:
        """Whether after an exception only the rest of its message and what others say of an end follow."""
        if facts.form is not Form.PYTHON or facts.record:
            return False
        prefix = text[: facts.prefix]
        below = window.around(start, end, prefix).below()
        below = below[len(self._rest(prefix, below)) :]
        return len(below) < MOST_AFTER and all(self._goes_on(line, prefix) for line in below)

    def _goes_on(self, line: str, prefix: str) -> bool:
        own = line.removeprefix(prefix)
        if not own.strip() or _OF_AN_END.match(own) or BAR.search(own):
            return True
        return self._parse(line).form not in (Form.PLAIN, Form.KERNEL)

    def _caught(self, text: str, facts: LineFacts, above: list[str], below: list[str]) -> bool:
        """Whether Python ignored the exception, or the next line is a log record, errors aside: then
        the script goes on. Steps below prove less: the judge weighs them.
        """
        if self._ignored(text, facts, above, below):
            return True
        prefix = text[: facts.start]
        for line in [each for each in below if self._parse(each).level not in ("ERROR", "FATAL")]:
            if line.strip() and line.startswith(prefix):
                after = self._parse(line)
                if after.pid and facts.pid and after.pid != facts.pid:
                    continue
                ends = "sigkill_handler]" in line  # DeepSpeed's launcher ends the others
                return after.form is Form.PLAIN and after.headed and not (ends or says_step(line))
        return False

    def _ignored(self, text: str, facts: LineFacts, above: Sequence[str], below: Sequence[str]) -> bool:
        """Whether Python says over the traceback that it ignores it, or a logger warns there and goes on."""
        prefix = text[: facts.prefix]
        own = [line for line in above if line.startswith(prefix)]
        if _headed(own, "Exception ignored in", "Error in atexit._run_exitfuncs"):
            return True
        block = [*takewhile(lambda line: line[len(prefix) :][:1].isspace(), own)]
        begin = next((place for place, line in enumerate(block, 1) if _BEGINS in line), len(own))
        goes_on = sum(map(bool, below)) >= _GOES_ON
        return goes_on and begin < len(own) and self._parse(own[begin]).level == "WARN"

    def _made(self, number: int, text: str, facts: LineFacts) -> LogLine:
        return LogLine(
            file=self._found.name,
            number=number,
            text=redact(text)[:KEPT],
            form=facts.form,
            who=Party(),
            at=facts.at,
            zoned=facts.zoned,
            level=facts.level,
        )

    def _note(self, facts: LineFacts, times: int = 1) -> None:
        """Note what a line shows about its file."""
        found = self._found
        found.forms[facts.form] += times
        if facts.at is not None:
            found.first_at = facts.at if found.first_at is None else min(found.first_at, facts.at)
            found.last_at = facts.at if found.last_at is None else max(found.last_at, facts.at)
        if facts.shared:
            found.shared = True
            return
        if facts.host and facts.form not in _BY_OTHERS and len(found.hosts) < 1000:
            found.hosts[facts.host] += 1
        if facts.pid is not None and facts.form is not Form.ELASTIC and len(found.pids) < learn.MOST_PIDS:
            found.pids[facts.pid] += 1

    def _edge(self, window: Window, lines: Iterator[tuple[int, int]], *, head: bool) -> None:
        """Examine all of the first lines, or all of the last ones from the end."""
        found = self._found
        ends, seen = window.number + window.text.count(b"\n"), 0
        for start, end in lines:
            texts = states(window.data[start:end])
            text = texts[-1] if texts else ""
            if not text.strip():
                continue
            facts = self._parse(text)
            plain = not head and facts.form is Form.PLAIN and facts.level not in ("ERROR", "FATAL")
            over = (plain and says_finished(text[facts.prefix :])) or (not head and says_group_finished(text))
            seen += 1
            if not head and seen <= AT_END and not found.faint and complaint.hints(text, facts):
                line = self._made(ends - window.data.count(b"\n", start, window.end), text, facts)
                found.faint = who_of(facts), replace(line, level=HINT)
            if over or (not head and found.last is None):
                line = self._made(ends - window.data.count(b"\n", start, window.end), text, facts)
                found.last = found.last or line
                if over:
                    found.over.setdefault(who_of(facts), line)
            self._note(facts)


def _with_frames(line: LogLine, text: str, facts: LineFacts, above: Callable[[], Sequence[str]]) -> LogLine:
    """The line of an exception, with the traceback above it."""
    if facts.form is not Form.PYTHON:
        return line
    prefixes = [each for each in (text[: facts.start], text[: facts.prefix]) if each.strip()]
    frames = stacks.traceback_above(above(), *(prefixes or [""]))
    return replace(line, frames=tuple(redact(each)[:KEPT] for each in frames)) if frames else line


def _headed(above: Sequence[str], *words: str) -> bool:
    """Whether such words stand in the line over the exception below these lines, or over its traceback."""
    begin = next((place for place, line in enumerate(above) if _BEGINS in line), -1)
    return any(each in line for line in above[max(begin, 0) : begin + 2] for each in words)
