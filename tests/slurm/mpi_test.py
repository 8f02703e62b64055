#!/usr/bin/python3
"""Open MPI within one node: its ranks talk through shared memory, and leave and come back together."""

import pathlib
import shutil
import subprocess
import unittest

from case import main
from job_case import NOBODY, PreemptionCase


@unittest.skipUnless(shutil.which("mpicc") and shutil.which("mpirun"), "needs Open MPI (./run setup)")
class Mpi(PreemptionCase):
    # As on a node of its own: here the machine has another name than the node, which mpirun takes for a remote one.
    mpirun = "mpirun --mca plm ^slurm --mca ras ^slurm --oversubscribe -n 3"

    def prepare(self):
        super().prepare()
        self.ring = self.work / "ring"
        subprocess.run(["mpicc", "-O1", "-o", self.ring, pathlib.Path(__file__).with_name("ring.c")], check=True)

    def script(self, until):
        path = self.work / "mpi.sh"
        path.write_text(f"#!/bin/bash\n{self.mpirun} {self.ring} {until}\n")
        return path

    def lines(self, job):
        return [line for line in self.output(job).splitlines() if line.isdigit() or line.startswith("token")]

    def test_a_preempted_run_ends_as_one_that_was_not(self):
        job = self.submit("--siding-preemptible", self.script(self.gate), uid=NOBODY)
        self.wait_counting(job)
        self.vacate(job)
        self.gate.touch()
        ended = self.slurm.wait_state(job, "COMPLETED", "FAILED")
        self.assertEqual((ended["JobState"], ended["Restarts"]), ("COMPLETED", "1"), self.output(job))
        plain = self.submit(self.script(len(self.lines(job)) - 1), uid=NOBODY)
        self.slurm.wait_state(plain, "COMPLETED")
        self.assertEqual(self.lines(job), self.lines(plain))

    def test_ranks_that_srun_starts_run_as_if_siding_were_not_there(self):
        path = self.work / "srun.sh"
        path.write_text(f"#!/bin/bash\nsrun --mpi=pmix -n3 {self.ring} 10\n")
        outputs = []
        for option in ("--comment=plain", "--siding-preemptible"):
            job = self.submit("-N1", "-n3", option, path, uid=NOBODY)
            self.slurm.wait_state(job, "COMPLETED")
            outputs.append(self.lines(job))
        self.assertEqual(outputs[0], outputs[1])
        self.assertEqual(len(outputs[0]), 11)


if __name__ == "__main__":
    main()
