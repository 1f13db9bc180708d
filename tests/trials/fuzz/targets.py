"""Everything that reads foreign input, by name."""

from tests.trials.fuzz import agents, inputs, logs, recordings
from tests.trials.fuzz.mutate import spoilt_tree
from tests.trials.fuzz.target import Target, samples

TARGETS = (
    Target("recording", recordings.honest, recordings.read_recording, spoilt_tree),
    Target("answer", recordings.broken_answers, recordings.read_broken_answer, recordings.break_an_answer),
    Target("frames", recordings.frames, recordings.read_frames),
    Target("no-mesh", recordings.meshes, recordings.read_without_mesh, recordings.break_the_mesh),
    Target("rank-table", samples("rank_table/*.json"), inputs.read_rank_table, spoilt_tree),
    Target("table-text", samples("rank_table/*.json", "launches/*.json"), inputs.read_rank_table),
    Target("launch", inputs.launches, inputs.read_launch),
    Target("launch-lines", inputs.launches, inputs.read_launch, inputs.mixed_launch),
    Target("inventory", inputs.given("inventory.yaml"), inputs.read_inventory),
    Target("hostfile", inputs.given("hostfile-*"), inputs.read_hosts),
    Target("nodeset", inputs.nodesets, inputs.read_nodeset),
    Target("ssh-config", inputs.given("ssh_config"), inputs.read_ssh_config),
    Target("exam", inputs.given("exam.yaml"), inputs.read_exam),
    Target("symptoms", logs.symptoms, logs.read_symptoms),
    Target("log", logs.logs, logs.read_log, logs.spoilt_log),
    Target("archive", logs.archives, logs.read_archive),
    Target("hang", agents.hang_recordings, agents.read_hang, spoilt_tree),
    Target("slow", agents.slow_recordings, agents.read_slow, spoilt_tree),
    Target("mesh-agent", agents.seeds, agents.read_mesh, agents.another_seed),
    Target("smoke-agent", agents.seeds, agents.read_smoke, agents.another_seed),
    Target("hang-agent", agents.seeds, agents.read_hang_agents, agents.another_seed),
)
