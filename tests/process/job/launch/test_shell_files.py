"""What scripts write to files, compared with what bash writes: it may be unknown, but never another text."""

import random
import subprocess
from pathlib import Path

from doctor.job.launch.shell import read_script

HOSTS = "node1 8\nnode2 4\n"
NAMES = ("f", "g", "hosts")
PRINTS = (
    "echo a",
    "echo $V",
    "printf '%s\\n' x y",
    "printf '%s-%d\\n' q 3",
    "cat hosts",
    "cat f",
    "head -1 hosts",
    "sort f",
    "seq 3",
    "echo -e 'x\\ny'",
)
TO = ("> f", ">> f", "> g", ">> g", "> hosts", ">> hosts", "| tee g", "> /dev/null", "2> f", "> f 2>&1")
LINES = (
    *["{a} {t}"] * 4,
    "rm -f {f}",
    "touch {f}",
    "cp {f} {h}",
    "cat {f} > {h}",
    "for i in 1 2; do {a} {t}; done",
    "for i in 1 2; do {a}; done > {f}",
    "( {a} {t} )",
    "{{ {a}; }} > {f}",
    'if [ "$1" ]; then {a} {t}; fi',
    "if [ a = a ]; then {a} {t}; fi",
    "[ -f {f} ] || {a} {t}",
    "bash -c 'echo c > {f}'",
    "sed -i s/a/b/ {f}",
    "n=0; while [ $n -lt 2 ]; do n=$((n+1)); {a} {t}; done",
    "while read x; do echo $x z >> g; done < hosts",
    "w() {{ {a} {t}\n}}; w",
    "python3 -c \"open('{f}', 'a').write('p')\"",
    "eval 'echo e > {f}'",
    "> {f}",
    "cd sub; {a} {t}; cd ..",
    "({a}) > {f}",
    "echo z | cat - >> {f}",
    "false && {a} {t}",
    "set -- {f}; echo o > $1",
    "O={f}; {a} > $O",
    "awk '{{print $1 > \"{f}\"}}' hosts",
    "case a in a) {a} {t};; *) echo n > {f};; esac",
    "case $V in\n  x | v*) {a} {t};;\n  v) echo n > {f}\nesac",
    'case $V in "v*") echo n > {f};; [a-u]) rm {f};; ?) {a} {t};; esac',
    "case $1 in a) {a} {t};; esac",
)


def test_files_have_what_bash_writes(tmp_path: Path) -> None:
    known = 0
    for seed in range(250):
        drawn = random.Random(seed)
        rows = [
            drawn.choice(LINES).format(
                a=drawn.choice(PRINTS), t=drawn.choice(TO), f=drawn.choice(NAMES), h=drawn.choice(NAMES)
            )
            for _ in range(drawn.randint(1, 4))
        ]
        text = "\n".join(["V=v", *rows, ""])
        folder = tmp_path / str(seed)
        (folder / "sub").mkdir(parents=True)
        (folder / "hosts").write_text(HOSTS)
        lines = read_script(f"{text}torchrun t.py\n", str(folder), {str(folder / "hosts"): HOSTS}.get).lines
        subprocess.run(["bash", "-c", text], cwd=folder, capture_output=True, timeout=30, check=False)
        files = lines[-1].files if lines else {}
        for path in (*map(folder.joinpath, NAMES), folder / "sub/f"):
            if path.name in files and str(path) not in files:
                continue
            untouched = HOSTS if path == folder / "hosts" else ""
            said = files.get(str(path), untouched)
            known += said is not None
            assert said in (None, path.read_text() if path.exists() else ""), (text, path.name)
    assert known > 500
