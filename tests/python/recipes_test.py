"""The recipes of docs/python.md with the real packages: Lightning and Accelerate, where they are installed."""

import importlib.util
import os
import sys
import tempfile
import unittest
import warnings

import torch
from torch import nn

import headroom
from headroom import guard

warnings.filterwarnings("ignore")


def has(name):
    return importlib.util.find_spec(name) is not None


def model():
    torch.manual_seed(6)
    return nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2)).double()


def data(samples=96):
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(samples, 4, dtype=torch.float64, generator=generator)
    return torch.utils.data.TensorDataset(x, torch.sin(x[:, :2]))


def loader(batch):
    return torch.utils.data.DataLoader(data(), batch_size=batch)


def mean(module, batch):
    return nn.functional.mse_loss(module(batch[0]), batch[1])


def plainly_trained(window, epochs, rates=(), clip=None):
    """In a loop without headroom: batches that are windows."""
    module = model()
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.05)
    schedules = [rate(optimizer) for rate in rates]
    for _ in range(epochs):
        for batch in loader(window):
            optimizer.zero_grad()
            mean(module, batch).backward()
            if clip:
                nn.utils.clip_grad_norm_(module.parameters(), clip)
            optimizer.step()
            for schedule in schedules:
                schedule.step()
    return module


class Recipe(unittest.TestCase):
    def tearDown(self):
        guard._library().hr_guard_fail(-1)

    def assert_alike(self, one, other):
        for left, right in zip(one.parameters(), other.parameters()):
            self.assertLess(float((left - right).detach().abs().max()), 1e-10)


@unittest.skipUnless(has("lightning") or has("pytorch_lightning"), "neither lightning nor pytorch_lightning is installed")
class Lightning(Recipe):
    @classmethod
    def setUpClass(cls):
        from headroom import lightning

        cls.recipe, cls.pl = lightning, lightning.pl
        headroom.limit("2 GiB")

    def module(self, fail_at=(), rate=None):
        class Module(self.pl.LightningModule):
            def __init__(self):
                super().__init__()
                self.net, self.calls = model(), 0

            def training_step(self, batch, batch_idx):
                self.calls += 1
                if self.calls in fail_at:
                    guard._library().hr_guard_fail(9)
                loss = mean(self.net, batch)
                self.log("loss", loss)
                return loss

            def configure_optimizers(self):
                optimizer = torch.optim.AdamW(self.parameters(), lr=0.05)
                if rate is None:
                    return optimizer
                return {"optimizer": optimizer, "lr_scheduler": {"scheduler": rate(optimizer), "interval": "step"}}

        return Module()

    def fit(self, module, callbacks, folder, batch=8, ckpt_path=None, **more):
        more = {"max_epochs": 2, "enable_checkpointing": False, **more}
        trainer = self.pl.Trainer(accelerator="cpu", devices=1, logger=False, enable_progress_bar=False, enable_model_summary=False,
                                  callbacks=callbacks, default_root_dir=folder, **more)
        trainer.fit(module, loader(batch), ckpt_path=ckpt_path, **self.trusting(trainer))
        return trainer

    def test_a_module_trains_as_in_a_loop_of_whole_windows(self):
        rate = lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.7)
        with tempfile.TemporaryDirectory() as folder:
            module = self.module(fail_at=(3, 11), rate=rate)
            windows = self.recipe.Windows(window=32)
            trainer = self.fit(module, [windows], folder, batch=48, gradient_clip_val=0.5)
        self.assertGreater(module.calls, 8)  # pieces that were taken again
        self.assertEqual(trainer.global_step, 6)
        self.assertTrue(module.automatic_optimization)
        self.assertNotIn("training_step", vars(module))
        self.assert_alike(module.net, plainly_trained(32, 2, [rate], clip=0.5))

    def test_the_last_batch_of_an_epoch_ends_its_window(self):
        with tempfile.TemporaryDirectory() as folder:
            trainer = self.fit(self.module(), [self.recipe.Windows(window=64)], folder)
        self.assertEqual(trainer.global_step, 4)

    def test_a_checkpoint_goes_on_as_if_it_had_not_stopped(self):
        with tempfile.TemporaryDirectory() as folder:
            whole = self.module()
            self.fit(whole, [self.recipe.Windows(window=32)], folder, max_epochs=4)
            first = self.module()
            saves = self.pl.callbacks.ModelCheckpoint(dirpath=folder, save_last=True, every_n_epochs=1)
            self.fit(first, [self.recipe.Windows(window=32), saves], folder, max_epochs=2, enable_checkpointing=True)
            self.assertTrue(os.path.exists(os.path.join(folder, "last.ckpt")))
            second = self.module()
            trainer = self.fit(second, [self.recipe.Windows(window=32)], folder, max_epochs=4, ckpt_path=os.path.join(folder, "last.ckpt"))
            self.assertEqual(trainer.global_step, 12)
            self.assert_alike(second, whole)

    @staticmethod
    def trusting(trainer):
        import inspect

        return {"weights_only": False} if "weights_only" in inspect.signature(trainer.fit).parameters else {}

    def test_what_it_cannot_do_is_a_sentence(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(ValueError, "accumulate_grad_batches is not 1"):
                self.fit(self.module(), [self.recipe.Windows(window=32)], folder, accumulate_grad_batches=2)
            with self.assertRaisesRegex(ValueError, "gradient_clip_algorithm"):
                self.fit(self.module(), [self.recipe.Windows(window=32)], folder, gradient_clip_val=1.0, gradient_clip_algorithm="value")


@unittest.skipUnless(has("accelerate"), "accelerate is not installed")
class Accelerate(Recipe):
    def test_the_loop_of_the_page(self):
        from accelerate import Accelerator

        headroom.limit("2 GiB")
        accelerator = Accelerator(cpu=True)
        module = model()
        network, optimizer, batches = accelerator.prepare(module, torch.optim.AdamW(module.parameters(), lr=0.05), loader(48))
        steps = headroom.Accumulator(network, optimizer, window=32, loss=mean, backward=accelerator.backward)
        for epoch in range(2):
            for at, batch in enumerate(batches):
                guard._library().hr_guard_fail(20 if epoch == 0 and at == 1 else -1)
                steps.step(batch)
            steps.finish()
        self.assertEqual((steps.windows, steps.retries), (6, 1))
        self.assert_alike(module, plainly_trained(32, 2))


if __name__ == "__main__":
    result = unittest.main(verbosity=2, exit=False).result
    skipped_all = result.testsRun == len(result.skipped) and result.wasSuccessful()
    sys.exit(77 if skipped_all else not result.wasSuccessful())
