"""Launch scripts are read as a shell would read them, without a shell."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doctor.job.launch.one_launch import one_launch
from doctor.job.launch.shell import read_script
from doctor.job.launch.shell_flow import ShellCommand
from doctor.job.launch.shell_tokens import ShellError
from tests.support.cases import cases, from_cases
from tests.support.each import each
from tests.support.limits import within


def test_growing_lists_are_not_split_without_limit() -> None:
    """A list whose elements are a thousand words each is doubled ten times."""
    words = f"B='{'a ' * 1900}'\n"
    grown = 'A=("$B" "$B")\n' + 'A=("${A[@]}" "${A[@]}")\n' * 10
    with within(1):
        found = lines(words + grown + "python train.py ${A[@]}\n" * 100)
    assert {len(line.words) for line in found} == {1000}


def lines(text: str) -> list[ShellCommand]:
    return list(read_script(text).lines)


def only(text: str) -> ShellCommand:
    (line,) = lines(text)
    return line


@cases
def test_values_that_the_script_does_not_determine_are_unknown(text: str) -> None:
    assert "MASTER_ADDR" not in only(f"{text}\npython train.py").env


@cases
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


LOOPS = from_cases(__file__, "LOOPS", tuple[str, ...])


@pytest.mark.parametrize("program", ["python train.py", "pytest -s train.py", "./train.sh", "nohup train"])
@each("loop", LOOPS)
def test_a_loop_with_known_bounds_is_gone_through(loop: str, program: str) -> None:
    body = f"export RANK_ID=$i DEVICE_ID=$((i+4)); env > log; {program} > log 2>&1 &\n"
    found = lines(f"N=4; FIRST=0\n{loop.replace('BODY', body)}")
    expected = [{"RANK_ID": str(n), "DEVICE_ID": str(n + 4)} for n in range(4)]
    assert [dict(line.env) for line in found] == expected
    assert all(line.background and not line.loop and line.turn for line in found)


@cases
def test_a_loop_without_known_bounds_is_read_once(loop: str) -> None:
    found = only(loop.replace("BODY", "export RANK_ID=$i; python a.py &\n"))
    assert found.loop
    assert "RANK_ID" in found.names
    assert "RANK_ID" not in found.env


@cases
def test_what_trains_nothing_is_left_out(text: str) -> None:
    assert lines(f"export RANK_ID=0\n{text}") == []


@cases
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


@cases
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
    *("a" * 50, "if x; then A=1; fi\n", '"$A$A$A$A"', "torchrun &\n", "(", "$((", "\n"),
    "while true; do [ $i -ge %d ] && break; RANK=$i python train.py & let i++; done\n",
)


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
def test_long_hostile_scripts_are_read_soon(unit: str) -> None:
    start = "export A='" + "x " * 1500 + "'\n"
    with within(15):
        refused(start + unit * (256_000 // len(unit)))


def test_what_is_unknown_stays_as_it_was_written_first() -> None:
    line = only("A=$HOME/x\nB=$A/y\npython train.py $B ${B}z")
    assert line.words[2:] == ("$HOME/x/y", "$HOME/x/yz")


def test_braces_count_down_too() -> None:
    assert [line.words[-1] for line in lines("for i in {2..0}; do python train.py $i; done")] == [
        "2",
        "1",
        "0",
    ]


def test_shift_drops_as_many_arguments_as_it_says() -> None:
    assert only('set -- a b c d\nshift 2\npython train.py "$1"').words[-1] == "c"


LAUNCHED = "torchrun --nnodes=2 --node_rank={} --master_addr=node1 /job/train.py --data-path /data/images"


@pytest.mark.parametrize(
    ("script", "needed"),
    [
        (f"ssh node1 '{LAUNCHED.format(0)}' &\nssh node2 '{LAUNCHED.format(1)}' &\nwait", True),
        (f"ssh node1 '{LAUNCHED.format(0)}'\nssh node2 '{LAUNCHED.format(1)}'", False),  # one after the other
        (f"torchrun shards.py &\n{LAUNCHED.format('$1')}", True),
        (f"torchrun shards.py &\nwait\n{LAUNCHED.format('$1')}", False),
    ],
)
def test_data_that_no_earlier_program_made_must_be_there(script: str, needed: bool) -> None:
    assert (("/data/images", "data") in read_script(f"{script}\n").needs) is needed


ALONE = "export MASTER_ADDR=node1\nssh node1 '{0}RANK=0 WORLD_SIZE=2 MASTER_PORT=1 python t.py{1}' &\n"


@pytest.mark.parametrize(
    ("script", "lost"),
    [
        (ALONE.format("", ""), ["MASTER_ADDR"]),
        (ALONE.format("MASTER_ADDR=node1 ", ""), []),
        (ALONE.format("", " --init_method=tcp://node1:1"), []),
        (ALONE.format("", "").replace("ssh", "ssh -o SendEnv=MASTER_ADDR"), []),
        (ALONE.format("", "").replace("ssh node1", "bash -c"), []),
        (ALONE.format("", "").replace("ssh node1", "docker exec job bash -c"), []),
    ],
)
def test_what_ssh_does_not_carry_to_ranks(script: str, lost: list[str]) -> None:
    assert [slip.name for slip in read_script(script).slips if slip.kind == "inside"] == lost


def test_what_ssh_waits_for_in_the_background_the_script_does_not() -> None:
    inner = "for g in 0 1; do RANK=\\$(($i*2+g)) WORLD_SIZE=4 python t.py & done; wait"
    text = f'i=0\nfor h in node1 node2; do\n  ssh $h "{inner}" &\n  i=$((i+1))\ndone\nwait\n'
    lines = read_script(text).lines
    assert [(line.on, line.env["RANK"]) for line in one_launch(lines)[0]] == [
        ("node1", "0"),
        ("node1", "1"),
        ("node2", "2"),
        ("node2", "3"),
    ]


@pytest.mark.parametrize(
    ("rows", "loop", "found"),
    [
        ("declare -A R=([node1]=0 [node2]=1)", '"${!R[@]}"', ["0", "1"]),
        ('declare -A R=(\n  ["node2"]=7\n  [node1]="3" )', "node1 node2", ["3", "7"]),
        ("declare -A R=([node1]=0)", "node1 node2", ["0", "${R[$h]}"]),
        ("R=(4 5)", "0 1", ["4", "5"]),
        ("R=([0]=4 [1]=5)\nQ=1", "0 $Q", ["4", "5"]),
    ],
)
def test_an_associative_array_is_asked_by_its_keys(rows: str, loop: str, found: list[str]) -> None:
    text = f'{rows}\nfor h in {loop}; do ssh $h "torchrun --nnodes=2 --node_rank=${{R[$h]}} t.py" & done\n'
    assert [line.command.options["node_rank"] for line in read_script(text).lines] == found


@pytest.mark.parametrize("program", ["t.py", "/opt/job/t.py"])
def test_a_command_for_a_host_that_is_not_known_is_read(program: str) -> None:
    (line,) = read_script(f'for h in $(cat hosts); do ssh "$h" "torchrun --nnodes=2 {program}" & done').lines
    assert (line.loop, line.on, line.command.options["nnodes"]) == (True, "$h", "2")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("declare -i r=0\nfor h in a b; do ssh $h START & r+=1; done", ["0", "1"]),
        ("f() {\n local -i r=3\n for h in a b; do ssh $h START & r+=2; done\n}\nf", ["3", "5"]),
        ("declare -i r=$X\nfor h in a b; do ssh $h START & r+=1; done", ["$X", "$r"]),
        (
            "for r in 0 1; do printf -v c '%s --node_rank=%d t.py' torchrun $r; ssh n$r \"$c\" & done",
            ["0", "1"],
        ),
        ("declare -A R\nR[a]=0\nfor h in a b; do r=${R[$h]}; ssh $h START & done", ["${R[$h]}", "${R[$h]}"]),
        (
            "declare -A R=([a]=0 [b]=1)\nR[b]=0\nfor h in a b; do r=${R[$h]}; ssh $h START & done",
            ["${R[$h]}"] * 2,
        ),
        ("R=([0]=4 [1]=5)\nfor i in 0 1; do r=${R[i]}; ssh n$i START & done", ["4", "5"]),
        ('declare -A R=([a]=8 [b]=8)\nr=0\nfor h in "${!R[@]}"; do ssh $h START & r=$((r+1)); done', ["$r"]),
    ],
)
def test_what_the_shell_counts_and_keeps(text: str, numbers: list[str]) -> None:
    lines = read_script(text.replace("START", '"torchrun --nnodes=2 --node_rank=$r t.py"')).lines
    assert [line.command.options["node_rank"] for line in lines] == numbers
