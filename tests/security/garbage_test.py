#!/usr/bin/python3
"""A client may send anything to a socket, as slowly and as often as it likes: the daemons live, keep no descriptor of
it, and serve the others meanwhile."""

import json
import os
import resource
import socket
import subprocess
import unittest
import urllib.request

from case import BIN, PATIENCE, RemoteCase, RemoteCluster, wait_for
from ports import free_ports

CROWD = 1000
SLACK = 12  # descriptors that a daemon may have opened for itself meanwhile


def descriptors(process):
    return len(os.listdir(f"/proc/{process.pid}/fd"))


class NoisyCluster(RemoteCluster):
    def __init__(self, *args, **options):
        [self.metrics_port] = free_ports(1)
        super().__init__(*args, config=f"metrics_port: {self.metrics_port}\n", **options)
        self.slurm_socket = self.dir / "slurm.sock"
        self.agent_args = ("--slurm-socket", self.slurm_socket)


class Sockets(RemoteCase):
    nodes = ("n1",)

    def make_cluster(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 2 * CROWD)), hard))
        return NoisyCluster(self.nodes, slots=1)

    def setUp(self):
        super().setUp()
        self.ask_socket = self.cluster.dir / "ask.sock"
        self.answerer = subprocess.Popen([str(BIN / "siding-test-answerer"), str(self.ask_socket), "promise", "60"], stdin=subprocess.PIPE,
                                         stdout=subprocess.DEVNULL)
        self.addCleanup(self.answerer.wait)
        self.addCleanup(self.answerer.stdin.close)
        wait_for("the answerer", self.ask_socket.exists)
        agent = self.cluster.agents["n1"]
        # name: (family, type, address, who listens there)
        self.doors = {
            "users' socket": (socket.AF_UNIX, socket.SOCK_STREAM, str(self.cluster.socket), self.cluster.controller),
            "TLS": (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", self.cluster.port), self.cluster.controller),
            "metrics": (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", self.cluster.metrics_port), self.cluster.controller),
            "questions": (socket.AF_UNIX, socket.SOCK_SEQPACKET, str(self.ask_socket), self.answerer),
            "Slurm's tasks": (socket.AF_UNIX, socket.SOCK_SEQPACKET, str(self.cluster.slurm_socket), agent),
        }

    def connect(self, name, patience=PATIENCE):
        family, kind, address, _ = self.doors[name]
        s = socket.socket(family, kind)
        s.settimeout(patience)
        s.connect(address)
        return s

    def send(self, connection, data):
        try:
            connection.sendall(data)
        except OSError:
            pass  # hung up on, as it may be

    def assert_served(self):
        self.assertEqual([p.poll() for *_, p in self.doors.values()], [None] * len(self.doors))
        self.cluster.ctl("nodes")
        text = urllib.request.urlopen(f"http://127.0.0.1:{self.cluster.metrics_port}/metrics", timeout=PATIENCE).read().decode()
        self.assertIn("siding_nodes", text)
        for door, said in (("questions", b"siding-question 1\nstart-by-us 7\n"), ("Slurm's tasks", b"siding-register 1\n")):
            with self.connect(door) as s:
                s.send(said)
                self.assertTrue(s.recv(4096).startswith(b"siding-"))

    def for_each_door(self, noise):
        """noise(name) returns connections, which are closed when others have been served; then nothing is left of them."""
        self.assert_served()
        for name, (*_, process) in self.doors.items():
            with self.subTest(door=name):
                before = descriptors(process)
                connections = noise(name)
                self.assert_served()
                for connection in connections:
                    connection.close()
                wait_for("the descriptors to be given back", lambda: descriptors(process) <= before + SLACK)

    def test_garbage(self):
        def noise(name):
            connections = [self.connect(name) for _ in range(20)]
            for connection in connections:
                self.send(connection, os.urandom(10_000))
            return connections
        self.for_each_door(noise)

    def test_connections_that_say_nothing(self):
        self.for_each_door(lambda name: [self.connect(name) for _ in range(60)])

    def test_senders_that_take_their_time(self):
        def noise(name):
            connections = [self.connect(name) for _ in range(20)]
            for byte in b"PRI * HTTP/2.0\r\n":
                for connection in connections:
                    self.send(connection, bytes([byte]))
            return connections
        self.for_each_door(noise)

    def test_a_crowd(self):
        def noise(name):
            connections = []
            for _ in range(CROWD):
                try:
                    connections.append(self.connect(name, patience=2))
                except OSError:
                    break  # beyond a limit
            return connections
        self.for_each_door(noise)

    def test_descriptors_that_are_passed_along_and_half_a_connection(self):
        def noise(name):
            connections = [self.connect(name) for _ in range(20)]
            for connection in connections:
                try:
                    if connection.family == socket.AF_UNIX:
                        socket.send_fds(connection, [b"siding-question 1\nnothing\n"], 200 * [0])
                    connection.shutdown(socket.SHUT_WR)
                except OSError:
                    pass  # hung up on, as it may be
            return connections
        self.for_each_door(noise)

    def test_slurms_tasks_are_for_root(self):
        self.assertEqual(os.stat(self.cluster.slurm_socket).st_mode & 0o777, 0o600)


# Names itself what no text can hold, makes a file of such a name, and opens what no checkpoint can save.
NAMELESS = r"""
import ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(15, b"\xff\xfe\xc0", 0, 0, 0)
held = open(os.path.join(os.environb[b"TMPDIR"], b"\xff\xfe"), "wb")
assert libc.syscall(425, 4, (ctypes.c_char * 120)()) >= 0
time.sleep(600)
"""


class Names(RemoteCase):
    """Processes and files have any names. They are reported, and disconnect no node."""

    nodes = ("n1",)

    def test_what_a_job_calls_itself_does_not_take_its_node_away(self):
        job = int(self.cluster.ctl_as("daemon", "submit", "--workdir", "/", "--output", "/dev/null", "--preemptible=checkpoint",
                                      "--allow-io-uring", "--", "/usr/bin/python3", "-c", NAMELESS)["id"])
        self.cluster.submitted.append(job)
        wait_for("its owner to be told", lambda: "\ufffd\ufffd\ufffd" in json.dumps(self.cluster.job(job), ensure_ascii=False))
        self.assertEqual([node["state"] for node in self.cluster.node_list()], ["up"])


class Files(RemoteCase):
    """What is left of a job on disk: no other user can read it."""

    nodes = ("n1",)

    def test_another_user_reads_nothing_of_a_job(self):
        job = int(self.cluster.ctl_as("daemon", "submit", "--workdir", "/", "--output", "/dev/null", "--env", "TOKEN=secret", "--",
                                      "/bin/sh", "-c", "echo secret > $TMPDIR/file; exec sleep 600")["id"])
        self.cluster.submitted.append(job)
        self.cluster.wait_state(job, "running")
        for tier in ("local", "shared"):
            self.cluster.ctl("checkpoint", job, "--tier", tier)
            wait_for("the job to continue", lambda: sum(e["kind"] == "continued" for e in self.cluster.events(job)) == 1 + (tier == "shared"))
        folders = [self.cluster.dir / name for name in ("controller", "n1", "shared")] + self.cluster.temporary_folders(job)
        images = list((self.cluster.dir / "shared" / "images").rglob("pages-*.img"))
        self.assertTrue(images)
        for can in ("-readable", "-writable"):
            found = subprocess.run(["find", *map(str, folders), "-type", "f", can], user=65534, group=65534, extra_groups=[],
                                   capture_output=True, text=True)
            self.assertEqual(found.stdout, "")


if __name__ == "__main__":
    unittest.main()
