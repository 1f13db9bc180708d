"""The program that ends ranks of a job on another host. It also runs on Python 3.6, from stdin."""
