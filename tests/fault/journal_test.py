#!/usr/bin/python3
"""The journal of a controller whose jobs run: copied and put back, without room on its disk, and growing old."""

import os
import pathlib
import shutil
import unittest

from small_disk import SmallDisk  # first: it says where the harness is
from case import Cluster, ClusterCase, CtlError, wait_for
from vanishing import paths


class Backup(ClusterCase):
    def setUp(self):
        super().setUp()
        self.copy = self.cluster.dir / "copy.db"
        self.state = self.cluster.dir / "controller"

    def put_back(self):
        """The controller dies, its journal is lost, and the copy takes its place."""
        self.cluster.kill9_controller()
        for file in self.state.glob("journal.db*"):
            file.unlink()
        shutil.copy(self.copy, self.state / "journal.db")
        self.cluster.start_controller()

    def counter_in_copy(self, **options):
        """A job that runs when the copy is made."""
        job = self.counter(**options)
        self.wait_counting(job)
        self.cluster.ctl("backup", self.copy)
        return job

    def test_jobs_that_a_copy_knows_go_on_with_it(self):
        job = self.counter_in_copy()
        self.put_back()
        self.assert_counted(job)
        self.assertEqual(sum(e["kind"] == "started" for e in self.cluster.events(job)), 1)

    def test_a_job_that_ended_after_the_copy_was_made_has_ended(self):
        job = self.counter_in_copy()
        self.cluster.kill9_controller()  # so that its agent is not told to forget it
        self.end_alone(job)
        self.put_back()
        self.assert_counted(job)
        self.assertEqual(sum(e["kind"] == "started" for e in self.cluster.events(job)), 1)

    def end_and_be_forgotten(self, methods):
        """A job that the copy knows as one that runs, and of which no agent knows anything any more."""
        job = self.counter_in_copy(methods=methods)
        self.end_job(job)
        wait_for("the agents to have forgotten it", lambda: not paths(self.cluster.dir, f"n*/tasks/{job}.*"))
        self.put_back()
        return job

    def test_a_job_that_was_forgotten_after_the_copy_was_made_runs_again_if_it_allows_kill(self):
        job = self.end_and_be_forgotten("checkpoint,kill")
        self.cluster.wait_state(job, "done")
        self.assertEqual((self.outputs() / f"{job}.0").read_text().count("done"), 2)

    def test_if_it_does_not_allow_kill_its_owner_decides(self):
        job = self.end_and_be_forgotten("checkpoint")
        self.assertIn(f"sidingctl restart {job}", self.cluster.wait_state(job, "parked")["reason"])

    def test_a_job_that_a_copy_does_not_know_is_left_alone(self):
        known = self.counter_in_copy()
        unknown = self.counter()
        self.wait_counting(unknown)
        self.put_back()
        self.assert_counted(known)
        self.end_alone(unknown)
        self.assertNotIn(unknown, self.cluster.jobs())
        self.assertGreater(self.cluster.submit("--slots", 1, "--workdir", "/", "--", "/bin/true"), unknown)

    def test_a_copy_is_its_owners_and_whole(self):
        self.cluster.ctl("backup", self.copy)
        self.assertEqual(self.copy.stat().st_mode & 0o777, 0o600)
        self.assertGreater(self.cluster.ctl("backup", "--check", self.copy)["schema"], 1)
        self.assertEqual(list(self.cluster.dir.glob("copy.db?*")), [])
        self.assertEqual(list(self.state.glob("*.backup*")), [])

    def test_a_copy_that_is_damaged_is_found_out(self):
        self.cluster.ctl("backup", self.copy)
        with open(self.copy, "r+b") as file:
            file.truncate(self.copy.stat().st_size // 2)
        with self.assertRaisesRegex(CtlError, "damaged"):
            self.cluster.ctl("backup", "--check", self.copy)

    def test_only_operators_may_have_one(self):
        with self.assertRaisesRegex(CtlError, "only operators"):
            self.cluster.ctl("backup", pathlib.Path("/tmp") / f"siding-journal-test-{os.getpid()}", uid=65534)


class FullDisk(SmallDisk):
    """The controller's state lies on a disk of its own."""
    nodes, disk_of = ("n1",), "controller"

    def test_it_refuses_while_there_is_no_room_and_goes_on_after(self):
        job = self.counter()
        self.wait_counting(job)
        self.fill()
        with self.assertRaisesRegex(CtlError, "full"):
            self.cluster.ctl("suspend", "--no-wait", job)
        self.assertEqual(list(self.cluster.jobs()), [job])
        # It runs on to its end, which cannot be recorded yet.
        self.end_alone(job)
        self.assertEqual(self.cluster.state(job), "running")
        self.free()
        self.assert_counted(job)
        self.assertNotIn("order-suspend", [e["kind"] for e in self.cluster.events(job)])
        self.assertEqual(self.cluster.submit("--slots", 1, "--workdir", "/", "--", "/bin/true"), job + 1)


class Forgetting(ClusterCase):
    nodes = ("n1",)

    def make_cluster(self):
        return Cluster(self.nodes, self.slots, policy=self.policy, config="keep_ended: 1s\n")

    def test_a_job_that_is_forgotten_is_said_to_be(self):
        job = self.cluster.submit("--slots", 1, "--workdir", "/", "--output", "/dev/null", "--", "/bin/true")
        wait_for("the job to be forgotten", lambda: job not in self.cluster.jobs())
        for verb in (("explain", job), ("jobs", job), ("events", job)):
            with self.assertRaisesRegex(CtlError, "jobs that ended long ago are forgotten"):
                self.cluster.ctl(*verb)


if __name__ == "__main__":
    unittest.main(verbosity=2)
