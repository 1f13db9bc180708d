"""Slips of a launch: what its shell, scheduler or launcher takes for something else than what is meant."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import pairwise, takewhile
from os.path import basename, join, normpath

from doctor.job.launch.endpoint_mentions import runs_on_others
from doctor.job.launch.indirect_options import read_directives
from doctor.job.launch.launchers import COMMANDS
from doctor.job.launch.launchers.deepspeed import DEEPSPEED
from doctor.job.launch.launchers.mpirun import MPIRUN
from doctor.job.launch.launchers.srun import SRUN
from doctor.job.launch.launchers.torchrun import TORCHRUN
from doctor.job.launch.options import OF_AN_EDITOR, read_options
from doctor.job.launch.shell import ShellScript
from doctor.job.launch.shell_flow import ShellCommand
from doctor.job.launch.sizes import configuration_of
from doctor.job.launch.slips import Slip
from doctor.job.launch.wrappers import is_known, program_name
from doctor.text.hostprogram import sections

Read = Callable[[ShellCommand, str], str | None]
_WORDS = sections(__file__, "misread.txt")
_PATTERN = {name: re.compile(pattern) for name, pattern in _WORDS["patterns"].items()}
DEEPEST = 75
"""The most characters of a TMPDIR in which a data loader finds room for the names of its sockets."""
_DIRECTIVE = rf"(?m)^{SRUN.directive}[ \t]+-.*"
_BEGINS = r"(?:\s|\b(?:if|then|else|do|time)\s|[!{(])*"
_OF_PBS = re.compile(r"(?m)^#PBS[ \t]+-l[ \t]+(?:select|nodes)=(\d{1,6})(?!.*\+)")
_MANY = re.compile(rf"hetjob|packjob|(?:het|pack)-group|(?m:^{SRUN.directive}.*\s(?:--array|-a)\b)")


def without_comments(text: str) -> str:
    """The script as it is meant: comments and blanks tear nothing apart, and zsh uses all words of a list."""
    for name in re.findall(r"(?m)^\s*(\w+)=\(", text) if re.match(r"#!.*\bzsh", text) else ():
        text = re.sub(rf"\$(?:{name}\b(?!\[)|\{{{name}\}})", rf"${{{name}[@]}}", text)
    text = re.sub(_WORDS["slips"]["torn"], lambda found: re.sub(r",[ \t]+", ",", found[0]), text)
    return _PATTERN["commented"].sub(lambda found: "\\\n" * found[0].count("\n"), text)


def misread(lines: Sequence[ShellCommand], script: ShellScript, text: str, read: Read) -> Iterator[Slip]:
    """The slips of a script that starts these ranks; `text` is its own, and `read` returns a file."""
    for found in _PATTERN["commented"].finditer(text):
        yield _at(text, "comment", found.start())
    if not re.search(r"<<|\bsbatch\b", text):  # it may write another script
        yield from _batch(text, all(one.background for one in lines))
        yield from _fewer_nodes(lines, text, script)
        yield from _of_lists(lines, text)
    plain = re.sub(r"(?m)(?:^|\s)#(?!SBATCH|PBS|BSUB).*", lambda found: " " * len(found[0]), text)
    for kind, pattern in _WORDS["slips"].items():
        of_one_shell = kind == "piped" and re.search(r"\blastpipe\b|\A#!.*\b(?:z|k)sh\b", text)
        if (slip := re.search(pattern, plain)) and not of_one_shell:
            slipped = _at(text, kind, slip.end() - 1, name=slip.groupdict().get("name", ""))
            sure = kind == "forward" and _PATTERN["by variables"].search(slip[0] + plain[slip.end() :])
            yield replace(slipped, needed=True) if sure else slipped
    if len(script.env.get("TMPDIR", "")) > DEEPEST:
        yield _at(text, "deep", text.rfind("TMPDIR="))
    for found in _PATTERN["limits"].finditer(text):
        yield _at(text, "limit", found.start())
    for one in lines:
        for word in one.words:
            odd = re.match(rf"{OF_AN_EDITOR.pattern}[\w-]+|[^'\"\s]*[“”‘’]", word)
            if odd and (at := re.search(rf"(?:^|\s){re.escape(odd[0])}", text)):
                yield _at(text, "editor", at.end(), word)
        for kind, pattern in _WORDS["commands"].items():
            lost = re.search(pattern, "\t".join(one.words))
            name = next(iter(sorted({"MASTER_ADDR", "RANK"} & one.names)), "") if kind == "drops" else ""
            allowed = kind == "asroot" and (one.on or re.search(_WORDS["parts"]["another user"], text))
            if lost and not allowed and (name or kind != "drops"):
                said = lost[1].replace("\t", " ")[:160]
                yield Slip(kind, name, one.line, said, needed=kind not in ("taken", "hurry"))
        yield from _behind(one)
        yield from _of_trainer(one, read)
        yield from _numberless(one, read)
        yield from _deepspeed(one, read)
        for given in (
            _PATTERN["config"].finditer(" ".join(one.words)) if (one.folder, "") in script.needs else ()
        ):
            if not one.apart and not _is_made(given[1], script.text):
                yield Slip("config", "", one.line, normpath(join(one.folder or "", given[1])))
    ports: dict[bool, list[str]] = {True: [], False: []}
    folders = {one.folder or "" for one in lines}
    folder = folders.pop() if len(folders) == 1 and len(re.findall(r"\bcd\s", text)) < 2 else ""
    for command in commands_of(text):
        filled = re.sub(r"\$\{?(\w+)\}?", lambda found: script.env.get(found[1], found[0]), command)
        ports["--head" in filled] += _PATTERN["ray"].findall(filled)
        if there := _written(filled, script):
            yield _at(text, "bind", text.find(command[:12]), there)
        inner = _PATTERN["over"].sub("", filled)  # of what ssh starts, the paths are of one host alone
        apart = (row for row in _of_hosts(inner) if row[0] in ("network", "given") and inner != filled)
        for file in _PATTERN["env file"].findall(filled):
            for number, row in enumerate(script.files.get(file, "").splitlines(), 1):
                if _PATTERN["in quotes"].match(row):
                    yield Slip("quotes", "", number, row, file)
        for kind, said, like in (*_of_hosts(filled), *apart):
            path = normpath(join(folder, said)) if kind == "run" else said
            made = "*.sh" in text or _is_made(said.removeprefix("./"), script.text)
            if kind == "run" and (made or path[:1] != "/"):
                continue
            if like or not path or not _is_made(path, script.text):
                yield _at(text, kind, text.find(command[:12]), path, like)
    for port in {*ports[False]}.difference(ports[True]) if ports[True] else ():
        yield _at(text, "joins", text.rfind(port), like=", ".join(ports[True]))


def commands_of(text: str) -> list[str]:
    """The commands of a script, each on one line."""
    code = re.sub(r"(?m)(?:^|[ \t])#.*", "", text.replace("\\\n", " "))
    return [re.sub(f"^{_BEGINS}", "", each).rstrip() for each in re.split(r"[;|\n]|(?<!>)&(?!>)", code)]


def misspelled(text: str) -> Iterator[Slip]:
    """Commands that no shell has, and whose names are nearly those of others."""
    known = {"export", "source", "module", "python", *COMMANDS}
    code = re.sub(r"(?ms)<<-?\s*\\?['\"]?(\w+)['\"]?$.{0,8000}?^\s*\1$", "", text)
    for said in sorted({command.partition(" ")[0] for command in commands_of(code)}):
        if said in known or not re.fullmatch("[a-z]{5,12}", said):
            continue
        near = get_close_matches(said, known, 1, 0.87 if len(said) > 7 else 0.8)
        other = near and near[0] not in said and said[0] == near[0][0]
        if other and not re.search(
            rf"{said}\s*\(\)|\b(?:function|alias|in|which)\s+{said}\b|\b{said}=", text
        ):
            place = re.search(rf"(?m)^[^#\n]*?\b{said}\b", text)
            yield _at(text, "typo", place.start() if place else 0, like=near[0])


def _written(command: str, script: ShellScript) -> str:
    """The folder of the file that the shell opens for what a launcher prints, if nothing makes it."""
    starts = any(program_name(word) in COMMANDS for word in command.split()[:9])
    log = re.search(r">\s*[\"']?(/[\w./-]+)/[^/\s]*", command)
    if not (starts and log) or runs_on_others(command) or script.made & {log[1], "*"}:
        return ""
    made = rf"\b(?:mkdir|install|makedirs|clone|ln|cp|mv|tar|unzip)\b[^\n]*\b{re.escape(basename(log[1]))}\b"
    return "" if re.search(made, script.text) else log[1]


def _is_made(path: str, text: str) -> bool:
    return re.search(_WORDS["parts"]["makes"] + re.escape(path), text) is not None


def _at(text: str, kind: str, place: int, words: str = "", like: str = "", name: str = "") -> Slip:
    line = text.count("\n", 0, max(place, 0))
    return Slip(
        kind,
        name,
        line + 1,
        words or text.split("\n")[line].strip()[:160],
        needed=not name and kind not in _WORDS["parts"]["doubtful"].split(),
        like=like,
    )


def _batch(text: str, in_background: bool) -> Iterator[Slip]:
    """Directives that the scheduler does not read, and steps that it ends with their script."""
    begun = re.search(r"(?m)^[ \t]*[^#\s]", text)
    if begun and (late := re.search(_DIRECTIVE, text[begun.start() :])):
        given = read_directives("\n".join(re.findall(_DIRECTIVE, text[begun.start() :]))).variables
        needed = given.keys() - read_directives(text).variables.keys()
        at = begun.start() + late.start()
        yield _at(text, "late" if needed else "unread", at, like=_at(text, "", begun.start()).words)
    ended = re.search(rf"{_DIRECTIVE}|{_WORDS['parts']['ends all']}", text)
    alone = in_background and ended and not re.search(r"\bwait\b", text)
    if alone and (ends := _PATTERN["ends"].search(text)):
        yield _at(text, "wait", ends.start())


def _of_lists(lines: Sequence[ShellCommand], text: str) -> Iterator[Slip]:
    """Lists of options of which only the first word is used, and of hosts that ssh reads to their end."""
    for name, words in _PATTERN["list"].findall(text) if not re.match(r"#!.*\bzsh", text) else ():
        first, second = [*re.sub(r"#.*", "", words).split(), "", ""][:2]
        used = re.search(rf"(?m)^(?!\s*#).*\s\"?\$(?:{name}|\{{{name}\}})\"?(?=\s|$)", text)
        lost = second and any(first in one.words and second not in one.words for one in lines)
        if used and lost and not re.search(rf"\b{name}=(?!\()", text):
            at = _at(text, "list", used.end())
            yield Slip("list", name, at.line, at.words)
    for found in _PATTERN["reads"].finditer(re.sub(r"(?m)^\s*#.*", lambda found: " " * len(found[0]), text)):
        for call in _PATTERN["ssh"].finditer(found[2]) if found[1] or found[3] else ():
            if not call[2] and not re.search(r"(?:^|\s)-[A-Za-z]*[nf]", call[1]):
                yield _at(text, "emptied", found.start(2) + call.start(1))


def _fewer_nodes(lines: Sequence[ShellCommand], text: str, script: ShellScript) -> Iterator[Slip]:
    """A launcher for more hosts than its batch script asks for, unless several such jobs may be one; and one
    that this script starts on the first of them alone.
    """
    asks, of_pbs = read_directives(text).variables, _OF_PBS.search(text)
    nodes, devices = asks.get("SLURM_NNODES", ""), asks.get("SLURM_GPUS_ON_NODE", "")
    nodes = of_pbs[1] if of_pbs else nodes
    spread = (
        script.unread
        or lines[0].words[0][:1] in "$`"
        or runs_on_others(re.sub(rf"{_DIRECTIVE}|#PBS.*", "", script.text))
    )
    for one in lines:
        known, (hosts, rank) = one.command.launcher, map(one.command.options.get, ("nnodes", "node_rank"))
        if known is None or known.outer or _MANY.search(text) or (rank and "SLURM_" not in rank):
            continue
        each = one.command.options.get("nproc_per_node", "")
        if re.fullmatch(r"\d{1,4} \d{1,4}", f"{each} {devices}") and int(each) > int(devices):
            place = re.search(rf"(?m)^{SRUN.directive}\s.*--(?:gres|gpu).*", text)
            yield _at(text, "devices", place.start() if place else 0, like=f"{devices} devices")
        asked = of_pbs or re.search(rf"(?m)^{SRUN.directive}\s.*?(?:-N|--nodes)\b.*", text)
        if asked and hosts and re.fullmatch(r"\d{1,6}", hosts) and int(hosts) > int((nodes or hosts)[:6]):
            yield _at(text, "nodes", asked.start(), like=f"{known.options.spelled('nnodes')}={hosts}")
        elif asked and hosts == nodes != "1" and not (spread or known.hosts_besides or one.apart):
            yield Slip(
                "alone",
                "",
                one.line,
                " ".join(one.words)[:160],
                like=f"{known.options.spelled('nnodes')}={hosts}",
            )


def _behind(one: ShellCommand) -> Iterator[Slip]:
    """Options of the launcher that stand behind its program, if without them it does not know its hosts."""
    known, given = one.command.launcher, one.command.options
    at = next((n for n, word in enumerate(one.words) if program_name(word) == one.command.program), 0)
    if known is None or known.outer or not at or given.keys() & {"hosts", "hostfile", "include"}:
        return
    pairs = pairwise(one.words[: at + 1])
    if any(word[:1] == "$" and (before[:1] != "-" or "=" in before) for before, word in pairs):
        return  # it may hold options
    own = {full for full, called in known.options.values.items() if re.match("n|master_|rdzv_|ranks", called)}
    words = " ".join(one.words[at + 1 :]).replace("=", " ").split()
    names = [word for word in words if word[:2] == "--" and word[2:].replace("-", "_") in own]
    nodes = re.search(rf"{known.options.spelled('nnodes')} (\S+)".replace("_", "[_-]"), " ".join(words))
    lacks = "--master" in " ".join(names) and not given.keys() & {"master_addr", "rdzv_endpoint"}
    lacks &= known is TORCHRUN and "PET_MASTER_ADDR" not in one.names
    number = given.get("nnodes") if "nnodes" in given else nodes[1] if nodes else "1"
    if len(names) > 1 and number != "1" and (lacks or "nnodes" not in given):
        yield Slip("behind", "", one.line, " ".join(names), like=one.command.program)


def _of_trainer(one: ShellCommand, read: Read) -> Iterator[Slip]:
    """Sizes of Lightning's Trainer that are not those of srun: it stops at its start."""
    program = next((word for word in one.words if word.endswith(".py")), "")
    said = f"{' '.join(one.words)} {read(one, program) or ''}"
    for size, option in (("num_nodes", "nnodes"), ("devices", "each")) if one.words[0] == "srun" else ():
        given = re.findall(rf"\b[Tt]rainer(?:\.|\((?:[^()]*?\b)?){size}\s*[= ]\s*(\d+)", said)
        asked = one.command.options.get(option, "")
        if len(given) >= max(1, said.count("Trainer(")) and asked not in (*given, ""):
            like = f"{SRUN.options.spelled(option).replace('_', '-')}={asked}"
            yield Slip("trainer", "", one.line, f"{size}={given[0]}", like=like)


def _numberless(one: ShellCommand, read: Read) -> Iterator[Slip]:
    """A program that torch reads the ranks of from variables that its launcher does not set."""
    at = next((n for n, word in enumerate(one.words) if word.endswith(".py")), 0)
    said = read(one, one.words[at]) or ""
    known = one.command.launcher
    wrapped = any(word.endswith(".sh") or word[:2] == "./" for word in one.words[:at])
    if known not in (MPIRUN, SRUN) or wrapped or "RANK" in one.names or "init_process_group(" not in said:
        return
    if not _PATTERN["numbered"].search(said):
        modules = re.findall(r"(?m)^\s*(?:from|import)\s+(\w+)", said)  # one of its own may set them
        own = any(read(one, f"{name}{end}") for name in modules for end in (".py", "/__init__.py"))
        gives = known.ranks[0]
        like = f"{known.name} {gives.rank} {gives.world[0]} {gives.local_rank}"
        yield Slip("numberless", "", one.line, one.words[at], needed=not own, like=like)


def _deepspeed(one: ShellCommand, read: Read) -> Iterator[Slip]:
    """What DeepSpeed refuses in its configuration, and it and Open MPI in a hostfile."""
    _, file, config = configuration_of(one.words, lambda said: read(one, said))
    parts = ((name, config.get(name)) for name in ("fp16", "bf16", "bfloat16"))
    on = [name for name, part in parts if isinstance(part, dict) and part.get("enabled") is True]
    if "fp16" in on and len(on) > 1:
        yield Slip("types", "", one.line, f"{on[0]} and {on[1]}", like=basename(file))
    flags = {"-x", "-mca", "--mca", "--allow-run-as-root"}
    open_mpi = one.command.launcher is MPIRUN and not flags.isdisjoint(one.words)
    own = takewhile(lambda word: not re.search(r"python|\.py$|\.sh$", word), one.words)
    hydra = one.command.launcher is MPIRUN and not {"-f", "-ppn", "-genv", "-genvall"}.isdisjoint(own)
    entry = r"[^:]*$|.*:.*:" if open_mpi else r"(?!.*\sslots=)" if hydra else r"\S+\s+slots=\d"
    known = open_mpi or hydra or one.command.launcher is DEEPSPEED
    said = one.command.options.get("hostfile", "") if known else ""
    rows = [row.partition("#")[0].strip() for row in ((said and read(one, said)) or "").splitlines()]
    for number, row in enumerate(rows, 1):
        again = not (open_mpi or hydra) and row.split()[:1] in [
            each.split()[:1] for each in rows[: number - 1]
        ]
        if row and (again or not re.match(entry, row)):
            kind = "colon" if hydra else "twice" if again else "entry"
            like = basename(one.words[0]) if hydra else "Open MPI" if open_mpi else "DeepSpeed"
            yield Slip(kind, "", number, row[:160], basename(said), like=like)
    shared = read(one, DEEPSPEED.env_file) if rows and one.command.launcher is DEEPSPEED else None
    for number, row in enumerate((shared or "").splitlines(), 1):
        if "=" not in row:
            yield Slip("variables", "", number, row[:160] or "an empty line", DEEPSPEED.env_file)
    found = (re.match(r"(\S+)\s+slots=(\d{1,5})", row) for row in rows)
    hosts = {each[1]: int(each[2]) for each in found if each}
    asked = one.command.option("nnodes") or ""
    if hosts and not hydra and re.fullmatch(r"\d{1,6}", asked) and int(asked) > len(hosts):
        yield Slip("few", "", one.line, f"--num_nodes {asked}", like=f"{len(hosts)} in {basename(said)}")
    given = read_options(one.words[1:], DEEPSPEED.options).values if one.command.launcher is DEEPSPEED else {}
    counts = [name for name in ("nproc_per_node", "nnodes") if given.get(name, "-")[:1].isdigit()]
    if counts and any(re.match(r"[\w.]", given.get(name, "")) for name in ("include", "exclude")):
        yield Slip("both", "", one.line, f"{DEEPSPEED.options.spelled(counts[0])} {given[counts[0]]}")
    for kind in ("include", "exclude") if hosts else ():
        for part in (one.command.option(kind) or "").split("@"):
            host, _, slots = part.partition(":")
            if part and host not in hosts:
                yield Slip(kind, "", one.line, host, like=", ".join(get_close_matches(host, hosts, 3, 0)))
            elif part and any(n.isdecimal() and int(n) >= hosts[host] for n in slots.split(",")):
                yield Slip("slots", "", one.line, part, like=f"{host} slots={hosts[host]}")


def _of_hosts(command: str) -> Iterator[tuple[str, str, str]]:
    """Containers that no other host reaches, and the paths that a command executes or mounts, or that its
    container has elsewhere.
    """
    engine = _PATTERN["engine"].match(command)
    own = re.match(rf"(.*\s)(?:\S*/)?['\"]?(?:{'|'.join(COMMANDS)})\s", f" {engine[2]}" if engine else "")
    makes = engine is not None and engine[1][0] not in "sa"
    bare = re.sub(r"(\s-[evwu]\s+|=)[\"']?\$\S+", " ", own[1] if own else "")
    if own and makes and " run " in command and not _PATTERN["reached"].search(bare):
        yield "network", "", ""
    given, ranks = _PATTERN["given"].search(own[1] if own else ""), _PATTERN["ranks"].search(command)
    devices = given and (int(given[1]) if given[1] else given[2].count(",") + 1)
    if makes and devices and ranks and devices < int(ranks[1]):
        yield "given", "", f"{devices} device{'s' * (devices > 1)}"
    (program, *_) = [*re.findall(r"\s(\S+\.py)\b", command), ""]
    clear = own and makes and not re.search(r"[$\"']|--mount|--volumes|-v/", own[1])
    pairs = _PATTERN["pairs"].findall(own[1]) if own and clear else ()
    inside = any(f"{program}/".startswith(f"{there}/") for _, there in pairs)
    for here, there in pairs if not inside else ():
        if here.count("/") > 1 and program.startswith(f"{here}/"):
            yield "outside", f"-v {here}:{there} … {program}", there + program.removeprefix(here)
    for found in (
        _PATTERN["mounted"].finditer(own[1]) if own and engine and command.startswith(engine[1]) else ()
    ):
        yield "volume" if makes and found[1] else "bind", found[1] or found[2], ""
    words = command.replace('"', "").replace("'", "").split()
    known = COMMANDS.get(program_name(words[0])) if words else None
    if known and (known.outer or {"--no-python", "--no_python"} & {*words}):
        rest = read_options(words[1:], known.options).rest
        if rest and _PATTERN["runs"].fullmatch(rest[0]) and not is_known(rest[0]):
            yield "run", rest[0], ""
