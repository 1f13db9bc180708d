"""Lists of hosts and parts of names that a script makes with programs that only change text."""

from pathlib import Path

from doctor.job.launch.files import read_launch_files
from doctor.job.launch.shell import read_script
from doctor.job.launch.text_programs import MOST, pattern, printed
from tests.support.cases import cases
from tests.support.limits import within

HOSTS = "# name slots\nnode1 slots=8\n\nnode2 slots=4\n"


def last_word(command: str, folder: Path) -> str:
    """The last word of the command that a script starts."""

    def read(path: str) -> str | None:
        return Path(path).read_text() if Path(path).is_file() else None

    (line,) = read_script(f'torchrun train.py "{command}"\n', str(folder), read).lines
    return line.words[-1]


@cases
def test_what_a_command_prints_is_not_known(command: str, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text(HOSTS)
    assert last_word(command, tmp_path).startswith("$(")


@cases
def test_hosts_of_a_loop(text: str, hosts: list[str], numbers: list[str], tmp_path: Path) -> None:
    """Whatever the shell makes of a list, ssh goes to these hosts, with these numbers."""
    (tmp_path / "hosts").write_text("node1\nnode2\n")
    (tmp_path / "rows").write_text("node1 0\nnode2 1\n")
    (tmp_path / "short").write_text("node1\nnode2")
    (tmp_path / "go.sh").write_text("torchrun --nnodes=2 --node_rank=$1 --master_addr=node1 train.py\n")
    start = "torchrun --nnodes=2 --node_rank=$i --master_addr=node1 train.py"
    (tmp_path / "run.sh").write_text(text.replace("TORCHRUN", start) + "\n")
    launch = read_launch_files([tmp_path / "run.sh"])
    given = [word.partition("=")[2] for each in launch.told for word in each.command if "node_rank" in word]
    assert ([each.on for each in launch.told], given) == (hosts, numbers)


def test_a_file_that_the_script_writes_is_not_the_one_beside_it(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("node1\n")
    for writes in ("sinfo > hosts", "cp /a hosts", "sed -i s/1/2/ hosts", "names | tee hosts"):
        (tmp_path / "run.sh").write_text(
            f"{writes}\nfor h in $(cat hosts); do ssh $h python train.py; done\n"
        )
        assert {each.on for each in read_launch_files([tmp_path / "run.sh"]).told} == {"$h"}


def test_texts_that_take_long_are_not_changed() -> None:
    long = "a" * 4000
    with within(5):
        read_script(
            f"A={long}\nB=${{A//*a*a*a*b/}} C=${{A%%*a*a*b}}\npython t.py $(echo $A | sed 's/a*a*b//')\n"
        )
    assert printed(["cat"], "x" * (MOST + 1), lambda _: None) is None
    assert pattern("(a+)+b", True) is None
