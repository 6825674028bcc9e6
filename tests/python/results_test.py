"""What a run's and a sweep's files give as arrays. Needs numpy; DataFrames need pandas."""

import unittest
from pathlib import Path

import numpy

import headroom
from headroom import tables, tensors
from trial import Trial

try:
    import pandas
except ImportError:
    pandas = None


class Results(Trial):
    def test_metrics_have_a_row_a_step(self):
        run = self.run_trial()
        metrics = run.metrics()
        self.assertEqual(list(metrics)[:2], ["step", "epoch"])
        self.assertEqual(list(metrics["step"]), sorted(set(metrics["step"])))
        self.assertEqual({values.shape for values in metrics.values()}, {metrics["step"].shape})
        self.assertEqual(metrics["step"].dtype, "int64")
        self.assertEqual(metrics["val/loss"].dtype, "float64")
        at_end = metrics["step"] == 45
        self.assertEqual(metrics["val/loss"][at_end], run.summary["metrics"]["val/loss"])
        self.assertTrue(numpy.isnan(metrics["val/loss"][metrics["step"] == 4]).all())
        steps, values = run.curve("val/loss")
        self.assertEqual(list(steps), [15, 30, 45])
        self.assertEqual(values[-1], run.summary["metrics"]["val/loss"])
        with self.assertRaisesRegex(KeyError, "train/loss_step"):
            run.curve("val/lost")
        rows = (run.folder / "metrics.csv").read_text()
        (run.folder / "metrics.csv").write_text(rows + "60,4,val,loss,0.")  # it is being written
        self.assertEqual(len(run.curve("val/loss")[0]), 3)

    def test_memory_adds_up(self):
        run = self.run_trial()
        memory = run.memory()
        self.assertEqual(list(memory["step"]), [0, 10, 20, 30, 40])
        self.assertEqual(memory["time"].dtype, "datetime64[ms]")
        self.assertEqual(memory["held_bytes"].dtype, "int64")
        owners = "parameters gradients optimizer activations batches cache metrics checkpoint reads scratch slack other"
        held = sum(memory[owner + "_bytes"] for owner in owners.split())
        self.assertEqual(list(held), list(memory["held_bytes"]))

    @unittest.skipIf(pandas is None, "this Python has no pandas")
    def test_frames_are_the_same(self):
        run = self.run_trial(set={"train.epochs": 1})
        frame = run.metrics(pandas=True)
        self.assertEqual(frame["val/loss"].dropna().iloc[-1], run.summary["metrics"]["val/loss"])
        self.assertEqual(len(run.memory(pandas=True)), len(run.memory()["step"]))

    def test_of_a_sweep_have_a_row_a_trial(self):
        sweep = self.sweep_trial(**{"model.options.mistake": ["none", "not_a_number"], "train.batch_size": [8]})
        table = sweep.table()
        self.assertEqual(list(table["state"]), ["finished", "failed"])
        self.assertEqual(list(table["model.options.mistake"]), ["none", "not_a_number"])
        self.assertEqual(list(table["train.batch_size"]), [8, 8])
        self.assertEqual(table["metric"][0], sweep.best().summary["best"]["value"])
        self.assertTrue(numpy.isnan(table["metric"][1]))
        self.assertEqual(table["why"][0], "")
        self.assertIn("the loss is nan", table["why"][1])
        if pandas is not None:
            self.assertEqual(list(sweep.table(pandas=True)["state"]), ["finished", "failed"])

    def test_of_questions_to_the_model(self):
        run = self.run_trial()
        report = run.evaluate("val")
        self.assertEqual(report["metrics"]["val/loss"], run.summary["best"]["value"])
        self.assertEqual(report["samples"], 40)
        self.assertEqual(run.evaluate("train", which=40)["step"], 40)
        with self.assertRaises(headroom.RunError) as caught:
            run.evaluate("test")
        self.assertIn("the data has no split 'test' with samples", caught.exception.sentence)
        with self.assertRaises(headroom.RunError) as caught:
            run.predict("nowhere.hdf5")
        self.assertIsNotNone(caught.exception.run)

    def test_lines_end_at_line_breaks_alone(self):
        file = Path("lines.jsonl")
        file.write_text('{"error": "two\u2028parts\x85"}\n{"step": 2}\n{"step": ', encoding="utf-8")
        self.assertEqual(tables.json_lines(file), [{"error": "two\u2028parts\x85"}, {"step": 2}])
        self.assertEqual(tables.json_lines(Path("nowhere.jsonl")), [])

    def test_tensors_of_a_file(self):
        run = self.run_trial(set={"train.epochs": 1})
        weights = tensors.numpy_arrays(run.checkpoint("last") / "model.safetensors")
        self.assertEqual(weights["hidden.weight"].shape[1], 3)
        self.assertTrue(numpy.isfinite(weights["hidden.weight"]).all())
        for damage in (b"", b"\xff" * 8, b"\x02\0\0\0\0\0\0\0{]", b"\x02\0\0\0\0\0\0\0[]"):
            Path("damaged.safetensors").write_bytes(damage)
            with self.assertRaisesRegex(ValueError, "damaged.safetensors is no safetensors file"):
                tensors.numpy_arrays(Path("damaged.safetensors"))


if __name__ == "__main__":
    unittest.main()
