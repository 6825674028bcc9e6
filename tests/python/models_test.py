"""Weights and modules of runs. Needs the torch that the host is built with."""

import os
import random
import sys
import unittest
from pathlib import Path

import torch

import headroom
from trial import Trial

MODEL = """import random

import torch
from torch import nn

import layers

random.seed(5)
torch.manual_seed(5)


class Net(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.first = nn.Linear(3, hidden)
        self.first_again = self.first
        self.dropout = nn.Dropout(0.5)
        self.last = layers.Last(hidden, 1)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        if self.training:
            self.calls = self.calls + 1
        return self.last(self.dropout(torch.relu(self.first(x))))
"""
LAYERS = "from torch import nn\n\n\nclass Last(nn.Linear):\n    pass\n"


class Models(Trial):
    def python_trial(self, **values):
        Path("model.py").write_text(MODEL)
        Path("layers.py").write_text(LAYERS)
        toy = os.path.join(os.environ["HEADROOM_ROOT"], "examples/toy_source.so")
        experiment = self.of_python(args={"hidden": 8})
        experiment.update(data={"source": toy}, train={"epochs": 2})
        return self.run_trial(experiment, set=values)

    def test_the_averages_are_what_an_evaluation_uses(self):
        run = self.run_trial(set={"train.ema.decay": 0.9})
        averages, weights = run.load_state_dict("last"), run.load_state_dict("last", average=False)
        self.assertEqual(set(averages), set(weights))
        self.assertFalse(torch.equal(averages["hidden.weight"], weights["hidden.weight"]))
        self.assertTrue(torch.equal(averages["seen"], weights["seen"]))
        self.assertEqual(weights["hidden.weight"].dtype, torch.float32)
        weights["hidden.weight"].zero_()  # a copy of this process's own
        self.assertFalse(
            torch.equal(run.load_state_dict("last", average=False)["hidden.weight"], weights["hidden.weight"])
        )
        with self.assertRaisesRegex(ValueError, "load_state_dict"):
            run.load_model()

    def test_a_module_has_the_runs_weights_and_leaves_this_python_as_it_was(self):
        run = self.python_trial()
        generator, pythons = torch.get_rng_state(), random.getstate()
        module = run.load_model("last")
        self.assertTrue(torch.equal(generator, torch.get_rng_state()))
        self.assertEqual(pythons, random.getstate())
        self.assertFalse(module.training)
        self.assertEqual(float(module.calls), 30)
        state = run.load_state_dict("last")
        self.assertTrue(torch.equal(module.first.weight, state["first.weight"]))
        x = torch.randn(5, 3)
        expected = (
            torch.relu(x @ state["first.weight"].T + state["first.bias"]) @ state["last.weight"].T + state["last.bias"]
        )
        torch.testing.assert_close(module(x), expected)

    def test_a_second_run_brings_its_own_files(self):
        first = self.python_trial()
        mine = sys.modules["layers"] = type(sys)("layers")  # of this Python's own, from elsewhere
        mine.__file__ = "/elsewhere/layers.py"
        self.addCleanup(sys.modules.pop, "layers", None)
        one = first.load_model()
        os.mkdir("other")
        os.chdir("other")
        second = self.python_trial()
        Path("layers.py").write_text(LAYERS.replace("pass", "which = 2"))
        other = second.load_model()
        self.assertFalse(hasattr(type(one.last), "which"))
        self.assertEqual(type(other.last).which, 2)
        self.assertIs(sys.modules["layers"], mine)

    def test_double_precision_stays(self):
        run = self.python_trial(**{"train.precision": "fp64", "train.epochs": 1})
        module = run.load_model()
        self.assertEqual(module.first.weight.dtype, torch.float64)
        self.assertTrue(torch.equal(module.first.weight, run.load_state_dict()["first.weight"]))

    def test_a_file_that_has_changed_is_said(self):
        run = self.python_trial(**{"train.epochs": 1})
        Path("model.py").write_text(MODEL.replace("self.last", "self.head"))
        with self.assertRaisesRegex(RuntimeError, "head.weight"):
            run.load_model()
        Path("model.py").unlink()
        with self.assertRaisesRegex(FileNotFoundError, "model.py"):
            run.load_model()


if __name__ == "__main__":
    unittest.main()
