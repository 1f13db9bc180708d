"""Reads the text of a file: the symptoms of each party, who wrote it, how far it got."""
