"""headroom.Loader: the batches of a run, in anyone's Python, without a copy."""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
import warnings
from pathlib import Path

import numpy

import headroom
from trial import PLUGINS, Trial

try:
    import torch
except ImportError:
    torch = None
try:
    import h5py
except ImportError:
    h5py = None

BUILD = Path(os.environ["HEADROOM_ROOT"])
SOURCE = os.path.join(PLUGINS, "trial_source.so")  # sequences that are augmented in training
SPLIT = {"data.split": {"train": 0.75, "val": 0.25, "test": 0.0, "seed": 1}}


def trial(**more):
    """120 training samples in 15 batches."""
    words = {"options": {"samples": 160}, "batch_size": 8, "seed": 3, "as_": "numpy", "settings": SPLIT, **more}
    return headroom.Loader(SOURCE, **words)


def copied(batch):
    return {name: numpy.array(values) for name, values in batch.items()}


def epoch_of(loader):
    return [copied(batch) for batch in loader]


class Base(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="headroom-loader-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def assert_same(self, found, expected):
        self.assertEqual(len(found), len(expected))
        for one, other in zip(found, expected):
            self.assertEqual(list(one), list(other))
            for name in one:
                self.assertEqual(one[name].tobytes(), other[name].tobytes())

    def script(self, text, *arguments, **more):
        """Runs Python in a process of its own; its standard output."""
        words = [sys.executable, "-c", textwrap.dedent(text), *map(str, arguments)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


class Batches(Base):
    def test_an_epoch(self):
        with trial() as loader:
            self.assertEqual((len(loader), loader.samples, loader.batch_size), (15, 120, 8))
            x, y, valid = loader.fields
            self.assertEqual((x.name, x.dtype, x.shape, x.unit, x.axes), ("x", "float32", (6, 3), "V", ("time", "channel")))
            self.assertEqual((len(x.mean), len(x.std)), (3, 3))
            self.assertIsNone(y.mean)
            self.assertEqual(valid.dtype, "uint8")
            batches = epoch_of(loader)
            self.assertEqual(len(batches), 15)
            self.assertEqual(batches[0]["x"].shape, (8, 6, 3))
            self.assertEqual(batches[0]["x"].dtype, numpy.float32)
            values = numpy.concatenate([batch["x"] for batch in batches])
            self.assertLess(abs(values.mean()), 0.1, "it is standardised")
            self.assertEqual(loader.epoch, 1)

    def test_every_epoch_has_another_order_and_every_loader_the_same(self):
        one, other = trial(), trial(num_workers=0, cache_size="1 MiB")
        first, second = epoch_of(one), epoch_of(one)
        self.assertNotEqual(first[0]["x"].tobytes(), second[0]["x"].tobytes())
        self.assert_same(epoch_of(other) + epoch_of(other), first + second)

    def test_evaluation_is_in_order(self):
        loader = trial(split="val")
        self.assertEqual(loader.samples, 40)
        self.assert_same(epoch_of(loader), epoch_of(loader))
        self.assertEqual(trial(training=False).samples, 120)

    def test_a_loop_that_is_left_ends_its_epoch(self):
        whole = trial()
        next(iter(whole))
        self.assertEqual(whole.epoch, 0)
        second = epoch_of(whole)
        loader = trial()
        epoch_of(loader)
        self.assert_same(epoch_of(loader), second)

    def test_one_iteration_at_a_time(self):
        loader = trial()
        first, second = iter(loader), iter(loader)
        next(second)
        with self.assertRaisesRegex(headroom.LoaderError, "another iteration"):
            next(first)

    def test_an_iteration_stays_over(self):
        loader = trial()
        batches = iter(loader)
        self.assertEqual(sum(1 for _ in batches), 15)
        self.assertIsNone(next(batches, None))
        self.assertEqual(loader.epoch, 1)


class State(Base):
    def test_goes_on_in_the_middle(self):
        whole = trial()
        expected = epoch_of(whole) + epoch_of(whole)
        loader = trial()
        batches = iter(loader)
        for _ in range(4):
            next(batches)
        state = loader.state_dict()
        self.assertEqual((state["epoch"], state["position"]), (0, 32))
        for resumed in (loader, trial()):
            resumed.load_state_dict(state)
            self.assert_same(epoch_of(resumed) + epoch_of(resumed), expected[4:])

    def test_the_last_batch_leads_to_the_next_epoch(self):
        loader, states = trial(), []
        for _ in loader:
            states.append(loader.state_dict())
        self.assertEqual((states[-1]["epoch"], states[-1]["position"]), (1, 0))

    def test_refuses_the_state_of_another_order(self):
        state = trial(seed=4).state_dict()
        with self.assertRaisesRegex(headroom.LoaderError, "other data, another split, seed"):
            trial().load_state_dict(state)
        state = {**trial().state_dict(), "position": 8}
        with self.assertRaisesRegex(headroom.LoaderError, "position 8 is inside a batch: with batch_size = 3"):
            trial(batch_size=3).load_state_dict(state)


class Memory(Base):
    @staticmethod
    def address(array):
        return array.__array_interface__["data"][0]

    def test_nothing_is_copied(self):
        loader, places = trial(), set()
        for _ in range(3):
            for batch in loader:
                self.assertFalse(batch["x"].flags.owndata)
                places.add(self.address(batch["x"]))
        self.assertLessEqual(len(places), loader._about["slots"], "45 batches share the slots")

    def test_all_batches_may_be_held(self):
        expected = epoch_of(trial())
        loader = trial()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            held = list(loader)
            self.assertEqual(len(list(loader)), 15)
        self.assertEqual([one.category for one in caught], [RuntimeWarning])
        self.assertRegex(str(caught[0].message), r"batches are held at once.* takes [\d.]+ KiB of new memory")
        self.assertEqual(caught[0].filename, __file__)
        self.assertEqual(len({self.address(batch["x"]) for batch in held}), 15)
        loader.close()
        self.assert_same([copied(batch) for batch in held], expected)

    def test_a_closed_loader_says_so(self):
        with trial() as loader:
            batch = next(iter(loader))
        with self.assertRaisesRegex(headroom.LoaderError, "this loader is closed"):
            next(iter(loader))
        loader.close()
        self.assertEqual(batch["x"].shape, (8, 6, 3))

    def test_leaves_nothing_behind(self):
        def counts():
            return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))

        next(iter(trial()))
        time.sleep(0.1)
        before = counts()
        for _ in range(100):
            next(iter(trial()))
        deadline = time.monotonic() + 10  # the kernel lists a thread for a moment after it was joined
        while counts() != before and time.monotonic() < deadline:
            time.sleep(0.001)
        self.assertEqual(counts(), before)


class Refusals(Base):
    def assert_refused(self, sentence, **more):
        with self.assertRaisesRegex(headroom.LoaderError, sentence):
            trial(**more)

    def test_in_the_programs_own_words(self):
        self.assert_refused("unknown option data.options.sample of datasource 'trial_source'; did you mean samples", options={"sample": 3})
        self.assert_refused('data.shuffle is the string "globl".*did you mean "global"', shuffle="globl")
        self.assert_refused("no split 'test' with samples", split="test")
        with self.assertRaisesRegex(headroom.LoaderError, "no plugin 'no_such' in"):
            headroom.Loader("no_such", {})
        with self.assertRaisesRegex(headroom.LoaderError, "trial.toml does not exist"):
            headroom.Loader(self.folder / "trial.toml")

    def test_arguments_of_a_wrong_kind(self):
        with self.assertRaisesRegex(ValueError, "it must be 'torch' or 'numpy'"):
            trial(as_="jax")
        with self.assertRaisesRegex(TypeError, "is a object: an experiment holds bool, int, float"):
            trial(options={"samples": object()})
        with self.assertRaises(ValueError):
            trial(batch_size=0)

    def test_numbers_of_numpy_and_names_of_any_kind_are_values(self):
        self.assertEqual(trial(seed=numpy.int64(3), options={"samples": numpy.array(160)}).samples, 120)
        self.assert_refused('unknown option data.options."a b" of datasource', options={"a b": 1})

    def test_bad_samples(self):
        broken = {"samples": 160, "broken_at": list(range(160))}
        loader = trial(options=broken, normalize="off")
        with self.assertRaisesRegex(headroom.LoaderError, "is damaged"):
            next(iter(loader))
        loader = trial(options={**broken, "broken_at": [5, 7]}, normalize="off", on_bad_sample="skip")
        self.assertEqual(sum(len(batch["x"]) for batch in loader) + loader.skipped, 120)


class Processes(Base):
    WAITS = """
        import sys
        import headroom
        loader = headroom.Loader(sys.argv[1], {}, num_workers=1, normalize="off", as_="numpy")
        try:
            print("waiting", flush=True)
            next(iter(loader))
        except KeyboardInterrupt:
            print("interrupted at", loader.state_dict()["position"], flush=True)
        print(len(next(iter(loader))["x"]))
        """

    def test_ctrl_c_while_it_waits(self):
        # Its first read takes three seconds.
        words = [sys.executable, "-c", textwrap.dedent(self.WAITS), SOURCE]
        child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, "HEADROOM_TEST_READ": "sleep"})
        self.addCleanup(child.kill)
        self.assertEqual(child.stdout.readline(), "waiting\n")
        time.sleep(0.5)  # most likely it waits by now; the outcome is the same before
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=300)
        self.assertEqual(child.returncode, 0)
        self.assertEqual(out, "interrupted at 0\n1\n")

    def test_a_forked_child_is_told(self):
        loader = trial()
        held = next(iter(loader))
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            child = os.fork()
        if child == 0:
            sentence = "nothing was refused"
            try:
                next(iter(loader))
            except headroom.LoaderError as problem:
                sentence = str(problem)
            del held
            loader.close()
            os.write(writing, sentence.encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            self.assertRegex(pipe.read(), "this loader was opened in process .*open a loader in each process")
        os.waitpid(child, 0)
        self.assertEqual(sum(1 for _ in loader), 15)

    @unittest.skipIf(h5py is None, "h5py is not installed")
    def test_beside_h5py(self):
        """Two builds of libhdf5 in one process, whichever is imported first."""
        file = self.folder / "a.h5"
        with h5py.File(file, "w") as written:
            for name in ("a", "b", "c", "d"):
                group = written.create_group(f"data/{name}")
                group["x"] = numpy.arange(60, dtype=numpy.float32).reshape(20, 3)
                group.create_dataset("z", data=numpy.arange(20, dtype=numpy.int64), chunks=(5,), compression="gzip")
        for first, second in (("h5py", "headroom"), ("headroom", "h5py")):
            out = self.script(
                f"""
                import {first}
                import {second}
                import sys
                file = sys.argv[1]
                options = {{"path": file, "groups": "/data/*", "fields": [{{"name": "x", "dataset": "x", "rows": "row"}},
                            {{"name": "z", "dataset": "z", "rows": "row"}}]}}
                loader = headroom.Loader("hdf5", options, batch_size=7, normalize="off", as_="numpy",
                                         settings={{"data.split": {{"train": 1.0}}}})
                total = 0
                for batch in loader:
                    with h5py.File(file) as beside:
                        z = beside["data/a/z"][:]
                    assert (batch["x"][:, 1] == 3 * batch["z"] + 1).all()
                    total += int(batch["z"].sum())
                assert total == 4 * z.sum(), total
                print("equal")
                """, file)
            self.assertEqual(out, "equal\n")


@unittest.skipIf(torch is None, "torch is not installed")
class Torch(Base):
    def test_the_same_values_as_tensors(self):
        expected = epoch_of(trial())
        loader = trial(as_="torch")
        for batch, other in zip(loader, expected):
            self.assertEqual(batch["valid"].dtype, torch.uint8)
            self.assertEqual(batch["x"].shape, (8, 6, 3))
            self.assertEqual(batch["x"].numpy().tobytes(), other["x"].tobytes())
            batch["x"] += 1.0  # they may be written to
        places = {batch["x"].data_ptr() for batch in loader}
        self.assertLessEqual(len(places), loader._about["slots"])

    def test_autograd_keeps_what_it_needs(self):
        loader, weight = trial(as_="torch"), torch.ones(3, requires_grad=True)
        loss, kept = 0.0, 0.0
        for batch in loader:
            loss = loss + (batch["x"] * weight).sum()
            kept += batch["x"].double().sum(dim=(0, 1))
            if loader._place().held > 3:  # a graph over several batches
                loss.backward()
                loss = 0.0
        if loss != 0.0:
            loss.backward()
        self.assertTrue(torch.allclose(weight.grad.double(), kept, rtol=1e-4, atol=1e-3))


@unittest.skipIf(torch is None, "torch is not installed")
@unittest.skipUnless((BUILD / "lib/headroom/python.so").exists(), "this build has no trainer")
class BesideARun(Trial):
    def setUp(self):
        super().setUp()
        Path("model.py").write_text(textwrap.dedent(f"""
            import torch

            class Net(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layer = torch.nn.Linear(3, 1)

                def forward(self, x):
                    return self.layer(x).squeeze(2)

            def loss(outputs, batch):
                if torch.is_grad_enabled():
                    with open({str(self.folder / "seen")!r}, "ab") as file:
                        file.write(batch["x"].numpy().tobytes() + batch["y"].numpy().tobytes())
                return (outputs - batch["y"]).square().mean(1)
            """))

    def test_both_see_the_same_batches(self):
        """A run whose model writes down its batches, and the loader of the same file."""
        run = self.run_trial({**self.of_python(loss="loss"), "train": {"epochs": 2, "micro_batch": 8}})
        seen = Path("seen").read_bytes()
        loader = headroom.Loader(run.folder / "experiment.toml", as_="numpy", plugin_dirs=[PLUGINS])
        expected = b"".join(batch["x"].tobytes() + batch["y"].tobytes() for batch in epoch_of(loader) + epoch_of(loader))
        self.assertEqual(len(expected), 30 * 8 * (6 * 3 + 6) * 4)
        # What came before are samples that the runner made up to try the module.
        self.assertEqual(seen[-len(expected):], expected)

    def test_the_runs_module_has_the_loss_that_was_measured(self):
        run = self.run_trial({**self.of_python(), "train": {"epochs": 2}})
        module, errors = run.load_model("last"), []
        with torch.no_grad():
            for batch in headroom.Loader(run.folder / "experiment.toml", split="val", plugin_dirs=[PLUGINS]):
                errors.append((module(batch["x"]) - batch["y"]).square().flatten())
        self.assertAlmostEqual(float(torch.cat(errors).mean()), run.summary["metrics"]["val/loss"], places=6)


if __name__ == "__main__":
    unittest.main(verbosity=2)
