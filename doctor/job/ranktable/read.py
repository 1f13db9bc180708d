"""A rank table's text -> its contents, and all flaws at once: of the file, then of the contents.

Comments, trailing commas, a byte order mark or a repeated key hide nothing: each is a flaw, but the table is
read anyway.
"""

from itertools import islice

from doctor.job.ranktable.addresses import ADDRESS_RULES
from doctor.job.ranktable.case import TableRules
from doctor.job.ranktable.decode import decode, plain_json
from doctor.job.ranktable.fields import Fields, TableNode
from doctor.job.ranktable.flaws import ENOUGH, TextPlaces, UnplacedFlaw, outline, settle
from doctor.job.ranktable.form import check_words, form_of, read_levels, read_status
from doctor.job.ranktable.grouping import grouping
from doctor.job.ranktable.model import Flaw, RankTable
from doctor.job.ranktable.ranks import RANK_RULES
from doctor.job.ranktable.servers import read_groups, read_servers
from doctor.model import Severity
from doctor.text.textfile import LIMIT, shown

_READERS = {
    "1.0": read_servers,
    "1.2": read_servers,
    "2.0": read_levels,
    "group-list": read_groups,
    "board-id": read_groups,
}
UNREAD = ("server_count", "para_plane_nic_num", "board_id", "chip_info")
"""Members that HCCL, or newer HCCL, does not read: no value of theirs stops a job."""
_BOM = "\ufeff"
_EXPECTED = "a rank table"


def read_table(text: str) -> tuple[RankTable | None, tuple[Flaw, ...]]:
    """The table, or None if it cannot be read, and what is wrong with the file."""
    if len(text) > LIMIT:
        message = f"is larger than {LIMIT // 1_000_000} MB: is it the right file?"
        flaw = UnplacedFlaw(0, None, message, _EXPECTED, f"{len(text):,} characters")
        return None, settle([flaw], TextPlaces(""))
    flaws: list[UnplacedFlaw] = []
    if text.startswith(_BOM):
        text = text[1:]
        message = "begins with a byte order mark, at which Python's json stops"
        flaws.append(UnplacedFlaw(0, None, message, _EXPECTED, shown(_BOM), Severity.WARN))
    value, places, slips = decode(text)
    flaws += slips
    if not isinstance(value, dict):
        if not slips or value is not None:
            flaws.append(UnplacedFlaw(places.first, None, "is not a rank table", _EXPECTED))
        return None, settle(flaws, places)
    fields = Fields(places, outline(places.text))
    return _read(fields, TableNode(value, ()), text), settle([*flaws, *fields.flaws], places)


def judge(table: RankTable, product: str | None = None) -> tuple[Flaw, ...]:
    """What is wrong with a readable table, judged from the file alone.

    `product` as in the report (`atlas-a2`); None if it is unknown or differs between hosts.
    """
    places = TextPlaces(plain_json(table.text))
    ranks = TableRules(table, "rank-table-ranks", places)
    groups = TableRules(table, "rank-table-grouping", places)
    flaws = [flaw for rule in (*RANK_RULES, *ADDRESS_RULES) for flaw in islice(rule(ranks), ENOUGH)]
    return settle([*flaws, *grouping(groups, product)], places)


def _read(fields: Fields, root: TableNode, text: str) -> RankTable | None:
    form = form_of(fields, root)
    if form is None:
        return None
    status = read_status(fields, root, form)
    check_words(fields, root, form)
    table = _READERS[form](fields, root, RankTable(form, status, (), None, text))
    if form != "2.0":  # numbers have no quotes in that form
        message = "without quotes; HCCL wants a text here and says 'is not string'"
        read = [member for member in fields.unquoted if member[1] not in UNREAD]
        severity = Severity.FAIL if read else Severity.WARN
        fields.flaws += _gather(read or fields.unquoted, message, "double quotes", severity)
    message = "with '*' in place of digits: an example, not an address"
    fields.flaws += _gather(fields.masked, message, "an IPv4 or IPv6 address", Severity.FAIL)
    message = "names no server: it is left over from an example"
    expected = "the address or the name of each server"
    fields.flaws += _gather(fields.placeholders, message, expected, Severity.FAIL)
    return table


def _gather(
    members: list[tuple[int, str]], message: str, expected: str, severity: Severity
) -> list[UnplacedFlaw]:
    """One flaw for all members that have it, because a table usually has it for every rank."""
    if not members:
        return []
    at, key = min(members)
    more = f" (and {len(members) - 1:,} more)" if len(members) > 1 else ""
    return [UnplacedFlaw(at, key, f"{key}{more} {message}", expected, severity=severity)]
