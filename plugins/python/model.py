"""The module of the user's file, as the host trains it."""

import inspect
import json
import os
import random
import sys

import torch

_draws_compiled = (
    "a step draws random numbers (dropout, rand), which compiled code cannot draw by the keys of samples: leave "
    "model.options.compile out, or what draws"
)


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
    _require_suit(make, name, arguments, "model.options.args")
    module = make(**arguments)
    if not isinstance(module, torch.nn.Module):
        raise InputError(f"{name}(...) gives a {type(module).__name__}: model.options.class must give a torch.nn.Module")
    return module


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
        self.loss = Loss(loss, target, self._function, self.file.__file__)
        self._list_tensors()
        self.groups = _read_groups(self._function("param_groups", "module"), self.module, self.parameters)
        self.training = None
        # A module that is in eval() as a whole was left so by what loaded it.
        left = self.module.modules() if self.module.training else ()
        self.stay_in_eval = [m for m in left if not m.training]
        self.pending = []  # (buffer, value that replaces it)
        self.is_compiled = False
        self.outputs, self.metrics, self.classes = [], [], 0
        self.trial = None
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
            total, weight = self.loss.of(outputs, batch, count)
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
                total, weight = _sum_and_weight(values[name], count, f"metrics(...)['{name}']")
                rows.append(torch.stack([torch.as_tensor(v, dtype=torch.float64).detach().reshape(()) for v in (total, weight)]))
            return torch.stack(rows)

    @staticmethod
    def is_prediction(outputs, count):
        return isinstance(outputs, torch.Tensor) and outputs.dim() > 0 and outputs.shape[0] == count

    def describe(self, outputs, batch, count):
        """What the host is told of outputs and metrics, from one trial in evaluation."""
        if self.is_prediction(outputs, count):
            self.outputs = ["prediction"]
            target = batch.get(self.target) if self.target else None
            if target is not None and self.loss.name == "cross_entropy" and not target.is_floating_point():
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
