#!/usr/bin/python3
"""Checkpoints of a job that runs on hold each byte once: what has not changed since the last one is shared with it, and each of them brings the
job back for itself."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
import jobs  # noqa: E402
from case import ClusterCase, wait_for  # noqa: E402
from machines import Machines  # noqa: E402

MIB = 32


class Increments(ClusterCase):
    """The agent holds at this point for as long as there is no file `hold`."""

    point = "agent.dump.sharing"  # of the second image
    nodes = ("machine1",)
    nth, held = 1, False  # which time that it gets there; at the first, without being asked to
    uid, words, options = None, (), ()

    def make_cluster(self):
        cluster = Machines(self.nodes, self.slots, policy=self.policy)
        self.hold = cluster.dir / "hold"
        cluster.variables["machine1"] = {"SIDING_FAULT": f"{self.point}=hold={self.hold}@{self.nth}"}
        if not self.held:
            self.hold.touch()
        return cluster

    def setUp(self):
        super().setUp()
        gate = self.new_gate()
        argv = self.command(gate)
        self.job = self.submit_gated(gate, "--name", "table", "--slots", 1, "--preemptible=checkpoint", *self.options,
                                     "--workdir", self.cluster.dir, "--output", f"{self.outputs()}/%j.%r", "--", *argv, uid=self.uid)
        self.wait_counting(self.job)

    def command(self, gate):
        return jobs.command(self.cluster.dir, "table", jobs.TABLE, gate, MIB, *self.words)

    def runs_on(self):
        self.wait_goes_on(self.job)

    def checkpoint(self):
        """Makes one and returns it as `checkpoints list` shows it."""
        self.runs_on()
        before = set(self.checkpoints("good"))
        self.cluster.ctl("checkpoint", self.job)
        made, = [c for c in self.checkpoints("good").values() if c["id"] not in before]
        return made

    def count(self, kind):
        return [e["kind"] for e in self.cluster.events(self.job)].count(kind)

    def log(self):
        return (self.cluster.logs / "agent-machine1.log").read_text()

    def lose_the_machine(self):
        before = self.count("restored")
        self.cluster.cut_power("machine1")
        self.cluster.start_machine("machine1")
        wait_for("the job to be back", lambda: self.count("restored") > before)

    def wait_held(self):
        wait_for(f"the agent to be at {self.point}", lambda: (
            f"fault: {self.point}=hold" in self.log()))

    def wait_nothing_is_left(self):
        wait_for("nothing to be left of the restore", lambda: not list(self.cluster.shared.glob("restore/*")))

    def assert_new_is_little(self, checkpoint):
        self.assertGreater(int(checkpoint["new_bytes"]), 0)
        self.assertLess(int(checkpoint["new_bytes"]) * 2, MIB << 20)


class SharedPages(Increments):
    def test_only_what_has_changed_is_written_again(self):
        first = self.checkpoint()
        self.assertEqual(first["new_bytes"], first["bytes"])
        second = self.checkpoint()
        self.assert_new_is_little(second)
        self.assertTrue(self.cluster.ctl("checkpoints", "verify", second["id"])["good"])
        self.assertIn(" of it new", " ".join(e["text"] for e in self.cluster.events(self.job)))
        self.assert_counted(self.job)

    def test_the_last_of_a_row_brings_it_back(self):
        for _ in range(4):
            last = self.checkpoint()
        self.assert_new_is_little(last)
        self.lose_the_machine()
        self.wait_nothing_is_left()
        self.runs_on()
        after = self.checkpoint()
        if "--shared" not in self.words:  # to criu shared memory is another one after a restore
            self.assert_new_is_little(after)  # beside the image that it was restored from
        self.lose_the_machine()
        self.assert_counted(self.job)

    def test_one_whose_base_is_deleted_brings_it_back(self):
        bases = [self.checkpoint()["id"] for _ in range(2)]
        last = self.checkpoint()
        for base in bases:
            if base in self.checkpoints("good"):
                self.cluster.ctl("checkpoints", "delete", base)
        self.assertEqual(set(self.checkpoints("good")), {last["id"]})
        self.lose_the_machine()
        self.assert_counted(self.job)


class OfAnotherUser(SharedPages):
    uid = 1


class OfSharedMemory(SharedPages):
    words = ("--shared",)


# Far more than a test takes: it makes each checkpoint by hand.
TRACKED = ("--checkpoint-interval", "1h")
IS_TRACKED = "of its processes are tracked"  # says the agent


class Tracked(SharedPages):
    """What a job with an interval writes is tracked from its second checkpoint on."""

    options = TRACKED

    def test_the_last_of_a_row_brings_it_back(self):
        super().test_the_last_of_a_row_brings_it_back()
        self.assertGreater(self.log().count(IS_TRACKED), 0)
        self.assertNotIn("not tracked any more", self.log())


class TrackedOfAnotherUser(Tracked):
    uid = 1


class TrackedBusy(Increments):
    """It writes so much that most of it is copied before it is stopped."""

    options, words = TRACKED, ("--busy",)

    def test_the_last_of_a_row_brings_it_back(self):
        for _ in range(4):
            self.checkpoint()
        self.assertRegex(self.log(), r" [1-9][\d.]* MiB was copied while they ran")
        self.lose_the_machine()
        self.assert_counted(self.job)


class TrackedWhateverItDoes(Increments):
    options = TRACKED

    def command(self, gate):
        return jobs.command(self.cluster.dir, "churn", jobs.CHURN, gate)

    def test_each_of_a_row_brings_it_back_as_it_was(self):
        for checkpoints in (3, 5, 4):
            before = self.log().count(IS_TRACKED)
            for _ in range(checkpoints):
                self.checkpoint()
            self.assertGreater(self.log().count(IS_TRACKED), before)
            self.assertNotIn("not tracked any more", self.log())
            self.lose_the_machine()
            self.runs_on()
        self.assert_counted(self.job)


class HalfMade:
    made = 1  # checkpoints, before that at which the agent holds

    def setUp(self):
        super().setUp()
        for _ in range(self.made):
            self.checkpoint()
        self.hold.unlink()
        self.runs_on()
        self.cluster.ctl("checkpoint", "--no-wait", self.job)
        self.wait_held()

    def test_an_agent_that_dies_takes_only_the_new_image_with_it(self):
        self.cluster.kill9_agent("machine1")
        self.hold.touch()
        self.cluster.start_agent("machine1")
        wait_for("it to be dumped again", lambda: self.count("continued") == self.made + 1)
        newest = max(self.checkpoints("good").values(), key=lambda c: int(c["created_us"]))
        self.assert_new_is_little(newest)
        for checkpoint in self.checkpoints("good"):
            self.assertTrue(self.cluster.ctl("checkpoints", "verify", checkpoint)["good"])
        self.assert_counted(self.job)

    def test_a_power_cut_leaves_those_before(self):
        self.lose_the_machine()
        self.assert_counted(self.job)


class HalfShared(HalfMade, Increments):
    def test_the_job_may_end_meanwhile(self):
        self.end_alone(self.job)
        self.hold.touch()
        self.cluster.wait_state(self.job, "done")
        self.assert_counted(self.job)


class HalfCompacted(HalfShared):
    """It shares pages with as many images as may be, and some of them are left out."""

    point, words, made = "agent.dump.compacting", ("--busy",), 9


class HalfCompactedTracked(HalfCompacted):
    options = TRACKED


class HalfStopped(HalfMade, Increments):
    """The agent itself has stopped all threads of the job, for a moment."""

    point, words, options, made = "agent.dump.round", ("--busy",), TRACKED, 2

    def test_the_job_may_be_killed_meanwhile(self):
        self.cluster.ctl("kill", "--no-wait", self.job)
        self.hold.touch()
        self.cluster.wait_state(self.job, "cancelled")


class HalfPrecopied(HalfShared):
    """What it has written is copied, and it runs."""

    point, words, options, made = "agent.dump.precopied", ("--busy",), TRACKED, 2


class HalfCaptured(HalfMade, Increments):
    """The job is frozen, and criu has left its memory out."""

    point, nth, options, made = "agent.dump.captured", 2, TRACKED, 2  # in the second checkpoint it begins to be tracked


class HalfTracked(HalfShared):
    point, options, made = "agent.dump.tracked", TRACKED, 2


class HalfUnited(Increments):
    point, held = "agent.restore.united", True

    def setUp(self):
        super().setUp()
        for _ in range(2):
            last = self.checkpoint()
        self.assert_new_is_little(last)
        self.cluster.cut_power("machine1")
        self.cluster.start_machine("machine1")
        self.wait_held()
        self.assertEqual(len(list(self.cluster.shared.glob("restore/*"))), 1)

    def test_an_agent_that_dies_delays_the_restore(self):
        self.cluster.kill9_agent("machine1")
        self.hold.touch()
        self.cluster.start_agent("machine1")
        wait_for("the job to be back", lambda: self.count("restored") == 1)
        self.wait_nothing_is_left()
        self.assert_counted(self.job)

    def test_the_job_may_be_killed_meanwhile(self):
        self.cluster.ctl("kill", "--no-wait", self.job)
        self.hold.touch()
        self.cluster.wait_state(self.job, "cancelled")
        self.wait_nothing_is_left()


class HalfStarted(Increments):
    """The agent dies when the shim has begun: the restore goes on without it."""

    point = "agent.start.shim"

    def test_a_restore_that_goes_on_without_its_agent_has_its_files(self):
        for _ in range(2):
            last = self.checkpoint()
        self.assert_new_is_little(last)
        self.hold.unlink()
        before = self.log().count(f"fault: {self.point}=hold")
        self.cluster.cut_power("machine1")
        self.cluster.start_machine("machine1")
        wait_for("the shim to be started", lambda: self.log().count(f"fault: {self.point}=hold") > before)
        self.cluster.kill9_agent("machine1")
        self.hold.touch()
        self.cluster.start_agent("machine1")
        wait_for("the job to be back", lambda: self.count("restored") == 1)
        self.wait_nothing_is_left()
        self.assert_counted(self.job)


if __name__ == "__main__":
    unittest.main()
