"""The Python half of models: what C++ calls. Each function returns (kind, sentence, traceback, value): "" and the value, or what
went wrong ("memory", "input", "code").

CMake puts user_file.py, errors.py, losses.py, parameter_groups.py, growth.py, trial.py and model.py in front of it: one module,
whose names need no import."""

import gc
import os
import sys


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
    model.trial = Trial(model)


@_guarded
def trial(model, training, tensors, count):
    """(loss, weight); the outputs are described by the way."""
    total, weight, outputs, batch = model.trial.forward(training, tensors, count)
    if not training and not model.outputs and not model.metrics:
        model.describe(outputs, batch, count)
    if training and not model.is_prediction(outputs, count):  # auxiliary heads, say
        model.outputs, model.classes = [], 0
    return total, weight


@_guarded
def end_trial(model):
    """Also where there is none."""
    ended, model.trial = model.trial, None
    if ended is not None:
        ended.end()


@_guarded
def keep_buffers(model):
    model.trial.keep_buffers()


@_guarded
def restore_buffers(model):
    model.trial.restore_buffers()


@_guarded
def disturb_buffers(model):
    model.trial.disturb_buffers()


@_guarded
def changed_buffer(model):
    return model.trial.changed_buffer()


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
        model.loss.remark_on_mean(),
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
    return model.loss.remark_on_mean() or model.growth.after_window(window)


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
