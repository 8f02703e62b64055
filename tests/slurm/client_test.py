#!/usr/bin/python3
"""What siding's controller asks of Slurm, in both ways that it can ask: through libslurm and through Slurm's tools."""

import json
import os
import subprocess
import unittest

from case import BIN, wait_for
from client_case import ENDED, PENDING, RUNNING, SUSPENDED, ClientCase

class ByLibrary(ClientCase):
    def test_it_is_the_way_that_was_asked_for(self):
        self.assertIn({"library": "libslurm", "tools": "tools"}[self.backend], self.client("about"))

    def test_suspend_and_resume(self):
        job = self.running()
        self.client("order", "suspend", job)
        self.until(job, phase=SUSPENDED, on=["node1"], held=False)
        self.client("order", "resume", job)
        self.until(job, phase=RUNNING)

    def test_settings_are_those_in_force(self):
        self.assertEqual(self.client("settings"), {"requeue_exits": [99], "requeue_hold_exits": [98], "requeues": True, "keeps_output": True,
                                                   "task_prolog": "", "priority_by_age": 0})

    def test_nodes_and_comments_are_set_and_removed(self):
        job = self.sleeper("--hold")
        self.client("update", job, "nodes=node1", "admin_comment=a b=c", "comment=d")
        self.assertLessEqual({"only_on": ["node1"], "admin_comment": "a b=c", "comment": "d"}.items(), self.one(job).items())
        self.client("update", job, "nodes=", "admin_comment=")
        self.assertLessEqual({"only_on": [], "admin_comment": "", "comment": "d"}.items(), self.one(job).items())

    def test_an_element_with_the_number_of_its_array_is_told_alone(self):
        array = self.sleeper("-a", "1-2")
        elements = wait_for("both elements to run", lambda: len(found := [j for j in self.client("jobs") if j["array"] == array
                                                                          and j["phase"] == RUNNING]) == 2 and [j["id"] for j in found])
        self.assertIn(array, elements)
        [other] = [e for e in elements if e != array]
        self.client("update", array, "admin_comment=x", "nice=5")
        self.client("order", "suspend", array)
        self.until(array, phase=SUSPENDED)
        self.assertLessEqual({"admin_comment": "x", "nice": 5}.items(), self.one(array).items())
        self.assertLessEqual({"admin_comment": "", "nice": 0, "phase": RUNNING}.items(), self.one(other).items())

    def test_a_nice_value_counts_at_once(self):
        job = self.sleeper("--begin=now+1hour")
        before = self.one(job)["priority"]
        self.client("update", job, "nice=-3")
        self.assertLessEqual({"nice": -3, "priority": before + 3}.items(), self.one(job).items())

    def test_a_reservation_keeps_nodes_for_its_users_beside_what_runs_there(self):
        self.running()
        self.client("reserve", "siding-1", "node1", "root", 3600)
        (reservation,) = self.client("reservations")
        self.assertLessEqual({"name": "siding-1", "nodes": ["node1"], "users": ["root"]}.items(), reservation.items())
        self.assertEqual(reservation["end"] - reservation["start"], 3600e6)
        stranger = self.sleeper()
        self.until(stranger, phase=PENDING, reason="ReqNodeNotAvail")
        self.client("update", stranger, "reservation=siding-1")
        self.until(stranger, phase=RUNNING, reservation="siding-1")
        self.refused("FAILED_PRECONDITION", "unreserve", "siding-1")
        self.slurm.run("scancel", stranger)
        self.until(stranger, phase=ENDED)
        self.client("unreserve", "siding-1")
        self.assertEqual(self.client("reservations"), [])

    def test_a_job_is_taken_out_of_a_reservation(self):
        self.client("reserve", "siding-1", "node1", "root", 3600)
        job = self.sleeper("--hold", "--reservation=siding-1")
        self.client("update", job, "reservation=")
        self.assertEqual(self.one(job)["reservation"], "")
        self.client("unreserve", "siding-1")

    def test_errors_say_what_is_wrong_with_what(self):
        job = self.sleeper("--hold")
        self.assertIn(f"job {job}", self.refused("FAILED_PRECONDITION", "order", "suspend", job))
        self.assertIn("job 4711", self.refused("NOT_FOUND", "update", 4711, "comment=x"))
        self.assertIn("reservation siding-1", self.refused("NOT_FOUND", "unreserve", "siding-1"))
        self.assertIn("reservation siding-1", self.refused("INVALID_ARGUMENT", "reserve", "siding-1", "nowhere", "root", 60))

    def test_an_ordinary_user_may_not(self):
        self.refused("PERMISSION_DENIED", "order", "suspend", self.running(), uid=65534)

    def test_without_slurmctld_it_is_unavailable(self):
        self.slurm.stop_controller()
        self.refused("UNAVAILABLE", "jobs")


class ByTools(ByLibrary):
    backend = "tools"


class BothSayTheSame(ClientCase):
    nodes = 2

    def assert_same(self, what):
        """The lists may change between two questions, so it is asked until they have not."""
        def both():
            before, tools, after = (self.client(what, backend=b) for b in ("library", "tools", "library"))
            return before == after and (before, tools)
        library, tools = wait_for(f"two equal answers to '{what}'", both)
        self.assertEqual(library, tools)
        return library

    def test_of_jobs_of_all_kinds(self):
        failed = self.slurm.submit("-o", "/dev/null", "--wrap", "false")
        self.slurm.wait_state(failed, "FAILED")
        self.slurm.run("scancel", self.running())
        self.running("-N2", "--comment=a b", "-t", "5")
        suspended = self.running("--mem=100")
        self.slurm.run("scontrol", "suspend", suspended)
        held = self.running("--mem-per-cpu=10", "-c2", "-J", "a name")
        self.slurm.run("scontrol", "requeuehold", held)
        self.sleeper("--hold", "-w", "node2", "--no-requeue", "--nice=7")
        self.sleeper("-a", "1-3%1", "--exclusive")
        self.assertGreaterEqual(len(self.assert_same("jobs")), 7)

    def test_of_nodes_in_trouble(self):
        self.running("-w", "node1", "-c2", "--mem=10")
        self.slurm.run("scontrol", "update", "NodeName=node1", "State=DRAIN", "Reason=being tested")
        self.slurm.stop_node("node2")
        self.slurm.run("scontrol", "update", "NodeName=node2", "State=DOWN", "Reason=gone")
        first, second = self.assert_same("nodes")
        self.assertLessEqual({"drained": True, "cpus_used": 2, "reason": "being tested"}.items(), first.items())
        self.assertLessEqual({"state": "down", "up": False, "reason": "gone"}.items(), second.items())

    def test_of_partitions_and_reservations(self):
        self.slurm.run("scontrol", "create", "PartitionName=fast", "Nodes=node2", "MaxTime=1:00:00", "GraceTime=30", "PriorityTier=7")
        self.client("reserve", "siding-1", "node2", "root,daemon", 600)
        self.assertEqual(len(self.assert_same("partitions")), 2)
        self.assertEqual(len(self.assert_same("reservations")), 1)


class WithoutTheLibrary(ClientCase):
    def test_the_tools_are_taken_where_there_is_no_configuration(self):
        env = {**os.environ, "SLURM_CONF": str(self.slurm.dir / "nowhere")}
        done = subprocess.run([BIN / "siding-test-slurm", "any", "about"], env=env, capture_output=True, text=True)
        self.assertEqual(json.loads(done.stdout), "command-line tools")


if __name__ == "__main__":
    unittest.main(verbosity=2)
