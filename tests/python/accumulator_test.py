"""headroom.Accumulator: the same gradients for any pieces, also where memory fails amid one."""

import collections
import random
import unittest
import warnings

import numpy
import torch
import torch.utils.checkpoint
from torch import nn

import headroom
from headroom import guard
from headroom.batches import part_of, samples_of

MIB = 1 << 20


def setUpModule():
    headroom.limit("2 GiB")


def squares(model, batch):
    """One value a sample."""
    return ((model(batch[0]) - batch[1]) ** 2).sum(1)


def integers(*shape, seed):
    return torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(seed)).double()


def whole_numbers_model():
    """All its sums are of small whole numbers in float64, which no order of adding changes: a piece that counts twice or not at
    all shows in every digit."""
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)).double()
    with torch.no_grad():
        for at, parameter in enumerate(model.parameters()):
            parameter.copy_(integers(*parameter.shape, seed=at))
    return model


class Drawing(nn.Module):
    """Everything that a failed piece could leave a trace in."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layers = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Dropout(0.5), nn.Tanh(), nn.Linear(16, 3)).double()
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("seen", torch.zeros(3, dtype=torch.float64))

    def forward(self, x):
        self.calls = self.calls + 1
        x = x + 0.1 * torch.as_tensor(numpy.random.rand(*x.shape)) + 0.1 * random.random()
        result = torch.utils.checkpoint.checkpoint(self.layers, x, use_reentrant=False)
        with torch.no_grad():
            self.seen += result.sum(0)
        return result


class Counting(torch.optim.Optimizer):
    """Counts its steps in a plain number, as some optimizers outside of torch do, and divides its rate by them."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self):
        for parameter in self.param_groups[0]["params"]:
            state = self.state[parameter]
            state["step"] = state.get("step", 0) + 1
            parameter -= parameter.grad * (0.1 / state["step"])


def batch_of(samples, seed=5):
    return integers(samples, 6, seed=seed), integers(samples, 3, seed=seed + 1)


def allocations_of(work):
    before = guard._library().hr_guard_allocations()
    work()
    return guard._library().hr_guard_allocations() - before


def accumulator(model, optimizer=None, **more):
    more.setdefault("loss", squares)
    return headroom.Accumulator(model, optimizer or torch.optim.SGD(model.parameters(), lr=0.01), **more)


def gradients_of(steps):
    return [value.clone() for value in steps.state_dict()["gradients"]]


class Exactness(unittest.TestCase):
    def tearDown(self):
        guard._library().hr_guard_fail(-1)

    def assert_same(self, left, right):
        self.assertEqual(len(left), len(right))
        for one, other in zip(left, right):
            self.assertTrue(torch.equal(one, other))

    def test_gradients_are_those_of_the_whole_batch_whichever_allocation_fails(self):
        batch, retried = batch_of(8), 0
        steps = accumulator(whole_numbers_model(), window=1000)
        count = allocations_of(lambda: steps.step(batch))
        expected = gradients_of(steps)
        self.assertGreater(count, 20)
        for skip in range(count):
            steps = accumulator(whole_numbers_model(), window=1000)
            guard._library().hr_guard_fail(skip)
            loss = steps.step(batch)
            self.assertEqual(loss, float(squares(steps.model, batch).sum().detach()) / 8)
            self.assert_same(gradients_of(steps), expected)
            retried += steps.retries
        self.assertGreater(retried, count // 2)

    def test_weights_are_those_of_an_undisturbed_step_whichever_allocation_fails(self):
        batch = batch_of(8)
        steps = accumulator(whole_numbers_model(), window=8)
        count = allocations_of(lambda: steps.step(batch))
        expected = list(steps.model.parameters())
        for skip in range(count):
            steps = accumulator(whole_numbers_model(), window=8)
            guard._library().hr_guard_fail(skip)
            steps.step(batch)
            self.assertEqual(steps.windows, 1)
            self.assert_same(list(steps.model.parameters()), expected)

    def test_a_failed_piece_leaves_no_draw_no_buffer_and_no_gradient(self):
        """What follows a failure at 8 samples is bit for bit what pieces of 4 give without one."""
        batch, failures = batch_of(8), 0

        def run(micro_batch, skip):
            torch.manual_seed(3), random.seed(3), numpy.random.seed(3)
            model = Drawing()
            steps = accumulator(model, window=1000, micro_batch=4)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                steps.step(batch_of(4, seed=9))  # gradients that are there already
                steps._piece = micro_batch
                guard._library().hr_guard_fail(skip)
                loss = steps.step(batch)
            guard._library().hr_guard_fail(-1)
            return steps, [torch.tensor(loss), *gradients_of(steps), *(buffer.clone() for buffer in model.buffers()), torch.get_rng_state(),
                           torch.tensor(numpy.random.rand(3)), torch.tensor(random.random())]

        _, expected = run(4, -1)
        count = allocations_of(lambda: run(8, -1))
        for skip in range(0, count, 3):
            steps, found = run(8, skip)
            if steps.retries == 0:  # it failed outside the piece
                continue
            failures += 1
            self.assert_same(found, expected)
        self.assertGreater(failures, 15)

    def test_nothing_stays_held_after_failures(self):
        batch = batch_of(512)
        steps = accumulator(whole_numbers_model(), window=1 << 30)
        steps.step(batch)
        held = guard._now().tensor_bytes
        for skip in range(0, 40):
            guard._library().hr_guard_fail(skip)
            steps.step(batch)
        self.assertGreater(steps.retries, 5)
        self.assertLessEqual(guard._now().tensor_bytes, held + 64 * 1024)

    def run_with_failing_step(self, skip, window, optimizer):
        """Three windows, in the step of whose `window`-th the allocation after `skip` others fails once."""
        torch.manual_seed(2)
        model = nn.Sequential(nn.Linear(6, 5), nn.Linear(5, 3)).double()
        steps = accumulator(model, optimizer(model.parameters()), window=8, clip_norm=1.0)
        step, tries, refusals = steps.optimizer.step, [], guard.refusals()

        def failing():
            if steps.windows == window and not tries:
                tries.append(1)
                guard._library().hr_guard_fail(skip)
            try:
                step()
            finally:
                guard._library().hr_guard_fail(-1)

        steps.optimizer.step = failing
        for seed in (5, 7, 9):
            steps.step(batch_of(8, seed=seed))
        self.assertEqual(steps.windows, 3)
        self.refused += guard.refusals() - refusals
        state = steps.optimizer.state
        return [*(parameter.detach().clone() for parameter in model.parameters()),
                *(value for parameter in model.parameters() for value in state[parameter].values() if torch.is_tensor(value))]

    def test_an_optimizers_step_that_fails_is_undone_and_taken_again(self):
        for optimizer in (lambda p: torch.optim.AdamW(p, lr=0.1), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
                          lambda p: torch.optim.AdamW(p, lr=0.1, foreach=True), Counting):
            for window in (0, 1):
                self.refused = 0
                expected = self.run_with_failing_step(-1, window, optimizer)
                for skip in range(0, 40, 3):
                    self.assert_same(self.run_with_failing_step(skip, window, optimizer), expected)
                self.assertGreater(self.refused, 0)

    def test_a_later_step_says_whether_parameters_have_changed(self):
        said, self.refused = set(), 0
        for skip in range(0, 40, 4):
            try:
                self.run_with_failing_step(skip, 2, lambda p: torch.optim.AdamW(p, lr=0.1))
            except torch.OutOfMemoryError as shortage:
                said.add("no parameter has changed" in str(shortage) or "some parameters have stepped and some have not" in str(shortage))
        self.assertEqual(said, {True})


class UnderALimit(unittest.TestCase):
    def train(self, limit_above_held, windows=5):
        torch.manual_seed(4)
        model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 20_000), nn.GELU(), nn.Linear(20_000, 3)).double()
        steps = accumulator(model, torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9), window=256, clip_norm=10.0)
        data = [(torch.randn(192, 64, dtype=torch.float64), torch.randn(192, 3, dtype=torch.float64)) for _ in range(windows * 4 // 3)]
        guard.give_back()
        with headroom.limit(guard._now().held_bytes + limit_above_held) as limit:
            losses = [steps.step(batch) for batch in data]
            self.assertLessEqual(limit.peak_bytes, 2 << 30)
            held = guard._now()
        return steps, losses, [parameter.detach().clone() for parameter in model.parameters()], held

    def test_weights_are_those_without_a_limit(self):
        free, free_losses, free_weights, _ = self.train(1200 * MIB)
        tight, tight_losses, tight_weights, _ = self.train(170 * MIB)
        self.assertEqual(free.retries, 0)
        self.assertGreater(tight.retries, 0)
        self.assertLess(tight.micro_batch, 192)
        self.assertEqual(tight.windows, free.windows)
        for one, other in zip(tight_weights, free_weights):
            self.assertLess(float((one - other).abs().max()), 1e-10)
        for one, other in zip(tight_losses, free_losses):
            self.assertAlmostEqual(one, other, places=9)

    def test_one_sample_that_does_not_fit_is_an_exception(self):
        model = nn.Linear(1, 1)
        guard.give_back()
        with headroom.limit(guard._now().held_bytes + 100 * MIB):
            steps = accumulator(model, window=4, loss=lambda m, b: m(b).sum() * torch.ones(200 * MIB, dtype=torch.uint8)[0])
            with self.assertRaisesRegex(torch.OutOfMemoryError, r"one sample does not fit into memory: \[headroom.limit\] no memory for a tensor of 200.0 MiB"):
                steps.step(torch.ones(4, 1))
            self.assertEqual(steps.samples, 0)

    def test_an_optimizer_without_room_for_its_state_changes_nothing(self):
        model = nn.Linear(1000, 8000, bias=False)
        before = model.weight.detach().clone()
        steps = accumulator(model, torch.optim.Adam(model.parameters()), window=2, loss=lambda m, b: m(b).sum(1))
        steps.step(torch.ones(1, 1000))
        guard.give_back()
        with headroom.limit(guard._now().held_bytes + 50 * MIB):
            with self.assertRaisesRegex(torch.OutOfMemoryError, "no parameter has changed"):
                steps.step(torch.ones(1, 1000))
            self.assertTrue(torch.equal(model.weight, before))
        self.assertTrue(steps.finish())
        self.assertEqual(steps.windows, 1)
        self.assertFalse(torch.equal(model.weight, before))


class Windows(unittest.TestCase):
    def test_windows_are_filled_by_batches_of_any_size(self):
        x, y = batch_of(30)
        expected = whole_numbers_model()
        optimizer = torch.optim.SGD(expected.parameters(), lr=0.5)
        for begin in (0, 12, 24):
            optimizer.zero_grad()
            part = (x[begin:begin + 12], y[begin:begin + 12])
            (squares(expected, part).sum() / len(part[0])).backward()
            optimizer.step()
        for sizes in ([30], [5] * 6, [7, 20, 3]):
            model = whole_numbers_model()
            steps = accumulator(model, torch.optim.SGD(model.parameters(), lr=0.5), window=12, micro_batch=5)
            for part in zip(x.split(sizes), y.split(sizes)):
                steps.step(part)
            self.assertEqual((steps.windows, steps.samples), (2, 6))
            self.assertTrue(steps.finish())
            self.assertFalse(steps.finish())
            for one, other in zip(model.parameters(), expected.parameters()):
                self.assertLess(float(((one - other).abs().max() / other.abs().max()).detach()), 1e-12)

    def test_the_three_forms_of_a_loss_agree(self):
        found = []
        for loss in (squares, lambda m, b: (squares(m, b).sum(), len(b[0])), lambda m, b: squares(m, b).mean(),
                     lambda m, b: (squares(m, b).sum(), torch.tensor(float(len(b[0]))))):
            steps = accumulator(whole_numbers_model(), window=1000, micro_batch=4, loss=loss)
            found.append([torch.tensor(steps.step(batch_of(16))), *gradients_of(steps)])
        for other in found[1:]:
            for one, two in zip(found[0], other):
                self.assertTrue(torch.allclose(one, two, rtol=1e-12))

    def test_weights_that_differ_divide_the_windows_gradient(self):
        model = whole_numbers_model()
        weighted = lambda m, b: ((squares(m, b) * b[2]).sum(), b[2].sum())
        batch = (*batch_of(8), integers(8, seed=3).abs())
        steps = accumulator(model, torch.optim.SGD(model.parameters(), lr=1.0), window=8, micro_batch=3, loss=weighted)
        before = [parameter.detach().clone() for parameter in model.parameters()]
        total, weight = weighted(model, batch)
        expected = torch.autograd.grad(total / weight, list(model.parameters()))
        self.assertAlmostEqual(steps.step(batch), float((total / weight).detach()))
        for old, new, gradient in zip(before, model.parameters(), expected):
            self.assertTrue(torch.allclose(old - new, gradient, rtol=1e-12, atol=1e-12))

    def test_pieces_grow_back(self):
        steps = accumulator(whole_numbers_model(), torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0), window=8)
        guard._library().hr_guard_fail(12)
        steps.step(batch_of(8))
        self.assertEqual((steps.micro_batch, steps.retries), (4, 1))
        for _ in range(16):
            steps.step(batch_of(8))
        self.assertEqual((steps.micro_batch, steps.retries), (8, 1))

    def test_a_state_goes_on_amid_a_window(self):
        def make():
            model = whole_numbers_model()
            return accumulator(model, torch.optim.SGD(model.parameters(), lr=0.001), window=12)

        whole, first = make(), make()
        for seed in (1, 2, 3):
            whole.step(batch_of(8, seed=seed))
        first.step(batch_of(8, seed=1))
        second = make()
        second.load_state_dict(first.state_dict())
        for seed in (2, 3):
            second.step(batch_of(8, seed=seed))
        self.assertEqual((second.windows, second.samples), (whole.windows, whole.samples))
        for one, other in zip(second.model.parameters(), whole.model.parameters()):
            self.assertTrue(torch.equal(one, other))
        with self.assertRaisesRegex(ValueError, "version 1"):
            second.load_state_dict({})

    def test_a_module_that_swallows_the_exception_is_taken_again(self):
        class Swallows(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = whole_numbers_model()

            def forward(self, x):
                try:
                    return self.layer(x)
                except torch.OutOfMemoryError:
                    return self.layer(x) * 0

        steps = accumulator(Swallows(), window=1000)
        steps.step(batch_of(8))
        expected = gradients_of(steps)
        steps = accumulator(Swallows(), window=1000)
        guard._library().hr_guard_fail(8)
        steps.step(batch_of(8))
        self.assertEqual(steps.retries, 1)
        for one, other in zip(gradients_of(steps), expected):
            self.assertTrue(torch.equal(one, other))

    def test_batchnorm_in_pieces_is_told_once_by_name(self):
        model = nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3)).double()
        steps = accumulator(model, window=16, micro_batch=4)
        with self.assertWarnsRegex(UserWarning, r"^1 \(BatchNorm1d\) makes the samples of a piece influence each other") as told:
            steps.step(batch_of(8))
        self.assertEqual(told.filename, __file__)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            steps.step(batch_of(8))
            accumulator(model, window=16).step(batch_of(8))  # in one piece

    def test_other_exceptions_pass(self):
        steps = accumulator(nn.Linear(3, 1), loss=lambda m, b: m(b).sum(1))
        with self.assertRaisesRegex(RuntimeError, "shapes cannot be multiplied"):
            steps.step(torch.ones(4, 7))
        for wrong in ("loss", torch.ones(3), (1, 2, 3), None):
            with self.assertRaisesRegex(ValueError, r"the loss of 4 samples is \(sum, weight\)"):
                accumulator(nn.Linear(3, 1), loss=lambda m, b: wrong).step(torch.ones(4, 3))
        for arguments in ({"window": 0}, {"micro_batch": 0}, {"micro_batch": "some"}):
            with self.assertRaises(ValueError):
                accumulator(nn.Linear(3, 1), **arguments)


class Batches(unittest.TestCase):
    def test_structures_are_cut_along_samples(self):
        Pair = collections.namedtuple("Pair", "x names")
        batch = {"a": torch.arange(6).reshape(3, 2), "b": Pair(numpy.arange(3), ["p", "q", "r"]), "scale": 2.0, "rate": torch.tensor(0.5)}
        self.assertEqual(samples_of(batch), 3)
        part = part_of(batch, 1, 3)
        self.assertTrue(torch.equal(part["a"], batch["a"][1:3]))
        self.assertEqual((list(part["b"].x), part["b"].names, part["scale"], float(part["rate"])), ([1, 2], ["q", "r"], 2.0, 0.5))
        self.assertIs(part_of(batch, 0, 3), batch)
        for wrong in ((torch.ones(3), torch.ones(4)), torch.ones(0, 2), "text", torch.tensor(1.0)):
            with self.assertRaisesRegex(ValueError, "one sample per row"):
                samples_of(wrong)


if __name__ == "__main__":
    unittest.main(verbosity=2)
