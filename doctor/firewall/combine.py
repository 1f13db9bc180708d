"""One rule set from all that a host's tools print, in which no table counts twice."""

from __future__ import annotations

from collections.abc import Iterable

from doctor.firewall.decide import Ruleset
from doctor.firewall.rules import RuleTable


def combine(nft: Iterable[RuleTable] = (), iptables: Iterable[RuleTable] = ()) -> Ruleset:
    """`nft` from `parse_nft`, `iptables` from every save of the host, of both backends and both families.

    What iptables-nft writes is listed by nft too, with parts that nft cannot show. Such a table is left to
    iptables-save when both show the same chains with the same number of rules. Where they differ, the
    rules were changed meanwhile, or nft holds what iptables cannot show: then both count, and each can only
    add a doubt or a block that is really there.
    """
    saved = tuple(iptables)
    ours = {(table.family, table.name): table for table in saved if table.tool == "iptables-nft"}
    kept = [table for table in nft if not _same(table, ours.get((table.family, table.name)))]
    return Ruleset((*kept, *saved))


def _same(listed: RuleTable, saved: RuleTable | None) -> bool:
    """A save also shows base chains that do not exist yet: they are empty and accept."""
    if saved is None or not listed.chains.keys() <= saved.chains.keys():
        return False
    for name, chain in saved.chains.items():
        other = listed.chains.get(name)
        if other is None:
            if chain.rules:
                return False
            continue
        if len(other.rules) != len(chain.rules) or (other.hook is None) != (chain.hook is None):
            return False
        hooks = [(hook.name, hook.policy) for hook in (other.hook, chain.hook) if hook]
        if len(set(hooks)) > 1:
            return False
    return True
