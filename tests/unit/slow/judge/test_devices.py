"""Clocks of devices beside the samples of a job. What their tools print is emulated."""

from collections.abc import Sequence

from doctor.devices import NVIDIA
from doctor.slow.devices import MARKED
from doctor.slow.evidence import DeviceText, SlowEvidence
from doctor.slow.judge import judge
from doctor.slow.judge.judgement import Lag, LateReason, SlowJudgement, SlowState
from doctor.slow.report_json import slow_report
from tests.support.cases import cases, from_cases
from tests.support.slow.recorded import recorded, with_rounds

HEAD = from_cases(__file__, "HEAD", str)
Gpu = tuple[int, int, int, str]
"""Clock, power, load and the reasons' bits."""
WELL: Gpu = (1980, 620, 100, "0x0")


def with_gpus(gpus: Sequence[Gpu]) -> SlowEvidence:
    """The healthy job, whose ranks have one of these GPUs each."""
    seen = recorded("nobody")
    left = dict(
        zip(
            [(host.host, rank.pid) for host in seen.samples for rank in host.rounds[0].ranks],
            gpus,
            strict=True,
        )
    )

    def text(host: str) -> str:
        mine = [(pid, gpu) for (name, pid), gpu in left.items() if name == host]
        rows = [
            f"{at}, GPU-{at}, {mhz} MHz, 1980 MHz, {watts}.00 W, 60, {busy} %, {bits}\n"
            for at, (_, (mhz, watts, busy, bits)) in enumerate(mine)
        ]
        apps = [f"GPU-{at}, {pid}, 4096 MiB, python\n" for at, (pid, _) in enumerate(mine)]
        named = "gpu_uuid, pid, used_gpu_memory [MiB], process_name\n"
        return f"{HEAD}{''.join(rows)}\n@ all 0\n{MARKED}{named}{''.join(apps)}\n@ apps 0\n"

    return with_rounds(
        seen,
        lambda host, one: type(one)(
            **{name: getattr(one, name) for name in one.__struct_fields__ if name != "devices"},
            devices=tuple(DeviceText(tool=NVIDIA.name, which=w, text=text(host.host)) for w in ("a", "b")),
        ),
    )


def judged(*changed: Gpu) -> tuple[SlowEvidence, SlowJudgement]:
    """Some GPUs are as given, and all others are well."""
    ranks = sum(len(host.rounds[0].ranks) for host in recorded("nobody").samples)
    evidence = with_gpus([*changed, *[WELL] * (ranks - len(changed))])
    return evidence, judge(evidence)


def test_the_only_device_with_a_low_clock_is_a_suspect() -> None:
    evidence, made = judged((1005, 310, 100, "0x48"))
    (late,) = made.late
    assert (made.state, late.lag, late.reason, late.certain) == (
        SlowState.LATE,
        Lag.DEVICE,
        LateReason.CLOCK,
        False,
    )
    assert late.sentence == (
        "its device is slower: NVIDIA GPU 0 runs at 1,005 MHz, the others at 1,980: hardware thermal slowdown"
    )
    device = slow_report(made, evidence).slow.ranks[0].device
    assert device
    assert (device.name, device.mhz, device.watts) == ("NVIDIA GPU 0", 1005, 310)


@cases
def test_these_clocks_accuse_nobody(gpu: Gpu) -> None:
    _, made = judged(gpu)
    assert (made.state, made.late) == (SlowState.EVEN, ())


def test_most_devices_slow_means_that_nobody_can_be_told_apart() -> None:
    ranks = sum(len(host.rounds[0].ranks) for host in recorded("nobody").samples)
    _, made = judged(*[(1005, 310, 100, "0x48")] * (ranks // 2 + 1))
    assert made.late == ()
