"""headroom.limit and headroom.postmortem in processes of their own and in this one."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy
import torch

import headroom
from headroom import guard

MIB = 1 << 20


def held_bytes():
    """As the kernel says, not the library."""
    with open("/proc/self/status") as file:
        figures = dict(line.split(":", 1) for line in file if line.startswith("Rss"))
    return sum(int(figures[name].split()[0]) * 1024 for name in ("RssAnon", "RssShmem"))


def fill(most=1 << 20, size=16 * MIB):
    """Tensors until one is refused: (the tensors, the exception)."""
    tensors = []
    try:
        while len(tensors) < most:
            tensors.append(torch.ones(size, dtype=torch.uint8))
    except torch.OutOfMemoryError as refused:
        return tensors, refused
    return tensors, None


def script(text, **more):
    return subprocess.run([sys.executable, "-c", "import headroom, torch, os, sys, time\nMIB = 1 << 20\n" + text], capture_output=True, text=True,
                          timeout=300, **more)


class Refusal(unittest.TestCase):
    def test_a_tensor_beyond_the_limit_is_an_exception_that_says_why(self):
        with headroom.limit(held_bytes() + 200 * MIB) as limit:
            tensors, refused = fill()
            self.assertIsNotNone(refused)
            self.assertGreaterEqual(len(tensors), 8)
            self.assertLessEqual(held_bytes(), limit.limit_bytes)
            self.assertLessEqual(limit.peak_bytes, limit.limit_bytes)
            self.assertIn("[headroom.limit] no memory for a tensor of 16.0 MiB: this process holds ", str(refused))
            self.assertIn("headroom.Accumulator", str(refused))
            found = headroom.postmortem()
            self.assertEqual(found.asked_bytes, 16 * MIB)
            self.assertGreaterEqual(found.tensor_bytes, len(tensors) * 16 * MIB)
            self.assertEqual(found.tensor_bytes + found.kept_bytes + found.other_bytes, found.held_bytes)
            self.assertIn("a tensor of 16.0 MiB was refused", str(found))
            many = len(tensors)
            del tensors, refused
            tensors, refused = fill(many)
            self.assertIsNone(refused)

    def test_small_tensors_are_refused_too(self):
        with headroom.limit(held_bytes() + 60 * MIB) as limit:
            tensors, refused = fill(size=4000)
            self.assertIsNotNone(refused)
            self.assertGreater(len(tensors), 5000)
            self.assertLessEqual(held_bytes(), limit.limit_bytes)

    def test_what_is_held_stays_below_the_limit_while_several_threads_ask(self):
        most, ends = [0], threading.Event()

        def watch():
            while not ends.is_set():
                most[0] = max(most[0], held_bytes())

        def grow():
            for size in (MIB, 3 * MIB, 100_000, 64 << 10, 5 * MIB) * 6:
                fill(size=size)

        with headroom.limit(held_bytes() + 150 * MIB) as limit:
            watcher = threading.Thread(target=watch)
            growers = [threading.Thread(target=grow) for _ in range(3)]
            watcher.start()
            for thread in growers:
                thread.start()
            for thread in growers:
                thread.join()
            ends.set()
            watcher.join()
            self.assertGreater(most[0], limit.limit_bytes - 60 * MIB)
            self.assertLessEqual(most[0], limit.limit_bytes)

    def test_memory_that_is_no_tensors_leaves_less_to_tensors(self):
        with headroom.limit(held_bytes() + 240 * MIB):
            without = len(fill()[0])
            array = numpy.ones(100 * MIB, dtype=numpy.uint8)
            beside = len(fill()[0])
            self.assertLessEqual(beside, without - 5)
            self.assertGreaterEqual(beside, without - 8)
            del array

    def test_it_comes_out_of_backward_and_out_of_operators_as_itself(self):
        weight = torch.ones(4 * MIB, requires_grad=True)
        with headroom.limit(held_bytes() + 60 * MIB):
            output = (weight * weight).sum()
            kept, _ = fill(size=4 * MIB)
            with self.assertRaisesRegex(torch.OutOfMemoryError, "no memory for a tensor"):
                output.backward()
            with self.assertRaises(torch.OutOfMemoryError):
                torch.matmul(torch.ones(1, 1).expand(4096, 1), torch.ones(1, 1).expand(1, 4096))
            del kept

    def test_blocks_of_all_sizes_keep_what_was_written_to_them(self):
        def churn(seed):
            generator, living = numpy.random.default_rng(seed), []
            for _ in range(1500):
                size = int(2 ** generator.uniform(0, 21))
                value = int(generator.integers(256))
                living.append((torch.full((size,), value, dtype=torch.uint8), value))
                if len(living) > 40:
                    tensor, expected = living.pop(int(generator.integers(len(living))))
                    if not bool((tensor == expected).all()):
                        failed.append(tensor.numel())
            failed.extend(tensor.numel() for tensor, expected in living if not bool((tensor == expected).all()))

        failed = []
        with headroom.limit(held_bytes() + 300 * MIB):
            threads = [threading.Thread(target=churn, args=(seed,)) for seed in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(failed, [])


class Setting(unittest.TestCase):
    def test_another_call_changes_it_and_a_block_puts_it_back(self):
        self.assertEqual(headroom.limit("2 GiB").limit_bytes, 2 << 30)
        with headroom.limit("1.5 GiB") as limit:
            self.assertEqual(limit.limit_bytes, 3 << 29)
            self.assertIn("1.5 GiB", repr(limit))
        self.assertEqual(guard._now().limit_bytes, 2 << 30)
        automatic = headroom.limit("auto")
        self.assertGreater(automatic.limit_bytes, 0)
        self.assertIn(" of room in ", automatic.rule)

    def test_what_is_no_limit_is_a_sentence(self):
        for wrong in ("8 potatoes", "", "0", 0, -1, None, True, "-1 GiB", "80 %%", "off"):
            with self.assertRaisesRegex(ValueError, 'a limit is a size such as "8 GiB"'):
                headroom.limit(wrong)

    def test_less_than_is_held_already_changes_nothing(self):
        with headroom.limit("2 GiB") as limit:
            with self.assertRaisesRegex(RuntimeError, "the limit of 1.0 MiB leaves nothing for tensors: this process holds "):
                headroom.limit("1 MiB")
            self.assertEqual(limit.limit_bytes, 2 << 30)
            torch.ones(MIB)

    def test_another_torch_is_a_sentence(self):
        text = ("import sys, types\nsys.modules['torch'] = types.SimpleNamespace(__version__='1.13.0+cpu')\n"
                "import headroom\nheadroom.limit('1 GiB')\n")
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=300)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"ImportError: this Headroom was built with torch [\d.]+, and torch 1.13.0\+cpu is imported")


class Processes(unittest.TestCase):
    def test_a_forked_process_goes_on_without_a_limit(self):
        done = script("""
torch.set_num_threads(1)  # OpenMP's other threads would be missing in the child
limit = headroom.limit(headroom.limit('2 GiB').held_bytes + 100 * MIB)
keep = torch.ones(20 * MIB, dtype=torch.uint8)
child = os.fork()
if child == 0:
    big = torch.ones(200 * MIB, dtype=torch.uint8)
    try:
        headroom.limit('1 GiB')
    except RuntimeError as problem:
        os._exit(0 if 'forked' in str(problem) else 4)
    os._exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
try:
    torch.ones(200 * MIB, dtype=torch.uint8)
except torch.OutOfMemoryError:
    print('refused')
""")
        self.assertEqual((done.returncode, done.stdout), (0, "refused\n"), done.stderr)

    def test_a_process_forked_while_other_threads_make_tensors_makes_its_own(self):
        done = script("""
import signal, threading
torch.set_num_threads(1)
headroom.limit('2 GiB')
ends = threading.Event()
def churn():
    while not ends.is_set():
        kept = [torch.empty(size) for size in range(10, 2000, 7)]
threads = [threading.Thread(target=churn) for _ in range(3)]
for thread in threads: thread.start()
ended = []
for _ in range(60):
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        kept = [torch.empty(size) for size in range(10, 4000, 16)]
        del kept
        os._exit(0)
    ended.append(os.waitpid(child, 0)[1])
    if ended[-1] != 0: break
ends.set()
for thread in threads: thread.join()
print(ended.count(0))
""")
        self.assertEqual((done.returncode, done.stdout), (0, "60\n"), done.stderr)

    def test_workers_of_a_loader_deliver(self):
        done = script("""
headroom.limit('2 GiB')
class Data(torch.utils.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, index): return torch.full((40000,), float(index))
total = sum(float(batch[:, 0].sum()) for batch in torch.utils.data.DataLoader(Data(), batch_size=8, num_workers=2))
print(total)
""")
        self.assertEqual((done.returncode, done.stdout), (0, "2016.0\n"), done.stderr)

    def test_the_black_box_of_a_killed_process_says_what_it_held(self):
        with tempfile.TemporaryDirectory() as folder:
            box = os.path.join(folder, "box")
            text = ("import headroom, torch, time\n"
                    f"headroom.limit('2 GiB', postmortem={box!r})\nkept = torch.ones(64 << 20, dtype=torch.uint8)\ntime.sleep(1)\n"
                    "print('held', flush=True)\ntime.sleep(300)\n")
            process = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)
            self.addCleanup(process.kill)
            self.assertEqual(process.stdout.readline(), "held\n")
            process.send_signal(signal.SIGKILL)
            process.communicate()
            found = headroom.postmortem(box)
            self.assertEqual((found.pid, found.ended), (process.pid, False))
            self.assertGreaterEqual(found.last.tensor_bytes, 64 << 20)
            self.assertEqual(found.last.limit_bytes, 2 << 30)
            self.assertIn("still runs or was killed", str(found))

    def test_the_black_box_of_a_process_that_ended_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            box = os.path.join(folder, "box")
            done = script(f"headroom.limit('2 GiB', postmortem={box!r})\ntime.sleep(0.5)\n")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(headroom.postmortem(box).ended)
            with open(box, "w") as file:
                file.write("nonsense")
            with self.assertRaisesRegex(ValueError, "is no black box"):
                headroom.postmortem(box)
            with self.assertRaises(FileNotFoundError):
                headroom.postmortem(box + ".none")


if __name__ == "__main__":
    unittest.main(verbosity=2)
