"""What a symptom says to type holds what the lines name, and nothing that a line could run."""

import re
from pathlib import Path

from doctor.logs.remedy import PLACES, filled
from doctor.logs.symptoms.load import load_symptoms
from tests.support.cases import cases
from tests.support.fault_logs import concluded

GROUP = re.compile(r"\(\?P<(\w+)>")
PLACE = re.compile(r"(?<![$\w])\{([a-z_]+)\}")


@cases
def test_what_is_filled_in(line: str, taken: dict[str, str], hosts: list[str], typed: str) -> None:
    assert filled(line, taken, hosts) == typed


def test_a_report_shows_it(tmp_path: Path) -> None:
    (tmp_path / "node7.log").write_text(
        "E0102 10:00:00.000000 7 xla/rendezvous.cc:31] Expected 8 threads to join the rendezvous, "
        "but only 7 of them arrived on time.\n"
    )
    remedy = concluded(tmp_path / "node7.log").charges[0].remedy
    assert remedy is not None
    assert remedy.commands[0].startswith("doctor hang node7")


SYMPTOMS = load_symptoms().symptoms


def test_what_stands_in_braces_is_known() -> None:
    """A name in braces is a group of the symptom's expressions, or the hosts that it is about."""
    for each in SYMPTOMS:
        groups = {name for text in (each.take, *each.above, *each.below) for name in GROUP.findall(text)}
        asked = {name for line in each.remedy for name in PLACE.findall(line)} - {"host", "hosts"}
        assert asked <= set(PLACES), each.id
        assert all(any(group.endswith(name) for group in groups) for name in asked), each.id
