#!/usr/bin/python3
"""Two controllers at one journal: the one that stands by takes over from one that is killed, stopped or cut off, nothing
is lost or done twice, and the older one does not act any more. Prints how long each take-over took."""

import pathlib
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from case import PATIENCE, ClusterCase, wait_for  # noqa: E402
from cluster import BIN  # noqa: E402
from pair import Pair  # noqa: E402


class StandbyCase(ClusterCase):
    shared, express_job = False, None

    def make_cluster(self):
        return Pair(self.nodes, self.slots, policy=self.policy, shared=self.shared)

    def start_preemption(self):
        self.victim = self.counter(mib=64, nodes=2)
        self.wait_counting(self.victim, rank=1)
        self.express_job = self.express(nodes=2)

    def take_over(self, what, name="b"):
        active, whole = self.cluster.await_take_over(name, self.since)
        print(f"{what}: active after {active:.1f} s, with all agents after {whole:.1f} s", flush=True)

    def end(self, name, how):
        self.since = time.monotonic()
        how(name)

    def assert_everything_came_out_right(self):
        self.cluster.wait_state(self.express_job, "done")
        self.assert_counted(self.victim, ranks=2)
        for job in (self.express_job, self.victim):
            self.assert_started_once_each_time(job)
        self.assert_all_quiet()

    def assert_started_once_each_time(self, job):
        """As often as it was placed, and the express never twice."""
        kinds = [e["kind"] for e in self.cluster.events(job)]
        self.assertEqual(kinds.count("place"), kinds.count("started") + kinds.count("restored"), kinds)
        if job == self.express_job:
            self.assertEqual(kinds.count("started"), 1)

    def assert_journal_without_gaps(self):
        numbers = [int(e["seq"]) for e in self.cluster.events()]
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)))


class Standby(StandbyCase):
    def test_active_one_is_killed_in_the_middle_of_a_preemption(self):
        self.start_preemption()
        self.cluster.wait_event(self.victim, "order-dump")
        self.end("a", self.cluster.kill9)
        self.take_over("killed while the victim was dumped")
        self.assert_everything_came_out_right()
        self.assert_journal_without_gaps()

    def test_active_one_is_stopped_in_the_middle_and_goes_on_later(self):
        self.start_preemption()
        self.cluster.wait_event(self.victim, "order-dump")
        self.end("a", lambda name: self.cluster.signal(name, signal.SIGSTOP))
        self.take_over("stopped while the victim was dumped")
        before = len(self.cluster.events())
        self.cluster.signal("a", signal.SIGCONT)
        code = self.cluster.sidingds["a"].wait(PATIENCE)
        # One that was stopped in the middle of a write has been killed by the other.
        self.assertIn(code, (1, -signal.SIGKILL))
        if code == 1:
            self.assertIn("fenced: ", self.cluster.tail("sidingd-a"))
            self.assertIn("has taken over", self.cluster.tail("sidingd-a"))
        self.assertGreaterEqual(len(self.cluster.events()), before)
        self.assert_everything_came_out_right()
        self.assert_journal_without_gaps()

    def test_active_one_that_cannot_write_any_more_ends_itself(self):
        job = self.counter()
        self.wait_counting(job)
        # A locked database stands for storage that hangs.
        hang = sqlite3.connect(self.cluster.dir / "controller" / "journal.db", isolation_level=None)
        self.addCleanup(hang.close)
        hang.execute("BEGIN IMMEDIATE")
        self.assertEqual(self.cluster.sidingds["a"].wait(PATIENCE), 1)
        self.assertIn("could not be renewed", self.cluster.tail("sidingd-a"))
        hang.execute("ROLLBACK")
        self.since = time.monotonic()
        self.take_over("storage that hung and came back")
        self.assert_counted(job)

    def test_a_second_one_that_does_not_stand_by_is_refused(self):
        argv = [a for a in self.cluster.controller_argv(self.cluster.dir / "c.sock") if a != "--standby"]
        done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"is in use by another sidingd: pid {self.cluster.sidingds['a'].pid} on ", done.stderr)
        self.assertTrue(self.cluster.is_active("a"))

    def test_who_asks_the_one_that_stands_by_is_told_whom_to_ask(self):
        argv = [str(BIN / "sidingctl"), "--socket", str(self.cluster.socket_of("b")), "jobs"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 3)
        self.assertIn(f"this controller stands by; the active one is pid {self.cluster.sidingds['a'].pid} on ", done.stderr)

    def test_one_that_is_asked_to_stop_gives_the_journal_back(self):
        job = self.counter()
        self.end("a", lambda name: self.cluster.signal(name, signal.SIGTERM))
        self.take_over("stopped in good order")
        self.assertEqual(self.cluster.sidingds["a"].wait(PATIENCE), 0)
        self.assert_counted(job)

    def test_agents_that_cannot_reach_the_active_one_wait_for_it(self):
        job = self.counter()
        self.wait_counting(job)
        a, away = self.cluster.socket_of("a"), self.cluster.dir / "a.away"
        a.rename(away)
        for node in self.nodes:
            self.cluster.kill9_agent(node)
            self.cluster.start_agent(node)
        wait_for("the agents to have asked the other one",
                 lambda: all("stands by" in self.cluster.tail(f"agent-{n}", 100) for n in self.nodes))
        away.rename(a)
        self.assertTrue(self.cluster.is_active("a"))
        self.assert_counted(job)

    def test_ten_take_overs_in_a_row(self):
        long = [self.counter() for _ in range(2)]
        for job in long:
            self.wait_counting(job)
        active, took = "a", []
        for _ in range(10):
            self.end(active, self.cluster.kill9)
            killed, active = active, self.cluster.other(active)
            took.append(self.cluster.await_take_over(active, self.since)[1])
            self.cluster.start_one(killed)
            wait_for(f"{killed} to stand by", lambda: "standing by" in self.cluster.tail(f"sidingd-{killed}", 3))
        print("ten take-overs, with all agents after " + " ".join(f"{t:.1f}" for t in took) + " s", flush=True)
        for job in long:
            self.assert_counted(job)
            kinds = [e["kind"] for e in self.cluster.events(job)]
            self.assertEqual((kinds.count("started"), kinds.count("succeeded")), (1, 1), kinds)
        self.assert_journal_without_gaps()

    def test_submissions_while_the_active_one_dies_are_made_once(self):
        found = []

        def submit():
            for number in range(20):
                found.append(self.cluster.submit("--name", f"once-{number}", "--nodes", 1, "--workdir", self.cluster.dir,
                                                 "--output", f"{self.outputs()}/%j.%r", "--", "/bin/true"))
        submitter = threading.Thread(target=submit)
        submitter.start()
        wait_for("some to be submitted", lambda: len(found) >= 5)
        self.end("a", self.cluster.kill9)
        submitter.join(PATIENCE)
        self.assertEqual(len(found), 20)
        names = [job["spec"]["name"] for job in self.cluster.jobs().values()]
        self.assertEqual(sorted(names), sorted(f"once-{n}" for n in range(20)))

    def test_who_follows_events_sees_each_of_them_once(self):
        argv = [BIN / "sidingctl", *self.cluster.ctl_connection(), "events", "--follow"]
        path = self.cluster.dir / "followed"
        with open(path, "wb") as out:
            follower = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        self.addCleanup(follower.wait)
        self.addCleanup(follower.terminate)
        job = self.counter()
        self.wait_counting(job)
        self.end("a", self.cluster.kill9)
        self.assert_counted(job)
        last = len(self.cluster.events())
        lines = wait_for("all events to be seen", lambda: (t := path.read_text().splitlines()) and len(t) >= last and t)
        self.assertEqual([int(line.split()[0]) for line in lines], list(range(1, last + 1)))


class SharedStorage(StandbyCase):
    """The same with the journal written as it is on storage that several hosts share."""
    shared = True

    def test_active_one_is_killed_in_the_middle_of_a_preemption(self):
        self.start_preemption()
        self.cluster.wait_event(self.victim, "order-dump")
        self.end("a", self.cluster.kill9)
        self.take_over("shared journal, killed while the victim was dumped")
        self.assert_everything_came_out_right()
        self.assert_journal_without_gaps()


if __name__ == "__main__":
    unittest.main(verbosity=2)
