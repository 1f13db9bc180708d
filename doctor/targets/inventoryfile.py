"""The inventory file (YAML) -> hosts, groups, and the values requested for the job.

docs/inventory.md shows all that it can contain; every key is optional. Two machines cannot share an address,
except behind different jump hosts; two containers of one machine may, because their `enter` differs. All
mistakes in the file are reported at once, in line order.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from doctor.errors import InputErrors, Mistake, UsageError, suggest
from doctor.expect import read_value
from doctor.job.needs import MOST as MOST_NEEDS
from doctor.job.needs import FolderNeed, read_need
from doctor.job.parallel import Layout, layout_of
from doctor.job.wishes import JobWishes
from doctor.model import Host, SourcedValue, Waiver
from doctor.targets.hostsettings import (
    HOST_KEYS,
    OF_ONE_HOST,
    SETTINGS,
    check_backend,
    check_port,
    check_ranks,
    check_text,
)
from doctor.targets.inputkind import InputKind, refuse_other
from doctor.text.nodeset import MOST_HOSTS, check_host, unfold
from doctor.text.textfile import read_text, refuse, said, shown
from doctor.text.yamlfile import Listing, Node, Scalar, YamlTable, parse_yaml
from doctor.waivers import WaiverReader

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Inventory:
    """`defaults` are fields of Host, for hosts named elsewhere; `hosts` already include them."""

    file: str = ""
    hosts: Mapping[str, Host] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    wishes: JobWishes = field(default_factory=JobWishes)


def read_inventory(path: Path) -> Inventory:
    """The parsed file. Raises InputErrors with every mistake of the file."""
    text = read_text(path)
    try:
        document = parse_yaml(text, str(path))
        reader = _InventoryReader(document.file, list(document.mistakes))
        found = reader.inventory(document.root)
        refuse(reader.mistakes)
    except InputErrors:
        refuse_other(str(path), text, InputKind.INVENTORY)
        raise
    return found


_TOP_KEYS = (
    "hosts", "groups", "defaults", "backend", "head", "master_port", "ranks_per_host", "launch", "plan",
    "expect", "needs", "waivers",
)  # fmt: skip
_GROUP = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_EXPECTATION = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}")


class _InventoryReader:
    """Reads on after a mistake, so that one run reports all of them."""

    def __init__(self, file: str, mistakes: list[Mistake]) -> None:
        self.file = file
        self.mistakes = mistakes

    def inventory(self, root: Node | None) -> Inventory:
        if not isinstance(root, YamlTable):
            line = root.line if root else None
            self._report(line, f"keys such as 'hosts:' are expected, but here is {_kind(root)}")
            return Inventory()
        top = self._known_keys(root, _TOP_KEYS)
        defaults = self._settings(top.get("defaults"), [k for k in HOST_KEYS if k not in OF_ONE_HOST])
        hosts, lines = self._hosts(top["hosts"], defaults) if "hosts" in top else ({}, {})
        self._compare(hosts, lines)
        groups = self._groups(top.get("groups"), hosts)
        head = self._wish(top, "head", check_host)
        if head and hosts and head.value not in hosts:
            message = f"head: {shown(head.value)} is not one of the hosts"
            self._report(top["head"].line, message, suggest(head.value, hosts))
        wishes = JobWishes(
            backend=self._wish(top, "backend", check_backend),
            head=head,
            master_port=self._wish(top, "master_port", check_port),
            ranks_per_host=self._wish(top, "ranks_per_host", check_ranks),
            env=self._texts(top.get("launch"), _VARIABLE, "the name of a variable"),
            expect=self._expectations(top.get("expect")),
            layout=self._layout(top.get("plan")),
            needs=self._needs(top.get("needs")),
            waivers=self._waivers(top.get("waivers"), groups, hosts),
        )
        return Inventory(self.file, hosts, groups, defaults, wishes)

    def _report(self, line: int | None, message: str, hint: str = "") -> None:
        self.mistakes.append(Mistake(self.file, line, f"{message}; {hint}" if hint else message))

    def _known_keys(self, table: YamlTable, keys: Collection[str]) -> dict[str, Node]:
        for key, _ in table.rows:
            if key.text not in keys:
                hint = suggest(key.text, keys)
                if key.text in HOST_KEYS:
                    hint = "it belongs to one host, not to 'defaults:'" if key.text in OF_ONE_HOST else hint
                    hint = hint or "it belongs to a host, or under 'defaults:'"
                self._report(key.line, f"unknown key {shown(key.text)}", hint)
        return {key.text: value for key, value in table.rows if key.text in keys}

    def _table(self, node: Node | None, expected: str) -> YamlTable:
        """The mapping; an empty one if nothing is given, or something else by mistake."""
        if isinstance(node, YamlTable):
            return node
        if node is not None and not _is_null(node):
            self._report(node.line, f"{expected}, but here is {_kind(node)}")
        return YamlTable(0, ())

    def _value(self, key: str, node: Node, read: Callable[[str], T]) -> T | None:
        if not isinstance(node, Scalar) or node.value is None:
            self._report(node.line, f"{key}: one value is expected, but here is {_kind(node)}")
            return None
        try:
            return read(node.text)
        except UsageError as error:
            self._report(node.line, f"{key}: {said(error)}")
            return None

    def _wish(
        self, top: Mapping[str, Node], key: str, read: Callable[[str], T | None]
    ) -> SourcedValue[T] | None:
        value = self._value(key, top[key], read) if key in top else None
        return None if value is None else SourcedValue(value, f"inventory {self.file}:{top[key].line}")

    def _texts(self, node: Node | None, names: re.Pattern[str], what: str) -> dict[str, str]:
        """A mapping of names to single values, each as the text that was written."""
        texts: dict[str, str] = {}
        for key, value in self._table(node, "names with values are expected, as in 'name: value'").rows:
            if not names.fullmatch(key.text):
                self._report(key.line, f"{shown(key.text)} is not {what}")
            elif (text := self._value(key.text, value, check_text)) is not None:
                texts[key.text] = text
        return texts

    def _layout(self, node: Node | None) -> SourcedValue[Layout] | None:
        texts = self._texts(node, _EXPECTATION, "the name of a part of the plan")
        if node is None or not texts:
            return None
        try:
            return SourcedValue(layout_of(texts), f"inventory {self.file}:{node.line}")
        except UsageError as error:
            self._report(node.line, f"plan: {said(error)}")
            return None

    def _needs(self, node: Node | None) -> tuple[FolderNeed, ...]:
        items = node.items if isinstance(node, Listing) else () if node is None or _is_null(node) else (node,)
        found = [self._value("needs", item, read_need) for item in items]
        if len(found) > MOST_NEEDS and node:
            self._report(node.line, f"needs: {len(found)} folders are named; {MOST_NEEDS} are the most")
        return tuple({need.path: need for need in found if need}.values())

    def _waivers(
        self, node: Node | None, groups: Mapping[str, tuple[str, ...]], hosts: Collection[str]
    ) -> tuple[Waiver, ...]:
        reader = WaiverReader(self.file, groups, hosts)
        found = reader.read(node) if node else ()
        self.mistakes += reader.mistakes
        return found

    def _expectations(self, node: Node | None) -> dict[str, str]:
        """Thresholds of checks, by name; each name must exist, and each value must have the right type."""
        texts = self._texts(node, _EXPECTATION, "the name of an expectation")
        lines = {key.text: key.line for key, _ in node.rows} if isinstance(node, YamlTable) else {}
        for name, text in texts.items():
            self._judge(name, text, lines[name])
        return texts

    def _judge(self, name: str, text: str, line: int) -> None:
        try:
            read_value(name, text)
        except UsageError as error:
            self._report(line, f"{error.message} {error.hint}".strip())

    def _settings(self, node: Node | None, keys: Collection[str]) -> dict[str, Any]:
        """Fields of Host; `devices` is an expectation under a short name."""
        known = self._known_keys(self._table(node, "settings such as 'user: root' are expected"), keys)
        expected = self._expectations(known.pop("expect", None))
        values = {key: self._value(key, value, SETTINGS[key]) for key, value in known.items()}
        settings = {key: value for key, value in values.items() if value is not None}
        if "devices" in settings:
            expected["devices"] = str(settings.pop("devices"))
        if expected:
            settings["expected"] = expected
        return settings

    def _hosts(self, node: Node, defaults: Mapping[str, Any]) -> tuple[dict[str, Host], dict[str, int]]:
        hosts: dict[str, Host] = {}
        lines: dict[str, int] = {}
        for key, value in self._entries(node):
            names = self._value("hosts", key, lambda text: unfold(text, {})) or []
            settings = self._settings(value, HOST_KEYS)
            if len(names) > 1:
                for name in OF_ONE_HOST:
                    if settings.pop(name, None):
                        self._report(
                            key.line, f"{shown(key.text)}: {len(names)} hosts cannot share one {name}"
                        )
            made = {**defaults, **settings}
            made["expected"] = {**defaults.get("expected", {}), **settings.get("expected", {})}
            if "enter_from" in made and "enter" not in made:
                self._report(key.line, f"{shown(key.text)} has enter_from, but no enter")
            for name in names:
                if name in hosts:
                    self._report(key.line, f"{shown(name)} is defined twice, first on line {lines[name]}")
                    continue
                hosts[name] = Host(**{"name": name, "address": name, **made})
                lines[name] = key.line
            if len(hosts) > MOST_HOSTS:
                self._report(key.line, f"more than {MOST_HOSTS:,} hosts up to here: is that a typo?")
                break
        if not hosts and not self.mistakes:
            self._report(node.line, "'hosts' names no host")
        return hosts, lines

    def _entries(self, node: Node) -> Iterator[tuple[Scalar, Node | None]]:
        if isinstance(node, YamlTable):
            yield from node.rows
        elif isinstance(node, Listing):
            for item in node.items:
                if isinstance(item, Listing):
                    self._report(item.line, "a node set is expected, but here is a list")
                else:
                    yield from self._entries(item)
        elif not _is_null(node):
            yield node, None

    def _compare(self, hosts: Mapping[str, Host], lines: Mapping[str, int]) -> None:
        """Report names that share one machine: it would be examined twice, and would train with itself."""
        dialled: dict[object, str] = {}
        data: dict[str, str] = {}
        for host in hosts.values():
            line = lines[host.name]
            if host.enter_from == "host":
                first = dialled.setdefault((_machine(host), host.enter), host.name)
                if first != host.name:
                    self._report(
                        line, f"{shown(host.name)} and {shown(first)} are one machine: {host.address}"
                    )
            if host.data is not None:
                first = data.setdefault(host.data, host.name)
                if _machine(hosts[first]) != _machine(host):
                    message = f"{shown(host.name)} and {shown(first)} share the data address {host.data}"
                    self._report(line, message)

    def _groups(self, node: Node | None, hosts: Mapping[str, Host]) -> dict[str, tuple[str, ...]]:
        groups: dict[str, tuple[str, ...]] = {}
        for key, value in self._table(node, "groups: names with node sets are expected").rows:
            if not _GROUP.fullmatch(key.text):
                self._report(key.line, f"{shown(key.text)} is not the name of a group")
            members: dict[str, None] = {}
            for item in value.items if isinstance(value, Listing) else (value,):
                names = self._value(key.text, item, lambda text: unfold(text, groups)) or []
                strange = [name for name in names if hosts and name not in hosts]
                if strange:
                    hint = suggest(strange[0], hosts)
                    self._report(item.line, f"{key.text}: {shown(strange[0])} is not one of the hosts", hint)
                members.update(dict.fromkeys(names))
            groups[key.text] = tuple(members)
        return groups


def _machine(host: Host) -> tuple[str, int, str | None]:
    return host.address, host.port or 22, host.jump


def _is_null(node: Node) -> bool:
    return isinstance(node, Scalar) and node.value is None


def _kind(node: Node | None) -> str:
    if isinstance(node, YamlTable):
        return "a mapping"
    if isinstance(node, Listing):
        return "a list"
    return "nothing" if node is None or _is_null(node) else f"the text {shown(node.text)}"
