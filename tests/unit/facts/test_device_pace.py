"""How fast devices run, by the tools of their vendors: emulated texts, and samples of real devices."""

import pytest

from doctor.errors import UnreadableOutput
from doctor.facts.amd.gpus import AMD_PACE
from doctor.facts.ascend.npu_smi_card import NPU_PACE
from doctor.facts.device_pace import DevicePace
from doctor.facts.nvidia.gpus import GPU_PACE
from tests.lab import amd_texts
from tests.support.captures import printed, sample
from tests.support.cases import cases

HEAD = "index, uuid, clocks.current.sm [MHz], clocks.max.sm [MHz], power.draw [W], temperature.gpu"
NEW = f"{HEAD}, utilization.gpu [%], clocks_event_reasons.active\n"


@cases
def test_what_holds_the_clock_of_a_gpu_down(bits: str, reasons: tuple[str, ...], idle: bool) -> None:
    text = f"{NEW}0, GPU-1, 1005 MHz, 1980 MHz, 310.25 W, 87, 100 %, {bits}\n\n@ all 0\n"
    assert printed(GPU_PACE, text) == {"GPU-1": DevicePace(1005, 1980, 310, 87, 100, idle, reasons)}


def test_an_old_driver_has_other_names() -> None:
    refused = 'Field "clocks_event_reasons.active" is not a valid field to query.\n\n@ all 2\n'
    old = NEW.replace("event", "throttle")
    text = f"{refused}{old}0, GPU-1, 1380 MHz, 1410 MHz, 400.10 W, 60, 99 %, 0x0000000000000020\n\n@ all 0\n"
    assert printed(GPU_PACE, text)["GPU-1"].reasons == ("software thermal slowdown",)


@pytest.mark.parametrize("wrapped", [False, True])
def test_amd_gpus(wrapped: bool) -> None:
    gpus = [
        amd_texts.State(0, "0000:05:00.0", 128, mhz=2100, watts=700, busy=100),
        amd_texts.State(1, "0000:26:00.0", 129, mhz=1300, watts=500, busy=100, held=("socket_thermal",)),
    ]
    one = amd_texts.printed(amd_texts.metric(gpus), wrapped=wrapped)
    other = amd_texts.printed(amd_texts.throttle(gpus), wrapped=wrapped)
    assert printed(AMD_PACE, f"{one}\n@ amd-smi 0\n{other}\n@ throttle 0\n") == {
        0: DevicePace(2100, 2100, 700, 45, 100),
        1: DevicePace(1300, 2100, 500, 45, 100, False, ("thermal slowdown",)),
    }
    refused = printed(AMD_PACE, f"{one}\n@ amd-smi 0\nunrecognized arguments\n@ throttle 2\n")
    assert refused[1].reasons == ()


def test_rocm_smi_does_not_tell_whose_a_gpu_is() -> None:
    with pytest.raises(UnreadableOutput):
        printed(AMD_PACE, f"{sample('amd/rocm_smi_mi200.json')}\n@ rocm-smi 0\n")


@cases
def test_npus(name: str, card: int, pace: DevicePace) -> None:
    head = f"\t{'NPU ID':<31}{'Chip ID':<31}{'Chip Logic ID':<31}Chip Name\n"
    listed = f"{head}\t{card:<31}{0:<31}{card:<31}Ascend 910\n"
    text = f"{listed}\n@ map 0\n{sample(f'npu-smi/{name}')}\n@ {card}/0 0\n"
    assert printed(NPU_PACE, text) == {card: pace}
