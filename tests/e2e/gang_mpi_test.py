#!/usr/bin/python3
"""Open MPI on several nodes, by siding-mpirun in a job whose connections are kept: it goes on after moves, the loss of a node and a
preemption, each byte is what was sent, and it ends as it would have."""

import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
from case import ClusterCase, wait_for  # noqa: E402
from cluster import BIN  # noqa: E402
from machines import Machines  # noqa: E402

NOBODY = 65534


@unittest.skipUnless(shutil.which("mpicc") and shutil.which("mpirun"), "needs Open MPI (./run setup)")
class Exchange(ClusterCase):
    nodes, slots, ranks, arguments, uid = ("machine1", "machine2", "machine3"), 2, 2, (), None

    def make_cluster(self):
        return Machines(self.nodes, self.slots, policy=self.policy)

    def setUp(self):
        super().setUp()
        self.program = self.cluster.dir / "exchange"
        subprocess.run(["mpicc", "-O1", "-o", self.program, pathlib.Path(__file__).with_name("exchange.c")], check=True)
        gate = self.new_gate()
        # mpirun warns now and then of what it has found done already ("setpgid failed in parent"): on a stream of its own.
        command = ["/bin/sh", "-c", f'exec "$@" 2>> {self.outputs()}/errors.$SIDING_RANK', "sh", BIN / "siding-mpirun",
                   self.program, gate, *self.arguments]
        self.job = self.submit_gated(gate, "--name", "exchange", "--nodes", self.ranks, "--slots", 2, "--preemptible=checkpoint",
                                     "--connections=keep", "--workdir", self.cluster.dir, "--output", f"{self.outputs()}/%j.%r", "--",
                                     *command, uid=self.uid)
        self.wait_counting(self.job)

    def errors(self):
        return "".join(path.read_text() for path in sorted(self.outputs().glob("errors.*")))

    def wait_counting(self, job, rank=0, lines=20):
        path = self.outputs() / f"{job}.{rank}"
        ended = wait_for(f"job {job} to have written {lines} lines, or ended",
                         lambda: (path.exists() and path.read_text().count("\n") >= lines and "no") or
                         (self.cluster.job(job)["state"] in ("failed", "cancelled", "done") and self.cluster.job(job)))
        self.assertEqual(ended, "no", self.errors() + (path.read_text() if path.exists() else ""))
        super().wait_counting(job, rank, lines)

    def events(self, kind):
        return [e for e in self.cluster.events(self.job) if e["kind"] == kind]

    def move(self):
        count = len(self.events("restored"))
        self.cluster.ctl("vacate", self.job)
        wait_for("it to have been restored", lambda: len(self.events("restored")) > count)
        self.wait_goes_on(self.job)

    def assert_it_ends_well(self):
        self.wait_goes_on(self.job)
        self.assert_counted(self.job)
        for rank in range(1, self.ranks):
            self.assertEqual((self.outputs() / f"{self.job}.{rank}").read_text(), "")


class ItRuns(Exchange):
    def test_it_ends_well(self):
        self.assert_it_ends_well()


class OnOneNode(Exchange):
    ranks = 1

    def test_it_moves(self):
        self.move()
        self.assert_it_ends_well()


class ItMoves(Exchange):
    def test_it_goes_on_elsewhere(self):
        for _ in range(3):
            self.move()
        self.assert_it_ends_well()


class SomebodysMoves(ItMoves):
    uid = NOBODY


class AMachineIsLost(Exchange):
    def test_it_goes_on_from_its_checkpoint(self):
        self.cluster.ctl("checkpoint", self.job)
        self.cluster.wait_event(self.job, "continued")
        self.wait_goes_on(self.job)
        self.cluster.cut_power("machine1")
        self.cluster.start_machine("machine1")
        self.cluster.wait_event(self.job, "restored")
        self.assert_it_ends_well()


class ItMakesWay(Exchange):
    nodes = ("machine1", "machine2")

    def test_it_comes_back_after_a_request(self):
        express = self.express(2)
        self.assert_in_time(express)
        self.cluster.wait_state(express, "done")
        self.assert_it_ends_well()


class ARankFails(Exchange):
    arguments = (3, 3)

    def test_the_job_fails(self):
        self.open_gate(self.job)
        ended = self.cluster.wait_state(self.job, "failed")
        self.assertNotEqual(int(ended.get("exit_code", 0)), 0, ended)
        self.assert_all_quiet()


class ItIsEnded(Exchange):
    def test_nothing_is_left(self):
        self.cluster.ctl("kill", self.job)
        self.cluster.wait_state(self.job, "cancelled")
        self.assert_all_quiet()


if __name__ == "__main__":
    unittest.main()
