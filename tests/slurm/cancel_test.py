#!/usr/bin/python3
"""scancel in the moments when a job is neither running nor parked: it is gone, and leaves nothing."""

from case import main, marked_processes, wait_for
from held_criu import HeldCriu
from job_case import NOBODY, PreemptionCase
from vanishing import paths


class Cancel(PreemptionCase):
    def prepare(self):
        self.criu = HeldCriu(self.slurm.dir / "criu")
        self.addCleanup(self.criu.let_go)
        super().prepare()

    def start_job(self):
        self.before = self.processes()
        job = self.submit("--siding-preemptible", self.counter(), uid=NOBODY)
        self.wait_counting(job)
        return job

    def processes(self):
        return set(marked_processes(self.slurm.dir))

    def assert_gone(self, job):
        self.slurm.wait_state(job, "CANCELLED")
        wait_for("no process of the job to be left", lambda: self.processes() <= self.before)
        wait_for("its temporary folder to be gone", lambda: not paths("/tmp", f"siding-*-job-{job}.*"))
        wait_for("both nodes to be idle", lambda: self.slurm.run("sinfo", "-h", "-N", "-o", "%T").split() == ["idle"] * 2)

    def test_during_a_dump(self):
        job = self.start_job()
        task = f"{job}.1.0"
        self.agents.wait_phase("node1", task, "RUNNING")
        op = self.agents.order("node1", task, dump={"checkpoint": f"slurm-{job}.1", "tier": "SHARED"})
        self.agents.wait_phase("node1", task, "PREPARED")
        self.slurm.run("scancel", job)
        self.agents.wait_phase("node1", task, "LOST")
        self.agents.order("node1", task, op, commit={})
        self.assert_gone(job)
        self.assertEqual(list((self.agents.shared / "images").iterdir()), [])

    def test_during_a_restore(self):
        job = self.start_job()
        self.vacate(job)
        self.criu.hold()
        self.criu.wait_reached()
        self.slurm.run("scancel", job)
        self.assert_gone(job)
        self.agents.wait_phase("node2", f"{job}.2.0", "RESTORE_FAILED")


class CancelUnderCgroups(Cancel):
    proctrack = "cgroup"


if __name__ == "__main__":
    main()
