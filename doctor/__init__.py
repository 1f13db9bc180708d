"""cluster-doctor: find the host, device, port or rank at fault, the evidence, and the commands to type."""

__version__ = "0.2.0"
