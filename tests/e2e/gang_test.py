#!/usr/bin/python3
"""A job whose ranks talk to each other over TCP, and whose connections are kept: they go on after a move, a preemption, a checkpoint and
the loss of a node, and each byte is what was sent."""

import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
import jobs  # noqa: E402
from case import ClusterCase, wait_for  # noqa: E402
from cluster import kill9, marked_processes  # noqa: E402
from hosts import Hosts, why_not  # noqa: E402
from machines import Machines  # noqa: E402
from ports import free_ports  # noqa: E402

WHY_NO_HOSTS = why_not()


class Gang(ClusterCase):
    nodes, ranks, size, options, fault = ("machine1", "machine2", "machine3"), 2, 20000, (), None
    uid = None  # whose it is; None: root's

    def make_cluster(self):
        cluster = Machines(self.nodes, self.slots, policy=self.policy)
        self.hold = cluster.dir / "hold"
        if self.fault:
            cluster.variables["machine2"] = {"SIDING_FAULT": self.fault.format(hold=self.hold)}
        return cluster

    def setUp(self):
        super().setUp()
        self.job = self.mesh()

    def mesh(self):
        gate = self.new_gate()
        argv = jobs.command(self.cluster.dir, "mesh", jobs.MESH, gate, self.size)
        job = self.submit_gated(gate, "--name", "mesh", "--nodes", self.ranks, "--slots", 1, "--preemptible=checkpoint",
                                "--connections=keep", *self.options, "--workdir", self.cluster.dir, "--output",
                                f"{self.outputs()}/%j.%r", "--", *argv, uid=self.uid)
        for rank in range(self.ranks):
            self.wait_counting(job, rank)
        return job

    def events(self, kind):
        return [e for e in self.cluster.events(self.job) if e["kind"] == kind]

    def log(self, node):
        return (self.cluster.logs / f"agent-{node}.log").read_text()

    def assert_it_ends_well(self):
        self.wait_goes_on(self.job)
        self.assert_counted(self.job, self.ranks)


class ItMoves(Gang):
    def test_it_goes_on_elsewhere(self):
        for _ in range(3):
            count = len(self.events("restored"))
            self.cluster.ctl("vacate", self.job)
            wait_for("it to have been restored", lambda: len(self.events("restored")) > count)
            self.wait_goes_on(self.job)
        seen = [os.listdir(f"/proc/{pid}/root/sys/class/net") for pid in self.in_networks()]
        self.assertGreaterEqual(len(seen), self.ranks)
        for names in seen:
            self.assertIn("siding0", names)
        self.assert_it_ends_well()

    def in_networks(self):
        """Processes that are in a network of a rank's own."""
        return [pid for pid in marked_processes(self.cluster.dir) if "siding0:" in pathlib.Path(f"/proc/{pid}/net/dev").read_text()]


class ItMakesWay(Gang):
    nodes = ("machine1", "machine2")

    def test_it_comes_back_after_a_request(self):
        express = self.express(2)
        self.assert_in_time(express)
        self.cluster.wait_state(express, "done")
        self.assert_it_ends_well()


class FourRanks(Gang):
    nodes, ranks = ("machine1", "machine2", "machine3", "machine4"), 4

    def test_they_make_way_together(self):
        express = self.express(1)
        self.assert_in_time(express)
        self.assert_it_ends_well()


class ItRunsOn(Gang):
    def test_its_images_are_of_one_moment(self):
        for count in range(1, 4):
            self.wait_goes_on(self.job)
            self.cluster.ctl("checkpoint", self.job)
            wait_for(f"{count} checkpoints", lambda: len(self.events("continued")) >= count)
        self.wait_goes_on(self.job)
        self.cluster.cut_power("machine1")
        self.cluster.start_machine("machine1")
        self.cluster.wait_event(self.job, "restored")
        self.assert_it_ends_well()


@unittest.skipIf(WHY_NO_HOSTS, f"no hosts of their own: {WHY_NO_HOSTS}")
class OverHosts(ItMoves):
    """Each machine has a network of its own, and the controller is on another one."""

    def make_cluster(self):
        return Hosts(self.nodes, slots=self.slots, policy=self.policy)


class SomebodysMoves(ItMoves):
    uid = 65534


class SomebodysIsTracked(Gang):
    """Images on a schedule, of which all but the first have only what was written since."""

    uid, options = 65534, ("--checkpoint-interval", "1s")

    def test_it_comes_back(self):
        wait_for("5 checkpoints", lambda: len(self.events("continued")) >= 5)
        self.cluster.cut_power("machine1")
        self.cluster.start_machine("machine1")
        self.cluster.wait_event(self.job, "restored")
        self.assert_it_ends_well()


class ADumpFails(Gang):
    """Nothing has happened to the connections."""

    fault, why = "agent.network.held=error", "fault: agent.network.held"

    def test_it_runs_on(self):
        self.cluster.ctl("checkpoint", "--no-wait", self.job)
        self.assertIn(self.why, str(self.cluster.wait_event(self.job, "dump-failed")))
        self.assert_it_ends_well()


class AnAgentDiesWhileItHolds(Gang):
    fault = "agent.network.held=kill"

    def test_it_runs_on(self):
        self.cluster.ctl("checkpoint", "--no-wait", self.job)
        agent = self.cluster.agents["machine2"]
        wait_for("the agent to be dead", lambda: agent.poll() is not None)
        self.cluster.variables["machine2"] = {}
        self.cluster.start_agent("machine2")
        self.cluster.wait_event(self.job, "dump-failed")
        self.assert_it_ends_well()


class CriuDiesWhileItHolds(ADumpFails):
    fault, why = "agent.network.held=kill-criu", "criu"


class AnAgentDiesAsItJoins(Gang):
    """`fault`: before it is done, or when nobody has been told."""

    fault = "agent.network.join=kill"

    def wait_counting(self, job, rank=0, lines=20):
        agent = self.cluster.agents["machine2"]
        if self.cluster.variables["machine2"]:
            wait_for("the agent to be dead", lambda: agent.poll() is not None)
            self.cluster.variables["machine2"] = {}
            self.cluster.start_agent("machine2")
        super().wait_counting(job, rank, lines)

    def test_the_next_one_joins(self):
        self.assert_it_ends_well()


class AnAgentDiesWhenItHasJoined(AnAgentDiesAsItJoins):
    fault = "agent.network.joined=kill"


class ARestoredRankDies(Gang):
    """Its peers have not been let in, so nothing has happened to their images."""

    nodes, fault = ("machine1", "machine2"), "shim.network=kill"

    def test_all_are_restored_again(self):
        self.cluster.ctl("vacate", "--no-wait", self.job)
        self.cluster.wait_event(self.job, "restore-failed")
        self.cluster.variables["machine2"] = {}
        kill9(self.cluster.agents["machine2"])
        self.cluster.start_agent("machine2")
        self.cluster.wait_event(self.job, "restored")
        self.assert_it_ends_well()


class ARankSpeaksAndEnds(Gang):
    """Its peer does not read, so what it said last is nowhere but in its kernel."""

    def mesh(self):
        gate = self.new_gate()
        argv = jobs.command(self.cluster.dir, "parting", jobs.PARTING, gate, 4)
        return self.submit_gated(gate, "--name", "parting", "--nodes", 2, "--slots", 1, "--preemptible=checkpoint", "--connections=keep",
                                 "--workdir", self.cluster.dir, "--output", f"{self.outputs()}/%j.%r", "--", *argv)

    def said(self, rank):
        path = self.outputs() / f"{self.job}.{rank}"
        return path.read_text() if path.exists() else ""

    def test_its_peer_is_not_saved_without_that(self):
        wait_for("the first rank to have said it", lambda: self.said(0))
        self.cluster.ctl("checkpoint", "--no-wait", self.job)
        failed = self.cluster.wait_event(self.job, "dump-failed")
        self.assertIn("it has ended, and what it sent last has not arrived", str(failed))
        self.end_job(self.job)
        self.assertEqual(self.said(0), self.said(1))


class ItEnds(Gang):
    def make_cluster(self):
        """Its links have a port of their own: those of other jobs that have been killed may be there for a while."""
        cluster = super().make_cluster()
        (self.port,) = free_ports(1)
        cluster.agent_args = ["--gang-port", self.port]
        return cluster

    def networks(self):
        """Its ranks' links have their end in this network."""
        listed = subprocess.run(["ss", "-Huan", "sport", "=", str(self.port)], capture_output=True, text=True, check=True)
        return listed.stdout.splitlines()

    def test_nothing_of_its_network_is_left(self):
        self.assertTrue(self.networks())
        self.end_job(self.job)
        wait_for("no link of it to be left", lambda: not self.networks())

    def test_nor_is_if_it_is_killed(self):
        self.cluster.ctl("kill", self.job)
        wait_for("no link of it to be left", lambda: not self.networks())


if __name__ == "__main__":
    unittest.main()
