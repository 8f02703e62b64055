#!/usr/bin/python3
"""What sacct tells of a job that made way: it is one job, and nothing of it is lost."""

import unittest

from case import main, wait_for  # first: it says where the harness is
from accounting import missing
from job_case import NOBODY, PreemptionCase


@unittest.skipIf(missing(), "needs slurmdbd and mariadb (./run setup)")
class Accounted(PreemptionCase):
    accounting = True

    def rows(self, job, *args):
        """Of the job itself, not of its steps: (state, exit code, node)."""
        text = self.slurm.run("sacct", "-n", "-P", "-X", "-j", job, "-o", "State,ExitCode,NodeList", *args)
        return [tuple(line.split("|")) for line in text.splitlines()]

    def test_each_start_of_it_is_told_with_its_end(self):
        job = self.submit("--siding-preemptible", self.counter("exit 5"), uid=NOBODY)
        self.wait_counting(job)
        self.vacate(job)
        self.end_job(job, "FAILED")
        wait_for("sacct to know its end", lambda: self.rows(job) and self.rows(job)[0][0] == "FAILED")
        self.assertEqual(self.rows(job), [("FAILED", "5:0", "node2")])
        self.assertEqual(self.rows(job, "-D"), [("REQUEUED", "99:0", "node1"), ("FAILED", "5:0", "node2")])


if __name__ == "__main__":
    main()
