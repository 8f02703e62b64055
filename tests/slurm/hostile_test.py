#!/usr/bin/python3
"""What an ordinary user with a job under a real Slurm does to siding's sockets there, and with what siding started for the job: the
node stays, and others' jobs are looked after."""

import contextlib
import os
import pathlib
import subprocess
import textwrap

from case import PATIENCE, main, wait_for
from deadline_test import DeadlineCase
from job_case import NOBODY

OTHER = 1  # daemon
LONER = 5  # games: of no other test


class HostileCase(DeadlineCase):
    @contextlib.contextmanager
    def attackers(self, program, *args, count=1, uid=NOBODY, says="begun\n"):
        """So many processes of this user's, until the end; each has said so."""
        path = self.slurm.dir / "attack.py"
        path.write_text(textwrap.dedent(program))
        them = [subprocess.Popen(["/usr/bin/python3", str(path), *map(str, args)], stdout=subprocess.PIPE, text=True, user=uid, group=uid,
                                 extra_groups=[]) for _ in range(count)]
        try:
            for process in them:
                self.assertEqual(process.stdout.readline(), says)
            yield them
        finally:
            for process in them:
                process.kill()
                process.wait()
                process.stdout.close()

    def small_job(self, *args, uid=OTHER):
        """Another user's, on one CPU of node1, which siding must take care of."""
        return self.slurm.submit("-o", "/dev/null", "-w", "node1", "--siding-preemptible", *args, "--wrap", "sleep 1000", uid=uid, cwd=self.work)

    def assert_looked_after(self, job):
        self.running(job)
        self.assert_up()
        self.siding.ctl("suspend", job)
        self.siding.ctl("resume", job)

    def assert_up(self):
        wait_for("all nodes to be up", lambda: all(n["state"] == "up" for n in self.siding.node_list()))


class Jobs(HostileCase):
    """By what a job says of itself, and does to the processes that Slurm and siding started for it."""

    def test_how_often_it_was_requeued_is_made_up(self):
        others = self.small_job()
        self.running(others)
        for count in ("1500000000", "4294967295", "1\nuid 0"):
            self.slurm.run("env", f"SLURM_RESTART_COUNT={count}", "sbatch", "-o", "/dev/null", "-w", "node1", "--siding-preemptible",
                           "--wrap", "sleep 1000", uid=NOBODY, cwd=self.work)
        said = ("restarts 1500000000", "restarts 4294967295")  # in either order
        wait_for("the agent to hear of it", lambda: all(s in self.siding.tail("agent-node1", 1000) for s in said))
        # It has to say again what runs there.
        self.siding.kill9_agent("node1")
        self.siding.start_agent("node1")
        self.assert_looked_after(others)

    def test_tasks_that_are_stopped_as_they_begin_keep_nobody_from_starting(self):
        (self.work / "stop.py").write_text(STOP)
        hangs = self.work / "hangs.sh"
        hangs.write_text(f"#!/bin/sh\n/usr/bin/python3 stop.py > stopped &\nwhile [ ! -s stopped ]; do sleep 0.1; done\n"
                         f"srun -O -n 100 --siding-preemptible true\n")
        stopped = self.work / "stopped"
        stopped.touch()
        os.chown(stopped, LONER, LONER)
        self.slurm.submit("-o", "/dev/null", "-w", "node1", hangs, uid=LONER, cwd=self.work)
        wait_for("the tasks to hang", lambda: len(stopped.read_text().split()) > 60)
        self.assert_looked_after(self.small_job())

    def test_who_ends_slurms_task_and_keeps_its_connection_to_the_shim_ends_his_job(self):
        job = self.small_job(uid=NOBODY)
        others = self.small_job()
        self.running(job)
        task = next(p.name for p in pathlib.Path("/proc").iterdir() if p.name.isdigit() and self.is_task_of(p, job))
        shim = pathlib.Path(f"/proc/{task}/task/{task}/children").read_text().split()[0]
        with self.attackers(KEEP, task):
            wait_for("the shim to end", lambda: not pathlib.Path(f"/proc/{shim}").exists())
            wait_for("siding to see it end", lambda: self.siding.state(job) in ("failed", "cancelled", "done"))
            self.assert_looked_after(others)

    @staticmethod
    def is_task_of(process, job):
        try:
            return b"siding-slurm-task" in (process / "cmdline").read_bytes() and f"SLURM_JOB_ID={job}\0".encode() in (process / "environ").read_bytes()
        except OSError:
            return False


# Takes the connection between Slurm's task and its shim, says nonsense on it, and ends the task.
KEEP = """
    import ctypes, os, signal, socket, sys
    libc = ctypes.CDLL(None, use_errno=True)
    task = os.pidfd_open(int(sys.argv[1]))
    fd = int(open(f"/proc/{sys.argv[1]}/cmdline").read().split("\\0")[1])
    kept = libc.syscall(438, task, fd, 0)
    assert kept >= 0, os.strerror(ctypes.get_errno())
    s = socket.socket(fileno=kept)
    s.setblocking(False)
    for _ in range(1000):
        try:
            s.send(os.urandom(8192))
        except BlockingIOError:
            break
    signal.pidfd_send_signal(task, signal.SIGKILL)
    print("begun", flush=True)
    signal.pause()
    """
# Stops each of Slurm's processes that has just become the user's, before it is anything else. Of every Slurm on the machine:
# hence a user of its own.
STOP = """
import os, signal
print("ready", flush=True)
done = set()
while True:
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or pid in done: continue
        try:
            if os.stat("/proc/" + pid).st_uid == os.getuid() and open("/proc/" + pid + "/comm").read() == "slurmstepd\\n":
                os.kill(int(pid), signal.SIGSTOP)
                done.add(pid)
                print(pid, flush=True)
        except OSError:
            pass
"""


# Connects and says nothing, over and over, as fast as it can.
CROWD = """
    import resource, socket, sys
    most = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 20_000)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    print("begun", flush=True)
    held = []
    while True:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.setblocking(False)
        held.append(s)
        try:
            s.connect(sys.argv[1])
        except OSError:
            held.pop()
        if len(held) > most - 50:
            del held[:most // 2]
    """
# Asks and reads no answer.
ASK = """
    import socket, sys
    print("begun", flush=True)
    held = []
    while True:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            s.connect(sys.argv[1])
            s.send(b"siding-question 1\\nstart-by-us 99999999999999999\\n" + 400 * b"option nodes\\n")
            held.append(s)
        except OSError:
            s.close()
        del held[:-500]
    """


TOUCH = """
    import ctypes, os, socket, sys
    done = []
    for namespace in False, True:  # and as root of a namespace of his own
        if namespace:
            ctypes.CDLL(None).unshare(0x10000000)
        for path in sys.argv[1:]:
            for what in (os.unlink, lambda p: os.rename(p, "/tmp/x"), lambda p: os.chmod(p, 0o666),
                         lambda p: socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).bind(os.path.dirname(p) + "/x"),
                         lambda p: os.rename(os.path.dirname(p), "/tmp/x")):
                try:
                    what(path)
                    done.append(path)
                except OSError:
                    pass
        try:
            socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect(sys.argv[1])
            done.append("connected")
        except OSError:
            pass
    print("begun", done, flush=True)
    """


class Sockets(HostileCase):
    nodes = 2

    def test_they_are_roots_whatever_a_user_tries(self):
        paths = [self.slurm.agent_socket("node1"), self.slurm.dir / "run" / "ask.sock"]
        with self.attackers(TOUCH, *paths, says="begun []\n"):
            self.assert_looked_after(self.small_job())

    def promised(self):
        """What another user is told who submits a job with a deadline."""
        done = subprocess.run(["sbatch", "--hold", "--siding-start-by=+60s", "-o", "/dev/null", "--wrap", "true"], env=self.slurm.env,
                              capture_output=True, text=True, timeout=PATIENCE, cwd=self.work, user=OTHER, group=OTHER, extra_groups=[])
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def test_who_connects_all_the_time_keeps_nobody_from_asking(self):
        with self.attackers(CROWD, self.slurm.dir / "run" / "ask.sock", count=4):
            self.assertEqual([self.promised() for _ in range(10)], 10 * [""])

    def test_who_asks_all_the_time_keeps_nobody_from_asking(self):
        with self.attackers(ASK, self.slurm.dir / "run" / "ask.sock", count=4):
            self.assertEqual([self.promised() for _ in range(10)], 10 * [""])


if __name__ == "__main__":
    main()
