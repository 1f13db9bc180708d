"""A file system that accepts every request and never answers a read, like one whose server is gone.

`python dead_files.py FOLDER` mounts it there, for itself and for whoever enters its mount namespace; with
`for-all` after it, for everybody. It holds one file, `shard`. It says "mounted", or why it could not. With a
number after `for-all`, it answers each read after so many seconds.
"""

import ctypes
import errno
import os
import struct
import sys
import time

LOOKUP, FORGET, GETATTR, OPEN, READ, INIT, OPENDIR, INTERRUPT, BATCH_FORGET = 1, 2, 3, 14, 15, 26, 27, 36, 42
SILENT = (READ, FORGET, INTERRUPT, BATCH_FORGET)
NEWNS, PRIVATE = 0x00020000, 0x00044000
ROOT, SHARD = 1, 2
SIZE = 1 << 20
UNCACHED = struct.pack("<QII", 0, 1, 0)
LONG = 3600
"""Seconds for which the kernel does not need to ask again."""


def attributes(node: int) -> bytes:
    mode, size = (0o40755, 0) if node == ROOT else (0o100755, SIZE)
    sizes_and_times = struct.pack("<6Q", node, size, size // 512, 0, 0, 0)
    return sizes_and_times + struct.pack("<10I", 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(kind: int, node: int, body: bytes) -> tuple[int, bytes]:
    if kind == INIT:
        return 0, struct.pack("<4I2H2I2H8I", 7, 31, 4096, 0, 1, 1, 4096, 1, 1, 0, *[0] * 8)
    if kind == LOOKUP and body.rstrip(b"\0") == b"shard":
        return 0, struct.pack("<4Q2I", SHARD, 0, LONG, LONG, 0, 0) + attributes(SHARD)
    if kind == LOOKUP:
        return -errno.ENOENT, b""
    if kind == GETATTR:
        return 0, struct.pack("<QII", LONG, 0, 0) + attributes(node)
    if kind in (OPEN, OPENDIR):
        return 0, bytes(16)
    return -errno.ENOSYS, b""


def read_slowly(seconds: float, body: bytes) -> bytes:
    time.sleep(seconds)
    return bytes(struct.unpack_from("<QQI", body)[2])


def main(folder: str, *for_all: str) -> None:
    seconds = float(for_all[1]) if for_all[1:] else None
    libc = ctypes.CDLL(None, use_errno=True)
    device = os.open("/dev/fuse", os.O_RDWR)
    words = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    alone = not for_all and (libc.unshare(NEWNS) or libc.mount(None, b"/", None, PRIVATE, None))
    if alone or libc.mount(b"dead", folder.encode(), b"fuse", 0, words):
        sys.exit(os.strerror(ctypes.get_errno()))
    print("mounted", flush=True)
    while True:
        try:
            asked = os.read(device, 1 << 17)
        except OSError:
            return
        kind, unique, node = struct.unpack_from("<IQQ", asked, 4)
        if seconds is not None and kind in (READ, OPEN):
            said = read_slowly(seconds, asked[40:]) if kind == READ else UNCACHED
            os.write(device, struct.pack("<IiQ", 16 + len(said), 0, unique) + said)
        elif kind not in SILENT:
            code, said = answer(kind, node, asked[40:])
            os.write(device, struct.pack("<IiQ", 16 + len(said), code, unique) + said)


if __name__ == "__main__":
    main(*sys.argv[1:])
