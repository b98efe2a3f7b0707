"""A transformer encoder in PyTorch that classifies sequences of tokens, exported through torchax."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

VOCABULARY, WIDTH, HEADS, LENGTH = 50, 32, 4, 12


class EncoderLayer(nn.Module):
    """Self-attention and a feed-forward layer, normalised after each, as in the first transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.up = nn.Linear(WIDTH, 64)
        self.down = nn.Linear(64, WIDTH)
        self.norm_0 = nn.LayerNorm(WIDTH)
        self.norm_1 = nn.LayerNorm(WIDTH)

    def attention(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        heads = self.qkv(x).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        query, key, value = heads[0], heads[1], heads[2]
        scores = query @ key.transpose(-2, -1) * (WIDTH // HEADS) ** -0.5
        mixed = torch.softmax(scores, dim=-1) @ value
        return self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm_0(x + self.attention(x))
        return self.norm_1(x + self.down(functional.gelu(self.up(x))))


class TorchEncoder(nn.Module):
    """Logits [3, 5] of token sequences [3, 12]."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.1)
        self.layers = nn.ModuleList(EncoderLayer() for _ in range(2))
        self.classes = nn.Linear(WIDTH, 5)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.classes(x.mean(dim=1))


def torch_encoder() -> nn.Module:
    torch.manual_seed(7)
    return TorchEncoder().eval()


def example_arguments():
    generator = torch.Generator().manual_seed(8)
    return (torch.randint(0, VOCABULARY, (3, LENGTH), generator=generator, dtype=torch.int32),)
