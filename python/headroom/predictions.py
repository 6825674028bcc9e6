"""What a run's model did on a recording."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Union

from . import tensors


class Prediction:
    """What `headroom predict` wrote for one recording: docs/predict.md."""

    def __init__(self, folder: Union[str, os.PathLike[str]], report: Optional[Mapping[str, Any]] = None) -> None:
        self.folder = Path(folder)
        self.report: Dict[str, Any] = dict(report or {})  # errors, as `headroom predict --json` prints them

    @property
    def page(self) -> Path:
        """The charts, one self-contained file."""
        return self.folder / "prediction.html"

    @property
    def pictures(self) -> List[Path]:
        """One for each frame, where the model's target is pictures."""
        return sorted(self.folder.glob("[0-9]*.png"))

    def arrays(self, of: str = "predictions") -> Dict[str, Any]:
        """Arrays of numpy by name. of="predictions": "open_loop", "ensembled", "recorded", each float64 [steps,
        channels] in measured units; or each output of the model, [samples, ...]. of="recordings", for windows that are
        put together: "prediction", "hold_last", "recorded" [rows, channels], "recording" and "row" [rows].
        FileNotFoundError where there is no such file, as for pictures."""
        return tensors.numpy_arrays(self.folder / f"{of}.safetensors")

    def __repr__(self) -> str:
        return f"Prediction({str(self.folder)!r})"
