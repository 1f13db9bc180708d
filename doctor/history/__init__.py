"""`doctor history DIR`: the runs of a folder, read one by one: who was faulty when and why, and how often."""
