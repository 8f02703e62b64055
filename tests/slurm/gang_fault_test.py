#!/usr/bin/python3
"""An agent of a step whose connections are kept is killed in the middle of a dump: no rank ends, none is started twice, and each byte is what was
sent."""

from case import main, wait_for
from gang_test import Gang


class AnAgentDies(Gang):
    """That of one rank, at `phase` of a dump."""

    nodes, phase = 2, None

    def setUp(self):
        super().setUp()
        self.siding.kill9_agent("node2")
        self.siding.variables["node2"] = {"SIDING_FAULT": f"{self.phase}=kill"}
        self.siding.start_agent("node2")
        self.gang_job = self.gang(self.mesh())
        self.wait_running(self.gang_job)
        self.wait_goes_on(0, 1)

    def replace_agent(self):
        agent = self.siding.agents["node2"]
        wait_for("the agent to be dead", lambda: agent.poll() is not None)
        self.siding.variables["node2"] = {}
        self.siding.start_agent("node2")

    def assert_it_ends_well(self, restarts):
        self.wait_running(self.gang_job)
        self.wait_goes_on(0, 1)
        self.assertEqual(self.end_job(self.gang_job)["Restarts"], str(restarts))
        self.assert_counted(0, 1)

    def checkpoint(self):
        self.siding.ctl("checkpoint", "--no-wait", self.gang_job)
        self.replace_agent()
        wait_for("an end of the checkpoint", lambda: any(e["kind"] in ("dump-failed", "continued") for e in self.siding.events(self.gang_job)))
        self.assert_it_ends_well(restarts=0)

    def make_way(self):
        express = self.express(nodes=2, command="srun hostname")
        self.replace_agent()
        self.slurm.wait_state(express, "COMPLETED")
        self.assert_it_ends_well(restarts=1)


class ItIsBeingStopped(AnAgentDies):
    phase = "agent.dump.barrier"

    def test_it_runs_on(self):
        self.checkpoint()

    def test_it_makes_way(self):
        self.make_way()


class ItIsHeld(ItIsBeingStopped):
    phase = "agent.network.held"


class ItIsWritten(ItIsBeingStopped):
    phase = "agent.dump.frozen"


class TheControllerHasBeenTold(ItIsBeingStopped):
    phase = "agent.dump.prepared"


class ItIsToCount(ItIsBeingStopped):
    phase = "agent.dump.decided"


class ItCounts(ItIsBeingStopped):
    phase = "agent.dump.committed"


class TheOthersEnd(AnAgentDies):
    """Slurm ends this one with them, unless it is dumped again before."""

    phase = "agent.dump.leaving"

    def test_it_makes_way(self):
        self.make_way()


if __name__ == "__main__":
    main()
