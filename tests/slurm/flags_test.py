#!/usr/bin/python3
"""siding's flags as Slurm's users see them. No agent runs: jobs run as if siding were not there."""

import unittest

from case import BIN, PLUGIN, SlurmCase, SlurmError


class Flags(SlurmCase):
    nodes = 1

    def prepare(self):
        self.slurm.plugstack = f"optional {PLUGIN} programs={BIN}"

    def node_log(self):
        return (self.slurm.dir / "log" / "node1.log").read_text()

    def assert_refused(self, *args, words):
        for command in (("srun", *args, "true"), ("sbatch", *args, "--wrap", "true")):
            with self.assertRaises(SlurmError) as caught:
                self.slurm.run(*command)
            for word in words:
                self.assertIn(word, str(caught.exception))

    def test_they_are_explained(self):
        for command in ("srun", "sbatch", "salloc"):
            text = self.slurm.run(command, "--help")
            for flag in ("preemptible", "checkpoint-interval", "checkpoint-signal", "start-by", "notice", "max-preemptions", "files"):
                self.assertIn(f"--siding-{flag}", text)

    def test_bad_values_are_refused_at_submission_by_name(self):
        self.assert_refused("--siding-preemptible=checkpont", words=("--siding-preemptible=checkpont", "suspend"))
        self.assert_refused("--siding-start-by=soon", words=("--siding-start-by=soon", "+60s"))

    def test_flags_that_contradict_each_other_are_refused(self):
        self.assert_refused("--siding-preemptible", "--siding-start-by=+1m", words=("exclude each other",))

    def test_a_wrong_line_in_a_script_is_refused(self):
        script = self.slurm.dir / "job.sh"
        script.write_text("#!/bin/sh\n#SBATCH --siding-notice=later\ntrue\n")
        with self.assertRaisesRegex(SlurmError, "--siding-notice=later"):
            self.slurm.submit(script)

    def test_a_job_that_did_not_ask_is_not_touched(self):
        self.assertEqual(self.slurm.run("srun", "cat", "/proc/self/comm"), "cat")
        self.assertNotIn("siding:", self.node_log())

    def test_without_an_agent_the_job_runs_and_one_line_says_so(self):
        self.assertEqual(self.slurm.run("srun", "--siding-preemptible", "echo", "here"), "here")
        self.assertEqual(self.node_log().count("siding:"), 1, self.node_log())
        self.assertIn("runs as not preemptible", self.node_log())

    def test_slurms_own_signal_flag_keeps_its_meaning(self):
        self.assertEqual(self.slurm.run("srun", "--signal=USR1@60", "--siding-preemptible=kill", "echo", "x"), "x")


if __name__ == "__main__":
    unittest.main(verbosity=2)
