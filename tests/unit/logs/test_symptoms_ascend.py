"""The symptoms of Huawei's stack: samples are recognised, codes are answered, and no other number is taken
for a code.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from doctor.judge.registry import find_checks
from doctor.logs.model import Role
from doctor.logs.symptoms.load import load_symptoms
from doctor.logs.symptoms.match import Matcher
from tests.support.each import each

SAMPLES = Path(__file__).parents[2] / "samples" / "logs" / "ascend"
FAMILIES = ("hccl", "cann", "acl", "npu", "torch_npu", "mindspore", "launch")
KNOWN = {
    "plog/EI0001_invalid_env_rdma_sl.log": "hccl-ei0001",
    "plog/EI0002_notify_wait_2025_10.log": "hccl-task-data hccl-task-failed hccl-task-failed-group",
    "plog/EI0004_ranktable_path_invalid.log": "hccl-ei0004",
    "plog/EI0004_superdeviceid_or_field.log": "hccl-ei0004",
    "plog/EI0005_check_fail.log": "hccl-ei0005",
    "plog/EI0006_A3_link_timeout_with_tlsstatus_2026.log": (
        "hccl-ei0006 hccl-pair-not-connected hccl-wait-link hccl-wait-transport"
    ),
    "plog/EI0012_sdma_ffts.log": "hccl-ei0012 hccl-task-data hccl-task-failed hccl-task-failed-group",
    "plog/EI0013_heartbeat_roce_cqe.log": "hccl-ei0013",
    "plog/EI0013_roce_cqe.log": "hccl-ei0013 hccp-error-cqe",
    "plog/EI0019_bind_fail_socket_type2_host.log": "hccl-ei0019",
    "plog/EJ0001_device_hccp_create_server_failed_61.log": "hccl-ej0001",
    "plog/EJ0001_tdt_hccp_start_failed.log": "hccl-ej0001 hccl-tsd-open-failed",
    "plog/EJ0002_port_down_ret_-67.log": "hccl-ej0002",
    "plog/EJ0003_bind_error_98.log": "hccl-ej0003",
    "plog/EJ0003_bind_error_99.log": "hccp-address-not-here",
    "plog/EJ0003_client_bind_error_99_ipv6.log": "hccp-address-not-here",
    "plog/EJ0004_ranktable_ip_inconsistent_2023.log": "hccl-ej0004",
    "plog/aicore_507015_A3_console.log": "acl-507015 cann-ez9999",
    "plog/aicore_error_2025_04.log": "acl-507015",
    "plog/connect_timeout_A2_client_side_plog-114654.log": "hccl-ei0006 hccl-wait-link hccl-wait-p2p",
    "plog/connect_timeout_A2_p2p_plog-114650.log": "hccl-wait-p2p",
    "plog/connect_timeout_A2_run_plog-114654.log": "",
    "plog/device_aicpu_notify_wait_device-1365.log": "cann-wrap-task-failed hccl-ei0002",
    "plog/device_aicpu_sdma_device-1382.log": "cann-wrap-task-failed hccl-ei0012",
    "plog/device_hccp_tls_enable_lines.log": "",
    "plog/error_cqe_910A_plog-12337.log": "hccl-ei0013",
    "plog/hbm_multi_bit_ecc_runtime_message.log": "npu-hbm-multi-bit",
    "plog/hccp_ssl_unknown_ca_tls_mismatch.log": "hccl-tls-differs",
    "plog/heartbeat_cluster_exception_lost.log": "hccl-heartbeat-lost",
    "plog/mixed_rootinfo_notify_timeout_example.log": (
        "hccl-ei0002 hccl-ei0013 hccl-ei0015 hccl-heartbeat-chain hccl-root-list-of-ranks "
        "hccl-task-failed hccl-task-failed-group hccl-wait-for-rank hccl-wait-ranks hccl-wait-recv"
    ),
    "plog/no_connect_server_plog-59420.log": "hccl-ei0006 hccl-wait-link",
    "plog/pta_dispatch_timeout_plog-1365.log": "cann-wrap-task-failed torch-npu-dispatch-timeout",
    "plog/ranktable_check_devices_superpod_size.log": "hccl-ei0014",
    "plog/ranktable_check_ip_family_mismatch.log": "hccl-ei0014",
    "plog/run_HCCL_ENV_defaults_2026.log": "",
    "plog/run_entry_comm_init_rootinfo.log": "",
    "plog/run_entry_group_lines.log": "",
    "plog/run_env_config_not_set_2025_12.log": "",
    "plog/run_heartbeat_crimer_rank.log": "hccl-heartbeat-chain",
    "plog/sdma_mem_alloc_kg_plog-10972.log": "cann-device-memory-full cann-e30008 hccl-ei0012",
    "plog/socket_timeout.log": "hccl-ei0006",
    "plog/socket_timeout_910A_plog-10972.log": (
        "acl-507051 cann-wrap-async-copy hccl-ei0006 hccl-ei0012 hccl-ei0013"
    ),
    "plog/topo_exchange_base_timeout_tail.log": "hccl-root-misses-ranks",
    "plog/topo_exchange_server_timeout_lists_missing_ranks.log": "hccl-root-list-of-ranks hccl-wait-ranks",
    "plog/transport_recv_fail_plog-114650.log": "hccl-peer-closed hccl-wait-transport",
    "plog/vector_core_507035_A3_console.log": "acl-507035 cann-ez9999",
    "console/EI0001_invalid_env.log": "hccl-ei0001",
    "console/EI0005_inconsistent_args.log": "hccl-ei0005 hccl-wait-transport mindspore-wrap-load-task",
    "console/EI0011_qp_oom.log": "hccl-ei0011",
    "console/EI0012_sdma.log": "hccl-ei0012",
    "console/EI0013_roce_cqe.log": "hccl-ei0013",
    "console/EI0019_bind_host_port.log": "hccl-ei0019",
    "console/torch_npu_setdevice_507033_E30003_ocr.txt": "acl-107002 acl-507033 cann-e30003 cann-e30008",
    "mindspore/E39999_aicpu.log": "acl-507011 acl-507018 cann-e39999 mindspore-wrap-run-graph",
    "mindspore/EE1001_set_device_107001.log": "acl-107001",
    "mindspore/EE9999_runtime_task_507011.log": "acl-507011 cann-data-queue-wrong-type cann-ee9999",
    "mindspore/EI0002_notify_wait.log": "acl-507011 hccl-ei0002 hccl-heartbeat-lost",
    "mindspore/EI0004_ranktable_invalid.log": "hccl-ei0004 mindspore-wrap-comm-init",
    "mindspore/EI0005_inconsistent_load_task_fail.log": (
        "hccl-ei0005 mindspore-slow-data mindspore-wrap-load-task"
    ),
    "mindspore/EJ0001_hccp_init.log": (
        "hccl-ej0001 mindspore-wrap-comm-init mindspore-wrap-null-pointer mindspore-wrap-run-graph"
    ),
    "mindspore/EZ9999_aicore_507011.log": "acl-507011 acl-507015 cann-ez9999 mindspore-wrap-run-graph",
    "mindspore/gpu_set_device_invalid_ordinal.log": "mindspore-gpu-number",
    "mindspore/hccl_comm_init_rootinfo_failed.log": "mindspore-comm-init-memory",
    "mindspore/np_tensor_strategy.log": "mindspore-strategy-dimension",
    "mindspore/role_name_invalid.log": "mindspore-role-invalid",
    "mindspore/unique_id_timeout.log": "mindspore-wait-root",
    "torch_npu/ERR01002_wrong_device.log": "torch-npu-err-type torch-npu-wrong-device",
    "torch_npu/EZ9999_cannot_find_bin_of_op.log": (
        "cann-ez9999 cann-operator-not-installed torch-npu-wrap-acl"
    ),
    "torch_npu/init_acl_500001_ERR00100.log": "torch-npu-acl-init-failed torch-npu-wrap-acl",
    "torch_npu/sync_stream_507035_ERR00100.log": "acl-507035 torch-npu-wrap-acl",
    "torch_npu/watchdog_hccl_timeout_format.log": "torch-nccl-down torch-npu-watchdog torch-npu-wrap-stopped",
    "hccl_test/mpi_barrier_failure_firewall_on.log": "launch-mpich-barrier",
    "hccl_test/mpi_init_gethostbyname_failed.log": "mpi-name",
    "hccl_test/retcode_4_device_net.log": "hccl-test-retcode-4",
    "hccl_test/ssh_connection_timed_out.log": "launch-ssh-timed-out",
    "dmesg/npu_heartbeat_lost_0x40F84E00.txt": "npu-heartbeat-lost",
}
"""The symptoms of each sample. Empty: nothing is wrong there, or no single line shows it."""

TAKEN = {
    "plog/topo_exchange_base_timeout_tail.log": ("hccl-root-misses-ranks", {"ranks": "1,3,5,7,"}),
    "plog/connect_timeout_A2_client_side_plog-114654.log": (
        "hccl-wait-link",
        {"peer_address": "192.168.2.199", "peer_rank": "8", "address": "192.168.2.197", "rank": "10"},
    ),
    "plog/no_connect_server_plog-59420.log": (
        "hccl-wait-link",
        {"peer_address": "124.0.0.11", "peer_rank": "1", "address": "124.0.0.21", "rank": "0"},
    ),
    "plog/connect_timeout_A2_p2p_plog-114650.log": ("hccl-wait-p2p", {"device": "0", "peer_device": "1"}),
    "plog/transport_recv_fail_plog-114650.log": (
        "hccl-wait-transport",
        {"rank": "443", "peer_rank": "0", "peer_address": "1.1.1.1", "peer_device": "0"},
    ),
    "plog/error_cqe_910A_plog-12337.log": ("hccl-ei0013", {"peer_address": "192.1.95.102"}),
    "plog/device_aicpu_sdma_device-1382.log": ("hccl-ei0012", {"peer_rank": "2"}),
    "plog/EJ0002_port_down_ret_-67.log": ("hccl-ej0002", {"device": "3"}),
    "plog/hbm_multi_bit_ecc_runtime_message.log": ("npu-hbm-multi-bit", {"device": "3"}),
    "dmesg/npu_heartbeat_lost_0x40F84E00.txt": ("npu-heartbeat-lost", {"device": "1"}),
}


@cache
def matcher() -> Matcher:
    return Matcher(load_symptoms().symptoms)


def found(text: str) -> set[str]:
    return {symptom.id for line in text.splitlines() for symptom, _ in matcher().decide(line, None)}


def test_every_sample_is_expected_to_show_something() -> None:
    assert {
        str(path.relative_to(SAMPLES)) for path in SAMPLES.rglob("*.*") if path.name != "README.md"
    } == set(KNOWN)


@each("name", KNOWN)
def test_a_sample_shows_its_symptoms_and_no_others(name: str) -> None:
    assert found((SAMPLES / name).read_text()) == set(KNOWN[name].split())


@pytest.mark.parametrize("name", TAKEN)
def test_what_the_line_says_of_the_parties_is_taken(name: str) -> None:
    id, expected = TAKEN[name]
    for line in (SAMPLES / name).read_text().splitlines():
        for symptom, taken in matcher().decide(line, None):
            if symptom.id == id:
                assert {key: taken.get(key) for key in expected} == expected
                return
    pytest.fail(f"{id} is not in {name}")


@pytest.mark.parametrize(
    ("line", "id"),
    [
        ("EI0006: Getting socket times out. Reason: none", "hccl-ei0006"),
        ("EI0002: [PID: 7277] 2024-11-28-11:59:30.645.648 text", "hccl-ei0002"),
        (
            "[PID: 7277] 2025-11-28-11:59:30.645.648 Communication_Error_Bind_IP_Port(EI0019): text",
            "hccl-ei0019",
        ),
        ("[TsdClient] DeviceMsgProc  errcode[EJ0001]", "hccl-ej0001"),
        ("Ascend Error Message:EI0005: text", "hccl-ei0005"),
        ("NPU function error: aclrtX, error code is 507035", "acl-507035"),
        ("RuntimeError: Device 8 call rtSetDevice failed, ret[107001]. The details", "acl-107001"),
        ("ErrCode=507011, desc=[the model stream execute failed], InnerCode=0x7150050", "acl-507011"),
        ("       Kernel task happen error, retCode=0x26, [aicore exception].", "acl-507015"),
        ("[ERROR] aclrtSynchronizeStream(stream) failed: 507015 (main.cpp:170)", "acl-507015"),
        ("notify [HCCL] task fail start.notify taskid:3 streamid:2 retcode:507011", "acl-507011"),
        ("device_id=3, event_id=0x80e01801, time us=67672363666.", "npu-hbm-multi-bit"),
    ],
)
def test_a_code_is_known_in_the_forms_in_which_it_is_written(line: str, id: str) -> None:
    assert id in found(line)


@pytest.mark.parametrize(
    "line",
    [
        "global_step: 507018, loss: 1.997",
        "epoch: 1 step: 107001, loss is 507035.0",
        "[INFO] HCCL(507018,python3):2026-01-15-10:20:30.101.457 [op_base.cc:314][507018]Entry",
        "step 207001/507011 | lr 1.0e-4 | tokens 107002",
        "sha256 0xaaE30003bbEE1001cc 80e01801",
        '[INFO] HCCL(1,python3):2026-01-15-10:20:30.101.457 [base_config.cc:33]Env config "X" is not set.',
        "[INFO] HCCP(2988,hccp_service.bin):2026-01-15-10:20:30.101.457 [rs_ssl.c:1529] : TLS SWITCH (1)",
        "[EVENT] HCCL(55,python):2026-01-15-10:20:30.101.457 HCCL_CONNECT_TIMEOUT is set",
    ],
)
def test_a_number_and_a_healthy_line_are_no_symptom(line: str) -> None:
    assert found(line) == set()


def typed() -> list[str]:
    """Every code in Huawei's tables of HCCL, CANN and ACL."""
    numbers = [*range(107000, 107032), *range(107035, 107041), *range(107042, 107046), *range(207000, 207022)]
    numbers += [*range(507000, 507058), *range(507899, 507905), 507914, 507915, 507916, 500001]
    codes = [f"EI{n:04d}" for n in range(1, 21)] + [f"EJ{n:04d}" for n in range(1, 5)]
    codes += [f"E{n}" for n in (*range(30003, 30010), *range(39001, 39012), 39999) if n != 39003]
    codes += [f"EE{n}" for n in (*range(1001, 1008), *range(1009, 1024), 2002, 4001, 4002, 4004, 9999)]
    codes += [f"EH{n:04d}" for n in range(1, 15)] + [f"EL{n:04d}" for n in range(1, 16)]
    codes += [f"EK{n:04d}" for n in (*range(1, 8), *range(201, 205), 9999)] + [
        f"EZ{n:04d}" for n in range(1, 8)
    ]
    codes += [
        "EZ0501",
        "EZ1001",
        "EZ2001",
        "EZ3002",
        "EZ3003",
        "EZ9010",
        "EZ9903",
        "EZ9999",
        "EI9999",
        "E19999",
    ]
    codes += ["0x40F84E00", "80E01801", "ERR00100", "ERR02200", "libhccl.so", "set_env.sh", "random mask"]
    return [*codes, *map(str, numbers), "load task fail", "parallel mode", "PyNative", "power of two"]


def test_a_code_leads_to_one_symptom_that_says_what_to_do() -> None:
    answers = {code: matcher().by_code(code) for code in typed()}
    assert {code for code, symptoms in answers.items() if len(symptoms) != 1} == set()
    assert {
        code
        for code, (symptom,) in answers.items()
        if not (symptom.causes and (symptom.remedy or symptom.checks))
    } == set()


@pytest.mark.parametrize(
    ("line", "id"),
    [
        ("ValueError: Parallel mode does not support x", "mindspore-parallel-mode-unknown"),
        ("PyNative Only support STAND_ALONE and DATA_PARALLEL, but got: x", "mindspore-pynative-parallel"),
        ("the value of strategy must be the power of 2, but get 6.", "mindspore-strategy-power-of-two"),
        ("davinci_model : load task fail, return ret: 1343225860", "mindspore-wrap-load-task"),
        ("libhccl.so: cannot open shared object file: No such file", "launch-hccl-library-missing"),
        ("Get hccl rank_table_file failed, please export", "launch-rank-table-unset"),
        ("Set device failed, invalid device, set device=8, valid device range is [0, 8)", "acl-107001"),
        ("ERROR: Worker process 4711 exit with exception.", "msrun-worker-ended"),
        ("rankList for enabled tls:[0]; rankList for disabled tls:[1];", "hccl-tls-differs"),
        ("ImportError: Please check that the cann package is installed.", "launch-cann-variables-missing"),
    ],
)
def test_what_a_launch_may_answer_is_known(line: str, id: str) -> None:
    assert id in found(line)


def test_no_code_and_no_pattern_is_there_twice() -> None:
    codes: dict[str, str] = {}
    patterns: dict[tuple[str, ...], str] = {}
    for symptom in matcher().symptoms:
        if symptom.family not in FAMILIES:
            continue
        for code in symptom.codes:
            assert codes.setdefault(code.casefold(), symptom.id) == symptom.id
        for pattern in symptom.patterns:
            assert patterns.setdefault(pattern, symptom.id) == symptom.id


def test_what_only_wraps_an_error_is_no_cause() -> None:
    wrappers = [symptom for symptom in matcher().symptoms if "-wrap-" in symptom.id or "-wait-" in symptom.id]
    assert len(wrappers) > 10
    assert all(symptom.role is Role.CONSEQUENCE for symptom in wrappers if symptom.family in FAMILIES)


def test_titles_are_one_short_phrase() -> None:
    for symptom in matcher().symptoms:
        if symptom.family in FAMILIES:
            assert not re.search(r"[.!?]$", symptom.title), symptom.id
            assert len(symptom.title) <= 110, symptom.id


def test_the_files_hold_no_mistake() -> None:
    load_symptoms(checks=[check.id for check in find_checks().checks], trust=False)
