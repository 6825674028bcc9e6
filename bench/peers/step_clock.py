"""What a peer tells of its steps: seconds, CPU seconds and page faults of each, when the first one ended, and the process's peak."""
import json
import resource
import time


def now():
    return time.perf_counter(), time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_minflt


class StepClock:
    def __init__(self):
        self.steps, self.first_ended, self.began = [], None, now()

    def start(self):
        self.began = now()

    def stop(self):
        """A step ends; the next one begins with it where start() is not called."""
        ended = now()
        self.steps.append([after - before for before, after in zip(self.began, ended)])
        self.first_ended = self.first_ended or time.time()
        self.began = ended

    def figures(self):
        seconds, cpu_seconds, faults = (list(column) for column in zip(*self.steps))
        return {"seconds": seconds, "cpu_seconds": cpu_seconds, "faults": faults, "first_ended": self.first_ended,
                "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}

    def print(self, **more):
        print(json.dumps({**self.figures(), **more}))
