"""A launch script is read as a real shell reads it."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from doctor.job.launch.shell import read_script
from doctor.job.launch.shell_flow import ShellCommand


def lines(text: str) -> list[ShellCommand]:
    return list(read_script(text).lines)


@pytest.mark.parametrize(
    "text",
    [
        "torchrun --a=1 'b c' \"d e\" f\\ g",
        "torchrun a \\\n  b \\\n  c",
        "A=1; torchrun $A ${A}x \"$A y\" '$A'",
        "A='1 2  3'; torchrun $A \"$A\"",
        'A="--x 1 \\\n --y 2"; torchrun $A t.py',
        "A=(--x 1 '2 3'); A+=(4); torchrun ${A[@]} \"${A[@]}\" $A",
        "A=; torchrun ${A:-5} ${A-6} x",
        "A=a; B=$A-b; A=c; torchrun $A $B",
        "A=x; A+=y; torchrun $A",
        "# torchrun no\ntorchrun yes # no",
        "torchrun a#b 'c#d'",
        "torchrun a > /dev/null 2>&1 b",
        "torchrun a &>/dev/null b",
        "cat <<EOF >/dev/null\ntorchrun no 'x\nEOF\ntorchrun yes",
        "cat <<-'E' >/dev/null\n\ttorchrun no\n\tE\ntorchrun yes",
        "torchrun a | cat",
        "if true; then torchrun a; fi",
        "(A=1; torchrun $A); { torchrun b; }",
        "A=1; (A=2); torchrun $A",
        "for i in 1; do A=5; done; torchrun $A",
        "export A=1 B='2 3'; torchrun $A \"$B\"",
        "unset Z; A=1 torchrun a; torchrun b",
        "torchrun \"\" '' a",
        "torchrun \"a'b\" 'c\"d' e\"f\"'g'",
        'torchrun \\$A \'\\n\' "\\\\ \\" \\$"',
        "torchrun a;torchrun b&&torchrun c",
        "case x in a) torchrun a;; x) torchrun x;; esac".replace("torchrun a", ":"),
        'torchrun "$(echo" 1")" x'.replace('"$(echo" 1")"', "y"),
        "torchrun a\r\n",
        "torchrun cost$ $",
        "for i in 0 1 2; do torchrun $i; done; torchrun $i",
        "for i in {0..3} a{1,2}b {08..11} {6..0..2}; do torchrun $i; done",
        "for i in $(seq 0 3) `seq 5 2 9` $(seq 2); do torchrun $i; done",
        "N=3; for((i=0;i<$N;i++)); do torchrun $i; done; torchrun $i",
        "N=4; F=2; for((R=$F;R<$((N+F));R++));\ndo\ntorchrun $R\ndone",
        "for ((i=8; i>0; i-=3)) do torchrun $i; done",
        "for i in 0 1; do for j in 0 1; do torchrun $((i*2+j)) $i$j; done; done",
        "A=7; torchrun $((A%4)) $((A/2)) $((-A+1)) $(((A+1)*2)) $((A>3)) $((A==3||A==7)) $[A-1]",
        "A=7; ((A++)); let A+=2; torchrun $A $(expr $A - 1)",
        "f() { torchrun $1 $2; }\nf a b; f c",
        "f() {\nexport A=$1\n}\nfunction g {\nexport A=b$1\n}\nN=g\n${N} 2\ntorchrun $A",
        "f() { for ((i=0;i<$1;i++)); do torchrun $i; done; }\nf 2",
        "f() { g x; }; g() { torchrun $1; }; f",
        "for i in 0 1; do [ $i = 9 ] && A=1; if false; then A=2; fi; torchrun $i; done",
        "for i in a b; do (torchrun $i); { torchrun $i; }; done",
    ],
)
def test_words_are_those_that_bash_produces(text: str) -> None:
    """The script runs here, with a torchrun that only prints its words."""
    if not shutil.which("bash"):
        pytest.skip("needs bash")
    fake = "exec 5>&1; torchrun() { printf '%s\\0' \"$@\" >&5; printf '\\1\\0' >&5; }\n"
    clean = text.replace("\r", "")
    ran = subprocess.run(["bash", "-c", f"{fake}{clean}\n"], capture_output=True, timeout=10)
    calls = ran.stdout.decode().split("\1\0")[:-1]
    expected = [tuple(call.split("\0")[:-1]) for call in calls]
    assert [line.words[1:] for line in lines(text)] == expected, ran.stderr
