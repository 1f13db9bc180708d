"""The output of srun and scontrol, in the wordings of several versions of Slurm."""

from hypothesis import given, settings
from hypothesis import strategies as st

from doctor.transport.slurm import errors
from doctor.transport.slurm.output import DownNode, SrunMessages, down_nodes, job_nodes, read_words
from tests.support.cases import cases, from_cases
from tests.support.paths import ROOT

SAMPLES = ROOT / "tests" / "samples" / "slurm"


def words(name: str) -> SrunMessages:
    return read_words((SAMPLES / f"srun-{name}.txt").read_text().splitlines())


@cases
def test_nodes_that_slurm_cannot_reach(name: str, down: list[DownNode]) -> None:
    assert down_nodes((SAMPLES / f"nodes-{name}.txt").read_text()) == down


@cases
def test_nodes_that_work(state: str) -> None:
    """A draining node still runs its present jobs."""
    assert down_nodes(f"NodeName=a Arch=x86_64 State={state} Weight=1 Reason=soon") == []


@cases
def test_without_an_answer_of_slurm_no_node_is_left_out(text: str) -> None:
    assert down_nodes(text) == []


JOB = from_cases(__file__, "JOB", str)


@cases
def test_the_nodes_that_a_job_has_now(text: str, nodes: set[str]) -> None:
    """Both parts of a heterogeneous job."""
    assert job_nodes(text) == nodes


@cases
def test_the_node_on_which_a_step_does_not_begin(name: str, failed: dict[str, str]) -> None:
    """Nodes that srun killed because of it are not to blame."""
    assert words(name).refused == failed


@cases
def test_the_end_of_the_step_is_understood(name: str, fate: str, says: str) -> None:
    found = words(name)
    assert found.fate == fate
    assert found.refused == {}
    assert says in errors.no_step(found, 1).summary
    assert says in errors.broke("other", found).summary


def test_a_node_that_fails_is_named() -> None:
    found = words("node-failure-22.05")
    assert found.ended == {"jz-37": "Node failure"}
    assert "Node failure" in errors.broke("jz-37", found).summary


def test_an_option_that_srun_does_not_know() -> None:
    assert words("no-overlap-20.02").option == "--overlap"


def test_an_unknown_message_is_quoted() -> None:
    aside = "srun: cluster configuration lacks support for cpu binding"
    found = read_words([aside, "srun: error: The moon is full\x1b[31m", "srun: Job step aborted"])
    assert (found.fate, found.refused) == ("", {})
    assert "The moon is full?[31m" in errors.no_step(found, 1).summary


@settings(max_examples=40)
@given(st.lists(st.text(max_size=300), max_size=5))
def test_any_text_is_read(lines: list[str]) -> None:
    found = read_words(lines)
    down_nodes("\n".join(lines))
    job_nodes("\n".join(lines))
    for said in (*found.refused.values(), *found.ended.values(), found.first):
        assert said.isprintable()
        assert len(said) <= 200
