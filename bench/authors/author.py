"""What the benches of bench/authors share: a folder of plugins as an author has it, and commands that are timed."""
import os
import shutil
import signal
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Ended:
    """A command that ended, or was ended: exit code (None: it took too long), what it said, and what it took."""

    def __init__(self, code, text, seconds, cpu_seconds):
        self.code, self.text, self.seconds, self.cpu_seconds = code, text, seconds, cpu_seconds


def run(words, seconds, cwd, environment):
    """Runs `words` for `seconds` at most; CPU seconds include those of the processes it waited for."""
    before = time.monotonic()
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(words, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                 stderr=subprocess.STDOUT, start_new_session=True)
        code, ended = None, None
        while ended is None:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                ended, code = usage, os.waitstatus_to_exitcode(status)
            elif time.monotonic() - before > seconds:
                os.killpg(child.pid, signal.SIGKILL)
                ended, code = os.wait4(child.pid, 0)[2], None
            else:
                time.sleep(0.01)
        child.returncode = 0  # it was waited for above
        output.seek(0)
        text = output.read().decode(errors="replace")
    return Ended(code, text, time.monotonic() - before, ended.ru_utime + ended.ru_stime)


class Author:
    """A folder of its own, in which `headroom` is called; removed at the end of the with."""

    def __init__(self, build):
        self.headroom = os.path.join(os.path.join(ROOT, build), "bin", "headroom")
        if not os.path.exists(self.headroom):
            raise SystemExit(f"{self.headroom} is not built: build the targets headroom_app and headroom_sdk, or name the folder with --build")
        self.folder = tempfile.mkdtemp(prefix="headroom-authors-")
        # Neither the user's cache nor the reservations of other runs of this machine belong here.
        self.environment = dict(os.environ, XDG_CACHE_HOME=os.path.join(self.folder, "cache"),
                                HEADROOM_RESERVATIONS=os.path.join(self.folder, "reservations"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, *words, seconds=900, **environment):
        return run([self.headroom, *words], seconds, self.folder, dict(self.environment, **environment))

    def must(self, *words):
        ended = self.call(*words)
        if ended.code != 0:
            raise SystemExit(f"headroom {' '.join(words)} ended with {ended.code}\n{ended.text}")
        return ended

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def read(self, *names):
        with open(self.path(*names)) as file:
            return file.read()

    def write(self, text, *names):
        with open(self.path(*names), "w") as file:
            file.write(text)


def edited(text, edits):
    """Each edit is (what stands in the template once, what comes in its place)."""
    for old, new in edits:
        if text.count(old) != 1:
            raise SystemExit(f"the template has this {text.count(old)} times instead of once:\n{old}")
        text = text.replace(old, new)
    return text
