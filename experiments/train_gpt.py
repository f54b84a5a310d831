"""Train the course's GPT fast, on one GPU or on several: one file, from the text to the checkpoint.

    python experiments/train_gpt.py --out build/gpt                               # one GPU: GPT-2 small's shape
    torchrun --nproc-per-node 2 experiments/train_gpt.py --out build/gpt          # two
    python experiments/train_gpt.py --preset tiny --out build/tiny                # a CPU, in seconds

The weights are those of `course.model.GPT` in float32. `Loss` computes the same function as the model and its cross-entropy, in the
form that a GPU likes: bfloat16, kernels for attention and for the loss, and torch.compile for all that is between them.
Called again with the same --out, a run goes on from its last checkpoint, and on one GPU ends with the same bits as if it
had never stopped. Every random number depends on the seed and the step alone.
"""

import argparse
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # products add up in the same order each time

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data  # noqa: E402
from course.model import GPT, Config  # noqa: E402
from course.optimisers_and_schedules import cosine  # noqa: E402
from course.position_rope import rope_frequencies  # noqa: E402
from course.tokens import BYTES, bpe_encode, bpe_train  # noqa: E402

# ---------------------------------------------------------------- what a run is


@dataclass(frozen=True)
class Settings:
    """A model and how it is trained.

    Raises:
        ValueError: if the batch does not divide into micro-batches, or the model has no room for a window.
    """

    model: Config
    T: int  # tokens of a window
    batch: int  # windows a step, of all processes together
    micro: int  # windows that a process takes at once; more are accumulated
    steps: int
    warmup: int
    peak: float  # the highest learning rate; from there half a cosine down to 0
    decay: float = 0.1  # of matrices; norms and biases have none
    betas: tuple[float, float] = (0.9, 0.95)
    clip: float = 1.0  # of the gradient's length
    dropout: float = 0.0  # of what attention and feed-forward network add to the stream, and of the embedding
    seed: int = 0

    def __post_init__(self):
        if self.batch % self.micro:
            raise ValueError(f"micro = {self.micro} windows do not divide the batch of {self.batch}")
        if self.model.qk_norm:
            raise ValueError("this trainer has no norm of queries and keys: train such a model with a plain loop")
        if self.model.position == "learned" and self.model.T_max < self.T:
            raise ValueError(f"windows of {self.T} tokens are longer than the T_max = {self.model.T_max} learned positions")


GPT2 = Config(
    V=50304, d_model=768, n_layers=12, n_heads=12, T_max=1024, norm="layer", position="learned", ffn="gelu_tanh", tied=True, bias=True
)  # fmt: skip
PRESETS = {
    # 50,257 tokens are padded to a multiple of 128, which the matrix units like; the others never come.
    "gpt2": Settings(GPT2, T=1024, batch=512, micro=64, steps=20_000, warmup=700, peak=6e-4),
    "tiny": Settings(Config(V=320, d_model=32, n_layers=2, n_heads=2, tied=True), T=32, batch=8, micro=4, steps=60, warmup=5, peak=3e-3),
}  # fmt: skip


# ---------------------------------------------------------------- the loss of a model, fast


class Loss(nn.Module):
    """The mean over all tokens of −ln p(target): ids, targets (B, T) → a float32 number, with gradients of the model's weights.

    Args:
        model: its weights are read as `dtype` and stay float32, and so do their gradients.
        dtype: of activations and products; the loss is added up in float32.
        dropout: while the module is in training mode.
        compiled: whether torch.compile makes the kernels between attention and loss.
    """

    def __init__(self, model: GPT, dtype: torch.dtype, dropout: float = 0.0, compiled: bool = False):
        super().__init__()
        self.model, self.dtype, self.dropout = model, dtype, dropout
        if model.config.position == "rope":
            frequencies = rope_frequencies(model.config.d_head, model.config.theta).float()  # (d_head / 2,)
            self.register_buffer("frequencies", frequencies.to(model.embedding.weight.device), persistent=False)
        self.stream = torch.compile(self.hidden, fullgraph=True, dynamic=False) if compiled else self.hidden

    def forward(self, ids: Tensor, targets: Tensor) -> Tensor:
        x = self.stream(ids).flatten(0, 1)  # (B T, d_model)
        weight = self.model.head.weight.to(self.dtype)  # (V, d_model)
        if x.is_cuda and self.dtype != torch.float32:
            from course.kernels.cross_entropy import linear_cross_entropy

            return linear_cross_entropy(x, weight, targets.flatten(), chunk=16_384)
        return F.cross_entropy((x @ weight.T).to(torch.promote_types(self.dtype, torch.float32)), targets.flatten())

    def hidden(self, ids: Tensor) -> Tensor:
        """The stream behind the last norm: (B, T) → (B, T, d_model)."""
        model, T = self.model, ids.shape[1]
        x = model.embedding(ids).to(self.dtype)  # (B, T, d_model); looked up in float32, so that gradients add up in it
        turn = None
        if model.config.position == "learned":
            x = x + model.position.weight[:T].to(self.dtype)
        else:
            angles = torch.arange(T, device=ids.device)[:, None] * self.frequencies  # (T, d_head / 2)
            turn = angles.cos(), angles.sin()
        x = self.drop(x)
        for block in model.blocks:
            x = x + self.drop(self.attention(block.attention, self.norm(block.norm_1, x), turn))
            x = x + self.drop(self.ffn(block.ffn, self.norm(block.norm_2, x)))
        return self.norm(model.norm, x)

    def attention(self, part: nn.Module, x: Tensor, turn: tuple[Tensor, Tensor] | None) -> Tensor:
        """(B, T, d_model) → same."""
        config = part.config
        query, key, value = (
            self.linear(f, x).unflatten(2, (-1, config.d_head)).transpose(1, 2)  # (B, heads, T, d_head)
            for f in (part.query, part.key, part.value)
        )
        if turn is not None:
            query, key = (rotate(each, *turn) for each in (query, key))
        mixed = attend(query, key, value)  # (B, H, T, d_head)
        return self.linear(part.out, mixed.transpose(1, 2).flatten(2))

    def ffn(self, part: nn.Module, x: Tensor) -> Tensor:
        """(B, T, d_model) → same."""
        hidden = self.linear(part.up, x)  # (B, T, d_ff)
        if part.kind == "swiglu":
            hidden = F.silu(self.linear(part.gate, x)) * hidden
        else:
            hidden = F.gelu(hidden, approximate="tanh" if part.kind == "gelu_tanh" else "none")
        return self.linear(part.down, hidden)

    def linear(self, part: nn.Linear, x: Tensor) -> Tensor:
        return F.linear(x, part.weight.to(self.dtype), None if part.bias is None else part.bias.to(self.dtype))

    def norm(self, part: nn.Module, x: Tensor) -> Tensor:
        weight = part.weight.to(self.dtype)
        if isinstance(part, nn.LayerNorm):
            return F.layer_norm(x, weight.shape, weight, part.bias.to(self.dtype), part.eps)
        return F.rms_norm(x, weight.shape, weight, part.eps)

    def drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training) if self.dropout else x


def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Causal attention, (B, H, T, d_head) and (B, kv_heads, T, d_head) → (B, H, T, d_head): the course's kernel where it fits."""
    if query.is_cuda and query.dtype != torch.float32 and query.shape[-1] in (64, 128):
        from course.kernels.attention import attention

        return attention(query, key, value)
    return F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=query.shape[1] != key.shape[1])


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """RoPE: each pair (x_i, x_{i + d/2}) turned by its angle. x (B, heads, T, d_head), cos and sin (T, d_head / 2) in float32."""
    left, right = x.chunk(2, dim=-1)
    return torch.cat([left * cos - right * sin, left * sin + right * cos], dim=-1).to(x.dtype)


# ---------------------------------------------------------------- the processes


@dataclass(frozen=True)
class Place:
    """Where this process runs, and which of how many it is."""

    device: torch.device
    rank: int = 0
    world: int = 1


def place(cpu: bool = False) -> Place:
    """From what torchrun says; alone without it."""
    on_gpu = torch.cuda.is_available() and not cpu
    world = int(os.environ.get("WORLD_SIZE", 1))
    local = int(os.environ.get("LOCAL_RANK", 0))
    device = torch.device("cuda", local) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    if world > 1:
        dist.init_process_group("nccl" if on_gpu else "gloo")
    return Place(device, int(os.environ.get("RANK", 0)), world)


# ---------------------------------------------------------------- training


class Trainer:
    """A model, its optimiser and the number of steps taken.

    Args:
        settings: the run.
        tokens: (N,) integers, the text to learn from, on any device; BOS is the last of the vocabulary.
        place: one process of several has the same weights as the others and takes its share of each batch.

    Raises:
        ValueError: if the text is shorter than a window, or the processes do not divide the batch.
    """

    def __init__(self, settings: Settings, tokens: Tensor, place: Place):
        s, share = settings, settings.micro * place.world
        if len(tokens) < s.T:
            raise ValueError(f"a text of {len(tokens)} tokens has no window of {s.T}")
        if s.batch % share:
            raise ValueError(f"{place.world} processes with {s.micro} windows at once do not divide the batch of {s.batch}")
        torch.use_deterministic_algorithms(True)
        torch.utils.deterministic.fill_uninitialized_memory = False
        self.settings, self.place, self.tokens, self.step = s, place, tokens.to(place.device), 0
        torch.manual_seed(s.seed)
        self.model = GPT(s.model).to(place.device)
        on_gpu = place.device.type == "cuda"
        self.loss = Loss(self.model, torch.bfloat16 if on_gpu else torch.float32, s.dropout, compiled=on_gpu)
        self.parallel = self.loss
        if place.world > 1:
            self.parallel = DistributedDataParallel(self.loss, gradient_as_bucket_view=True)
        matrices = [p for p in self.model.parameters() if p.ndim > 1]
        vectors = [p for p in self.model.parameters() if p.ndim == 1]
        groups = [{"params": matrices, "weight_decay": s.decay}, {"params": vectors, "weight_decay": 0.0}]
        self.optimiser = torch.optim.AdamW(groups, lr=s.peak, betas=s.betas, fused=on_gpu)

    def batch(self) -> tuple[Tensor, Tensor]:
        """This process's windows of the step: ids and targets, (batch / world, T). A window is read from BOS on."""
        s = self.settings
        generator = torch.Generator().manual_seed(s.seed * 1_000_003 + self.step)
        starts = torch.randint(len(self.tokens) - s.T + 1, (s.batch,), generator=generator)
        own = starts[self.place.rank :: self.place.world].to(self.place.device, non_blocking=True)
        return windows(self.tokens, own, s.T, s.model.V - 1)

    def take_step(self) -> Tensor:
        """One step of AdamW; returns the mean loss of this process's windows, which is still on its way on a GPU."""
        s = self.settings
        ids, targets = self.batch()
        parts = len(ids) // s.micro
        if s.dropout:
            torch.manual_seed((s.seed * 1_000_003 + self.step) * self.place.world + self.place.rank)
        self.parallel.train()
        total = torch.zeros((), device=self.place.device)
        for part, (some, next_ones) in enumerate(zip(ids.split(s.micro), targets.split(s.micro), strict=True)):
            if self.place.world > 1:  # processes add up their gradients once, after the last part
                self.parallel.require_backward_grad_sync = part == parts - 1
            loss = self.parallel(some, next_ones) / parts
            loss.backward()
            total += loss.detach()
        nn.utils.clip_grad_norm_(self.model.parameters(), s.clip)
        self.step += 1
        for group in self.optimiser.param_groups:
            group["lr"] = cosine(self.step, s.peak, s.warmup, s.steps)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return total

    @torch.no_grad()
    def evaluate(self, tokens: Tensor) -> float:
        """Nats a token of another text, cut into windows that follow each other."""
        s = self.settings
        starts = torch.arange(0, len(tokens) - s.T + 1, s.T, device=self.place.device)
        self.loss.eval()
        total = 0.0
        for some in starts.split(s.micro):
            total += float(self.loss(*windows(tokens.to(self.place.device), some, s.T, s.model.V - 1))) * len(some)
        return total / len(starts)

    def save(self, path: Path) -> None:
        """All that the next step depends on. The file is there whole or not at all."""
        state = {"settings": repr(self.settings), "step": self.step, "model": self.model.state_dict()}
        torch.save(state | {"optimiser": self.optimiser.state_dict()}, path.with_suffix(".new"))
        path.with_suffix(".new").replace(path)

    def load(self, path: Path) -> None:
        """Go on from a file of `save`.

        Raises:
            ValueError: if it is of a run with other settings.
        """
        state = torch.load(path, map_location=self.place.device, weights_only=True)
        if state["settings"] != repr(self.settings):
            raise ValueError(f"{path} is of a run with other settings: {state['settings']}. Give another --out, or remove it")
        self.step = state["step"]
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])


def windows(tokens: Tensor, starts: Tensor, T: int, bos: int) -> tuple[Tensor, Tensor]:
    """T tokens from each start as targets, and as ids the same, one later, behind BOS: (B, T) each."""
    targets = tokens[starts[:, None] + torch.arange(T, device=starts.device)]  # (B, T)
    return torch.cat([torch.full_like(targets[:, :1], bos), targets[:, :-1]], dim=1), targets


def train(trainer: Trainer, validation: Tensor, every: int, path: Path | None = None, until: int | None = None) -> list[dict]:
    """Train up to step `until`, or to the end. Every `every` steps the losses are measured, and the run is saved.

    Returns:
        The curve: {"step", "training", "validation", "tokens_per_s"}, losses in nats a token. Speeds leave out the first step and measuring.
    """
    s, curve, last, began, losses = trainer.settings, [], None, None, []
    first = trainer.place.rank == 0
    while trainer.step < (s.steps if until is None else until):
        losses.append(trainer.take_step())
        if last is None:  # the step that compiles is not timed
            last, began = trainer.step, now(trainer.place)
        if trainer.step % every == 0 or trainer.step == s.steps:
            passed = now(trainer.place) - began
            row = {"step": trainer.step, "training": round(float(sum(losses)) / len(losses), 4)}
            row |= {"validation": round(trainer.evaluate(validation), 4), "tokens_per_s": None}
            if trainer.step > last:
                row["tokens_per_s"] = round((trainer.step - last) * s.batch * s.T / passed)
            curve.append(row)
            if first:
                print(row, flush=True)
                if path is not None:
                    trainer.save(path)
            losses, last, began = [], trainer.step, now(trainer.place)
    return curve


def now(place: Place) -> float:
    """The clock, when the device has done all it was given."""
    if place.device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


# ---------------------------------------------------------------- command


def texts(V: int, held_out: int = 200_000) -> tuple[Tensor, Tensor]:
    """Austen and Shakespeare as tokens of the course's BPE with V − 1 tokens: but for the last `held_out` characters of each, and those."""
    whole = [data.read(name) for name in ("austen", "shakespeare")]
    learned, unseen = "".join(text[:-held_out] for text in whole), "".join(text[-held_out:] for text in whole)
    merges = bpe_train(learned, V - 1 - BYTES)
    return torch.tensor(bpe_encode(learned, merges)), torch.tensor(bpe_encode(unseen, merges))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", choices=PRESETS, default="gpt2", help="which settings")
    parser.add_argument("--out", type=Path, required=True, help="folder of the checkpoint; a run that is there goes on")
    parser.add_argument("--until", type=int, help="stop after this step; called again, the run goes on")
    parser.add_argument("--every", type=int, default=100, help="steps from one measurement and checkpoint to the next")
    parser.add_argument("--cpu", action="store_true", help="even if there is a GPU")
    options = parser.parse_args()
    settings, here = PRESETS[options.preset], place(options.cpu)
    learned, unseen = texts(settings.model.V)
    trainer = Trainer(settings, learned, here)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "checkpoint.pt"
    if path.exists():
        trainer.load(path)
        print(f"goes on from step {trainer.step}", flush=True)
    train(trainer, unseen, options.every, path, options.until)
    if here.world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
