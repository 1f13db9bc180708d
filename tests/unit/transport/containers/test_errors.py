"""What `--enter` accepts, and the error when a command did not enter, with messages of the real tools."""

import contextlib
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctor.errors import InputErrors, UsageError
from doctor.model import Host, UnreachedHost, UnreachedKind
from doctor.probe import through
from doctor.targets.inventoryfile import read_inventory
from doctor.text.nodeset import is_host
from doctor.transport import Script
from doctor.transport.containers import check_entry, enter_all, entered, not_entered, tool_of
from tests.support.captures import SAMPLES, sample
from tests.support.cases import cases, from_cases

SILENT = UnreachedHost("node1", UnreachedKind.NO_SHELL, "the login works, but no POSIX shell ran there", "")


@cases
def test_an_entry_that_can_work(entry: str, tool: str) -> None:
    assert check_entry(entry) == entry
    assert tool_of(entry) == tool


@cases
def test_an_entry_that_cannot(entry: str, says: str) -> None:
    with pytest.raises(UsageError) as error:
        check_entry(entry)
    assert says in f"{error.value.message} {error.value.hint}"
    with pytest.raises(UsageError, match=r"^--enter: "):
        enter_all((Host("node1", "node1"),), entry)


def test_an_inventory_has_the_same_rules(tmp_path: Path) -> None:
    path = tmp_path / "inventory.yaml"
    path.write_text("hosts:\n  node1: {enter: docker exec -it train}\n  node2: {enter: kubectl exec -i p}\n")
    with pytest.raises(InputErrors) as error:
        read_inventory(path)
    assert [(each.line, "terminal" in each.message) for each in error.value.mistakes] == [
        (2, True),
        (3, False),
    ]


@pytest.mark.slow
@given(st.text(max_size=60))
def test_any_text_is_a_command_or_a_mistake(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert check_entry(text) == text
        assert text.isprintable()


def test_each_host_has_an_entry_of_its_own() -> None:
    hosts = enter_all((Host("a-0", "a-0"), Host("a-1", "a-1")), "kubectl exec -i {host} --")
    assert {host.enter_from for host in hosts} == {"controller"}
    assert [entered(host) for host in hosts] == ["kubectl exec -i a-0 --", "kubectl exec -i a-1 --"]
    script = through(Script("exec sh -s", b"", b""), hosts[1])
    assert shlex.split(script.command) == ["exec", "kubectl", "exec", "-i", "a-1", "--", "sh", "-s"]


def test_a_name_is_harmless_in_a_command() -> None:
    """Names of hosts are checked; even an unchecked one would stay one word."""
    wild = "x; reboot"
    assert not is_host(wild)
    assert shlex.split(entered(Host(wild, wild, enter="docker exec -i {host}")))[-1] == wild


def test_two_hosts_cannot_share_one_pod() -> None:
    hosts = (Host("a-0", "a-0"), Host("a-1", "a-1"))
    with pytest.raises(UsageError, match="the same container") as error:
        enter_all(hosts, "kubectl exec -i a-0 --")
    assert "{host}" in error.value.hint
    here = {host.enter_from for host in enter_all(hosts, "docker exec -i train")}
    assert here == {"host"}, "each host has a container of that name"


SENTENCES = from_cases(__file__, "SENTENCES", dict[str, str])


def test_every_sample_has_its_sentence() -> None:
    assert {path.stem for path in (SAMPLES / "entry").glob("*.txt")} == SENTENCES.keys()


@pytest.mark.parametrize("name", SENTENCES)
def test_messages_of_an_engine_become_sentences(name: str) -> None:
    pod = name.startswith("kubectl")
    host = Host(
        "node1",
        "node1",
        enter="kubectl exec -i train-0 --" if pod else "docker exec -i train",
        enter_from="controller" if pod else "host",
    )
    why = not_entered(SILENT, host, sample(f"entry/{name}.txt"))
    assert why.kind is UnreachedKind.ENTRY
    assert why.summary == f"{host.enter!r} did not enter: " + why.summary.partition(": ")[2]
    assert SENTENCES[name] in why.summary
    assert why.remedy
    assert all(command.startswith("kubectl " if pod else "ssh node1 ") for command in why.commands)
    assert any("true" in command for command in why.commands)


def test_an_unknown_message_is_quoted_short_and_clean() -> None:
    host = Host("node1", "node1", enter="chamber --token hunter2 in")
    why = not_entered(SILENT, host, "a note\n\x1b[31mno entry " + "x" * 9000)
    assert "no entry" in why.summary
    assert why.summary.isprintable()
    assert len(why.summary) < 250
    assert "hunter2" not in f"{why}"
    assert "it said nothing" in not_entered(SILENT, host, "").summary


def test_commands_of_an_error_show_no_secret() -> None:
    host = Host("p", "p", enter="kubectl --token=hunter2 exec -i {host} --", enter_from="controller")
    why = not_entered(SILENT, host, sample("entry/kubectl_no_pod.txt"))
    assert len(why.commands) == 2
    assert "hunter2" not in f"{why}"


def test_a_hosts_own_entry_runs_where_the_inventory_says() -> None:
    (host,) = enter_all((Host("p", "p", enter="x {host}", enter_from="controller"),), "my-enter {host}")
    assert (host.enter, host.enter_from) == ("my-enter {host}", "controller")
