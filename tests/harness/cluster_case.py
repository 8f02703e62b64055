"""A test that has a cluster, which is stopped whatever happens, and whose logs are shown on failure."""

import shutil
import sys
import unittest


class WithCluster(unittest.TestCase):
    def setUp(self):
        self.cluster = self.make_cluster()
        self.addCleanup(self._finish)
        self.cluster.start()

    def make_cluster(self):
        raise NotImplementedError

    def _finish(self):
        self.cluster.stop()
        if not self._outcome.success:
            for log in sorted(self.cluster.logs.iterdir()):
                print(f"---- {log.name}\n{self.cluster.tail(log.stem, 40)}", file=sys.stderr)
        shutil.rmtree(self.cluster.dir, ignore_errors=True)
