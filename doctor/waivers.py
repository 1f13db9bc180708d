"""Faults that are known and accepted until a date, from an inventory or a file of its form (--waivers).

    waivers:
      - check: shm-small            # the id of a check
        hosts: node[3-4]            # a node set, or an @group of the file
        subject: device 3           # optional: only this part of the host
        reason: waits for memory, ticket 4711
        owner: ops@example.org
        until: 2026-12-31           # its last day, in UTC

All mistakes are reported at once, each with its line and column.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date

from doctor.errors import Mistake, UsageError, suggest
from doctor.model import Waiver
from doctor.text.nodeset import Groups, unfold
from doctor.text.redact import is_hinted, redact
from doctor.text.textfile import said, shown
from doctor.text.yamlfile import NULLS, Listing, Node, Scalar, YamlTable

KEYS = ("check", "hosts", "subject", "reason", "owner", "until")
REQUIRED = ("check", "hosts", "reason", "owner", "until")
LONGEST = 200
"""The most characters of a value, except of a node set."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def strange(
    waivers: Iterable[Waiver], checks: Collection[str], refused: Mapping[str, str]
) -> Iterator[Mistake]:
    """Waivers of checks that do not exist or are `refused` (check -> why), and two waivers of one thing."""
    places: dict[tuple[str, str, str], str] = {}
    for each in waivers:
        if each.check not in checks:
            hint = suggest(each.check, checks) or "doctor list names all"
            yield Mistake(each.place, None, f"there is no check {shown(each.check)}; {hint}")
        elif each.check in refused:
            yield Mistake(each.place, None, f"{each.check} cannot be waived: {refused[each.check]}")
        firsts = {places.setdefault((each.check, host, each.subject), each.place) for host in each.hosts}
        for first in sorted(firsts - {each.place}):
            yield Mistake(each.place, None, f"{each.check} is waived there already, in {first}")


@dataclass(slots=True)
class WaiverReader:
    """Reads on after a mistake, so that one run reports all of them. `hosts` are those of an inventory; if it
    lists none, every name is allowed.
    """

    file: str
    groups: Groups | None = None
    hosts: Collection[str] = ()
    mistakes: list[Mistake] = field(default_factory=list)

    def read(self, node: Node) -> tuple[Waiver, ...]:
        if not isinstance(node, Listing):
            self.report(node, "waivers: a list is expected")
            return ()
        found = tuple(filter(None, map(self._waiver, node.items)))
        words = {word for each in found for word in f"{each.reason} {each.owner}".split()}
        if not is_hinted(f"{' '.join(words)} "):  # some hints end with a blank
            return found
        return tuple(replace(each, reason=redact(each.reason), owner=redact(each.owner)) for each in found)

    def report(self, node: Node | None, message: str, hint: str = "") -> None:
        line, column = (node.line, node.column) if node else (None, 0)
        self.mistakes.append(Mistake(self.file, line, f"{message}; {hint}" if hint else message, column))

    def _waiver(self, node: Node) -> Waiver | None:
        rows = node.rows if isinstance(node, YamlTable) else ()
        texts: dict[str, str] = {}
        named = node
        for key, value in rows:
            if key.text in KEYS:
                texts[key.text] = self._text(key.text, value)
                named = value if key.text == "hosts" else named
            else:
                self.report(key, f"unknown key {shown(key.text)}", suggest(key.text, KEYS))
        if missing := [key for key in REQUIRED if key not in texts]:
            self.report(node, f"this waiver has no {', '.join(missing)}")
            return None
        hosts = self._hosts(named, texts["hosts"])
        if not hosts or not all(texts.values()):
            return None
        words = (texts["reason"], texts["owner"], texts["until"], texts.get("subject", ""))
        return Waiver(texts["check"], hosts, *words, place=f"{self.file}:{node.line}:{node.column}")

    def _text(self, key: str, node: Node) -> str:
        """The value, or an empty text with a mistake."""
        text = ""
        if isinstance(node, Scalar) and (node.quoted or node.text not in NULLS):
            text = node.text.strip()
        if not text or not text.isprintable() or (len(text) > LONGEST and key != "hosts"):
            self.report(node, f"{key}: a text of 1 to {LONGEST} characters is expected")
            return ""
        if key == "until" and not _is_date(text):
            self.report(node, f"until: {shown(text)} is not a date such as 2026-12-31")
            return ""
        return text

    def _hosts(self, node: Node, text: str) -> tuple[str, ...]:
        try:
            names = unfold(text, self.groups) if text else []
        except UsageError as error:
            self.report(node, f"hosts: {said(error)}")
            return ()
        if self.hosts and (strange := next((name for name in names if name not in self.hosts), "")):
            self.report(
                node, f"hosts: {shown(strange)} is not one of the hosts", suggest(strange, self.hosts)
            )
            return ()
        return tuple(names)


def _is_date(text: str) -> bool:
    try:
        return bool(_DATE.fullmatch(text) and date.fromisoformat(text))
    except ValueError:
        return False
