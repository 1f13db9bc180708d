"""The path of the rank table, as a launch states it."""

from doctor.job.launch.process_env import Launch, ProcessEnv
from doctor.job.launch.table_reference import TableReference, told_tables
from doctor.job.plan import draft
from doctor.job.wishes import JobWishes
from doctor.model import Host
from tests.support.cases import cases


def of(folder: str | None, *command: str, **env: str) -> TableReference:
    (table,) = told_tables([ProcessEnv("rank 0", None, env, command, folder=folder)])
    return table


@cases
def test_a_path_starts_from_the_folder_of_its_process(text: str, folder: str | None, path: str) -> None:
    assert of(folder, RANK_TABLE_FILE=text).path == path


@cases
def test_what_is_not_known_is_no_path(text: str, folder: str | None, why: str) -> None:
    table = of(folder, MINDSPORE_HCCL_CONFIG_PATH=text)
    assert table.path == ""
    assert why in table.why


def test_the_option_of_msrun() -> None:
    table = of("/job", "msrun", "--worker_num=8", "--rank_table_file=hccl.json", "net.py")
    assert (table.said, table.path) == ("--rank_table_file", "/job/hccl.json")


def test_the_hosts_are_asked_for_every_table_of_a_launch() -> None:
    ranks = tuple(
        ProcessEnv(f"env{n}.log", None, {"RANK_TABLE_FILE": "t.json"}, folder=f"/job/device{n // 2}")
        for n in range(4)
    )
    launch = Launch("job", ranks, complete=True)
    wishes = JobWishes(launch=launch, env={"RANK_TABLE_FILE": "/of/inventory"})
    assert draft([Host("node1", "node1")], wishes).table_paths == (
        "/job/device0/t.json",
        "/job/device1/t.json",
    )


def test_ranks_that_run_are_asked_for_a_table_of_all() -> None:
    """A rank refuses to read a table that its own variables do not name."""
    host = [Host("node1", "node1")]
    ranks = [ProcessEnv(f"process {n}", None, {"RANK_TABLE_FILE": f"/job/{n}.json"}) for n in range(2)]
    differ = Launch("job", tuple(ranks), complete=True, live=True)
    agree = Launch("job", (ranks[0], ranks[0]), complete=True, live=True)
    assert draft(host, JobWishes(launch=differ)).table_paths == ()
    assert draft(host, JobWishes(launch=agree)).table_paths == ("/job/0.json",)
