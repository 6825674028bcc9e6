"""Headroom in Python. The program is the command `headroom`, here `program`."""

from _headroom_command import PROGRAM as program, VERSION as __version__, torch_folder

__all__ = ["program"]

torch_folder()  # ImportError where torch is not the one that Headroom was built with
