#!/usr/bin/python3
"""Agents whose controller is away, nodes that are rebooted or lost, and clocks that are wrong: jobs continue, nothing is
decided twice, and nothing stays frozen for nothing."""

import json
import os
import pathlib
import signal
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from case import FAR, ClusterCase, CtlError, wait_for  # noqa: E402
from cluster import marked_processes  # noqa: E402
from machines import Machines, fake_time_library  # noqa: E402
from vanishing import may_be_gone, paths  # noqa: E402


class AgentsCase(ClusterCase):
    nodes = ("machine1", "machine2")

    def kinds(self, job):
        return [e["kind"] for e in self.cluster.events(job)]

    def record(self, node, job, incarnation=1, rank=0):
        """What the agent remembers of the task; empty: nothing."""
        folder = self.cluster.task_folder(node, f"{job}.{incarnation}.{rank}")
        try:
            return json.loads((folder / "task.json").read_text()) if folder else {}
        except FileNotFoundError:
            return {}

    def phase(self, node, job, **which):
        return self.record(node, job, **which).get("report", {}).get("phase")

    def wait_phase(self, node, job, phase, **which):
        wait_for(f"the task of job {job} on {node} to be {phase}", lambda: self.phase(node, job, **which) == phase)

    def lines(self, job, rank=0):
        return (self.outputs() / f"{job}.{rank}").read_text().count("\n")

    def checkpointed(self, nodes):
        job = self.counter(nodes=nodes)
        self.wait_counting(job)
        self.cluster.ctl("checkpoint", job)
        at = self.lines(job)
        wait_for("progress beyond the checkpoint", lambda: self.lines(job) > at + 20)
        return job

    def assert_came_back(self, job, ranks=1, why="is gone"):
        self.cluster.wait_event(job, "restored")
        self.assert_counted(job, ranks)
        kinds = self.kinds(job)
        self.assertEqual((kinds.count("started"), kinds.count("restored"), kinds.count("succeeded")), (1, 1, 1), kinds)
        self.assertTrue(any(why in e["text"] for e in self.cluster.events(job)))
        self.assert_all_quiet()

    def assert_ended_once(self, job):
        kinds = self.kinds(job)
        self.assertEqual((kinds.count("started"), kinds.count("succeeded")), (1, 1), kinds)


class HeldCase(AgentsCase):
    """The agent of one node stops at a fault point, until it is let go."""

    held = None  # the node, the point and which time that is reached

    def make_cluster(self):
        node, self.point, time = self.held
        cluster = Machines(self.nodes, self.slots, policy=self.policy)
        self.hold = cluster.dir / "hold"
        cluster.variables[node] = {"SIDING_FAULT": f"{self.point}=hold={self.hold}@{time}"}
        return cluster

    def wait_held(self):
        log = self.cluster.logs / f"agent-{self.held[0]}.log"
        wait_for(f"the agent to come to {self.point}", lambda: f"fault: {self.point}=hold" in log.read_text())

    def let_go(self):
        self.hold.touch()


class Alone(AgentsCase):
    """The controller is away."""

    def test_an_end_is_reported_once_when_the_controller_is_back(self):
        short, long = self.counter(), self.counter()
        self.wait_counting(short)
        self.wait_counting(long)
        self.cluster.kill9_controller()
        self.end_alone(short)
        self.cluster.start_controller()
        self.assert_counted(short)
        self.cluster.kill9_controller()
        self.cluster.start_controller()
        self.assert_counted(long)
        for job in (short, long):
            self.assert_ended_once(job)
        self.assert_all_quiet()

    def test_an_end_is_reported_once_when_the_link_stood_still(self):
        job = self.counter()
        self.wait_counting(job)
        self.cluster.controller.send_signal(signal.SIGSTOP)
        self.end_alone(job)
        self.wait_phase("machine1", job, "EXITED")
        self.cluster.controller.send_signal(signal.SIGCONT)
        self.assert_counted(job)
        self.assert_ended_once(job)


class AloneInAFreeze(HeldCase):
    """A job is about to be frozen, and the controller dies."""

    held = "machine1", "agent.suspend", 1

    def test_a_freeze_that_was_ordered_is_done_and_nothing_else(self):
        job = self.counter(methods="suspend")
        self.wait_counting(job)
        self.cluster.ctl("suspend", "--no-wait", job)
        self.wait_held()
        self.cluster.kill9_controller()
        self.let_go()
        self.wait_phase("machine1", job, "SUSPENDED")
        self.cluster.start_controller()
        self.cluster.wait_state(job, "suspended")
        self.cluster.ctl("resume", job)
        self.assert_counted(job)


class AloneInADump(AgentsCase):
    """A gang is being dumped, one rank's image is whole and waits for the other's, and the controller dies. The agents do not look at
    how long they have waited before the test lets them."""

    def make_cluster(self):
        cluster = Machines(self.nodes, self.slots, policy=self.policy)
        self.gates = {point: cluster.dir / point for point in ("agent.dump.sealed", "agent.dump.waiting", "agent.decision")}
        for node, points in zip(self.nodes, (("agent.dump.waiting", "agent.decision"), self.gates)):
            cluster.variables[node] = {"SIDING_FAULT": ",".join(f"{point}=hold={self.gates[point]}" for point in points)}
        return cluster

    def wait_at(self, node, point):
        log = self.cluster.logs / f"agent-{node}.log"
        wait_for(f"the agent of {node} to come to {point}", lambda: f"fault: {point}=hold" in log.read_text())

    def let_go(self, *points):
        for point in points:
            self.gates[point].touch()

    def setUp(self):
        super().setUp()
        self.gang = self.counter(nodes=2)
        self.wait_counting(self.gang, rank=1)
        self.cluster.ctl("checkpoint", "--no-wait", self.gang)
        self.wait_phase("machine1", self.gang, "PREPARED")
        self.wait_at("machine2", "agent.dump.sealed")
        self.cluster.kill9_controller()
        self.let_go("agent.dump.sealed")

    def checkpoints(self):
        return [c["state"] for c in self.cluster.ctl("checkpoints", "list", "--job", self.gang).get("checkpoints", [])]

    def test_it_is_committed_if_the_controller_is_back_in_time(self):
        self.wait_phase("machine2", self.gang, "PREPARED", rank=1)
        self.cluster.start_controller()
        for node in self.nodes:
            self.wait_at(node, "agent.decision")
        self.let_go("agent.decision", "agent.dump.waiting")
        wait_for("the checkpoint to be good", lambda: self.checkpoints() == ["good"])
        self.assertNotIn("note", self.kinds(self.gang))
        self.cluster.ctl("kill", self.gang)

    def test_it_is_undone_if_the_controller_stays_away_and_the_next_one_counts(self):
        self.let_go("agent.decision", "agent.dump.waiting")
        for rank, node in enumerate(self.nodes):
            self.wait_phase(node, self.gang, "RUNNING", rank=rank)
            now = self.lines(self.gang, rank)
            wait_for("the rank to continue", lambda r=rank, n=now: self.lines(self.gang, r) > n + 5)
        self.assertEqual(paths(self.cluster.shared, "staging/*"), [])
        self.cluster.start_controller()
        self.cluster.wait_event(self.gang, "dump-failed")
        failed, = [e["text"] for e in self.cluster.events(self.gang) if e["kind"] == "dump-failed"]
        self.assertIn("not committed in time", failed)
        self.cluster.wait_state(self.gang, "running")
        self.cluster.ctl("checkpoint", self.gang)
        self.assertEqual(self.checkpoints().count("good"), 1)
        self.cluster.ctl("kill", self.gang)


class Reboot(AgentsCase):
    """The power of a node is cut, and it is started again."""

    def make_cluster(self):
        return Machines(self.nodes, self.slots, policy=self.policy)

    def test_its_job_goes_on_elsewhere_from_its_checkpoint(self):
        job = self.checkpointed(1)
        self.cluster.ctl("cordon", "machine1")
        self.cluster.cut_power("machine1")
        self.cluster.start_machine("machine1")
        self.assert_came_back(job)
        self.assertEqual(self.record("machine1", job, incarnation=2), {})

    def test_a_frozen_job_is_not_taken_for_one_that_still_waits(self):
        job = self.checkpointed(1)
        self.cluster.ctl("suspend", job)
        self.cluster.wait_state(job, "suspended")
        self.cluster.cut_power("machine1")
        self.cluster.start_machine("machine1")
        self.assert_came_back(job)


    def test_an_on_demand_job_gets_another_node_by_its_deadline(self):
        express = self.express(command=("/bin/sleep", "infinity"))
        self.assertEqual(self.cluster.wait_state(express, "running")["nodes"], ["machine1"])
        victim = self.counter()
        self.wait_counting(victim)
        self.cluster.ctl("cordon", "machine1")
        self.cluster.cut_power("machine1")
        self.cluster.start_machine("machine1")
        self.cluster.wait_event(express, "restart-needed")
        self.assertEqual(self.cluster.wait_state(express, "running")["nodes"], ["machine2"])
        self.cluster.ctl("kill", express)
        self.assert_counted(victim)


class RebootInADump(HeldCase):
    held = "machine1", "agent.dump.sealed", 2

    def test_a_gang_that_was_being_dumped_goes_on_from_the_checkpoint_before(self):
        job = self.checkpointed(2)
        self.cluster.ctl("vacate", "--no-wait", job)
        self.wait_held()
        self.cluster.cut_power("machine1")
        self.cluster.start_machine("machine1")
        self.assert_came_back(job, ranks=2)


class Lost(AgentsCase):
    """A node does not come back, and an operator says so."""

    nodes = ("machine1", "machine2", "machine3")

    def make_cluster(self):
        return Machines(self.nodes, self.slots, policy=self.policy)

    def node(self, name):
        return next(n for n in self.cluster.node_list() if n["name"] == name)

    def lose(self, name):
        wait_for(f"{name} to be down", lambda: self.node(name)["state"] == "down")
        self.cluster.ctl("lost", name)
        self.assertEqual(self.node(name)["state"], "lost")
        self.assertIn("node-lost", [e["kind"] for e in self.cluster.events()])

    def hang(self):
        """The program of the only job does nothing any more."""
        for pid in marked_processes(self.cluster.dir / "counter.py"):
            with may_be_gone():
                if pathlib.Path(f"/proc/{pid}/comm").read_text().startswith("python3"):
                    os.kill(pid, signal.SIGSTOP)

    def test_its_job_goes_on_elsewhere_from_its_checkpoint(self):
        job = self.checkpointed(1)
        with self.assertRaisesRegex(CtlError, "node machine1 is there, its agent is connected"):
            self.cluster.ctl("lost", "machine1")
        self.cluster.cut_power("machine1")
        self.lose("machine1")
        self.assert_came_back(job, why="rank 0 on machine1 is lost with its node")
        self.assertEqual(self.node("machine1")["state"], "lost")

    def test_a_gang_goes_on_with_all_its_ranks(self):
        job = self.checkpointed(2)
        self.assertEqual(self.cluster.job(job)["nodes"], ["machine1", "machine2"])
        self.cluster.cut_power("machine2")
        self.lose("machine2")
        self.assert_came_back(job, ranks=2, why="rank 1 on machine2 is lost with its node")

    def test_one_that_comes_back_all_the_same_runs_nothing_twice(self):
        job = self.checkpointed(1)
        self.cluster.kill9_agent("machine1")
        self.hang()
        self.lose("machine1")
        self.cluster.wait_event(job, "restored")
        self.cluster.start_agent("machine1")
        wait_for("what is left there to be ended and forgotten", lambda: not self.record("machine1", job))
        self.assertEqual(self.node("machine1")["state"], "up")
        self.assert_came_back(job, why="rank 0 on machine1 is lost with its node")
        for other in self.nodes[1:]:
            self.cluster.ctl("cordon", other)
        self.assert_counted(self.counter())


@unittest.skipUnless(fake_time_library(), "needs libfaketime (./run setup)")
class Clocks(AgentsCase):
    def make_cluster(self):
        return Machines(self.nodes, self.slots, policy=self.policy, clocks={"machine1": "+5h", "machine2": "-5h", "sidingd": "+0"})

    def start_preemption(self):
        self.victim = self.counter(mib=64, nodes=2)
        self.wait_counting(self.victim, rank=1)
        self.asked = time.time()
        self.express_job = self.express(nodes=2)

    def assert_right(self):
        self.assert_in_time(self.express_job)
        self.assert_counted(self.victim, ranks=2)
        self.assertEqual(self.kinds(self.victim).count("commit"), 1)

    def test_deadlines_hold_on_nodes_whose_clocks_are_hours_off(self):
        self.start_preemption()
        self.assert_right()
        started = int(self.cluster.job(self.express_job)["first_started_us"]) / 1e6
        self.assertTrue(self.asked < started < time.time(), started)

    def test_a_request_does_not_notice_that_the_controllers_clock_is_set(self):
        self.start_preemption()
        for off, kind in (("+1h", "order-dump"), ("-1h", "commit"), ("+0", "released")):
            self.cluster.wait_event(self.victim, kind)
            self.cluster.set_clock("sidingd", off)
        self.assert_right()
        self.assertEqual(self.kinds(self.express_job).count("planned"), 1)

    def test_the_controller_says_that_its_clock_was_set(self):
        self.cluster.set_clock("sidingd", "+1h")
        wait_for("a warning", lambda: "the machine's clock was set" in self.cluster.tail("sidingd", 1000))

    def test_a_deadline_counts_by_the_controllers_clock(self):
        self.cluster.set_clock("user", "-5h")
        self.cluster.env = {**self.cluster.env, **self.cluster.with_clock("user")}
        asked = time.time()
        express = self.express()
        self.assert_in_time(express)
        start_by = int(self.cluster.job(express)["spec"]["start_by_us"]) / 1e6
        self.assertTrue(asked + FAR < start_by < time.time() + FAR, start_by)


if __name__ == "__main__":
    unittest.main(verbosity=2)
