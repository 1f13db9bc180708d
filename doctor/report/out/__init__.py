"""Where reports go: the options, and all files of a run."""
