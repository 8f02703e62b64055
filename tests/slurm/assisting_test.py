#!/usr/bin/python3
"""A site where Slurm itself decides who makes way: siding saves the victims within their grace, and they continue where they were."""

import unittest

from case import SlurmError
from deadline_test import DeadlineCase
from preemption_test import NOBODY

TIERS = """\
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=low Nodes=ALL GraceTime=600 PriorityTier=1 State=UP
PartitionName=high Nodes=ALL PriorityTier=10 PreemptMode=OFF State=UP
"""


class Assisting(DeadlineCase):
    config = "slurm:\n  mode: assisting\n  ask_socket: {dir}/run/ask.sock\n"

    def prepare(self):
        super().prepare()
        self.slurm.extra = TIERS

    def test_slurms_victims_are_saved_within_their_grace(self):
        victims = [self.victim("node1", "-p", "low"), self.victim("node2", "-p", "low")]
        urgent = self.slurm.submit("-o", "/dev/null", "-p", "high", "-N2", "-c", self.slurm.cpus, "--wrap", "hostname", uid=NOBODY,
                                   cwd=self.work)
        self.slurm.wait_state(urgent, "COMPLETED")
        self.assertEqual(self.assert_unharmed(*victims), ["1", "1"])
        for job in victims:
            self.assertIn("slurm preempts it", "".join(str(event) for event in self.siding.events(job)))

    def test_deadlines_are_refused(self):
        with self.assertRaisesRegex(SlurmError, "takes no deadlines"):
            self.express()


if __name__ == "__main__":
    unittest.main(verbosity=2)
