#!/usr/bin/python3
"""`sidingctl submit` where a real Slurm has the queue: users say what they always say, and Slurm has the job."""

import subprocess
import unittest

from case import BIN, jobs
from cluster import CtlError
from deadline_test import CONFIG, DeadlineCase
from preemption_test import NOBODY


class Submit(DeadlineCase):
    config = CONFIG + "  suspend: false\n"

    def submit(self, *args, uid=NOBODY):
        return self.siding.submit("--workdir", self.work, "--slots", self.slurm.cpus, *args, uid=uid)

    def counting(self, *args):
        """A batch job that fills a node, once siding knows that it runs."""
        command = jobs.command(self.work, "counter", jobs.COUNTER, self.gate, 8)
        job = self.submit("--output", "out.%j", *args, "--", *command)
        self.wait_counting(job)
        self.running(job)
        return job

    def ended(self, job):
        ended = self.slurm.wait_state(job, "COMPLETED", "FAILED")
        self.assertEqual(ended["ExitCode"], "0:0", self.output(job))
        return ended

    def test_a_batch_job_and_one_with_a_deadline_that_takes_its_node_both_end_well(self):
        victims = [self.counting("--preemptible=checkpoint") for _ in self.slurm.nodes]
        express = self.submit("--start-by", "+10m", "--output", "express.%j", "--", "hostname")
        self.ended(express)
        self.assertEqual(sorted(self.assert_unharmed(*victims)), ["0", "1"])
        self.assert_nothing_left()

    def test_on_several_nodes_a_task_runs_on_each_and_knows_its_rank(self):
        job = self.submit("--nodes", 2, "--env", "WORD=it's", "--output", "out.%j.%r", "--", "sh", "-c",
                          'echo "$SIDING_RANK of $SIDING_NODES on $SLURMD_NODENAME: $WORD"')
        self.ended(job)
        said = [self.output(f"{job}.{rank}") for rank in range(2)]
        self.assertEqual(said, ["0 of 2 on node1: it's\n", "1 of 2 on node2: it's\n"])

    def test_the_job_is_the_callers_and_as_it_was_described(self):
        show = 'id -u; pwd; echo "$WORD" "$SIDING_RANK" "$SIDING_NODES" "$SIDING_JOB_ID"; echo "$1"'
        job = self.submit("--name", "as described", "--memory", "100MiB", "--walltime", "90s", "--env", "WORD=a, b", "--output", "out.%j",
                          "--", "sh", "-c", show, "sh", "it's $HOME")
        shown = self.ended(job)
        self.assertEqual(self.output(job), f"{NOBODY}\n{self.work}\na, b 0 1 {job}\nit's $HOME\n")
        self.assertEqual((shown["TimeLimit"], shown["NumNodes"], shown["MinMemoryNode"]), ("00:02:00", "1", "100M"))

    def test_one_that_cannot_be_served_is_refused_in_the_plugins_words(self):
        with self.assertRaisesRegex(CtlError, "siding: needs 3 nodes, the cluster has 2") as refusal:
            self.submit("--nodes", 3, "--start-by", "+10m", "--", "true")
        self.assertEqual(refusal.exception.code, 1)
        self.assertEqual(self.slurm.run("squeue", "-h"), "")

    def test_what_slurm_has_nothing_for_is_refused_by_name(self):
        with self.assertRaisesRegex(CtlError, "priority: jobs are submitted to Slurm here") as refusal:
            self.submit("--priority", 3, "--", "true")
        self.assertEqual(refusal.exception.code, 2)

    def test_wait_ends_as_the_job_does(self):
        with self.assertRaises(CtlError) as ended:
            self.submit("--wait", "--output", "/dev/null", "--", "sh", "-c", "exit 3")
        self.assertEqual(ended.exception.code, 3)

    def test_wait_waits_for_a_job_that_leaves_and_comes_back(self):
        waiting = subprocess.Popen([BIN / "sidingctl", "--socket", self.siding.socket, "submit", "--wait", "--preemptible=checkpoint",
                                    "--output", "out.%j", "--", "sh", "-c", f"{self.count()}; exit 5"],
                                   env=self.slurm.env, cwd=self.work, stdout=subprocess.PIPE, text=True)
        self.addCleanup(waiting.stdout.close)
        self.addCleanup(waiting.wait)
        self.addCleanup(waiting.kill)
        job = int(waiting.stdout.readline().split()[1])
        self.wait_counting(job)
        self.running(job)
        self.siding.ctl("vacate", job)
        self.gate.touch()
        self.assertEqual(waiting.wait(), 5)
        self.assert_counted(job)
        self.assertEqual(self.slurm.job(job)["Restarts"], "1")

    def test_a_dry_run_asks_siding(self):
        plan = self.siding.ctl("plan", "--start-by", "+10m", "--", "true", uid=NOBODY)
        self.assertTrue(plan["feasible"])
        self.assertEqual(self.slurm.run("squeue", "-h"), "")


if __name__ == "__main__":
    unittest.main(verbosity=2)
