"""A secret that the user gave the job: in a variable, or in a file that only this user can read."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from doctor.errors import UsageError

VARIABLE = "DOCTOR_JOB_KEY"
FILE = ".config/cluster-doctor/job-key"
"""In the home folder, which the hosts of a cluster often share."""
LONGEST = 4096
SHORT = 16
"""Characters. A shorter key can be guessed by anybody who saw it used once."""


@dataclass(frozen=True, slots=True)
class JobKey:
    """`source` is where it comes from; both are empty if there is none."""

    text: str = ""
    source: str = ""

    @property
    def short(self) -> bool:
        return 0 < len(self.text) < SHORT


def read_job_key(environ: Mapping[str, str]) -> JobKey:
    """The key: the variable, or else the file. Raises UsageError if others can read or change the file."""
    if environ.get(VARIABLE):
        return JobKey(environ[VARIABLE], VARIABLE)
    home = environ.get("HOME", "")
    return _of_file(Path(home, FILE)) if home.startswith("/") else JobKey()


def _of_file(path: Path) -> JobKey:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return JobKey()
    except OSError as error:
        raise UsageError(f"--in-job: the job's key {path} cannot be read: {error.strerror}.") from None
    try:
        about = os.fstat(descriptor)
        mode = stat.S_IMODE(about.st_mode)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or mode & 0o077:
            raise UsageError(
                f"--in-job: users other than its owner can reach the job's key {path}"
                f" (it belongs to uid {about.st_uid}, mode {mode:04o}).",
                f"chmod 600 {path}",
            )
        text = os.read(descriptor, LONGEST).decode("utf-8", "replace").strip()
    finally:
        os.close(descriptor)
    if not text:
        raise UsageError(f"--in-job: the job's key {path} is empty.", f"openssl rand -hex 32 >{path}")
    return JobKey(text, f"~/{FILE}")
