"""What tests of preemptible jobs on a real Slurm start from: an agent on each node, and a job whose output shows whether all of its
work was done, each piece once."""

import shlex
import unittest

from case import BIN, PLUGIN, Agents, SlurmCase, find_criu, jobs, wait_for

NOBODY = 65534


@unittest.skipUnless(find_criu(), "needs a criu that works here (./run setup)")
class PreemptionCase(SlurmCase):
    nodes = 2
    criu = None  # a HeldCriu, of tests that need one

    def prepare(self):
        self.slurm.plugstack = f"optional {PLUGIN} programs={BIN}"
        self.agents = Agents(self.slurm.dir / "agents", self.slurm.nodes, self.slurm.agent_socket, criu=self.criu and self.criu.path)
        self.addCleanup(self.agents.stop)
        self.set_up_agents()
        self.agents.start()
        self.work = self.slurm.dir / "work"
        self.work.mkdir()
        self.work.chmod(0o777)

    def set_up_agents(self):
        """Called before they start."""

    @property
    def gate(self):
        """Without this file no counter of the test ends."""
        return self.work / "gate"

    def count(self, mib=8):
        """A counter as a shell's command."""
        return shlex.join(jobs.command(self.work, "counter", jobs.COUNTER, self.gate, mib))

    def counter(self, ending=""):
        """A batch script around a counter."""
        script = self.work / "job.sh"
        script.write_text(f"#!/bin/bash\n{self.count()}\n{ending}\n")
        return script

    def submit(self, *args, uid=None):
        return self.slurm.submit("-o", self.work / "out.%j", "-w", "node1", *args, uid=uid, cwd=self.work)

    def output(self, job):
        path = self.work / f"out.{job}"
        return path.read_text() if path.exists() else ""

    def wait_counting(self, job, lines=20):
        wait_for(f"job {job} to have written {lines} lines", lambda: self.output(job).count("\n") >= lines)

    def vacate(self, job, incarnation=1, node="node1", to="node2"):
        """Off its node and back into the queue; it may continue only on the one named, if one is."""
        self.agents.checkpoint({node: [f"{job}.{incarnation}.0"]}, f"slurm-{job}.{incarnation}")
        self.slurm.wait_state(job, "PENDING")
        if to:
            self.slurm.run("scontrol", "update", f"JobId={job}", f"ReqNodeList={to}")

    def end_job(self, job, state="COMPLETED"):
        """Opens the gate; what Slurm says of the job when it has ended."""
        self.gate.touch()
        return self.slurm.wait_state(job, state)

    def assert_counted(self, job):
        self.assertIsNone(jobs.counted(self.work / f"out.{job}"), self.output(job)[-500:])

    def assert_step_counted(self, job):
        """Among what Slurm and the script say."""
        lines = [line for line in self.output(job).splitlines() if line.isdigit() or line == "done"]
        self.assertIsNone(jobs.miscounted(lines), self.output(job)[-500:])

    def assert_began_anew(self, job):
        self.assertTrue(jobs.began_anew(self.output(job).splitlines()), self.output(job)[-500:])
