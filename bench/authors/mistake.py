"""One mistake of a plugin's author, and what is expected of Headroom."""
from dataclasses import dataclass, field

# Who tells the mistake:
COMPILER = "the compiler"  # plugins build fails, with a sentence of the SDK
CHECK = "check"            # plugins check fails
RUN = "run"                # plugins check passes; the run ends with an error
TOLD = "a line"            # both end with 0; a line of one of them tells it
MENDED = "the SDK"         # no mistake any more: the run learns exactly what the template does
NOBODY = "nobody"          # both end with 0: no program can know


@dataclass
class Mistake:
    name: str
    edits: list               # of the template: (what stands there once, what comes in its place)
    by: str                   # see above
    run: tuple = (0, "")      # exit code (None: it goes on until it is ended) and a part of what it says
    check: str = ""           # a part of what it says
    code: int = 3             # of the check that fails
    alone: bool = False       # check without an experiment
    seconds: float = 40.0     # for check and run each
    settings: list = field(default_factory=list)  # --set of the run
    environment: dict = field(default_factory=dict)
    why: str = ""             # why nobody can know
