#!/usr/bin/python3
"""A node whose state folder is full, or cannot be written, for a while: no job is lost, none is started twice or parked."""

import json
import os
import subprocess
import unittest

from small_disk import SmallDisk  # first: it says where the harness is
from case import CtlError, wait_for

NODE = "n1"  # whose state folder is a file system of its own


class StateFolder(SmallDisk):
    nodes, disk_of, disk_size = (NODE,), NODE, "16m"

    def task_folder(self, job, rank=0):
        return self.cluster.task_folder(NODE, f"{job}.1.{rank}")

    def said(self, job, what, rank=0):
        return json.loads((self.task_folder(job, rank) / what).read_text())

    def wait_gone(self, job):
        """Until its processes have ended, and its shim knows it."""
        init = self.said(job, "init.json")["pid"]
        wait_for(f"the init of job {job} to be gone", lambda: not os.path.exists(f"/proc/{init}"))

    def shim_lives(self, job):
        return os.path.exists(f"/proc/{self.said(job, 'shim.json')['pid']}")

    def node(self):
        return next(node for node in self.cluster.node_list() if node["name"] == NODE)

    def wait_faulty(self):
        """Until its agent has said why."""
        wait_for("the node to be faulty", lambda: "No space left on device" in self.node().get("fault", ""))
        self.assertEqual(self.node()["state"], "faulty")

    def assert_undisturbed(self, job, ranks=1):
        self.assert_counted(job, ranks)
        kinds = [e["kind"] for e in self.cluster.events(job)]
        self.assertEqual(kinds.count("started"), 1, kinds)
        for kind in ("restart-needed", "restore-failed", "interrupted"):
            self.assertNotIn(kind, kinds)


class Full(StateFolder):
    def test_a_job_that_ends_meanwhile_has_ended(self):
        for methods in ("kill", "checkpoint"):
            with self.subTest(methods):
                job = self.counter(methods=methods)
                self.wait_counting(job)
                self.fill()
                self.assert_undisturbed(job)
                self.free()

    def test_a_job_is_not_started_there_and_goes_on_when_there_is_room(self):
        self.fill()
        self.wait_faulty()
        job = self.counter()
        wait_for("it to say what it waits for", lambda: f"{NODE} gets no jobs" in self.cluster.job(job).get("waits_for", ""))
        self.free()
        self.wait_counting(job)
        self.assert_undisturbed(job)

    def test_a_job_whose_start_fails_there_is_started_when_there_is_room(self):
        self.fill()
        job = self.counter()  # most likely before the agent has noticed
        self.wait_faulty()
        self.free()
        self.wait_counting(job)
        self.assert_counted(job)

    def test_checkpoints_are_made_meanwhile_elsewhere(self):
        job = self.counter()
        self.wait_counting(job)
        self.fill()
        for _ in range(3):
            self.cluster.ctl("checkpoint", job)
        self.free()
        self.assert_undisturbed(job)

    def test_a_job_that_makes_way_meanwhile_comes_back_when_there_is_room(self):
        job = self.counter()
        self.wait_counting(job)
        self.fill()
        self.cluster.ctl("vacate", "--no-wait", job)
        self.cluster.wait_event(job, "released")
        self.free()
        self.cluster.wait_event(job, "restored")
        self.assert_counted(job)
        self.assertNotIn("restart-needed", [e["kind"] for e in self.cluster.events(job)])

    def test_an_agent_that_is_started_again_meanwhile_finds_it(self):
        job = self.counter()
        self.wait_counting(job)
        self.fill()
        self.cluster.kill9_agent(NODE)
        self.cluster.start_agent(NODE)
        self.assert_undisturbed(job)
        self.free()


class FullBesideAnIdleNode(StateFolder):
    nodes = (NODE, "n2")

    def test_all_jobs_run_elsewhere_and_there_again_when_there_is_room(self):
        self.fill()
        jobs = [self.cluster.submit("--slots", 1, "--", "/bin/true") for _ in range(8)]
        for job in jobs:
            self.assertEqual(self.cluster.wait_state(job, "done")["state"], "done", self.cluster.events(job))
            placed = [e["text"] for e in self.cluster.events(job) if e["kind"] == "place"]
            self.assertIn("n2", placed[-1])
        self.wait_faulty()
        wait_for("an event that says so", lambda: f"node {NODE} gets no jobs" in json.dumps(self.cluster.events()))
        self.free()
        counters = [self.counter(), self.counter()]
        for job in counters:
            self.wait_counting(job)
        self.assertEqual({self.cluster.job(job)["nodes"][0] for job in counters}, set(self.nodes))
        self.assertEqual(self.node()["state"], "up")
        for job in counters:
            self.assert_undisturbed(job)


class InTheWay(StateFolder):
    """Not even what has its room can be put into its place."""

    def block(self, job):
        (self.task_folder(job) / "exit.json" / "in the way").mkdir(parents=True)

    def unblock(self, job):
        (self.task_folder(job) / "exit.json" / "in the way").rmdir()
        (self.task_folder(job) / "exit.json").rmdir()

    def end_unseen(self, job):
        self.wait_counting(job)
        self.block(job)
        self.end_alone(job)
        self.wait_gone(job)

    def wait_for_word(self):
        log = f"agent-{NODE}"
        wait_for("the agent to miss the shim's word", lambda: "its shim has not written" in self.cluster.tail(log, 1000))

    def test_the_shim_keeps_the_result_until_it_can_write_it(self):
        job = self.counter()
        self.end_unseen(job)
        log = self.task_folder(job) / "shim.log"
        wait_for("the shim to say so", lambda: "tried again" in log.read_text())
        self.assertEqual(self.cluster.state(job), "running")
        self.unblock(job)
        self.assert_undisturbed(job)

    def test_and_the_next_agent_waits_for_it(self):
        job = self.counter()
        self.end_unseen(job)
        self.cluster.kill9_agent(NODE)
        self.cluster.start_agent(NODE)
        self.wait_for_word()
        self.assertEqual(self.cluster.state(job), "running")
        self.unblock(job)
        self.assert_undisturbed(job)

    def test_a_kill_meanwhile_finds_that_it_has_ended(self):
        job = self.counter()
        self.end_unseen(job)
        self.cluster.ctl("kill", "--no-wait", job)
        self.wait_for_word()
        self.unblock(job)
        self.cluster.wait_state(job, "done")

    def test_a_job_in_its_image_goes_on_from_it_when_its_shim_has_said_so(self):
        job = self.counter()
        self.wait_counting(job)
        self.block(job)
        self.cluster.ctl("vacate", "--no-wait", job)
        self.wait_gone(job)
        self.cluster.kill9_agent(NODE)
        self.cluster.start_agent(NODE)
        self.wait_for_word()
        self.unblock(job)
        self.cluster.wait_event(job, "restored")
        self.assert_undisturbed(job)


class Kept(StateFolder):
    """In the folder of a task nothing can be made, renamed or removed, as in a file system that the kernel has made read-only. One
    with files that are open cannot be made so by a test, and not be put back where the kernel does it."""

    def keep(self, job):
        folder = self.task_folder(job)
        if subprocess.run(["chattr", "+i", folder], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("this kernel's tmpfs keeps no folder from being changed")
        self.addCleanup(self.let, folder)
        return folder

    @staticmethod
    def let(folder):
        subprocess.run(["chattr", "-i", folder], stderr=subprocess.DEVNULL, check=False)  # or it is gone


class ReadOnly(Kept):
    def test_a_job_that_ends_meanwhile_has_ended(self):
        for methods in ("kill", "checkpoint"):
            with self.subTest(methods):
                job = self.counter(methods=methods)
                self.wait_counting(job)
                folder = self.keep(job)
                self.end_alone(job)
                self.wait_gone(job)
                self.assertEqual(self.cluster.state(job), "running")
                self.let(folder)
                self.assert_undisturbed(job)

    def test_a_checkpoint_fails_and_the_job_runs_on(self):
        job = self.counter()
        self.wait_counting(job)
        self.cluster.ctl("checkpoint", job)
        folder = self.keep(job)
        with self.assertRaises(CtlError):
            self.cluster.ctl("checkpoint", job)
        self.cluster.wait_state(job, "running")
        self.let(folder)
        self.cluster.ctl("checkpoints", "verify", f"{job}.1")
        self.assert_undisturbed(job)


class ReadOnlyUnderAGang(Kept):
    nodes = (NODE, "n2")

    def setUp(self):
        super().setUp()
        self.job = self.counter(nodes=2)
        self.wait_counting(self.job, rank=1)
        self.cluster.ctl("checkpoint", self.job)  # criu's log is there, and the dump comes to its commit
        self.folder = self.keep(self.job)

    def task_folder(self, job, rank=None):
        ranks = (0, 1) if rank is None else (rank,)
        return next(filter(None, (self.cluster.task_folder(NODE, f"{job}.1.{r}") for r in ranks)))

    def test_a_checkpoint_fails_and_all_ranks_run_on(self):
        with self.assertRaises(CtlError):
            self.cluster.ctl("checkpoint", self.job)
        self.cluster.wait_state(self.job, "running")
        self.let(self.folder)
        self.cluster.ctl("checkpoints", "verify", f"{self.job}.1")
        self.assert_undisturbed(self.job, ranks=2)

    def vacate_as_far_as_can_be(self):
        self.cluster.ctl("vacate", "--no-wait", self.job)
        wait_for("one rank not to be able to commit", lambda: "its image cannot count yet" in self.cluster.tail(f"agent-{NODE}", 1000))

    def assert_both_run_on(self):
        self.cluster.wait_event(self.job, "dump-failed")
        self.cluster.wait_state(self.job, "running")
        self.let(self.folder)
        self.assert_undisturbed(self.job, ranks=2)
        self.assertNotIn("restored", [event["kind"] for event in self.cluster.events(self.job)])

    def test_none_leaves_if_one_cannot_commit(self):
        self.vacate_as_far_as_can_be()
        self.assert_both_run_on()

    def test_nor_if_its_agent_dies_meanwhile(self):
        self.vacate_as_far_as_can_be()
        self.cluster.kill9_agent(NODE)
        self.cluster.start_agent(NODE)
        self.assert_both_run_on()


if __name__ == "__main__":
    unittest.main(verbosity=2)
