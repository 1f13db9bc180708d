"""The SSH options of the command line. No paramiko here: `doctor --help` reads this file."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SshSettings:
    """The SSH flags. None means: as ssh_config says, else the default of `ssh`.

    If `config_file` is None: ~/.ssh/config and then /etc/ssh/ssh_config; "none" and "/dev/null" mean no file.
    `fanout` limits connections being made, not those that are open.
    """

    user: str | None = None
    port: int | None = None
    identities: tuple[str, ...] = ()
    jump: str | None = None
    config_file: str | None = None
    accept_new: bool = False
    fanout: int = 64
    connect_timeout: float | None = None


DEFAULT_CONNECT_TIMEOUT = 10.0
