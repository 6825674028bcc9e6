"""Loops in real cgroups, judged by the kernel: killed without headroom, finishing with it, with the weights of a large machine."""

import importlib.util
import os
import sys
import tempfile
import unittest

import torch

from kernel_cgroup import KernelCgroup

MIB = 1 << 20

BEGIN = """
import sys, warnings, torch
from torch import nn
warnings.filterwarnings("ignore")
torch.set_num_threads(1)
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 12_000), nn.GELU(), nn.Linear(12_000, 2)).double()
x = torch.randn(4 * 2048, 16, dtype=torch.float64)
data = torch.utils.data.TensorDataset(x, torch.sin(x[:, :2]))
loader = torch.utils.data.DataLoader(data, batch_size=2048)  # a batch takes some 800 MiB
mean = lambda module, batch: nn.functional.mse_loss(module(batch[0]), batch[1])
"""

PLAIN = BEGIN + """
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for batch in loader:
    optimizer.zero_grad()
    mean(model, batch).backward()
    optimizer.step()
torch.save(model.state_dict(), sys.argv[1])
"""

# docs/python.md: three lines.
GUARDED = "import headroom\nheadroom.limit('auto')\n" + BEGIN + """
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
steps = headroom.Accumulator(model, optimizer, window=2048, loss=mean)
for batch in loader:
    steps.step(batch)
torch.save(model.state_dict(), sys.argv[1])
print(steps.retries)
"""

LIGHTNING = BEGIN + """
import lightning.pytorch as pl
class Module(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = model
    def training_step(self, batch, batch_idx):
        return mean(self.net, batch)
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01, momentum=0.9)
trainer = pl.Trainer(accelerator="cpu", devices=1, max_epochs=1, logger=False, enable_progress_bar=False, enable_model_summary=False,
                     enable_checkpointing=False, callbacks=CALLBACKS, default_root_dir=sys.argv[1] + ".folder")
trainer.fit(Module(), loader)
torch.save(model.state_dict(), sys.argv[1])
"""

ACCELERATE = BEGIN + """
from accelerate import Accelerator
accelerator = Accelerator(cpu=True)
network, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), loader)
LOOP
torch.save(model.state_dict(), sys.argv[1])
"""
ACCELERATE_PLAIN = """
for batch in loader:
    optimizer.zero_grad()
    accelerator.backward(mean(network, batch))
    optimizer.step()
"""
ACCELERATE_GUARDED = """
steps = headroom.Accumulator(network, optimizer, window=2048, loss=mean, backward=accelerator.backward)
for batch in loader:
    steps.step(batch)
"""


class Kernel(unittest.TestCase):
    limit_bytes = 700 * MIB

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_in_cgroup(self, text, name, limit_bytes=None):
        cgroup = KernelCgroup(limit_bytes or self.limit_bytes)
        self.addCleanup(cgroup.close)
        script = os.path.join(self.folder.name, name + ".py")
        with open(script, "w") as file:
            file.write(text)
        done = cgroup.run([script, os.path.join(self.folder.name, name)])
        return done, cgroup.oom_kills()

    def weights(self, name):
        return torch.load(os.path.join(self.folder.name, name))

    def judge(self, plain, guarded):
        done, kills = self.run_in_cgroup(plain, "killed")
        self.assertEqual((done.returncode, kills), (-9, 1), done.stderr)
        done, _ = self.run_in_cgroup(plain, "large", 4096 * MIB)
        self.assertEqual(done.returncode, 0, done.stderr)
        done, kills = self.run_in_cgroup(guarded, "guarded")
        self.assertEqual((done.returncode, kills), (0, 0), done.stderr)
        expected = self.weights("large")
        for name, found in self.weights("guarded").items():
            self.assertLess(float((found - expected[name]).abs().max()), 1e-10, name)
        return done.stdout

    def test_a_plain_loop(self):
        self.assertGreater(int(self.judge(PLAIN, GUARDED)), 0)

    @unittest.skipUnless(importlib.util.find_spec("lightning"), "lightning is not installed")
    def test_a_lightning_script(self):
        guarded = LIGHTNING.replace("CALLBACKS", "[headroom.lightning.Windows(window=2048)]").replace("import lightning.pytorch as pl",
                                                                                                     "import lightning.pytorch as pl, headroom.lightning")
        self.judge(LIGHTNING.replace("CALLBACKS", "[]"), "import headroom\nheadroom.limit('auto')\n" + guarded)

    @unittest.skipUnless(importlib.util.find_spec("accelerate"), "accelerate is not installed")
    def test_an_accelerate_script(self):
        self.judge(ACCELERATE.replace("LOOP", ACCELERATE_PLAIN),
                   "import headroom\nheadroom.limit('auto')\n" + ACCELERATE.replace("LOOP", ACCELERATE_GUARDED))


if __name__ == "__main__":
    trial = KernelCgroup(1 << 40)
    trial.close()
    if trial.why_not:
        print("skipped: " + trial.why_not)
        sys.exit(77)
    unittest.main(verbosity=2)
