"""`python -m benchmarks.thousands`: what it costs the controller to log in to thousands of hosts at once.

One server of our own, a program on this machine, is all of them: each host is an address of 127.0.0.0/8. It
logs anybody in, runs the first examination that it is asked for in a real shell, and answers all others from
what that one said, as machines with other numbers. So the hosts cost little, and the times are those of the
controller: all logins and examinations, and the judging of as many answers.
"""

import argparse
import asyncio
import json
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.meter import Timed, timed
from benchmarks.table import MEGA, columns, machine

HOSTS = (64, 1024, 4096)
DESCRIPTORS = 20_000
TARGET_SECONDS, TARGET_MS, TARGET_MB = 60, 5, 0.15
TOKEN = re.compile(rb"^T=([0-9a-f]+)", re.MULTILINE)
IDENTITY = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{6}(?=[0-9a-f]{6})[0-9a-f]{6}")
"""Numbers of a machine and of its start: the last digits are the host's own."""
LAST = b"exit 0; }\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.thousands", description=__doc__)
    parser.add_argument("--hosts", type=int, nargs="+", default=HOSTS)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    try:
        import asyncssh
    except ImportError:
        print("No benchmark: it needs the package asyncssh.", file=sys.stderr)
        return 2
    if args.serve:
        asyncio.run(_serve(args.serve, asyncssh))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / ".ssh").mkdir(0o700)
        for name in ("host", "own"):
            made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / name)]
            subprocess.run(made, check=True)
        command = [sys.executable, "-m", "benchmarks.thousands", "--serve", folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as server:
            assert server.stdout
            try:
                port = int(server.stdout.readline())
                _check(home, port, 1)  # the server learns what a host answers
                print(machine("paramiko", "cryptography"), end="\n\n", flush=True)
                taken = {count: _check(home, port, count) for count in args.hosts}
            finally:
                server.send_signal(signal.SIGTERM)
            left = server.stdout.read().strip()
    print(_table(taken), end="\n\n")
    print(f"Connections that were left when doctor had ended: {left}.")
    return 0


def _check(home: Path, port: int, count: int) -> Timed:
    """One examination of so many hosts; all of them must have answered."""
    names = [f"127.1.{number // 250}.{number % 250 + 1}" for number in range(count)]
    key = " ".join((home / "host.pub").read_text().split()[:2])
    (home / "hosts").write_text("\n".join(names))
    (home / ".ssh/known_hosts").write_text("".join(f"[{name}]:{port} {key}\n" for name in names))
    doctor = [sys.executable, "-m", "doctor", "check", "--hostfile", str(home / "hosts"), "--port", str(port)]
    login = ["-i", str(home / "own"), "--user", "root", "--exam", "host", "--mesh", "none"]
    report = home / "report.json"
    report.unlink(missing_ok=True)
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    ran = timed([*doctor, *login, "--json", str(report)], environment)
    if not report.exists():
        raise SystemExit(ran.output[-2000:])
    said = json.loads(report.read_bytes())
    lost = {
        host for each in said["findings"] if each["check"].startswith("host-un") for host in each["hosts"]
    }
    if lost or len(said["hosts"]) != count:
        raise SystemExit(
            f"{len(lost)} of {len(said['hosts'])} hosts were lost, for instance {min(lost, default='')}"
        )
    return ran


def _table(taken: dict[int, Timed]) -> str:
    first = next(iter(taken))
    rows: list[list[str]] = []
    for count, ran in taken.items():
        more = count - first
        cpu = f"{1000 * (ran.cpu - taken[first].cpu) / more:.1f} ms" if more else ""
        memory = f"{(ran.peak - taken[first].peak) / more / MEGA:.2f} MB" if more else ""
        rows.append([f"{count} hosts", f"{ran.wall:.1f} s", f"{ran.cpu:.1f} s", cpu, memory])
    rows.append(["target of 4096", f"{TARGET_SECONDS} s", "", f"{TARGET_MS} ms", f"{TARGET_MB} MB"])
    head = ["`doctor check --exam host`", "takes", "CPU", f"a host beyond {first}: CPU", "memory"]
    return columns(head, rows)


async def _serve(home: Path, asyncssh: Any) -> None:
    """Until SIGTERM. The first line says the port; the last, how many connections are open."""
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    known: dict[bytes, bytes] = {}
    opened = left = 0

    class Login(asyncssh.SSHServer):  # type: ignore[misc]
        def connection_made(self, _: object) -> None:
            nonlocal opened, left
            opened, left = opened + 1, left + 1
            self.number = opened

        def connection_lost(self, _: object) -> None:
            nonlocal left
            left -= 1

        def begin_auth(self, _: str) -> bool:
            return True

        def public_key_auth_supported(self) -> bool:
            return True

        def validate_public_key(self, *_: object) -> bool:
            return True

        def session_requested(self) -> "Session":
            return Session(self.number)

    class Session(asyncssh.SSHServerSession):  # type: ignore[misc]
        def __init__(self, number: int) -> None:
            self.number, self.got = number, bytearray()

        def connection_made(self, channel: Any) -> None:
            self.channel = channel

        def exec_requested(self, command: str) -> bool:
            self.command = command
            return True

        def data_received(self, data: bytes, _: object) -> None:
            self.got += data
            if not self.got.endswith(LAST):
                return
            script = bytes(self.got)
            found = TOKEN.search(script)
            token = found[1] if found else b""
            asked = script.replace(token, b"")
            if asked not in known:
                known[asked] = _answer(self.command, script, token).replace(token, b"\0")
            own = b"%06x" % (self.number * 7919 % 0xFFFFFF)
            self.channel.write(IDENTITY.sub(lambda id: id[0][:-6] + own, known[asked]).replace(b"\0", token))
            self.channel.exit(0)

    server = await asyncssh.listen(
        "0.0.0.0",
        0,
        server_factory=Login,
        server_host_keys=[str(home / "host")],
        encoding=None,
        login_timeout=300,
        backlog=4096,
    )
    print(server.get_port(), flush=True)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    print(left)


def _answer(command: str, script: bytes, token: bytes) -> bytes:
    """What a shell of this machine answers. Its input stays open until then, as that of a login does."""
    pipe = subprocess.PIPE
    with subprocess.Popen(["sh", "-c", command], stdin=pipe, stdout=pipe, start_new_session=True) as shell:
        assert shell.stdin
        assert shell.stdout
        shell.stdin.write(script)
        shell.stdin.flush()
        said = b""
        while token + b" done" not in said and (more := shell.stdout.read(1)):
            said += more
        shell.stdin.close()
        return said + shell.stdout.read()


if __name__ == "__main__":
    sys.exit(main())
