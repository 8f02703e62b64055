#!/usr/bin/python3
"""A job of two ranks that is checkpointed and runs on: both run until both can be stopped, and stand still until both are captured, so their
images fit together, whatever dies in between."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
import jobs  # noqa: E402
from case import ClusterCase, wait_for  # noqa: E402
from machines import Machines  # noqa: E402

RANKS = (0, 1)


class DumpedTogether(ClusterCase):
    """Neither rank is ever more than a number ahead of the other. `fault`: what happens to the agent of the second, and where."""

    nodes, fault, options = ("machine1", "machine2"), None, ()

    def make_cluster(self):
        cluster = Machines(self.nodes, self.slots, policy=self.policy)
        self.hold = cluster.dir / "hold"
        if self.fault:
            cluster.variables["machine2"] = {"SIDING_FAULT": self.fault.format(hold=self.hold)}
        return cluster

    def setUp(self):
        super().setUp()
        gate = self.new_gate()
        argv = jobs.command(self.cluster.dir, "table", jobs.TABLE, gate, 32, "--in-step")
        self.job = self.submit_gated(gate, "--name", "pair", "--nodes", 2, "--slots", 1, "--preemptible=checkpoint", *self.options,
                                     "--workdir", self.cluster.dir, "--output", f"{self.outputs()}/%j.%r", "--", *argv)
        for rank in RANKS:
            self.wait_counting(self.job, rank)

    def log(self, node):
        return (self.cluster.logs / f"agent-{node}.log").read_text()

    def events(self, kind):
        return [e for e in self.cluster.events(self.job) if e["kind"] == kind]

    def wait_for_images(self, count):
        wait_for(f"{count} checkpoints", lambda: len(self.events("continued")) >= count)

    def lines_in(self, image):
        """That each rank had written when it was stopped: all of them are there still, if it has not been restored."""
        lines = []
        for rank in RANKS:
            output = self.outputs() / f"{self.job}.{rank}"
            manifest = json.loads((self.cluster.shared / "images" / image / str(rank) / "manifest.json").read_text())
            size, = [f["size"] for f in json.loads(manifest["metadata"]["files"]) if f["path"] == str(output)]
            lines.append(output.read_bytes()[:size].count(b"\n"))
        return lines

    def assert_of_one_moment(self, image):
        first, second = self.lines_in(image)
        self.assertLessEqual(abs(first - second), 1)

    def assert_all_is_well(self):
        """The job runs on; the next checkpoint counts, and is one from which it can go on."""
        self.wait_goes_on(self.job)
        self.cluster.ctl("checkpoint", self.job)
        image, = self.checkpoints("good")
        self.assert_of_one_moment(image)
        self.lose_a_machine()
        self.assert_counted(self.job, ranks=2)

    def lose_a_machine(self):
        self.cluster.cut_power("machine1")
        self.cluster.start_machine("machine1")
        self.cluster.wait_event(self.job, "restored")


class AllAreWell(DumpedTogether):
    def test_they_come_back_together(self):
        self.assert_all_is_well()


class OneIsSlow(DumpedTogether):
    fault = "agent.dump.barrier=hold={hold}"

    def test_nobody_stands_still_until_both_can_be_stopped(self):
        self.cluster.ctl("checkpoint", "--no-wait", self.job)
        wait_for("the second rank to be at its first barrier", lambda: "fault: agent.dump.barrier=hold" in self.log("machine2"))
        self.wait_goes_on(self.job)
        self.hold.touch()
        self.cluster.wait_event(self.job, "continued")
        image, = self.checkpoints("good")
        self.assert_of_one_moment(image)
        self.assert_counted(self.job, ranks=2)


class AnAgentDies(DumpedTogether):
    fault = "agent.dump.barrier=kill"

    def test_both_run_on_and_the_next_checkpoint_counts(self):
        self.cluster.ctl("checkpoint", "--no-wait", self.job)
        agent = self.cluster.agents["machine2"]
        wait_for("the agent to be dead", lambda: agent.poll() is not None)
        self.cluster.variables["machine2"] = {}
        self.cluster.start_agent("machine2")
        self.cluster.wait_event(self.job, "dump-failed")
        self.assert_all_is_well()


class AnAgentDiesWithItsRankCaptured(AnAgentDies):
    fault = "agent.dump.barrier=kill@2"


class AnAgentDiesBehind(AnAgentDies):
    """The other rank may run on, and have an image that is whole."""

    fault = "agent.dump.behind=kill"


class OneCannotSayThatItIsCaptured(DumpedTogether):
    fault = "agent.dump.barrier=error@2"

    def test_both_run_on_and_the_next_checkpoint_counts(self):
        self.cluster.ctl("checkpoint", "--no-wait", self.job)
        self.cluster.wait_event(self.job, "dump-failed")
        self.assert_all_is_well()


class CriuDies(OneCannotSayThatItIsCaptured):
    fault = "agent.dump.barrier=kill-criu@2"


class TheJobIsKilled(DumpedTogether):
    fault = "agent.dump.barrier=hold={hold}@2"

    def test_while_its_ranks_stand_still(self):
        self.cluster.ctl("checkpoint", "--no-wait", self.job)
        wait_for("the second rank to be at its last barrier", lambda: "fault: agent.dump.barrier=hold" in self.log("machine2"))
        self.cluster.ctl("kill", "--no-wait", self.job)
        self.hold.touch()
        self.cluster.wait_state(self.job, "cancelled")
        self.assertEqual(self.events("continued"), [])
        self.assert_all_quiet()


class TheControllerDies(DumpedTogether):
    fault = "agent.dump.barrier=hold={hold}@2"

    def test_the_next_one_lets_them_run_on(self):
        self.cluster.ctl("checkpoint", "--no-wait", self.job)
        wait_for("the second rank to be at its last barrier", lambda: "fault: agent.dump.barrier=hold" in self.log("machine2"))
        self.cluster.kill9_controller()
        self.hold.touch()
        self.cluster.start_controller()
        self.cluster.wait_event(self.job, "continued")
        self.assertEqual(self.events("dump-failed"), [])
        image, = self.checkpoints("good")
        self.assert_of_one_moment(image)
        self.assert_counted(self.job, ranks=2)


class Tracked(DumpedTogether):
    policy = DumpedTogether.policy + "keep_checkpoints: 20\n"
    options = ("--checkpoint-interval", "1s")

    def test_only_what_has_changed_is_copied_while_they_stand_still(self):
        self.wait_for_images(4)
        made = min(self.checkpoints("good").values(), key=lambda c: int(c["new_bytes"]))  # the first are whole
        self.assertLess(int(made["new_bytes"]) * 2, int(made["bytes"]))
        for node in self.nodes:
            self.assertIn(" of its processes are tracked", self.log(node))
        for image in self.checkpoints("good"):
            self.assert_of_one_moment(image)
        self.lose_a_machine()
        self.wait_for_images(len(self.events("continued")) + 2)
        self.assert_counted(self.job, ranks=2)


if __name__ == "__main__":
    unittest.main()
