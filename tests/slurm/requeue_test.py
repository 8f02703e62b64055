#!/usr/bin/python3
"""What Slurm's own rules about requeued jobs mean for a job that leaves and comes back."""

import time

from case import main
from job_case import NOBODY, PreemptionCase


class Requeue(PreemptionCase):
    def test_a_job_may_be_preempted_three_times(self):
        job = self.submit("--siding-preemptible", self.counter(), uid=NOBODY)
        nodes = ("node1", "node2")
        for incarnation in (1, 2, 3):
            self.wait_counting(job, 30 * incarnation)
            node, other = nodes[(incarnation - 1) % 2], nodes[incarnation % 2]
            self.vacate(job, incarnation, node, other)
        ended = self.end_job(job)
        self.assertEqual((ended["BatchHost"], ended["Restarts"]), ("node2", "3"))
        self.assert_counted(job)

    def test_a_job_that_waits_for_it_starts_when_it_has_really_ended(self):
        job = self.submit("--siding-preemptible", self.counter(), uid=NOBODY)
        after = [self.slurm.submit("-o", self.work / f"out.{kind}", f"--dependency={kind}:{job}", "--wrap", f"tail -n1 {self.work}/out.{job}")
                 for kind in ("afterok", "afterany")]
        self.wait_counting(job)
        self.vacate(job)
        self.assertEqual({self.slurm.job(other)["Reason"] for other in after}, {"Dependency"})
        self.end_job(job)
        for other, kind in zip(after, ("afterok", "afterany")):
            self.slurm.wait_state(other, "COMPLETED")
            self.assertEqual((self.work / f"out.{kind}").read_text(), "done\n")

    def test_its_time_limit_begins_anew(self):
        job = self.submit("--siding-preemptible", "-t", "10", self.counter(), uid=NOBODY)
        self.wait_counting(job)
        first = self.slurm.job(job)
        self.vacate(job)
        again = self.slurm.wait_state(job, "RUNNING")
        self.assertEqual((again["TimeLimit"], self.granted(again)), ("00:10:00", 600))
        self.assertGreater(again["StartTime"], first["StartTime"])

    @staticmethod
    def granted(job):
        begin, end = (time.mktime(time.strptime(job[key], "%Y-%m-%dT%H:%M:%S")) for key in ("StartTime", "EndTime"))
        return end - begin

    def test_no_requeue_does_not_keep_it_from_coming_back(self):
        job = self.submit("--siding-preemptible", "--no-requeue", self.counter(), uid=NOBODY)
        self.wait_counting(job)
        self.vacate(job)
        ended = self.end_job(job)
        self.assertEqual((ended["Requeue"], ended["Restarts"]), ("0", "1"))
        self.assert_counted(job)


if __name__ == "__main__":
    main()
