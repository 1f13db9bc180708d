"""Hosts with emulated NVIDIA GPUs: answers of nvidia-smi, faulty GPUs, no driver, and the reset of
everything.
"""

import csv
import re

import pytest

from tests.lab import gpu_texts as says
from tests.lab.emulated import MARK
from tests.lab.gpus import GpuHost, Gpus
from tests.support.captures import sample

LIST = "index,uuid,name,pci.bus_id,memory.used,temperature.gpu,pstate"
Answer = tuple[int, str]


def smi(host: GpuHost, arguments: str, user: str = "trainee") -> Answer:
    """Exit code and stdout of `nvidia-smi ARGUMENTS`."""
    done = host.host.ask(f"nvidia-smi {arguments}", user=user)
    assert done.stderr == ""
    return done.returncode, done.stdout


def query(host: GpuHost, fields: str, form: str = "csv,noheader") -> list[list[str]]:
    lines = smi(host, f"--query-gpu={fields} --format={form}")[1].splitlines()
    return [list(row) for row in csv.reader(lines, skipinitialspace=True)]


# The same layout as real output.


def header(name: str) -> str:
    return sample(f"nvidia-smi/{name}").splitlines()[0]


@pytest.mark.parametrize("name", ["gpus_h100_8gpu.csv", "health_h100_8gpu.csv"])
def test_titles_are_the_real_ones(gpus: Gpus, name: str) -> None:
    fields = re.sub(r" \[\w+\]", "", header(name)).replace(" ", "")
    lines = smi(gpus["node1"], f"--query-gpu={fields} --format=csv")[1].splitlines()
    assert lines[0] == header(name)
    assert len(lines) == 9
    assert [len(line.split(", ")) for line in lines] == [len(fields.split(","))] * 9


def test_a_healthy_gpu_looks_like_a_real_one(gpus: Gpus) -> None:
    host = gpus["node1"]
    host[4].processes(("python", 41207, 70511))
    host[4]["temperature.gpu"] = 58

    def alike(row: str) -> str:
        row = re.sub(r"GPU-[0-9a-f-]{36}", "UUID", row)
        return re.sub(r"00000000:[0-9A-F]{2}:00.0|\b(2[789]|3[01])\b", "N", row)

    real = sample("nvidia-smi/gpus_h100_8gpu.csv").splitlines()
    shown = smi(host, f"--query-gpu={LIST} --format=csv")[1].splitlines()
    assert [alike(row) for row in shown] == [alike(row) for row in real]


def test_links_and_topology_look_like_real_ones(gpus: Gpus) -> None:
    host = gpus["node1"]
    host[1].links_down(4, 11)
    host[2].links_down()
    real = re.sub(r"GPU-[0-9a-f-]{36}", "UUID", sample("nvidia-smi/nvlink_status_mixed.txt"))
    shown = re.sub(r"GPU-[0-9a-f-]{36}", "UUID", smi(host, "nvlink --status")[1])
    assert shown.splitlines()[:40] == real.splitlines()[:40]
    matrix = smi(host, "topo -m")[1].splitlines()
    real_matrix = sample("nvidia-smi/topo_m_h100_nics.txt").splitlines()
    assert matrix[0].replace("GPU4\tGPU5\tGPU6\tGPU7", "NIC0\tNIC1") == real_matrix[0]
    assert matrix[1].startswith("GPU0\t X \tNV18\tNV18\t")
    host.joined(3, 0, "SYS")
    assert smi(host, "topo -m")[1].splitlines()[1].startswith("GPU0\t X \tNV18\tNV18\tSYS\t")
    assert smi(host, "topo -m")[1].splitlines()[4].startswith("GPU3\tSYS\tNV18")


def test_the_table_is_rectangular(gpus: Gpus) -> None:
    host = gpus["node1"]
    host[3].processes(("python", 4242, 30000))
    host[5].lost()
    lines = smi(host, "")[1].splitlines()
    assert {len(line) for line in lines[1:] if line} == {91}
    real = "|   {}  {:<27} {:>6} |   00000000:29:00.0 Off |                    0 |"
    assert real.format(1, says.MODEL, "On") in lines
    assert re.search(r"\| +3 +N/A +N/A +4242 +C +python +30000MiB \|", "\n".join(lines))


# Queries.


def test_fields_are_printed_in_the_order_of_the_query(gpus: Gpus) -> None:
    host = gpus["node1"]
    fields = ",".join(says.FIELDS)
    rows = query(host, fields, "csv,noheader,nounits")
    assert rows == [list(gpu.values.values()) for gpu in host]
    assert query(host, "memory.used,index", "csv")[:2] == [["memory.used [MiB]", "index"], ["1 MiB", "0"]]
    assert query(host, "power.draw,index", "csv,nounits")[1] == ["69.20", "0"]
    assert smi(host, "--query-gpu=index --format=csv,noheader -i 3") == (0, "3\n")
    assert len(smi(host, "-L")[1].splitlines()) == 8
    assert not gpus.setters
    assert host.calls[0].startswith("--query-gpu=index,")


def test_an_unknown_field_is_refused(gpus: Gpus) -> None:
    host = gpus["node1"]
    refused = (2, 'Field "gpu.colour" is not a valid field to query.\n\n')
    assert smi(host, "--query-gpu=index,gpu.colour --format=csv") == refused
    asked = "--query-gpu=index,gpu_recovery_action --format=csv,noheader"
    assert smi(host, asked)[0] == 0
    host.driver_lacks("gpu_recovery_action", "fabric.health.summary")
    assert smi(host, asked) == (2, 'Field "gpu_recovery_action" is not a valid field to query.\n\n')
    assert smi(host, "--query-gpu=index,fabric.state --format=csv,noheader")[1].startswith("0, Completed\n")


def test_processes(gpus: Gpus) -> None:
    host = gpus["node1"]
    asked = "--query-compute-apps=gpu_uuid,pid,used_gpu_memory,process_name --format=csv"
    titles = f"{header('apps.csv')}\n"
    assert smi(host, asked) == (0, titles)
    host[3].processes(("/opt/python", 1234, 30000), ("train", 77, 12))
    rows = "".join(
        f"{host[3]['uuid']}, {rest}\n" for rest in ("1234, 30000 MiB, /opt/python", "77, 12 MiB, train")
    )
    assert smi(host, asked) == (0, titles + rows)
    assert query(host, "memory.used,memory.free")[3] == ["30013 MiB", f"{says.MEMORY - 30013} MiB"]


def test_gpus_that_are_gone(gpus: Gpus) -> None:
    host = gpus["node1"]
    host[5].lost()
    code, shown = smi(host, f"--query-gpu={LIST} --format=csv,noheader")
    assert code == 15
    assert shown.splitlines()[5].endswith("[GPU is lost], [GPU is lost], [GPU is lost]")
    host[6].unknown()
    code, shown = smi(host, f"--query-gpu={LIST} --format=csv,noheader")
    assert code == 255
    assert shown.splitlines()[6] == "Unable to determine the device handle for GPU0000:79:00.0: Unknown Error"
    host.drop(7)
    assert len(query(host, "index")) == 7
    look = "ls /dev/nvidia[0-9]*; grep -c 10de2330 /proc/bus/pci/devices"
    assert host.host.ask(look).stdout.split() == [*(f"/dev/nvidia{n}" for n in range(7)), "7"]
    gpus.reset()
    assert len(host.host.ask(look).stdout.split()) == 9
    assert len(query(host, "index")) == 8


def test_calls_that_change_something_are_recorded(gpus: Gpus) -> None:
    assert smi(gpus["node1"], "--gpu-reset -i 0")[0] == 0
    assert gpus.setters == (("node1", "--gpu-reset -i 0"),)


def test_a_rebooted_host_gets_its_emulators_again(gpus: Gpus) -> None:
    host = gpus["node1"]
    host[0].ecc(1)
    host.host.do("rm /usr/bin/nvidia-smi")
    gpus.lab.reset()
    gpus.reset()
    assert query(host, "ecc.errors.uncorrected.volatile.total") == [["0"]] * 8
    assert host.host.ask(f"[ -e {MARK} ]").returncode == 0
