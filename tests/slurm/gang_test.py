#!/usr/bin/python3
"""Steps on several nodes whose connections are kept (--siding-connections=keep): they make way for a deadline, come back on other nodes,
and each byte is what was sent."""

import pathlib
import shlex
import shutil
import subprocess
import unittest

from case import BIN, jobs, main, wait_for
from deadline_test import CONFIG, DeadlineCase
from preemption_test import NOBODY

KEEP = ("--siding-preemptible=checkpoint", "--siding-connections=keep")
EXCHANGE = pathlib.Path(__file__).resolve().parents[1] / "e2e" / "exchange.c"


class Gang(DeadlineCase):
    nodes, config = 3, CONFIG + "  suspend: false\n"

    def mesh(self):
        return shlex.join(jobs.command(self.work, "mesh", jobs.MESH, self.gate, 20000))

    def submit(self, command, *options):
        """A batch script whose step writes gang.RANK."""
        script = self.work / "gang.sh"
        script.write_text(f"#!/bin/bash\nsrun sh -c {shlex.quote(f'exec {command} >> gang.$SLURM_PROCID')}\necho after\n")
        return self.slurm.submit(*options, "-o", self.work / "out.%j", script, uid=NOBODY, cwd=self.work)

    def gang(self, command, *options, nodes=2):
        """One task on each node."""
        return self.submit(command, "-N", nodes, "--ntasks-per-node=1", "-c", self.slurm.cpus, *(options or KEEP))

    def lines(self, rank=0):
        path = self.work / f"gang.{rank}"
        return path.read_text().count("\n") if path.exists() else 0

    def wait_goes_on(self, *ranks):
        for rank in ranks or (0,):
            enough = self.lines(rank) + 20
            wait_for(f"rank {rank} to write its line {enough}", lambda r=rank, e=enough: self.lines(r) >= e)

    def wait_running(self, gang, nodes=2):
        wait_for("siding to see the step run", lambda: len(self.running(gang)["nodes"]) == nodes)

    def make_way(self, gang, nodes=2):
        """For a job with a deadline, which ends."""
        express = self.express(nodes=nodes, command="srun hostname")
        self.slurm.wait_state(express, "COMPLETED")
        self.wait_running(gang)
        self.wait_goes_on()

    def assert_counted(self, *ranks):
        for rank in ranks:
            self.assertIsNone(jobs.counted(self.work / f"gang.{rank}"))


class Mesh(Gang):
    def test_it_makes_way_and_comes_back(self):
        gang = self.gang(self.mesh())
        self.wait_running(gang)
        self.wait_goes_on(0, 1)
        self.make_way(gang)
        self.assertEqual(self.end_job(gang)["Restarts"], "1")
        self.assert_counted(0, 1)
        self.assertEqual(self.output(gang).splitlines()[-1], "after")
        self.assert_nothing_left()

    def test_it_runs_on_after_a_checkpoint_and_comes_back_from_it(self):
        gang = self.gang(self.mesh())
        self.wait_running(gang)
        self.wait_goes_on(0, 1)
        self.siding.ctl("checkpoint", gang)
        self.siding.wait_event(gang, "continued")
        self.wait_goes_on(0, 1)
        self.slurm.run("scontrol", "requeue", gang)
        wait_for("Slurm to have started it again", lambda: self.slurm.job(gang)["Restarts"] == "1")
        self.wait_running(gang)
        self.wait_goes_on(0, 1)
        self.end_job(gang)
        self.assert_counted(0, 1)

    def test_two_tasks_of_one_node_have_a_network_each(self):
        gang = self.submit(self.mesh(), "-N1", "-n2", "-c1", *KEEP)
        self.wait_goes_on(0, 1)
        wait_for("siding to see the step", lambda: self.siding.jobs().get(gang) and len(self.running(gang)["nodes"]) == 2)
        self.siding.ctl("vacate", gang)
        wait_for("Slurm to have started it again", lambda: self.slurm.job(gang)["Restarts"] == "1")
        self.wait_goes_on(0, 1)
        self.end_job(gang)
        self.assert_counted(0, 1)


@unittest.skipUnless(shutil.which("mpicc") and shutil.which("mpirun"), "needs Open MPI (./run setup)")
class Mpi(Gang):
    def exchange(self):
        program = self.work / "exchange"
        subprocess.run(["mpicc", "-O1", "-o", program, EXCHANGE], check=True)
        return shlex.join(map(str, [BIN / "siding-mpirun", program, self.gate]))

    def test_open_mpi_comes_back_and_ends_well(self):
        gang = self.gang(self.exchange())
        self.wait_running(gang)
        self.wait_goes_on()
        self.make_way(gang)
        self.assertEqual(self.end_job(gang)["ExitCode"], "0:0")
        self.assert_counted(0)
        self.assertEqual(self.lines(1), 0)

    def test_so_does_one_that_sidingctl_has_submitted(self):
        command = ["sh", "-c", f"exec {self.exchange()} 2>> errors"]
        gang = self.siding.submit("--nodes", 2, "--slots", self.slurm.cpus, "--preemptible=checkpoint", "--connections=keep", "--workdir",
                                  self.work, "--output", "gang.%r", "--", *command, uid=NOBODY)
        self.wait_running(gang)
        self.wait_goes_on()
        self.make_way(gang)
        self.assertEqual(self.end_job(gang)["ExitCode"], "0:0")
        self.assert_counted(0)


class ItCannotBeJoined(Gang):
    """The agents have been told addresses that do not reach each other."""

    nodes = 2

    def agent_arguments(self, node):
        return [*super().agent_arguments(node), "--gang-address", {"node1": "127.0.0.1", "node2": "192.0.2.7"}[node]]

    def test_it_is_started_again_until_it_can_be(self):
        gang = self.gang(self.mesh())
        wait_for("its user to be told why", lambda: "do not reach each other" in self.output(gang))
        self.siding.kill9_agent("node2")
        self.siding.agent_args["node2"] = super().agent_arguments("node2")
        self.siding.start_agent("node2")
        self.wait_running(gang)
        self.wait_goes_on(0, 1)
        self.end_job(gang)
        self.assert_counted(0, 1)


class AnAgentIsAway(Gang):
    """A rank never runs alone beside peers that wait for it."""

    nodes = 2

    def test_it_is_started_again_when_it_is_back(self):
        self.siding.kill9_agent("node2")
        gang = self.gang(self.mesh())
        wait_for("its user to be told why", lambda: "could not be asked for a network" in self.output(gang))
        self.siding.start_agent("node2")
        self.wait_running(gang)
        self.wait_goes_on(0, 1)
        self.end_job(gang)
        self.assert_counted(0, 1)


class ManySteps(Gang):
    """Each step has a network of its own, whichever of them stands for the job."""

    nodes = 2

    def test_two_at_a_time_and_one_on_a_node_alone_go_on(self):
        script = self.work / "steps.sh"
        step = f"srun -N2 -n2 -c1 --exact sh -c {shlex.quote(f'exec {self.mesh()} >> gang.$SLURM_PROCID')} &"
        other = step.replace("gang.", "other.")
        itself = "import socket as s; server = s.create_server(('127.0.0.1', 7001)); s.create_connection(('127.0.0.1', 7001)); print('heard')"
        alone = f"srun -N1 -n1 -c1 --exact /usr/bin/python3 -c {shlex.quote(itself)} > alone &"
        script.write_text(f"#!/bin/bash\n{step}\n{other}\n{alone}\nwait\n")
        job = self.slurm.submit("-N2", "--ntasks-per-node=3", "-c1", "-o", self.work / "out.%j", *KEEP, script, uid=NOBODY, cwd=self.work)
        self.wait_goes_on(0, 1)
        other = self.work / "other.1"
        wait_for("the other step to write", lambda: other.exists() and other.read_text().count("\n") > 20)
        self.end_job(job)
        self.assert_counted(0, 1)
        self.assertIsNone(jobs.counted(other))
        self.assertEqual((self.work / "alone").read_text(), "heard\n")


class WithoutTheOption(Gang):
    nodes = 2

    def test_a_step_is_in_its_nodes_network(self):
        gang = self.gang("sh -c 'readlink /proc/self/ns/net; echo ${SIDING_GANG_ADDR-none}'", "--siding-preemptible")
        self.slurm.wait_state(gang, "COMPLETED")
        own = pathlib.Path("/proc/self/ns/net").readlink()
        self.assertEqual((self.work / "gang.0").read_text(), f"{own}\nnone\n")


if __name__ == "__main__":
    main()
