#!/usr/bin/python3
"""A job that gets an image and keeps running runs again as soon as all of the image is written: it is synced, and counts, behind it."""

import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
from case import ClusterCase, wait_for  # noqa: E402
from machines import Machines  # noqa: E402


class FinishedBehind(ClusterCase):
    """The agent stops with the first image, which is not synced yet, until it is let go."""

    nodes = ("machine1",)
    point = "agent.dump.behind"

    def make_cluster(self):
        cluster = Machines(self.nodes, self.slots, policy=self.policy)
        self.hold = cluster.dir / "hold"
        cluster.variables["machine1"] = {"SIDING_FAULT": f"{self.point}=hold={self.hold}"}
        return cluster

    def setUp(self):
        super().setUp()
        self.job = self.counter(8)
        self.wait_counting(self.job)
        self.cluster.ctl("checkpoint", "--no-wait", self.job)
        wait_for("the job to run beside its image", lambda: (
            f"fault: {self.point}=hold" in (self.cluster.logs / "agent-machine1.log").read_text()))

    def let_go(self):
        self.hold.touch()

    def lines(self):
        return (self.outputs() / f"{self.job}.0").read_text().count("\n")

    def runs_on(self):
        self.wait_goes_on(self.job)

    def finish(self):
        self.let_go()
        self.cluster.wait_event(self.job, "continued")
        return self.checkpoints()[f"{self.job}.1"]

    def test_it_runs_and_there_is_no_image_yet(self):
        self.runs_on()
        self.assertEqual(self.cluster.state(self.job), "dumping")
        self.assertNotEqual(self.checkpoints().get(f"{self.job}.1", {}).get("state"), "good")
        checkpoint = self.finish()
        self.assertEqual(checkpoint["state"], "good")
        self.assertGreater(int(checkpoint["stopped_us"]), 0)
        self.assertTrue(self.cluster.ctl("checkpoints", "verify", checkpoint["id"])["good"])
        self.assert_counted(self.job)

    def test_it_goes_on_from_where_it_was_stopped(self):
        self.runs_on()
        output = self.outputs() / f"{self.job}.0"
        before = output.stat().st_size
        self.finish()
        self.cluster.cut_power("machine1")
        self.cluster.start_machine("machine1")
        self.cluster.wait_event(self.job, "restored")
        notes = " ".join(e["text"] for e in self.cluster.events(self.job) if e["kind"] == "note")
        cut, = re.findall(rf"{output} cut back from \d+ to (\d+) bytes", notes)
        self.assertLess(int(cut), before)  # not to where it was when its image counted
        self.assert_counted(self.job)

    def test_an_agent_that_dies_meanwhile_takes_only_the_image_with_it(self):
        self.runs_on()
        self.cluster.kill9_agent("machine1")
        self.runs_on_alone()
        self.let_go()
        self.cluster.start_agent("machine1")
        self.cluster.wait_event(self.job, "continued")  # it is dumped again
        self.assertTrue(any("the agent ended during the checkpoint" in e["text"] for e in self.cluster.events(self.job)))
        self.assertEqual([c["state"] for c in self.checkpoints().values()].count("good"), 1)
        self.assert_counted(self.job)

    def runs_on_alone(self):
        more = self.lines() + 20
        wait_for("the job to run without an agent", lambda: self.lines() >= more)

    def test_it_may_end_meanwhile(self):
        self.end_alone(self.job)
        self.let_go()
        self.cluster.wait_state(self.job, "done")
        self.assert_counted(self.job)

    def test_it_may_be_killed_meanwhile(self):
        self.cluster.ctl("kill", "--no-wait", self.job)
        self.let_go()
        self.cluster.wait_state(self.job, "cancelled")
        self.assertNotIn("continued", [e["kind"] for e in self.cluster.events(self.job)])


if __name__ == "__main__":
    unittest.main()
