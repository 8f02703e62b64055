"""What tests of preemptible jobs on a real Slurm start from: an agent on each node, and a job whose output shows whether all of its
work was done, each piece once."""

import unittest

from case import BIN, PLUGIN, Agents, SlurmCase, find_criu, jobs, wait_for

STEPS = 150
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
        self.gate = self.work / "gate"

    def set_up_agents(self):
        """Called before they start."""

    def counter(self, ending="", steps=STEPS, gate=None):
        """A batch script around a counter that writes each of its numbers once. It does not end before the file `gate` is there."""
        command = jobs.command(self.work, "counter", jobs.COUNTER, steps, 8, *([gate] if gate else []))
        script = self.work / "job.sh"
        script.write_text(f"#!/bin/bash\n{' '.join(command)}\n{ending}\n")
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

    def assert_counted(self, job):
        problem = jobs.counted(self.work / f"out.{job}", STEPS)
        self.assertIsNone(problem, self.output(job)[-500:])
