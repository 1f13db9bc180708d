"""What all agents share on the hosts, sent to them as text: standard library only, Python 3.6 and later."""
