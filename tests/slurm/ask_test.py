#!/usr/bin/python3
"""A job with a deadline is submitted to a real Slurm: siding's controller is asked first, and marked jobs only get in."""

import json
import os
import pty
import re
import socket
import subprocess
import unittest

from case import BIN, PATIENCE, PLUGIN, SlurmCase, SlurmError, wait_for

MARK = re.compile(r"^\[siding start-by=(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)\]")
NOBODY = 65534
START_BY = "--siding-start-by=+60s"


class Ask(SlurmCase):
    nodes = 2

    def prepare(self):
        self.socket = self.slurm.dir / "ask.sock"
        self.slurm.plugstack = f"optional {PLUGIN} programs={BIN} controller={self.socket}"
        self.heard = self.slurm.dir / "questions"

    # ---- the controller ----
    def answer(self, verb, value):
        """From now on, in the controller's place."""
        with open(self.heard, "wb") as out:
            controller = subprocess.Popen([BIN / "siding-test-answerer", self.socket, verb, str(value)],
                                          stdin=subprocess.PIPE, stdout=out)
        self.addCleanup(controller.wait)
        self.addCleanup(controller.stdin.close)
        wait_for("the answerer's socket", self.socket.exists)

    def questions(self):
        return [json.loads(line) for line in self.heard.read_text().splitlines()]

    # ---- the user ----
    def command(self, *args, **env):
        return subprocess.run([str(a) for a in args], env={**self.slurm.env, **env}, capture_output=True, text=True,
                              timeout=PATIENCE, cwd=self.slurm.dir)

    def sbatch(self, *args, **env):
        """Submits a job that stays in the queue; its number and what was written to stderr."""
        done = self.command("sbatch", "--parsable", "--hold", "-o", "/dev/null", *args, **env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return int(done.stdout), done.stderr

    def script(self, *lines):
        path = self.slurm.dir / "job.sh"
        path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
        return path

    def comment(self, job):
        return self.slurm.run("squeue", "-h", "-j", job, "-o", "%k")

    def assert_marked(self, job, own=""):
        comment = self.comment(job)
        self.assertRegex(comment, MARK)
        self.assertEqual(MARK.sub("", comment), f" {own}" if own else "")

    def assert_queue_empty(self):
        # The job that the testbed tried its nodes with may still be completing.
        self.assertEqual(self.slurm.run("squeue", "-h", "-t", "PENDING,RUNNING", "-o", "%A %k"), "")


class Promised(Ask):
    def setUp(self):
        super().setUp()
        self.answer("promise", 30)

    def test_the_job_is_in_the_queue_with_its_mark(self):
        job, said = self.sbatch(START_BY, "--wrap", "true")
        self.assert_marked(job)
        self.assertEqual(said, "")

    def test_the_mark_says_the_deadline_that_was_asked_for(self):
        job, _ = self.sbatch("--siding-start-by=2030-05-01T12:00:00.25+02:00", "--wrap", "true")
        self.assertEqual(self.comment(job), "[siding start-by=2030-05-01T10:00:00.250000Z]")
        self.assertEqual(self.questions()[0]["start_by"], 1903860000_250000)

    def test_the_users_own_comment_stays(self):
        job, _ = self.sbatch(START_BY, "--comment=mind the gap", "--wrap", "true")
        self.assert_marked(job, "mind the gap")

    def test_flag_and_comment_may_stand_in_the_script(self):
        job, _ = self.sbatch(self.script(f"#SBATCH {START_BY}", "#SBATCH --comment='from the script'", "true"))
        self.assert_marked(job, "from the script")
        self.assertEqual(len(self.questions()), 1)

    def test_what_the_job_asks_for_arrives(self):
        self.sbatch(START_BY, "-N2", "-n5", "-c1", "--mem=100", "--time=90", "-J", "my job", "-p", "batch", "--wrap", "true",
                    SBATCH_ACCOUNT="physics")
        self.assertEqual(self.questions()[0]["spec"], {"name": "my job", "nodes": 2, "slots": 3, "memory": 100 << 20, "gpus": 0,
                                                      "hold": 5400, "labels": {"account": "physics", "partition": "batch"}})

    def test_who_asks_arrives(self):
        self.slurm.dir.chmod(0o755)
        self.slurm.submit("--hold", START_BY, "-o", "/dev/null", "--wrap", "true", uid=NOBODY)
        self.assertEqual(self.questions()[0]["uid"], NOBODY)

    def test_a_job_for_later_says_when(self):
        self.sbatch("--siding-start-by=2030-05-01T12:00:00Z", "--begin=2030-05-01T11:00:00", "--wrap", "true", TZ="UTC")
        self.assertEqual(self.questions()[0]["not_before"], 1903863600_000000)

    def test_jobs_of_srun_and_salloc_are_asked_for_and_marked(self):
        show = ("sh", "-c", "scontrol show job $SLURM_JOB_ID")
        for command in ("srun", "salloc"):
            shown = self.command(command, START_BY, "-n1", "--comment=mine", *show).stdout
            self.assertRegex(shown, r"Comment=\[siding start-by=.*Z\] mine ?\n", command)
        self.assertEqual(len(self.questions()), 2)

    def test_a_step_is_not_asked_for(self):
        self.command("salloc", "-n1", "srun", START_BY, "true")
        job = self.slurm.submit("-o", "/dev/null", "--wrap", "sleep 1000")
        self.slurm.wait_state(job, "RUNNING")
        self.assertEqual(self.command("srun", f"--jobid={job}", "--overlap", START_BY, "true").returncode, 0)
        self.assertEqual(self.questions(), [])

    def test_what_an_on_demand_job_submits_has_no_deadline(self):
        out = self.slurm.dir / "inner"
        script = self.script("srun true", "sbatch --parsable --hold -o /dev/null --wrap true")
        job = self.slurm.submit(START_BY, "-o", out, script)
        self.slurm.wait_state(job, "COMPLETED")
        self.assertEqual(self.comment(int(out.read_text())), "(null)")
        self.assertEqual(len(self.questions()), 1)

    def test_at_a_terminal_the_promise_is_shown(self):
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        subprocess.run(["sbatch", "--hold", START_BY, "-o", "/dev/null", "--wrap", "true"], env=self.slurm.env, timeout=PATIENCE,
                       stdout=subprocess.DEVNULL, stderr=theirs, check=True)
        os.close(theirs)
        self.assertRegex(os.read(ours, 4096).decode(), r"siding: the job is to start by ([-\d]+ )?\d\d:\d\d:\d\d\r\n$")

    def test_an_array_is_refused(self):
        with self.assertRaisesRegex(SlurmError, "--array"):
            self.slurm.submit(START_BY, "--array=1-2", "--wrap", "true")
        self.assert_queue_empty()


class Gpus(Ask):
    def prepare(self):
        super().prepare()
        self.slurm.extra = "GresTypes=gpu"

    def test_they_arrive_as_asked_for(self):
        self.answer("promise", 30)
        for args, gpus in ((("--gres=gpu:h200:2",), 2), (("--gpus-per-node=3",), 3), (("--gpus=h200:4", "-N2"), 2)):
            self.command("sbatch", START_BY, *args, "--wrap", "true")  # Slurm itself refuses: no node has any
            self.assertEqual(self.questions()[-1]["spec"]["gpus"], gpus, args)


class Refused(Ask):
    REASON = "two of four nodes are free at 12:00:00; the earliest start is 12:07:30"

    def test_the_reason_is_shown_and_slurm_has_no_job(self):
        self.answer("refuse", self.REASON)
        for command in (("sbatch", "--wrap", "true"), ("srun", "true"), ("salloc", "true")):
            done = self.command(command[0], START_BY, *command[1:])
            self.assertEqual((done.returncode, done.stdout), (1, ""), command)
            self.assertIn(f"error: siding: {self.REASON}\n", done.stderr)
        self.assert_queue_empty()


class Unanswered(Ask):
    def assert_submitted_all_the_same(self, why):
        job, said = self.sbatch(START_BY, "--wrap", "true")
        self.assertEqual(said, f"sbatch: siding: the controller does not answer ({self.socket}: {why}); "
                               "the job waits its turn as any other\n")
        self.assert_marked(job)

    def test_without_a_controller_the_job_is_submitted_all_the_same(self):
        self.assert_submitted_all_the_same("No such file or directory")

    def test_a_controller_that_is_silent_holds_nobody_up_for_long(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
            silent.bind(str(self.socket))
            silent.listen()
            self.assert_submitted_all_the_same("it is silent")

    def test_a_job_without_a_deadline_does_not_ask(self):
        job, said = self.sbatch("--wrap", "true")
        self.assertEqual(said, "")
        self.assertEqual(self.comment(job), "(null)")


if __name__ == "__main__":
    unittest.main(verbosity=2)
