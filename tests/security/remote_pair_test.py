#!/usr/bin/python3
"""Two controllers whose agents and users come over the network: TLS on the loopback device."""

import json
import signal
import time
import unittest

from case import Authority, RemoteCase, wait_for
from pair import Pair
from ports import free_ports


class RemotePair(Pair):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.authority = Authority(self.dir / "certs")
        self.authority.make("controller", "localhost", "127.0.0.1")
        self.ports = dict(zip("ab", free_ports(2)))

    def controller_argv(self, path):
        return [*super().controller_argv(path), "--listen", f"127.0.0.1:{self.ports[path.stem]}", "--tls-ca", self.authority.ca,
                "--tls-certificate", self.authority.dir / "controller.pem", "--tls-key", self.authority.dir / "controller.key"]

    def both(self):
        return ",".join(f"localhost:{port}" for port in self.ports.values())

    def agent_connection(self, node):
        return ("--controller", self.both(), *self.authority.flags("node", node))

    def ctl_connection(self):
        return ("--controller", self.both(), *self.authority.flags("user", "root"))


class Takeover(RemoteCase):
    nodes = ("n1", "n2")

    def make_cluster(self):
        return RemotePair(self.nodes, slots=1)

    def take_over(self, what, number):
        job = self.cluster.submit("--nodes", 2, "--workdir", self.cluster.dir, "--", "/bin/sleep", "600")
        self.cluster.wait_state(job, "running")
        since = time.monotonic()
        self.cluster.signal("a", number)
        active, whole = self.cluster.await_take_over("b", since)
        print(f"over the network, {what}: active after {active:.1f} s, with all agents after {whole:.1f} s", flush=True)
        self.assertEqual(self.cluster.state(job), "running")
        self.cluster.ctl("kill", job)
        self.cluster.wait_state(job, "cancelled")

    def test_agents_and_users_find_the_one_that_took_over_from_one_that_died(self):
        self.take_over("killed", signal.SIGKILL)

    def test_agents_and_users_leave_one_that_does_not_answer_any_more(self):
        self.take_over("stopped", signal.SIGSTOP)

    def test_a_connection_that_is_idle_lasts(self):
        self.cluster.ctl("nodes")
        wait_for("the active one to say that it lives, again and again",
                 lambda: json.loads((self.cluster.dir / "controller" / "journal.db.lease").read_text())["beat"] >= 12)
        for node in self.nodes:
            self.assertEqual(self.cluster.tail(f"agent-{node}", 1000).count("connected to the controller at"), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
