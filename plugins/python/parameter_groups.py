"""Groups of parameters, as param_groups(module) of the user's file declares them."""

import math

import torch

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


def _read_groups(declare, module, parameters):
    """How each parameter is trained, by its identity, as `declare` says: param_groups(module) of the file, or None."""
    if declare is None:
        return {}
    rows, names = {}, {id(parameter): name for name, parameter, _ in parameters}
    groups = declare(module)
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
            if id(tensor) in rows:
                raise InputError(f"{what} has '{names[id(tensor)]}', which is in a group before it too")
            rows[id(tensor)] = row
    return rows
