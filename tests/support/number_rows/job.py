"""Numbers in findings about a job: how it is launched, its timeouts and its parallel plan."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from doctor.api import ASCEND, Backend, Check
from doctor.facts.software import Environment
from doctor.facts.system import Devices, FoundDevices
from doctor.job.launch.process_env import Launch, TableSeat
from doctor.job.parallel import read_layout
from doctor.job.plan import draft
from doctor.job.wishes import JobWishes
from doctor.judge.registry import find_checks
from doctor.model import Host, SourcedValue
from tests.support.launches import a_plan, process, read, running, the_facts, torch_rank, worker
from tests.support.shown_numbers import Row

CHECKS = {check.id: check for check in find_checks().checks}


def facts(
    id: str,
    launches: Sequence[Launch],
    hosts: int = 2,
    backend: str = "hccl",
    devices: int = 8,
    product: str = "atlas-a2",
) -> tuple[Any, ...]:
    """The facts of a check of launches, on hosts with so many devices."""
    plan = a_plan(backend, hosts, devices)
    found = Devices({ASCEND.name: FoundDevices(tuple(range(devices)), devices)}, product)
    given = {"plan": plan, "launches": tuple(launches), "needed-hosts": hosts}
    known = {**the_facts(hosts), **given, "devices": {f"node{n}": found for n in range(1, hosts + 1)}}
    check: Check = CHECKS[id]
    return tuple(known.get(getattr(need, "need", need).name) for need in check.needs)  # type: ignore[union-attr]


def with_logins(given: tuple[Any, ...], hosts: int) -> tuple[Any, ...]:
    """The same, of hosts whose logins set nothing."""
    return (*given[:-1], {f"node{n}": Environment({}) for n in range(1, hosts + 1)})


def script(*texts: str) -> list[Launch]:
    with TemporaryDirectory() as folder:
        return [read(Path(folder), *texts)]


def torchrun(nodes: int, each: int = 8, *more: str) -> str:
    words = ("torchrun", f"--nnodes={nodes}", f"--nproc_per_node={each}", "--node_rank=$NODE_RANK", *more)
    return " ".join((*words, "--master_addr=192.168.7.1 --master_port=29500 train.py\n"))


def ranks_of_a_host(number: int) -> list[Launch]:
    env = (torch_rank(n, WORLD_SIZE=number, LOCAL_RANK=n) for n in range(number))
    return list(running(node1=[process(100 + n, own) for n, own in enumerate(env)]))


def numbered(ranks: Sequence[int], world: int) -> list[Launch]:
    """Ranks without devices; the number of a process is its rank and a hundred."""
    return list(running(node1=[process(100 + rank, {"RANK": rank, "WORLD_SIZE": world}) for rank in ranks]))


def shown(first: Sequence[object], most: int, number: int) -> str:
    """The first few, which are constants, and how many more there are."""
    return " ".join(
        [*(f"{each}!" for each in first[:most]), *([str(number - most)] if number > most else [])]
    )


def schedulers(number: int) -> list[Launch]:
    own = [process(50 + n, {**worker(n), "MS_ROLE": "MS_SCHED"}) for n in range(number)]
    return list(running(node1=own + [process(100 + n, worker(n)) for n in range(8)]))


def workers(number: int, world: int) -> list[Launch]:
    plain = {name: value for name, value in worker(0, world).items() if name != "MS_NODE_ID"}
    return list(running(node1=[process(100 + n, plain) for n in range(number)]))


def at(node: str, nodes: int) -> str:
    return f"torchrun --nnodes={nodes} --nproc_per_node=8 --node_rank={node} --master_addr=192.168.7.1 t.py\n"


def alike(times: int, device: int = 0) -> list[Launch]:
    """Ranks of one host on one device."""
    return list(
        running(
            node1=[process(100 + n, torch_rank(n, WORLD_SIZE=times, LOCAL_RANK=device)) for n in range(times)]
        )
    )


def timeouts(**seconds: int) -> list[Launch]:
    said = " ".join(f"HCCL_{name.upper()}_TIMEOUT={value}" for name, value in seconds.items())
    return script(f"export {said}\ntorchrun --nnodes=1 t.py\n")


def msrun(world: int, local: int) -> str:
    return f"msrun --worker_num={world} --local_worker_num={local} --master_addr=h --node_rank=%d n.py\n"


def out_of_table(number: int, device: int) -> Launch:
    """Ranks whose devices are not in their rank table."""
    (launch,) = script(*(f"DEVICE_ID={device + n}\n" for n in range(number)))
    seat = TableSeat(None, 8, {n: n for n in range(8)}, "/t.json")
    return replace(launch, told=tuple(replace(each, seat=seat) for each in launch.told))


START = "export MASTER_ADDR=127.0.0.1 MASTER_PORT=1 WORLD_SIZE={}\n"


def plan(
    said: str, *on_each: int, product: str = "atlas-a2", backend: Backend = Backend.HCCL
) -> tuple[Any, ...]:
    """The facts of plan-invalid, for hosts with so many devices."""
    ranks = {f"node{n}": number for n, number in enumerate(on_each, 1)}
    drawn = draft([Host(name, name) for name in ranks], JobWishes())
    hosts = tuple(
        replace(host, ranks=SourcedValue(ranks[host.name], "devices found")) for host in drawn.hosts
    )
    found = {
        host: Devices({ASCEND.name: FoundDevices(tuple(range(n)), n)}, product) for host, n in ranks.items()
    }
    layout = SourcedValue(read_layout([said]), "--plan") if said else None
    return replace(drawn, hosts=hosts, backend=SourcedValue(backend, "test"), layout=layout), found


def sizes(**stated: int) -> tuple[Any, ...]:
    """The facts of plan-invalid, for a launch that states these sizes."""
    return *plan("dp=64", 32, 32), None, (Launch("run.sh", (), complete=False, sizes=stated),)


def twice(first: int) -> str:
    return " ".join(f"{n} {n}" for n in range(first, first + 4))


def spots(first: int) -> str:
    """Ranks and their processes."""
    return " ".join(f"{rank} {100 + rank}" for rank in range(first, first + 4))


ROWS: dict[str, Row] = {
    "launch-hosts: more": lambda wanted=16, hosts=4: (
        facts("launch-hosts", script(torchrun(wanted)), hosts),
        f"{wanted} {hosts} {wanted} {hosts} {hosts} {wanted} {wanted} {hosts} …",
    ),
    "launch-hosts: fewer": lambda wanted=4, hosts=32: (
        facts("launch-hosts", script(torchrun(wanted)), hosts),
        f"{wanted} {hosts} {wanted} {hosts} {hosts} {wanted} {wanted} …",
    ),
    "launch-hosts: uneven": lambda world=170, each=16, hosts=4: (
        facts("launch-hosts", script(f"msrun --worker_num={world} --local_worker_num={each} n.py\n"), hosts),
        f"{world} {each} {each} {hosts * each} {hosts} {world} {each} …",
    ),
    "launch-hosts: of a loop": lambda world=64, each=4, hosts=4: (
        facts(
            "launch-hosts",
            script(
                f"export WORLD_SIZE={world} MASTER_ADDR=192.168.7.1 MASTER_PORT=29500\n"
                f"for i in {{1..{each}}}; do RANK=$((N+i)) python t.py & done; wait\n"
            ),
            hosts,
        ),
        f"{world // each} {hosts} " * 2 + f"{hosts} {world} {each} {world // each} {each * hosts} …",
    ),
    "launch-hosts: all in one place": lambda hosts=4: (
        facts(
            "launch-hosts",
            script(
                f"for i in {{0..{hosts - 1}}}; do torchrun --nnodes={hosts} --nproc_per_node=8 "
                "--node_rank=$i --master_addr=192.168.7.1 t.py & done; wait\n"
            ),
            hosts,
        ),
        f"{hosts} 0! {hosts - 1} …",
    ),
    "launch-hosts: no number": lambda hosts=4: (
        facts("launch-hosts", script("accelerate launch train.py\n"), hosts),
        f"{hosts} {hosts} {hosts} {hosts} 1! …",
    ),
    "launch-hosts: no hosts": lambda hosts=4: (
        facts("launch-hosts", script("mpirun -np 16 python train.py\n"), hosts),
        f"{hosts} {hosts} {hosts} {hosts} 1! …",
    ),
    "launch-hosts: slots": lambda ranks=64, slots=8: (
        facts("launch-hosts", script(f"horovodrun -np {ranks} -H node1:{slots},node2:{slots} python t.py\n")),
        f"{ranks} {2 * slots} {ranks} {2 * slots} …",
    ),
    "launch-hosts: not divided": lambda ranks=13, hosts=4: (
        facts(
            "launch-hosts",
            script(
                f"accelerate launch --num_machines={hosts} --num_processes={ranks} --machine_rank=$1 "
                "--main_process_ip=192.168.7.1 t.py\n"
            ),
            hosts,
        ),
        f"{ranks} {hosts} {ranks // hosts} {ranks} {hosts} {ranks // hosts * hosts} "
        f"{(ranks // hosts + 1) * hosts} …",
    ),
    "launch-ranks: one port": lambda jobs=4, port=29500: (
        facts(
            "launch-ranks",
            script(f"torchrun --nproc_per_node=1 --master_port={port} t.py &\n" * jobs + "wait\n"),
            hosts=1,
        ),
        f"{jobs} {port} {f'{jobs - 4} ' if jobs > 4 else ''}{port} …",
    ),
    "launch-hosts: no node rank": lambda hosts=16: (
        with_logins(
            facts("launch-hosts", script(f"torchrun --nnodes={hosts} --master_addr=node1 t.py\n"), hosts),
            hosts,
        ),
        f"{hosts} 0! 1! 2! 3! …",
    ),
    "launch-hosts: processes": lambda hosts=16, size=12: (
        facts(
            "launch-hosts",
            script(f"python t.py --coordinator_address=node1:1 --num_processes={size} --process_id=$N\n"),
            hosts,
        ),
        f"{size} {hosts} {hosts} {hosts} {size} 1! {hosts} {hosts} …",
    ),
    "launch-hosts: process": lambda hosts=16: (
        facts(
            "launch-hosts",
            script(
                f"python t.py --coordinator_address=node1:1 --num_processes={hosts} --process_id={hosts}\n"
            ),
            hosts,
        ),
        f"{hosts} 0! {hosts - 1} {hosts} 1! 0! 1! 2! 3! …",
    ),
    "launch-hosts: same": lambda hosts=16, node=2: (
        facts("launch-hosts", script(at(f"{node}", hosts)), hosts),
        f"{node} {hosts} {node} 0! 1! 2! 3! …",
    ),
    "launch-hosts: ranks": lambda hosts=4, started=4, world=32: (
        facts(
            "launch-hosts",
            script(
                START.format(world).replace("127.0.0.1", "192.168.7.1")
                + "".join(f"RANK={n} python t.py &\n" for n in range(started))
                + "wait\n"
            ),
            hosts,
        ),
        f"0 {started - 1} {world} {hosts} 0 {started - 1} {started} {world - 1} …",
    ),
    "launch-ranks: range": lambda world=8, number=12: (
        facts("launch-ranks", numbered([*range(world - 1), *range(world, world + number)], world)),
        f"0 {world - 1} {world} {spots(world)} {number - 4} 0 {world - 1} {world} …",
    ),
    "launch-ranks: unset": lambda ranks=8: (
        facts(
            "launch-ranks",
            list(
                running(
                    node1=[
                        *(process(100 + n, {"RANK": n, "WORLD_SIZE": ranks + 1}) for n in range(ranks)),
                        process(99, {"WORLD_SIZE": ranks + 1}),
                    ]
                )
            ),
        ),
        f"{ranks} 99! …",
    ),
    "launch-ranks: missing": lambda world=16: (
        facts("launch-ranks", script(*[f"RANK_ID=0\nRANK_SIZE={world}\n"] * world)),
        f"0 {world} {world - 6} 0 {'0 ' * 6} 0 {world - 1} {world} 1! {world - 1} 1! {world - 1} "
        f"{world} {world} {world}",
    ),
    "launch-ranks: device": lambda ranks=4, device=2: (
        facts("launch-ranks", alike(ranks, device)),
        f"{ranks} {device} 0 {ranks - 1} {device} …",
    ),
    "launch-ranks: beyond": lambda devices=4, ranks=32: (
        facts("launch-ranks", ranks_of_a_host(ranks), devices=devices),
        f"0 {devices - 1} {devices} {twice(devices)} {ranks - devices - 4} …",
    ),
    "launch-ranks: node rank": lambda nodes=8, node=64: (
        facts("launch-ranks", script(at(f"{node}", nodes))),
        f"0 {nodes - 1} {nodes} {node} 0 {nodes - 1} …",
    ),
    "launch-ranks: schedulers": lambda number=4: (
        facts("launch-ranks", schedulers(number)),
        f"{number} {shown(range(50, 50 + number), 6, 0)} …",
    ),
    "launch-ranks: workers": lambda number=32, world=8: (
        facts("launch-ranks", workers(number, world)),
        f"{world} {number} {number} …",
    ),
    "launch-ranks: role": lambda number=16: (
        facts(
            "launch-ranks",
            list(running(node1=[process(100 + n, {"MS_ROLE": "BOSS"}) for n in range(number)])),
        ),
        f"{shown(range(100, 104), 4, number)} …",
    ),
    "launch-ranks: table": lambda number=16, device=20: (
        facts("launch-ranks", [out_of_table(number, device)]),
        f"0 7! {device} {device + 1} {device + 2} {device + 3} {shown((), 0, number - 4)} …",
    ),
    "launch-ranks: starts": lambda world=64, started=8: (
        facts(
            "launch-ranks",
            script(START.format(world) + f"for i in $(seq {started}); do RANK=$i python t.py & done; wait\n"),
            1,
        ),
        f"{world} {started} {started} …",
    ),
    "launch-inconsistent: workers": lambda world=64, local=8: (
        facts("launch-inconsistent", script(*(msrun(world, local) % n for n in range(2)))),
        f"{world} {2 * local} {local} {local} {2 * local} …",
    ),
    "launch-inconsistent: world": lambda nodes=2, each=8: (
        facts(
            "launch-inconsistent",
            script(f"export NNODES={nodes} NPROC_PER_NODE={each} WORLD_SIZE=99 NODE_RANK=0 MASTER_ADDR=h\n"),
        ),
        f"{nodes * each} {nodes} {each} 99! {nodes * each} …",
    ),
    "launch-values": lambda said=40: (
        (replace(a_plan("hccl", 2, 8), env={"HCCL_RDMA_SL": f"{said}"}),),
        f"0! 7! {said} {said}",
    ),
    "launch-timeouts: rounded": lambda event=400, execute=1800: (
        facts("launch-timeouts", timeouts(connect=120, exec=execute, event=event), product="atlas-training"),
        f"{execute // 68 * 68} {event} {execute} {execute // 68 * 68} {execute + 32} …",
    ),
    "launch-timeouts: range": lambda connect=50: (
        facts("launch-timeouts", timeouts(connect=connect)),
        f"120! 7200! {connect} 120! …",
    ),
    "plan-invalid: no such dp": lambda dp=4, tp=6, each=32: (
        plan(f"dp={dp},tp={tp}", each, each),
        f"{2 * each} {tp} {dp} {tp} {dp * tp} {2 * each} {each} …",
    ),
    "plan-invalid: world": lambda dp=4, world=64: (
        plan(f"dp={dp},world={world}", 8, 8),
        f"{world} {world} {dp} {dp} {world} {dp} {world}",
    ),
    "plan-invalid: uneven": lambda each=8, parts=64: (
        plan(f"framework=mindspore,parallel_mode=semi_auto_parallel,strategy=(({parts},2),)", each, each),
        f"{2 * each} {parts} 2! {2 * parts} {parts} 2! {2 * each} {parts} 2!",
    ),
    "plan-invalid: spans": lambda tp=64, few=4, more=12: (
        plan(f"tp={tp}", few, more, few, more, 256 - 2 * (few + more)),
        f"{few} {tp} {few} {more} …",
    ),
    "plan-invalid: experts": lambda ep=6, each=8: (plan(f"ep={ep}", each, each), f"{2 * each} {ep} {ep}"),
    "plan-invalid: heads": lambda tp=8, heads=30: (
        plan(f"tp={tp},heads={heads}", 32, 32),
        f"{heads} {tp} {tp} {heads}",
    ),
    "plan-invalid: hidden": lambda hidden=101, heads=8: (
        plan(f"hidden={hidden},heads={heads}", 32, 32),
        f"{hidden} {heads} {heads} {hidden}",
    ),
    "plan-invalid: experts of a layer": lambda ep=4, experts=31: (
        plan(f"ep={ep},experts={experts}", 32, 32),
        f"{experts} {ep} {ep} {experts}",
    ),
    "plan-invalid: sum": lambda samples=512, micro=2, times=4, tp=4: (
        plan(f"global_batch={samples},micro_batch={micro},accumulation={times},tp={tp}", 32, 32),
        f"{micro * times * 64 // tp} {micro} {64 // tp} {times} {samples} …",
    ),
    "plan-invalid: layers": lambda pp=8, layers=30: (
        plan(f"pp={pp},layers={layers}", 32, 32),
        f"{layers} {pp} {pp} {layers}",
    ),
    "plan-invalid: virtual stages": lambda layers=160, pp=4, chunk=12: (
        sizes(layers=layers, pp=pp, chunk=chunk),
        f"{layers // pp} {layers} {pp} {chunk} …",
    ),
    "plan-invalid: number of virtual stages": lambda layers=160, pp=4, chunks=12: (
        sizes(layers=layers, pp=pp, chunks=chunks),
        f"{layers // pp} {layers} {pp} {chunks} …",
    ),
    "plan-invalid: sequence": lambda cp=12, sequence=1000: (
        sizes(cp=cp, sequence=sequence),
        f"{2 * cp} {sequence} …",
    ),
    "plan-invalid: positions": lambda positions=100, sequence=1000: (
        sizes(positions=positions, sequence=sequence),
        f"{sequence} {positions} {sequence} …",
    ),
    "plan-invalid: batch": lambda samples=30, micro=3, tp=4: (
        plan(f"global_batch={samples},micro_batch={micro},tp={tp}", 32, 32),
        f"{micro * 64 // tp} {micro} {64 // tp} {samples} …",
    ),
    "plan-invalid: kv": lambda heads=32, kv=12: (
        plan(f"heads={heads},kv_heads={kv}", 32, 32),
        f"{heads} {kv} {heads} {kv}",
    ),
    "plan-invalid: kv and tp": lambda tp=8, kv=30: (
        plan(f"tp={tp},kv_heads={kv}", 32, 32),
        f"{kv} {tp} {tp} {kv}",
    ),
    "plan-invalid: another lr": lambda lr=0.0015, before=0.004: (
        plan(f"batch=4,batch_before=2,lr={lr},lr_before={before},devices_before=8,dp=16", 8, 8),
        f"4! {4 * before:g} 1! 8! 16! 2! 4! {before:g} {lr:g} …",
    ),
}
