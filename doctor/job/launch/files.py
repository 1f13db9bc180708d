"""The files of --launch: dumps of environments, env files and launch scripts. Nothing in them is run."""

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from operator import itemgetter
from pathlib import Path

from doctor.errors import InputErrors, Mistake
from doctor.job.launch.allocation import is_scheduled
from doctor.job.launch.by_number import by_host, by_number
from doctor.job.launch.command import kept_words
from doctor.job.launch.endpoint_mentions import (
    EndpointMention,
    in_program,
    mentioned,
    own_values,
    runs_on_others,
    settings,
    starter,
)
from doctor.job.launch.env_files import is_dump, is_env_file, read_dump, read_env_file
from doctor.job.launch.indirect_options import configuration
from doctor.job.launch.launchers import LAUNCHERS, MASTERS, PORTS, RANK_NAMES
from doctor.job.launch.manifests import PORT, has_default_port, pods_elsewhere, script_of
from doctor.job.launch.marks import marks_in, over_gloo
from doctor.job.launch.misread import misread, misspelled, without_comments
from doctor.job.launch.one_launch import one_launch
from doctor.job.launch.process_env import Launch, NearbyTable, ProcessEnv
from doctor.job.launch.rank_env import master_of
from doctor.job.launch.shares import Slots, hosts_of, lacks_hosts, share_of
from doctor.job.launch.shell import ShellScript, read_script
from doctor.job.launch.shell_flow import ShellCommand
from doctor.job.launch.shell_tokens import ShellError
from doctor.job.launch.sizes import sizes_in
from doctor.job.launch.slips import Slip
from doctor.job.launch.table_reference import is_by_device, told_tables
from doctor.job.launch.unknowns import other_jobs
from doctor.job.launch.variables import kept
from doctor.text.redact import redact
from doctor.text.textfile import read_text, refuse, shown

_SLOTS = re.compile(r"\s*([\w.-]{1,255})(?:(?:\s+slots=|:)(\d{1,4}))?\s*")
"""A line of a hostfile that the script writes."""
LIMIT = 256_000
"""The most bytes of one file: more than any environment or launch script needs."""
MOST_NEEDS = 32
NOTHING = "contains no variable of a job and no command that starts one"
NOT_KNOWN = "contains no variable of a job, and what `{}` starts is not known"
NOT_OF_A_LAUNCH = "is neither the configuration of a launcher nor a Kubernetes manifest"


def read_launch_files(paths: Sequence[Path], slots: Slots = lambda _: {}, allocated: bool = False) -> Launch:
    """The contents of all files together; `slots` reads the hostfiles that they mention. `allocated`: they
    are started in an allocation.

    Raises InputErrors with every mistake of every file.
    """
    paths = list({os.path.realpath(path): path for path in paths}.values())
    read: list[Launch] = []
    mistakes: list[Mistake] = []
    names = _names(paths)
    for path, name in zip(paths, names, strict=True):
        try:
            one = _read_file(path, name, slots)
        except InputErrors as error:
            mistakes += error.mistakes
            continue
        read.append(one)
    told = [replace(each, hostless=each.hostless and not allocated) for one in read for each in one.told]
    sizes = [one.sizes for one in read if any(each.command for each in one.told)]
    told = told or [ProcessEnv(name, None, {}, whole=False) for name in names[:1]]
    refuse(
        mistakes, "--launch takes what `env` printed for a rank, files of NAME=value, scripts and manifests"
    )
    dumps = [one for one in told if not one.command and (RANK_NAMES & one.env.keys() or is_by_device(one))]
    return Launch(
        name=names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}" if names else "no file",
        told=tuple(told),
        complete=len(dumps) > 1 and 2 * len(dumps) > len(told) and not any(each.command for each in told),
        beside=tuple(each for one in read for each in one.beside),
        unread=tuple(each for one in read for each in one.unread),
        mentioned=tuple(each for one in read for each in one.mentioned),
        slips=tuple(each for one in read for each in one.slips),
        needs=tuple(dict.fromkeys(each for one in read for each in one.needs))[:MOST_NEEDS],
        configs=tuple(dict.fromkeys(each for one in read for each in one.configs)),
        scheduled=any(each.scheduled for each in read),
        by_host=read[0].by_host if len(read) == 1 else None,
        sizes=_agreed(sizes),
    )


def _agreed(sizes: Sequence[Mapping[str, int]]) -> Mapping[str, int]:
    """Those that are the same for all commands or files."""
    return sizes[0] if sizes and all(each == sizes[0] for each in sizes) else {}


def _names(paths: Sequence[Path]) -> list[str]:
    """The names of the files, without folders if they are distinct."""
    short = [path.name for path in paths]
    return short if len(set(short)) == len(short) else [str(path) for path in paths]


def _read_file(path: Path, name: str, slots: Slots) -> Launch:
    text = read_text(path, LIMIT)
    dos, text = "\r\n" in text, text.replace("\r\n", "\n")
    file, home = str(path), os.path.dirname(os.path.abspath(path))
    if path.suffix.lower() in (".yaml", ".yml"):
        return _read_yaml(text, file, name, home, slots)
    if is_dump(text):
        return Launch(name, (_of_variables(file, name, *read_dump(text)),), complete=False)
    try:
        plain = without_comments(text)
        script = read_script(plain, home, _read_sourced)
    except ShellError as error:
        if not is_env_file(text):
            raise InputErrors([Mistake(file, error.line, error.message)]) from None
        script = ShellScript((), {})
    if not script.lines and is_env_file(text):
        told = _of_variables(file, name, read_env_file(text))
        return Launch(name, (told,), complete=False, mentioned=_mentions(text, name))
    found = _of_script(script, text, file, name, home, slots)
    if cut := _cut_line(script, text):
        message = "ends with a backslash and a blank: the shell does not join it with the next line"
        raise InputErrors([Mistake(file, cut, message)])
    if dos:
        message = f"ends its lines with CR LF, which no shell runs: sed -i 's/\\r$//' {shown(path.name)}"
        raise InputErrors([Mistake(file, None, message)])
    return found


def _cut_line(script: ShellScript, text: str) -> int | None:
    """A line of a kept command that ends with an escaped blank, which an editor does not show."""
    if not any(word.isspace() for one in script.lines for word in one.words):
        return None
    lines = enumerate(text.splitlines(), start=1)
    return next((number for number, line in lines if re.search(r"\\[ \t]+$", line)), None)


def _read_yaml(text: str, file: str, name: str, home: str, slots: Slots) -> Launch:
    """A configuration of a launcher, or a Kubernetes manifest."""
    commands = script_of(text, file)
    for launcher in () if commands is not None else LAUNCHERS:
        options = configuration(text, file, launcher)
        if options is not None:
            commands = shlex.join((*launcher.commands[:1], launcher.subcommand, *options))
    if commands is None and starter(text) is None:
        raise InputErrors([Mistake(file, None, NOT_OF_A_LAUNCH)])
    if commands is None:
        return _of_script(ShellScript((), {}), text, file, name, home, slots)
    found = _of_script(read_script(commands, home, _read_sourced), commands, file, name, home, slots)
    told = [replace(each, source=name, folder=None, hostless=False) for each in found.told]
    port = EndpointMention("port", PORT, 0, "a PyTorchJob's default", name)
    default = [port] if has_default_port(text) else []
    masters = re.findall(r"(?im)^[^#\n]*\bcoordinator\w*[= ]['\"]?([\w.-]+)", commands)
    masters += [master.address for each in told if (master := master_of(each))]
    slips = (*found.slips, *(replace(each, file=name) for each in pods_elsewhere(text, file, masters)))
    return replace(found, told=tuple(told), mentioned=(*default, *_mentions(text, name)), slips=slips)


def _of_script(script: ShellScript, text: str, file: str, name: str, home: str, slots: Slots) -> Launch:
    lines, others = one_launch(script.lines)
    mentions = _mentions(text, name, [(one.line, " ".join(one.words)) for one in lines])
    lines, compared = by_number(text, lines, lambda own: read_script(text, home, _read_sourced, own).lines)
    numbered = by_host(text, name, lines, lambda own: read_script(text, home, _read_sourced, own).lines)
    mentions += tuple(replace(each, file=name) for each in (*_taken(text, home), *compared))
    for one in lines:
        program = next((word for word in one.words if word.endswith(".py")), "")
        calls = settings(in_program(_read_of(one, program) or ""))
        mentions += tuple(replace(each, file=os.path.basename(program)) for each in calls)
    told = _processes(lines, script, name, home, slots)
    marks, gloo = marks_in(text), over_gloo(text)
    told = [replace(each, home=home, marks=marks, over_gloo=gloo) for each in told]
    unread = [f"{name} {how} {shown(what)}, which could not be read here" for how, what in script.unread]
    named = starter(text) if not script.lines and not script.strange else None
    unread += [
        f"what line {line} of {name} starts was not understood: `{redact(words)}`"
        for line, words in (*script.strange, *([named] if named else ()))
    ]
    if not told and not unread:
        message = NOT_KNOWN.format(redact(script.last)) if script.last else NOTHING
        raise InputErrors([Mistake(file, None, message)])
    gone = [_not_here(each, script.made) for each in told]
    told = [replace(each, folder=None) if lost else each for each, lost in zip(told, gone, strict=True)]
    unread += [
        f"{name} goes to {shown(os.path.relpath(folder, home))}, which could not be read here"
        for folder in dict.fromkeys(filter(None, gone))
    ]
    unread += other_jobs(_processes(others, script, name, home, slots))
    needs = [each for each in script.needs if each[1] != "hosts" or not Path(each[0]).exists()]
    scheduled = is_scheduled(script.text)
    again = runs_on_others(text) or re.search(r"\beval\b|\s-\w*c\b|envsubst|<<|\$\{\w+/", script.text)
    said = [each for each in script.slips if each.needed or not scheduled]
    said = [each for each in said if each.kind != "literal" or not again]
    said = said if "kubectl" not in script.text else []
    said += misspelled(text)
    if lines:
        files = {} if any(one.apart for one in lines) else script.files
        said += misread(
            lines,
            script,
            text,
            lambda one, said: _read_of(one, said) or files.get(os.path.basename(said)),
        )
    if lines or script.unread:
        said += [Slip(kind, "", 0, path) for path, kind in needs if kind]
    own = (replace(e, file=e.file or name, words=redact(e.words), like=redact(e.like)) for e in said)
    slips = tuple(dict.fromkeys(own))
    paths = (each.path for each in slips)
    found, beside = _find_tables(told, script.copied, name)
    sizes = [
        sizes_in(one.words, script.text, partial(_read_of, one), alone="*" not in one.files) for one in lines
    ]
    return Launch(
        name,
        tuple(found),
        complete=False,
        beside=tuple(beside),
        unread=tuple(unread),
        mentioned=mentions,
        slips=slips,
        sizes=_agreed(sizes),
        needs=(*(path for path, _ in needs if lines or script.unread), *filter(None, paths)),
        scheduled=scheduled,
        by_host=numbered,
        configs=tuple(path for one in lines if (path := _configured(one, script.text)) and "$" not in path),
    )


def _configured(one: ShellCommand, text: str) -> str:
    """The path of its launcher's configuration on the hosts; "" if it has none."""
    known = one.command.launcher
    if (
        known is None
        or not (known.options.file and one.folder and one.command.program)
        or (one.apart and not one.on)
    ):
        return ""
    before = " ".join(one.words).partition(f"{one.command.program} ")[0]
    found = re.findall(rf"--{known.options.file}[= ](\S+)".replace("_", "[_-]"), before)
    default = "" if re.search("HF_HOME|XDG_CACHE_HOME", text) else known.configuration
    path = (found or [default])[-1].replace("$HOME/", "~/")
    return path if path[:1] in "~" else os.path.normpath(os.path.join(one.folder, path))


def _mentions(text: str, name: str, commands: Sequence[tuple[int, str]] = ()) -> tuple[EndpointMention, ...]:
    found = (*mentioned(text), *own_values(text, commands), *settings(text))
    return tuple(replace(each, file=name, words=redact(each.words)) for each in found)


def _taken(text: str, home: str) -> Iterator[EndpointMention]:
    """What the commands take from the environment in which each host starts the script, and the default."""
    unlikely = "77177"
    for name in (*MASTERS, *PORTS, "NNODES", "NODE_RANK") if not runs_on_others(text) else ():
        if re.search(rf"\b(?:{name}|swift|llamafactory-cli)\b", text):
            read = (read_script(text, home, _read_sourced, {name: to}).lines for to in (unlikely, ""))
            for one, other in zip(*map(itemgetter(0), map(one_launch, read)), strict=False):
                has, had = (each.command.options or each.env for each in (one, other))
                for key, value in has.items():
                    before, took, after = value.partition(unlikely)
                    default = had.get(key, "") if other.command.program == one.command.program else ""
                    default = default.removeprefix(before).removesuffix(after)
                    if key == "master_addr" and "master_addr" not in text:
                        default = default or "127.0.0.1"  # what torchrun takes without one
                    if took and not re.search(r"[$`]", default):
                        yield EndpointMention("login", default, one.line, name)


def _not_here(each: ProcessEnv, made: frozenset[str]) -> str:
    """The folder to which the script goes, if it does not exist here and the script does not create it."""
    folder = each.folder or ""
    if not each.home or not folder.startswith(f"{each.home}/") or os.path.isdir(folder) or "*" in made:
        return ""
    return "" if any(path == folder or path.startswith(f"{folder}/") for path in made) else folder


def _read_sourced(path: str) -> str | None:
    """A file that a script sources; None if it is not here."""
    try:
        return read_text(Path(path), LIMIT) if os.path.isfile(path) else None
    except InputErrors:
        return None


def _read_of(one: ShellCommand, said: str) -> str | None:
    """A file that a command names, as it is when the command starts."""
    if not one.folder or one.apart:
        return None
    path = os.path.normpath(os.path.join(one.folder, said))
    here = said.endswith(".py") or _is_untouched(one, path)
    return _read_sourced(path) if here else one.files.get(path) or None


def _is_untouched(one: ShellCommand, path: str) -> bool:
    return path not in one.files and os.path.basename(path) not in one.files


def _shared(one: ShellCommand) -> Mapping[str, str]:
    """The variables of the file beside the script that its launcher hands to all ranks."""
    name = one.command.launcher.env_file if one.command.launcher else ""
    text = _read_sourced(os.path.join(one.folder or "", name)) if name and not one.apart else None
    return read_env_file(text) if text and is_env_file(text) else {}


def _find_tables(
    told: Sequence[ProcessEnv], copied: frozenset[str], name: str
) -> tuple[list[ProcessEnv], list[NearbyTable]]:
    """Check that the tables exist in the folder where the script is when it starts a rank.

    If a file is not here at all, the script expects it elsewhere; a copy made by the script is as good as its
    source.
    """
    found: list[ProcessEnv] = []
    lost: dict[tuple[str, str, str], list[str]] = {}
    for each in told:
        home = each.home or ""
        for table in told_tables([each]):
            source = os.path.normpath(os.path.join(home, table.text))
            if not table.beside or table.path == source or os.path.isfile(table.path):
                continue
            makes_it = any(fnmatchcase(os.path.basename(table.text), pattern) for pattern in copied)
            if makes_it or not os.path.isfile(source):
                each = replace(each, folder=home)
            else:
                folder = os.path.relpath(each.folder or home, home)
                lost.setdefault((source, table.said, table.text), []).append(folder)
        found.append(each)
    beside = [NearbyTable(*key, tuple(dict.fromkeys(folders)), script=name) for key, folders in lost.items()]
    return found, beside


def _of_variables(
    file: str, name: str, found: Mapping[str, str], twice: Sequence[tuple[int, str]] = ()
) -> ProcessEnv:
    """One process whose variables are all known. `twice` are names with two values: (line, name)."""
    for line, variable in twice:
        if variable in RANK_NAMES:
            message = f"{shown(variable)} is set a second time: give each rank a file of its own"
            raise InputErrors([Mistake(file, line, message)])
    env = kept(found)
    if not env:
        raise InputErrors([Mistake(file, None, NOTHING)])
    dump = ProcessEnv(name, _host(found), env)
    needs_folder = any(not table.text.startswith("/") for table in told_tables([dump]))
    folder = found.get("PWD", "")
    return replace(dump, folder=folder) if needs_folder and folder.startswith("/") else dump


def _host(env: Mapping[str, str]) -> str | None:
    name = env.get("HOSTNAME") or env.get("SLURMD_NODENAME") or ""
    return name if name and not name.startswith("localhost") and len(name) < 256 else None


def _processes(
    lines: Sequence[ShellCommand], script: ShellScript, name: str, home: str, slots: Slots
) -> list[ProcessEnv]:
    if not script.lines:
        env = kept(script.env)
        return [ProcessEnv(name, None, env, whole=False, folder=home)] if env else []

    def told(one: ShellCommand, hostfile: Path) -> Mapping[str, int]:
        path = os.path.normpath(os.path.join(one.folder or "", hostfile))
        text, here = _read_of(one, path), one.folder and not one.apart
        if here and (_is_untouched(one, path) or (text and text == _read_sourced(path))):
            return slots(Path(path))
        rows = [_SLOTS.fullmatch(line) for line in (text or "").splitlines() if line.strip()]
        hosts = {row[1]: int(row[2] or 0) for row in rows if row}
        return hosts if len(hosts) == len(rows) else {}

    return [
        ProcessEnv(
            f"{name}:{one.line}" + (f" ({one.turn})" if one.turn else ""),
            None,
            kept({**_shared(one), **one.env}),
            (one.command.program,) if one.bare else kept_words(one.words),
            whole=False,
            loop=one.loop,
            folder=one.folder,
            unknown=tuple(sorted(one.names - one.env.keys())),
            behind=one.behind,
            chosen=bool(one.branches) or one.one_of_hosts or ":" in one.words,
            apart=one.apart,
            on=one.on,
            share=share_of(one.words, one.command, partial(told, one)),
            hosts=hosts_of(one.words, one.command, script.text, partial(told, one)),
            hosts_change="*" in one.files and not {"hosts", "include"} & one.command.options.keys(),
            hostless=lacks_hosts(one.command, script.text, slots),
        )
        for one in lines
    ]
