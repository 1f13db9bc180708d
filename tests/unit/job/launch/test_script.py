"""Launch scripts are read as a shell would read them, without a shell."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doctor.job.launch.shell import read_script
from doctor.job.launch.shell_flow import ShellCommand
from doctor.job.launch.shell_tokens import ShellError
from tests.support.each import each
from tests.support.limits import within


def test_growing_lists_are_not_split_without_limit() -> None:
    """A list whose elements are a thousand words each is doubled ten times."""
    words = f"B='{'a ' * 1900}'\n"
    grown = 'A=("$B" "$B")\n' + 'A=("${A[@]}" "${A[@]}")\n' * 10
    began = time.process_time()
    found = lines(words + grown + "python train.py ${A[@]}\n" * 100)
    assert time.process_time() - began < 1
    assert {len(line.words) for line in found} == {1000}


def lines(text: str) -> list[ShellCommand]:
    return list(read_script(text).lines)


def only(text: str) -> ShellCommand:
    (line,) = lines(text)
    return line


@pytest.mark.parametrize(
    "text",
    [
        "export MASTER_ADDR=$(hostname)",
        "export MASTER_ADDR=`hostname`",
        "export MASTER_ADDR=$1",
        "export MASTER_ADDR=${MASTER_ADDR:-10.0.0.1}",
        'if [ -z "$X" ]; then export MASTER_ADDR=10.0.0.1; fi',
        "export MASTER_ADDR=a; if [ x ]; then MASTER_ADDR=b; fi",
        "export MASTER_ADDR=a; case $X in y) MASTER_ADDR=b;; esac",
        "export MASTER_ADDR=a; [ x ] && MASTER_ADDR=b",
        "export MASTER_ADDR=a; ping x || MASTER_ADDR=b",
        "export MASTER_ADDR; read MASTER_ADDR",
        "export MASTER_ADDR=a; for MASTER_ADDR in $HOSTS; do :; done",
        "export MASTER_ADDR=node$((1+N))",
        "export MASTER_ADDR=a; unset MASTER_ADDR",
        "MASTER_ADDR=a",
    ],
)
def test_values_that_the_script_does_not_determine_are_unknown(text: str) -> None:
    assert "MASTER_ADDR" not in only(f"{text}\npython train.py").env


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("export MASTER_ADDR=a", "a"),
        ("MASTER_ADDR=a\nexport MASTER_ADDR", "a"),
        ("declare -x MASTER_ADDR=a", "a"),
        ("set -a\nMASTER_ADDR=a", "a"),
        ("set -o allexport; MASTER_ADDR=a", "a"),
        ("H=node; export MASTER_ADDR=${H}1", "node1"),
        ("cd /job && export MASTER_ADDR=a", "a"),
        ("export MASTER_ADDR=a; if [ x ]; then export MASTER_ADDR=a; else export MASTER_ADDR=a; fi", "a"),
        ("export MASTER_ADDR=a; (export MASTER_ADDR=b)", "a"),
        ("if x; then if y; then z; fi; fi; export MASTER_ADDR=a", "a"),
        ("export MASTER_ADDR=a; for MASTER_ADDR in b c; do :; done", "c"),
        ("export MASTER_ADDR=node$((1+1))", "node2"),
        ("f() { export MASTER_ADDR=$1; }\nf a", "a"),
        ("f() { export MASTER_ADDR=a; }\ng() { export MASTER_ADDR=b; }\nN=f; $N", "a"),
    ],
)
def test_values_that_the_script_determines_are_known(text: str, value: str) -> None:
    assert only(f"{text}\npython train.py").env["MASTER_ADDR"] == value


def test_each_branch_sees_its_own_values() -> None:
    first, second = lines(
        "if [ $N = 0 ]; then export RANK=0; python a.py; else export RANK=1; python a.py; fi"
    )
    assert (first.env["RANK"], second.env["RANK"]) == ("0", "1")


def test_a_loop_is_distinguished_from_a_single_command() -> None:
    inside, outside = lines("for i in $ALL; do RANK=$i python a.py & done; python a.py")
    assert (inside.loop, inside.background, inside.names) == (True, True, frozenset({"RANK"}))
    assert (outside.loop, outside.background) == (False, False)
    assert "RANK" not in inside.env


LOOPS = (
    "for i in 0 1 2 3; do BODY done",
    "for i in {0..3}; do BODY done",
    "for i in $(seq 0 3); do BODY done",
    "for i in `seq 0 3`\ndo\nBODY\ndone",
    "for((i=0;i<4;i++)); do BODY done",
    "for ((i = 0; i < $N; i++)) do BODY done",
    "for((i=$FIRST;i<$((N+FIRST));i++));\ndo\nBODY\ndone",
    "for i in $(seq $FIRST $((N - 1))); do BODY done",
    "for i in $(seq 0 $(expr $N - 1)); do BODY done",
    'ALL=(0 1 2 3); for i in "${ALL[@]}"; do BODY done',
    "LIST='0 1 2 3'; for i in $LIST; do BODY done",
    "f() { for ((i=0; i<$1; i++)); do BODY done; }\nf 4",
    "function f {\nfor ((i=0; i<N; ++i)); do BODY done\n}\nf",
    "f() { i=$1; BODY }\nfor k in 0 1 2 3; do f $k; done",
    "for i in 0 1 2 3; do { BODY } ; done",
    "for i in 0 1 2 3; do ( cd a$i; BODY ) & done",
    "for j in 0 2; do for k in 0 1; do i=$((j+k)); BODY done; done",
)


@pytest.mark.parametrize("program", ["python train.py", "pytest -s train.py", "./train.sh", "nohup train"])
@each("loop", LOOPS)
def test_a_loop_with_known_bounds_is_gone_through(loop: str, program: str) -> None:
    body = f"export RANK_ID=$i DEVICE_ID=$((i+4)); env > log; {program} > log 2>&1 &\n"
    found = lines(f"N=4; FIRST=0\n{loop.replace('BODY', body)}")
    expected = [{"RANK_ID": str(n), "DEVICE_ID": str(n + 4)} for n in range(4)]
    assert [dict(line.env) for line in found] == expected
    assert all(line.background and not line.loop and line.turn for line in found)


@pytest.mark.parametrize(
    "loop",
    [
        "for i in $(seq 0 $LAST); do BODY done",
        "for ((i=0; i<$(nproc); i++)); do BODY done",
        "for ((i=0; i>=0; i++)); do BODY done",
        "for i in *.py; do BODY done",
        "for i in {0..99999}; do BODY done",
        "i=0; while [ $i -lt $N ]; do BODY i=$((i+1)); done",
        "i=0; while true; do BODY let i++; done",
        "i=0; until x; do BODY ((i++)); done",
    ],
)
def test_a_loop_without_known_bounds_is_read_once(loop: str) -> None:
    found = only(loop.replace("BODY", "export RANK_ID=$i; python a.py &\n"))
    assert found.loop
    assert "RANK_ID" in found.names
    assert "RANK_ID" not in found.env


@pytest.mark.parametrize(
    "text",
    [
        "for i in 0 1; do tail -f log$i & done",
        "for i in 0 1; do sleep 1 & done",
        "for i in 0 1; do ssh node$i ./train.sh & done",
        "./train.sh &",
    ],
)
def test_what_trains_nothing_is_left_out(text: str) -> None:
    assert lines(f"export RANK_ID=0\n{text}") == []


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("", "/job"),
        ("cd device0", "/job/device0"),
        ("cd device0; cd ..", "/job"),
        ("cd /data && cd x", "/data/x"),
        ('cd "$(dirname "$0")"', "/job"),
        ("pushd a; popd", "/job"),
        ("cd a; cd -", "/job"),
        ("(cd a)", "/job"),
        ('DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd); cd $DIR/b', "/job/b"),
        ("cd $1", None),
        ("if x; then cd a; fi", None),
        ("cd", None),
    ],
)
def test_the_folder_in_which_a_command_is_started(text: str, folder: str | None) -> None:
    (line,) = read_script(f"{text}\npython a.py\n", "/job").lines
    assert line.folder == folder


def test_a_rank_table_is_named_even_if_its_path_is_not_known() -> None:
    """No other variable is: half a value would be wrong."""
    text = "HERE=$(pwd); export RANK_TABLE_FILE=$HERE/a.json A=$X HCCL_X=$X\npython a.py"
    assert read_script(text, "/job").lines[0].env == {"RANK_TABLE_FILE": "/job/a.json"}
    assert only("export RANK_TABLE_FILE=$X/a.json\npython a.py").env == {"RANK_TABLE_FILE": "$X/a.json"}


def test_an_interface_is_named_even_if_it_is_not_known() -> None:
    """Then the library does not choose one by itself."""
    text = "export GLOO_SOCKET_IFNAME=$(ip route | awk '{print $5}')\nNCCL_SOCKET_IFNAME=$X python a.py"
    marks = {name: f"${name}" for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")}
    assert only(text).env == marks


def test_a_pipeline_in_the_background() -> None:
    assert only("python a.py 2>&1 | tee log &\n").background


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a=1\nexport B='x\ny\n", 2, "never closed"),
        ('a=1\n\nexport B="x\n', 3, "never closed"),
        ("torchrun $(hostname\n", 1, "never closed"),
        ("A=(1 2\n", 1, "never closed"),
        ("((1\n", 1, "never closed"),
        ("echo `x\n", 1, "never closed"),
        ("if x\n" * 150, 1, "nested"),
    ],
)
def test_syntax_that_no_shell_accepts(text: str, line: int, message: str) -> None:
    with pytest.raises(ShellError, match=message) as caught:
        read_script(text)
    assert caught.value.line == line


PIECES = (
    *"$(){}[]'\"`\\;&|<>#= \n\té1",
    *("((", "))", "$(", "${", "A=", "A=(", "$A", "${A:-", "if ", "fi ", "for i in ", "do ", "done ", "case "),
    *("esac ", ";;", "<<E\n", "E\n", "torchrun ", "python ", "export "),
)


def refused(text: str) -> ShellError | None:
    """The reason why a text cannot be read, or an empty text."""
    try:
        script = read_script(text)
    except ShellError as error:
        return error
    assert all(line.words for line in script.lines)
    return None


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=40).map("".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    error = refused(text)
    assert error is None or (error.message and 1 <= error.line <= text.count("\n") + 1)


UNITS = (
    *("$A", "A=$A$A ", "$(", "((", "'a' ", "if ", "A=(a ", "case x in ", "for i in a; do ", "[ x ] && "),
    *("A1=b;", "\\\n", "<<E ", "torchrun $A\n", "${A:-", "`a` ", "# a\n", "|", "export MS_A=1 ", '"$A" '),
    *("a" * 50, "if x; then A=1; fi\n", '"$A$A$A$A"', "torchrun &\n", "(", "$(("),
)


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
def test_long_hostile_scripts_are_read_soon(unit: str) -> None:
    start = "export A='" + "x " * 1500 + "'\n"
    with within(15):
        refused(start + unit * (256_000 // len(unit)))
