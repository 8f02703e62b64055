#!/usr/bin/python3
"""What users of the built-in queue see: limits of time, why a job waits, and what verbs wait for."""

import json
import os
import pathlib
import pty
import signal
import subprocess
import unittest

from case import FAR, ClusterCase, CtlError, wait_for
from cluster import BIN, PATIENCE, noted_processes, pid_namespace, start_time
from machines import Machines, fake_time_library


def parent(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()[1])


class Queue(ClusterCase):
    nodes = ("q1", "q2")

    def sleeper(self, *args):
        return self.cluster.submit("--workdir", "/", "--output", f"{self.outputs()}/%j", *args, "--", "/bin/sleep", 1000)

    def reason(self, job):
        return self.cluster.job(job)["reason"]

    def waits_for(self, job):
        return self.cluster.job(job)["waits_for"]

    def test_an_on_demand_job_is_ended_when_its_walltime_is_over(self):
        job = self.sleeper("--start-by", f"+{FAR}s", "--walltime", "1s")
        self.cluster.wait_state(job, "failed")
        self.assertEqual(self.reason(job), "walltime of 1.00s is over")
        self.assertEqual(self.cluster.job(job)["exit_code"], 143)
        self.assert_all_quiet()

    def test_a_node_whose_agent_is_gone_is_named(self):
        job = self.sleeper("--nodes", 2)
        self.cluster.wait_state(job, "running")
        self.cluster.kill9_agent("q2")
        wait_for("the node to be named", lambda: self.waits_for(job).startswith("waits for node q2, whose agent is gone since 20"))
        verb = self.verb("kill", job, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        said = verb.stderr.readline()
        while "q2" not in said:
            said = verb.stderr.readline()
        self.assertIn(f"job {job}: killing: waits for node q2, whose agent is gone since", said)
        self.cluster.start_agent("q2")
        with verb.stderr:
            verb.stderr.read()
        self.assertEqual(verb.wait(PATIENCE), 0)
        self.cluster.wait_state(job, "cancelled")

    def test_several_jobs_are_killed_at_once(self):
        jobs = [self.sleeper(), self.sleeper(), self.sleeper()]
        self.assertIn("waits for 1 node with 1 slot; none is free", self.waits_for(jobs[2]))
        self.cluster.ctl("kill", *jobs)
        self.assertEqual({self.cluster.state(job) for job in jobs}, {"cancelled"})

    def test_a_job_that_is_held_waits_until_it_is_released(self):
        running = self.sleeper("--nodes", 2)
        self.cluster.wait_state(running, "running")
        held, next_one = self.sleeper(), self.sleeper()
        self.cluster.ctl("hold", held)
        with self.assertRaisesRegex(CtlError, "is running: only a job that waits is held"):
            self.cluster.ctl("hold", running)
        self.cluster.ctl("update", next_one, "--priority", 3, "--walltime", "2h")
        self.cluster.ctl("kill", running)
        self.cluster.wait_state(next_one, "running")
        self.assertEqual(self.cluster.job(next_one)["spec"]["walltime_us"], str(2 * 3600 * 10**6))
        self.assertEqual(self.cluster.job(held)["state"], "pending")
        self.assertEqual(self.waits_for(held), f"is held by its user (sidingctl release {held})")
        self.assertEqual(self.cluster.job(held)["held_by"], "user")
        self.cluster.ctl("release", held)
        self.cluster.wait_state(held, "running")

    def test_a_job_that_runs_is_started_over_and_shown_with_its_command(self):
        ran = self.outputs() / "ran"
        job = self.cluster.submit("--workdir", "/", "--output", "/dev/null", "--", "/bin/sh", "-c", f"echo >> {ran}; exec sleep 1000")
        self.cluster.wait_state(job, "running")
        self.cluster.ctl("restart", "--running", job)
        wait_for("its second start", lambda: self.cluster.job(job)["incarnation"] == 2 and ran.read_text() == "\n\n")
        self.assertIn("started from the beginning again", self.reason(job))
        self.cluster.ctl("kill", job)
        with self.verb("jobs", job, stdout=subprocess.PIPE) as shown:
            self.assertIn(f"command of job {job}: /bin/sh -c 'echo >> {ran}; exec sleep 1000'\n", shown.stdout.read())

    def test_a_job_that_vacates_its_node_goes_to_another(self):
        job = self.sleeper()
        before = self.cluster.wait_state(job, "running")["nodes"]
        self.cluster.ctl("vacate", job)
        self.assertNotEqual(self.cluster.wait_state(job, "running")["nodes"], before)

    def verb(self, *args, **streams):
        return subprocess.Popen([str(BIN / "sidingctl"), "--socket", str(self.cluster.socket), *map(str, args)], text=True, **streams)

    def test_a_job_that_cannot_be_started_is_no_success_for_who_waits_for_it(self):
        for folder, output, program in (("/", "/dev/null", "/no/such/program"), ("/no/such/folder", "/dev/null", "/bin/true"),
                                        ("/", "/no/such/folder/%j", "/bin/true")):
            with self.subTest(program), self.verb("submit", "--wait", "--workdir", folder, "--output", output, "--", program,
                                                  stdout=subprocess.DEVNULL) as submit:
                self.assertEqual(submit.wait(PATIENCE), 127)

    def test_who_waits_outlasts_a_controller_that_is_killed_and_started_again(self):
        gate = self.new_gate()
        job = self.submit_gated(gate, "--workdir", "/", "--output", "/dev/null", "--", "/bin/sh", "-c",
                                f"until [ -e {gate} ]; do sleep 0.1; done; exit 7")
        self.cluster.wait_state(job, "running")
        with self.verb("wait", job, stderr=subprocess.PIPE) as wait:
            self.assertEqual(wait.stderr.readline(), f"job {job}: running\n")
            self.cluster.kill9_controller()
            self.assertIn("waits for it for up to 10 minutes", wait.stderr.readline())
            self.cluster.start_controller()
            self.open_gate(job)
            self.assertEqual(wait.wait(PATIENCE), 7)

    def test_so_do_followed_events(self):
        with self.verb("events", "--follow", "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as events:
            self.addCleanup(events.kill)
            first = self.sleeper()
            while (event := json.loads(events.stdout.readline()))["job"] != str(first) or event["kind"] != "started":
                pass
            self.cluster.kill9_controller()
            self.assertIn("waits for it", events.stderr.readline())
            self.cluster.start_controller()
            self.cluster.ctl("kill", first)
            seen = int(event["seq"])
            while (event := json.loads(events.stdout.readline()))["kind"] != "cancelled":
                self.assertGreater(int(event["seq"]), seen)
                seen = int(event["seq"])
            events.kill()

    def test_q_ends_top(self):
        master, terminal = pty.openpty()
        top = self.verb("top", "--watch", "60s", stdin=terminal, stdout=terminal, stderr=terminal,
                        preexec_fn=lambda: (os.setsid(), os.open(os.ttyname(0), os.O_RDWR)))
        os.close(terminal)
        self.addCleanup(os.close, master)
        self.addCleanup(top.kill)
        os.write(master, b"q")
        self.assertEqual(top.wait(PATIENCE), 0)

    def test_the_harness_leaves_no_restored_task_behind(self):
        job = self.sleeper("--preemptible=checkpoint")
        self.cluster.wait_state(job, "running")
        self.cluster.ctl("vacate", job)
        self.cluster.wait_state(job, "running")
        tasks = noted_processes(self.cluster.dir)
        self.assertTrue(tasks)
        for node in self.nodes:
            self.cluster.kill9_agent(node)
        # No process is left that would end the task, and its environment names no folder of ours.
        for shim in {parent(pid) for pid in tasks} - set(tasks):
            os.kill(shim, signal.SIGKILL)
        self.cluster.stop()
        self.assertEqual([pid for pid in tasks if start_time(pid) is not None and pid_namespace(pid) is not None], [])


@unittest.skipUnless(fake_time_library(), "needs libfaketime (./run setup)")
class Away(ClusterCase):
    nodes = ("q1",)

    def make_cluster(self):
        return Machines(self.nodes, self.slots, policy=self.policy, clocks={"sidingd": "+0"})

    def test_the_time_that_a_controller_is_away_counts_as_walltime(self):
        job = self.cluster.submit("--workdir", "/", "--output", "/dev/null", "--walltime", "1h", "--", "/bin/sleep", "infinity")
        self.cluster.wait_state(job, "running")
        self.cluster.kill9_controller()
        self.cluster.clocks["sidingd"] = "+2h"
        self.cluster.start_controller()
        self.cluster.wait_state(job, "failed")
        self.assertEqual(self.cluster.job(job)["reason"], "walltime of 1h00m is over")

    def test_a_deadline_waits_for_a_batch_job_that_ends_by_its_walltime(self):
        job = self.cluster.submit("--workdir", "/", "--output", "/dev/null", "--walltime", "5m", "--not-preemptible", "--",
                                  "/bin/sleep", "infinity")
        self.cluster.wait_state(job, "running")
        express = self.express()
        self.assertIn(f"until job {job} ends by its walltime at 20", self.cluster.job(express)["waits_for"])
        self.cluster.kill9_controller()
        self.cluster.clocks["sidingd"] = "+6m"
        self.cluster.start_controller()
        self.cluster.wait_state(job, "failed")
        self.assert_in_time(express)


if __name__ == "__main__":
    unittest.main()
