"""What `--enter` accepts, and which command enters which host."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from posixpath import basename

from doctor.errors import UsageError
from doctor.model import Host
from doctor.text.hostprogram import sections
from doctor.text.redact import redact
from doctor.text.textfile import shown

HOST = "{host}"
"""The placeholder for the name of the host."""
NSENTER = "nsenter -t 1 -m -u -i -n -p --"
"""From a privileged pod into its node."""
PODS = ("kubectl", "oc")
"""Tools that run on the user's machine, because they find the pod by themselves."""
_OF_POD = "get pod -o jsonpath='{.spec.containers[*].image} {.status.containerStatuses[*].imageID}'"
_IMAGE_OF = {
    **dict.fromkeys(("docker", "podman", "nerdctl"), "inspect -f '{{.Image}}'"),
    **dict.fromkeys(("compose", "docker-compose"), "images -q"),
    **dict.fromkeys(PODS, _OF_POD),
}
"""What each tool is asked for the image of the container or pod whose name follows."""
ENGINES = ("docker", "podman", "nerdctl", "crictl", *PODS)
_PREFIXES = ("sudo", "env", "command", "nice")
_SHELLS = ("sh", "bash", "dash", "ash", "zsh")
_SHORT = re.compile(r"-([itdqT]*)(.*)")
"""Switches, which may share a dash, followed by one option with its value: -iu root."""
_SAID = sections(__file__, "command.txt")
_LONG = _SAID["switches"]
_OF_EXEC = re.compile(r"(?<!\S)(?:-[iq]+|--stdin|--quiet|(?:-c|--container)[ =](\S+))(?!\S)")
"""Options of `kubectl exec` that `kubectl get` does not know; the last names the container."""
_WITH_VALUE = {*_SAID["options"]["with value"].split()}


def check_entry(text: str) -> str:
    """The command, unchanged; raises UsageError for one that cannot work."""
    if not text.isprintable():
        raise UsageError(f"{shown(text)} has control characters in it")
    try:
        words = shlex.split(text)
    except ValueError:
        raise UsageError(f"{shown(text)} has an unmatched quote") from None
    if not words or words[0].startswith("-"):
        raise UsageError(f"{shown(text)} is not a command")
    tool, arguments = _split(words)
    if "exec" not in arguments:
        return text
    at = arguments.index("exec")
    compose = "compose" in arguments[:at] or tool == "docker-compose"
    if tool in PODS:
        _check_pod(text, arguments[at + 1 :])
    elif tool in ENGINES or compose:
        _check_container(text, arguments[at + 1 :], compose)
    return text


def tool_of(text: str) -> str:
    """The program that enters: docker, kubectl or another."""
    return _split(shlex.split(text))[0]


def entered(host: Host) -> str:
    """The command that enters this host."""
    return (host.enter or "").replace(HOST, shlex.quote(host.name))


def entered_with_image(host: Host) -> str:
    """The same command; it also tells the container its image, in words that no login shell refuses."""
    command = entered(host)
    if host.image:
        return f"{command} env CLUSTER_DOCTOR_IMAGE={shlex.quote(host.image)}"
    engine, _, rest = command.partition(" exec ")
    if shlex.join(command.split()) != command or not host.contained:
        return command  # a shell makes other words of it, or there is no image
    tool, options = _split(engine.split())
    kind = next((word for _, word in flags(options) if not word.startswith("-")), tool)
    names = [word for _, word in flags(rest.split()) if not word.startswith("-")]
    last = rest.split()[-1:] == (["--"] if kind in PODS else names)
    if not {tool, kind} <= _IMAGE_OF.keys() or len(names) != 1 or not last:
        return command
    ask = f"{engine} {_IMAGE_OF[kind]} "
    if kind not in PODS:
        return f'{engine} exec -e "CLUSTER_DOCTOR_IMAGE=`{ask}{names[0]} 2>/dev/null`" {rest}'
    for container in filter(None, _OF_EXEC.findall(rest)):
        ask = ask.replace("*", rf"?(@.name==\"{container}\")")
    ask += _OF_EXEC.sub("", rest.removesuffix("--"))
    return f'{command} env "CLUSTER_DOCTOR_IMAGE=`{ask} </dev/null 2>/dev/null`"'


def pod_entry(namespace: str | None, context: str | None, container: str | None) -> str:
    """The command that enters a pod, for each host of that name."""
    given = (("--context", context), ("-n", namespace), ("-c", container))
    options = [word for name, value in given if value for word in (name, shlex.quote(value))]
    return " ".join(["kubectl", "exec", "-i", *options, HOST, "--"])


def enter_all(hosts: Sequence[Host], text: str | None) -> tuple[Host, ...]:
    """`--enter` overrides the inventory. Raises UsageError if two hosts are the same container."""
    if text is not None:
        try:
            check_entry(text)
        except UsageError as error:
            raise UsageError(f"--enter: {error.message}.", error.hint) from None
        pods = tool_of(text) in PODS
        hosts = [
            replace(host, enter=text, enter_from="controller" if pods else host.enter_from) for host in hosts
        ]
    check_apart(hosts)
    return tuple(hosts)


def check_apart(hosts: Sequence[Host]) -> None:
    """Refuse two hosts that this machine enters by the same command: they are the same container."""
    seen: dict[str, str] = {}
    for host in hosts:
        if host.enter and host.enter_from == "controller":
            first = seen.setdefault(entered(host), host.name)
            if first != host.name:
                raise UsageError(
                    f"{shown(host.name)} and {shown(first)} are the same container: both are entered by "
                    f"{shown(redact(entered(host)))}.",
                    f"Write {HOST} where the name of each belongs: kubectl exec -i {HOST} --",
                )


def _split(words: Sequence[str]) -> tuple[str, list[str]]:
    """The tool after sudo and environment settings, and its arguments."""
    rest = list(words)
    while len(rest) > 1 and (basename(rest[0]) in _PREFIXES or rest[0].startswith("-") or "=" in rest[0]):
        rest.pop(0)
    return basename(rest[0]), rest[1:]


def flags(words: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The position and text of each word up to `--`, without the values of options."""
    skip = False
    for number, word in enumerate(words):
        if skip:
            skip = False
        elif word == "--":
            return
        elif word.startswith("-"):
            yield number, word
            skip = word in _WITH_VALUE or bool(re.fullmatch(r"-[itdqT]*[eucnwrsHf]", word))
        else:
            yield number, word


def _check_container(text: str, words: Sequence[str], compose: bool) -> None:
    found = list(flags(words))
    name = next((number for number, word in found if not word.startswith("-")), None)
    options = [word for number, word in found if name is None or number < name]
    if not compose:
        _check_options(text, options)
    elif "T" not in _switches(options):
        raise UsageError(f"{shown(text)} would open a terminal, which garbles answers", "Add -T.")
    if name is None:
        raise UsageError(f"{shown(text)} names no container", "For instance: docker exec -i train")
    _check_end(text, words[name + 1 :])


def _check_pod(text: str, words: Sequence[str]) -> None:
    found = [word for _, word in flags(words)]
    options = [word for word in found if word.startswith("-")]
    _check_options(text, options)
    if len(options) == len(found):
        raise UsageError(f"{shown(text)} names no pod", "For instance: kubectl exec -i trainer-0 --")
    if "--" not in words:
        raise UsageError(
            f"{shown(text)} needs -- at its end: what follows is for the container", f"Write: {text} --"
        )
    _check_end(text, words[list(words).index("--") + 1 :])


def _check_options(text: str, options: Sequence[str]) -> None:
    on = _switches(options)
    if "t" in on:
        raise UsageError(f"{shown(text)} asks for a terminal, which garbles answers", "Use -i alone.")
    if "d" in on:
        raise UsageError(f"{shown(text)} does not wait for an answer", "Leave -d out.")
    if "i" not in on:
        raise UsageError(f"{shown(text)} passes nothing on to the container", "Add -i after exec.")


def _switches(options: Sequence[str]) -> set[str]:
    """The letters of the switches that are on."""
    on: set[str] = set()
    for word in options:
        name, _, value = word.partition("=")
        if word.startswith("--"):
            on |= {_LONG[name]} if name in _LONG and value != "false" else set()
        elif match := _SHORT.fullmatch(word):
            on |= set(match[1]) if match[2] != "=false" else set()
    return on


def _check_end(text: str, rest: Sequence[str]) -> None:
    if len(rest) == 1 and basename(rest[0]) in _SHELLS:
        raise UsageError(f"{shown(text)} starts a shell; the examination brings its own", "Leave it out.")
