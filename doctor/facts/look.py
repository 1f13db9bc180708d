"""Runs on hosts, as text: the packages of the interpreter that runs it, and others that have what is wanted.

Arguments: a mode; torch, mindspore, or `any` for torch or else mindspore; other interpreters, for `search`
those to try next, perhaps after `kept=` and one that has only mindspore. Packages are found by their files:
importing torch would cost seconds, and `re` half as much again as the interpreter's start. A torch that was
built in place or is on PYTHONPATH has no metadata, so its folder is looked for; a file in it has the version.
CANN's library is looked for but not loaded, because loading it writes logs into the home. Python 3.6 and
later.
"""

import os
import sys
from _imp import extension_suffixes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MOST = 8
SUFFIXES = extension_suffixes()
KNOWN = {"torch": "_C.", "torch_npu": "_C.", "mindspore": "_c_expression."}
SHARED = ["libnccl.so.2", "librccl.so.1", "libhccl.so", "libcuda.so.1"]
SHARED += ["libcudart.so." + version for version in ("11.0", "12", "13")]
HOMES = ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "venv", ".venv")


def names_in(folder: str) -> "list[str]":
    try:
        return sorted(os.listdir(folder or "."))[:9999]
    except OSError:
        return []


def listed(folder: str, most: int = 9999) -> "list[str]":
    return [os.path.join(folder, name) for name in names_in(folder)[:most]]


def packages(paths: "list[str]") -> "Iterator[tuple[str, str]]":
    """Name and version, "?" if only the folder is there; the first of each name counts."""
    for package, version, _ in distributions(paths):
        yield package, version
    for package, folder in known(paths):
        for line in head(folder + "/version.py").split("\n"):
            if line.startswith("__version__ ="):
                yield package.replace("_", "-"), line[13:].strip(" '\"")
        yield package.replace("_", "-"), "?"


def distributions(paths: "list[str]") -> "Iterator[tuple[str, str, str]]":
    """Name, version and folder of each package with metadata."""
    for path in paths:
        for name in names_in(path):
            package, _, rest = name.partition("-")
            version, _, kind = rest.rpartition(".")
            if version and kind in ("dist-info", "egg-info"):
                yield package.replace("_", "-"), version, os.path.join(path, name)


def source_of(folder: str) -> str:
    """The commit or the folder it came from: equal versions may be different code. Empty for an index."""
    said = head(folder + "/direct_url.json").replace('": ', '":')
    commit = said.partition('"commit_id":"')[2].partition('"')[0]
    place = said.partition('"file://')[2].partition('"')[0]
    stays = '"editable":true' in said and place.isprintable()
    return commit if is_commit(commit) else (commit_of(place) or place) if stays else ""


def is_commit(text: str) -> bool:
    return len(text) in (40, 64) and not text.strip("0123456789abcdef")


def commit_of(folder: str) -> str:
    """The commit that is checked out there; empty if git's files do not show it."""
    at = head(folder + "/.git/HEAD").strip()
    name = at.partition("ref: ")[2]
    if name[:5] == "refs/" and ".." not in name:
        lines = (line.partition(" ") for line in head(folder + "/.git/packed-refs").split("\n"))
        packed = [commit for commit, _, of in lines if of == name]
        at = head(folder + "/.git/" + name).strip() or "".join(packed[:1])
    return at if is_commit(at) else ""


def of_system(folder: str) -> bool:
    """Whether the package belongs to the system's own tools, which may differ."""
    of_os = folder.startswith("/usr/lib") and "/local/" not in folder
    return of_os and head(folder + "/INSTALLER").strip() in ("", "debian", "rpm")


def known(paths: "list[str]") -> "Iterator[tuple[str, str]]":
    """The frameworks that are there and their folders, in the order of the paths."""
    for package in KNOWN:
        for folder in ((path or ".") + "/" + package for path in paths):
            if os.path.isfile(folder + "/__init__.py"):
                yield package, folder


def built(paths: "list[str]") -> "Iterator[str]":
    """What torch is built for, such as "cuda 12.4": the version of its metadata often lacks that."""
    texts = (head(os.path.join(path or ".", "torch", "version.py")) for path in paths)
    for line in next(filter(None, texts), "").split("\n"):
        name, _, value = line.partition("=")
        yield name.partition(":")[0].strip() + " " + value.strip(" '\"")


def unfit(paths: "list[str]") -> "Iterator[tuple[str, str]]":
    """Frameworks that are compiled for other interpreters only, as those of another one's PYTHONPATH are."""
    for package, folder in dict(reversed(list(known(paths)))).items():
        part = KNOWN[package]
        own = [name for name in names_in(folder) if name.startswith(part) and name.endswith(".so")]
        if own and not any(name == part[:-1] + end for name in own for end in SUFFIXES):
            yield package.replace("_", "-"), folder + "/" + own[0]


def head(path: str) -> str:
    if not (os.path.isfile(path) and os.access(path, os.R_OK)):
        return ""
    with open(path, errors="replace") as file:
        return file.read(9999)


def elsewhere(wanted: str, *others: str) -> "Iterator[tuple[str, str]]":
    """Interpreters with it at usual places, and its version; none that other users may have put there."""
    home = os.path.expanduser("~")
    tops = [os.path.dirname(os.path.dirname(path)) for path in others if "/" in path]
    tops += [os.path.join(home, name) for name in HOMES] + ["/venv"] + listed("/opt", 64)
    tops += ["/usr/local", "/usr"] + [top for top in listed("/usr/local") if "/python" in top]
    for top in tops:
        for prefix in [top, *listed(os.path.join(top, "envs"), 64)]:
            names = (os.path.join(prefix, "bin", name) for name in ("python", "python3"))
            path = next((name for name in names if runs(name)), "")
            there = path and dict(reversed(list(packages(libraries(prefix))))).get(wanted)
            about = os.stat(os.path.dirname(path) or "/")
            if there and about.st_uid in (0, os.geteuid()) and not about.st_mode & 0o002:
                yield path, there


def shared(paths: "list[str]") -> "Iterator[tuple[str, str, str]]":
    """Each library that ranks load, its bytes and its file. The loader looks in the packages of torch, along
    LD_LIBRARY_PATH and in its cache, and passes over what is for another kind of processor.
    """
    own = [at + "/lib" for path in paths if path for at in [path + "/torch", *listed(path + "/nvidia", 64)]]
    near = [at for at in own + os.environ.get("LD_LIBRARY_PATH", "").split(":") if at]
    cache = cached().decode(errors="replace").split("\0")
    for name in SHARED:
        for path in [at + "/" + name for at in near] + [at for at in cache if at.endswith("/" + name)]:
            if path.isprintable() and os.path.exists(path) and head(path)[:5] != "\x7fELF\x01":
                size = os.path.getsize(path) if os.path.isfile(path) else "folder"
                yield name, str(size), os.path.realpath(path)
                break


def libraries(prefix: str) -> "list[str]":
    roots = [lib for lib in listed(os.path.join(prefix, "lib")) if "/python3" in lib]
    return [os.path.join(root, kind + "-packages") for root in roots for kind in ("site", "dist")]


def runs(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def become(path: str, *words: str) -> None:
    """Go on as another interpreter, in the same process; return if that fails."""
    try:
        with open("/proc/self/cmdline", "rb") as file:
            given = file.read().split(b"\0")
        os.execv(path, [path, "-B", "-c", given[given.index(b"-c") + 1].decode(), *words])
    except (OSError, ValueError, IndexError):
        pass


def called(name: str) -> "str | None":
    folders = [""] if "/" in name else os.environ.get("PATH", "").split(":")
    return next((path for path in (os.path.join(at, name) for at in folders) if runs(path)), None)


def print_own(own: "list[tuple[str, str]]") -> None:
    print("python", sys.version.split()[0], sys.executable)
    for name, version in own:
        print("package", name, version)
    print("distributions")
    for name, _, folder in distributions(sys.path):
        if of_system(folder):
            print("system", name)
        source = source_of(folder)
        if source:
            print("source", name, source)
    for line in built(sys.path):
        print("built", line)
    for name, file in unfit(sys.path):
        print("unfit", name, file)
    there = list(shared(sys.path))
    for words in there:
        print("library", *words)
    for path in sys.path:
        if os.path.isdir(os.path.join(path or ".", "torch_npu")):
            print("hccl", any(words[0] == "libhccl.so" for words in there))


def cached() -> bytes:
    if not os.access("/etc/ld.so.cache", os.R_OK):
        return b""
    with open("/etc/ld.so.cache", "rb") as file:
        return file.read()


def main(mode: str = "", wanted: str = "any", *others: str) -> None:
    own = [] if mode == "absent" else list(packages(sys.path))
    there = dict(own)
    first = "torch" if wanted == "any" else wanted
    usable = first in there or (wanted == "any" and "mindspore" in there)
    kept = [name[5:] for name in others if name[:5] == "kept="]
    others = tuple(name for name in others if name[:5] != "kept=")
    preferred = "python3" in others  # only the plain names follow it
    if mode == "search" and first not in there:
        kept = kept or ([sys.executable] if usable else [])
        known = ["kept=" + name for name in kept]
        for at, name in enumerate(others if preferred else ()):
            path = called(name)
            if path:
                become(path, "search", wanted, *known, *others[at + 1 :])
        for path, _ in elsewhere(first):
            become(path, "found", wanted)
        rest = [path for path, _ in elsewhere("mindspore")] if wanted == "any" and not kept else []
        for path in [name for name in kept if name != sys.executable] + rest:
            become(path, "found", wanted)
    if mode != "absent":
        print_own(own)
    if mode == "found" or (mode == "search" and preferred and usable):
        print("chosen")
    if mode in ("absent", "list") and not usable:
        for path, version in list(dict(elsewhere(first, *others)).items())[:MOST]:
            print("elsewhere", path, version)


main(*sys.argv[1:])
