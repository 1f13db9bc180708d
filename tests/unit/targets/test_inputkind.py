"""A file that was given to the wrong option: one sentence, and the right command."""

import json
from pathlib import Path

import pytest

from doctor.errors import InputErrors
from doctor.live.evidence_file import load as load_hang
from doctor.recording import load
from doctor.targets.hostfile import read_hostfile
from doctor.targets.inputkind import InputKind, input_kind
from doctor.targets.inventory import table_file
from doctor.targets.inventoryfile import read_inventory
from tests.support.cases import cases

TABLE = json.dumps(
    {"version": "1.0", "server_count": "1", "server_list": [{"server_id": "10.0.0.1", "device": []}]},
    indent=1,
)
TEXTS = {
    InputKind.RANK_TABLE: TABLE,
    InputKind.HOSTFILE: "# ours\nnode1 slots=8\nnode2 slots=8\n",
    InputKind.INVENTORY: "hosts:\n  node[1-4]: {user: root}\n",
    InputKind.RECORDING: '{"schema": 1, "wishes": {}, "heard": {}}',
    InputKind.HANG: '{"schema": 1, "started": "", "hosts": [], "asked": []}',
    InputKind.REPORT: '{"schema": 1, "findings": [], "verdict": "healthy"}',
    InputKind.ANSIBLE: "[train]\nnode1 ansible_host=10.0.0.1 ansible_user='root'\n\n[train:vars]\na = b c\n",
}


@pytest.mark.parametrize("kind", TEXTS, ids=lambda kind: kind.name)
def test_each_kind_is_known_by_what_stands_in_it(kind: InputKind) -> None:
    assert input_kind(TEXTS[kind]) is kind
    assert input_kind("\ufeff\n" + TEXTS[kind]) is kind


@cases
def test_a_log_is_none_of_them(text: str) -> None:
    assert input_kind(text, "rank0.log") is None


def test_plain_names_are_a_hostfile_by_its_name_or_their_numbers() -> None:
    assert input_kind("alpha\nbeta\n", "x/hostfile") is InputKind.HOSTFILE
    assert input_kind("node1\nnode2\n", "list") is InputKind.HOSTFILE
    assert input_kind("alpha\nbeta\n", "notes.txt") is None


def test_a_cut_rank_table_is_still_one() -> None:
    assert input_kind(TABLE[:-20]) is InputKind.RANK_TABLE


def refused(read: object, path: Path, text: str) -> InputErrors:
    path.write_text(text)
    with pytest.raises(InputErrors) as caught:
        read(path)  # type: ignore[operator]
    return caught.value


def test_one_sentence_and_the_right_command(tmp_path: Path) -> None:
    path = tmp_path / "a file"
    said = refused(read_hostfile, path, TABLE)
    assert said.message == f"{path} is a rank table. Type: doctor ranktable check '{path}'"
    said = refused(lambda path: table_file(path, "table"), path, TEXTS[InputKind.HOSTFILE])
    assert said.message == f"{path} is a hostfile. Type: doctor check --hostfile '{path}'"
    assert "is a rank table" in refused(read_inventory, path, TABLE).message
    assert "is a hostfile" in refused(read_inventory, path, TEXTS[InputKind.HOSTFILE]).message
    assert "is an inventory" in refused(read_hostfile, path, TEXTS[InputKind.INVENTORY]).message
    assert "doctor hang --replay" in refused(load, path, TEXTS[InputKind.HANG]).message
    assert "doctor check --replay" in refused(load_hang, path, TEXTS[InputKind.RECORDING]).message


def test_a_long_line_is_read_in_one_pass() -> None:
    """Each of these took hours with a pattern that tries every split of it."""
    for line in (":" * 200_000, "a " * 100_000, " a='" * 50_000, "[x]\nb" + " a='" * 50_000 + "\n!"):
        input_kind(f"node1\n{line}\n", "hosts")


def test_mistakes_of_its_own_kind_are_still_told(tmp_path: Path) -> None:
    said = refused(read_hostfile, tmp_path / "hosts", "node1 slots=8\nnode2 slots=many\n")
    assert len(said.mistakes) == 1
    assert said.mistakes[0].line == 2
