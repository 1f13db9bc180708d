"""Code that all agents share, sent to the hosts as text: standard library only, Python 3.6 and later."""
