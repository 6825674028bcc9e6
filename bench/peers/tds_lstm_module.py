"""The TDS-LSTM of tds_lstm.py as model.plugin = "python" takes it (docs/python.md), on fields of emg_hdf5."""
from tds_lstm import NETWORKS, TdsLstm


def net(network="quick"):
    return TdsLstm(NETWORKS[network])


def forward(module, batch):
    return module(batch["emg"], batch["joint_angles"][:, module.context])


def error_of(prediction, batch):
    """Of valid angles, [batch, joints, predicted]; elsewhere 0. And how many are valid."""
    context = batch["emg"].shape[1] - prediction.shape[-1]
    valid = batch["valid"].bool()
    mask = (valid[:, context:] & valid[:, context:context + 1])[:, None].expand_as(prediction)
    return (prediction - batch["joint_angles"].transpose(1, 2)[..., context:]) * mask, mask.sum()


def mse_mae(outputs, batch):
    error, valid = error_of(outputs, batch)
    return (error.square() + 0.5 * error.abs()).sum(), valid


def mae(outputs, batch):
    error, valid = error_of(outputs, batch)
    return error.abs().sum(), valid
