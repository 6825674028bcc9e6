"""The modules of python_test.cpp and python_memory_test.cpp, which write their own behind them."""
import os
import time

import torch
from torch import nn

import layers


class Line(nn.Module):
    def __init__(self, inputs=3, outputs=1):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x):
        return self.linear(x)


class FailsOnce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        fail_once("backward")
        return gradient


def fail_once(where):
    mark = os.environ.get("FAIL_ONCE_IN_" + where.upper())
    if mark and not os.path.exists(mark):
        open(mark, "w").close()
        raise torch.OutOfMemoryError("made up")


class Net(nn.Module):
    def __init__(self, inputs=3, hidden=8, dropout=0.2, norm=False, width=3):
        super().__init__()
        self.first = nn.Linear(width, hidden)
        self.norm = nn.BatchNorm1d(hidden) if norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)
        self.last = layers.Last(hidden, 1)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        if self.training:
            self.calls = self.calls + 1
            pause = os.environ.get("PAUSE")
            if pause and int(self.calls) == 40:
                open(pause, "w").close()
                while os.path.exists(pause):
                    time.sleep(0.01)
        hidden = self.dropout(torch.relu(self.norm(self.first(x))))
        if int(self.calls) > 5 and torch.is_grad_enabled():  # no trial
            fail_once("forward")
            hidden = FailsOnce.apply(hidden)
        return self.last(hidden)


def mean(outputs, batch):
    return nn.functional.mse_loss(outputs, batch["y"])


def of_each(outputs, batch):
    return (outputs - batch["y"]).square().mean(1)


def draws_of_numpy(outputs, batch):
    import random
    return (outputs * random.random()).sum(), outputs.numel()
