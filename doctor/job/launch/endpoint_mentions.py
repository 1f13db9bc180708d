"""Ports and addresses in a text that the job may or may not use.

`${MASTER_PORT:-29502}` is the job's port unless somebody sets another; a port may be in a branch, beside an
address that is unknown, in a command that was not understood, or as another shell or Python would write it.
None of them may be lost.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from doctor.job.launch.launchers import COMMANDS, LAUNCHERS, MASTERS, MODULES, PORTS
from doctor.job.launch.variables import is_kept
from doctor.text.hostprogram import sections
from doctor.text.late import late

_TOLD = sections(__file__, "endpoint_mentions.txt")
ON_ALL = (*(name for each in LAUNCHERS if each.outer for name in each.commands), "pdsh", "clush")
"""Programs that start one command on several hosts."""
_SPREADING = (
    *ON_ALL,
    *(name for each in LAUNCHERS if each.by_name for name in each.commands),
    *("ssh", "sbatch", "ibrun", "jsrun", "aprun", "pbsdsh", "kubectl", "parallel", "xargs"),
)
_NAMES = (*COMMANDS, *MODULES, *(name for each in LAUNCHERS for name in each.commands))
_PARTS = {
    **_TOLD["parts"],
    "masters": "|".join(MASTERS),
    "ports": "|".join(PORTS),
    "spreading": "|".join(map(re.escape, _SPREADING)),
    "names": "|".join(map(re.escape, dict.fromkeys(_NAMES))),
}
for _part, _kind in (("address", "master_addr"), ("port", "master_port"), ("endpoint", "rdzv_endpoint")):
    _called = {n for each in LAUNCHERS for n, called in each.options.values.items() if called == _kind}
    _PARTS[f"of_{_part}"] = "|".join(sorted(name.replace("_", "[_-]") for name in _called))


def _whole(pattern: str) -> str:
    """A pattern with its parts."""
    return re.sub(r"@(\w+)@", lambda found: _whole(_PARTS[found[1]]), pattern)


_PORT, _ENDPOINT, _ADDRESS, _COORDINATOR, _HOSTS, _OF_JAX, _ON_OTHERS, _STARTER, _UNSETS = (
    late(_whole(pattern)) for pattern in _TOLD["patterns"].values()
)
_OWN = {kind: late(_whole(pattern)) for kind, pattern in _TOLD["own"].items()}
ITSELF = _PARTS["itself"]
_REMARK = re.compile(r"(?m)(?:^|\s)#(?!SBATCH|PBS|BSUB).*")
MOST = 8
LONGEST = 160


@dataclass(frozen=True, slots=True)
class EndpointMention:
    """A port or an address, and its line; line 0 means a default that is not in the text.

    `kind` is "own address" for a master that every host takes for itself, and "own port", "own id" and "own
    file" if each host draws another one; "apart", "same ranks" and "late number" for what the number of a
    host makes of it; "login" for a default in the place of the variable in `words`; "set"
    for a variable to which the line gives a value, and "unset" for one that it takes away;
    "coordinator" for the address at which processes of JAX meet, "num_processes" for how many there are, and
    "process_id" for the number of one.
    """

    kind: str
    text: str
    line: int
    words: str
    file: str = ""

    @property
    def source(self) -> str:
        return f"--launch {self.file}:{self.line}" if self.line else self.words


def mentioned(text: str) -> tuple[EndpointMention, ...]:
    """The ports and addresses, each once, in their order."""
    found: dict[tuple[str, str], EndpointMention] = {}
    for number, line in _lines(text):
        for kind, pattern in (("port", _PORT), ("port", _ENDPOINT), ("address", _ADDRESS)):
            for match in pattern.finditer(line):
                if kind == "port" and not 0 < int(match[1]) < 65536:
                    continue
                found.setdefault(
                    (kind, match[1]), EndpointMention(kind, match[1], number, match[0].strip()[:LONGEST])
                )
    return tuple(found.values())[:MOST]


def settings(text: str) -> Iterator[EndpointMention]:
    """The variables of a job, where the text gives them a value or takes them away."""
    alone = re.search(r"(?:world[_-]size|num[_-]processes)[= ]1\b", text)
    for number, line in _lines(text):
        for kind, name in (
            *(("set", name) for name in re.findall(r"(?:^|[\s;&(\"'])([A-Z]\w{2,80})=", line)),
            *(("unset", name) for names in _UNSETS.findall(line) for name in names.split()),
        ):
            if is_kept(name):
                yield EndpointMention(kind, name, number, line.strip()[:LONGEST])
        for listed in _HOSTS.findall(line):
            yield EndpointMention("hosts", listed, number, line.strip()[:LONGEST])
        for address in _COORDINATOR.findall(line) if not alone else ():
            yield EndpointMention("coordinator", address, number, line.strip()[:LONGEST])
        for name, said in _OF_JAX.findall(line) if re.search("(?i)coordinator|JAX_", line) else ():
            yield EndpointMention(name.lower().replace("-", "_"), said, number, line.strip()[:LONGEST])


def in_program(text: str) -> str:
    """What a Python program itself says of where processes of JAX meet, outside of any choice: as options, in
    the line where it says it.
    """
    if len(re.findall(r"(?m)^[^#\n]*\bjax\.distributed\.initialize\(", text)) != 1:
        return ""
    try:
        left: list[ast.stmt] = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError):
        return ""
    for node in left:
        if isinstance(node, ast.FunctionDef) or (
            isinstance(node, ast.If) and "__main__" in ast.dump(node.test)
        ):
            left += node.body
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "jax.distributed.initialize":
            given = [
                *zip(("coordinator_address", "num_processes", "process_id"), call.args, strict=False),
                *((each.arg, each.value) for each in call.keywords),
            ]
            said = (f"--{name}={to.value!s}" for name, to in given if isinstance(to, ast.Constant))
            return "\n" * (node.lineno - 1) + " ".join(said)
    return ""


def own_values(text: str, commands: Iterable[tuple[int, str]]) -> Iterator[EndpointMention]:
    """Where each host that runs this script has its own master, port, id or file to meet at; nothing if one
    host runs it for all, or if it may choose another one. `commands` are its commands, as they are started.
    """
    if runs_on_others(text):
        return
    lines = [*_lines(text), *commands]
    twice = [name for name in (*MASTERS, *PORTS, "RANDOM") if len(re.findall(rf"\b{name}=", text)) > 1]
    for kind, pattern in _OWN.items():
        found = ((number, match[0].strip()) for number, line in lines if (match := pattern.search(line)))
        number, words = next(found, (0, ""))
        if words and not twice and not (re.search(r"\bRANDOM=", text) and "RANDOM" in words):
            yield EndpointMention(kind, "", number, words[:LONGEST])


def runs_on_others(text: str) -> bool:
    """Whether one host runs this script for the others; what its remarks say of them does not count."""
    return _ON_OTHERS.search(_REMARK.sub("", text)) is not None


def drawn_by_each(text: str, line: str) -> str:
    """The option to which every host that reads this text of a line gives a value, if they meet by it."""
    kinds = ("own id", "own port", *(() if line.startswith("ssh ") else ("own address",)))
    found = next(filter(None, (_OWN[kind].search(text) for kind in kinds)), None)
    option = re.findall(r"--?[\w-]+|\w+(?==)", found[0])[0] if found else ""
    several = re.search(r"--nnodes[= ][\"']?(?:[2-9]|\d\d|\$)", line) and not re.search(
        "--standalone|localhost", text
    )
    unused = "master" in option.lower() and re.search("--rdzv[_-]endpoint", text)
    return option if several and not (unused or "RANDOM=" in text or runs_on_others(text)) else ""


def starter(text: str) -> tuple[int, str] | None:
    """The first line that names a launcher outside of a comment or a message, and its words."""
    for number, line in _lines(text):
        if _STARTER.search(line) and not re.match(r"\s*(?:echo|printf|pip3?|conda|apt|apt-get)\b", line):
            return number, line.strip()[:LONGEST]
    return None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines without comments."""
    for number, line in enumerate(text.splitlines(), start=1):
        code = re.sub(r"(?:^|\s)#.*", "", line[:4000])
        if code.strip():
            yield number, code
