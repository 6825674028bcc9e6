"""What tests of the Python package share: a folder of their own with trial.toml, an experiment of the trial plugins
(tests/runner/train/trial) that takes a second: 120 training samples, 15 windows an epoch, 3 epochs."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import headroom

PLUGINS = os.environ["HEADROOM_TEST_PLUGIN_DIR"]

TRIAL = """[experiment]
name = "trial"
seed = 3
device = "cpu"
threads = 1

[model]
plugin = "trial_model"

[model.options]
dropout = 0.1

[data]
source = "trial_source"
num_workers = 1
max_samples_for_normalize = 32
split = { train = 0.75, val = 0.25, test = 0.0, seed = 1 }

[data.options]
samples = 160

[train]
epochs = 3
batch_size = 8
log_every = 4
optimizer = { name = "adamw", lr = 0.01, weight_decay = 0.01 }

[memory]
log_every = 10

[checkpoint]
every_steps = 5
"""


class Trial(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="headroom-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        Path("trial.toml").write_text(TRIAL)
        self.said = []

    def run_trial(self, experiment="trial.toml", **options):
        options.setdefault("plan", False)
        options.setdefault("progress", self.said.append)
        if "resume" in options:
            experiment = None
        return headroom.run(experiment, plugin_dirs=[PLUGINS], **options)

    def of_python(self, **options):
        """The trial with the class Net of model.py as its model, whose target is y."""
        net = {"file": "model.py", "class": "Net", "inputs": ["x"], "target": "y", "loss": "mse", "python": sys.executable}
        model = {"plugin": "python", "options": {**net, **options}}
        return {"extends": str(self.folder / "trial.toml"), "remove": ["model.options"], "model": model}

    def sweep_trial(self, **values):
        experiment = {"extends": "trial.toml", "sweep": values}
        return headroom.sweep(experiment, plugin_dirs=[PLUGINS], plan=False, progress=self.said.append, jobs=2)

    def pause(self, where="train:22"):
        """The file that the model of the next run makes when it gets there; it waits until the file is gone."""
        waiting = self.folder / "waiting"
        os.environ["HEADROOM_TEST_PAUSE"] = f"{where}:{waiting}"
        self.addCleanup(os.environ.pop, "HEADROOM_TEST_PAUSE", None)
        return waiting

    def when_there(self, file, act):
        """Calls `act` in another thread as soon as there is that file."""

        def wait():
            if self.eventually(file.exists):
                act()

        thread = threading.Thread(target=wait)
        thread.start()
        self.addCleanup(thread.join)

    @staticmethod
    def eventually(condition):
        """False after a minute."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if condition():
                return True
            time.sleep(0.02)
        return False

    def script(self, text, **options):
        """A Python of its own, in a process group of its own, that runs `text`."""
        Path("script.py").write_text("import headroom\n" + text)
        here = {**os.environ, "TMPDIR": str(self.folder)}  # one that is killed leaves files behind
        process = subprocess.Popen([sys.executable, "-B", "script.py"], start_new_session=True, env=here, **options)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process
