#!/usr/bin/python3
"""flood.py [--streams N] [--way users|stranger] [--seconds S]: requests that are announced and never finished, against a
controller of its own. Prints the controller's memory and the others' times before, during and after.

`users`: an ordinary user on the unix socket. `stranger`: over the network with `identity: munge`, without certificate and
credential. docs/security.md has the figures."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "harness"), str(ROOT / "tests" / "security")]
import http2  # noqa: E402
from case import RemoteCluster  # noqa: E402

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
                c.read(patience=5)
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


def resident(pid):
    """MiB."""
    fields = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) / 1024


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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=1200)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--way", choices=("users", "stranger"), default="users")
    arguments = parser.parse_args()
    os.umask(0o022)
    cluster = MungeCluster((), slots=1)
    try:
        cluster.start()
        connect = {"users": lambda: http2.connect_unix(cluster.socket, "daemon"),
                   "stranger": lambda: http2.connect_tls(cluster.port, cluster.authority.ca)}[arguments.way]
        times_of_others(cluster, 1)

        def tell(when, figures):
            print(f"{when:8} p50 {figures[0]:6.1f} ms  p99 {figures[1]:6.1f} ms  at most {figures[2]:7.1f} MiB", flush=True)
        tell("before", times_of_others(cluster, arguments.seconds))
        with Flood(connect, arguments.streams) as flood:
            tell("during", times_of_others(cluster, arguments.seconds))
            print(f"         {flood.opened} streams on {len(flood.connections)} connections, {flood.ended} ended by the controller, "
                  f"{flood.sent / 2**20:.1f} MiB taken")
        tell("after", times_of_others(cluster, arguments.seconds))
        print(f"         {resident(cluster.controller.pid):.1f} MiB in the end")
    finally:
        cluster.stop()
        shutil.rmtree(cluster.dir, ignore_errors=True)


if __name__ == "__main__":
    main()
