"""Hardware that is not there: programs, device files and a PCI bus, put into hosts of a running lab.

The programs are shell scripts in `emulators/`. Their output and their logs are in a folder of the lab that
all its hosts see (see boot.sh), so that a test changes it from outside without touching the host.
"""

import io
import os
import tarfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Generic, TypeVar

from tests.support.cases import from_cases

from .errors import LabError
from .host import Host
from .lab import Lab

EMULATORS = Path(__file__).with_name("emulators")
ON_HOST = "/run/cluster-doctor-lab"
MARK = f"{ON_HOST}/emulated"
"""Present on every host with emulated hardware."""

LOGS = ("calls", "setters", "refused")

# Other devices of the bus, as on a server for training: root port, BMC graphics, network card.
_BUS = (
    ("0000", "19e5a120", "pcieport"),
    ("0200", "19e51711", "hibmc-drm"),
    ("0500", "15b31017", "mlx5_core"),
)

_INSTALL = from_cases(__file__, "_INSTALL", str)

# Programs that hang exec this sleep.
_END_HANGING = from_cases(__file__, "_END_HANGING", str)


class Emulated(ABC):
    """The emulated hardware of one host.

    `folder` holds the output and the logs of its programs. `prepare` and `finish` run on the host before and
    after its programs are installed; both may run again.
    """

    prepare = ""
    finish = ""

    def __init__(self, host: Host, kind: str) -> None:
        self.host = host
        self.number = host.spec.index
        self.folder = host.spec.directory.parent / "shared" / host.name / kind
        self._installed_on = 0
        for log in LOGS:
            self._touch(log, 0o666)

    @abstractmethod
    def healthy(self) -> Mapping[str, str]:
        """All files of `folder` except logs and locks: path -> text."""

    @abstractmethod
    def programs(self) -> Mapping[str, tuple[str, int]]:
        """The programs to install on the host: path -> text and mode."""

    @abstractmethod
    def nodes(self) -> Iterable[str]:
        """The files in /dev."""

    @abstractmethod
    def bus(self) -> Iterable[tuple[str, str, str]]:
        """Devices on the PCI bus: place, vendor and device, driver."""

    # What a test reads.

    @property
    def calls(self) -> tuple[str, ...]:
        """The arguments of every call, oldest first."""
        return self._log("calls")

    @property
    def setters(self) -> tuple[str, ...]:
        """The `calls` meant to change something."""
        return self._log("setters")

    @property
    def refused(self) -> tuple[str, ...]:
        """The `calls` that were made while another one was running."""
        return self._log("refused")

    def forget_calls(self) -> None:
        for log in LOGS:
            (self.folder / log).write_text("")

    # What subclasses use.

    def altered(self) -> None:
        """Whether something was changed on the host itself that `reset` has to restore."""
        self._installed_on = 0

    def reset(self) -> None:
        """Restore the initial state. A host that was rebooted gets its emulators again."""
        if self.setters:
            self.altered()
        if any(name.startswith("hang/") for name in self._files(self.folder)):
            self._do(_END_HANGING)
        self.forget_calls()
        wanted = self.healthy()
        for name in self._files(self.folder):
            if name not in wanted and name not in (*LOGS, "lock"):
                self.remove(name)
        self.show(wanted)
        self.plug()
        if self._installed_on != self.host.pid:
            self._install()

    def show(self, texts: Mapping[str, str]) -> None:
        """Make the programs print these texts from now on."""
        for name, text in texts.items():
            if self.read(name) != text:
                self.put(name, text)

    def read(self, name: str) -> str | None:
        try:
            return (self.folder / name).read_text()
        except FileNotFoundError:
            return None

    def put(self, name: str, text: str) -> None:
        """Write atomically: a program that is reading finds the old text or the new one."""
        path = self.folder / name
        self._make(path.parent)
        new = path.with_name(f"{path.name}.new")
        new.write_text(text)
        new.chmod(0o644)
        new.rename(path)

    def remove(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)

    def plug(self) -> None:
        """Show the present devices on the PCI bus. The file is changed in place because it is mounted on the
        host.
        """
        lines = "".join(_pci_line(*device) for device in (*_BUS, *self.bus()))
        (self.folder.parent / "pci").write_text(lines)

    def do(self, script: str, *args: str, stdin: str = "") -> None:
        """Change the host itself; `reset` restores it, so it does not need a reboot."""
        self.altered()
        self._do(script, *args, stdin=stdin)

    def _do(self, script: str, *args: str, stdin: str = "") -> None:
        done = self.host.ask(f"set -e\n{script}", *args, stdin=stdin)
        if done.returncode:
            raise LabError(f"{self.host.name}: {script.strip()!r} gave {done.returncode}: {done.stderr}")

    def _install(self) -> None:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for path, (text, mode) in self.programs().items():
                data = text.encode()
                entry = tarfile.TarInfo(path.lstrip("/"))
                entry.size, entry.mode = len(data), mode
                archive.addfile(entry, io.BytesIO(data))
        script = f"{self.prepare}{_INSTALL}{self.finish}"
        self._do(script, self.host.name, *self.nodes(), stdin=packed.getvalue().decode())
        self._installed_on = self.host.pid

    def _files(self, folder: Path, prefix: str = "") -> Iterator[str]:
        for entry in list(os.scandir(folder)):
            if entry.is_dir():
                yield from self._files(Path(entry), f"{prefix}{entry.name}/")
            else:
                yield f"{prefix}{entry.name}"

    def _log(self, name: str) -> tuple[str, ...]:
        return tuple((self.read(name) or "").splitlines())

    def _touch(self, name: str, mode: int) -> None:
        """Create an empty file with this mode, whatever the umask."""
        self._make(self.folder)
        path = self.folder / name
        path.write_text("")
        path.chmod(mode)

    def _make(self, folder: Path) -> None:
        if not folder.exists():
            self._make(folder.parent)
            folder.mkdir()
            folder.chmod(0o755)


H = TypeVar("H", bound=Emulated)


class Fitted(Generic[H]):
    """The hosts of a lab that have emulated hardware of one kind, by name."""

    def __init__(self, lab: Lab, hosts: Mapping[str, H]) -> None:
        self.lab = lab
        self.hosts = hosts

    def __getitem__(self, name: str) -> H:
        return self.hosts[name]

    def __iter__(self) -> Iterator[H]:
        return iter(self.hosts.values())

    @property
    def setters(self) -> tuple[tuple[str, str], ...]:
        """Host and arguments of every call meant to change something; empty after an examination."""
        return tuple((host.host.name, call) for host in self for call in host.setters)

    def reset(self) -> None:
        """Make all devices healthy and forget all calls; rebooted hosts get their emulators again."""
        for host in self:
            host.reset()


def emulator(name: str) -> str:
    return (EMULATORS / name).read_text()


def _pci_line(place: str, device: str, driver: str) -> str:
    return "\t".join([place, device, "0", *[f"{0:16x}"] * 14, driver]) + "\n"
