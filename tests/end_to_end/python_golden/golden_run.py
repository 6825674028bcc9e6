"""What act_golden.py, tds_golden.py and vrt_golden.py share: golden numbers of a reference as samples, and a run that is held against them.
Needs torch."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../bench/peers"))
import safetensors_file  # noqa: E402

load = safetensors_file.load


class Rows:
    """Samples: a row of each field, one after the other."""

    def __init__(self, fields):
        self.fields = fields

    def __len__(self):
        return len(next(iter(self.fields.values())))

    def __getitem__(self, index):
        return {name: values[index] for name, values in self.fields.items()}


def hold(found, expected, limits):
    """Exits with 1 where a number is farther from the expected one than `limits(name)` of the tensor's largest, which it prints."""
    if not expected:
        sys.exit("nothing to hold a run against")
    bad = 0
    for name, wanted in expected.items():
        largest = wanted.double().abs().max().item()
        difference = (found[name].double() - wanted.double()).abs().max().item()
        if difference > limits(name) * largest + 1e-9:
            bad += 1
            print(f"{name}: {difference:.2e} from the golden numbers, of which {largest:.2e} is the largest")
    print(f"{len(expected)} tensors, {bad} of them are not the golden ones")
    sys.exit(bad > 0)


def result_of(run):
    """(weights at the end, mean loss)"""
    with open(os.path.join(run, "summary.json")) as file:
        return load(os.path.join(run, "checkpoints/last/model.safetensors")), json.load(file)["metrics"]["train/loss"]
