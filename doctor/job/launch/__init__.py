"""What the processes of a job were given at their start, and what it means. Pure: no host is reached.

files.read_launch_files             --launch: dumps of environments, env files, launch scripts; nothing is run
processes.launch_of_processes       processes that run now, grouped into jobs
common.common_env                   the variables on which all processes of a launch agree
table_reference.told_tables         the rank tables that its processes were given

A `ProcessEnv` is one process. `rank_env` reads its place (rank, master, hosts) from its variables,
`Directory` finds the owner of an address, and `ranks` finds ranks that are missing, duplicate or impossible.
Nothing is imported here, since most users need one module only.
"""
