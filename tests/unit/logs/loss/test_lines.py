"""Lines as frameworks print them, and lines that only look like them."""

from __future__ import annotations

import time
from math import inf, isnan, nan

import pytest

from doctor.logs.loss.lines import LossValues, read_line, read_pace, wants
from doctor.logs.model import LossForm

MEGATRON = (
    " iteration      200/    1000 | consumed samples:          800 | elapsed time per "
    "iteration (ms): 430.0 | learning rate: 1.342E-04 | global batch size:     4 | "
    "lm loss: 7.399415E+00 | loss scale: 16384.0 | "
    "grad norm: 2.918 | number of skipped iterations:   0 | number of nan iterations:   0 |"
)
MINDFORMERS = (
    "2025-04-07 15:34:27,308 - [mindformers/core/callback/callback.py:529] - INFO - { Epoch:[  1/  2], "
    "step:[    1/   19], loss: 10.649, per_step_time: 103328ms, lr: 0.0, overflow cond: False, "
    "loss_scale: 1.0, global_norm: [1 31049], train_throughput_per_npu: 2.896T"
)
MMDET = (
    "2022-06-03 06:33:38,427 - mmdet - INFO - Epoch [1][50/7517]     lr: 1.000e-02, eta: 2:00:00, "
    "time: 0.240, data_time: 0.051, memory: 2404, loss_rpn_cls: 0.1461, loss_cls: 0.3264, acc: 95.1289, "
    "loss_bbox: 0.1275, loss: 0.6188"
)

# (line, form, loss, step, of, epoch, seconds of a step)
READ: tuple[tuple[str, LossForm, float, int | None, int | None, int | None, float | None], ...] = (
    # MindSpore's documentation of distributed training: ResNet-50 in train.log
    ("global_step: 194, loss: 1.997", LossForm.MINDSPORE, 1.997, 194, None, None, None),
    # mindspore.LossMonitor
    ("epoch: 1 step: 1562, loss is 1.4536957", LossForm.MINDSPORE, 1.4536957, 1562, None, 1, None),
    # mindspore-lab/mindformers, docs and worker_0.log
    (MINDFORMERS, LossForm.MINDSPORE, 10.649, 1, 19, 1, 103.328),
    (
        "{ step:[    1/   10], loss:  11.813965, per_step_time:  13570ms, load_balancing_loss:   1.093977, "
        "lr: 1.000000e-05, grad_norm:  13.831877, throughput:   1.36T }",
        LossForm.MINDSPORE,
        11.813965,
        1,
        10,
        None,
        13.57,
    ),
    # mindspore/models: YOLO
    (
        "2023-01-10 17:29:07,004:INFO:epoch[1], iter[377], loss:1280.677487, per step time: 7642.25 ms",
        LossForm.MINDSPORE,
        1280.677487,
        377,
        None,
        1,
        7.64225,
    ),
    # NVIDIA/Megatron-LM, megatron/training/training.py
    (MEGATRON, LossForm.MEGATRON, 7.399415, 200, 1000, None, 0.43),
    # its MoE and MTP forms; Ascend/MindSpeed-LLM has the same
    (
        " [2026-04-27 00:00:01] iteration        1/       3 | consumed samples:         2 | elapsed time "
        "per iteration (ms): 4000.0 | lm loss: 3.000000E+00 | mtp_1 loss: 4.000000E+00 | loss scale: 1.0 |",
        LossForm.MEGATRON,
        3.0,
        1,
        3,
        None,
        4.0,
    ),
    # transformers.Trainer with DPO
    (
        "{'loss': 0.6914, 'grad_norm': 3.3615094645372428, 'learning_rate': 8.888888888888888e-06, "
        "'rewards/chosen': 0.0, 'rewards/accuracies': 0.0, 'epoch': 0.02}",
        LossForm.TRAINER,
        0.6914,
        None,
        None,
        0,
        None,
    ),
    # transformers 5 quotes its numbers
    (
        "{'loss': '1.763', 'learning_rate': '3.6e-06', 'epoch': '0.09'}",
        LossForm.TRAINER,
        1.763,
        None,
        None,
        0,
        None,
    ),
    # Lightning 2 and, with its own running loss, Lightning 1
    (
        "Epoch 0:   6%|█▍   | 86/1563 [00:06<01:44, 14.19it/s, v_num=0, train_loss=1.800, train_acc=0.281]",
        LossForm.LIGHTNING,
        1.8,
        86,
        1563,
        0,
        None,
    ),
    (
        "Epoch 9: 100% 939/939 [00:07<00:00, 130.42it/s, loss=0.1, v_num=0, train_loss=0.26, valid_loss=0.1]",
        LossForm.LIGHTNING,
        0.1,
        939,
        939,
        9,
        None,
    ),
    # open-mmlab/mmdetection
    (MMDET, LossForm.PLAIN, 0.6188, 50, 7517, 1, None),
    # karpathy/nanoGPT, karpathy/build-nanogpt
    ("iter 40: loss 6.2081, time 48.67ms, mfu 10.07%", LossForm.PLAIN, 6.2081, 40, None, None, 0.04867),
    (
        "step    0 | loss: 10.955029 | lr 8.3916e-07 | norm: 15.3652 | dt: 23.40ms | tok/sec: 5251.42",
        LossForm.PLAIN,
        10.955029,
        0,
        None,
        None,
        0.0234,
    ),
    # pytorch/torchtitan
    (
        "[rank0]:[titan] 2025-01-01 10:00:00,000 - root - INFO - step: 10  loss:  7.1234  grad_norm:  1.23  "
        "memory: 10.00GiB(12.3%)  tps: 1,234  mfu: 30.00%",
        LossForm.PLAIN,
        7.1234,
        10,
        None,
        None,
        None,
    ),
    # deepspeedai/DeepSpeed: pipe/engine.py
    (
        "steps: 480 loss: 0.9 iter time (s): 0.128 samples/sec: 41.3",
        LossForm.PLAIN,
        0.9,
        480,
        None,
        None,
        0.128,
    ),
    # facebookresearch/fairseq quotes its numbers
    (
        '2021-03-08 12:31:36 | INFO | train_inner | {"epoch": 1, "update": 0.0, "loss": "16.475", '
        '"ppl": "91120.8", "num_updates": "1", "lr": "2e-05", "loss_scale": "4", "train_wall": "99"}',
        LossForm.PLAIN,
        16.475,
        1,
        None,
        1,
        None,
    ),
    # pytorch/examples: mnist and imagenet; the quickstart of pytorch.org
    ("Train Epoch: 1 [640/60032 (1%)]\tLoss: 2.273475", LossForm.PLAIN, 2.273475, 640, 60032, 1, None),
    (
        "Epoch: [0][  10/5005]\tTime  0.300 ( 1.200)\tData  0.1 ( 0.2)\tLoss 6.9234e+00 (7.0123e+00)",
        LossForm.PLAIN,
        6.9234,
        10,
        5005,
        0,
        None,
    ),
    ("loss: 2.303494  [   64/60000]", LossForm.PLAIN, 2.303494, 64, 60000, None, None),
    # Keras
    (
        "390/390 [==============================] - 26s 68ms/step - loss: 1.3148 - val_loss: 1.0046",
        LossForm.PLAIN,
        1.3148,
        390,
        390,
        None,
        None,
    ),
    # hiyouga/LLaMA-Factory: trainer_log.jsonl
    (
        '{"current_steps": 10, "total_steps": 114, "loss": 1.0557, "lr": 5e-06, "epoch": 0.26, '
        '"elapsed_time": "0:26:02"}',
        LossForm.JSON,
        1.0557,
        10,
        None,
        0,
        None,
    ),
    ('{"val": {"loss": 0.9}, "train": {"loss": 1.25}, "step": 7}', LossForm.JSON, 1.25, 7, None, None, None),
    # written by hand, everywhere
    (
        "[000500/50000] X4K | loss 0.0488 | 3.04 it/s | batch 16",
        LossForm.PLAIN,
        0.0488,
        500,
        50000,
        None,
        None,
    ),
    ("[Epoch 1/10] [Batch 3/100] loss=0.5", LossForm.PLAIN, 0.5, 3, 100, 1, None),
    ("Epoch [1/5], Step [100/600], Loss: 0.3472", LossForm.PLAIN, 0.3472, 100, 600, 1, None),
    ("Step: 10 | Loss: 1.23", LossForm.PLAIN, 1.23, 10, None, None, None),
    ("iter 10, loss: inf", LossForm.PLAIN, inf, 10, None, None, None),
    ("rank 3 step 7 loss -Infinity", LossForm.PLAIN, -inf, 7, None, None, None),
    ("step 3 loss: 1e999", LossForm.PLAIN, inf, 3, None, None, None),
    ("epoch 3, loss: tensor(2.3012, device='cuda:0')", LossForm.PLAIN, 2.3012, None, None, 3, None),
)


@pytest.mark.parametrize(("line", "form", "loss", "step", "of", "epoch", "took"), READ)
def test_a_loss_is_read(
    line: str,
    form: LossForm,
    loss: float,
    step: int | None,
    of: int | None,
    epoch: int | None,
    took: float | None,
) -> None:
    said = read_line(line)
    assert said is not None
    assert (said.form, said.loss, said.step, said.of, said.epoch) == (form, loss, step, of, epoch)
    assert said.took == (None if took is None else pytest.approx(took))
    assert wants(line.encode())


@pytest.mark.parametrize(
    "line",
    [
        "Loss is nan, stopping training",  # facebookresearch/detr, mae
        "loss=nan",
        "Epoch 5: train_loss=nan, val_loss=nan",
        "{'loss': nan, 'learning_rate': 1e-05, 'epoch': 0.1}",
        "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1e-05, 'epoch': 0.1}",  # NaN is left out
        '{"step": 3, "loss": NaN}',
    ],
)
def test_nan_is_read(line: str) -> None:
    said = read_line(line)
    assert said is not None
    assert isnan(said.loss)


@pytest.mark.parametrize(
    "line",
    [
        "{'train_runtime': 364.4972, 'train_samples_per_second': 1.317, 'train_loss': 2.2536, 'epoch': 0.1}",
        "{'eval_loss': 8.515273094177246, 'eval_runtime': 6.4811, 'epoch': 3.0}",
        '{"current_steps": 38, "total_steps": 114, "eval_loss": 0.8863, "epoch": 0.99}',
        " iteration       10/    1000 | elapsed time per iteration (ms): 1147.6 | loss scale: 8388608.0 | "
        "number of skipped iterations:  10 | number of nan iterations:   0 |",
        "Test set: Average loss: 1.8304, Accuracy: 3431/10000 (34%)",
        "step 250: val loss 2.3, best 2.2",
        "Validation: step 10 loss: 2.3",
        "[Epoch 199/200] [Batch 3/938] [D loss: 0.192824] [G loss: 2.768083]",
        "loss_scale: 65536",
        "step 10: loss scale: 65536.0",
        "step 3 aux_loss: 0.1",
        "loss function: mse",
        "loss: 1.2.3",
        "step 3 loss: 1.2.3",
        "step 3 loss: 12abc",
        "step 3 loss: N/A (non-last PP stage)",  # mindformers
        "a lossless codec of 3.2",
        "step 10% packet loss 0.5",
        "3 packets transmitted, 0% packet loss, time 2003ms",
        "We lost 3 nodes, loss of 2 disks",
        "the loss 3 times",
        "loss 3",
        "NOTE: gradient overflow detected, ignoring gradient, setting loss scale to: 32.0",
        "test_resnet50_expand_loss_8p.py::test_train_feed ===============ds_num 195",
        "grad norm: 1.23",
        "profit and loss: (none)",
        "",
        "loss",
        "loss:",
    ],
)
def test_what_is_no_training_loss_is_left_alone(line: str) -> None:
    assert read_line(line) is None


def test_the_trigger_lets_little_through() -> None:
    assert not wants(b"iteration 3 | elapsed 4")
    assert wants(b"Train epoch time: 101539.306 ms, per step time: 65.006 ms")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Train epoch time: 101539.306 ms, per step time: 65.006 ms", 0.065006),  # mindspore.TimeMonitor
        ("epoch time: 24.655 ms, per step time: 0.632 ms", 0.000632),
        ("step 3 loss 2.0 time: 120.5", None),  # since the start, perhaps
        ("elapsed time per iteration (ms): -3", None),
        ("elapsed time per iteration (ms): 1e999", None),
    ],
)
def test_the_time_of_a_step(text: str, seconds: float | None) -> None:
    assert read_pace(text) == (None if seconds is None else pytest.approx(seconds))


HOSTILE = (
    "loss" * 2_000_000,
    "step " * 400_000 + "loss",
    "loss: " + "1" * 5_000_000,
    "loss:" + " " * 5_000_000 + "1.0",
    "step: " + "(" * 1_000_000 + "1 loss: 1.5",
    "{" * 1_000_000 + '"loss": 1',
    '{"a":' * 100_000 + '{"loss": 1}' + "}" * 100_000,
    '{"loss": ' + "9" * 7000 + "}",
    '{"loss": [1], "step": {}}',
    '{"loss": true}',
    "_" * 5_000_000 + "loss",
    "1/" * 2_000_000 + " [ loss: 1.5",
    "iter time " * 300_000 + "loss: 2.0 epoch",
    "\x00loss: \x1b[31m2.5\x00",
    ",".join(["loss"] * 1_000_000),
)


@pytest.mark.parametrize("line", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_lines_take_no_time(line: str) -> None:
    began = time.process_time()
    read_line(line)
    read_pace(line)
    assert time.process_time() - began < 0.5


def test_what_is_said_is_a_value() -> None:
    assert read_line("step 1 loss 2.5") == LossValues(LossForm.PLAIN, "loss", 2.5, 1)
    assert read_line("step 1 loss 2.5") != LossValues(LossForm.PLAIN, "loss", nan, 1)
