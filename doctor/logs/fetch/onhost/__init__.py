"""What finds and reads logs on a host, sent there as text: standard library only, Python 3.6 and later."""
