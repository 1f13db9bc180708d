"""What made the smoke run slow: a rank, a busy host, or a link."""

from collections.abc import Iterator

from doctor.api import VENDORS, Damage, Problem, Scope, Severity, Skip, check
from doctor.facts.smoke import SMOKE, SmokeRounds
from doctor.rules.smoke import accused, at_least, even, has_charge, steady

SETTINGS = ("cpu-governor", "numa-balancing", "swap-active")
STEPS = 14
"""Ten of these steps are compared: the first third, a warm-up, is left out."""
LEFTOVERS = ("stuck-process", *(vendor.busy for vendor in VENDORS))
SICK = tuple(id for vendor in VENDORS for id in vendor.sick)


@check(
    "smoke-straggler",
    SMOKE,
    damage=Damage.LOAD,
    scope=Scope.CLUSTER,
    severity=Severity.WARN,
    remedy="find-what-slows",
    causes=(
        "smoke-contention",
        *LEFTOVERS,
        *SETTINGS,
        *SICK,
        "version-drift",
    ),
)
def smoke_straggler(seen: SmokeRounds) -> Iterator[Problem]:
    """A rank computes more slowly than the others.

    Why it matters: all ranks wait for the slowest at every step, so one rank that is 20 % slower makes the
    whole job 20 % slower; it does not show in step times, which are the same for all.

    How it is known: each rank measures its own computing time, without waiting, at every step; a rank that
    takes more than 12 % longer than the others do at the same step, in nearly all steps, is named (30 % if
    ranks have to wait for their processors, and more if the times of steps and ranks vary much, as on hosts
    with other work, so that no rank is named by chance). The limit rises further with the share of its time
    in which a rank waits for a processor that others use. Only ranks on devices of the same kind are
    compared, and fewer than four ranks decide nothing.

    Causes seen in practice: a device that throttles because it is hot or lacks power; a power limit or a
    clock that was set by hand; a CPU in a powersave governor; ranks bound to the wrong socket or all to the
    same core; a failing device that corrects its memory all the time; another kind of CPU.

    What to do: compare clocks, temperatures and power limits of the named device with its neighbours', the
    governor and the binding of its rank. Run the host alone to see whether it stays slow.
    """
    at_least(seen, "smoke-straggler", "train", ranks=4, stage=4, steps=STEPS)
    even(seen)
    yield from accused(seen, "smoke-straggler", "train")


@check(
    "smoke-contention",
    SMOKE,
    damage=Damage.LOAD,
    scope=Scope.CLUSTER,
    severity=Severity.WARN,
    remedy="find-what-slows",
    causes=(*LEFTOVERS, "swap-active", "cpu-affinity-narrow"),
)
def smoke_contention(seen: SmokeRounds) -> Iterator[Problem]:
    """The ranks of a host wait for its processor: another program computes, or something stops them.

    Why it matters: a job gets only the rest of the processor. Its steps become slow and uneven, and so do
    those of all ranks that wait for this host.

    How it is known: on each rank the time that passed while it computed is compared with the CPU time that it
    got. If it is 1.3 times as much on all ranks of a host all the time, and far more than on the other hosts,
    another program was running. If all hosts are alike, the size of the run is the cause and no host is
    named. If the time that they spent waiting for a processor is left out and it is still 1.5 times as much,
    something stops them, on however many hosts: a freezer, a limit, a hypervisor. Beyond twice it is a fault.

    Causes seen in practice: processes left by an earlier job; another job on a host that was meant to be
    exclusive; fewer CPUs in the container or cgroup than there are ranks; monitoring, backup or a virus
    scanner.

    What to do: see what runs there, end leftovers, and ask the scheduler for whole hosts, or for at least one
    core per rank.
    """
    other = seen.runs and all(run.plan.backend != "gloo" for run in seen.runs)
    if other and not has_charge(seen, "smoke-contention"):
        raise Skip(f"it is measured with gloo only, and this run used {seen.runs[0].plan.backend}")
    at_least(seen, "smoke-contention", "train", hosts=3, steps=STEPS)
    yield from accused(seen, "smoke-contention", "train")


@check(
    "smoke-slow-link",
    SMOKE,
    damage=Damage.LOAD,
    scope=Scope.CLUSTER,
    severity=Severity.WARN,
    remedy="look-at-link",
    causes=(
        "link-speed-mismatch",
        "ib-port-slow",
        "mtu-mismatch",
        "nic-errors",
        "route-wrong-interface",
        "device-speed-mismatch",
        "device-link-flaps",
        "device-link-errors",
        "device-optical",
        "smoke-contention",
    ),
)
def smoke_slow_link(seen: SmokeRounds) -> Iterator[Problem]:
    """The network to a host is slower than to the others.

    Why it matters: a ring is as fast as its slowest link. A port that fell back to a tenth of its speed, or
    loses one packet in a thousand, slows every all-reduce of the job.

    How it is known: hosts exchange data in pairs, in both directions at once, each with several others,
    twice; a host whose pairs are slower than the rest by more than the measured noise (at least 12 %) is
    named, and so is one whose round trips take far longer. Two or three hosts exchange it five times, one
    direction at a time. One direction below half of the other is named if it was equally slow most times, and
    so is a host of three both of whose pairs carry less than a quarter of the third. It is a fault if it is
    certain and carries less than a tenth of its other direction or of the other links, else a warning.
    Between two hosts that are equally slow both ways nothing can be compared, and what an interface claims
    proves nothing. Over MCCL, which MindSpore has on CPUs, nothing is compared: it carries less than a
    network.

    Causes seen in practice: a port that negotiated a lower speed; a bad cable or a dirty optical plug; an MTU
    of 1500 between hosts that use 9000; flow control or ECN switched off at one switch port; traffic that
    takes the management network; a virtual machine with a limited network.

    What to do: check the speed and the error counters of the named host's port and of the switch port at the
    other end; exchange cable or optics with a fast host, and see whether the fault moves with them.
    """
    at_least(seen, "smoke-slow-link", "bandwidth", hosts=2, together=2)
    steady(seen)
    yield from accused(seen, "smoke-slow-link", "bandwidth")
