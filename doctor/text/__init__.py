"""Names and text that other people wrote: node sets, YAML, text files, options, secrets, terminals."""
