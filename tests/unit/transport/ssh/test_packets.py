"""A connection that is gone can be closed."""

import pytest

from doctor.transport.ssh.paramiko_transport import Packets


class LostChannel:
    """The channel of a jump host that no longer answers: it cannot even report its end."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def shutdown(self, _how: int) -> None:
        self.calls.append("shutdown")
        raise EOFError

    def close(self) -> None:
        self.calls.append("close")
        raise EOFError


def test_a_lost_connection_behind_a_jump_host_can_be_closed() -> None:
    channel = LostChannel()
    packets = Packets(channel)
    with pytest.raises(EOFError):
        channel.close()
    packets.close()
    assert channel.calls == ["close", "shutdown", "close"]
