"""The text that a person types or pastes leads to the right symptom, whichever part of a message it is."""

from functools import cache
from pathlib import Path

import pytest

from doctor.cli.explain import words
from doctor.cli.explain.mentions import mentioned
from doctor.cli.explain.page import TextPage
from doctor.cli.explain.words import explain_words
from doctor.judge.registry import check_ids
from tests.support.cases import cases
from tests.support.each import each
from tests.support.fault_logs import matcher
from tests.support.paths import ROOT

FRAGMENTS = [
    tuple(line.split(None, 1))
    for line in (ROOT / "tests/unit/logs/fragments.txt").read_text().splitlines()
    if not line.startswith("#")
]
WORDS = [
    tuple(line.split())
    for line in """
port-in-use          HCCL_IF_BASE_PORT MASTER_PORT
launch-timeouts      HCCL_CONNECT_TIMEOUT HCCL_EXEC_TIMEOUT HCCL_EVENT_TIMEOUT
launch-inconsistent  HCCL_WHITELIST_DISABLE HCCL_BUFFSIZE HCCL_INTRA_ROCE_ENABLE HCCL_NPU_SOCKET_PORT_RANGE
launch-inconsistent  HCCL_RDMA_TC HCCL_DETERMINISTIC MINDSPORE_HCCL_CONFIG_PATH RANK_SIZE MS_SCHED_PORT
launch-inconsistent  CM_CHIEF_IP NCCL_ALGO NCCL_IB_DISABLE NCCL_P2P_DISABLE WORLD_SIZE --master_port
interface-missing    HCCL_SOCKET_IFNAME HCCL_IF_IP NCCL_SOCKET_IFNAME GLOO_SOCKET_IFNAME
env-drift            HCCL_WHITELIST_FILE NCCL_IB_GID_INDEX NCCL_DEBUG TP_SOCKET_IFNAME OMP_NUM_THREADS
env-drift            LD_LIBRARY_PATH ASCEND_TOOLKIT_HOME PYTORCH_NPU_ALLOC_CONF TORCH_NCCL_BLOCKING_WAIT
env-drift            UCX_TLS PYTHONHASHSEED
launch-ranks         RANK RANK_ID LOCAL_RANK NODE_RANK DEVICE_ID MS_ROLE MS_WORKER_NUM
launch-ranks         MS_NODE_ID --nproc_per_node
rank-table-differs   RANK_TABLE_FILE
master-not-here      MASTER_ADDR MS_SCHED_HOST --rdzv_endpoint --master_addr
launch-hosts         --nnodes
gpu-missing          CUDA_VISIBLE_DEVICES lspci
device-missing       ASCEND_RT_VISIBLE_DEVICES /dev/davinci0 npu-smi
ib-port-down         NCCL_IB_HCA ibstat
somaxconn-low        somaxconn net.core.somaxconn
syn-backlog-low      tcp_max_syn_backlog net.ipv4.tcp_max_syn_backlog
ports-not-reserved   ip_local_reserved_ports net.ipv4.ip_local_reserved_ports
ephemeral-ports-few  ip_local_port_range
device-net-unhealthy hccn_tool net_health netdetect
device-ip-missing    hccn.conf /etc/hccn.conf
device-tls-mismatch  tls
firewall-blocks      ufw iptables firewalld
port-unreachable     firewall-cmd nft
nofile-low           nofile LimitNOFILE
nproc-low            nproc
memlock-low          memlock
shm-small            /dev/shm --shm-size shm
hostname-loopback    /etc/hosts
clock-skew           chrony timedatectl
fabric-manager-down  fabricmanager nvidia-fabricmanager
gpu-xid              Xid
gpu-ecc              ECC
""".strip().splitlines()
]
"""A check, and words of launch guides whose answer is the page of the check, or names it."""
NEAR_ONLY = {"device id: 9"}
"""Too short to be a message, and listed among similar ones."""


@pytest.fixture(autouse=True)
def _ids_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "check_ids", _IDS)


_IDS = cache(check_ids)


def explained(text: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = explain_words(text, matcher, TextPage(colours="never"))
    return code, capsys.readouterr().out


@pytest.mark.slow
@each("fragment", FRAGMENTS)
def test_a_part_of_a_message(fragment: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    id, text = fragment
    code, said = explained(text, capsys)
    assert id in said.split("Read on")[0]
    assert code == (3 if text in NEAR_ONLY else 0)


@cases
def test_what_people_type(text: str, id: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = explained(text, capsys)
    assert (code, id in said) == (0, True), said


@pytest.mark.slow
@each("row", WORDS)
def test_a_word_of_a_launch_guide(row: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    id, *typed = row
    for word in typed:
        code, said = explained(word, capsys)
        assert (code, id in said) == (0, True), (word, said)


@cases
def test_a_command_of_a_launch_guide(id: str, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = explained(command, capsys)
    assert (code, id in said) == (0, True), said


def test_one_check_is_shown_with_what_it_does_and_messages_about_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert explained("NCCL_ALGO", capsys)[1].startswith(
        "launch-inconsistent compares the ranks' NCCL_ALGO.\n\nlaunch-inconsistent: a fault"
    )
    said = explained("MASTER_ADDR", capsys)[1]
    assert said.startswith("2 checks mention MASTER_ADDR; doctor explain ID shows one:\n")
    assert "Messages in logs about it:\n  torch-env-missing" in said


def test_a_word_that_no_check_is_about_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    for word in ("SOME_OTHER_VARIABLE", "setenforce 0", "AWS_SECRET_ACCESS_KEY", "nc -zv node2 29500"):
        assert explained(word, capsys)[0] == 3


def test_few_letters_are_no_part_of_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("it is", "a … b", "my cat sleeps on the keyboard"):
        assert explained(text, capsys)[0] == 3


def test_several_codes_are_all_told(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = explained("EI0006, 507018", capsys)
    assert code == 0
    assert "hccl-ei0006: " in said
    assert "acl-507018: " in said


def test_numbers_behind_a_word_do_not_hide_what_it_is() -> None:
    folders: list[Path] = []
    assert mentioned("NCCL_ALGO 3 7", folders) == mentioned("NCCL_ALGO", folders) is not None
