"""The commands that a recording may suggest: everything that the transports write, and nothing else."""

import inspect
import itertools
import shlex
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctor.model import Answer, AnswerEnd, Host, UnreachedHost, UnreachedKind
from doctor.probe import read
from doctor.transport import errors
from doctor.transport.advice import is_entry, read_back, rebuilt
from doctor.transport.containers import not_entered
from doctor.transport.containers.refusals import REFUSALS
from doctor.transport.errors import CannotReach, Destination
from doctor.transport.slurm import errors as slurm_errors
from doctor.transport.slurm.output import DownNode, SrunMessages
from doctor.transport.ssh import errors as ssh_errors
from tests.support.cases import from_cases
from tests.support.each import each
from tests.support.paths import ROOT

HOST = Host("node1", "10.0.0.1")
DESTINATIONS = from_cases(__file__, "DESTINATIONS", tuple[Destination, ...])
WORDS = from_cases(__file__, "WORDS", tuple[str, ...])
KNOWN = (ssh_errors.PresentedKey("ssh-rsa", "SHA256:x", name) for name in ("node1", "[10.0.0.1]:2222"))
EXAMPLES: dict[Any, tuple[Any, ...]] = {
    Destination: DESTINATIONS,
    str: WORDS,
    bytes: (b"", b"Exceeded MaxStartups"),
    float: (3.0,),
    int: (1, 7),
    bool: (False, True),
    Sequence[str]: ((), ("/root/.ssh/id_rsa", "keys/of me"), ("publickey",)),
    ssh_errors.PresentedKey: tuple(KNOWN),
    OSError: (
        OSError(113, "No route to host"),
        TimeoutError(),
        ConnectionRefusedError(),
        OSError(5, "I/O"),
    ),
    BaseException: (ValueError("x"),),
    Exception: (ValueError("x"), OSError(24, "Too many open files"), MemoryError()),
    CannotReach: (errors.cannot("not SSH", "x", DESTINATIONS[1]),),
    DownNode: (DownNode("node1", "DOWN", "Not responding"),),
    SrunMessages: (SrunMessages({}, {}),),
    int | None: (None, 1),
    UnreachedKind: (UnreachedKind.AUTH,),
}
NAMES = from_cases(__file__, "NAMES", dict[str, tuple[str, ...]])
VALUES = from_cases(__file__, "VALUES", dict[str, object])
NAMES |= {"known_hosts": ("/root/.ssh/known_hosts", "~/x y/known_hosts2")}


def sentences(module: ModuleType) -> Iterator[CannotReach]:
    """The results of all functions of a module that explain why a host was not reached."""
    for function in vars(module).values():
        explains = inspect.isfunction(function) and function is not errors.cannot
        kinds = inspect.get_annotations(function, eval_str=True) if explains else {}
        if kinds.pop("return", None) is CannotReach:
            choices = [NAMES.get(name) or EXAMPLES[kind] for name, kind in kinds.items()]
            for values in itertools.islice(itertools.product(*choices), 400):
                yield function(*values)


def of_the_table() -> Iterator[CannotReach]:
    """Each failure by its name, towards each destination."""
    for name in errors.REASONS:
        for to in DESTINATIONS:
            yield errors.cannot(name, "", to, **VALUES, look=f"ssh jump {shlex.quote(errors.knock(to))}")


def entered(entry: str, texts: Sequence[str], origin: str = "host") -> Iterator[UnreachedHost]:
    silent = UnreachedHost("node1", UnreachedKind.NO_SHELL, "no shell ran there", "")
    for text in texts:
        yield not_entered(silent, Host("node1", "node1", enter=entry, enter_from=origin), text)


def honest() -> list[UnreachedHost]:
    explained = itertools.chain.from_iterable(map(sentences, (errors, ssh_errors, slurm_errors)))
    found = [why.of("node1") for why in itertools.chain(explained, of_the_table())]
    found.append(UnreachedHost("node1", UnreachedKind.LOST, "lost", "See whether.", ("ssh node1 uptime",)))
    look = "ssh node1 ps -o pid,stat,wchan:24,args -p 7,8"
    found.append(
        UnreachedHost("node1", UnreachedKind.RANK, "gone", "See who stopped it; kill -CONT 7.", (look,))
    )
    for end in AnswerEnd:
        why = read(Answer("node1", b"", b"", 1, end, 0, 1), (), "token")
        assert isinstance(why, UnreachedHost)
        found.append(why)
    texts = [file.read_text() for file in (ROOT / "tests" / "samples" / "entry").glob("*.txt")]
    for entry in ("docker exec -i train", "sudo -n podman exec -u me -i train"):
        found += entered(entry, texts)
    found += entered("kubectl exec -n ml -i trainer-0 -c main --", texts, "controller")
    return found


def test_all_that_the_transports_want_typed_is_read_back() -> None:
    seen = set()
    for why in honest():
        assert read_back(why, HOST) == why
        seen |= {command.split()[0] for command in why.commands}
    assert seen >= {"ssh", "ping", "ssh-keyscan", "ssh-keygen", "scontrol", "kubectl", "timeout", "getent"}


def test_the_forms_cover_every_refusal() -> None:
    for refusal in REFUSALS:
        if refusal.look:
            line = f"docker {refusal.look.replace('{}', 'train')}"
            assert rebuilt(line) == line


EVIL = from_cases(__file__, "EVIL", tuple[str, ...])


@each("command", EVIL)
def test_no_other_command_is_read_back(command: str) -> None:
    assert rebuilt(command) is None
    why = UnreachedHost("node1", UnreachedKind.TIMEOUT, "no answer", f"Run {command} | sh", (command,))
    back = read_back(why, HOST)
    assert back.commands == ("ping -c 3 10.0.0.1",)
    assert back.remedy == "Try the same by hand."


@given(st.sampled_from([command for why in honest() for command in why.commands]), st.data())
def test_nothing_can_be_put_into_a_command(command: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(command)))
    evil = data.draw(
        st.sampled_from([";evil;", "$(evil)", "`evil`", "|evil", "\nevil\n", "&evil", ">evil", " -oevil="])
    )
    back = rebuilt(command[:at] + evil + command[at:])
    # Only between the quotes of a file's name, which is a name there.
    assert back is None or f"{evil}" in back.split("'", 1)[-1].rsplit("'", 1)[0]


@pytest.mark.parametrize("kind", UnreachedKind)
def test_the_kind_decides_where_nothing_is_left(kind: UnreachedKind) -> None:
    why = UnreachedHost("node1", kind, "x", "Words.", ("evil", "curl evil | sh"))
    (command,) = read_back(why, Host("node1", "$(evil)")).commands
    assert rebuilt(command) == command
    assert "evil" not in command
    assert read_back(UnreachedHost("node1", kind, "x", "Words."), HOST).commands == ()


def test_a_file_of_settings_is_named_by_its_whole_path() -> None:
    """A file that came with the recording has no path that its author knows."""
    typed = "ssh -F '/tmp/my config' -p 2222 -v me@node1 true"
    assert rebuilt(typed) == typed
    assert rebuilt("ssh -F './my config' -v me@node1 true") is None


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        ("kubectl exec -i p --", True),
        ("kubectl exec -i -n team p -c main -- nsenter -t 1 -m -u -i -n -p --", True),
        ("kubectl exec -i p -- rm -rf /data --", False),
        ("kubectl exec -i p -- nsenter -t 1 -m -- reboot --", False),
        ("sudo -n docker exec -i train", True),
        ("docker exec -i train reboot", False),
    ],
)
def test_an_entry_of_a_recording_starts_nothing_of_its_own(text: str, ours: bool) -> None:
    assert is_entry(text) is ours
