"""headroom.run() and headroom.sweep() with the built program. Needs Python alone."""

import os
import signal
import subprocess
import sys
import threading
import time
import types
import unittest
from pathlib import Path
from unittest import mock

import headroom
from headroom import command, installation, toml_text
from headroom import progress as progress_module
from trial import PLUGINS, Trial

CALL = f'headroom.run("trial.toml", plugin_dirs=[{PLUGINS!r}], plan=False)\n'


class ARun(Trial):
    def test_ends_with_its_folder_and_what_it_said(self):
        run = self.run_trial(set={"train.epochs": 1, "model.options.hidden": 4}, out="elsewhere")
        self.assertEqual(run.folder.parent, self.folder.resolve() / "elsewhere/trial")
        self.assertEqual(run.status, "finished")
        self.assertEqual(run.summary["steps"], 15)
        self.assertIn("finished: 15 steps, 1 epochs", run.log)
        self.assertEqual(run.log.splitlines(), [line.rstrip() for line in self.said if line.strip()])
        self.assertIn("finished", repr(run))
        self.assertIn("<td>finished</td>", run._repr_html_())
        self.assertEqual(headroom.Run.latest("elsewhere"), run)
        self.assertEqual(headroom.Run.latest("elsewhere/trial"), run)
        self.assertEqual([event["kind"] for event in run.events("end")], ["end"])
        self.assertEqual(list(run.checkpoints), [10, 15])
        self.assertEqual(run.checkpoint("last"), run.checkpoints[15].resolve())
        for module in ("torch", "numpy"):
            self.assertNotIn(module, sys.modules)

    def test_of_a_dict_has_paths_of_the_working_folder(self):
        os.mkdir("beside")
        experiment = {
            "extends": "trial.toml",
            "train": {"epochs": 1},
            "data": {"options": {"path": "made"}, "synth": {"seed": 7}},
        }
        run = self.run_trial(experiment)
        self.assertEqual(Path("made/seed.txt").read_text(), "7\n")
        self.assertEqual(run.status, "finished")
        os.chdir("beside")
        again = self.run_trial(experiment, cwd="..")
        self.assertEqual(again.summary["identity"], run.summary["identity"])
        self.assertEqual(again.folder.parent, run.folder.parent)

    def test_that_is_refused_says_the_programs_sentence(self):
        for progress in (None, False, self.said.append):
            with self.assertRaises(headroom.RunError) as caught:
                self.run_trial({"extends": "trial.toml", "train": {"epochs": 0}}, progress=progress)
            error = caught.exception
            self.assertEqual(error.exit_code, 2)
            self.assertTrue(
                error.sentence.startswith("[config] --set train.epochs=0: train.epochs is the integer 0"), error
            )
            self.assertIsNone(error.run)
            self.assertEqual(error.postmortem, "")
        with self.assertRaises(headroom.RunError) as caught:
            self.run_trial("nowhere.toml", check=False)  # there is no Run to give
        self.assertIn("nowhere.toml does not exist", caught.exception.sentence)
        with self.assertRaises(TypeError):
            self.run_trial(set={"train.epochs": None})
        with self.assertRaises(TypeError):
            headroom.run()
        self.assertFalse(os.path.exists("runs"))

    def test_that_fails_keeps_its_folder(self):
        with self.assertRaises(headroom.RunError) as caught:
            self.run_trial(set={"model.options.mistake": "not_a_number"})
        error = caught.exception
        self.assertEqual(error.exit_code, 7)
        self.assertEqual(error.run.status, "failed")
        self.assertEqual(error.sentence, error.run.summary["error"])
        self.assertIn(str(error.run.folder), str(error))
        run = self.run_trial(set={"model.options.mistake": "not_a_number"}, check=False)
        self.assertEqual(run.status, "failed")

    def test_that_is_killed_and_resumed_ends_as_the_undisturbed_one(self):
        whole = self.run_trial(out="whole")
        waiting = self.pause()
        self.when_there(
            waiting,
            lambda: os.kill(int(next(Path("runs/trial").iterdir()).joinpath("lock").read_text()), signal.SIGKILL),
        )
        with self.assertRaises(headroom.RunError) as caught:
            self.run_trial()
        error = caught.exception
        self.assertEqual(error.exit_code, 137)
        self.assertIn("SIGKILL", error.sentence)
        self.assertIn("go on with: headroom run --resume", error.postmortem)
        self.assertEqual(error.run.status, "ended_badly")
        self.assertEqual(error.run.postmortem["ended"]["kind"], "killed")
        waiting.unlink()
        del os.environ["HEADROOM_TEST_PAUSE"]
        run = self.run_trial(resume=error.run)
        self.assertEqual(run, error.run)
        self.assertEqual(run.status, "finished")
        self.assertIn("bit-equal to an undisturbed run", run.log)
        for name in ("model", "state"):
            weights = [r.checkpoint("last").joinpath(name + ".safetensors").read_bytes() for r in (run, whole)]
            self.assertEqual(*weights)

    def test_at_its_timeout_saves_and_can_go_on(self):
        began = time.monotonic()
        self.run_trial(out="whole")
        seconds = time.monotonic() - began + 2  # by then it waits in its step
        waiting = self.pause()
        timer = threading.Timer(seconds + 1, waiting.unlink)
        timer.start()
        self.addCleanup(timer.join)
        with self.assertRaises(headroom.RunError) as caught:
            self.run_trial(timeout=seconds)
        self.assertEqual(caught.exception.exit_code, 75)
        self.assertIn("timeout", caught.exception.sentence)
        self.assertEqual(caught.exception.run.status, "resumable")
        del os.environ["HEADROOM_TEST_PAUSE"]
        self.assertEqual(self.run_trial(resume=caught.exception.run.folder).status, "finished")

    def test_until_an_epoch_is_no_failure(self):
        run = self.run_trial(until_epoch=1)
        self.assertEqual((run.status, run.summary["epochs"]), ("resumable", 1))
        self.assertEqual(self.run_trial(resume=str(run.folder)).summary["epochs"], 3)

    def test_by_two_processes_is_one_run(self):
        same = {"model.options.count_calls": False, "train.epochs": 1}
        run = self.run_trial(nproc=2, set=same)
        self.assertEqual(run.status, "finished")
        self.assertEqual(len(list(Path("runs/trial").iterdir())), 1)


class CtrlC(Trial):
    def test_goes_to_the_program_once_which_saves(self):
        waiting = self.pause()
        # A terminal and a notebook send it to all processes of the group.
        process = self.script(CALL, stderr=subprocess.PIPE)
        self.assertTrue(self.eventually(waiting.exists))
        run = headroom.Run.latest("runs/trial")
        self.assertEqual(run.status, "running")
        os.killpg(process.pid, signal.SIGINT)
        self.assertTrue(self.eventually(lambda: self.has_been_told(process)))
        waiting.unlink()
        said = process.communicate()[1].decode()
        self.assertEqual(process.returncode, -signal.SIGINT)
        self.assertIn(f"KeyboardInterrupt: headroom.run(resume='{run.folder.resolve()}') goes on", said)
        self.assertEqual(run.status, "interrupted", said)
        self.assertEqual(run.summary["steps"], 23)
        del os.environ["HEADROOM_TEST_PAUSE"]
        self.assertEqual(self.run_trial(resume=run).summary["steps"], 45)

    def has_been_told(self, process):
        """The program's answer to the first Ctrl-C, which comes at once."""
        self.said.append(os.read(process.stderr.fileno(), 65536).decode())
        return "stopping once this step is done" in "".join(self.said)

    def test_twice_ends_it_at_once(self):
        waiting = self.pause()
        process = self.script(CALL, stderr=subprocess.PIPE)
        self.assertTrue(self.eventually(waiting.exists))
        os.killpg(process.pid, signal.SIGINT)
        self.assertTrue(self.eventually(lambda: self.has_been_told(process)))
        os.killpg(process.pid, signal.SIGINT)
        process.communicate()
        self.assertEqual(process.returncode, -signal.SIGINT)
        self.assertTrue(waiting.exists(), "the step was waited for")
        self.assertNotEqual(headroom.Run.latest("runs/trial").status, "running")

    def test_is_pythons_own_again_afterwards(self):
        self.run_trial(set={"train.epochs": 1})
        with self.assertRaises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            self.eventually(lambda: False)

    def test_a_python_that_is_killed_leaves_a_run_that_was_saved(self):
        waiting = self.pause()
        process = self.script(CALL, stderr=subprocess.DEVNULL)
        self.assertTrue(self.eventually(waiting.exists))
        process.kill()
        process.wait()
        waiting.unlink()
        run = headroom.Run.latest("runs/trial")
        self.assertTrue(self.eventually(lambda: run.status == "resumable"), run.status)
        self.assertIn("last", os.listdir(run.folder / "checkpoints"))


class Progress(Trial):
    def test_on_a_terminal_is_the_programs_bar(self):
        ours, theirs = os.openpty()
        self.addCleanup(os.close, ours)
        os.environ["TERM"] = "xterm"
        process = self.script(CALL + 'headroom.run("trial.toml", set={"train.epochs": 0})\n', stderr=theirs)
        os.close(theirs)
        text = b""
        while True:
            try:
                text += os.read(ours, 65536)
            except OSError:  # all have closed the other end
                break
        self.assertEqual(process.wait(), 1)
        text = text.decode()
        self.assertIn("\r\x1b[KEpoch 3/3: ", text)
        self.assertIn("RunError: [config] --set train.epochs=0: ", text)

    def test_in_a_notebook_is_one_line_that_is_rewritten(self):
        shown, handles = [], []

        class Handle:
            def update(self, data, raw):
                shown.append(data["text/plain"])

        def display(data, raw, display_id):
            handles.append(Handle())
            handles[-1].update(data, raw)
            return handles[-1]

        ipython, module = types.ModuleType("IPython"), types.ModuleType("IPython.display")
        ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
        ipython.display, module.display = module, display
        sys.modules.update({"IPython": ipython, "IPython.display": module})
        self.addCleanup(sys.modules.pop, "IPython")
        self.addCleanup(sys.modules.pop, "IPython.display")
        run = self.run_trial(progress=None)
        self.assertEqual(len(handles), 1)
        self.assertRegex(shown[-1], r"^finished: 45 steps, 3 epochs, ")
        self.assertFalse([line for line in shown if "\x1b" in line or "\r" in line or "\n" in line])
        self.assertIn("Epoch 3/3: ", run.log)
        self.assertNotIn("\x1b", run.log)

    def test_a_line_that_is_rewritten_counts_as_its_last_words(self):
        lines = progress_module.plain_lines("a\r\n\r\x1b[32m50%\x1b[0m\x1b[K\r100%\x1b[K\r\x1b[Kdone\nend")
        self.assertEqual(lines, ["a", "done", "end"])

    def test_whoever_shows_it_may_fail_and_the_run_stops(self):
        def fail(line):
            raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError):
            self.run_trial(progress=fail)
        for run in Path("runs").glob("*/*"):
            self.assertNotEqual(headroom.Run(run).status, "running")


class AnyProgram(Trial):
    """What call() promises whatever the program does; here it is a few lines of a shell."""

    def call(self, lines, **options):
        file = self.folder / "program"
        file.write_text("#!/bin/bash\n" + lines)
        file.chmod(0o755)
        with mock.patch.object(installation, "program", str(file)):
            return command.call([], **options)

    def test_that_says_much_while_it_ends_ends_although_its_progress_cannot_be_shown(self):
        def fail(line):
            shown.append(line)
            raise ZeroDivisionError

        shown = []
        with self.assertRaises(ZeroDivisionError):
            self.call(
                "trap 'for i in {1..20000}; do echo saving $i; done; touch saved; exit' TERM\n"
                "echo begun\nwhile :; do sleep 0.05; done\n",
                progress=fail,
            )
        self.assertTrue(Path("saved").exists())
        self.assertEqual(shown, ["begun"])

    def test_that_does_not_end_at_its_timeout_leaves_no_process(self):
        with mock.patch.object(command, "_SAVING_SECONDS", 0.5):
            ended = self.call("trap '' TERM\nsleep 1000 &\necho $!\nwait\n", progress=False, timeout=1)
        self.assertEqual((ended.exit_code, ended.timed_out), (137, True))
        self.assertTrue(self.eventually(lambda: not self.runs(int(ended.said))))

    @staticmethod
    def runs(process):
        try:
            return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        except FileNotFoundError:
            return False


class ASweep(Trial):
    def test_has_its_trials_with_their_settings(self):
        sweep = self.sweep_trial(**{"train.batch_size": [4, 8], "model.options.hidden": [4]})
        self.assertEqual(len(sweep), 2)
        self.assertEqual(set(sweep.keys), {"train.batch_size", "model.options.hidden"})
        self.assertEqual([run.settings["train.batch_size"] for run in sweep.trials], [4, 8])
        self.assertEqual([run.status for run in sweep.trials], ["finished", "finished"])
        values = [run.summary["best"]["value"] for run in sweep.trials]
        self.assertEqual(sweep.best(), sweep.trials[values.index(min(values))])
        closeness = [run.summary["metrics"]["val/closeness"] for run in sweep.trials]
        self.assertEqual(sweep.best("val/closeness", better="higher"), sweep.trials[closeness.index(max(closeness))])
        with self.assertRaises(LookupError):
            sweep.best("val/nonsense")
        self.assertIn("finished: ", sweep.trials[0].log)
        self.assertIn("2 trials over ", repr(sweep))
        self.assertIn("<td>finished</td>", sweep._repr_html_())
        self.assertEqual(
            [run.settings for run in headroom.Sweep(sweep.folder).trials], [run.settings for run in sweep.trials]
        )
        with self.assertRaises(FileNotFoundError):
            headroom.Run.latest("runs")  # trials are the sweep's
        self.assertEqual(headroom.sweep(resume=sweep, progress=False).folder, sweep.folder)

    def test_that_is_refused_says_why(self):
        with self.assertRaises(headroom.RunError) as caught:
            self.sweep_trial(**{"train.batch_sise": [4, 8]})
        self.assertEqual(caught.exception.exit_code, 2)
        self.assertIn("train.batch_sise", caught.exception.sentence)

    def test_whose_trials_fail_names_them(self):
        sweep = self.sweep_trial(**{"model.options.mistake": ["none", "not_a_number"]})
        self.assertEqual([run.status for run in sweep.trials], ["finished", "failed"])
        self.assertEqual(sweep.best().settings, {"model.options.mistake": "none"})


class Folders(Trial):
    def test_that_are_no_runs_name_the_newest_in_them(self):
        run = self.run_trial(set={"train.epochs": 1})
        with self.assertRaises(FileNotFoundError) as caught:
            headroom.Run("runs")
        Path("runs/log.txt").write_text("somebody's own")
        self.assertEqual(headroom.Run(run.folder).log, "")
        self.assertIn(f"the newest run in it is {os.path.join('runs/trial', run.folder.name)}", str(caught.exception))
        for wrong in (headroom.Run, headroom.Run.latest, headroom.Sweep):
            with self.assertRaises(FileNotFoundError):
                wrong("nowhere")
        with self.assertRaises(FileNotFoundError) as caught:
            run.checkpoint(3)
        self.assertIn("there are 10, 15", str(caught.exception))


class Toml(unittest.TestCase):
    def test_values_are_read_as_they_were(self):
        try:
            import tomllib
        except ImportError:
            self.skipTest("this Python has no tomllib")
        values = {
            "a b": True,
            "list": [1, 2.5, "x"],
            "inner": {"path": Path("x/y"), "deep": [{"k": -0.0}]},
            "text": 'quo"te, back\\slash, line\nbreak, tab\t, \x00\x7f, ü€😀',
            "large": 1e300,
            "none": [],
        }
        text = "".join(f"{toml_text.key_text(key)} = {toml_text.value_text(value)}\n" for key, value in values.items())
        values["inner"]["path"] = "x/y"
        self.assertEqual(tomllib.loads(text), values)
        self.assertEqual(toml_text.value_text(float("-inf")), "-inf")
        with self.assertRaises(TypeError):
            toml_text.value_text({"a": object()})


if __name__ == "__main__":
    unittest.main()
