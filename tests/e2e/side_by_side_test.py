#!/usr/bin/python3
"""Two jobs of one user on one node whose programs make names that all of the node sees, of the numbers of their processes: they do not take
each other's."""

import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
from case import ClusterCase  # noqa: E402


@unittest.skipUnless(shutil.which("mpicc") and shutil.which("mpirun"), "needs Open MPI (./run setup)")
class TwoMpiruns(ClusterCase):
    nodes, slots = ("n1",), 4

    def test_both_go_on_and_come_back(self):
        program = self.cluster.dir / "exchange"
        subprocess.run(["mpicc", "-O1", "-o", program, pathlib.Path(__file__).with_name("exchange.c")], check=True)
        mpirun = ["mpirun", "--mca", "btl", "vader,self", "--oversubscribe", "-np", 2, program]
        jobs = []
        for _ in range(2):
            gate = self.new_gate()
            jobs.append(self.submit_gated(gate, "--slots", 2, "--preemptible=checkpoint", "--workdir", self.cluster.dir, "--output",
                                          f"{self.outputs()}/%j.%r", "--", *mpirun, gate, uid=65534))
        for job in jobs:
            self.wait_counting(job)
        self.cluster.ctl("vacate", jobs[0])
        for job in jobs:
            self.wait_goes_on(job)
        for job in jobs:
            self.assert_counted(job)


if __name__ == "__main__":
    unittest.main()
