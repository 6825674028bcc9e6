"""Small models of the kinds that users bring. Each takes x [samples, 3] and gives [samples, 1]; none knows Headroom but
for the pause that a test asks for."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from pause import pause


class Model(nn.Module):
    def forward(self, x):
        if self.training:
            pause()
        return self.run(x)


# ---- pictures ----


class Block(nn.Module):
    def __init__(self, channels, norm):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = norm(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = norm(channels)

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(x + self.norm2(self.conv2(y)))


class ResNet(Model):
    """Its head begins at zero, as in many recipes."""

    def __init__(self, norm="batch", channels=8):
        super().__init__()
        make = nn.BatchNorm2d if norm == "batch" else lambda n: nn.GroupNorm(2, n)
        self.stem = nn.Conv2d(3, channels, 1)
        self.blocks = nn.Sequential(Block(channels, make), Block(channels, make))
        self.head = nn.Linear(channels, 1)
        nn.init.zeros_(self.head.weight)

    def run(self, x):
        picture = x[:, :, None, None] * torch.linspace(-1, 1, 16).reshape(4, 4)
        return self.head(self.blocks(self.stem(picture)).mean((2, 3)))


class UNet(Model):
    def __init__(self, channels=4):
        super().__init__()
        self.down1 = nn.Conv2d(3, channels, 3, padding=1)
        self.down2 = nn.Conv2d(channels, 2 * channels, 3, padding=1)
        self.up = nn.ConvTranspose2d(2 * channels, channels, 2, stride=2)
        self.out = nn.Sequential(nn.Conv2d(2 * channels, channels, 3, padding=1), nn.ReLU(), nn.Dropout2d(0.1))
        self.head = nn.Conv2d(channels, 1, 1)

    def run(self, x):
        picture = x[:, :, None, None] * torch.linspace(-1, 1, 64).reshape(8, 8)
        wide = F.relu(self.down1(picture))
        deep = F.relu(self.down2(F.max_pool2d(wide, 2)))
        joined = torch.cat([wide, self.up(deep)], 1)
        return self.head(self.out(joined)).mean((2, 3))


# ---- sequences ----


class Attention(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.dropout if self.training else 0.0)
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Layer(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, dropout)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


def tokens(x, count=16):
    """Eight of each sample."""
    return ((x.repeat(1, 3)[:, :8] * 4).round().long() + torch.arange(8)) % count


class Gpt(Model):
    """With `tied` the head has the weights of the embedding; with `recomputed` a layer keeps no activations."""

    def __init__(self, width=16, heads=2, dropout=0.1, layers=2, tied=False, recomputed=False):
        super().__init__()
        self.recomputed = recomputed
        self.embedding = nn.Embedding(16, width)
        self.position = nn.Parameter(torch.zeros(8, width))
        self.layers = nn.ModuleList(Layer(width, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 16, bias=False)
        if tied:
            self.head.weight = self.embedding.weight

    def run(self, x):
        h = self.embedding(tokens(x)) + self.position
        for layer in self.layers:
            h = checkpoint(layer, h, use_reentrant=False) if self.recomputed else layer(h)
        return self.head(self.norm(h)).mean((1, 2)).unsqueeze(1)


class Lstm(Model):
    def __init__(self, hidden=12):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, num_layers=2, dropout=0.2, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def run(self, x):
        return self.head(self.lstm(x.unsqueeze(2))[0][:, -1])


# ---- others ----


class Vae(Model):
    """Draws for itself, and has a loss of its own."""

    def __init__(self, hidden=16, latent=4):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(3, hidden), nn.Tanh(), nn.Linear(hidden, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.Tanh(), nn.Linear(hidden, 3))

    def run(self, x):
        mean, log_variance = self.encoder(x).chunk(2, 1)
        z = mean + torch.randn_like(mean) * (log_variance / 2).exp() if self.training else mean
        return self.decoder(z), mean, log_variance


def vae_loss(outputs, batch):
    """One value a sample."""
    decoded, mean, log_variance = outputs
    divergence = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1)
    return (decoded - batch["x"]).square().sum(1) + 0.1 * divergence


class Siamese(Model):
    """One encoder, called twice."""

    def __init__(self, hidden=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(3, hidden), nn.ReLU(), nn.Dropout(0.1), nn.Linear(hidden, 8))

    def run(self, x):
        return F.cosine_similarity(self.encoder(x), self.encoder(x.flip(1))).unsqueeze(1)


class Plain(nn.Module):
    """Draws nothing, so that it may be compiled; its loss is what pauses."""

    def __init__(self, hidden=16):
        super().__init__()
        self.first, self.last = nn.Linear(3, hidden), nn.Linear(hidden, 1)

    def forward(self, x):
        return self.last(torch.tanh(self.first(x)))


def pausing_loss(outputs, batch):
    pause()
    return (outputs - batch["y"]).square().sum(), outputs.numel()
