"""ACT of act_policy.py as model.plugin = "python" takes it (docs/python.md). Its forward gives the loss, a mean over samples."""
import act_policy


def net(chunk=20, tuned=False):
    return act_policy.Act(chunk, tuned)


def forward(module, batch):
    dtype = module.mean.dtype
    return module(batch["image"].to(dtype) / 255, batch["qpos"].to(dtype), batch["action"].to(dtype), batch["is_pad"].bool())


def loss(outputs, batch):
    return outputs
