"""One point of experiments/sweeps/batch_x_accumulation.toml as a PyTorch user would train it: an epoch of the quick TDS-LSTM in
float64, accumulating as the guides do. Needs torch, numpy, h5py."""
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))
import tds_lstm  # noqa: E402

BATCH_SIZES, ACCUMULATIONS = [8, 16, 32, 64], [1, 2, 4, 8]
POINTS = [(batch, steps) for batch in BATCH_SIZES for steps in ACCUMULATIONS]


def train(folder, batch_size, accumulation, stride=100):
    """An epoch; the mean absolute error on the validation split."""
    torch.manual_seed(0)
    model = tds_lstm.TdsLstm(tds_lstm.NETWORKS["quick"]).to(torch.float64)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.01)
    data, validation = (tds_lstm.Windows(folder, split, stride=stride) for split in ("train", "val"))
    data.normalize(min(200, len(data)))
    validation.mean, validation.std = data.mean, data.std
    loader = torch.utils.data.DataLoader(data, batch_size, shuffle=True)
    for number, batch in enumerate(loader, 1):
        loss, _, _ = tds_lstm.loss_of(model, batch, torch.float64)
        (loss / accumulation).backward()
        if number % accumulation == 0 or number == len(loader):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    return tds_lstm.evaluate(model, validation, batch_size, torch.float64)
