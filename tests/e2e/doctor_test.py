#!/usr/bin/python3
"""sidingctl doctor looks at a real cluster: nothing to mend while all is well, and what it is when something is not."""

import json
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fault"))
from small_disk import SmallDisk  # noqa: E402, first: it says where the harness is
from case import ClusterCase, wait_for  # noqa: E402
from cluster import BIN  # noqa: E402
from pair import Pair  # noqa: E402


class Doctor(SmallDisk):
    """The local tier of n2 is a file system of its own."""
    nodes, disk_of, disk_size = ("n1", "n2", "n3"), "n2/store", "96m"

    def doctor(self, *args, uid=None):
        argv = [str(a) for a in (*self.cluster.ctl_program(), *self.cluster.ctl_connection(), "doctor", *args)]
        return subprocess.run(argv, capture_output=True, text=True, user=uid, group=uid)

    def findings(self):
        """As (severity, about): the problem and what to do."""
        return {(f["severity"], f["about"]): f"{f['problem']}: {f['mend']}" for f in json.loads(self.doctor("--json").stdout)}

    def wait_only(self, severity, about):
        """Until this is all that there is to mend; returns what is said of it."""
        def alone():
            found = self.findings()
            return found if set(found) == {(severity, about)} else None
        return wait_for(f"the {severity} of {about} alone to be found", alone)[severity, about]

    def setUp(self):
        super().setUp()
        wait_for("nothing to be found", lambda: not self.findings())

    def test_of_a_healthy_cluster_there_is_nothing_to_mend(self):
        self.wait_counting(self.counter())
        done = self.doctor()
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "nothing to mend\n", ""))
        self.assertEqual(self.doctor("--json").stdout, "[]\n")

    def test_an_agent_that_is_gone(self):
        self.cluster.kill9_agent("n3")
        self.assertIn("sidingctl lost n3", self.wait_only("fault", "node n3"))
        done = self.doctor()
        self.assertEqual(done.returncode, 2)
        self.assertIn("faults:\n  node n3: its agent is not connected, and was heard last ", done.stdout)

    def test_a_node_that_has_jobs_and_whose_agent_has_not_dialled(self):
        job = self.counter()
        self.wait_counting(job)
        node = self.cluster.job(job)["nodes"][0]
        self.cluster.kill9_agent(node)
        self.cluster.kill9_controller()
        self.cluster.start_controller()
        self.assertIn(f"has job {job}", self.wait_only("fault", f"node {node}"))

    def test_a_tier_that_is_full(self):
        self.fill()
        self.assertIn("its local tier has nothing free", self.wait_only("fault", "node n2"))
        self.free()
        wait_for("nothing to be found", lambda: self.doctor().returncode == 0)

    def test_criu_that_is_missing(self):
        self.cluster.kill9_agent("n3")
        self.cluster.criu = "/nonexistent"
        self.cluster.start_agent("n3")
        wait_for("n3 to be back", lambda: all(n["state"] == "up" for n in self.cluster.node_list()))
        self.assertIn("/nonexistent", self.wait_only("fault", "node n3"))

    def test_a_warning_alone_is_exit_code_1(self):
        self.cluster.ctl("cordon", "n1")
        self.assertIn("sidingctl uncordon n1", self.wait_only("warning", "node n1"))
        self.assertEqual(self.doctor().returncode, 1)

    def test_a_job_that_cannot_be_restored(self):
        job = self.counter()
        self.wait_counting(job)
        for node in self.nodes:
            self.cluster.ctl("cordon", node)
        self.cluster.ctl("vacate", job)
        self.cluster.wait_state(job, "parked")
        (self.outputs() / f"{job}.0").unlink()
        for node in self.nodes:
            self.cluster.ctl("uncordon", node)
        self.cluster.wait_event(job, "restore-failed")  # it is tried again and again, and is no finding meanwhile
        said = self.wait_only("fault", f"job {job}")
        self.assertIn(f"{job}.0", said)
        self.assertIn(f"sidingctl resume {job}", said)

    def test_who_is_no_operator_is_told_what_was_not_looked_at(self):
        done = self.doctor(uid=65534)
        self.assertEqual((done.returncode, done.stdout), (0, "nothing to mend\n"))
        self.assertIn("note: you are no operator", done.stderr)


class DoctorOfTwoControllers(ClusterCase):
    nodes = ("n1",)

    def make_cluster(self):
        return Pair(self.nodes, self.slots)

    def doctor(self, controllers):
        return subprocess.run([BIN / "sidingctl", "--controller", controllers, "doctor"], capture_output=True, text=True)

    def test_a_standby_that_is_gone(self):
        self.assertEqual(self.doctor(self.cluster.both()).stdout, "nothing to mend\n")
        self.cluster.kill9("b")
        done = self.doctor(self.cluster.both())
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"controller {self.cluster.socket_of('b')}: it does not answer, and would not take over", done.stdout)

    def test_a_standby_alone_is_no_controller(self):
        done = self.doctor(str(self.cluster.socket_of("b")))
        self.assertEqual((done.returncode, done.stdout), (3, ""))


if __name__ == "__main__":
    unittest.main()
