"""The first thing that the single file runs: it unpacks itself into a private folder, or says why it cannot.

An old Python reads it too, so it is written for Python 3.6 and later.
"""

import hashlib
import os
import shutil
import stat
import sys

MACHINE = "@MACHINE@"
OLDEST, NEWEST = (3, 10), (3, 14)
EXIT_BROKEN = 70
"""As doctor/errors.py has it: nothing was examined."""


def refuse(what):
    sys.stderr.write(f"doctor: {what}\n")
    sys.exit(EXIT_BROKEN)


def refuse_altered(path):
    """Its head has the SHA-256 of everything else in it. A file that was cut is no zip file: see build.py."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for line in file:
            if line.startswith(b"# sha256 "):
                break
            digest.update(line)
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    if line != b"# sha256 " + digest.hexdigest().encode() + b"\n":
        refuse("@DAMAGED@")


def folder():
    """Where it unpacks itself; nobody else may have put anything there, since it is run."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    path = os.environ.get("SHIV_ROOT") or os.path.join(cache, "cluster-doctor")
    path = os.path.abspath(os.path.expanduser(os.path.expandvars(path)))  # as shiv reads it
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        about = os.stat(path)
    except OSError as error:
        refuse(cannot_unpack(path, error.strerror))
    if os.statvfs(path).f_flag & os.ST_NOEXEC:
        refuse(cannot_unpack(path, "it is on a file system without programs (noexec)"))
    if about.st_uid != os.geteuid() or stat.S_IMODE(about.st_mode) & 0o022:
        refuse(cannot_unpack(path, "others can write there"))
    return path


def cannot_unpack(path, why):
    return f"{path} cannot be used to unpack {sys.argv[0]}: {why}. SHIV_ROOT names another folder."


def forget_half(path):
    """Removes what was unpacked of this file before it failed."""
    name = os.path.basename(os.path.realpath(sys.argv[0]))
    for each in os.listdir(path):
        if each.startswith(name + "_") and each.endswith(".tmp"):
            shutil.rmtree(os.path.join(path, each), ignore_errors=True)


def main():
    shown = ".".join(map(str, sys.version_info[:2]))
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        refuse(
            f"Python 3.{OLDEST[1]} to 3.{NEWEST[1]} is needed, and {sys.executable} is {shown}. "
            f"Name one: python3.11 {sys.argv[0]} ..."
        )
    if os.uname()[4] != MACHINE:
        refuse(f"this file is for {MACHINE}, and this machine is {os.uname()[4]}.")
    refuse_altered(sys.argv[0])
    path = os.environ["SHIV_ROOT"] = folder()
    import _bootstrap  # it comes with shiv

    try:
        _bootstrap.bootstrap()
    except OSError as error:
        forget_half(path)
        refuse(cannot_unpack(path, error.strerror))


main()
