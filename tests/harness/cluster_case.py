"""A test that has a cluster, which is stopped whatever happens, and whose logs are shown on failure."""

import shutil
import sys
import unittest


def has_failed(test):
    """For its cleanups: unittest takes each of them for a success of its own."""
    result = test._outcome.result
    # A part of it (subTest) is another object, which knows it.
    return any(getattr(failed, "test_case", failed) is test for failed, _ in [*result.failures, *result.errors])


class WithCluster(unittest.TestCase):
    def setUp(self):
        self.cluster = self.make_cluster()
        self.addCleanup(self._finish)
        self.cluster.start()

    def make_cluster(self):
        raise NotImplementedError

    def _finish(self):
        self.cluster.stop()
        if has_failed(self):
            for log in sorted(self.cluster.logs.iterdir()):
                print(f"---- {log.name}\n{self.cluster.tail(log.stem, 40)}", file=sys.stderr)
        shutil.rmtree(self.cluster.dir, ignore_errors=True)
