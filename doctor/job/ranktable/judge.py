"""What is wrong with a table that could be read, judged by the file alone."""

from __future__ import annotations

from itertools import islice

from doctor.job.ranktable.addresses import ADDRESS_RULES
from doctor.job.ranktable.case import TableRules
from doctor.job.ranktable.decode import plain_json
from doctor.job.ranktable.flaws import ENOUGH, Places, settle
from doctor.job.ranktable.grouping import grouping
from doctor.job.ranktable.model import Flaw, RankTable
from doctor.job.ranktable.ranks import RANK_RULES


def judge(table: RankTable, product: str | None = None) -> tuple[Flaw, ...]:
    """`product` as in the report (`atlas-a2`); None where it is not known, or differs between hosts."""
    places = Places(plain_json(table.text))
    ranks = TableRules(table, "rank-table-ranks", places)
    groups = TableRules(table, "rank-table-grouping", places)
    flaws = [flaw for rule in (*RANK_RULES, *ADDRESS_RULES) for flaw in islice(rule(ranks), ENOUGH)]
    return settle([*flaws, *grouping(groups, product)], places)
