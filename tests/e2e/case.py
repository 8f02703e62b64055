"""What every end-to-end test starts from: a cluster that is stopped whatever happens, and its logs on failure."""

import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
from cluster import PATIENCE, Cluster, CtlError, find_criu, kill, wait_for  # noqa: E402,F401
from cluster_case import WithCluster  # noqa: E402
import jobs  # noqa: E402

FAR = 600  # seconds from now to a deadline: how fast a machine is decides nothing. Tight ones are the simulation's
WORKS = os.geteuid() == 0 and find_criu() is not None


@unittest.skipUnless(WORKS, "needs root and a criu that works here (./run setup)")
class ClusterCase(WithCluster):
    nodes, slots, policy = ("n1", "n2"), 1, "min_runtime: 0s\ncooldown: 0s\nmargin: 500ms\n"

    def make_cluster(self):
        return Cluster(self.nodes, self.slots, policy=self.policy)

    def setUp(self):
        self.gates = {}  # by job: the file without which it does not end
        super().setUp()

    def new_gate(self):
        folder = self.cluster.dir / "gates"
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
        return folder / str(len(self.gates))

    def submit_gated(self, gate, *args, uid=None):
        """Submits a job whose command waits for this gate; returns its id."""
        job = self.cluster.submit(*args, uid=uid)
        self.gates[job] = gate
        return job

    def open_gate(self, job):
        self.gates[job].touch()

    def end_job(self, job):
        self.open_gate(job)
        return self.cluster.wait_state(job, "done")

    def counter(self, mib=8, nodes=1, methods="checkpoint", *extra, uid=None):
        """Submits a counter, which counts until its gate is opened; returns its id. Its output is out(id, rank)."""
        gate = self.new_gate()
        argv = jobs.command(self.cluster.dir, "counter", jobs.COUNTER, gate, mib)
        return self.submit_gated(gate, "--name", "counter", "--nodes", nodes, "--slots", 1, f"--preemptible={methods}", *extra,
                                 "--workdir", self.cluster.dir, "--output", f"{self.outputs()}/%j.%r", "--", *argv, uid=uid)

    def outputs(self):
        folder = self.cluster.dir / "out"
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
        return folder

    def express(self, nodes=1, *extra, command=("/bin/sleep", 1)):
        return self.cluster.submit("--name", "express", "--nodes", nodes, "--slots", 1, "--start-by", f"+{FAR}s", *extra, "--workdir",
                                   self.cluster.dir, "--output", f"{self.outputs()}/%j.%r", "--", *command)

    def wait_counting(self, job, rank=0, lines=20):
        """Waits until the job has written so much, and the controller has heard that it runs: verbs are for what runs."""
        path = self.outputs() / f"{job}.{rank}"
        wait_for(f"job {job} to have written {lines} lines",
                 lambda: path.exists() and path.read_text().count("\n") >= lines)
        wait_for(f"the controller to know that job {job} runs", lambda: self.cluster.job(job)["state"] not in ("pending", "starting"))

    def wait_goes_on(self, job):
        """Waits until the job has done something since now."""
        path = self.outputs() / f"{job}.0"
        self.wait_counting(job, lines=path.read_text().count("\n") + 20)

    def checkpoints(self, *states):
        """By id, as the controller shows them: in these states; unsaid: in any."""
        listed = self.cluster.ctl("checkpoints", "list").get("checkpoints", [])
        return {c["id"]: c for c in listed if not states or c["state"] in states}

    def end_alone(self, job):
        """Opens its gate and waits for the end of its work, without asking the controller."""
        self.open_gate(job)
        wait_for(f"job {job} to come to its end", lambda: jobs.counted(self.outputs() / f"{job}.0") is None)

    def assert_counted(self, job, ranks=1):
        """It may end now, and each of its ranks has counted without a gap, as if nothing had happened."""
        self.end_job(job)
        for rank in range(ranks):
            self.assertIsNone(jobs.counted(self.outputs() / f"{job}.{rank}"))

    def assert_in_time(self, job):
        view = self.cluster.wait_state(job, "running", "done")
        self.assertLessEqual(int(view["first_started_us"]), int(view["spec"]["start_by_us"]))

    def assert_all_quiet(self):
        """Nothing is left on the nodes."""
        wait_for("no process of any job to be left", lambda: not self.cluster.task_processes())
