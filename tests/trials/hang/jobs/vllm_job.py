"""vLLM on CPUs: an engine and two workers of tensor parallelism, each with a title of its own.

The model is small and has weights of no meaning. The fault is in a worker's forward pass. With the argument
`idle`, the engine waits for requests, as a server at night.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "vocab_size": 512,
    "max_position_embeddings": 256,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "torch_dtype": "float32",
}


def strike_in_forward(worker: Any) -> None:
    """In each worker: the fault comes before the model's layers, and these wait for each other."""
    from tests.trials.hang.jobs.strike import strike

    model, steps = worker.model_runner.model, count()
    forward = model.forward

    def strikes(*args: Any, **kwargs: Any) -> Any:
        strike(worker.rank, next(steps))
        return forward(*args, **kwargs)

    model.forward = strikes


def main() -> None:
    vllm: Any = import_module("vllm")
    folder = Path(os.environ["FOLDER"], "model")
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(MODEL))
    engine = vllm.LLM(
        model=str(folder),
        load_format="dummy",
        skip_tokenizer_init=True,
        tensor_parallel_size=2,
        distributed_executor_backend="mp",
        enforce_eager=True,
        max_model_len=128,
        max_num_seqs=2,
    )
    engine.collective_rpc(strike_in_forward)
    sampling = vllm.SamplingParams(max_tokens=16, ignore_eos=True, detokenize=False)
    while True:
        engine.generate([{"prompt_token_ids": [3, 4, 5]}], sampling, use_tqdm=False)
        if sys.argv[1:] == ["idle"]:
            time.sleep(100_000)


if __name__ == "__main__":
    main()
