"""ACT of bench/peers, as narrow as the reference's golden files, and without dropout.

As a script: act_golden.py START STEPS RUN exits with 1 where the run's weights after five steps of AdamW are not those of STEPS."""
import re
import sys
from unittest import mock

import golden_run
import torch

import act_policy
import act_policy_module

NAMES = (  # of the reference, and of act_policy.Act
    (r"backbones\.0\.0\.body\.conv1", "backbone.0"),
    (r"backbones\.0\.0\.body\.bn1", "backbone.1"),
    (r"backbones\.0\.0\.body\.layer(\d)\.(\d)", lambda found: f"backbone.{2 * int(found[1]) + 2 + int(found[2])}"),
    (r"transformer\.encoder\.layers", "encoder"),
    (r"transformer\.decoder\.layers", "decoder"),
    (r"transformer\.decoder\.norm", "norm"),
    (r"encoder\.layers", "cvae"),
    (r"encoder_action_proj", "cvae_action"),
    (r"encoder_joint_proj", "cvae_state"),
    (r"input_proj_robot_state", "state_proj"),
    (r"latent_out_proj", "latent_out"),
    (r"query_embed", "query"),
    (r"cls_embed", "cls"),
    (r"additional_pos_embed", "extra"),
)


def renamed(tensors, prefix):
    """Those whose names begin with it, by the names of act_policy.Act."""
    own = {}
    for name, values in tensors.items():
        if name.startswith(prefix):
            name = name[len(prefix):]
            for pattern, ours in NAMES:
                name, found = re.subn("^" + pattern, ours, name)
                if found:
                    break
            own[name] = values
    return own


def net(start):
    act_policy.HIDDEN, act_policy.FEEDFORWARD, act_policy.ENCODERS, act_policy.DECODERS = 32, 64, 2, 2
    act_policy.WIDTHS = (8, 16, 32, 64)
    weights = renamed(golden_run.load(start), "w.")
    module = act_policy_module.net(chunk=len(weights["query.weight"]))
    weights["table"] = weights.pop("pos_table").transpose(0, 1)
    lacking, unknown = module.load_state_dict(weights, strict=False)
    assert set(lacking) == {"mean", "std"} and not unknown, (lacking, unknown)
    for layer in module.modules():
        if isinstance(layer, torch.nn.Dropout):
            layer.p = 0.0
        elif isinstance(layer, torch.nn.MultiheadAttention):
            layer.dropout = 0.0
    return module


def param_groups(module):
    return [{"params": module.backbone.parameters(), "lr_scale": 0.1}]


def forward(module, batch):
    with mock.patch("torch.randn_like", lambda like: batch["eps"].to(like.dtype)):
        return act_policy_module.forward(module, batch)


loss = act_policy_module.loss


def rows(start, steps):
    """The batch of `start` for each step, with the step's own noise."""
    batch, noise = golden_run.load(start), golden_run.load(steps)["in.eps"]
    fields = {"image": "in.image_u8", "qpos": "in.qpos", "action": "in.actions", "is_pad": "in.is_pad"}
    repeated = {name: torch.cat([batch[key]] * len(noise)) for name, key in fields.items()}
    return golden_run.Rows({**repeated, "eps": noise.flatten(0, 1)})


def main():
    start, steps, run = sys.argv[1:]
    weights, mean_loss = golden_run.result_of(run)
    golden = golden_run.load(steps)
    expected = {"the loss": golden["out64.losses"][:, 2].mean(), **renamed(golden, "w5_64.")}
    # Rounding is all that their gradients are, and AdamW makes whole steps of it.
    hidden = len(expected["norm.weight"])
    for name in list(expected):
        if name.startswith("decoder.0.self_attn.in_proj_weight"):
            del expected[name]
        elif name.endswith("in_proj_bias"):
            kept = slice(2 * hidden, None)
            expected[name], weights[name] = expected[name][kept], weights[name][kept]
    golden_run.hold({"the loss": torch.tensor(mean_loss), **weights}, expected, lambda name: 1e-6)


if __name__ == "__main__":
    main()
