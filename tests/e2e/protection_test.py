#!/usr/bin/python3
"""The policy asks that no more than some seconds of work are ever lost: jobs that ask for nothing are checkpointed, each time in a blink, and one
that is ended for a deadline goes on from its last image."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
import jobs  # noqa: E402
from case import ClusterCase, wait_for  # noqa: E402
from machines import Machines  # noqa: E402


class Protected(ClusterCase):
    nodes = ("machine1",)
    # As often as can be, so that the test need not wait: a checkpoint takes half of the time at most.
    policy = ClusterCase.policy + """most_lost_work: 1s
checkpoint_bandwidth: 0.5
checkpoint_stops: 0.5
classes:
- {name: all, methods: [kill]}
"""

    def make_cluster(self):
        return Machines(self.nodes, self.slots, policy=self.policy)

    def setUp(self):
        super().setUp()
        gate = self.new_gate()
        argv = jobs.command(self.cluster.dir, "table", jobs.TABLE, gate, 32)
        self.job = self.submit_gated(gate, "--name", "table", "--slots", 1, "--preemptible=checkpoint,kill", "--workdir", self.cluster.dir,
                                     "--output", f"{self.outputs()}/%j.%r", "--", *argv)
        self.wait_counting(self.job)
        self.wait_for_images(4)

    def wait_for_images(self, count):
        wait_for(f"{count} checkpoints", lambda: len(self.events("continued")) >= count)

    def events(self, kind):
        return [e for e in self.cluster.events(self.job) if e["kind"] == kind]

    def test_a_job_that_asks_for_nothing_is_tracked_and_its_images_are_small(self):
        made = min(self.checkpoints("good").values(), key=lambda c: int(c["new_bytes"]))  # the first are whole
        self.assertLess(int(made["new_bytes"]) * 2, int(made["bytes"]))
        self.assertGreaterEqual(int(made["took_us"]), int(made["stopped_us"]))
        self.assertIn(" of its processes are tracked", (self.cluster.logs / "agent-machine1.log").read_text())
        self.assertIn("on schedule, every ", self.events("order-dump")[-1]["text"])
        self.assert_counted(self.job)

    def test_one_that_is_ended_for_a_deadline_goes_on_from_its_last_image(self):
        express = self.express()
        self.assert_in_time(express)
        step, = self.cluster.ctl("explain", express)["plans"][-1]["steps"]
        self.assertEqual(step["method"], "kill")
        self.assertRegex(step["reason"], r": its image is restored in [\d.]+m?s, and [\d.]+m?s of work is done again")
        self.cluster.wait_state(express, "done")
        self.cluster.wait_event(self.job, "restored")
        self.assert_counted(self.job)

    def test_one_whose_node_fails_goes_on_from_its_last_image(self):
        self.cluster.cut_power("machine1")
        self.cluster.start_machine("machine1")
        self.cluster.wait_event(self.job, "restored")
        images = len(self.events("continued"))
        self.wait_for_images(images + 2)
        self.assert_counted(self.job)


if __name__ == "__main__":
    unittest.main()
