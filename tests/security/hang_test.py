#!/usr/bin/python3
"""Jobs that block their readers, and silent agents: the others continue."""

import ctypes
import json
import os
import pathlib
import select
import shutil
import signal
import stat
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
from cluster import Cluster, CtlError, start_time, wait_for  # noqa: E402
from cluster_case import WithCluster  # noqa: E402
from vanishing import may_be_gone, paths  # noqa: E402

FUSE = os.makedev(10, 229)
ATTACKER, VICTIM = 1, 2
QUIET = ("--workdir", "/", "--output", "/dev/null")


@unittest.skipUnless(os.geteuid() == 0, "needs root, to run jobs as their users")
class HangCase(WithCluster):
    nodes = ("n1",)

    def make_cluster(self):
        return Cluster(self.nodes, slots=2)

    def node(self, name):
        return next(node for node in self.cluster.node_list() if node["name"] == name)

    def sleeper(self, *options, uid=VICTIM):
        job = self.cluster.submit(*QUIET, *options, "--", "/bin/sleep", "600", uid=uid)
        self.cluster.wait_state(job, "running")
        return job


@unittest.skipUnless(os.path.exists("/dev/fuse"), "this kernel has no FUSE")
class Memory(HangCase):
    """A job in namespaces of its own, with a FUSE file system that never answers: what reads its memory waits."""

    def setUp(self):
        super().setUp()
        self.device = self.cluster.dir / "fuse"
        os.mknod(self.device, stat.S_IFCHR, FUSE)
        os.chmod(self.device, 0o666)  # as the system's own is, where udev has made it
        self.marks = self.cluster.dir / "marks"
        self.marks.mkdir()
        os.chmod(self.marks, 0o777)

    def hang(self, *options, uid=ATTACKER):
        program = shutil.copy(pathlib.Path(__file__).with_name("fuse_job.py"), self.cluster.dir)
        os.chmod(program, 0o755)
        marker = self.marks / "hangs"
        job = self.cluster.submit(*QUIET, *options, "--", "/usr/bin/python3", program, self.device, marker, uid=uid)
        # Before anything else: also the harness would wait for ever for what such a process has in its environment.
        self.addCleanup(self._let_go, job)
        wait_for("the job to hang", marker.exists)
        return job

    def _let_go(self, job):
        for note in paths(self.cluster.dir, f"n1/tasks/{job}.*/init.json"):
            with may_be_gone():
                init = json.loads(note.read_text())
                if start_time(init["pid"]) == int(init["startTime"]):
                    os.kill(int(init["pid"]), signal.SIGKILL)

    def wait_named(self, job):
        return wait_for("the job to be named", lambda: "blocks reads of its memory" in self.cluster.job(job).get("methods_note", ""))

    def test_others_go_on(self):
        victim = self.sleeper("--preemptible=checkpoint", uid=0)  # any criu does it for root
        hanging = self.hang("--preemptible=suspend,checkpoint")
        self.wait_named(hanging)
        self.assertIn("checkpoint: ", self.cluster.job(hanging)["methods_note"])
        before = int(self.node("n1")["last_heard_us"])
        wait_for("the node to be heard again", lambda: int(self.node("n1")["last_heard_us"]) > before)
        self.assertEqual(self.node("n1")["state"], "up")
        self.cluster.ctl("checkpoint", victim)
        self.cluster.wait_event(victim, "continued")
        self.cluster.ctl("kill", victim)
        self.cluster.wait_state(victim, "cancelled")
        another = self.sleeper()
        self.cluster.ctl("kill", another)
        self.cluster.wait_state(another, "cancelled")

    def test_it_is_ended_when_somebody_says_so(self):
        hanging = self.hang("--preemptible=checkpoint")
        self.wait_named(hanging)
        self.cluster.ctl("kill", hanging)
        self.cluster.wait_state(hanging, "cancelled")
        self.assertEqual(self.node("n1")["state"], "up")

    def test_a_checkpoint_of_it_says_why_not(self):
        hanging = self.hang("--preemptible=checkpoint", uid=0)
        with self.assertRaisesRegex(CtlError, "blocks reads of its memory"):
            self.cluster.ctl("checkpoint", hanging)
        self.cluster.wait_state(hanging, "running")
        self.cluster.ctl("kill", hanging)
        self.cluster.wait_state(hanging, "cancelled")

    def test_an_agent_that_is_started_again_finds_it_and_the_others(self):
        victim = self.sleeper()
        hanging = self.hang()
        self.cluster.kill9_agent("n1")
        self.cluster.start_agent("n1")
        wait_for("the node to be up", lambda: self.node("n1")["state"] == "up")
        for job in (victim, hanging):
            self.cluster.ctl("kill", job)
            self.cluster.wait_state(job, "cancelled")


@unittest.skipUnless(os.path.exists("/dev/fuse"), "this kernel has no FUSE")
class Leftovers(HangCase):
    """A job ends, and in its folder for temporary files is a file system that never answers, as fusermount lets a user have it."""

    def test_nobody_waits_until_it_is_removed(self):
        marker = self.cluster.dir / "end"
        job = self.cluster.submit(*QUIET, "--", "/bin/sh", "-c", f"mkdir $TMPDIR/hangs; until [ -e {marker} ]; do sleep 0.1; done", uid=ATTACKER)
        self.cluster.wait_state(job, "running")
        own = wait_for("the job's folder", lambda: self.cluster.temporary_folders(job))[0]
        folder = own / "hangs"
        wait_for("a folder in it", folder.exists)
        device = self.cluster.dir / "fuse"
        os.mknod(device, stat.S_IFCHR, FUSE)
        server = os.open(device, os.O_RDWR)
        options = f"fd={server},rootmode=40000,user_id={ATTACKER},group_id={ATTACKER},allow_other"
        libc = ctypes.CDLL(None, use_errno=True)
        self.assertEqual(libc.mount(b"siding-test", bytes(folder), b"fuse", 0, options.encode()), 0, os.strerror(ctypes.get_errno()))
        self.addCleanup(self._unmount, libc, server)
        marker.touch()
        self.cluster.wait_state(job, "done")
        # Its removal hangs: the file system is asked for what it has.
        wait_for("its content to be read", lambda: select.select([server], [], [], 0)[0])
        wait_for("its place to be free", lambda: not folder.parent.exists())
        before = int(self.node("n1")["last_heard_us"])
        wait_for("the node to be heard again", lambda: int(self.node("n1")["last_heard_us"]) > before)
        another = self.sleeper()
        self.cluster.ctl("kill", another)
        self.cluster.wait_state(another, "cancelled")
        self.assertEqual(self.node("n1")["state"], "up")

    def _unmount(self, libc, server):
        os.close(server)  # readers that wait for an answer get an error
        for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
            if line.startswith("siding-test "):
                libc.umount2(line.split()[1].encode(), 2)  # MNT_DETACH


class Grace(HangCase):
    """How long a job may want its nodes for after it has been told to leave."""

    def make_cluster(self):
        return Cluster(self.nodes, slots=2, policy="max_kill_grace: 2m\nmax_notice: 3m\n")

    def refused(self, *options):
        with self.assertRaises(CtlError) as refused:
            self.cluster.submit(*QUIET, *options, "--", "/bin/sleep", "600", uid=VICTIM)
        return str(refused.exception)

    def test_is_what_the_policy_allows(self):
        self.assertIn("kill_grace: expected at most 2m00s, got 2d00h (the site's policy: max_kill_grace)", self.refused("--kill-grace", "48h"))
        self.assertIn("notice: expected at most 3m00s, got 1h00m (the site's policy: max_notice)",
                      self.refused("--preemptible=suspend", "--notice", "1h"))
        self.assertIn("app.grace: expected at most 3m00s", self.refused("--preemptible=app", "--app-signal", "USR1@1h"))

    def test_no_duration_wraps(self):
        for span in ("-1s", "300000d", "9223372036854775807us", "1e300h"):
            for option in ("--kill-grace", "--notice", "--walltime"):
                with self.subTest(option=option, span=span):
                    self.assertIn(option, self.refused(f"{option}={span}"))


class Silence(HangCase):
    """A node whose agent holds its connection and says nothing."""

    nodes = ("n1", "n2")

    def stop_agent(self, name):
        agent = self.cluster.agents[name]
        agent.send_signal(signal.SIGSTOP)
        self.addCleanup(agent.send_signal, signal.SIGCONT)
        return agent

    def test_it_is_called_silent_and_planned_without(self):
        jobs = {self.cluster.job(job)["nodes"][0]: job for job in (self.sleeper("--slots", "2"), self.sleeper("--slots", "2"))}
        self.cluster.ctl("kill", jobs.pop("n1"))
        wait_for("n1 to be empty", lambda: not self.node("n1").get("jobs"))
        agent = self.stop_agent("n1")
        wait_for("n1 to be silent", lambda: self.node("n1")["state"] == "silent")
        waits = self.cluster.submit(*QUIET, "--slots", "2", "--", "/bin/sleep", "600", uid=VICTIM)
        wait_for("it to say for what it waits", lambda: "waits for 1 node" in json.dumps(self.cluster.job(waits)))
        self.assertEqual(self.cluster.state(waits), "pending")
        agent.send_signal(signal.SIGCONT)
        wait_for("n1 to be up", lambda: self.node("n1")["state"] == "up")
        self.assertEqual(self.cluster.wait_state(waits, "running")["nodes"], ["n1"])

    def test_what_runs_there_is_not_given_up(self):
        job = self.sleeper()
        name = self.cluster.job(job)["nodes"][0]
        agent = self.stop_agent(name)
        wait_for("the node to be silent", lambda: self.node(name)["state"] == "silent")
        self.assertEqual(self.cluster.state(job), "running")
        agent.send_signal(signal.SIGCONT)
        wait_for("the node to be up", lambda: self.node(name)["state"] == "up")
        now = self.cluster.job(job)
        self.assertEqual((now["state"], now["nodes"]), ("running", [name]))
        self.assertNotIn("rank-exited", [event["kind"] for event in self.cluster.events(job)])
        self.assertEqual(sum(event["kind"] == "place" for event in self.cluster.events(job)), 1)


if __name__ == "__main__":
    unittest.main()
