"""Commands that enter a container: what `--enter` accepts, and why a command did not enter. Pure text."""

from doctor.transport.containers.command import HOST, check_apart, check_entry, enter_all, entered, tool_of
from doctor.transport.containers.errors import not_entered

__all__ = ["HOST", "check_apart", "check_entry", "enter_all", "entered", "not_entered", "tool_of"]
