"""`python -m paddle.distributed.launch`: the host that has the address of --master serves there."""

from collections.abc import Mapping

from doctor.job.launch.launcher import LauncherAgent, LaunchNumber, Master, launcher_of, options_of


def _master(agent: LauncherAgent) -> Master | None:
    address, colon, port = (agent.given("master") or "").rpartition(":")
    return (
        Master(address.strip("[]"), port, "--master", "any host") if colon and "//" not in address else None
    )


def _derived(options: Mapping[str, str]) -> Mapping[str, str]:
    """The options, with the numbers of ranks and hosts that --devices and --ips list."""
    listed = {"nproc_per_node": options.get("devices", ""), "nnodes": options.get("ips", "")}
    found = {name: str(len(text.split(","))) for name, text in listed.items() if text and "$" not in text}
    return {**found, **options}


PADDLE = launcher_of(
    "paddle",
    options=options_of("paddle", abbreviated=True, shared=("nnodes", "master"), variables="PADDLE_"),
    master=_master,
    derived=_derived,
    port=lambda agent: (met := _master(agent)) and LaunchNumber(met.said, met.port),
)
