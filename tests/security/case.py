"""A cluster whose agents and users come over the network: TLS on the loopback device, with an authority of its own."""

import json
import os
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
from authority import Authority, run  # noqa: E402,F401
from cluster import BIN, PATIENCE, Cluster, CtlError, wait_for  # noqa: E402,F401
from cluster_case import WithCluster  # noqa: E402


# For clusters whose memory is looked at: how many heaps there are is otherwise a matter of threads and chance.
ONE_HEAP = {"MALLOC_ARENA_MAX": "1"}


class RemoteCluster(Cluster):
    user = "root"  # ctl() has the certificate of this user

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.authority = Authority(self.dir / "certs")
        self.authority.make("controller", "localhost", "127.0.0.1")

    def controller_args(self):
        return ("--listen", "127.0.0.1:0", "--tls-ca", self.authority.ca, "--tls-certificate",
                self.authority.dir / "controller.pem", "--tls-key", self.authority.dir / "controller.key",
                "--tls-revoked", self.authority.revoked)

    @property
    def port(self):
        """Chosen by the kernel; the controller says it in its log."""
        found = re.findall(r"\(port (\d+)\) with TLS", self.log())
        if not found:
            raise CtlError(3, "the controller has not said its port yet")
        return int(found[-1])

    @property
    def address(self):
        return f"localhost:{self.port}"

    def agent_connection(self, node):
        return ("--controller", self.address, *self.authority.flags("node", node))

    def ctl_connection(self):
        return ("--controller", self.address, *self.authority.flags("user", self.user))

    def ctl_as(self, user, *args):
        before, self.user = self.user, user
        try:
            return self.ctl(*args)
        finally:
            self.user = before

    def log(self):
        return self.tail("sidingd", 100_000)


@unittest.skipUnless(os.geteuid() == 0, "needs root, to run jobs as their users")
class RemoteCase(WithCluster):
    nodes = ()

    def make_cluster(self):
        return RemoteCluster(self.nodes, slots=1)

    def answer(self, ca="", certificate="", key="", credential="", method="Siding/ListNodes", messages=({},)):
        """(code, message, what came) of a call by a client that does not check its own files first."""
        done = run(BIN / "siding-test-caller", self.cluster.address, ca or self.cluster.authority.ca, certificate, key, method,
                   *([credential] if credential else []), input="".join(json.dumps(m) + "\n" for m in messages))
        *came, last = done.stdout.splitlines()
        code, _, message = last.partition(" ")
        return int(code), message, [json.loads(line) for line in came]

    def call(self, *args, **options):
        return self.answer(*args, **options)[:2]

    def assert_logged(self, *texts, again=None):
        """The controller says, in one line of its log, all of this; `again` gives it another reason to."""
        def logged():
            found = any(all(t in line for t in texts) for line in self.cluster.log().splitlines())
            if not found and again:
                again()
            return found
        wait_for(f"the controller to log {texts}", logged)

    def assert_serving(self):
        self.assertIsNone(self.cluster.controller.poll())
        self.cluster.ctl("nodes")
