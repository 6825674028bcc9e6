"""A module as users bring it: dense layers with dropout over samples of one axis."""

from torch import nn


class Net(nn.Module):
    def __init__(self, inputs, width=256, depth=4):
        super().__init__()
        layers = [nn.Linear(inputs, width)]
        for _ in range(depth):
            layers += [nn.GELU(), nn.Dropout(0.1), nn.Linear(width, width), nn.LayerNorm(width)]
        self.layers = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, x):
        return self.layers(x)
