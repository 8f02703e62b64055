#!/usr/bin/python3
"""Batch scripts and the steps that they start with srun: which of them is checkpointed, and what becomes of the other."""

from case import main, wait_for
from job_case import NOBODY, PreemptionCase

STEP = 65536  # the rank of its first task; each step has so many


class Steps(PreemptionCase):
    def script(self, text):
        """A batch script in which @count is a command that counts."""
        path = self.work / "steps.sh"
        path.write_text("#!/bin/bash\n" + text.replace("@count", self.count()))
        return path

    def park_step(self, job, rank=STEP):
        self.agents.checkpoint({"node1": [f"{job}.1.{rank}"]}, f"slurm-{job}.1")
        self.slurm.wait_state(job, "PENDING")
        self.slurm.run("scontrol", "update", f"JobId={job}", "ReqNodeList=node2")

    def test_what_follows_a_step_waits_until_the_step_has_ended(self):
        script = self.script("srun --siding-preemptible @count\necho after\n")
        job = self.submit(script, uid=NOBODY)
        self.wait_counting(job)
        self.park_step(job)
        ended = self.end_job(job)
        self.assertEqual(ended["Restarts"], "1")
        self.assert_step_counted(job)
        self.assertEqual(self.output(job).splitlines()[-2:], ["done", "after"], self.output(job))

    def test_the_step_that_left_goes_on_and_the_one_before_is_done_again(self):
        script = self.script("srun echo first\nsrun --siding-preemptible @count\nsrun echo last\n")
        job = self.submit(script, uid=NOBODY)
        self.wait_counting(job)
        self.park_step(job, STEP * 2)
        self.end_job(job)
        self.assert_step_counted(job)
        words = [line for line in self.output(job).splitlines() if line in ("first", "last")]
        self.assertEqual(words, ["first", "first", "last"])

    def test_what_srun_has_not_read_yet_is_waited_for(self):
        job = self.submit(self.script("srun --siding-preemptible @count\n"), uid=NOBODY)
        self.wait_counting(job)
        with self.slurm.frozen_stepd(job, "0"):
            self.agents.checkpoint({"node1": [f"{job}.1.{STEP}"]}, f"slurm-{job}.1")
            for _ in range(50):  # a requeue is seen at the first or the second look
                self.assertEqual(self.slurm.job(job)["JobState"], "RUNNING")
        self.end_job(job)
        self.assert_step_counted(job)

    def test_a_step_does_not_get_the_checkpoint_of_another(self):
        again = '[ -n "$SLURM_RESTART_COUNT" ]'
        script = self.script(f"{again} || srun --siding-preemptible @count\nsrun --siding-preemptible echo second\n")
        job = self.submit(script, uid=NOBODY)
        self.wait_counting(job)
        self.park_step(job)
        self.end_job(job)
        self.assertIn(f"siding: checkpoint slurm-{job}.1 is of another command", self.output(job))
        self.assertIn("second", self.output(job).splitlines())

    def test_slurmctld_is_away_when_a_step_leaves(self):
        job = self.submit(self.script("srun --siding-preemptible @count\necho after\n"), uid=NOBODY)
        self.wait_counting(job)
        self.agents.wait_phase("node1", f"{job}.1.{STEP}", "RUNNING")
        self.slurm.stop_controller()
        self.agents.checkpoint({"node1": [f"{job}.1.{STEP}"]}, f"slurm-{job}.1")
        self.slurm.start_controller()
        self.slurm.wait_answer()
        self.end_job(job)
        self.assert_step_counted(job)
        self.assertEqual(self.output(job).count("after"), 1)

    def test_a_script_that_waits_for_a_step_cannot_be_checkpointed_and_says_why(self):
        script = self.script("#SBATCH --siding-preemptible\nsrun @count\n")
        job = self.submit(script, uid=NOBODY)
        self.wait_counting(job)
        task = f"{job}.1.0"
        self.agents.wait_phase("node1", task, "RUNNING")
        op = self.agents.order("node1", task, dump={"checkpoint": f"slurm-{job}.1", "tier": "SHARED"})
        report = wait_for("the order to fail", lambda: (r := self.agents.report("node1", task)).get("failedOp") == str(op) and r)
        self.assertIn("srun --siding-preemptible", report["error"])
        self.assertEqual(report["phase"], "RUNNING")
        self.end_job(job)
        self.assert_counted(job)

    def test_that_its_steps_have_ended_makes_no_difference(self):
        job = self.submit(self.script("#SBATCH --siding-preemptible\nsrun true\n@count\n"), uid=NOBODY)
        self.wait_counting(job)
        task = f"{job}.1.0"
        report = wait_for("the reason to be reported", lambda: (r := self.agents.report("node1", task)).get("cannotCheckpoint") and r)
        self.assertIn("the script has started steps", report["cannotCheckpoint"])

    def test_its_steps_inherit_the_option_and_are_checkpointed_instead(self):
        script = self.script("#SBATCH --siding-preemptible\nsrun @count\n")
        job = self.submit(script, uid=NOBODY)
        self.wait_counting(job)
        self.park_step(job)
        ended = self.end_job(job)
        self.assertEqual(ended["Restarts"], "1")
        self.assert_step_counted(job)


class StepsUnderCgroups(PreemptionCase):
    proctrack = "cgroup"
    script, park_step = Steps.script, Steps.park_step

    test_what_follows_a_step_waits_until_the_step_has_ended = Steps.test_what_follows_a_step_waits_until_the_step_has_ended


if __name__ == "__main__":
    main()
