#!/usr/bin/python3
"""Two controllers on two hosts, with mutual TLS and a journal that both see: cables that are pulled, power that is cut, clocks that
differ, and an older controller that resumes. Prints how long each take-over took."""

import json
import pathlib
import re
import shutil
import signal
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
from cluster import PATIENCE, wait_for  # noqa: E402
from hosts import Hosts, why_not  # noqa: E402
from machines import fake_time_library  # noqa: E402
from standby_test import StandbyCase  # noqa: E402

WHY_NOT = why_not()


@unittest.skipIf(WHY_NOT, f"no hosts of their own: {WHY_NOT}")
class TwoHosts(StandbyCase):
    clocks = {}

    def make_cluster(self):
        return Hosts(self.nodes, slots=self.slots, policy=self.policy, clocks=self.clocks)

    def beat(self):
        """How many seconds the active controller has been that, by its lease."""
        return json.loads((self.cluster.dir / "controller" / "journal.db.lease").read_text())["beat"]

    def settle(self):
        wait_for("the active one to have been that for a while", lambda: self.beat() >= 12)

    def journal(self):
        """What is written stays."""
        return [(int(e["seq"]), e["kind"]) for e in self.cluster.events()]

    def start_again(self, name):
        """As systemd does."""
        self.cluster.start_one(name)
        wait_for(f"{name} to stand by", lambda: "standing by" in self.cluster.tail(f"sidingd-{name}", 3))


class Cables(TwoHosts):
    def test_active_one_whose_cable_is_pulled_hands_over(self):
        self.settle()
        self.start_preemption()
        self.cluster.wait_event(self.victim, "order-dump")
        self.end("a", self.cluster.pull)
        self.take_over("cable of the active one pulled while the victim was dumped")
        self.assertEqual(self.cluster.sidingds["a"].wait(PATIENCE), 1)
        self.assertIn("handed over: no agent reaches this controller, and those of n1, n2 reach one that stands by",
                      self.cluster.tail("sidingd-a"))
        self.assert_everything_came_out_right()
        self.assert_journal_without_gaps()

    def test_it_stands_by_from_then_on_and_takes_over_when_it_is_plugged_again(self):
        self.settle()
        job = self.counter()
        self.wait_counting(job)
        self.end("a", self.cluster.pull)
        self.take_over("cable of the active one pulled")
        self.cluster.sidingds["a"].wait(PATIENCE)
        self.start_again("a")
        self.assertTrue(self.cluster.is_active("b"))
        self.cluster.plug("a")
        self.settle()
        self.assertTrue(self.cluster.is_active("b"))
        self.end("b", self.cluster.pull)
        self.take_over("cable of the other one pulled", name="a")
        self.assert_counted(job)
        self.assert_started_once_each_time(job)
        self.assert_journal_without_gaps()

    def test_a_cable_of_the_one_that_stands_by_changes_nothing(self):
        self.settle()
        self.cluster.pull("b")
        self.start_preemption()
        self.assert_everything_came_out_right()
        self.assertTrue(self.cluster.is_active("a"))

    def test_a_cable_of_one_node_changes_nothing_for_the_others(self):
        self.settle()
        self.cluster.network.pull("n2")
        wait_for("the agent of n2 to look for a controller", lambda: "no connection to the controller" in self.cluster.tail("agent-n2"))
        job = self.counter()
        self.assert_counted(job)
        self.assertTrue(self.cluster.is_active("a"))
        self.cluster.network.plug("n2")
        wait_for("all nodes to be up", lambda: all(n["state"] == "up" for n in self.cluster.node_list()))
        self.assertTrue(self.cluster.is_active("a"))

    def test_agents_that_reach_nobody_wait_for_the_active_one(self):
        self.settle()
        job = self.counter()
        self.wait_counting(job)
        for name in "ab":
            self.cluster.pull(name)
        at = self.beat()
        wait_for("the active one to have stayed that", lambda: self.beat() >= at + 12)
        for name in "ab":
            self.cluster.plug(name)
        # Agents that ask the other one first may be heard of there before they are here: then it is the active one.
        wait_for("all nodes to be up", lambda: all(n["state"] == "up" for n in self.cluster.node_list()))
        self.assert_counted(job)


class Power(TwoHosts):
    def test_active_hosts_power_is_cut_in_the_middle_of_a_preemption(self):
        self.start_preemption()
        self.cluster.wait_event(self.victim, "order-dump")
        self.end("a", self.cluster.power_off)
        self.take_over("power of the active one cut while the victim was dumped")
        self.assert_everything_came_out_right()
        self.assert_journal_without_gaps()


class SplitBrain(TwoHosts):
    def test_older_one_whose_host_stood_still_cannot_act_any_more(self):
        job = self.counter()
        self.wait_counting(job)
        self.since = time.monotonic()
        self.cluster.signal("a", signal.SIGSTOP)
        self.cluster.pull("a")
        self.take_over("host of the active one stood still")
        self.cluster.plug("a")
        before = self.journal()
        self.cluster.signal("a", signal.SIGCONT)
        self.assertIn(self.cluster.sidingds["a"].wait(PATIENCE), (1, -signal.SIGKILL))
        self.assertEqual(self.journal()[:len(before)], before)
        self.assert_counted(job)
        self.assert_started_once_each_time(job)
        self.assert_journal_without_gaps()


@unittest.skipUnless(fake_time_library(), "libfaketime is not installed")
class SplitStorage(TwoHosts):
    """Each host has a journal of its own in the end, and both controllers take theirs for the only one."""
    clocks = {"sidingd-b": "+1h"}  # what it begins is newer than whatever the other one can begin meanwhile

    def test_agents_refuse_an_older_one_that_no_journal_tells(self):
        job = self.counter()
        self.wait_counting(job)
        self.since = time.monotonic()
        self.cluster.power_off("a")
        split = self.cluster.dir / "split"
        shutil.copytree(self.cluster.dir / "controller", split)
        (split / "journal.db.lease").unlink()
        self.take_over("power of the active one cut")
        argv = self.cluster.controller_argv(self.cluster.socket_of("a"))
        argv[argv.index("--state-dir") + 1] = split
        self.cluster.sidingds["a"] = self.cluster._spawn("sidingd-a", argv)
        wait_for("both to be active", lambda: self.cluster.is_active("a") and self.cluster.is_active("b"))
        self.cluster.plug("a")
        self.cluster.power_off("b")
        address = re.escape(self.cluster.address("a"))
        for node in self.nodes:
            wait_for(f"the agent of {node} to refuse it",
                     lambda n=node: re.search(rf"the controller at {address} is refused: ", self.cluster.tail(f"agent-{n}", 200)))
        # What it wants of them they do not hear.
        self.cluster.ctl("kill", "--no-wait", job)
        self.cluster.kill9("a")
        self.cluster.plug("b")
        self.cluster.start_one("b")
        wait_for("the newer one to be active again", lambda: self.cluster.is_active("b"))
        self.assert_counted(job)
        self.assertNotIn("order-kill", [e["kind"] for e in self.cluster.events(job)])


@unittest.skipUnless(fake_time_library(), "libfaketime is not installed")
class ClockAhead(TwoHosts):
    """The lease does not depend on what the hosts take for the time of day."""
    clocks = {"sidingd-b": "+2h"}

    def test_take_over_there_and_back_with_clocks_hours_apart(self):
        self.settle()
        self.assertTrue(self.cluster.is_active("a"))
        job = self.counter()
        self.wait_counting(job)
        self.end("a", self.cluster.power_off)
        self.take_over("power cut, clocks hours apart")
        self.cluster.plug("a")
        self.start_again("a")
        self.settle()
        self.assertTrue(self.cluster.is_active("b"))
        self.end("b", self.cluster.power_off)
        self.take_over("power cut, and back", name="a")
        self.assert_counted(job)
        self.assert_started_once_each_time(job)
        self.assert_journal_without_gaps()


class ClockBehind(ClockAhead):
    clocks = {"sidingd-a": "+2h"}


if __name__ == "__main__":
    unittest.main(verbosity=2)
