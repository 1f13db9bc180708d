"""Names and texts: node sets, YAML, text files, options, secrets, terminals."""
