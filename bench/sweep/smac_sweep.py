"""The grid with SMAC, each trial limited in memory by pynisher (a process of its own, under setrlimit).

    python bench/sweep/smac_sweep.py DATA OUT LIMIT_MIB

Prints {"point": ..., "value": ...} a line for each trial that completes.
"""
import functools
import json
import logging
import os
import sys

import trial

try:
    import pynisher  # noqa: F401  what SMAC limits with
    from ConfigSpace import Categorical, Configuration, ConfigurationSpace
    from smac import BlackBoxFacade, Scenario
except ImportError as problem:
    sys.exit(f"smac_sweep.py needs SMAC and pynisher (pip install smac pynisher): {problem}")


def objective(config, seed=0, folder=""):
    point = [int(config["batch"]), int(config["accumulation"])]
    value = trial.train(folder, *point)
    with open(os.environ["SMAC_SWEEP_RESULTS"], "a") as file:
        file.write(json.dumps({"point": point, "value": value}) + "\n")
    return value


def main(folder, out, limit_mib):
    """`limit_mib` of address space; SMAC documents megabytes and hands the number to pynisher, which takes bytes."""
    os.makedirs(out, exist_ok=True)
    results = os.environ["SMAC_SWEEP_RESULTS"] = os.path.join(out, "results.jsonl")
    space = ConfigurationSpace({"batch": Categorical("batch", trial.BATCH_SIZES, ordered=True),
                                "accumulation": Categorical("accumulation", trial.ACCUMULATIONS, ordered=True)})
    points = [Configuration(space, {"batch": batch, "accumulation": steps}) for batch, steps in trial.POINTS]
    scenario = Scenario(space, deterministic=True, n_trials=len(points), trial_memory_limit=int(limit_mib) << 20,
                        output_directory=out, seed=0)
    design = BlackBoxFacade.get_initial_design(scenario, n_configs=0, additional_configs=points)
    smac = BlackBoxFacade(scenario, functools.partial(objective, folder=folder), initial_design=design,
                          logging_level=logging.ERROR, overwrite=True)
    smac.optimize()
    if os.path.exists(results):
        with open(results) as file:
            print(file.read(), end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
