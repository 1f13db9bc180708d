"""A launch for another number of hosts than the user named, or with the same ranks on each host."""

from pathlib import Path

import pytest

from doctor.exam.flags import apply_flags
from doctor.exam.request import JobFlags, Request
from doctor.facts.software import Environment
from doctor.facts.tables import HostFile
from doctor.job.launch.files import read_launch_files
from doctor.job.launch.process_env import Launch
from doctor.job.wishes import JobWishes
from doctor.model import Confidence, Severity, View
from tests.support.cases import cases, from_cases
from tests.support.launches import (
    C10D,
    DYNAMIC_CLUSTER,
    HEALTHY,
    MSRUN,
    TORCHRUN,
    a_plan,
    judged,
    read,
    the_facts,
    words,
    written,
)

CHECK = "launch-hosts"
MASTER = "--master_addr=node1 --nproc_per_node=8"
ALONE, NO_HOSTS = (
    "each of them would train alone",
    "names no hosts and 2 were named: all its ranks start where it is started",
)
FIXED = ("the script gives every host", "--node_rank=0")
WRONG = {
    **from_cases(__file__, "WRONG", dict[str, tuple[str, str, str]]),
    **{line: (line, NO_HOSTS, "no option of") for line in from_cases(__file__, "HOSTLESS", list[str])},
    "node rank 0": (TORCHRUN.format(node=0), *FIXED),
    "msrun's node rank": (MSRUN.format(node=0), *FIXED),
    "a job array of two nodes each": (
        f"#!/bin/bash\n#SBATCH --array=0-9\n#SBATCH -N2\n{TORCHRUN.format(node=0)}",
        *FIXED,
    ),
    "workers 0-3 of 8": (DYNAMIC_CLUSTER, "on every host", "ranks 4-7 nowhere"),
}


@cases
def test_a_launch_is_understood_however_its_launcher_is_called(spelled: str, tmp_path: Path) -> None:
    (problem,), _ = judged(CHECK, [read(tmp_path, f"{spelled.replace('{}', '--nproc_per_node=8 t.py')}\n")])
    assert ALONE in problem.summary
    sound = f"--nnodes=2 --node_rank=$NODE {MASTER} t.py"
    assert judged(CHECK, [read(tmp_path, f"{spelled.replace('{}', sound)}\n")]) == ([], "")


NUMBERS_OF_NAMES = (
    "$(hostname | sed 's/node//')",
    "$(hostname -s | tr -dc 0-9)",
    "$(echo $HOSTNAME | grep -o '[0-9]*$')",
    "$(hostname | grep -oE '[0-9]+')",
    "${HOSTNAME//[!0-9]/}",
    "${HOSTNAME##node}",
)


@pytest.mark.parametrize("name", WRONG)
def test_a_launch_that_does_not_fit_two_hosts(name: str, tmp_path: Path) -> None:
    text, summary, actual = WRONG[name]
    (problem, *more), _ = judged(CHECK, [read(tmp_path, text)])
    assert more == []
    assert summary in problem.summary
    assert actual in problem.actual
    assert problem.severity is None
    assert problem.hosts == (), "no host is to blame for a launch"
    assert problem.evidence
    assert problem.commands


@pytest.mark.parametrize("number", NUMBERS_OF_NAMES)
def test_the_number_in_the_name_of_the_host(number: str, tmp_path: Path) -> None:
    """The hosts are node1 and node2, and the first one must be 0."""
    for text, wrong in ((number, True), (f"$(( {number} - 1 ))", False)):
        line = f"NR={text}\ntorchrun --nnodes=2 --node_rank=$NR {MASTER} t.py\n"
        problems, _ = judged(CHECK, [read(tmp_path, line)])
        assert ["node ranks that are not 0" in each.summary for each in problems] == [True] * wrong


def test_a_loop_over_hosts_that_leaves_a_node_out(tmp_path: Path) -> None:
    line = "ssh {} torchrun --nnodes={} --node_rank=$i --master_addr=node1 t.py &"
    loop = "H=(node1 node2)\nfor i in {}; do\n{}\ndone\nwait\n"
    for turns, nodes, other, lost in (
        ("1", 2, "", "node 0"),
        ("0", 2, "", "node 1"),
        ("0 1", 2, "", ""),
        ("1", 2, f"i=0\n{line.format('node1', 2)}", ""),
        ("1", 2, "torchrun --nnodes=2 --node_rank=0 --master_addr=node1 t.py &", ""),
        ("$1", 2, "", ""),
        ("1", 1, "", ""),
    ):
        launch = read(tmp_path, other + "\n" + loop.format(turns, line.format("${H[i]}", nodes)))
        found = [each for each in judged(CHECK, [launch])[0] if "starts no launcher" in each.summary]
        assert [lost in each.summary for each in found] == [True] * bool(lost), turns
        assert all(each.severity is Severity.WARN and each.hosts == () for each in found)


def test_all_ranks_on_the_host_of_the_script(tmp_path: Path) -> None:
    ranks = "for i in {0..15}; do RANK=$i LOCAL_RANK=$i python train.py & done\nwait\n"
    launch = read(tmp_path, f"export WORLD_SIZE=16 MASTER_ADDR=node1 MASTER_PORT=1\n{ranks}")
    (problem,), _ = judged(CHECK, [launch])
    assert "starts all ranks of the job on the host that runs it" in problem.summary
    assert problem.severity is Severity.WARN
    assert judged(CHECK, [launch], a_plan(hosts=1)) == ([], "")


def test_a_configuration_that_the_script_writes(tmp_path: Path) -> None:
    config = "machine_rank: {}\nmain_process_ip: node1\nnum_machines: 2\nnum_processes: 4"
    for writes, number, wrong in (
        ("cat > a.yaml <<EOF\n{}\nEOF\n", "0", True),
        ("cat <<'EOF' >a.yaml\n{}\nEOF\n", "1", True),
        ("cat > a.yaml <<EOF\n{}\nEOF\n", "$1", False),
        ("cat > a.yaml <<EOF\n{}\nEOF\nsed -i s/0/$1/ a.yaml\n", "0", False),
        ("cat >> a.yaml <<EOF\n{}\nEOF\n", "0", True),
        ("cat list >> a.yaml\ncat >> a.yaml <<EOF\n{}\nEOF\n", "0", False),
        ("cat > b.yaml <<EOF\n{}\nEOF\n", "0", False),
        ("cat <<EOF\n{}\nEOF\n", "0", False),
    ):
        script = writes.format(config.format(number)) + "accelerate launch --config_file a.yaml train.py\n"
        problems, _ = judged(CHECK, [read(tmp_path, script)])
        assert ["machine_rank" in words(each) for each in problems] == [True] * wrong, script


def test_a_launch_for_fewer_hosts_is_a_warning(tmp_path: Path) -> None:
    launch = read(tmp_path, "torchrun --nnodes=2 --rdzv_backend=c10d --rdzv_endpoint=node1 t.py\n")
    (problem,), _ = judged(CHECK, [launch], a_plan(hosts=4))
    assert problem.severity is Severity.WARN
    assert judged(CHECK, [launch], a_plan(hosts=4), {"needed-hosts": 2}) == ([], "")


def test_hosts_that_the_launch_names(tmp_path: Path) -> None:
    def found(hosts: str) -> tuple[list[Severity | None], str]:
        launch = read(tmp_path, f"mpirun -np 16 -H {hosts} python t.py\n")
        problems, doubt = judged(CHECK, [launch])
        return [problem.severity for problem in problems], doubt

    for same in ("node1:8,node2:8", "192.168.7.1:8,node2.cluster.local:8", "NODE1,node2"):
        assert found(same) == ([], "")
    assert found("node1:8,node3:8") == ([Severity.WARN], ""), "the other may be another name of node2"
    severities, doubt = found("a:8,b:8")
    assert severities == []
    assert "whether a, b in env0.log:1 are among these hosts is not known" in doubt
    severities, doubt = found("a:4,b:4,c:4,d:4")
    assert severities == [None], "there are too many, whatever they are"


def test_hosts_of_a_program_that_starts_it_on_several(tmp_path: Path) -> None:
    line = "torchrun --nnodes=2 --node_rank=%n --master_addr=node1 t.py"
    for start, named in (
        (f"pdsh -R ssh -w node1,node3 '{line}'", "node3"),
        ("python -m paddle.distributed.launch --ips=node1,node3 t.py", "node3"),
        (f"pdsh -w node[1-2] '{line}'", ""),
        (f"pdsh -w node3 mkdir -p /data\npdsh -w $HOSTS '{line}'", ""),
        (f"pdsh -w node1,node3 ls\npdsh -w $HOSTS '{line}'", ""),
    ):
        problems, _ = judged(CHECK, [read(tmp_path, f"{start}\n")])
        told = [each for each in problems if "not named" in each.summary]
        assert [named in each.summary for each in told] == [True] * bool(named), start


def test_hosts_of_open_mpi_without_slots_have_one_each(tmp_path: Path) -> None:
    for line, wrong in (
        ("mpirun -np 8 -H node1,node2 -x A python t.py", True),
        ("mpirun -np 2 -H node1,node2 -x A python t.py", False),
        ("mpirun -np 4 --npernode 1 -H node1:2,node2:2 -x A python t.py", True),
        ("mpirun -np 4 --npernode 2 -H node1:2,node2:2 -x A python t.py", False),
        ("mpirun -np 4 -ppn 1 -hosts node1,node2 -genv A 1 python t.py", False),
        ("mpirun -np 8 -H node1,node2 -x A --oversubscribe python t.py", False),
        ("mpirun -np 8 -hosts node1,node2 -genv A 1 python t.py", False),
        ("#SBATCH -N2\nmpirun -np 8 -H node1,node2 -x A python t.py", False),
    ):
        problems, _ = judged(CHECK, [read(tmp_path, f"{line}\n")])
        assert ["slots" in each.summary for each in problems] == [True] * wrong, line


@pytest.mark.parametrize(
    ("machines", "ranks", "severities"),
    [(2, 3, [Severity.WARN]), (2, 5, [Severity.WARN]), (2, 1, [None]), (2, 4, []), (2, 2, []), (2, "$N", [])],
)
def test_ranks_that_accelerate_divides_among_the_hosts(
    machines: int, ranks: int | str, severities: list[Severity | None], tmp_path: Path
) -> None:
    line = f"accelerate launch --num_machines {machines} --num_processes {ranks} --machine_rank $1"
    problems, _ = judged(CHECK, [read(tmp_path, f"{line} --main_process_ip node1 t.py\n")])
    assert [each.severity for each in problems] == severities
    assert all("cannot be divided among 2 hosts" in each.summary for each in problems)


def test_what_hosts_share_is_told_once(tmp_path: Path) -> None:
    line = (
        "accelerate launch --num_machines 2 --num_processes 1 --machine_rank $i --main_process_ip node1 t.py"
    )
    text = f'i=0; for h in node1 node2; do ssh $h "{line}" & i=$((i+1)); done; wait\n'
    problems, _ = judged(CHECK, [read(tmp_path, text)])
    assert ["cannot be divided" in each.summary for each in problems] == [True]


def hostfile(folder: Path, hosts: str, line: str) -> Launch:
    (folder / "hosts").write_text(hosts)
    (script,) = written(folder, f"{line}\n")
    found = apply_flags(Request("check", job=JobFlags(launch=(str(script),))), JobWishes()).launch
    assert found is not None
    return found


@cases
def test_hosts_of_a_file(
    hosts: str, line: str, problems: list[tuple[str, Severity | None]], doubt: str, tmp_path: Path
) -> None:
    names = {"far1": "192.168.7.99", "far2": "192.168.7.98", "lo1": "fe80::1%eth0", "lo2": "fe80::2%eth0"}
    facts = the_facts(names=names)
    found, why = judged(CHECK, [hostfile(tmp_path, hosts, line)], facts=facts)
    assert [problem.severity for problem in found] == [severity for _, severity in problems]
    assert all(says in problem.summary for (says, _), problem in zip(problems, found, strict=True))
    assert doubt in why


def test_hosts_of_a_script_with_many_empty_lines(tmp_path: Path) -> None:
    launch = hostfile(
        tmp_path, "node1 slots=8\nnode2 slots=8", "\n" * 20_000 + "deepspeed --hostfile hosts t.py"
    )
    assert judged(CHECK, [launch]) == ([], "")


def test_names_of_services_in_a_container(tmp_path: Path) -> None:
    launch = hostfile(tmp_path, "", "mpirun -np 16 -H far1:8,far2:8 python t.py")
    names = the_facts(names={"far1": "192.168.7.99", "far2": "192.168.7.98"})
    problems, doubt = judged(CHECK, [launch], facts={**names, "view": {"node1": View.CONTAINER}})
    assert (problems, "whether far1, far2 in" in doubt) == ([], True)


FITS = {
    "a script for each host": HEALTHY["torchrun"],
    "c10d": [C10D],
    "msrun that numbers by itself": [MSRUN.format(node=-1)],
    "mpirun": HEALTHY["mpirun"],
    "slurm": HEALTHY["slurm"],
    **from_cases(__file__, "FITS", dict[str, list[str]]),
    **{line: [line] for line in from_cases(__file__, "HOSTED", list[str])},
}


def test_a_number_beside_another_launcher_of_the_script_is_undecided(tmp_path: Path) -> None:
    line = 'ssh node{} "torchrun --nnodes={} --nproc_per_node=2 --node_rank={} --master_addr=node1 t.py" &\n'
    script = line.format(1, 2, 0) + line.format(2, 1, 1) + "wait\n"
    problems, doubt = judged(CHECK, [read(tmp_path, script)])
    assert problems == []
    assert "--node_rank=0, which is right on one host only" in doubt


@pytest.mark.parametrize("name", FITS)
def test_a_launch_that_fits_two_hosts(name: str, tmp_path: Path) -> None:
    problems, doubt = judged(CHECK, [read(tmp_path, *FITS[name])])
    assert [words(problem) for problem in problems] == []
    assert doubt == ""


def test_hosts_in_a_file_that_the_script_sources(tmp_path: Path) -> None:
    (tmp_path / "cluster.sh").write_text("export OMPI_MCA_orte_default_hostfile=$HOME/hosts\n")
    launch = read(tmp_path, "source cluster.sh\nmpirun -n 16 python t.py\n")
    assert judged(CHECK, [launch]) == ([], "")


def test_the_hosts_of_an_allocation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is started in a job of a scheduler is given its hosts by it."""
    scripts = map(str, written(tmp_path, "mpirun -n 16 python t.py\n"))
    request = Request("check", job=JobFlags(launch=tuple(scripts)))
    for name in ("SLURM_JOB_NODELIST", "PBS_NODEFILE", "LSB_DJOB_HOSTFILE"):
        monkeypatch.delenv(name, raising=False)
        launch = apply_flags(request, JobWishes()).launch
        assert launch is not None
        assert [each.hostless for each in launch.told] == [True]
        with monkeypatch.context() as inside:
            inside.setenv(name, "node[1-2]")
            assert judged(CHECK, [apply_flags(request, JobWishes()).launch]) == ([], "")  # type: ignore[list-item]


def test_an_operator_of_pods_gives_the_hosts(tmp_path: Path) -> None:
    container = "containers: [{name: a, command: [mpirun, -n, '16', python, t.py]}]"
    spec = f"{{mpiReplicaSpecs: {{Launcher: {{template: {{spec: {{{container}}}}}}}}}}}"
    path = tmp_path / "job.yaml"
    path.write_text(f"apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nspec: {spec}\n")
    assert judged(CHECK, [read_launch_files([path])]) == ([], "")


@pytest.mark.parametrize("options", ["", "--num_processes 16 ", "--main_process_ip n1 --machine_rank $R "])
def test_what_is_configured_on_the_hosts_is_a_risk(options: str, tmp_path: Path) -> None:
    """`accelerate config` stores the number of hosts in a file of the user."""
    (problem,), _ = judged(CHECK, [read(tmp_path, f"accelerate launch {options}train.py\n")])
    assert (problem.severity, problem.confidence) == (Severity.WARN, Confidence.SUSPECT)
    assert "may be for one host and 2 were named" in problem.summary
    assert "--num_machines is not given, and a configuration file on the hosts was not read" in problem.actual
    (tmp_path / "a.yaml").write_text("compute_environment: x\nnum_machines: 2\nnum_processes: 16\n")
    named = read(tmp_path, f"accelerate launch --config_file a.yaml {options}train.py\n")
    assert judged(CHECK, [named])[0] == []


def test_hosts_beyond_a_range_wait_to_step_in(tmp_path: Path) -> None:
    assert judged(CHECK, [read(tmp_path, C10D)], a_plan(hosts=4)) == ([], "")


FOR_ONE = [text for text, summary, _ in WRONG.values() if "--nnodes=1" in text or summary == NO_HOSTS]


@pytest.mark.parametrize("text", [*FOR_ONE, C10D])
def test_a_launch_for_one_of_the_hosts_with_spare_ones(text: str, tmp_path: Path) -> None:
    assert judged(CHECK, [read(tmp_path, text)], facts={"needed-hosts": 1}) == ([], "")


def test_one_host_of_a_larger_job_decides_nothing(tmp_path: Path) -> None:
    problems, doubt = judged(CHECK, [read(tmp_path, TORCHRUN.format(node=0))], a_plan(hosts=1))
    assert problems == []
    assert "is for 2 hosts, and one was examined" in doubt


def test_pods_may_say_what_the_script_does_not(tmp_path: Path) -> None:
    """PET_NNODES, which operators set, replaces --nnodes."""
    pods = {"view": {"node1": View.CONTAINER, "node2": View.CONTAINER}}
    problems, doubt = judged(CHECK, [read(tmp_path, "torchrun train.py\n")], facts=pods)
    assert problems == []
    assert "its pods may" in doubt
    problems, _ = judged(CHECK, [read(tmp_path, "torchrun --nnodes=1 train.py\n")], facts=pods)
    assert len(problems) == 1
    problems, doubt = judged(CHECK, [read(tmp_path, "mpirun -n 16 python t.py\n")], facts=pods)
    assert problems == []
    assert "its pods may" in doubt


def test_a_second_job_of_the_script_may_be_for_one_host(tmp_path: Path) -> None:
    train = f"torchrun --nnodes=2 --node_rank=$R {MASTER} train.py\n"
    both = read(tmp_path, f"{train}torchrun --standalone --nproc_per_node=8 eval.py\n")
    assert judged(CHECK, [both])[0] == []


def test_an_env_file_of_one_host_decides_nothing(tmp_path: Path) -> None:
    text = "NNODES=2\nNODE_RANK=0\nMASTER_ADDR=node1\n"
    problems, doubt = judged(CHECK, [read(tmp_path, text)])
    assert problems == []
    assert "NODE_RANK=0, which is right on one host only" in doubt


@cases
def test_a_number_of_a_node_that_nobody_gives(
    line: str, ranks: list[str] | None, says: str, doubt: str, tmp_path: Path
) -> None:
    """Unless each login has its own; in a pod, the operator of the job may give it."""
    launch = read(tmp_path, f"{line} train.py\n")
    logins = {
        f"node{n}": Environment({"PET_NODE_RANK": rank} if rank else {})
        for n, rank in enumerate(ranks or (), 1)
    }
    missing = HostFile("", trouble="there is no such file")
    tables = (
        {h: {f"/root{launch.configs[0][1:]}": missing} for h in ("node1", "node2")} if launch.configs else {}
    )
    facts = {"environment": logins, "tables": tables}
    found, why = judged(CHECK, [launch], facts=facts)
    assert [each.summary for each in found] == ([says] if says else [])
    assert doubt in why
    assert bool(why) == bool(doubt)
    assert all(each.hosts == () for each in found)


def test_a_host_without_the_configuration_that_the_others_have(tmp_path: Path) -> None:
    line = "accelerate launch --num_machines=2 --num_processes=16 --main_process_ip=node1"
    launch = read(tmp_path, f"{line} train.py\n")
    own = [
        HostFile("", trouble="there is no such file"),
        HostFile("1", CONFIG.format(kind="MULTI_GPU", rank=1, hosts=2)),
    ]
    tables = {f"node{n}": {f"/root{launch.configs[0][1:]}": file} for n, file in enumerate(own, 1)}
    facts = {"environment": dict.fromkeys(tables, Environment({})), "tables": tables}
    (found,), _ = judged(CHECK, [launch], facts=facts)
    assert (found.hosts, found.severity) == (("node1",), None)
    assert "has no ~/.cache/huggingface/accelerate/default_config.yaml" in found.summary
    sound = read(tmp_path, f"{line} --machine_rank=$R train.py\n")
    assert judged(CHECK, [sound], facts=facts) == ([], "")


def test_a_pod_may_be_given_its_number_later(tmp_path: Path) -> None:
    launch = read(tmp_path, f"torchrun --nnodes=2 {MASTER} train.py\n")
    logins = dict.fromkeys(("node1", "node2"), Environment({}))
    views = dict.fromkeys(logins, View.CONTAINER)
    found, why = judged(CHECK, [launch], facts={"environment": logins, "view": views})
    assert found == []
    assert "--node_rank is not given" in why


@cases
def test_processes_of_jax(texts: list[str], hosts: int, needed: int, says: list[str], tmp_path: Path) -> None:
    launch = read(tmp_path, *(f"{text}\n" for text in texts))
    found, _ = judged(CHECK, [launch], a_plan(hosts=hosts), {"needed-hosts": needed})
    assert [each.summary for each in found] == says
    assert all(each.hosts == () for each in found)


CONFIG = (
    "distributed_type: {kind}\nmachine_rank: {rank}\nnum_machines: {hosts}\nnum_processes: 16\n"
    "main_process_ip: node1\n"
)


@cases
def test_configurations_of_the_hosts(
    options: str, kinds: list[str], ranks: list[int], hosts: int, says: str, tmp_path: Path
) -> None:
    launch = read(tmp_path, f"accelerate launch {options} train.py\n")
    texts = (CONFIG.format(kind=k, rank=n, hosts=hosts) for k, n in zip(kinds, ranks, strict=True))
    (place,) = launch.configs or ("",)
    path = f"/home/me{place.removeprefix('~')}"
    files = {f"node{n}": {path: HostFile("1", text)} for n, text in enumerate(texts, 1)}
    found, _ = judged(CHECK, [launch], None, {"tables": files})
    assert [each.summary for each in found] == ([says] if says else [])


@pytest.mark.parametrize(
    ("options", "said", "told"),
    [
        ("--machine_rank $1", "main_process_ip: null\n", True),
        ("--machine_rank $1", "", True),
        ("--machine_rank $1", "main_process_ip: 10.0.0.1\n", False),
        ("--machine_rank $1 --main_process_ip node1", "", False),
        ("--machine_rank $1 --num_machines 1", "", False),
        ("--machine_rank $1 --rdzv_backend c10d", "", False),
    ],
)
def test_a_configuration_that_names_nobody_to_meet(
    options: str, said: str, told: bool, tmp_path: Path
) -> None:
    launch = read(tmp_path, f"accelerate launch --config_file /etc/acc.yaml {options} train.py\n")
    text = CONFIG.format(kind="MULTI_GPU", rank=0, hosts=2).replace("main_process_ip: node1\n", said)
    files = {f"node{n}": {"/etc/acc.yaml": HostFile("1", text)} for n in (1, 2)}
    found, _ = judged(CHECK, [launch], None, {"tables": files})
    assert [each.summary for each in found if "main_process_ip" in each.summary] == (
        ["neither /etc/acc.yaml nor the script gives a main_process_ip: no host finds another"] * told
    )


@pytest.mark.parametrize("name", ["HF_HOME", "XDG_CACHE_HOME"])
def test_no_configuration_is_guessed(name: str, tmp_path: Path) -> None:
    """Neither of another cache, nor that of the program."""
    assert read(tmp_path, f"export {name}=/data/x\naccelerate launch train.py\n").configs == ()
    line = "accelerate launch train.py --config_file conf/train.yaml\n"
    (place,) = read(tmp_path, line).configs
    assert place.endswith("/default_config.yaml")


def test_a_configuration_with_a_number_that_no_cluster_has(tmp_path: Path) -> None:
    launch = read(tmp_path, "accelerate launch train.py\n")
    text = CONFIG.format(kind="MULTI_GPU", rank="8" * 5000, hosts="9" * 5000)
    files = {f"node{n}": {f"/home/me{launch.configs[0][1:]}": HostFile("1", text)} for n in (1, 2)}
    found, _ = judged(CHECK, [launch], None, {"tables": files})
    assert all(len(each.actual) < 200 for each in found)


def test_the_configuration_here_is_only_that_of_one_host(tmp_path: Path) -> None:
    (tmp_path / "acc.yaml").write_text(CONFIG.format(kind="MULTI_GPU", rank=0, hosts=2))
    launch = read(tmp_path, "accelerate launch --config_file acc.yaml train.py\n")
    assert len(judged(CHECK, [launch])[0]) == 1, "nobody knows those of the hosts"
    texts = (CONFIG.format(kind="MULTI_GPU", rank=rank, hosts=2) for rank in (0, 1))
    files = {f"node{n}": {f"{tmp_path}/acc.yaml": HostFile("1", text)} for n, text in enumerate(texts, 1)}
    assert judged(CHECK, [launch], None, {"tables": files}) == ([], "")


@pytest.mark.parametrize(
    ("start", "problems"),
    [("python t.py", 0), ("for i in 0 1; do RANK=$((N+i)) python t.py & done; wait", 1)],
)
def test_who_starts_one_rank_may_start_the_others_as_well(start: str, problems: int, tmp_path: Path) -> None:
    launch = read(tmp_path, f"export WORLD_SIZE=8 MASTER_ADDR=192.168.7.1 MASTER_PORT=29500\n{start}\n")
    found, _ = judged(CHECK, [launch], facts=the_facts())
    assert len(found) == problems
