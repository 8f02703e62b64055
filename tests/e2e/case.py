"""What every end-to-end test starts from: a cluster that is stopped whatever happens, and its logs on failure."""

import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
from cluster import PATIENCE, Cluster, CtlError, find_criu, kill, wait_for  # noqa: E402,F401
from cluster_case import WithCluster  # noqa: E402
import jobs  # noqa: E402

WORKS = os.geteuid() == 0 and find_criu() is not None


@unittest.skipUnless(WORKS, "needs root and a criu that works here (./run setup)")
class ClusterCase(WithCluster):
    nodes, slots, policy = ("n1", "n2"), 1, "min_runtime: 0s\ncooldown: 0s\nmargin: 500ms\n"

    def make_cluster(self):
        return Cluster(self.nodes, self.slots, policy=self.policy)

    def counter(self, n=150, mib=8, nodes=1, methods="checkpoint", *extra, uid=None, gate=None):
        """Submits a counter; returns its id. Its output is out(id, rank). It does not end before the file `gate` is there."""
        argv = jobs.command(self.cluster.dir, "counter", jobs.COUNTER, n, mib, *([gate] if gate else []))
        return self.cluster.submit("--name", "counter", "--nodes", nodes, "--slots", 1, f"--preemptible={methods}", *extra,
                                   "--workdir", self.cluster.dir, "--output", f"{self.outputs()}/%j.%r", "--", *argv, uid=uid)

    def outputs(self):
        folder = self.cluster.dir / "out"
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
        return folder

    def express(self, nodes=1, within=20, seconds=1.0):
        return self.cluster.submit("--name", "express", "--nodes", nodes, "--slots", 1, "--start-by", f"+{within}s", "--workdir",
                                   self.cluster.dir, "--output", f"{self.outputs()}/%j.%r", "--", "/bin/sleep", seconds)

    def wait_counting(self, job, rank=0, lines=20):
        """Waits until the job has written so much, and the controller has heard that it runs: verbs are for what runs."""
        path = self.outputs() / f"{job}.{rank}"
        wait_for(f"job {job} to have written {lines} lines",
                 lambda: path.exists() and path.read_text().count("\n") >= lines)
        wait_for(f"the controller to know that job {job} runs", lambda: self.cluster.job(job)["state"] not in ("pending", "starting"))

    def wait_done_alone(self, job, n):
        """Waits for the end of its work, without asking the controller."""
        wait_for(f"job {job} to come to its end", lambda: jobs.counted(self.outputs() / f"{job}.0", n) is None)

    def assert_counted(self, job, n=150, ranks=1):
        self.cluster.wait_state(job, "done")
        for rank in range(ranks):
            problem = jobs.counted(self.outputs() / f"{job}.{rank}", n)
            self.assertIsNone(problem)

    def assert_in_time(self, job):
        view = self.cluster.wait_state(job, "running", "done")
        self.assertLessEqual(int(view["first_started_us"]), int(view["spec"]["start_by_us"]))

    def assert_all_quiet(self):
        """Nothing is left on the nodes."""
        wait_for("no process of any job to be left", lambda: not self.cluster.task_processes())
