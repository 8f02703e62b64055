#!/usr/bin/python3
"""Slurm's daemons and whole nodes go away and come back while a job runs, is parked, or is being dumped."""

from case import kill, main, marked_processes
from job_case import NOBODY, PreemptionCase


class Daemons(PreemptionCase):
    def start_job(self):
        job = self.submit("--siding-preemptible", self.counter(), uid=NOBODY)
        self.wait_counting(job)
        return job

    def restart_controller(self):
        self.slurm.stop_controller()
        self.slurm.start_controller()
        self.slurm.wait_answer()

    def assert_went_on(self, job):
        ended = self.end_job(job)
        self.assertEqual((ended["BatchHost"], ended["Restarts"]), ("node2", "1"))
        self.assert_counted(job)

    def test_slurmctld_is_restarted_while_it_runs(self):
        job = self.start_job()
        self.restart_controller()
        self.vacate(job)
        self.assert_went_on(job)

    def test_slurmctld_is_restarted_while_it_is_parked(self):
        job = self.start_job()
        self.vacate(job)
        self.restart_controller()
        self.assert_went_on(job)

    def test_slurmctld_is_away_when_it_leaves(self):
        job = self.start_job()
        self.slurm.stop_controller()
        self.agents.checkpoint({"node1": [f"{job}.1.0"]}, f"slurm-{job}.1")
        self.slurm.start_controller()
        self.slurm.wait_answer()
        self.slurm.wait_state(job, "PENDING")
        self.slurm.run("scontrol", "update", f"JobId={job}", "ReqNodeList=node2")
        self.assert_went_on(job)


class NodeDown(PreemptionCase):
    """slurmd, the agent and all processes of the job end at once, in the middle of a dump."""

    def start_job(self):
        self.before = set(marked_processes(self.slurm.dir))
        job = self.submit("--siding-preemptible", self.counter(), uid=NOBODY)
        self.wait_counting(job)
        return job

    def kill_node_while_dumping(self, job, checkpoint):
        self.agents.order("node1", f"{job}.1.0", dump={"checkpoint": checkpoint, "tier": "SHARED"})
        self.agents.wait_phase("node1", f"{job}.1.0", "PREPARED")
        self.slurm.kill9_node("node1")
        self.agents.kill9_agent("node1")
        kill(set(marked_processes(self.slurm.dir)) - self.before)
        self.slurm.run("scontrol", "update", "NodeName=node1", "State=DOWN", "Reason=lost")
        self.slurm.wait_state(job, "PENDING")
        self.slurm.run("scontrol", "update", f"JobId={job}", "ReqNodeList=node2")

    def test_it_goes_on_from_its_last_whole_checkpoint(self):
        job = self.start_job()
        self.agents.wait_phase("node1", f"{job}.1.0", "RUNNING")
        self.agents.checkpoint({"node1": [f"{job}.1.0"]}, f"slurm-{job}.1", keep_running=True)
        self.wait_counting(job, 40)
        self.kill_node_while_dumping(job, f"slurm-{job}.2")
        ended = self.end_job(job)
        self.assertEqual((ended["BatchHost"], ended["Restarts"]), ("node2", "1"))
        self.assert_counted(job)

    def test_without_a_checkpoint_it_begins_anew(self):
        job = self.start_job()
        self.agents.wait_phase("node1", f"{job}.1.0", "RUNNING")
        self.kill_node_while_dumping(job, f"slurm-{job}.1")
        self.end_job(job)
        self.assert_began_anew(job)


if __name__ == "__main__":
    main()
