"""How does the size of the vocabulary change the bits per byte of a small language model?

Every model sees the same number of bytes in the same number of steps, with a context of the same
length in bytes; only the tokenizer differs, and with it the number of tokens in a window and the
rows of the embedding. Loss on held-out text is counted in bits per byte, so that it does not
depend on the unit.

    python experiments/tokens.py            # one GPU, a few minutes
    python experiments/tokens.py --small    # a CPU, under a minute

Writes course/data/records/tokens.json.
"""

import argparse
import math
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from course import data  # noqa: E402
from course.tokens import BYTES, bits_per_byte, bpe_encode, bpe_train, vocabulary  # noqa: E402

FULL = {
    "vocabularies": [256, 512, 1024, 2048, 4096, 8192],
    "seeds": [0, 1, 2],
    "train_characters": 3_200_000,
    "held_out_characters": 400_000,
    "context_bytes": 512,
    "windows_per_step": 32,
    "steps": 1000,
    "warmup_steps": 100,
    "d_model": 256,
    "n_layers": 4,
    "n_heads": 4,
    "learning_rate": 1e-3,
    "weight_decay": 0.1,
}
SMALL = FULL | {
    "vocabularies": [256, 512, 1024],
    "train_characters": 400_000,
    "held_out_characters": 40_000,
    "context_bytes": 96,
    "windows_per_step": 12,
    "steps": 300,
    "warmup_steps": 30,
    "d_model": 48,
    "n_layers": 2,
    "n_heads": 2,
    "learning_rate": 3e-3,
}


class Block(nn.Module):
    """A pre-norm transformer block with causal attention."""

    def __init__(self, d_model: int, n_heads: int):
        super().__init__()
        self.n_heads = n_heads
        self.norm_1, self.norm_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.ffn = nn.Sequential(nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model))

    def forward(self, x):
        B, T, d_model = x.shape
        qkv = self.qkv(self.norm_1(x)).view(B, T, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)  # (3, B, H, T, d_head)
        mixed = F.scaled_dot_product_attention(*qkv, is_causal=True)  # (B, H, T, d_head)
        x = x + self.out(mixed.transpose(1, 2).reshape(B, T, d_model))
        return x + self.ffn(self.norm_2(x))


class LanguageModel(nn.Module):
    """A decoder with learned positions and an output head tied to the embedding."""

    def __init__(self, V: int, T: int, d_model: int, n_layers: int, n_heads: int):
        super().__init__()
        self.token, self.position = nn.Embedding(V, d_model), nn.Embedding(T, d_model)
        self.blocks = nn.ModuleList(Block(d_model, n_heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        nn.init.normal_(self.token.weight, std=0.02)
        nn.init.normal_(self.position.weight, std=0.02)

    def forward(self, ids):
        x = self.token(ids) + self.position.weight[: ids.shape[1]]  # (B, T, d_model)
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.token.weight.T  # (B, T, V)


def texts(settings):
    """Training text from the start of the novels, held-out text from their end."""
    whole = data.read("austen")
    held_out = whole[-settings["held_out_characters"] :]
    train = whole[: min(settings["train_characters"], len(whole) - len(held_out))]
    return train, held_out


def windows(ids, starts, length):
    """(B, length + 1) windows of `ids`, a 1-d tensor, from `starts`."""
    return ids[starts[:, None] + torch.arange(length + 1, device=ids.device)]


def train_model(settings, V, ids, T, seed, device):
    """Train one model for the given number of steps; each step sees the same number of bytes for every V."""
    torch.manual_seed(seed)
    model = LanguageModel(V, T, settings["d_model"], settings["n_layers"], settings["n_heads"]).to(device)
    decay = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": settings["weight_decay"]}, {"params": rest, "weight_decay": 0.0}],
        lr=settings["learning_rate"],
        betas=(0.9, 0.95),
        fused=device.type == "cuda",
    )
    draw = torch.Generator().manual_seed(seed)
    for step in range(settings["steps"]):
        warm = min(1.0, (step + 1) / settings["warmup_steps"])
        cosine = 0.5 * (1 + math.cos(math.pi * step / settings["steps"]))
        for group in optimizer.param_groups:
            group["lr"] = settings["learning_rate"] * warm * (0.1 + 0.9 * cosine)
        starts = torch.randint(len(ids) - T - 1, (settings["windows_per_step"],), generator=draw).to(device)
        batch = windows(ids, starts, T)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1).float(), batch[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model


@torch.no_grad()
def evaluate(model, ids, lengths, T, device):
    """Bits per byte of held-out tokens that have at least half a window before them.

    Args:
        ids: (N,) held-out tokens; lengths: (N,) the bytes of each.
    """
    model.eval()
    half = T // 2
    starts = torch.arange(0, len(ids) - T - 1, T - half, device=device)
    nats, tokens, n_bytes = 0.0, 0, 0
    for some in starts.split(64):
        batch = windows(ids, some, T)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            logits = model(batch[:, :-1])[:, half:].float()  # (B, T - half, V)
        target = batch[:, 1 + half :]
        nats += F.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="sum").item()
        tokens += target.numel()
        n_bytes += int(windows(lengths, some, T)[:, 1 + half :].sum())
    return {
        "nats_per_token": nats / tokens,
        "tokens": tokens,
        "bytes": n_bytes,
        "bits_per_byte": bits_per_byte(nats / tokens, tokens, n_bytes),
    }


def unigram_bits_per_byte(train_ids, held_ids, V, n_bytes):
    """The null model: every token from its share of the training text (one added to each count)."""
    counts = np.bincount(train_ids, minlength=V) + 1.0
    return float(-np.log2(counts / counts.sum())[held_ids].sum() / n_bytes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="a CPU in under a minute")
    small = parser.parse_args().small
    settings = dict(SMALL if small else FULL)
    seeds = settings.pop("seeds")
    device = torch.device("cuda" if torch.cuda.is_available() and not small else "cpu")
    if small:
        torch.set_num_threads(1)
    began = time.perf_counter()
    train, held_out = texts(settings)
    merges = bpe_train(train, max(settings["vocabularies"]) - BYTES)
    n_bytes = len(held_out.encode())
    results = []
    for V in settings["vocabularies"]:
        some = merges[: V - BYTES]  # the first merges of a longer run are those of a shorter run
        train_ids, held_ids = (np.array(bpe_encode(text, some)) for text in (train, held_out))
        spelled = np.array([len(b) for b in vocabulary(some)])
        bytes_per_token = float(spelled[train_ids].mean())
        T = max(2, round(settings["context_bytes"] / bytes_per_token))
        ids, held, lengths = (torch.tensor(x, device=device) for x in (train_ids, held_ids, spelled[held_ids]))
        null = unigram_bits_per_byte(train_ids, held_ids, V, n_bytes)
        for seed in seeds:
            model = train_model(settings, V, ids, T, seed, device)
            measured = evaluate(model, held, lengths, T, device)
            parameters = sum(p.numel() for p in model.parameters())
            shape = {"V": V, "seed": seed, "T": T, "parameters": parameters, "embedding_parameters": V * settings["d_model"]}
            seen = settings["steps"] * settings["windows_per_step"] * T * bytes_per_token
            tokenizer = {"bytes_per_token": bytes_per_token, "training_bytes": round(seen), "unigram_bits_per_byte": null}
            results.append(shape | tokenizer | measured)
            print(
                f"V {V:6d}  seed {seed}  T {T:4d}  {measured['bits_per_byte']:.4f} bits per byte  ({time.perf_counter() - began:.0f} s)",
                flush=True,
            )
    data.keep_record(
        "tokens",
        results,
        settings=settings,
        seeds=seeds,
        interval=None,
        device=device,
        small=small,
        packages=("torch", "numpy"),
        text="austen: training from the start, held out from the end",
        seconds=round(time.perf_counter() - began),
    )


if __name__ == "__main__":
    main()
