"""The parts of the report for a person, each in a file of its own."""
