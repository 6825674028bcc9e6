"""The grid with Optuna, as its tutorials have it: trials one after the other in the study's own process, results in SQLite.

    python bench/sweep/optuna_sweep.py DATA STUDY.db

Begun again after a kill it goes on with the next point. Prints {"point": ..., "value": ...} a line for each that completes.
"""
import json
import sys

import trial

try:
    import optuna
except ImportError as problem:
    sys.exit(f"optuna_sweep.py needs Optuna (pip install optuna): {problem}")


def main(folder, database):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space = {"batch": trial.BATCH_SIZES, "accumulation": trial.ACCUMULATIONS}
    study = optuna.create_study(study_name="grid", storage=f"sqlite:///{database}", load_if_exists=True,
                                sampler=optuna.samplers.GridSampler(space, seed=0))
    for left in study.get_trials(states=(optuna.trial.TrialState.RUNNING,)):  # what the kernel killed with us
        study.tell(left.number, state=optuna.trial.TrialState.FAIL)

    def objective(suggested):
        point = [suggested.suggest_categorical(name, values) for name, values in space.items()]
        value = trial.train(folder, *point)
        print(json.dumps({"point": point, "value": value}), flush=True)
        return value

    if len(study.get_trials()) < len(trial.POINTS):
        study.optimize(objective, n_trials=len(trial.POINTS) - len(study.get_trials()), catch=(RuntimeError, MemoryError))


if __name__ == "__main__":
    main(*sys.argv[1:])
