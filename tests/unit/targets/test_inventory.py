"""Targets: the inventory file, and which way of naming hosts takes precedence."""

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from doctor.errors import InputErrors, UsageError
from doctor.job.wishes import JobWishes
from doctor.model import Backend, Host, SourcedValue
from doctor.targets import inventory
from doctor.targets.inventory import Targets, local_if_alone, read_targets
from doctor.targets.inventoryfile import read_inventory
from tests.support.cases import cases, from_cases
from tests.support.limits import within
from tests.support.paths import ROOT

WHOLE = from_cases(__file__, "WHOLE", str)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    def writing(text: str, name: str = "lab.yaml") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return writing


Write = Callable[..., Path]


def targets(
    *nodesets: str,
    hostfile: Path | None = None,
    stock: Path | None = None,
    local: bool = False,
    exclude: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
) -> Targets:
    return read_targets(nodesets, hostfile, stock, local, exclude, environ or {})


def names(found: Targets) -> list[str]:
    return [host.name for host in found.hosts]


def mistakes(path: Path) -> list[str]:
    with pytest.raises(InputErrors) as caught:
        read_inventory(path)
    return [str(m).removeprefix(str(path)) for m in caught.value.mistakes]


def test_a_whole_inventory(write: Write) -> None:
    path = write(WHOLE)
    found = targets(stock=path)
    common = {"nofile": "1024", "torch": "2.10"}
    node = {"user": "root", "jump": "root@bastion:2222", "python": "python3"}
    expected = {"nofile": "65535", "torch": "2.10", "devices": "8"}
    assert found.hosts == (
        Host("node1", "node1", expected=expected, **node),  # type: ignore[arg-type]
        Host("node2", "node2", expected=expected, **node),  # type: ignore[arg-type]
        Host(
            name="gpu7",
            address="10.0.0.7",
            user="anna",
            port=2200,
            enter="docker exec -i train",
            data="192.168.1.7",
            ranks=4,
            python="/opt/venv/bin/python",
            expected=common,
        ),
        Host("spare", "spare", user="root", python="python3", expected=common),
    )
    assert (found.source, found.local) == (f"inventory {path}", False)
    assert found.wishes == JobWishes(
        backend=SourcedValue(Backend.HCCL, f"inventory {path}:17"),
        head=SourcedValue("node2", f"inventory {path}:18"),
        master_port=SourcedValue(29501, f"inventory {path}:19"),
        ranks_per_host=SourcedValue(8, f"inventory {path}:20"),
        env={"HCCL_IF_IP": "192.168.1.1", "NCCL_IB_DISABLE": "1", "GLOO": "off"},
        expect={"shm_mb": "1024"},
    )


def test_the_example_of_the_manual_is_read(write: Write) -> None:
    page = (ROOT / "docs/inventory.md").read_text()
    (example,) = (text for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "groups:" in text)
    assert names(targets(stock=write(example))) == ["node1", "node2", "node3", "node4"]


@cases
def test_forms_of_hosts(write: Write, text: str) -> None:
    assert targets(stock=write(text)).hosts == tuple(Host(n, n) for n in ("node1", "node2", "node3"))


def test_the_order_of_the_file_is_rank_order(write: Write) -> None:
    assert names(targets(stock=write("hosts: [z, 'b[2,1]', a]"))) == ["z", "b2", "b1", "a"]


@cases
def test_each_mistake_has_its_line(write: Write, text: str, said: str) -> None:
    assert mistakes(write(text)) == [said]


@cases
def test_settings_of_a_host_are_validated(write: Write, setting: str, said: str) -> None:
    assert mistakes(write(f"hosts:\n  a:\n    {setting}\n")) == [f":3: {said}"]


def test_all_mistakes_at_once_in_the_order_of_the_file(write: Write) -> None:
    text = "head: c\nhosts:\n  a: {port: x, usr: y}\n  a:\n  b: {jump: '-J'}\n"
    text += "backend: tpu\nhead: a\ncolor: red\n"
    assert mistakes(write(text)) == [
        ":1: head: 'c' is not one of the hosts",
        ":3: unknown key 'usr'; did you mean 'user'?",
        ":3: port: 'x' is not a number from 1 to 65535",
        ":4:3: 'a' is given twice, first on line 3",
        ":5: jump: '-J' is not a host name: it starts with '-', as an option does",
        ":6: backend: 'tpu' is not one of auto, gloo, nccl, hccl",
        ":7:1: 'head' is given twice, first on line 1",
        ":8: unknown key 'color'",
    ]


def test_containers_and_jump_hosts_may_share_an_address(write: Write) -> None:
    text = (
        "hosts:\n"
        "  c1: {address: big, enter: docker exec -i c1, data: 10.0.0.1}\n"
        "  c2: {address: big, enter: docker exec -i c2, data: 10.0.0.1}\n"
        "  r1: {address: 10.9.0.1, jump: rack1}\n"
        "  r2: {address: 10.9.0.1, jump: rack2}\n"
        "  pod[1-2]: {enter: kubectl exec -i pod --, enter_from: controller}\n"
    )
    assert names(targets(stock=write(text))) == ["c1", "c2", "r1", "r2", "pod1", "pod2"]


def test_mistakes_of_both_files_together(write: Write) -> None:
    with pytest.raises(InputErrors) as caught:
        targets(stock=write("x: 1\n", "a.yaml"), hostfile=write("-x\n", "b.hosts"))
    assert [Path(m.file).name for m in caught.value.mistakes] == ["a.yaml", "b.hosts"]


@cases
def test_the_command_line(nodesets: list[str], expected: list[str]) -> None:
    found = targets(*nodesets, environ={"SLURM_JOB_NODELIST": "other"})
    assert (names(found), found.source, found.local) == (expected, "the command line", False)
    assert found.wishes == JobWishes()


def test_users_on_the_command_line() -> None:
    assert targets("root@a[1-2]", "a2", "b").hosts == (
        Host("a1", "a1", user="root"),
        Host("a2", "a2", user="root"),
        Host("b", "b"),
    )
    with pytest.raises(UsageError, match="'a' has two users: 'x' and 'y'"):
        targets("x@a", "y@a")


def test_node_sets_and_groups_choose_from_the_inventory(write: Write) -> None:
    path = write(WHOLE)
    found = targets("gpu7", "@train", stock=path)
    assert names(found) == ["gpu7", "node1", "node2"]
    assert found.hosts[0].address == "10.0.0.7"
    assert found.source == "the command line"
    assert targets("bob@gpu7", stock=path).hosts[0].user == "bob"
    assert names(targets("@all", stock=path)) == ["node1", "node2", "gpu7"]


def test_a_host_that_the_inventory_does_not_list(write: Write) -> None:
    path = write(WHOLE)
    with pytest.raises(UsageError) as caught:
        targets("node1", "node[3-4]", stock=path)
    assert caught.value.message == f"'node[3-4]' is not in the inventory {path}"
    assert caught.value.hint in {"did you mean 'node1'?", "did you mean 'node2'?"}
    with pytest.raises(UsageError, match="no group 'trian'"):
        targets("@trian", stock=path)


def test_an_inventory_without_hosts_gives_its_defaults(write: Write) -> None:
    path = write("defaults: {user: root, devices: 8}\nhead: node2\ngroups: {two: 'node[1-2]'}\n")
    expected = tuple(Host(n, n, user="root", expected={"devices": "8"}) for n in ("node1", "node2"))
    assert targets("@two", stock=path).hosts == expected
    assert targets(stock=path, environ={"SLURM_JOB_NODELIST": "node[1-2]"}).hosts == expected
    with pytest.raises(UsageError, match=r"lab.yaml:2: head 'node2' is not one of the hosts"):
        targets("node1", stock=path)


def test_a_hostfile_chooses_from_an_inventory(write: Write) -> None:
    path = write("gpu7 slots=2\nbob@node1\n", "hosts")
    found = targets(hostfile=path, stock=write(WHOLE))
    assert [(h.name, h.address, h.user, h.ranks) for h in found.hosts] == [
        ("gpu7", "10.0.0.7", "anna", 2),
        ("node1", "node1", "bob", None),
    ]
    assert found.source == f"hostfile {path}"


def test_slurm() -> None:
    found = targets(environ={"SLURM_JOB_NODELIST": "cn[01-03,07],gpu1"})
    assert (names(found), found.source) == (["cn01", "cn02", "cn03", "cn07", "gpu1"], "slurm")
    with pytest.raises(UsageError, match=r"SLURM_JOB_NODELIST: 'cn\[1' is not a node set"):
        targets(environ={"SLURM_JOB_NODELIST": "cn[1"})


def test_what_a_scheduler_says_about_devices_is_kept_for_its_own_hosts(write: Write) -> None:
    gpus = {"SLURM_GPUS_PER_NODE": "a100:8", "CUDA_VISIBLE_DEVICES": "0,1", "NVIDIA_VISIBLE_DEVICES": "all"}
    slurm = {"SLURM_JOB_NODELIST": "node[1-2]", "SLURMD_NODENAME": "node1", **gpus}
    given = {
        "SLURM_GPUS_PER_NODE": "a100:8",
        "SLURMD_NODENAME": "node1",
        "CUDA_VISIBLE_DEVICES": "0,1",
    }
    assert targets(environ=slurm).wishes.allocated == given, "not what this container was given"
    pbs = {"PBS_NODEFILE": str(write("b2\n", "nodes")), "CUDA_VISIBLE_DEVICES": "0,1"}
    assert targets(environ=pbs).wishes.allocated == {"CUDA_VISIBLE_DEVICES": "0,1"}
    assert targets(environ={"SLURM_JOB_NODELIST": "node1"}).wishes.allocated == {}
    for other in (targets("c", environ=slurm), targets(local=True, environ=slurm)):
        assert other.wishes.allocated is None


@pytest.mark.parametrize("variable", ["PBS_NODEFILE", "LSB_DJOB_HOSTFILE"])
def test_a_job_of_pbs_or_lsf(variable: str, write: Write) -> None:
    """One line per slot, in rank order; slots may be processors, so they are not a number of ranks."""
    job = {variable: str(write("b2\nb2\na1\n", "nodes"))}
    found = targets(environ=job)
    assert found.hosts == (Host("b2", "b2"), Host("a1", "a1"))
    assert (found.source, found.local, found.unnamed) == (variable, False, False)
    assert names(targets("c", environ=job)) == ["c"]
    assert names(targets(environ={**job, "SLURM_JOB_NODELIST": "n1"})) == ["n1"]
    assert targets(local=True, environ=job).local
    assert targets(stock=write("defaults: {user: root}"), environ=job).hosts[0].user == "root"
    assert names(targets(stock=write("hosts: [x]"), environ=job)) == ["x"]


@pytest.mark.parametrize("variable", ["PBS_NODEFILE", "LSB_DJOB_HOSTFILE"])
@cases
def test_a_job_whose_node_file_cannot_be_used(
    variable: str, text: str | None, said: str, write: Write, tmp_path: Path
) -> None:
    """This machine does not replace its hosts."""
    file = tmp_path / "nodes" if text is None else write(text, "nodes")
    with pytest.raises(UsageError, match=rf"{variable}: .*{said}") as caught:
        targets(environ={variable: str(file)})
    assert "--local" in caught.value.hint


OWN = ["localhost", "LOCALHOST", "127.0.0.1", "127.0.1.1", "::1", "login7.lab", "login7"]


@pytest.fixture
def on_login7(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "login7.lab")


@pytest.mark.usefixtures("on_login7")
@pytest.mark.parametrize("name", OWN)
def test_a_name_of_this_machine_alone(name: str, write: Write) -> None:
    """It is examined without a login, under the given name."""
    here = local_if_alone(targets(name))
    assert (here.local, here.unnamed, here.source) == (True, False, "the command line")
    assert here.hosts == (Host(name, "localhost"),)
    listed = local_if_alone(targets(hostfile=write(f"{name} slots=4\n", "hosts")))
    assert (listed.local, listed.hosts[0].ranks) == (True, 4)


@pytest.mark.usefixtures("on_login7")
@cases
def test_what_may_mean_another_machine(sets: list[str]) -> None:
    found = targets(*sets)
    assert local_if_alone(found) == found
    assert not found.local


@pytest.mark.usefixtures("on_login7")
@pytest.mark.parametrize("how", ["address: 10.0.0.9", "port: 2222", "user: root", "jump: gate"])
def test_an_inventory_that_says_how_to_log_in(how: str, write: Write) -> None:
    found = targets(stock=write(f"hosts: {{login7: {{{how}}}}}"))
    assert not local_if_alone(found).local


def test_ranges_without_brackets_everywhere(write: Write) -> None:
    four = ["node1", "node2", "node3", "node4"]
    assert names(targets("node1..4")) == four
    assert names(targets(hostfile=write("node1..3 slots=8\nnode4\n", "hosts"))) == four
    assert [h.ranks for h in targets(hostfile=write("root@node1..2:8\n", "hosts")).hosts] == [8, 8]
    stock = write("hosts: {node1..4: {port: 22}}\ngroups: {few: node2..3}\n")
    assert names(targets(stock=stock)) == four
    assert names(targets("@few", stock=stock)) == ["node2", "node3"]
    assert names(targets("node1..4", exclude=["node2..3"])) == ["node1", "node4"]


def test_an_inventory_with_hosts_overrides_slurm(write: Write) -> None:
    assert names(targets(stock=write("hosts: a"), environ={"SLURM_JOB_NODELIST": "b"})) == ["a"]


def test_local(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory.socket, "gethostname", lambda: "gpu7.lab.example")
    this = Host("gpu7.lab.example", "localhost")
    for found in (targets(), targets(local=True, environ={"SLURM_JOB_NODELIST": "a"})):
        assert (found.hosts, found.source, found.local) == ((this,), "local", True)
    known = targets(local=True, stock=write(WHOLE)).hosts[0]
    assert (known.name, known.address, known.user, known.ranks) == ("gpu7", "localhost", None, 4)
    other = targets(local=True, stock=write("hosts: a\ndefaults: {user: x, jump: y, devices: 2}"))
    assert other.hosts == (dataclasses.replace(this, expected={"devices": "2"}),)
    monkeypatch.setattr(inventory.socket, "gethostname", lambda: "my mac")
    assert names(targets()) == ["localhost"]


JOB = {"SLURM_JOB_ID": "4711"}


@cases
def test_a_slurm_job_without_its_node_list_is_not_this_machine(environ: dict[str, str]) -> None:
    with pytest.raises(UsageError) as caught:
        targets(environ=environ)
    assert "The nodes of Slurm job '4711' are unknown" in caught.value.message
    assert "--local" in caught.value.hint
    assert targets(local=True, environ=environ).local
    assert names(targets("node1", environ=environ)) == ["node1"]


def test_a_slurm_job_of_one_node_is_this_machine() -> None:
    assert targets(environ={**JOB, "SLURM_JOB_NUM_NODES": "1"}).local
    assert targets(environ={"SLURM_NNODES": "4"}).local, "not in a job"


def test_an_inventory_that_names_nobody(write: Write) -> None:
    path = write("defaults: {user: root}\n")
    with pytest.raises(UsageError) as caught:
        targets(stock=path)
    assert caught.value.message == f"The inventory {path} lists no hosts, and none are named."
    assert targets(stock=path, local=True).local


def test_whether_anybody_named_a_host() -> None:
    assert targets().unnamed
    assert not any(
        found.unnamed
        for found in (targets("node1"), targets(local=True), targets(environ={"SLURM_JOB_NODELIST": "a"}))
    )


@cases
def test_hosts_can_be_named_in_one_way_only(ways: dict[str, object], said: str) -> None:
    given_ways = {"nodesets": [], "hostfile": None, "inventory": None, "local": False, **ways}
    with pytest.raises(UsageError) as caught:
        read_targets(exclude=[], environ={}, **given_ways)  # type: ignore[arg-type]
    assert caught.value.message == said
    assert caught.value.hint


def test_exclude(write: Write) -> None:
    assert names(targets("n[1-5]", exclude=["n2", "n[4-5]"])) == ["n1", "n3"]
    path = write(WHOLE)
    assert names(targets(stock=path, exclude=["@train"])) == ["gpu7", "spare"]
    assert names(targets("@train", stock=path, exclude=["gpu7"])) == ["node1", "node2"]


@cases
def test_what_cannot_be_excluded(exclude: str, said: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        targets("node[1-3]", exclude=[exclude])
    assert (caught.value.message, caught.value.hint) == (said, hint)


def test_a_head_that_takes_no_part_is_not_a_wish(write: Write) -> None:
    path = write(WHOLE)
    assert targets("gpu7", stock=path).wishes.head is None
    assert targets(stock=path, exclude=["node2"]).wishes.head is None
    assert targets(stock=path, exclude=["node1"]).wishes.head is not None


@pytest.mark.slow
def test_too_many_hosts_in_all() -> None:
    with pytest.raises(UsageError, match="120,000 hosts are named, but at most 100,000 are supported"):
        targets("a[1-60000]", "b[1-60000]")


@pytest.mark.slow
def test_ten_thousand_hosts_are_quick(write: Write) -> None:
    lines = [f"  node{i}: {{address: 10.{i // 250}.0.{i % 250}, port: 22}}\n" for i in range(10_000)]
    path = write("hosts:\n" + "".join(lines))
    with within(5):
        assert len(targets(stock=path).hosts) == 10_000


YAMLISH = st.recursive(
    st.sampled_from(["node1", "'node[1-2]'", "'@g'", "22", "-1", "~", "'a b'", "docker exec x", "host"]),
    lambda inner: st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
    | st.dictionaries(
        st.sampled_from(["a", "b", "address", "port", "user", "expect", "enter", "enter_from", "data", "g"]),
        inner,
        max_size=3,
    ).map(lambda d: "{" + ", ".join(f"{k}: {v}" for k, v in d.items()) + "}"),
    max_leaves=8,
)  # fmt: skip
TOP = st.sampled_from(
    [
        "hosts",
        "groups",
        "defaults",
        "backend",
        "head",
        "master_port",
        "ranks_per_host",
        "launch",
        "expect",
        "x",
    ]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.binary(max_size=60)
    | st.lists(st.tuples(TOP, YAMLISH), max_size=5).map(
        lambda rows: "\n".join(f"{k}: {v}" for k, v in rows).encode()
    )
)
def test_any_bytes_are_read_or_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "any.yaml"
    path.write_bytes(data)
    try:
        assert targets(stock=path).hosts
    except UsageError as error:
        text = error.message
    else:
        text = ""
    assert all(line.isprintable() for line in text.split("\n"))
