#!/usr/bin/python3
"""What a job needs is away when it is to be restored; what is done then, and what only on order."""

import unittest

from case import ClusterCase, CtlError, jobs, kill, wait_for


# Counts as jobs.COUNTER does. A shell keeps the script that it runs open.
SHELL_COUNTER = """
i=0
until [ "$last" ]; do
    [ ! -e "$1" ] || last=yes
    echo $i
    i=$((i + 1))
    sleep 0.02
done
echo done
"""


class Outside(ClusterCase):
    def folder(self):
        folder = self.cluster.dir / "work"
        folder.mkdir()
        return folder

    def submit(self, folder, *extra):
        gate = self.new_gate()
        argv = jobs.command(self.cluster.dir, "counter", jobs.COUNTER, gate, 8)
        return self.submit_gated(gate, "--name", "counter", "--slots", 1, "--preemptible=checkpoint", *extra, "--workdir", folder,
                                 "--output", folder / "log", "--", *argv)

    def lines(self, log):
        return log.read_text().splitlines() if log.exists() else []

    def park(self, job, log):
        """Off its node, with some work done, and not to be restored yet."""
        wait_for("the job to have written some lines", lambda: len(self.lines(log)) >= 20)
        for node in self.nodes:
            self.cluster.ctl("cordon", node)
        self.cluster.ctl("vacate", job)

    def let_it_try(self):
        for node in self.nodes:
            self.cluster.ctl("uncordon", node)

    def kinds(self, job):
        return [event["kind"] for event in self.cluster.events(job)]

    def test_a_folder_that_is_away_for_a_moment_costs_nothing(self):
        folder = self.folder()
        job = self.submit(folder)
        self.park(job, folder / "log")
        away = folder.rename(self.cluster.dir / "away")
        self.let_it_try()
        wait_for("both nodes to have been tried", lambda: self.kinds(job).count("restore-failed") == 2)
        view = self.cluster.wait_state(job, "parked")
        self.assertIn(str(folder), view["reason"])
        self.assertIn(f"sidingctl resume {job}", view["reason"])
        self.assertEqual([c["state"] for c in self.cluster.ctl("checkpoints", "list")["checkpoints"]], ["good"])
        away.rename(folder)
        self.cluster.ctl("resume", job)
        self.end_job(job)
        self.assertIsNone(jobs.counted(folder / "log"))
        self.assertNotIn("checkpoint-damaged", self.kinds(job))

    def park_script(self):
        """A job that runs a script, off its nodes."""
        folder = self.folder()
        script, gate = folder / "count.sh", self.new_gate()
        script.write_text(SHELL_COUNTER)
        job = self.submit_gated(gate, "--name", "script", "--slots", 1, "--preemptible=checkpoint", "--workdir", folder, "--output",
                                folder / "log", "--", "/bin/bash", script, gate)
        self.park(job, folder / "log")
        return job, script

    def test_a_script_that_was_touched_is_the_same(self):
        job, script = self.park_script()
        script.touch()
        self.let_it_try()
        self.end_job(job)
        self.assertIsNone(jobs.counted(script.parent / "log"))
        self.assertNotIn("restore-failed", self.kinds(job))

    def test_a_script_that_was_edited_is_named_and_what_can_be_done(self):
        job, script = self.park_script()
        before = script.read_text()
        script.write_text(before.replace("0.02", "0.03"))
        self.let_it_try()
        wait_for("its restore to have failed", lambda: "restore-failed" in self.kinds(job))
        reason = self.cluster.wait_state(job, "parked")["reason"]
        self.assertIn(f"file {script} has got other contents since the checkpoint", reason)
        self.assertIn(f"sidingctl restart {job}", reason)
        script.write_text(before)
        self.cluster.ctl("resume", job)
        self.end_job(job)
        self.assertIsNone(jobs.counted(script.parent / "log"))

    def test_a_job_that_does_not_allow_kill_starts_from_the_beginning_when_somebody_says_so(self):
        folder = self.folder()
        job = self.submit(folder)
        wait_for("the job to have written some lines", lambda: len(self.lines(folder / "log")) >= 20)
        with self.assertRaises(CtlError) as refused:
            self.cluster.ctl("restart", job)
        self.assertIn("only a parked job", str(refused.exception))
        kill(self.cluster.task_processes())
        view = self.cluster.wait_state(job, "parked")
        self.assertIn(f"sidingctl restart {job}", view["reason"])
        (folder / "log").unlink()
        self.cluster.ctl("restart", job)
        self.assertIn("started from the beginning again", self.cluster.wait_state(job, "running")["reason"])
        self.end_job(job)
        self.assertIsNone(jobs.counted(folder / "log"))

    def test_a_log_that_was_rotated_is_appended_to_where_the_user_says_so(self):
        folder = self.folder()
        log, old = folder / "log", folder / "log.1"
        job = self.submit(folder, "--files=append")
        self.park(job, log)
        log.rename(old)
        self.let_it_try()
        self.end_job(job)
        self.assertIsNone(jobs.miscounted(self.lines(old) + self.lines(log)))
        notes = [event["text"] for event in self.cluster.events(job) if event["kind"] == "note"]
        self.assertTrue(any("has been rotated" in note for note in notes), notes)


if __name__ == "__main__":
    unittest.main()
