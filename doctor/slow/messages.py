"""The messages that an agent of `doctor slow` sends, besides those of `doctor hang`."""

from typing import Annotated

import msgspec

from doctor.agents.session import Bye, Message, NoInterpreter
from doctor.live.evidence import Count, Seconds
from doctor.live.messages import LiveMessage
from doctor.slow.evidence import BusyProcess, DeviceText, Length, OwedAnswers, Profile, RankLink, RankSamples


class RankMessage(Message, frozen=True, tag="rank"):
    number: Count
    rank: RankSamples


class ProfileMessage(Message, frozen=True, tag="profile"):
    number: Count
    profile: Profile


class DeviceMessage(Message, frozen=True, tag="devices"):
    number: Count
    devices: DeviceText


class RoundEnd(Message, frozen=True, tag="round"):
    """A round is over, and all of it was sent."""

    number: Count
    began: Seconds
    seconds: Length
    links: Annotated[tuple[RankLink, ...], msgspec.Meta(max_length=1_024)] = ()
    busiest: Annotated[tuple[BusyProcess, ...], msgspec.Meta(max_length=16)] = ()
    owed: Annotated[tuple[OwedAnswers, ...], msgspec.Meta(max_length=256)] = ()


class Pong(Message, frozen=True, tag="pong"):
    """Its steady clock."""

    number: Count
    at: Seconds


SlowMessage = LiveMessage | RankMessage | ProfileMessage | DeviceMessage | RoundEnd | Pong
DECODER: msgspec.json.Decoder[SlowMessage | NoInterpreter | Bye] = msgspec.json.Decoder(
    SlowMessage | NoInterpreter | Bye
)
