"""A trained encoder of others: BERT's shape, from token ids to a vector for each token, equal to Hugging Face's `BertModel`.

Its parts are those of `course.model`. Three things differ: every token sees every other, norms come after the sums, and the
embedding is normed. `course.pretrained.load("minilm-l6")` gives one with its weights.

Shapes: B texts of T tokens, H heads.

Source: Devlin et al. (2019), BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from course.model import Attention, Config, FeedForward

__all__ = ["Encoder", "EncoderBlock"]

SEGMENTS = 2  # of a pair of texts; a single text is all in the first


class EncoderBlock(nn.Module):
    """Post-norm: each part reads the stream, adds its result to it, and the sum is normed. (B, T, d_model) → same."""

    def __init__(self, config: Config, layer: int):
        super().__init__()
        self.attention = Attention(config, layer)
        self.norm_1 = nn.LayerNorm(config.d_model, eps=config.eps)
        self.ffn = FeedForward(config)
        self.norm_2 = nn.LayerNorm(config.d_model, eps=config.eps)

    def forward(self, x: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """x (B, T, d_model) and which tokens are real (B, T) → the stream, and the weights (B, H, T, T)."""
        query, key, value = self.attention.project(x, torch.arange(x.shape[1], device=x.device))  # (B, H, T, d_head)
        scores = query @ key.mT / math.sqrt(query.shape[-1])  # (B, H, T, T)
        weights = scores.masked_fill(~real[:, None, None], -math.inf).softmax(dim=-1)
        x = self.norm_1(x + self.attention.out((weights @ value).transpose(1, 2).flatten(2)))
        return self.norm_2(x + self.ffn(x)), weights


class Encoder(nn.Module):
    """An encoder: ids (B, T) of integers → vectors (B, T, d_model), each of which has seen the whole text.

    Args:
        config: with learned positions, LayerNorm, GELU and biases, as BERT has them.

    Raises:
        ValueError: if the config has another part.
    """

    def __init__(self, config: Config):
        super().__init__()
        if (config.position, config.norm, config.ffn, config.bias) != ("learned", "layer", "gelu", True):
            raise ValueError('an encoder has position="learned", norm="layer", ffn="gelu" and bias=True')
        self.config = config
        self.embedding = nn.Embedding(config.V, config.d_model)
        self.position = nn.Embedding(config.T_max, config.d_model)
        self.segment = nn.Embedding(SEGMENTS, config.d_model)
        self.norm = nn.LayerNorm(config.d_model, eps=config.eps)
        self.blocks = nn.ModuleList(EncoderBlock(config, layer) for layer in range(config.n_layers))

    def forward(
        self, ids: Tensor, real: Tensor | None = None, see: Callable[[int, Tensor, Tensor], None] = lambda layer, weights, x: None
    ) -> Tensor:
        """The vectors after the last block.

        Args:
            ids: (B, T) integers, of T ≤ T_max tokens each.
            real: (B, T), false where a token only fills a shorter text up; nobody attends to those. All are real without it.
            see: is called with each layer's number, its weights (B, H, T, T), and the stream that its block reads, (B, T, d_model).

        Raises:
            ValueError: if T is more than the learned positions, a text has no real token, or `real` has another shape.
        """
        T = ids.shape[1]
        if self.config.T_max < T:
            raise ValueError(f"{T} tokens are more than the T_max = {self.config.T_max} learned positions")
        real = torch.ones_like(ids, dtype=torch.bool) if real is None else real.bool()
        if real.shape != ids.shape or not real.any(dim=1).all():
            raise ValueError(f"real says of each of {tuple(ids.shape)} tokens if it is one, and each text has some")
        segment = torch.zeros_like(ids)
        x = self.norm(self.embedding(ids) + self.position(torch.arange(T, device=ids.device)) + self.segment(segment))
        for layer, block in enumerate(self.blocks):
            before = x
            x, weights = block(x, real)  # (B, T, d_model), (B, H, T, T)
            see(layer, weights, before)
        return x

    def sentence(self, ids: Tensor, real: Tensor | None = None) -> Tensor:
        """One vector of length 1 for each text, the mean of its real tokens' vectors: ids and real (B, T) → (B, d_model).

        Source: Reimers and Gurevych (2019), Sentence-BERT, section 3, the pooling MEAN.
        """
        real = torch.ones_like(ids, dtype=torch.bool) if real is None else real.bool()
        x = self(ids, real).masked_fill(~real[..., None], 0.0)  # (B, T, d_model)
        return nn.functional.normalize(x.sum(dim=1) / real.sum(dim=1, keepdim=True), dim=-1)
