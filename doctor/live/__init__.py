"""What runs on the hosts, looked at, and what that brings home as data. It judges nothing."""
