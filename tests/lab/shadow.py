"""Replace what an examination reads: files, folders of /proc and /sys, programs."""

import io
import shlex
import tarfile
from collections.abc import Mapping
from typing import Union

from .errors import LabError
from .machine import PATH, Machine

# Contents of a folder: file name -> text, or folder name -> its contents.
Tree = Mapping[str, Union[str, "Tree"]]

# Where the original of a replaced program is.
REAL = "/usr/lib/real"


class Shadows(Machine):
    """Changes what a host shows of itself."""

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file (real, on the host's own disk), its folder included."""
        script = 'mkdir -p "$(dirname "$1")"; cat >"$1"; chmod "$2" "$1"'
        self.do(script, path, f"{mode:o}", stdin=text)

    def shadow(self, path: str, text: str) -> None:
        """Emulated: an existing file of /proc or /sys that contains `text` instead. For other files use
        `write`.
        """
        # The mount keeps the file when its name is gone.
        script = 'new=$(mktemp); cat >"$new"; chmod 644 "$new"; mount --bind "$new" "$1"; rm "$new"'
        self.do(script, path, stdin=text)

    def shadow_dir(self, path: str, tree: Tree) -> None:
        """Emulated: a folder of /proc or /sys as it is, but with these files in place of those there."""
        # Some files of /proc can only be written: files that cannot be copied are left out.
        script = """
            new=$(mktemp -d)
            mount -t tmpfs -o mode=755 shadow "$new"
            cp -r "$1/." "$new" 2>/dev/null || :
            tar -x --overwrite --no-same-owner -C "$new" -f -
            mount --move "$new" "$1"
            rmdir "$new"
        """
        self._untar(script, path, tree)

    def sysfs_class(self, name: str, tree: Tree) -> None:
        """Emulated: a class of devices in /sys/class, such as infiniband, in addition to the real ones."""
        script = """
            new=$(mktemp -d)
            mount -t tmpfs shadow "$new"
            mkdir "$new/upper" "$new/work" "$new/upper/$1"
            tar -x --no-same-owner -C "$new/upper/$1" -f -
            mount -t overlay -o "lowerdir=/sys/class,upperdir=$new/upper,workdir=$new/work" class /sys/class
            umount -l "$new"
            rmdir "$new"
        """
        self._untar(script, name, tree)

    def program(self, name: str, script: str) -> None:
        """Replace or add a program by a shell script.

        The script reaches the real program as /usr/lib/real/NAME.
        """
        place = self.ask('PATH=$2; command -v "$1"', name, PATH).stdout.strip() or f"/usr/local/bin/{name}"
        self.do('mkdir -p "$2"; [ ! -e "$1" ] || [ -e "$2/$3" ] || mv "$1" "$2/$3"', place, REAL, name)
        self.write(place, script if script.startswith("#!") else f"#!/bin/sh\n{script}\n", 0o755)

    def no_tool(self, *names: str) -> None:
        """Remove programs from every folder of the PATH, so that they are not found."""
        folders = " ".join(PATH.split(":"))
        self.do(f'for name do for folder in {folders}; do rm -f "$folder/$name"; done; done', *names)

    def kernel_log(self, text: str) -> None:
        """Emulated: what `dmesg` prints (nothing, on a healthy host), whatever its options."""
        self.write("/var/log/dmesg", text)

    def clock(self, offset: float) -> None:
        """Emulated: `date` runs `offset` seconds ahead. No other way to read the clock does."""
        self.program(
            "date",
            f"""#!/bin/sh
            for option do
              case $option in
                -d*|-r*|-f*|-s*|--date*|--reference*|--file*|--set*) exec {REAL}/date "$@" ;;
              esac
            done
            exec {REAL}/date -d '{offset:f} seconds' "$@"
            """,
        )

    def _untar(self, script: str, path: str, tree: Tree) -> None:
        """Run `script` with `path` as $1 and `tree` as an archive on its stdin."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            _pack(archive, "", tree)
        self.do(script, path, stdin=packed.getvalue().decode())


def _pack(archive: tarfile.TarFile, under: str, tree: Tree) -> None:
    for name, content in tree.items():
        if not name or "/" in name:
            raise LabError(f"not the name of a file: {shlex.quote(name)}")
        entry = tarfile.TarInfo(f"{under}{name}")
        if isinstance(content, str):
            data = content.encode()
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
        else:
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
            _pack(archive, f"{under}{name}/", content)
