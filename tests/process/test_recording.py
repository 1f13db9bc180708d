"""The answer of a real shell is saved without its secrets."""

from pathlib import Path

import pytest

from doctor.exam.collect import Collection, Order
from doctor.job.wishes import JobWishes
from doctor.model import Host
from doctor.probe import HostAnswer, read
from doctor.recording import save
from tests.support.captures import every_fact
from tests.support.probing import TOKEN, answer, start


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "run.json"


class UnusedTransport:
    """A transport that is never used, but that a collection needs."""

    name = "ssh"
    warnings = ("known_hosts could not be written",)


def test_no_secret_is_saved(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one that a host printed, nor one in the inventory or the command line."""
    monkeypatch.setenv("HCCL_API_TOKEN", "hunter2")
    monkeypatch.setenv("NCCL_PROXY", "http://u:hunter2@proxy")
    facts = tuple(every_fact().values())
    process = start(facts, "dash")
    said = read(answer(process), facts, TOKEN)
    assert isinstance(said, HostAnswer)
    order = Order(
        command="check",
        exam="preflight",
        hosts=(Host("here", "here", enter="docker exec -e HF_TOKEN=hunter2 job"),),
        wishes=JobWishes(env={"WANDB_API_KEY": "hunter2", "GLOO_SOCKET_IFNAME": "eth0"}),
        facts=facts,
    )
    collection = Collection(order, UnusedTransport(), lambda *_: None)  # type: ignore[arg-type]
    collection.heard["here"] = said
    save(collection.recording(), file)
    text = file.read_text()
    assert "HCCL_API_TOKEN" not in text, "a variable of this name does not even leave the host"
    assert "NCCL_PROXY" in text
    assert "GLOO_SOCKET_IFNAME" in text
    assert "hunter2" not in text
