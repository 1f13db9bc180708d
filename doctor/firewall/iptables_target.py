"""What the targets of iptables do with a packet."""

from collections.abc import Callable, Container

from doctor.firewall.iptables_tokens import IptablesOption, masked, number
from doctor.firewall.rules import REWRITING, WORDS, Field, RuleVerdict, SetMark, Step, Untrack, VerdictKind
from doctor.firewall.values import WORD

FINAL = {name: VerdictKind[kind] for name, kind in WORDS["targets of iptables"].items()}
PASSING = frozenset(WORDS["passing in iptables"])


def target_steps(name: str, given: list[IptablesOption], goto: bool, chains: Container[str]) -> list[Step]:
    """The steps of one target. The chains of the table come first: a chain may have any name."""
    if name in chains:
        return [RuleVerdict(VerdictKind.GOTO if goto else VerdictKind.JUMP, name)]
    if name in FINAL:
        return [RuleVerdict(FINAL[name])]
    if name in PASSING:
        return []
    if name == "MARK":
        return [_mark(given, Field.MARK)]
    if name == "CONNMARK":
        return [_connmark(given)]
    if name == "HMARK":
        return [SetMark(Field.MARK, None)]
    if name == "NOTRACK" or (name == "CT" and any(option.name == "--notrack" for option in given)):
        return [Untrack()]
    if name == "CT":
        return []
    why = REWRITING.get(name.lower(), "is not known")
    return [RuleVerdict(VerdictKind.UNKNOWN, why=f"the target {name} {why}")]


def _mark(given: list[IptablesOption], field: Field) -> SetMark:
    """`--set-xmark value/mask` clears the mask and xors the value; the other options are variants of it."""
    pair = masked(given[0].value) if len(given) == 1 else None
    if pair is None or given[0].name not in _MARKS:
        return SetMark(field, None)
    return SetMark(field, *_MARKS[given[0].name](*pair))


_MARKS: dict[str, Callable[[int, int], tuple[int, int]]] = {
    "--set-xmark": lambda value, mask: (mask, value),
    "--set-mark": lambda value, mask: (mask | value, value),
    "--and-mark": lambda value, _: (~value & WORD, 0),
    "--or-mark": lambda value, _: (value, value),
    "--xor-mark": lambda value, _: (0, value),
}
"""Option -> a function of the value and mask that returns the bits to clear and the bits to flip."""


def _connmark(given: list[IptablesOption]) -> SetMark:
    """Copy a mark between packet and connection; the result is unknown unless all masks are full."""
    names = {option.name: option for option in given}
    save, restore = "--save-mark" in names, "--restore-mark" in names
    if not save and not restore:
        return _mark(given, Field.CTMARK)
    to, source = (Field.CTMARK, Field.MARK) if save else (Field.MARK, Field.CTMARK)
    masks = names.keys() - {"--save-mark", "--restore-mark"}
    plain = masks <= _MASKS and all(number(names[mask].value) == WORD for mask in masks)
    return SetMark(to, 0, source=source) if plain else SetMark(to, None)


_MASKS = {"--nfmask", "--ctmask", "--mask"}
