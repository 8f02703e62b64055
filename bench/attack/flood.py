#!/usr/bin/python3
"""flood.py [--way unfinished|stranger|plans|events ...] [--streams N] [--seconds S]: what an ordinary user or a stranger asks of a
controller of its own, all at once and over and over. Prints a table of the controller's memory and the times of root's calls
before, under and after each, and where and of what it was made.

`unfinished`: requests that an ordinary user announces and never finishes, on the unix socket. `stranger`: the same over the network
with `identity: munge`, without certificate and credential. `plans`: dry runs of a job with a deadline, a user's, on a cluster that is
full. `events`: `events --follow` from the first on, a user's. docs/admin/security.md has the figures."""

import argparse
import datetime
import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "harness"), str(ROOT / "tests" / "security")]
import http2  # noqa: E402
from case import PATIENCE, Cluster, RemoteCluster  # noqa: E402

ANNOUNCED = 3_900_000  # bytes of a request
STREAMS_A_CONNECTION = 100


class Flood:
    """Many streams that each announce a request and send all of it but the last byte, as far as they are let."""

    def __init__(self, connect, streams, method="Siding/Submit", announced=ANNOUNCED, **headers):
        self.connect, self.streams, self.method, self.announced, self.headers = connect, streams, method, announced, headers
        self.message = memoryview(b"\0" + announced.to_bytes(4, "big") + bytes(announced - 1))
        self.sent = 0
        self.ended = 0
        self.opened = 0
        self.stop = threading.Event()
        self.connections = []
        self.thread = threading.Thread(target=self._run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        for c in self.connections:
            c.socket.close()

    def _open(self):
        """New connections until all streams have been begun; a connection takes as many as it says."""
        c = None
        while self.opened < self.streams and not self.stop.is_set():
            if c is None or not c.open or len(c.windows) >= min(STREAMS_A_CONNECTION, c.most_streams):
                try:
                    c = http2.Connection(self.connect())
                except OSError:
                    return  # no more are let in
                c.begun = {}  # what has been sent of each
                self.connections.append(c)
                c.read(patience=PATIENCE)
                if not c.open:
                    return
            stream = c.call(self.method, **self.headers)
            c.begun[stream] = 0
            self.opened += 1

    def _run(self):
        self._open()
        while not self.stop.is_set():
            moved = 0
            for c in self.connections:
                c.read()
                for stream, sent in c.begun.items():
                    n = c.put(stream, self.message[sent:sent + http2.FRAME])
                    c.begun[stream] += n
                    moved += n
            self.sent += moved
            self.ended = sum(len(c.ended) for c in self.connections)
            if not moved:
                self.stop.wait(0.05)


class Reader(http2.Connection):
    """Takes all that comes, so that more does."""

    answers = 0  # messages, but for those that are longer than a frame

    def _take(self, kind, flags, stream, payload):
        if kind == http2.DATA and payload:
            self.answers += 1
            more = len(payload).to_bytes(4, "big")
            self.send(http2.frame(http2.WINDOW_UPDATE, 0, 0, more) + http2.frame(http2.WINDOW_UPDATE, 0, stream, more))
        super()._take(kind, flags, stream, payload)


class Askers:
    """So many calls at a time, of which each is made again when it has ended."""

    def __init__(self, connect, calls, method, request):
        self.connect, self.calls, self.method, self.request = connect, calls, method, request
        self.asked = 0
        self.stop = threading.Event()
        self.connections = []
        self.thread = threading.Thread(target=self._run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        for c in self.connections:
            c.socket.close()

    @property
    def answers(self):
        return sum(c.answers for c in self.connections)

    @property
    def ended(self):
        return sum(len(c.ended) for c in self.connections)

    def _ask(self):
        for c in self.connections:
            while c.open and len(c.windows) - len(c.ended) < min(STREAMS_A_CONNECTION, c.most_streams):
                if self.asked - self.ended >= self.calls:
                    return
                c.ask(self.method, self.request)
                self.asked += 1
        self._connect()

    def _connect(self):
        if sum(c.open for c in self.connections) * STREAMS_A_CONNECTION >= self.calls:
            return
        try:
            self.connections.append(Reader(self.connect()))
        except OSError:
            pass  # no more are let in

    def _run(self):
        while not self.stop.is_set():
            self._ask()
            for c in self.connections:
                c.read(0.01 / len(self.connections))


def field(number, value):
    """Of a message: a number, or bytes."""
    def varint(n):
        return bytes([n]) if n < 128 else bytes([n % 128 + 128]) + varint(n // 128)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def a_job_with_a_deadline():
    """As a SubmitRequest."""
    within_an_hour = int((time.time() + 3600) * 1e6)
    spec = (field(1, b"urgent") + field(2, 1) + field(6, 1) + field(7, field(1, 1)) + field(9, b"/bin/true") + field(11, b"/") +
            field(12, b"/dev/null") + field(18, within_an_hour))
    return field(1, spec)


def resident(pid):
    """MiB."""
    fields = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) / 1024


def most_resident(pid):
    """Ever, as the kernel has seen it. MiB."""
    fields = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmHWM"].split()[0]) / 1024


def times_of_others(cluster, seconds):
    """(p50, p99 in ms, most MiB) of calls by root, one after the other."""
    times, most, end = [], 0, time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.monotonic()
        cluster.ctl("nodes")
        times.append(1000 * (time.monotonic() - begun))
        most = max(most, resident(cluster.controller.pid))
    times.sort()
    return times[len(times) // 2], times[len(times) * 99 // 100], most


class MungeCluster(RemoteCluster):
    def controller_args(self):
        return (*super().controller_args(), "--identity", "munge")

    def ctl_connection(self):
        return ("--socket", self.socket)


class FullCluster(Cluster):
    """With jobs of the attacker's on all its nodes, that can make way, and of which there are events."""

    def start(self):
        super().start()
        jobs = [self.submit("--workdir", "/", "--output", "/dev/null", "--preemptible=suspend,kill", "--", "/bin/sleep", "100000", uid=pwd.getpwnam(USER).pw_uid)
                for _ in range(len(self.nodes) * self.slots)]
        for job in jobs:
            self.wait_state(job, "running")


def unfinished(cluster, streams):
    return Flood(lambda: http2.connect_unix(cluster.socket, USER), streams)


def stranger(cluster, streams):
    return Flood(lambda: http2.connect_tls(cluster.port, cluster.authority.ca), streams)


def plans(cluster, streams):
    return Askers(lambda: http2.connect_unix(cluster.socket, USER), streams, "Siding/PlanRequest", a_job_with_a_deadline())


def events(cluster, streams):
    return Askers(lambda: http2.connect_unix(cluster.socket, USER), streams, "Siding/Events", field(2, 1))


USER = "daemon"
WAYS = {"unfinished": (unfinished, lambda: MungeCluster((), slots=1)), "stranger": (stranger, lambda: MungeCluster((), slots=1)),
        "plans": (plans, lambda: FullCluster(("n1", "n2"), slots=4)), "events": (events, lambda: FullCluster(("n1", "n2"), slots=4))}


def said(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()


def where():
    """The machine, the time and the code."""
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown processor")
    memory = next(int(line.split()[1]) for line in open("/proc/meminfo") if line.startswith("MemTotal")) / 2**20
    load = " ".join(f"{l:.1f}" for l in os.getloadavg())
    commit = said("git", "rev-parse", "--short", "HEAD") + ("+" if said("git", "status", "--porcelain", "-uno") else "")
    now = datetime.datetime.now(datetime.timezone.utc)
    return f"{cpu}, {os.cpu_count()} cores, {memory:.0f} GiB, Linux {os.uname().release}, load {load}; {now:%Y-%m-%d %H:%M} UTC; commit {commit}"


def measure(way, streams, seconds):
    """A line of the table."""
    attack, make_cluster = WAYS[way]
    cluster = make_cluster()
    try:
        cluster.start()
        times_of_others(cluster, 1)
        p50, p99, before = times_of_others(cluster, seconds)
        with attack(cluster, streams) as flood:
            p50_under, p99_under, under = times_of_others(cluster, seconds)
            if isinstance(flood, Flood):
                came = f"{flood.opened} begun, {flood.sent / 2**20:.1f} MiB taken, {flood.ended} ended"
            else:
                came = f"{flood.asked} calls, {streams} at a time, {flood.answers} answers, {flood.ended} ended"
        times_of_others(cluster, seconds)
        after = resident(cluster.controller.pid)
        return (f"| `{way}` | {came} | {before:.1f} | {under:.1f} | {after:.1f} | {p50:.0f} | {p50_under:.0f} | {p99:.0f} | "
                f"{p99_under:.0f} |")
    finally:
        cluster.stop()
        shutil.rmtree(cluster.dir, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--way", choices=WAYS, nargs="+", default=list(WAYS))
    parser.add_argument("--streams", type=int, default=1200)
    parser.add_argument("--seconds", type=float, default=15)
    arguments = parser.parse_args()
    os.umask(0o022)
    print(f"{where()}\n\n| flood, {arguments.seconds:.0f} s | what came of it | MiB before | most under it | after | p50 ms before | under | p99 "
          "ms before | under |\n|---|---|---|---|---|---|---|---|---|", flush=True)
    for way in arguments.way:
        print(measure(way, arguments.streams, arguments.seconds), flush=True)


if __name__ == "__main__":
    main()
