"""The table of launchers as plain data, for programs on hosts and inside jobs that cannot import it."""

from typing import Any

from doctor.job.launch.launcher import Launcher, RankVariables
from doctor.job.launch.launchers import LAUNCHERS, MARKS, NUMBERS, ROLES
from doctor.job.launch.launchers.torchrun import STATIC

Row = dict[str, Any]
_MEETING = ("master_addr", "master_port", "rdzv_endpoint", "id")
_IDS = {each.job_id_option for each in LAUNCHERS}


def brief() -> Row:
    """The whole table; `names` are all variables that it mentions."""
    table: Row = {
        "launchers": [_commands(each) for each in LAUNCHERS if each.commands],
        "ranks": rank_rows(),
        "roles": {name: [role for role in of if of[role] != "rank"] for name, of in ROLES.items()},
        "marks": sorted(MARKS),
        "runs": [[each.job_id, each.no_job_id] for each in LAUNCHERS if each.job_id and not each.outer],
        "jobs": [[each.system or each.name, names] for each in LAUNCHERS if (names := _of_a_job(each))],
        "arrays": [[each.job_id, *each.array] for each in LAUNCHERS if each.array],
        "titles": [[each.system or each.name, each.title] for each in LAUNCHERS if each.title],
    }
    table["settings"] = sorted({name for each in LAUNCHERS for name in _settings(each)})
    return {**table, "names": sorted(_variables(table))}


def rank_rows() -> list[Row]:
    """The variables that give a process its rank; the first row that a process has counts."""
    order = [*NUMBERS]
    rows = [(launcher, each) for launcher in LAUNCHERS for each in launcher.ranks]
    return [_numbers(*row) for row in sorted(rows, key=lambda row: order.index(row[1].rank))]


def _numbers(launcher: Launcher, of: RankVariables) -> Row:
    """One row. Outer launchers may number the ranks of a host in any order, so `local_world` is left out."""
    return {
        "launcher": launcher.name if launcher.commands else "",
        "outer": launcher.outer,
        "role": launcher.role,
        "rank": [name for name in (of.rank, of.spare) if name],
        "world": list(of.world),
        "local": of.local_rank,
        "local_world": "" if launcher.outer else of.local_world,
        "node": of.node,
        "meeting": [of.master, of.port],
        "only_with": list(of.only_with),
        "unless": [list(each) for each in of.unless],
    }


def _commands(launcher: Launcher) -> Row:
    options = launcher.options
    called = {**options.values, **dict.fromkeys(_IDS & options.values.keys(), "id")}
    return {
        "name": launcher.name,
        "commands": list(launcher.commands),
        "programs": list(launcher.programs),
        "modules": list(launcher.modules),
        "subcommand": launcher.subcommand,
        "outer": launcher.outer,
        "numbers": bool(launcher.ranks),
        "options": {name: what for name, what in called.items() if what in _MEETING},
        "port": options.defaults.get("master_port", STATIC),
    }


def _settings(launcher: Launcher) -> list[str]:
    """The variables that stand for options about ranks."""
    options = launcher.options
    return [
        f"{options.variables}{name.upper()}"
        for name, called in options.values.items()
        if options.variables and called
    ]


def _of_a_job(launcher: Launcher) -> list[str]:
    """What the ranks of one job have in common, except for the place where they meet and secrets."""
    if launcher.job_id and not launcher.outer:
        return [launcher.job_id]
    first = next(iter(launcher.ranks), None)
    known = {first.master, first.port, *first.secret} if first else set()
    return [name for name in (first.identity if first else ()) if name not in known]


def _variables(table: Row) -> set[str]:
    rows = table["ranks"]
    return {
        *table["roles"],
        *table["marks"],
        *table["settings"],
        *(name for row in rows for key in ("rank", "world", "meeting", "only_with") for name in row[key]),
        *(row[key] for row in rows for key in ("local", "local_world", "node")),
        *(name for row in rows for name, _ in row["unless"]),
        *(name for name, _ in table["runs"]),
        *(name for _, names in table["jobs"] for name in names),
        *(name for names in table["arrays"] for name in names),
    } - {""}
