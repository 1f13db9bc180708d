"""Turns the output of libraries and device tools into opinions. Pure: it only reads the evidence."""
