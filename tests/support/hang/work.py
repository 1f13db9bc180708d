"""A training over gloo in which rank VICTIM does KIND at step AT, while the others wait for it.

Each rank writes the number of its last step to FOLDER/step.RANK, and `hit` where KIND begins.
"""

import asyncio
import fcntl
import gc
import json
import os
import secrets
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from importlib import import_module
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from urllib.request import urlopen

import torch
import torch.distributed as dist
from filelock import FileLock

RANK = int(os.environ.get("RANK", "0"))
KIND, AT = os.environ.get("KIND", ""), int(os.environ.get("AT", "5"))
BAD = int(os.environ.get("VICTIM", "1")) == RANK
FOLDER = Path(os.environ.get("FOLDER", "."))
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
LONG = float(os.environ.get("LONG", "900"))
"""Seconds that the work takes, unless something else limits it."""


def mark(name: str, text: str = "1") -> None:
    (FOLDER / f"{name}.new.{RANK}").write_text(text)
    (FOLDER / f"{name}.new.{RANK}").rename(FOLDER / f"{name}.{RANK}")


def until() -> Callable[[], bool]:
    end = time.monotonic() + LONG
    return lambda: time.monotonic() < end


def matmul() -> None:
    goes_on, square = until(), torch.randn(2000, 2000)
    while goes_on():
        square = square @ square
        square = square / square.norm()


def numpy_alone() -> None:
    numpy = import_module("numpy")

    array = numpy.random.default_rng(1).random((3000, 3000))
    goes_on = until()
    while goes_on():
        numpy.linalg.svd(array)


def decode() -> None:
    goes_on, tokens = until(), [1]
    weights = torch.randn(400, 400)
    while goes_on():
        state = torch.tanh(weights @ torch.full((400,), float(tokens[-1])))
        tokens.append(int(state.argmax()))


def collect() -> None:
    goes_on = until()
    kept = [[number] for number in range(2_000_000)]
    while goes_on():
        gc.collect()
    del kept


def count_words() -> None:
    goes_on, words = until(), dict[str, int]()
    text = "the quick brown fox jumps over the lazy dog " * 200
    while goes_on():
        for word in text.split():
            words[word] = words.get(word, 0) + 1


def small_reads() -> None:
    """4 KB every 0.4 s."""
    goes_on = until()
    path = FOLDER / "samples"
    path.write_bytes(bytes(1 << 24))
    with path.open("rb", buffering=0) as file:
        while goes_on() and file.read(4096):
            time.sleep(0.4)


def slow_storage() -> None:
    """It answers each read after 6 s."""
    goes_on = until()
    with (FOLDER / "slow" / "shard").open("rb", buffering=0) as file:
        while goes_on():
            file.seek(0)
            file.read(4096)


def _local_service() -> str:
    """The path of a socket of Unix behind which a service answers after some time."""
    path = str(FOLDER / f"socket.{secrets.token_hex(4)}")
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    _goes_on_with(server, f"c=s.accept(); time.sleep({LONG})")
    return path


def _goes_on_with(server: socket.socket, code: str) -> None:
    """A process of its own has the socket as `s`."""
    code = f"import socket,time\ns=socket.socket(fileno={server.fileno()})\n{code}"
    subprocess.Popen([sys.executable, "-c", code], pass_fds=[server.fileno()], start_new_session=True)


def ask_local_service() -> int:
    with socket.socket(socket.AF_UNIX) as line, line.makefile("rb") as answers:
        line.connect(_local_service())
        line.sendall(b"{}")
        return len(answers.read())


def ask_local_service_with_timeout() -> int:
    """It polls, and no stack shows a library."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(2 * LONG)
        line.connect(_local_service())
        line.sendall(b"{}")
        return len(line.recv(100))


async def _ask() -> None:
    reader, writer = await asyncio.open_unix_connection(_local_service())
    writer.write(b"{}")
    await reader.read()


def ask_local_service_by_asyncio() -> None:
    asyncio.run(_ask())


def ask_local_service_by_loop_of_thread() -> None:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    asyncio.run_coroutine_threadsafe(_ask(), loop).result()


def _pipe() -> int:
    """The end of a pipe of a process that is no child of the rank, and writes after some time."""
    ours, theirs = os.pipe()
    code = f"import time; time.sleep({LONG})"
    subprocess.run(
        ["sh", "-c", '"$@" &', "sh", sys.executable, "-c", code],
        pass_fds=[theirs],
        start_new_session=True,
        check=True,
    )
    os.close(theirs)
    return ours


def read_pipe() -> None:
    os.read(_pipe(), 100)


def read_pipe_by_asyncio() -> None:
    async def read() -> None:
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(_pipe(), "rb"))
        await reader.read()

    asyncio.run(read())


def serve_by_asyncio() -> None:
    """It waits until somebody connects."""

    async def serve() -> None:
        await (await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)).serve_forever()

    asyncio.run(serve())


def asyncio_deadlock() -> None:
    """A loop in which nothing can happen any more."""

    async def wait() -> None:
        await asyncio.Event().wait()

    asyncio.run(wait())


def ask_local_service_by_threads() -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: ask_local_service(), range(2)))


def many_files() -> None:
    goes_on = until()
    (FOLDER / "one").write_bytes(bytes(2000))
    while goes_on():
        (FOLDER / "one").read_bytes()
        time.sleep(0.3)


def checkpoint() -> None:
    """To a disk that accepts 40 KB a second."""
    _write(8000, 0.2)


def slow_checkpoint() -> None:
    """4 KB a second."""
    _write(2000, 0.5)


def _write(piece: int, pause: float) -> None:
    goes_on = until()
    with (FOLDER / "checkpoint").open("wb", buffering=0) as file:
        while goes_on():
            file.write(bytes(piece))
            time.sleep(pause)


def _sink() -> int:
    """A service that accepts whatever is sent to it; returns its port."""
    server = socket.create_server(("127.0.0.1", 0))
    _goes_on_with(server, "c,_=s.accept()\nwhile c.recv(65536): pass\n")
    return int(server.getsockname()[1])


def _send(port: int, piece: int, pause: float) -> None:
    goes_on = until()
    with socket.create_connection(("127.0.0.1", port)) as line:
        while goes_on():
            line.sendall(bytes(piece))
            time.sleep(pause)


def upload() -> None:
    """5 MB a second."""
    _send(_sink(), 500_000, 0.1)


def slow_upload() -> None:
    """10 KB a second."""
    _send(_sink(), 1_000, 0.1)


def _uploading() -> list[str]:
    code = (
        "import socket,time\n"
        f"c=socket.create_connection(('127.0.0.1',{_sink()}))\n"
        f"end=time.monotonic()+{LONG}\n"
        "while time.monotonic()<end: c.sendall(bytes(200000)); time.sleep(0.1)\n"
    )
    return [sys.executable, "-c", code]


def upload_by_child() -> None:
    subprocess.run(_uploading(), check=False)


def upload_by_polled_child() -> None:
    child = subprocess.Popen(_uploading())
    while child.poll() is None:
        time.sleep(0.5)


def upload_by_thread() -> None:
    thread = threading.Thread(target=upload)
    thread.start()
    thread.join()


def _service() -> int:
    """A service that judges, and answers after some time."""
    server = socket.create_server(("127.0.0.1", 0))
    code = (
        "while True:\n"
        "  c,_=s.accept(); c.recv(65536)\n"
        f"  time.sleep({LONG}); c.sendall({ANSWER!r}); c.close()\n"
    )
    _goes_on_with(server, code)
    return int(server.getsockname()[1])


def judge_by_http() -> None:
    json.load(urlopen(f"http://127.0.0.1:{_service()}/score", data=b"{}"))


def judge_by_http_with_timeout() -> None:
    json.load(urlopen(f"http://127.0.0.1:{_service()}/score", data=b"{}", timeout=2 * LONG))


def judges_by_threads() -> None:
    from concurrent.futures import ThreadPoolExecutor

    port = _service()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: urlopen(f"http://127.0.0.1:{port}/", data=b"{}").read(), range(2)))


def judge_by_curl() -> None:
    subprocess.run(["curl", "-s", "-d", "{}", f"http://127.0.0.1:{_service()}/"], check=False)


def judge_by_asyncio() -> None:
    async def ask(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\n\r\n{}")
        await reader.read()

    asyncio.run(ask(_service()))


def compress_by_shell() -> None:
    """The work is in grandchildren, and the shell between only waits."""
    subprocess.run(["sh", "-c", f"timeout {LONG} yes | gzip -9 | cat >/dev/null"], check=False)


def queue_of_computing_child() -> None:
    """It waits for what a child has not computed yet."""
    context = get_context("spawn")
    results = context.Queue()
    child = context.Process(target=_spin_for, args=(LONG,))
    child.start()
    results.get(timeout=LONG)


STEPS = count()


def long_steps() -> None:
    """Each takes 3 s, as the log of the rank says."""
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime())} step: {next(STEPS)}", flush=True)
    time.sleep(3)


def compile_model() -> None:
    goes_on = until()
    while goes_on():
        torch._dynamo.reset()

        def function(x: torch.Tensor) -> torch.Tensor:
            for number in range(60):
                x = torch.sin(x) * number + x.mean()
            return x

        torch.compile(function)(torch.randn(64))


def compile_by_gcc() -> None:
    source = FOLDER / "big.c"
    source.write_text(
        "".join(f"int f{n}(int x){{int s=0;for(int i=0;i<x;i++)s+=i*{n}%7;return s;}}\n" for n in range(9000))
    )
    goes_on = until()
    while goes_on():
        subprocess.run(["gcc", "-O3", "-c", str(source), "-o", str(FOLDER / "big.o")], check=False)


def long_import() -> None:
    names = []
    for number in range(400):
        path = FOLDER / f"module_{number}_of_many.py"
        path.write_text("\n".join(f"def f{n}(x): return [x * {n} for _ in range({n})]" for n in range(4000)))
        names.append(path.stem)
    sys.path.insert(0, str(FOLDER))
    for name in names:
        __import__(name)


def evaluate() -> None:
    goes_on, model = until(), torch.nn.Linear(500, 500)
    with torch.no_grad():
        while goes_on():
            model(torch.randn(2000, 500)).softmax(-1).sum().item()


def threads_compute() -> None:
    def work() -> None:
        goes_on = until()
        total = 0
        while goes_on():
            total += sum(range(1000))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def pool_computes() -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(_spin_for, [LONG, LONG]))


def _spin_for(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(10_000))


def spin() -> None:
    while True:
        pass


def spin_in_lines() -> None:
    number = 0
    while True:
        number += 1
        if number < 0:
            break


def sleep() -> None:
    time.sleep(LONG)


def nap() -> None:
    while True:
        time.sleep(1)


def lock() -> None:
    held = threading.Lock()
    held.acquire()
    held.acquire()


def sleep_with_heartbeat() -> None:
    """A thread writes a log and reports to a monitor."""
    port = _sink()

    def beat() -> None:
        with (FOLDER / "log").open("a") as log, socket.create_connection(("127.0.0.1", port)) as line:
            while True:
                log.write("alive\n")
                log.flush()
                line.sendall(bytes(100))
                time.sleep(1)

    threading.Thread(target=beat, daemon=True).start()
    time.sleep(LONG)


def lock_with_heartbeat() -> None:
    threading.Thread(target=sleep_with_heartbeat, daemon=True).start()
    lock()


def child_sleeps() -> None:
    subprocess.run(["sleep", str(LONG)], check=False)


def file_lock() -> None:
    with (FOLDER / "cache.lock").open("w") as mine:
        pid = os.fork()
        if pid == 0:
            with (FOLDER / "cache.lock").open("w") as other:
                fcntl.flock(other, fcntl.LOCK_EX)
                mark("held")
                time.sleep(LONG)
        while not (FOLDER / f"held.{RANK}").exists():
            time.sleep(0.05)
        fcntl.flock(mine, fcntl.LOCK_EX)


HOLDS = """
import os, sys, time
from pathlib import Path
path, held, kind = sys.argv[1:]
if os.fork():
    os._exit(0)  # so that it is no child of the rank
if kind == "sqlite":
    import sqlite3
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("begin exclusive")
else:
    import fcntl
    lock = open(path, "a")
    fcntl.flock(lock, fcntl.LOCK_EX)
Path(held + ".new").write_text(str(os.getpid()))
Path(held + ".new").rename(held)
end = time.monotonic() + (3 if kind == "short" else 900)
with open(f"{path}.data", "wb") as data:
    while time.monotonic() < end:
        time.sleep(0.1)
        if kind == "downloads":
            data.write(bytes(1_000_000))
"""


def _held_by_another(kind: str) -> str:
    """The path of a lock that a process of its own holds."""
    path = str(FOLDER / "hub.lock")
    argv = [sys.executable, "-c", HOLDS, path, str(FOLDER / f"held.{RANK}"), kind]
    subprocess.run(argv, start_new_session=True, check=True)
    while not (FOLDER / f"held.{RANK}").exists():
        time.sleep(0.05)
    return path


def pool_sleeps() -> None:
    """A worker of a pool stands still, and the rank waits for its result."""
    with get_context("fork").Pool(1) as pool:
        pool.map(time.sleep, [LONG])


def hub_lock() -> None:
    with FileLock(_held_by_another("flock")):
        pass


def flock_of_another() -> None:
    with open(_held_by_another("flock"), "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)


def sqlite_lock() -> None:
    connection = sqlite3.connect(_held_by_another("sqlite"), timeout=LONG)
    connection.execute("create table runs (id int)")


def short_lock() -> None:
    """It is free after some seconds."""
    with FileLock(_held_by_another("short")):
        pass


def lock_of_a_download() -> None:
    with FileLock(_held_by_another("downloads")):
        pass


def build_lock() -> None:
    """As torch builds an extension, in a folder where a build was killed."""
    load_inline = import_module("torch.utils.cpp_extension").load_inline
    (FOLDER / "build").mkdir()
    (FOLDER / "build" / "lock").touch()
    load_inline("nothing", cpp_sources="", build_directory=str(FOLDER / "build"))


def lock_over_collective() -> None:
    """The first rank holds it, and waits for all."""
    if RANK == 0:
        with FileLock(str(FOLDER / "cache.lock")):
            mark("held")
            dist.all_reduce(torch.ones(4))
    while not (FOLDER / "held.0").exists():
        time.sleep(0.05)
    FileLock(str(FOLDER / "cache.lock")).acquire()


TOKENS = threading.Lock()


def tokenize() -> None:
    with TOKENS:
        pass


def fork_lock() -> None:
    """A child is forked while a thread holds the lock that the child needs."""
    begun = threading.Event()

    def hold() -> None:
        with TOKENS:
            begun.set()
            time.sleep(2)

    threading.Thread(target=hold).start()
    begun.wait()
    child = os.fork()
    if child == 0:
        tokenize()
        os._exit(0)
    os.waitpid(child, 0)


def rest() -> None:
    threading.Event().wait()


def leave_all() -> None:
    leave()


class Left(Exception):
    """Of a rank that has no more batches."""


def leave() -> None:
    threading.Thread(target=rest, name="uploader").start()
    raise Left


BESIDE = "_beside_evaluator"
"""The end of kinds in which the last rank does not train."""


def evaluate_now_and_then() -> None:
    while True:
        time.sleep(60)


def main() -> None:
    with suppress(Left):
        train()


def train() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=1800))
    group = None
    if KIND.endswith(BESIDE):
        dist.all_reduce(torch.ones(4))
        group = dist.new_group([0, 1])
        if RANK == 2:
            evaluate_now_and_then()
    for step in range(1_000_000):
        time.sleep(0.02)
        everybody = KIND in ("leave_all", "lock_over_collective")
        always = KIND == "long_steps"
        if (BAD or everybody) and KIND and (step == AT or always):
            if step >= AT:
                mark("hit", str(os.getpid()))
            globals()[KIND.removesuffix(BESIDE)]()
        dist.all_reduce(torch.ones(4), group=group)
        mark("step", str(step))


if __name__ == "__main__":
    main()
