#!/usr/bin/python3
"""What siding's controller left in Slurm when it died, taken back by an operator: sidingctl slurm cleanup."""

import json
import subprocess
import unittest

from case import BIN, PATIENCE, SlurmCase, wait_for


class Cleanup(SlurmCase):
    nodes = 2

    def cleanup(self, *args, code=0):
        done = subprocess.run([BIN / "sidingctl", "slurm", "cleanup", *args], env=self.slurm.env, capture_output=True, text=True,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def leave(self):
        """A job that is bound to a node by siding, one in siding's reservation; one that its user holds."""
        submit = ("-o", "/dev/null", "--wrap", "sleep 1000")
        self.slurm.run("scontrol", "create", "reservation", "ReservationName=siding-7", "StartTime=now", "Duration=60",
                       "Nodes=node2", "Users=root", "Flags=IGNORE_JOBS,FLEX,NO_HOLD_JOBS_AFTER")
        bound = self.slurm.submit("--hold", "-w", "node1", *submit)
        self.slurm.run("scontrol", "update", f"JobId={bound}", "AdminComment=[siding pinned: makes way] mind the gap")
        reserved = self.slurm.submit("--hold", "--reservation=siding-7", *submit)
        users = self.slurm.submit("--hold", *submit)
        return bound, reserved, users

    def reservations(self):
        return self.slurm.run("scontrol", "-o", "show", "reservations")

    def check(self, *args):
        bound, reserved, users = self.leave()
        self.cleanup(*args)
        job = self.slurm.job(bound)
        self.assertEqual(job["ReqNodeList"], "(null)")
        self.assertEqual(job["AdminComment"], "mind")  # up to the first space
        self.assertNotIn("Reservation", self.slurm.job(reserved))
        self.assertEqual(self.slurm.job(users)["Reason"], "JobHeldUser")
        self.assertNotIn("siding-7", self.reservations())
        self.assertEqual(self.cleanup().stdout, "siding has left nothing in Slurm\n")

    def test_through_the_library(self):
        self.check("--backend", "library")

    def test_through_the_tools(self):
        self.check("--backend", "tools")

    def test_a_trial_run_only_says_what_it_would_do(self):
        bound, reserved, _ = self.leave()
        said = json.loads(self.cleanup("--dry-run", "--json").stdout)
        self.assertTrue(said["dry_run"])
        self.assertEqual([step["target"] for step in said["steps"]], [f"job {bound}", f"job {reserved}", "reservation siding-7"])
        self.assertEqual(self.slurm.job(bound)["ReqNodeList"], "node1")
        self.assertIn("siding-7", self.reservations())

    def test_what_cannot_be_taken_back_yet_is_said_and_done_the_next_time(self):
        self.leave()
        running = self.slurm.submit("--reservation=siding-7", "-o", "/dev/null", "--wrap", "sleep 1000")
        self.slurm.wait_state(running, "RUNNING")
        self.assertIn("reservation siding-7", self.cleanup(code=1).stderr)
        self.slurm.run("scancel", running)
        wait_for("the job to be gone", lambda: not self.slurm.run("squeue", "-h", "-j", running, "-t", "running,completing"))
        self.assertEqual(self.cleanup().stdout, "reservation siding-7: deleted\n")

    def test_without_slurm_it_says_so(self):
        self.slurm.stop_controller()
        self.assertIn("Unable to contact slurm controller", self.cleanup(code=3).stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
