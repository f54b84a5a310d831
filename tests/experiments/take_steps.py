"""A process of its own for test_train_gpt.py: some steps of the tiny preset on random tokens, on the GPU if there is one; saved by the first.

python take_steps.py FILE UNTIL    # goes on from FILE if it is there
"""

import sys
from dataclasses import replace
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from experiments.train_gpt import PRESETS, Trainer, place

path, until = Path(sys.argv[1]), int(sys.argv[2])
torch.set_num_threads(1)
here = place()
settings = PRESETS["tiny"]
if here.device.type == "cuda":  # wide enough for the kernels, and with all that is random
    settings = replace(settings, model=replace(settings.model, d_model=128), dropout=0.1)
tokens = torch.randint(settings.model.V - 1, (2000,), generator=torch.Generator().manual_seed(5))
trainer = Trainer(settings, tokens, here)
if path.exists():
    trainer.load(path)
while trainer.step < until:
    trainer.take_step()
if here.rank == 0:
    trainer.save(path)
if here.world > 1:
    torch.distributed.destroy_process_group()
