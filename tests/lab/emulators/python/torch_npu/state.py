"""The state of this process: its device, its queue of tasks, and the device's own random stream."""

from __future__ import annotations

import json
import os
import socket
import sys

import torch

from . import errors, products


class State:
    def __init__(self) -> None:
        self.device = 0
        self.rank = -1
        self.broken = ""
        """The task that broke the queue."""
        self.random = torch.Generator()
        self._line: socket.socket | None = None

    @property
    def physical(self) -> int:
        return products.devices()[self.device]

    def fail_task(self, task: str, words: str) -> None:
        """A task of the queue fails: its caller has already continued, so the next user of the queue gets the
        error.
        """
        print(errors.coded("EI0003", words), file=sys.stderr, flush=True)
        self.broken = task

    def use_queue(self) -> None:
        if self.broken:
            raise errors.queue(self.broken, self.device, self.rank)

    def start_hccp(self) -> None:
        """The device's own process for collectives: one for each device, for as long as this process lives.
        The lab plays the device's operating system, which notices the end of this process by the end of the
        connection.
        """
        path = os.environ.get("EMULATED_NPU_OS")
        if self._line is not None or not path:
            return
        line = socket.socket(socket.AF_UNIX)
        line.connect(path)
        line.sendall(json.dumps({"device": self.physical, "pid": os.getpid()}).encode() + b"\n")
        answer = line.recv(100)
        if answer != b"started\n":
            line.close()
            words = (
                "Failed to initialize the HCCP process. Reason: Maybe the last training process is running."
            )
            raise errors.hccl(self.device, self.rank, 7, errors.coded("EJ0001", words))
        self._line = line


STATE = State()
