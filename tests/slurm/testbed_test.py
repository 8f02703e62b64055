#!/usr/bin/python3
"""The private Slurm that the other tests stand on."""

import unittest

from case import Slurm, SlurmCase, marked_processes


class Testbed(SlurmCase):
    def test_srun_reaches_two_nodes(self):
        names = self.slurm.run("srun", "-N2", "sh", "-c", "echo $SLURMD_NODENAME").split()
        self.assertEqual(sorted(names), ["node1", "node2"])

    def test_a_batch_job_of_an_ordinary_user_writes_its_output(self):
        output = self.slurm.dir / "out"
        output.touch()
        output.chmod(0o666)
        job = self.slurm.submit("-o", output, "--wrap", "id -u", uid=65534)
        self.slurm.wait_state(job, "COMPLETED")
        self.assertEqual(output.read_text(), "65534\n")

    def test_a_second_one_runs_beside_it(self):
        other = Slurm(1)
        self.addCleanup(other.remove)
        self.addCleanup(other.stop)
        other.start()
        self.assertEqual(other.run("sinfo", "-h", "-o", "%D"), "1")
        self.assertEqual(self.slurm.run("sinfo", "-h", "-o", "%D"), "2")

    def test_nothing_is_left_of_one_that_was_stopped_with_a_job_running(self):
        self.slurm.submit("-o", "/dev/null", "--wrap", "sleep 1000")
        self.slurm.stop()
        self.assertEqual(marked_processes(self.slurm.dir), [])
        self.assertEqual(list((self.slurm.dir / "pid").glob("*.ours")), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
