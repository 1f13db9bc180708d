"""What was seen of a job in many samples: the looks of `doctor hang`, and sums over rounds of samples.

The agent sends these types and a recording contains them. Their numbers and texts are bounded because a host
may be hostile. A round has the same number on all hosts and begins at about the same time; it has parts of
equal length.
"""

from typing import Annotated, Literal

import msgspec

from doctor.live.evidence import Count, Frame, LiveEvidence, Long, Pid, Seconds, Text, Word

MOST_ROUNDS = 16
MOST_PARTS = 64
MOST_DEVICES = 8
MOST_PROFILES = 4_096
Length = Annotated[float, msgspec.Meta(ge=0.1, le=100_000)]
"""Seconds of a round: no agent looks for less."""
Counts = Annotated[tuple[Count, ...], msgspec.Meta(max_length=MOST_PARTS)]
"""A number for each part of a round."""


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """What a process used in a round; fields that may not be read are 0."""

    cpu: Seconds = 0.0
    ran: Seconds = 0.0
    """Its main thread."""
    starved: Seconds = 0.0
    """For how long its main thread waited for a processor."""
    read: Count = 0
    """Bytes, also from caches and pipes."""
    written: Count = 0
    disk_written: Count = 0
    faults: Count = 0
    """Pages that had to be read from a disk."""
    nice: Annotated[int, msgspec.Meta(ge=-20, le=19)] = 0
    periods: Count = 0
    """Of the CPU quota of its group."""
    throttled: Count = 0
    """The periods in which the quota was used up."""


Stretches = Annotated[tuple[tuple[Seconds, Seconds, bool], ...], msgspec.Meta(max_length=256)]


class RankSamples(msgspec.Struct, frozen=True, kw_only=True):
    """The samples of a rank or a helper in one round."""

    pid: Pid
    samples: Counts
    inside: Counts = ()
    """In how many a worker thread of gloo was in a collective; empty if that may not be read."""
    waits: Counts = ()
    """The same, or its main thread waited with a time limit, as in a send or a receive."""
    entries: Count = 0
    """How often it entered a collective."""
    wait_entries: Count = 0
    """How often it began to wait, as `waits` says."""
    workers: Count = 0
    """Its threads that wait in collectives; 0 without gloo."""
    proxies: Count = 0
    """Its threads that carry NCCL's collectives over the network; then `inside` is by them."""
    long: Stretches = ()
    """When it was inside (or outside) for long, in seconds after the start of the round."""
    long_waits: Stretches = ()
    """The same of `waits`."""
    outside: Annotated[dict[Word, Count], msgspec.Meta(max_length=16)] = {}
    """In how many samples outside collectives the main thread slept in a function of the kernel F, or, as
    "limited F", waited with a limit, as in a receive.
    """
    used: Used = Used()


class RankLink(msgspec.Struct, frozen=True, kw_only=True):
    """A TCP connection in one round."""

    local: Word
    peer: Word
    pid: Pid = 0
    """Whose it is; 0 if unknown."""
    sent: Count = 0
    received: Count = 0
    again: Count = 0
    """Segments that were sent once more."""
    busy: Seconds = 0.0
    """For how long it had data to send."""
    rate: Count = 0
    """Bytes a second, as the kernel measures them."""


class BusyProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process beside the job that used the processors."""

    pid: Pid
    name: Word
    cpu: Seconds
    user: Word = ""


class StackCount(msgspec.Struct, frozen=True, kw_only=True):
    main: bool
    """Whether it is a stack of the main thread."""
    frames: Annotated[tuple[Count, ...], msgspec.Meta(max_length=64)]
    """Indices of frames, the innermost first."""
    counts: Counts


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """The Python stacks of a process in one round."""

    pid: Pid
    gil: bool = False
    """Only the stacks that held the GIL."""
    samples: Count = 0
    asked: Count = 0
    """How many samples there could be."""
    main: Counts = ()
    """How many samples of the main thread there are."""
    frames: Annotated[tuple[Frame, ...], msgspec.Meta(max_length=1_024)] = ()
    stacks: Annotated[tuple[StackCount, ...], msgspec.Meta(max_length=256)] = ()
    problem: Text = ""


class DeviceText(msgspec.Struct, frozen=True, kw_only=True):
    """What the tool of a vendor printed about the devices of a host. `slow.devices` reads it."""

    tool: Word
    """The name of the vendor."""
    which: Literal["a", "b"] = "a"
    """Whether it was asked at the beginning or at the end of the round."""
    text: Long = ""
    problem: Text = ""


class SampleRound(msgspec.Struct, frozen=True, kw_only=True):
    number: Count
    began: Seconds
    """By the host's steady clock."""
    seconds: Length
    ranks: Annotated[tuple[RankSamples, ...], msgspec.Meta(max_length=20_000)] = ()
    links: Annotated[tuple[RankLink, ...], msgspec.Meta(max_length=1_024)] = ()
    busiest: Annotated[tuple[BusyProcess, ...], msgspec.Meta(max_length=16)] = ()
    profiles: Annotated[tuple[Profile, ...], msgspec.Meta(max_length=MOST_PROFILES)] = ()
    devices: Annotated[tuple[DeviceText, ...], msgspec.Meta(max_length=MOST_DEVICES)] = ()


class HostSamples(msgspec.Struct, frozen=True, kw_only=True):
    host: Word
    ahead: Annotated[float, msgspec.Meta(ge=-1e10, le=1e10)] | None = None
    """How far its steady clock is ahead of ours; None if it did not say."""
    rounds: Annotated[tuple[SampleRound, ...], msgspec.Meta(max_length=MOST_ROUNDS)] = ()
    late: Annotated[tuple[Count, ...], msgspec.Meta(max_length=MOST_ROUNDS)] = ()
    """The numbers of those that it did not answer in time."""


class SlowEvidence(LiveEvidence, frozen=True, kw_only=True):
    """Everything that the judgement is made from: the same evidence always gives the same judgement."""

    samples: tuple[HostSamples, ...]
