"""What every test on a real Slurm starts from: one of its own, stopped whatever happens, and its logs on failure."""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import unittest

for folder in ("harness", "e2e"):
    sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / folder))
from cluster import BIN, PATIENCE, ROOT, find_criu, kill, last_lines, marked_processes, wait_for  # noqa: E402,F401
from slurm import Slurm, SlurmError, missing  # noqa: E402,F401
from agents import Agents  # noqa: E402,F401
import jobs  # noqa: E402,F401

PLUGIN = BIN.parent / "lib" / "siding_spank.so"


@unittest.skipUnless(os.geteuid() == 0 and not missing(), "needs root and Slurm's packages (./run setup)")
class SlurmCase(unittest.TestCase):
    nodes, proctrack, accounting = 2, "linuxproc", False

    def setUp(self):
        self.slurm = Slurm(self.nodes, proctrack=self.proctrack, accounting=self.accounting)
        self.addCleanup(self._finish)
        self.prepare()
        self.slurm.start()

    def prepare(self):
        """Called before Slurm starts: a test that wants a plugin says so in self.slurm.plugstack."""

    def _finish(self):
        self.slurm.stop()
        result = self._outcome.result
        why = [text for test, text in result.failures + result.errors if test is self]
        if why:
            print("\n".join(why), file=sys.stderr)  # again at the end, but who keeps only the beginning has it here
            for log in sorted(self.slurm.dir.rglob("*.log")):
                print(f"---- {log.name}\n{last_lines(log, 60)}", file=sys.stderr)
        self.slurm.remove()


AT_ONCE = 4


def main():
    """Runs the tests of the calling program side by side, each with a Slurm of its own: most of the time they wait for Slurm's delay
    before it starts a requeued job. Tests named on the command line run as ever."""
    if len(sys.argv) > 1:
        unittest.main(verbosity=2)
    loader = unittest.defaultTestLoader
    classes = [c for c in vars(sys.modules["__main__"]).values() if isinstance(c, type) and issubclass(c, unittest.TestCase)]
    names = [f"{c.__name__}.{test}" for c in classes for test in loader.getTestCaseNames(c)]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        passed = list(pool.map(_run_one, names))
    sys.exit(0 if all(passed) else 1)


def _run_one(name):
    done = subprocess.run([sys.executable, sys.argv[0], name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout, flush=True)
    if done.returncode < 0:
        print(f"{name}: ended by signal {-done.returncode}", flush=True)
    return done.returncode == 0
