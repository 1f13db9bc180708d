"""Lines that healthy jobs print, some of which look like trouble."""
# ruff: noqa: E501

from tests.support.cases import from_cases

NUMBERS = from_cases(__file__, "NUMBERS", tuple[str, ...])
EARLY = from_cases(__file__, "EARLY", tuple[str, ...])
"""Lines about the rendezvous, which come first."""
NOISE = (
    *NUMBERS,
    "[rank{rank}]:[W{day} {time}123 ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group has NOT been "
    "destroyed before we destruct ProcessGroupNCCL. On normal program exit, the application should call "
    "destroy_process_group to ensure that any pending NCCL operations have finished in this process. In rare "
    "cases this process can exit before this point and block the progress of another member of the process "
    "group. This constraint has always been present,  but this warning has only been added since PyTorch 2.4 "
    "(function operator())",
    "[rank{rank}]:[W{day} {time}123 reducer.cpp:1430] Warning: find_unused_parameters=True was specified in DDP "
    "constructor, but did not find any unused parameters in the forward pass. This flag results in an extra "
    "traversal of the autograd graph every iteration,  which can adversely affect performance. (function "
    "operator())",
    "/opt/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py:617: UserWarning: This DataLoader "
    "will create 8 worker processes in total. Our suggested max number of worker in current system is 2, which "
    "is smaller than what this DataLoader is going to create.",
    "/opt/venv/lib/python3.11/site-packages/torch/optim/lr_scheduler.py:62: DeprecationWarning: The verbose "
    "parameter is deprecated. Please use get_last_lr() to access the learning rate.",
    "{date},123 - train - INFO - rank {rank} of {world}: step {step} loss {loss} err {loss} errors=0",
    "{date} download of shard 17 failed (503), retrying in 1 s",
    "{date} download of shard 17: done after 2 tries",
    "{date} checkpoint step_{step} written to /data/ckpt in 3.1 s, 0 errors",
    "wandb: WARNING Retrying the upload: connection reset, attempt 1 of 20; resumed",
    "Token indices sequence length is longer than the specified maximum sequence length for this model "
    "(1123 > 1024). Running this sequence through the model will result in indexing errors",
    "Some weights of BertForPreTraining were not initialized from the model checkpoint and are newly initialized",
    "INFO watchdog: timeout is set to 600 s, abort on error is on, no timeout seen",
    "config: on_error=abort fail_fast=true timeout=1800 oom_retry=false killed_ok=false",
    "{date} WARNING urllib3.connectionpool Retrying (Retry(total=4, connect=None)) after connection broken by "
    "'NewConnectionError: Failed to establish a new connection: [Errno 111] Connection refused': /api/runs",
    'Traceback (most recent call last):\n  File "/home/user/job/data.py", line 31, in fetch\n    return read(url)\n'
    "ConnectionResetError: [Errno 104] Connection reset by peer\n{date} shard 12: attempt 1 failed, attempt 2 in 5 s\n"
    "{date} shard 12: read after 2 attempts",
    "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f1f5c1b8a60>\n"
    'Traceback (most recent call last):\n  File "/opt/venv/lib/python3.11/site-packages/torch/utils/data/'
    'dataloader.py", line 1479, in __del__\n    self._shutdown_workers()\nAssertionError: can only test a child '
    "process",
    "libibverbs: Warning: couldn't load driver 'libvmw_pvrdma-rdmav34.so': libvmw_pvrdma-rdmav34.so: cannot open "
    "shared object file: No such file or directory",
    "[{host}:01234] 3 more processes have sent help message help-mpi-btl-openib.txt / no device params found",
    "WARNING: No preset parameters were found for the device that Open MPI detected:",
    "srun: warning: can't run 1 processes on 2 nodes, setting nnodes to 1",
    "/opt/venv/lib/python3.11/site-packages/torch/cuda/__init__.py:61: FutureWarning: The pynvml package is "
    "deprecated. Please install nvidia-ml-py instead.\n  import pynvml  # type: ignore[import]",
    "Overflow! Skipping step. Attempted loss scale: 65536, reducing to 32768.0",
    "I{day} {time} {pid} torch/distributed/elastic/agent/server/api.py:879] [default] worker group successfully "
    "finished. Waiting 300 seconds for other agents to finish.",
)
ELASTIC = from_cases(__file__, "ELASTIC", tuple[str, ...])
NCCL = from_cases(__file__, "NCCL", tuple[str, ...])
