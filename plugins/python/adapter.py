"""The Python half of the plugin: loads the user's file, builds the module, steps it. Each function that C++ calls
returns (kind, sentence, traceback, value): "" and the value, or what went wrong ("memory", "input", "code")."""

import collections
import copy
import functools
import gc
import inspect
import json
import math
import os
import random
import sys
import traceback

# torch.compile does nothing in the user's file: a step that is compiled is one by model.options.compile.
os.environ["TORCHDYNAMO_DISABLE"] = "1"

import torch

_memory_errors = (MemoryError,) + tuple(
    getattr(torch, name) for name in ("OutOfMemoryError",) if hasattr(torch, name)
) + (torch.cuda.OutOfMemoryError,)
_packages = os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__)))


def _ran_out_of_memory(error):
    return any(
        isinstance(one, _memory_errors)
        or (isinstance(one, RuntimeError) and "DefaultCPUAllocator: " in str(one))
        for one in _chain(error)
    )


def explain(error, folder=""):
    """(kind, sentence, traceback, None) of an exception. Whatever its frames held is free afterwards."""
    memory = _ran_out_of_memory(error)
    if memory:
        result = ("memory", _place(error, folder) + "out of memory", "", None)
    elif type(error).__name__ == "FailOnRecompileLimitHit":
        sentence = (
            "the module is compiled again with every step, since a number of Python in it changes: keep that in a buffer, "
            "or leave model.options.compile out"
        )
        result = ("input", sentence, "", None)
    elif isinstance(error, InputError):
        result = ("input", str(error), "", None)
    else:
        text = str(error).strip() or "no message"
        result = ("code", f"{_place(error, folder)}{type(error).__name__}: {text}", _traceback_text(error), None)
    for one in _chain(error):
        traceback.clear_frames(one.__traceback__)
        one.__traceback__ = one.__cause__ = one.__context__ = None
    del error
    gc.collect()
    return result


def _guarded(function):
    @functools.wraps(function)
    def call(*arguments):
        try:
            return ("", "", "", function(*arguments))
        except BaseException as error:  # SystemExit too: the user's file does not end the run
            problem = error
        folder = getattr(arguments[0], "folder", "") if arguments else ""
        result = explain(problem, folder or _latest_folder)
        return result

    return call


# ---- the module -------------------------------------------------------------------------------------------------------


def _build(file, name, arguments):
    make = getattr(file, name, None)
    if make is None:
        classes = [
            n for n, c in vars(file).items()
            if inspect.isclass(c) and issubclass(c, torch.nn.Module) and not c.__module__.startswith("torch.")
        ]
        raise InputError(
            f'model.options.class is "{name}", which {os.path.basename(file.__file__)} does not define; '
            f"its modules are {', '.join(sorted(classes)) or 'none'}"
        )
    if not callable(make):
        raise InputError(f'model.options.class is "{name}", which is neither a class nor a function')
    try:
        inspect.signature(make).bind(**arguments)
    except TypeError as problem:
        raise InputError(f"model.options.args do not suit {name}{inspect.signature(make)}: {problem}") from None
    except ValueError:
        pass  # it has no signature that Python knows
    module = make(**arguments)
    if not isinstance(module, torch.nn.Module):
        raise InputError(f"{name}(...) gives a {type(module).__name__}: model.options.class must give a torch.nn.Module")
    return module


# ---- losses ----------------------------------------------------------------------------------------------------------


def _wide(tensor):
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _shape(tensor):
    return str(list(tensor.shape))


def _same_shape(prediction, target):
    if prediction.shape == target.shape:
        return target
    squeezed = [n for n in prediction.shape[1:] if n != 1], [n for n in target.shape[1:] if n != 1]
    if prediction.shape[:1] == target.shape[:1] and squeezed[0] == squeezed[1]:
        return target.reshape(prediction.shape)
    raise InputError(
        f"the module gives {_shape(prediction)} and the target is {_shape(target)}: they must have one shape, "
        "or write loss(outputs, batch) in the file"
    )


def _mse(prediction, target):
    return (prediction - target).square().sum(), prediction.numel()


def _mae(prediction, target):
    return (prediction - target).abs().sum(), prediction.numel()


def _huber(prediction, target):
    return torch.nn.functional.huber_loss(prediction, target, reduction="sum"), prediction.numel()


def _cross_entropy(prediction, target):
    if target.is_floating_point():
        weight = target.numel() // target.shape[1]  # probabilities of classes
        return torch.nn.functional.cross_entropy(prediction, target, reduction="sum"), weight
    target = target.long()
    if target.dim() == prediction.dim() and target.shape[1] == 1:
        target = target.squeeze(1)
    total = torch.nn.functional.cross_entropy(prediction, target, reduction="sum")
    return total, (target != -100).sum()


_losses = {"mse": _mse, "mae": _mae, "huber": _huber, "cross_entropy": _cross_entropy}


# ---- groups of parameters --------------------------------------------------------------------------------------------

_group_numbers = {"lr": 0.0, "lr_scale": 1.0, "weight_decay_scale": 1.0, "frozen_until_step": 0}


def _group_row(group, what):
    """(name, lr, lr_scale, weight_decay_scale, frozen_until_step) of one group."""
    values = dict(_group_numbers)
    for key, value in group.items():
        if key in ("params", "name"):
            continue
        if key not in values and key != "weight_decay":
            raise InputError(
                f"{what} has '{key}', which is not known: a group may hold params, name, lr, lr_scale, weight_decay = 0, "
                "weight_decay_scale and frozen_until_step; the rest is in [train]"
            )
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
            raise InputError(f"{what} has {key} = {value!r}: it must be a number of at least 0")
        if key == "weight_decay":
            if value != 0:
                raise InputError(
                    f"{what} has weight_decay = {value!r}: beside 0 it follows train.optimizer.weight_decay; write "
                    "weight_decay_scale, a factor"
                )
            key = "weight_decay_scale"
        if key == "lr" and value == 0:
            raise InputError(f"{what} has lr = 0: requires_grad_(False) in the constructor keeps a weight as it is")
        values[key] = value
    if int(values["frozen_until_step"]) != values["frozen_until_step"]:
        raise InputError(f"{what} has frozen_until_step = {values['frozen_until_step']!r}: steps are whole numbers")
    return (
        str(group.get("name", "")),
        float(values["lr"]),
        float(values["lr_scale"]),
        float(values["weight_decay_scale"]),
        int(values["frozen_until_step"]),
    )


# ---- what grows ------------------------------------------------------------------------------------------------------


class Growth:
    """Names what grows from look to look in Python: a list, dict or set of the module or of the user's files, or else
    a type of which there are ever more objects."""

    looks, windows_a_look = 10, 10
    _registries = ("_parameters", "_buffers", "_modules")
    _most_entries = 64  # of a container whose own entries are looked into

    def __init__(self, module):
        self.module, self.named = module, set()
        self.window, self.since = None, 0
        self.begin({})

    def begin(self, sizes):
        self.first, self.last, self.rises = sizes, sizes, 0
        self.rising = set(sizes)

    def after_window(self, window):
        """A sentence, or ""."""
        if window == self.window:
            return ""
        self.window, self.since = window, self.since + 1
        if self.since % self.windows_a_look != 0:
            return ""
        sizes = self.sizes()
        if not self.first:
            self.begin(sizes)
            return ""
        self.rising = {name for name in self.rising if sizes.get(name, 0) > self.last[name]}
        self.last, self.rises = sizes, self.rises + 1
        if self.rises < self.looks:
            return ""
        containers = sorted(name for name in self.rising - self.named if not name.startswith("<"))
        types = sorted(name for name in self.rising - self.named if name.startswith("<"))
        if types and not containers:  # garbage grows too until it is collected
            gc.collect()
            sizes = self.sizes()
            types = [name for name in types if sizes.get(name, 0) >= self.first[name] + self.looks]
        found = containers[:1] or types[:1]
        sentence = ""
        if found:
            name = found[0]
            # Its entries have a type that grows with it.
            self.named |= {name} | (set(types) if containers else set())
            more = sizes[name] - self.first[name]
            windows = self.looks * self.windows_a_look
            what = f"{name} holds {more} entries more"
            if not containers:
                what = f"there are {more} objects of type {name[1:-1]} more"
            sentence = (
                f"leak: {what} than {windows} steps ago, and grew all the time; now {sizes[name]}: what a step of the "
                "Python module keeps stays in memory, and is in no checkpoint"
            )
        self.begin(sizes)
        return sentence

    def sizes(self):
        found, seen = {}, set()

        def visit(name, value, depth):
            if id(value) in seen:
                return
            if isinstance(value, (list, dict, set, collections.deque)):
                seen.add(id(value))
                if getattr(value, "maxlen", None) is None:
                    found[name] = len(value)
                if depth > 0 and len(value) <= self._most_entries:
                    items = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
                    for key, entry in items:
                        visit(f"{name}[{key!r}]", entry, depth - 1)
            elif type(value).__module__ in _own_modules and not isinstance(value, torch.nn.Module):
                seen.add(id(value))
                visit_all(name + ".", getattr(value, "__dict__", {}), depth - 1)

        def visit_all(prefix, values, depth):
            if depth < 0:
                return
            for key, value in list(values.items()):
                if key not in self._registries and not key.startswith("__"):
                    visit(prefix + str(key), value, depth)

        for path, module in self.module.named_modules():
            kind = type(module)
            visit_all(f"{path} ({kind.__name__})." if path else f"{kind.__name__}.", vars(module), 2)
            for base in kind.__mro__:
                if base.__module__ in _own_modules:
                    visit_all(f"{base.__name__}.", vars(base), 2)
        for name in sorted(_own_modules):
            module = sys.modules.get(name)
            if module is not None:
                visit_all(os.path.basename(module.__file__) + ": ", vars(module), 2)
        for value in gc.get_objects():
            name = f"<{type(value).__name__}>"
            found[name] = found.get(name, 0) + 1
        return found


# ---- the model -------------------------------------------------------------------------------------------------------

_draws_compiled = (
    "a step draws random numbers (dropout, rand), which compiled code cannot draw by the keys of samples: leave "
    "model.options.compile out, or what draws"
)


class Model:
    def __init__(self, path, name, arguments, inputs, target, loss, fields, seed):
        self.names = list(fields)
        self.inputs, self.target = list(inputs), target
        generator, threads, dtype = torch.get_rng_state(), torch.get_num_threads(), torch.get_default_dtype()
        self.file, self.folder = _import_file(path, "model.options.file")
        self._require_fields()
        # Whatever the file seeds when it is read: first weights follow from experiment.seed.
        torch.set_rng_state(generator)
        random.seed(seed)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(seed % 2**32)
        self.module = _build(self.file, name, json.loads(arguments))
        # Of the whole process, and of the experiment.
        torch.set_default_dtype(dtype)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        self.own_forward = self._function("forward", "module", "batch")
        self.own_metrics = self._function("metrics", "outputs", "batch")
        self._choose_loss(loss)
        self._list_tensors()
        self._read_groups()
        self.training = None
        # A module that is in eval() as a whole was left so by what loaded it.
        left = self.module.modules() if self.module.training else ()
        self.stay_in_eval = [m for m in left if not m.training]
        self.pending = []  # (buffer, value that replaces it)
        self.gives_mean = self.told_mean = self.is_compiled = False
        self.outputs, self.metrics, self.classes = [], [], 0
        self.trial_module, self.kept_buffers = None, []
        self.growth = Growth(self.module)

    def _function(self, name, *parameters):
        """A function of the file. With `parameters` only one of just these: others of that name are not meant."""
        found = getattr(self.file, name, None)
        if not inspect.isfunction(found):
            return None
        return found if not parameters or tuple(inspect.signature(found).parameters) == parameters else None

    def _require_fields(self):
        for name in self.inputs + ([self.target] if self.target else []):
            if name not in self.names:
                raise InputError(f"the data source gives no field '{name}'; it gives {', '.join(self.names)}")
        if not self.inputs and self._function("forward", "module", "batch") is None:
            raise InputError(
                "model.options.inputs is missing: name the fields that forward takes, in its order; "
                f"the data source gives {', '.join(self.names)}"
            )

    def _choose_loss(self, name):
        self.loss_name = name or ("loss" if self._function("loss", "outputs", "batch") else "")
        if self.loss_name in _losses:
            self.loss = _losses[self.loss_name]
            if not self.target:
                raise InputError(f'model.options.target is missing: the loss "{name}" needs the field to compare with')
        else:
            self.loss = self._function(self.loss_name) if self.loss_name else None
            if self.loss is None:
                raise InputError(
                    (f'model.options.loss is "{name}"' if name else "model.options.loss is missing")
                    + f": it must be one of {', '.join(_losses)} or a function (outputs, batch) of "
                    + os.path.basename(self.file.__file__)
                )
        self.built_in = self.loss in _losses.values()

    def _list_tensors(self):
        lazy = torch.nn.parameter.UninitializedTensorMixin
        self.parameters, self.buffers = [], []
        for name, parameter in self.module.named_parameters():
            if isinstance(parameter, lazy):
                raise InputError(f"'{name}' is lazy: give the layer its sizes, its weights are drawn before there is data")
            self.parameters.append((name, parameter, parameter.requires_grad))
        for prefix, owner in self.module.named_modules():
            for key, buffer in owner._buffers.items():
                if buffer is None or any(buffer is known for _, _, known, _, _ in self.buffers):
                    continue
                name = prefix + ("." if prefix else "") + key
                kept = key not in owner._non_persistent_buffers_set
                self.buffers.append((owner, key, buffer, name, kept))
        extra = [k for k in self.module.state_dict() if k.endswith("_extra_state")]
        if extra:
            raise InputError(f"the module keeps an extra state ({extra[0]}): only tensors can be in a checkpoint")

    def _read_groups(self):
        """How each parameter is trained, by its identity: param_groups(module) of the file, as optimizers take them."""
        self.groups = {}
        declare = self._function("param_groups", "module")
        if declare is None:
            return
        names = {id(parameter): name for name, parameter, _ in self.parameters}
        groups = declare(self.module)
        if not isinstance(groups, (list, tuple)) or not all(isinstance(g, dict) and "params" in g for g in groups):
            raise InputError(
                'param_groups(module) must give a list of dicts as optimizers take them: [{"params": [...], '
                '"lr_scale": 0.1}]'
            )
        for number, group in enumerate(groups):
            what = f"param_groups(module)[{number}]"
            row = _group_row(group, what)
            tensors = group["params"]
            for tensor in [tensors] if isinstance(tensors, torch.Tensor) else list(tensors):
                if id(tensor) not in names:
                    raise InputError(f"{what} has a parameter that is none of the module's parameters()")
                if id(tensor) in self.groups:
                    raise InputError(f"{what} has '{names[id(tensor)]}', which is in a group before it too")
                self.groups[id(tensor)] = row

    # -- a step --

    def set_training(self, training):
        if self.training != training:
            self.module.train(training)
            for module in self.stay_in_eval:
                module.eval()
            self.training = training

    def stays_in_eval(self, module):
        return any(module is one for one in self.stay_in_eval)

    def forward(self, module, batch):
        if self.own_forward is not None:
            return self.own_forward(module, batch)
        return module(*[batch[name] for name in self.inputs])

    def loss_of(self, outputs, batch, count):
        if self.built_in:
            if not isinstance(outputs, torch.Tensor):
                raise InputError(
                    f"the module gives a {type(outputs).__name__}: the loss \"{self.loss_name}\" takes one tensor; "
                    "write loss(outputs, batch) in the file"
                )
            prediction, target = _wide(outputs), batch[self.target]
            if self.loss_name != "cross_entropy":
                target = _same_shape(prediction, target).to(prediction.dtype)
            value = self.loss(prediction, target)
        else:
            value = self.loss(outputs, batch)
        return self.sum_and_weight(value, count, f"{self.loss_name}(outputs, batch)")

    def sum_and_weight(self, value, count, what):
        if isinstance(value, (tuple, list)) and len(value) == 2:
            total, weight = value
            if not isinstance(total, torch.Tensor) or total.numel() != 1:
                raise InputError(f"{what} gives (sum, weight), and its sum is no tensor of one element")
            return _wide(total).reshape(()), weight
        if not isinstance(value, torch.Tensor):
            raise InputError(
                f"{what} gives a {type(value).__name__}: it must be (sum, weight), one value a sample, or a mean"
            )
        if value.dim() == 1 and value.shape[0] == count:
            return _wide(value).sum(), count
        if value.dim() == 0:
            self.gives_mean = True
            return _wide(value) * count, count
        raise InputError(
            f"{what} gives a tensor of shape {_shape(value)} for {count} samples: it must be (sum, weight), one value a "
            "sample, or a mean"
        )

    def remark_on_mean(self):
        """Once."""
        if not self.gives_mean or self.told_mean:
            return ""
        self.told_mean = True
        return (
            "the loss gives a mean: it is multiplied by the number of samples; where samples count for more or less than "
            "each other, give (sum, weight)"
        )

    def put_buffers_back(self, keep):
        """The host's tensors are the module's again. `keep`: the values that replaced them count, after backward."""
        self.pending = []
        for owner, key, tensor, name, _ in self.buffers:
            now = owner._buffers.get(key)
            if now is tensor:
                continue
            owner._buffers[key] = tensor
            if not keep:
                continue
            if now is None or now.shape != tensor.shape:
                raise InputError(f"the step replaces the buffer '{name}' {_shape(tensor)} by one of another shape")
            self.pending.append((tensor, now.detach()))

    def commit(self):
        if self.pending:
            with torch.no_grad():
                for tensor, value in self.pending:
                    tensor.copy_(value)
            self.pending = []

    def step(self, training, tensors, count, want_outputs, want_metrics):
        self.set_training(training)
        self.put_buffers_back(False)
        done = False
        generator = torch.get_rng_state() if self.is_compiled else None
        try:
            batch = {name: tensor for name, tensor in zip(self.names, tensors) if tensor is not None}
            if self.is_compiled:
                for tensor in batch.values():  # one code for any number of samples
                    torch._dynamo.maybe_mark_dynamic(tensor, 0)
            outputs = self.forward(self.module, batch)
            total, weight = self.loss_of(outputs, batch, count)
            if not isinstance(weight, torch.Tensor):
                weight = torch.tensor(float(weight), dtype=torch.float64)
            given = self.given_outputs(outputs, batch) if want_outputs else ()
            metrics = self.metric_table(outputs, batch, count) if want_metrics and self.metrics else None
            if self.module.training != training:
                raise InputError("the step leaves the module in another mode: leave train() and eval() to the host")
            if self.is_compiled and not torch.equal(generator, torch.get_rng_state()):
                raise InputError(_draws_compiled)
            done = True
        finally:
            self.put_buffers_back(done)
        if not total.requires_grad:
            self.commit()
        return total, weight.detach().reshape(()), metrics, *given

    def given_outputs(self, outputs, batch):
        given = []
        for name in self.outputs:
            tensor = outputs if name == "prediction" else batch[self.target]
            if self.classes:
                if name == "prediction" and tensor.dim() > 2:
                    tensor = tensor.movedim(1, -1)
                if name == "target":
                    tensor = tensor.long()
                    if tensor.dim() == outputs.dim():
                        tensor = tensor.squeeze(1)
            elif name == "target":
                tensor = _same_shape(outputs, tensor)
            given.append(_wide(tensor.detach()))
        return given

    def metric_table(self, outputs, batch, count):
        with torch.no_grad():
            values = self.own_metrics(outputs, batch)
            rows = []
            for name in self.metrics:
                if not isinstance(values, dict) or name not in values:
                    raise InputError(f"metrics(outputs, batch) does not give '{name}' now, which it gave before")
                mean = self.gives_mean
                total, weight = self.sum_and_weight(values[name], count, f"metrics(...)['{name}']")
                self.gives_mean = mean
                rows.append(torch.stack([torch.as_tensor(v, dtype=torch.float64).detach().reshape(()) for v in (total, weight)]))
            return torch.stack(rows)

    # -- what it is, found by trying --

    def trial(self, training, tensors, count):
        """One forward pass of a copy. Returns (loss, weight, outputs, batch)."""
        module = self.trial_module
        module.train(training)
        for one, kept in zip(module.modules(), self.module.modules()):
            if self.stays_in_eval(kept):
                one.eval()
        batch = dict(zip(self.names, tensors))
        with torch.no_grad():
            outputs = self.forward(module, batch)
            total, weight = self.loss_of(outputs, batch, count)
        return float(total), float(weight), outputs, batch

    def begin_trial(self):
        self.python_draws = self._python_generators()
        try:
            # Weights that hooks compute (torch.nn.utils.weight_norm) are the only tensors that cannot be copied. What is
            # never trained is shared: such a model may only just fit.
            known = {
                id(value): value.detach().clone()
                for module in self.module.modules()
                for value in vars(module).values()
                if isinstance(value, torch.Tensor) and not value.is_leaf
            }
            known.update((id(p), p) for p in self.module.parameters() if not p.requires_grad)
            self.trial_module = copy.deepcopy(self.module, known)
        except Exception as problem:
            if _ran_out_of_memory(problem):
                raise
            raise InputError(
                f"the module cannot be copied, which is how its samples and draws are tried: {problem}"
            ) from None
        # Behind a weight of zeros, as heads often begin, nothing shows; nor does what has settled for just these weights.
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for parameter in self.trial_module.parameters():
                if parameter.requires_grad and parameter.is_floating_point() and parameter.device.type == "cpu":
                    size = float(torch.linalg.vector_norm(parameter)) / math.sqrt(max(1, parameter.numel())) or 1.0
                    for part in (parameter.view(-1) if parameter.is_contiguous() else parameter).split(1 << 20):
                        noise = torch.randn(part.shape, generator=generator, dtype=torch.float32)
                        part.add_(noise.to(part.dtype), alpha=0.1 * size)

    def _python_generators(self):
        numpy = sys.modules.get("numpy")
        return [random.getstate(), numpy and [getattr(part, "tolist", lambda: part)() for part in numpy.random.get_state()]]

    def end_trial(self):
        if self.trial_module is None:
            return
        tried = dict(self.trial_module.named_buffers())
        self.trial_module, self.kept_buffers = None, []
        for _, _, tensor, name, kept in self.buffers:
            if not kept and name in tried and not torch.equal(tensor, tried[name]):
                raise InputError(
                    f"a step changes the buffer '{name}', which is registered with persistent=False, so no checkpoint "
                    "would have it: register it without"
                )
        before, now = self.python_draws, self._python_generators()
        if before[0] != now[0] or (before[1] and before[1] != now[1]):
            raise InputError(
                "a step draws from Python's random or from numpy.random, which no retry can repeat: draw with torch "
                "(torch.rand, torch.randn, dropout), which is keyed by sample"
            )

    @staticmethod
    def is_prediction(outputs, count):
        return isinstance(outputs, torch.Tensor) and outputs.dim() > 0 and outputs.shape[0] == count

    def keep_buffers(self):
        self.kept_buffers = [
            (owner, key, buffer.clone())
            for owner in self.trial_module.modules()
            for key, buffer in owner._buffers.items()
            if buffer is not None
        ]

    def restore_buffers(self):
        for owner, key, buffer in self.kept_buffers:
            owner._buffers[key] = buffer
        self.kept_buffers = []

    def changed_buffer(self):
        tried = dict(self.trial_module.named_buffers())
        changed = [n for _, _, tensor, n, _ in self.buffers if n in tried and not torch.equal(tensor, tried[n])]
        # Counters change too, and mostly nothing depends on them.
        return min(changed, key=lambda name: tried[name].numel() < 2, default="")

    def disturb_buffers(self):
        """Gives those that steps change other values, as other steps would have."""
        tried = dict(self.trial_module.named_buffers())
        generator = torch.Generator().manual_seed(0)
        for _, _, tensor, name, _ in self.buffers:
            buffer = tried.get(name)
            if buffer is None or torch.equal(buffer, tensor) or buffer.dtype == torch.bool or buffer.is_complex():
                continue
            with torch.no_grad():
                if buffer.is_floating_point():
                    size = float(buffer.square().mean().sqrt()) or 1.0
                    noise = torch.randn(buffer.shape, generator=generator, dtype=torch.float32)
                    buffer.add_(noise.to(buffer.dtype), alpha=0.1 * size)
                else:
                    buffer.add_(1000)

    def describe(self, outputs, batch, count):
        """What the host is told of outputs and metrics, from one trial in evaluation."""
        if self.is_prediction(outputs, count):
            self.outputs = ["prediction"]
            target = batch.get(self.target) if self.target else None
            if target is not None and self.loss_name == "cross_entropy" and not target.is_floating_point():
                if 2 <= outputs.shape[1] <= 4096:
                    self.classes = outputs.shape[1]
                    self.outputs.append("target")
            elif target is not None and outputs.is_floating_point() and target.is_floating_point():
                try:
                    _same_shape(outputs, target)
                    self.outputs.append("target")
                except InputError:
                    pass
        if self.own_metrics is not None:
            with torch.no_grad():
                values = self.own_metrics(outputs, batch)
            if not isinstance(values, dict):
                raise InputError("metrics(outputs, batch) must give a dict: name -> (sum, weight), one value a sample, or a mean")
            self.metrics = list(values)

    def compile(self):
        """From here on steps run compiled code: one for any number of samples, whatever the numbers were before."""
        os.environ["TORCHDYNAMO_DISABLE"] = "0"
        import torch._dynamo
        import torch._inductor.config
        import torch.fx.experimental._config

        torch._dynamo.config.disable = False
        torch._dynamo.config.recompile_limit = 16  # a mode, and one sample, are each code of their own
        torch._dynamo.config.fail_on_recompile_limit_hit = True
        torch.fx.experimental._config.use_duck_shape = False
        torch._inductor.config.compile_threads = 1  # in this process, whose memory is counted
        self.module.compile(dynamic=False)
        self.is_compiled = True

    def coupling_layer(self):
        for name, module in self.module.named_modules():
            if isinstance(module, torch.nn.modules.batchnorm._BatchNorm) and not self.stays_in_eval(module):
                return f"{name} ({type(module).__name__})"
        return ""


# ---- what C++ calls --------------------------------------------------------------------------------------------------


@_guarded
def create(*arguments):
    return Model(*arguments)


@_guarded
def tensors(model):
    """[name, tensor, kind, trains, of its group: name, lr, lr_scale, weight_decay_scale, frozen_until_step]; kind: 1
    parameter, 2 buffer, 3 derived. A buffer has four."""
    plain = _group_row({}, "")
    rows = [(name, tensor, 1, trains, *model.groups.get(id(tensor), plain)) for name, tensor, trains in model.parameters]
    rows += [(name, tensor, 2 if kept else 3, False) for _, _, tensor, name, kept in model.buffers]
    return tuple(rows)


@_guarded
def begin_trial(model):
    model.begin_trial()


@_guarded
def trial(model, training, tensors, count):
    """(loss, weight); the outputs are described by the way."""
    total, weight, outputs, batch = model.trial(training, tensors, count)
    if not training and not model.outputs and not model.metrics:
        model.describe(outputs, batch, count)
    if training and not model.is_prediction(outputs, count):  # auxiliary heads, say
        model.outputs, model.classes = [], 0
    return total, weight


@_guarded
def end_trial(model):
    model.end_trial()


@_guarded
def keep_buffers(model):
    model.keep_buffers()


@_guarded
def restore_buffers(model):
    model.restore_buffers()


@_guarded
def disturb_buffers(model):
    model.disturb_buffers()


@_guarded
def changed_buffer(model):
    return model.changed_buffer()


@_guarded
def coupling_layer(model):
    return model.coupling_layer()


@_guarded
def description(model):
    """(names of outputs, names of metrics, classes or 0, what to say of the loss, files that were imported and are not
    installed)."""
    files = {os.path.realpath(sys.modules[name].__file__) for name in _own_modules if name in sys.modules}
    return (
        tuple(model.outputs),
        tuple(model.metrics),
        model.classes,
        model.remark_on_mean(),
        tuple(sorted(files)),
    )


@_guarded
def compile_steps(model, draws):
    if draws:
        raise InputError(_draws_compiled)
    model.compile()


@_guarded
def remark(model, window):
    """After a step of this window: a sentence for the log, or ""."""
    return model.remark_on_mean() or model.growth.after_window(window)


@_guarded
def ready():
    """What is there now stays: later collections need not look at it."""
    gc.collect()
    gc.freeze()


@_guarded
def step(model, training, tensors, count, want_outputs, want_metrics):
    return model.step(training, tensors, count, want_outputs, want_metrics)


@_guarded
def commit(model):
    model.commit()


@_guarded
def collect():
    gc.collect()
