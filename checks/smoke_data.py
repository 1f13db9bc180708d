"""The smoke run's numbers: wrong results, different data or parameters, and an abnormal loss."""

from collections.abc import Iterator

from doctor.api import VENDORS, Damage, Problem, Scope, check
from doctor.facts.smoke import SMOKE, SmokeRounds
from doctor.rules.smoke import accused, at_least

HARDWARE = (*(id for vendor in VENDORS for id in vendor.sick), "kernel-log")
LEAST_STEPS = 15
"""Fewer steps do not show where a loss is going."""
SOFTWARE = ("version-incompatible", "version-drift", "env-drift")


@check(
    "smoke-collective-wrong",
    SMOKE,
    damage=Damage.WRONG,
    scope=Scope.CLUSTER,
    remedy="test-hardware",
    causes=(*HARDWARE, "nvlink-down", "device-link-errors", "nic-errors", *SOFTWARE),
)
def smoke_collective_wrong(seen: SmokeRounds) -> Iterator[Problem]:
    """A collective gave a wrong result.

    Why it matters: no error appears. Gradients are summed wrongly, the replicas drift apart or learn worse,
    and weeks later it is unknown since when.

    How it is known: whole numbers with a known sum are reduced, gathered and exchanged, in each type and at
    several sizes, and compared exactly; reduce-scatter with all-gather must equal all-reduce. During
    training, the result of the all-reduce is compared with the contributions of the ranks. If all ranks have
    the same wrong number, the rank whose part explains it is named. Of two neighbours in the job's pipeline
    or ring (--plan) either may be at fault; of several wrong edges, the rank that they share is named.

    Causes seen in practice: memory, a GPU or an NPU that computes wrongly; a network card that damages
    packets after checking their checksum; NVLink or PCIe errors; a different version of the collective
    library on one host; ranks that were started in a different order than the job assumes, so that gathered
    parts are swapped.

    What to do: run the host alone and again. A fault that stays belongs to its hardware; one that occurs with
    a certain pair of hosts belongs to the link between them. Look for ECC, Xid and machine-check messages on
    the named host.
    """
    at_least(seen, "smoke-collective-wrong", "collectives", ranks=2)
    yield from accused(seen, "smoke-collective-wrong", "collectives")


@check(
    "smoke-mask-divergence",
    SMOKE,
    damage=Damage.WRONG,
    scope=Scope.CLUSTER,
    remedy="compare-software",
    causes=SOFTWARE,
)
def smoke_mask_divergence(seen: SmokeRounds) -> Iterator[Problem]:
    """Ranks that share a model drew different masks or data, or replicas drew the same.

    Why it matters: under model parallelism every rank of a group must see the same tokens, mask and labels.
    If each process draws its own random mask, each computes a part of a different problem: the loss starts
    to fall, stays high, and no error is ever raised. Replicas that all draw the same waste all but one of
    themselves.

    How it is known: hashes of tokens, mask and labels of the first steps are compared with those that the
    seed must give, which doctor computes itself; so are the streams of python, numpy, torch and the
    device. The finding names the rank, the stream, and the first wrong step.

    Causes seen in practice: a seed made of the rank, the time, or hash() of a text (which Python salts in
    each process); one extra draw on one rank (a log line, an augmentation, a retry); a different version of
    numpy or torch; masks drawn on the device, where the stream depends on its model; several data-loader
    workers.

    What to do: seed python, numpy, torch and the data set alike in every process of a model-parallel group,
    before the data set is built (MindSpore: `mindspore.set_seed` and `mindspore.dataset.config.set_seed`),
    and let only the number of the replica change the seed. Better: draw the mask once, from a separate
    generator. The hook compares the data of your own job in the same way: three lines in the script.

        from doctor.smoke.hook import batch
        for tokens, mask, labels in loader:
            batch(tokens, mask, labels, tensor_parallel=2)  # ranks that share a model
    """
    yield from accused(seen, "smoke-mask-divergence", "train")


@check(
    "smoke-desync",
    SMOKE,
    damage=Damage.WRONG,
    scope=Scope.CLUSTER,
    remedy="compare-software",
    causes=("smoke-mask-divergence", "smoke-collective-wrong", "smoke-corruption", *HARDWARE, *SOFTWARE),
)
def smoke_desync(seen: SmokeRounds) -> Iterator[Problem]:
    """Replicas of the model do not hold the same parameters.

    Why it matters: data parallelism is correct only as long as all replicas are bitwise equal. When they are
    not, each averages gradients of a different model; the loss still falls, but less, and the checkpoint is
    that of the replica that saved it.

    How it is known: the parameters are hashed before the first step, where they are compared with what the
    seed must give, and after every step, where all replicas must agree. The finding names the step at which
    they first differed and the replica that differs; of two replicas both are named if nothing decides.

    Causes seen in practice: a checkpoint that one host read from a different path or an old copy; weights
    drawn from different seeds and not broadcast; a gradient that is not reduced (a parameter that was added
    after the model was wrapped, `no_sync` left on); a different version of the optimizer; memory that flips
    bits.

    What to do: compare the software of the named host with the others'. In your own job broadcast the
    parameters from rank 0 after loading, and compare a hash of them now and then.
    """
    at_least(seen, "smoke-desync", "train", replicas=2)
    yield from accused(seen, "smoke-desync", "train")


@check(
    "smoke-corruption",
    SMOKE,
    damage=Damage.WRONG,
    scope=Scope.CLUSTER,
    remedy="test-hardware",
    causes=("smoke-mask-divergence", *HARDWARE, *SOFTWARE),
)
def smoke_corruption(seen: SmokeRounds) -> Iterator[Problem]:
    """A rank computed a different result from its neighbours with the same numbers.

    Why it matters: a device that is silently wrong spoils the gradients of all replicas at every step. ECC
    does not notice it, because the arithmetic fails and not the memory. Operators of large fleets report a
    few such processors among several thousand.

    How it is known: the gradient of each batch is computed by three ranks, which must agree in every bit; the
    one that differs is named. A product of whole numbers with a known result is computed several times on
    each. Devices of different models round differently and are only compared with the same model.

    Causes seen in practice: a worn or overclocked processor, GPU or NPU, often only when hot or at one
    frequency; memory without ECC; a different version of the device library or compiler, or settings that
    allow different rounding (TF32, non-deterministic kernels) on one host only.

    What to do: run the host alone and again, also when it is warm. If it stays, take the device out of
    service and have it replaced: restarts do not fix it. For long runs on Ascend there is NPU_ASD_CONFIG
    (torch_npu) and MS_NPU_ASD_CONFIG (MindSpore), which watch for such values while training.
    """
    yield from accused(seen, "smoke-corruption", "audit")


@check(
    "smoke-loss-stall",
    SMOKE,
    damage=Damage.WRONG,
    scope=Scope.CLUSTER,
    remedy="look-at-training",
    causes=(
        "smoke-mask-divergence",
        "smoke-collective-wrong",
        "smoke-desync",
        "smoke-corruption",
        "smoke-loss-nan",
        *SOFTWARE,
    ),
)
def smoke_loss_stall(seen: SmokeRounds) -> Iterator[Problem]:
    """The loss of the smoke run did not fall as it must, stopped halfway, or fell on some replicas only.

    Why it matters: this model and this corpus are always learned: each of 200 healthy runs went more than 90
    % of the way to the lowest possible loss. A run that does not has a fault below the model: data, gradients
    or update.

    How it is known: by the part of the way from the first loss to the known floor that was covered by the end
    (70 % are needed at 30 steps), by last losses more than twice as far from what their batches allow as
    those of healthy runs, by parameters that a step did not change, by the distance between replicas, by
    jumps, and by a loss below the floor, which only leaked labels can cause. A falling loss alone proves
    little, so it is one of several signs.

    Causes seen in practice: a learning rate that is zero after a warm-up that never ends; an optimizer step
    that does nothing; labels that were shuffled apart from their inputs; masks that differ inside a
    model-parallel group; one replica whose shard of the data is damaged.

    What to do: if replicas are named, compare their software and data; if none is named, all ranks made the
    same mistake: check versions and variables that all hosts have in common.
    """
    at_least(seen, "smoke-loss-stall", "train", steps=LEAST_STEPS)
    yield from accused(seen, "smoke-loss-stall", "train")


@check(
    "smoke-loss-nan",
    SMOKE,
    damage=Damage.WRONG,
    scope=Scope.CLUSTER,
    remedy="test-hardware",
    causes=("smoke-mask-divergence", "smoke-collective-wrong", "smoke-corruption", *HARDWARE, *SOFTWARE),
)
def smoke_loss_nan(seen: SmokeRounds) -> Iterator[Problem]:
    """The loss or a gradient became infinite or not a number.

    Why it matters: one rank's NaN is every rank's after the next all-reduce, so that the log shows it
    everywhere at once and nowhere first.

    How it is known: each rank checks its own loss and gradient before they are reduced; the first rank with a
    value that is not finite is named. If all are at the same step, the numbers are the cause and no rank is.

    Causes seen in practice: a device that computes wrongly; uninitialised memory that a library reads; half
    precision that overflows (a loss scale that is too large, HCCL or NCCL sums in fp16 over many ranks); a
    learning rate without warm-up; a damaged sample.

    What to do: run the named host alone and again; if it stays, test its hardware. If no rank is named, check
    precision and learning rate.
    """
    yield from accused(seen, "smoke-loss-nan", "train")
