#!/usr/bin/python3
"""Programs that wait in system calls which a stop interrupts: a dump, and a restore, must not be seen by them. What a stop by itself
ends with EINTR, as epoll_wait(), is not tried under suspend."""

import unittest

from case import ClusterCase, wait_for

# A process for each way of waiting, which waits so in its first thread and in another one until there is a file GATE, and says how that
# ended. Those with a time limit wait again and again, a moment or for hours; the others are woken.
PROGRAM = r"""
import ctypes, errno, os, select, signal, socket, sys, threading, time
gate, kinds = sys.argv[1], sys.argv[2:]
libc = ctypes.CDLL(None, use_errno=True)
HOURS = 7200

class Time(ctypes.Structure):
    _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]

class Poll(ctypes.Structure):
    _fields_ = [("fd", ctypes.c_int), ("events", ctypes.c_short), ("revents", ctypes.c_short)]

def said(result):
    return "woken" if result > 0 else "over" if result == 0 else errno.errorcode[ctypes.get_errno()]

def again(wait):
    while not os.path.exists(gate):
        result = said(wait())
        if result != "over":
            return result
    return "over"

def poll(fd, ms):
    return lambda: libc.poll(ctypes.byref(Poll(fd, select.POLLIN, 0)), 1, ms)

def epoll(fd):
    poller = select.epoll()
    poller.register(fd, select.EPOLLIN)
    event = ctypes.create_string_buffer(16)
    return lambda: libc.epoll_wait(poller.fileno(), event, 1, -1)

def semaphore():
    memory = ctypes.create_string_buffer(64)
    libc.sem_init(memory, 0, 0)
    end = time.time() + 0.2
    return libc.sem_timedwait(memory, ctypes.byref(Time(int(end), int(end % 1 * 1e9))))

def sleep(call):
    moment = Time(0, 200_000_000)
    result = call(ctypes.byref(moment), ctypes.byref(Time()))
    return result and (ctypes.set_errno(result) or -1 if result > 0 else -1)

def futex():
    word = ctypes.c_int(0)
    return libc.syscall(202, ctypes.byref(word), 128, 0, ctypes.byref(Time(0, 200_000_000)), 0, 0)

def timed_out(result):
    return result if result >= 0 or ctypes.get_errno() != errno.ETIMEDOUT else 0

def handled(fd, restarts):
    # Once it is handled, what does not restart ends with EINTR.
    signal.signal(signal.SIGUSR1, lambda *_: None)
    libc.siginterrupt(signal.SIGUSR1, 0 if restarts else 1)
    if restarts:
        return lambda: libc.read(fd, ctypes.create_string_buffer(1), 1)
    return poll(fd, -1)

def connected(fd):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ends = socket.create_connection(listener.getsockname()), listener.accept()[0]
    result = said(poll(fd, -1)())
    ends[0].send(b"x")
    return result if ends[1].recv(1) == b"x" else "lost"

WAYS = {
    "poll": lambda fd: said(poll(fd, -1)()),
    "poll-hours": lambda fd: said(poll(fd, HOURS * 1000)()),
    "poll-moment": lambda fd: again(lambda: libc.poll(None, 0, 200)),
    "nanosleep": lambda fd: again(lambda: sleep(libc.nanosleep)),
    "clock_nanosleep": lambda fd: again(lambda: sleep(lambda t, left: libc.clock_nanosleep(time.CLOCK_MONOTONIC, 0, t, left))),
    "usleep": lambda fd: again(lambda: libc.usleep(200_000)),
    "futex": lambda fd: again(lambda: timed_out(futex())),
    "semaphore": lambda fd: again(lambda: timed_out(semaphore())),
    "epoll": lambda fd: said(epoll(fd)()),
    "handler": lambda fd: said(handled(fd, False)()),
    "handler-restarts": lambda fd: said(handled(fd, True)()),
    "connected": connected,
}

def child(kind, fd):
    def wait(who):
        os.write(1, f"{kind} of {who}: {WAYS[kind](fd)}\n".encode())
    threads = [] if kind.startswith("handler") else [threading.Thread(target=wait, args=["a thread"])]
    for thread in threads:
        thread.start()
    wait("the first thread")
    for thread in threads:
        thread.join()
    os._exit(0)

children = []
for kind in kinds:
    woken, wakes = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(wakes)
        child(kind, woken)
    children.append((kind, pid, wakes))
print("waits", flush=True)
while not os.path.exists(gate):
    time.sleep(0.02)
for kind, pid, wakes in children:
    if kind.startswith("handler"):
        os.kill(pid, signal.SIGUSR1)
        # The handler has run when nothing is pending any more; then it is woken.
        while any(int(line.split()[1], 16) for line in open(f"/proc/{pid}/status") if line.startswith(("SigPnd", "ShdPnd"))):
            time.sleep(0.02)
    os.write(wakes, b"xx")
    os.waitpid(pid, 0)
print("all", flush=True)
"""
RESTART = {"poll": "woken", "poll-hours": "woken", "poll-moment": "over", "nanosleep": "over", "clock_nanosleep": "over", "usleep": "over",
           "futex": "over", "semaphore": "over"}
HANDLERS = {"handler": "EINTR", "handler-restarts": "woken"}
USER = 65534


class Waiting(ClusterCase):
    def start(self, kinds):
        program = self.cluster.dir / "program.py"
        program.write_text(PROGRAM)
        gate = self.new_gate()
        job = self.submit_gated(gate, "--name", "waits", "--slots", 1, "--preemptible=suspend,checkpoint", "--workdir", self.outputs(),
                                "--output", f"{self.outputs()}/%j", "--", "/usr/bin/python3", program, gate, *kinds, uid=USER)
        self.cluster.wait_state(job, "running")
        wait_for(f"job {job} to wait", lambda: "waits" in self.lines(job))
        return job

    def lines(self, job):
        path = self.outputs() / f"{job}"
        return path.read_text().splitlines() if path.exists() else []

    def assert_undisturbed(self, job, kinds):
        self.assertEqual(self.lines(job), ["waits"])
        self.end_job(job)
        want = [f"{kind} of {who}: {end}" for kind, end in kinds.items()
                for who in ["the first thread"] + ["a thread"] * (not kind.startswith("handler"))]
        self.assertEqual(sorted(self.lines(job)), sorted(["waits", *want, "all"]))

    def checkpoint(self, job, times):
        """The job has run on after so many more."""
        before = sum(e["kind"] == "continued" for e in self.cluster.events(job))
        for done in range(1, times + 1):
            self.cluster.ctl("checkpoint", job)
            wait_for("it to continue", lambda: sum(e["kind"] == "continued" for e in self.cluster.events(job)) == before + done)

    def restores(self, job):
        return [event for event in self.cluster.events(job) if event["kind"] in ("restored", "restore-failed")]

    def vacate(self, job, times):
        before = len(self.restores(job))
        for done in range(before + 1, before + times + 1):
            self.cluster.ctl("vacate", job)
            ended = wait_for(f"restore {done}", lambda: self.restores(job)[done - 1:])
            self.assertEqual(ended[0]["kind"], "restored", ended)

    def test_checkpoints_are_not_seen(self):
        kinds = {**RESTART, **HANDLERS, "epoll": "woken"}
        job = self.start(kinds)
        self.checkpoint(job, 4)
        self.assert_undisturbed(job, kinds)

    def test_checkpoints_of_a_job_with_connections_are_not_seen(self):
        """It is frozen for a moment more, by its cgroup."""
        kinds = {**RESTART, **HANDLERS, "epoll": "woken", "connected": "woken"}
        job = self.start(kinds)
        self.checkpoint(job, 4)
        self.vacate(job, 1)
        self.assert_undisturbed(job, kinds)

    def test_restores_are_not_seen(self):
        kinds = {**RESTART, **HANDLERS, "epoll": "woken"}
        job = self.start(kinds)
        self.vacate(job, 2)
        self.checkpoint(job, 1)
        self.vacate(job, 1)
        self.assert_undisturbed(job, kinds)

    def test_what_was_suspended_before_is_restored(self):
        kinds = {**RESTART, **HANDLERS}
        job = self.start(kinds)
        for _ in range(2):
            self.cluster.ctl("suspend", job)
            self.cluster.wait_state(job, "suspended")
            self.cluster.ctl("resume", job)
            self.cluster.wait_state(job, "running")
        self.vacate(job, 1)
        self.assert_undisturbed(job, kinds)

    def test_a_pipeline_that_follows_a_file(self):
        log = self.outputs() / "log"
        log.write_text("")
        log.chmod(0o666)
        lines = 20
        script = f"tail -n +1 -f {log} | while read line; do echo $line; [ $line != {lines} ] || break; done; echo end"
        job = self.cluster.submit("--name", "follows", "--slots", 1, "--preemptible=checkpoint", "--files=append", "--workdir", self.outputs(),
                                  "--output", f"{self.outputs()}/%j", "--", "/bin/bash", "-c", script, uid=USER)
        self.cluster.wait_state(job, "running")
        for line in range(1, lines + 1):
            with log.open("a") as file:
                file.write(f"{line}\n")
            wait_for(f"line {line}", lambda: str(line) in self.lines(job))
            if line % 10 == 5:
                self.checkpoint(job, 1)
        with log.open("a") as file:
            file.write("tail has nobody to write this to, and ends\n")
        self.cluster.wait_state(job, "done")
        self.assertEqual(self.lines(job), [*map(str, range(1, lines + 1)), "end"])


if __name__ == "__main__":
    unittest.main()
