"""Python packages that a host seems to have."""

from tests.lab import Host

PACKAGES = "/usr/lib/python3/dist-packages"


def package(name: str, version: str, host: Host) -> None:
    """Write metadata as pip does; nothing else of a package is read."""
    host.write(f"{PACKAGES}/{name}-{version}.dist-info/METADATA", f"Name: {name}\nVersion: {version}\n")
