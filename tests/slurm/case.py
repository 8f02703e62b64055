"""What every test on a real Slurm starts from: one of its own, stopped whatever happens, and its logs on failure."""

import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
from cluster import BIN, ROOT, find_criu, marked_processes, wait_for  # noqa: E402,F401
from slurm import Slurm, SlurmError, missing  # noqa: E402,F401


@unittest.skipUnless(os.geteuid() == 0 and not missing(), "needs root and Slurm's packages (./run setup)")
class SlurmCase(unittest.TestCase):
    nodes, proctrack = 2, "linuxproc"

    def setUp(self):
        self.slurm = Slurm(self.nodes, proctrack=self.proctrack)
        self.addCleanup(self._finish)
        self.prepare()
        self.slurm.start()

    def prepare(self):
        """Called before Slurm starts: a test that wants a plugin says so in self.slurm.plugstack."""

    def _finish(self):
        self.slurm.stop()
        if not self._outcome.success:
            for log in sorted((self.slurm.dir / "log").glob("*.log")):
                print(f"---- {log.name}\n{self.slurm.tail(log.stem, 40)}", file=sys.stderr)
        self.slurm.remove()
