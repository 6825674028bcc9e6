"""docs/python.md, followed: each block of Python below "Runs from Python" is run, in order, in an empty folder."""

import os
import re
import shutil
import tempfile
import unittest
from pathlib import Path

import headroom

PAGE = Path(__file__).parents[2] / "docs/python.md"


class ThePage(unittest.TestCase):
    def test_runs_as_it_says(self):
        page = PAGE.read_text()
        begin = page.index("\n## Runs from Python\n")
        end = page.find("\n## ", begin + 1)
        blocks = list(
            re.compile(r"```python\n(.*?)```", re.DOTALL).finditer(page, begin, end if end > 0 else len(page))
        )
        self.assertGreater(len(blocks), 3)
        folder = tempfile.mkdtemp(prefix="headroom-test-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder)
        names = {}
        for block in blocks:
            lines_before = "\n" * page.count("\n", 0, block.start(1))  # so that a traceback shows the page's line
            exec(compile(lines_before + block[1], str(PAGE), "exec"), names)
        self.assertEqual([run.status for run in names["sweep"].trials], ["finished", "finished"])
        self.assertIn("train.optimizer.lr", names["best"].settings)
        self.assertEqual(names["prediction"].arrays("recordings")["prediction"].shape[1], 20)
        self.assertTrue(headroom.Run.latest("runs/quick_demo").predictions)


if __name__ == "__main__":
    unittest.main()
