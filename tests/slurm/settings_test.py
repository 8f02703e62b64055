#!/usr/bin/python3
"""A Slurm that would lose images by its settings: siding's controller says so, when it is checked and when it starts."""

import subprocess
import unittest

from case import BIN, PATIENCE, SlurmCase, wait_for
from cluster import Cluster

WARNING = "slurm: RequeueExit lacks 99"
CONFIG = "slurm:\n  mode: steering\n  backend: {backend}\n  ask_socket: {dir}/run/ask.sock\n"


class Settings(SlurmCase):
    nodes = 1

    def prepare(self):
        # The last line of its kind counts.
        self.slurm.extra = "RequeueExit=7"

    def check(self, backend):
        path = self.slurm.dir / "sidingd.yaml"
        path.write_text(CONFIG.format(dir=self.slurm.dir, backend=backend))
        return subprocess.run([BIN / "sidingd", "--config", path, "--check-config"], env=self.slurm.env, capture_output=True, text=True,
                              timeout=PATIENCE)

    def test_a_check_of_the_configuration_says_it(self):
        for backend in ("library", "tools"):
            with self.subTest(backend):
                done = self.check(backend)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f"sidingd: warning: {WARNING}", done.stderr)
                self.assertNotIn("JobFileAppend", done.stderr)

    def test_a_check_without_slurm_says_that_nothing_was_checked(self):
        self.slurm.stop_controller()
        for backend in ("library", "tools"):
            with self.subTest(backend):
                done = self.check(backend)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("slurm: its settings were not checked", done.stderr)
                self.assertIn("configuration and policy are good", done.stdout)

    def test_a_controller_that_starts_says_it(self):
        siding = Cluster([], folder=self.slurm.dir / "siding", config=CONFIG.format(dir=self.slurm.dir, backend="library"),
                         env=self.slurm.env)
        self.addCleanup(siding.stop)
        siding.start()
        wait_for("the warning", lambda: any(WARNING in log.read_text() for log in siding.logs.iterdir()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
