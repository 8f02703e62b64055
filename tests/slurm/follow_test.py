#!/usr/bin/python3
"""Jobs that a real Slurm started, in the hands of siding's controller: it knows them, orders them off their nodes, and follows
them to where Slurm starts them again."""

import unittest

from case import BIN, PLUGIN, wait_for
from cluster import Cluster
from job_case import NOBODY, PreemptionCase


class Follow(PreemptionCase):
    def prepare(self):
        self.slurm.plugstack = f"optional {PLUGIN} programs={BIN}"
        sockets = {node: ("--slurm-socket", self.slurm.agent_socket(node)) for node in self.slurm.nodes}
        self.siding = Cluster(self.slurm.nodes, slots=4, folder=self.slurm.dir / "siding", agent_args=sockets)
        self.addCleanup(self.siding.stop)
        self.siding.start()
        self.work = self.slurm.dir / "work"
        self.work.mkdir()
        self.work.chmod(0o777)

    def running(self, job):
        """The job as siding sees it, once it knows that it runs."""
        return wait_for(f"siding to see job {job} run", lambda: (j := self.siding.jobs().get(job)) and j["state"] == "running" and j)

    def vacate_for(self, job, node):
        self.siding.ctl("vacate", job)
        self.slurm.wait_state(job, "PENDING")
        self.slurm.run("scontrol", "update", f"JobId={job}", f"ReqNodeList={node}")

    def test_a_job_leaves_on_sidings_order_and_goes_on_where_slurm_puts_it(self):
        job = self.submit("--siding-preemptible", self.counter(), uid=NOBODY)
        self.wait_counting(job)
        self.assertEqual(self.running(job)["nodes"], ["node1"])
        self.vacate_for(job, "node2")
        self.slurm.wait_state(job, "RUNNING")
        self.assertEqual(self.running(job)["nodes"], ["node2"])
        ended = self.end_job(job)
        self.assertEqual((ended["BatchHost"], ended["Restarts"]), ("node2", "1"))
        self.assert_counted(job)
        self.siding.wait_state(job, "done")

    def test_a_checkpoint_is_made_while_it_runs(self):
        job = self.submit("--siding-preemptible", self.counter(), uid=NOBODY)
        self.wait_counting(job)
        self.running(job)
        self.siding.ctl("checkpoint", job)
        self.assertEqual(self.siding.job(job)["checkpoint"], f"slurm-{job}.1")
        self.end_job(job)
        self.assert_counted(job)

    def test_it_is_saved_as_often_as_it_asked(self):
        job = self.submit("--siding-preemptible", "--siding-checkpoint-interval=1s", self.counter(), uid=NOBODY)
        self.running(job)
        wait_for("two checkpoints", lambda: sum(e["kind"] == "continued" for e in self.siding.events(job)) >= 2)
        self.assertEqual(self.slurm.job(job)["Restarts"], "0")

    def test_it_is_frozen_and_goes_on(self):
        job = self.submit("--siding-preemptible", self.counter(), uid=NOBODY)
        self.wait_counting(job)
        self.running(job)
        self.siding.ctl("suspend", job)
        self.assertEqual(self.siding.state(job), "suspended")
        self.siding.ctl("resume", job)
        self.end_job(job)
        self.assert_counted(job)

    def test_a_controller_that_was_killed_knows_it_again(self):
        job = self.submit("--siding-preemptible", self.counter(), uid=NOBODY)
        self.wait_counting(job)
        self.running(job)
        self.siding.kill9_controller()
        self.siding.start_controller()
        self.assertEqual(self.running(job)["nodes"], ["node1"])
        self.vacate_for(job, "node2")
        self.end_job(job)
        self.assert_counted(job)

    def test_a_job_that_slurm_requeued_by_itself_is_followed(self):
        job = self.submit("--siding-preemptible", self.counter(), uid=NOBODY)
        self.wait_counting(job)
        self.running(job)
        self.slurm.run("scontrol", "requeue", job)
        self.slurm.run("scontrol", "update", f"JobId={job}", "ReqNodeList=node2")
        self.slurm.wait_state(job, "RUNNING")
        wait_for("siding to see it on node2", lambda: self.siding.job(job).get("nodes") == ["node2"])
        self.running(job)
        self.slurm.run("scancel", job)
        wait_for("siding to see it end", lambda: self.siding.state(job) in ("failed", "cancelled", "done"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
