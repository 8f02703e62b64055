"""Several hosts on this machine: each with a network, a host name and a kernel (by its boot id) of its own, joined by a switch
whose cables can be pulled. They share the file system, as hosts of a cluster do."""

import os
import shutil
import subprocess
import uuid

from authority import Authority
from cluster import BIN
from machines import Machines
from pair import Pair
from ports import free_ports

HEADS = {"a": "head1", "b": "head2"}
LOGIN = "login"  # where users are
NAMED = ("unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"')


def ip(*args):
    done = subprocess.run(["ip", *args], capture_output=True, text=True)
    assert done.returncode == 0, f"ip {' '.join(args)}: {done.stderr.strip()}"


def why_not():
    """Why no such hosts can be had here; None if they can."""
    if os.geteuid() != 0:
        return "needs root"
    if not shutil.which("ip"):
        return "iproute2 is not installed"
    name = f"siding-{os.getpid()}-try"
    tried = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if tried.returncode != 0:
        return f"no network namespaces ({tried.stderr.strip()})"
    try:
        tried = subprocess.run(["ip", "-n", name, "link", "add", "v", "type", "veth", "peer", "name", "w"], capture_output=True, text=True)
        if tried.returncode == 0:
            tried = subprocess.run(["ip", "-n", name, "link", "add", "s", "type", "bridge"], capture_output=True, text=True)
        return f"no veth or bridge ({tried.stderr.strip()})" if tried.returncode != 0 else None
    finally:
        ip("netns", "del", name)


class Network:
    """Hosts by their names, with one address each. What is sent over a pulled cable is lost without a word."""

    def __init__(self, hosts):
        self.prefix = f"siding-{os.getpid()}-"
        self.hosts = list(hosts)
        self.switch = self.prefix + "switch"
        self.made = []

    def start(self):
        self._add(self.switch)
        ip("-n", self.switch, "link", "add", "switch", "type", "bridge")
        ip("-n", self.switch, "link", "set", "switch", "up")
        for host in self.hosts:
            space = self.prefix + host
            self._add(space)
            ip("-n", space, "link", "add", "eth0", "type", "veth", "peer", "name", host, "netns", self.switch)
            ip("-n", space, "addr", "add", f"{self.address(host)}/24", "dev", "eth0")
            ip("-n", space, "link", "set", "lo", "up")
            ip("-n", space, "link", "set", "eth0", "up")
            ip("-n", self.switch, "link", "set", host, "master", "switch")
            self.plug(host)

    def _add(self, space):
        ip("netns", "add", space)
        self.made.append(space)

    def address(self, host):
        return f"10.77.0.{self.hosts.index(host) + 1}"

    def at(self, host):
        """The beginning of a command line that runs there."""
        return ("nsenter", f"--net=/run/netns/{self.prefix}{host}", *NAMED, host)

    def pull(self, host):
        ip("-n", self.switch, "link", "set", host, "down")

    def plug(self, host):
        ip("-n", self.switch, "link", "set", host, "up")

    def stop(self):
        for space in self.made:
            ip("netns", "del", space)


class Hosts(Machines, Pair):
    """Controllers "a" and "b" on head1 and head2, an agent on each node, users on a host of their own; TLS between all of them. The
    journal is on storage that both heads see."""

    def __init__(self, nodes, **more):
        super().__init__(nodes, shared=True, **more)
        self.network = Network([*HEADS.values(), LOGIN, *nodes])
        self.ports = dict(zip(HEADS, free_ports(2)))
        self.authority = Authority(self.dir / "certs")
        self.authority.make("controller", *(self.network.address(head) for head in HEADS.values()))
        for name, head in HEADS.items():
            self.boot_ids[f"sidingd-{name}"] = self.dir / f"boot-{head}"
            self.boot_ids[f"sidingd-{name}"].write_text(f"{uuid.uuid4()}\n")

    def start(self):
        self.network.start()
        return super().start()

    def stop(self):
        try:
            super().stop()
        finally:
            self.network.stop()

    def _spawn(self, name, argv):
        host = HEADS.get(name.removeprefix("sidingd-")) or name.removeprefix("agent-")
        return super()._spawn(name, [*self.network.at(host), *argv])

    def address(self, name):
        return f"{self.network.address(HEADS[name])}:{self.ports[name]}"

    def controller_argv(self, path):
        name = path.stem
        return [*super().controller_argv(path), "--listen", self.address(name), "--tls-ca", self.authority.ca,
                "--tls-certificate", self.authority.dir / "controller.pem", "--tls-key", self.authority.dir / "controller.key"]

    def both(self):
        return ",".join(self.address(name) for name in HEADS)

    def agent_connection(self, node):
        return ("--controller", self.both(), *self.authority.flags("node", node))

    def ctl_program(self):
        return (*self.network.at(LOGIN), BIN / "sidingctl")

    def ctl_connection(self):
        return ("--controller", self.both(), *self.authority.flags("user", "root"))

    # ---- what happens to hosts ----
    def pull(self, name):
        """The cable of a controller's host."""
        self.network.pull(HEADS[name])

    def plug(self, name):
        self.network.plug(HEADS[name])

    def power_off(self, name):
        """No peer is told: neither by a connection that ends, nor by the journal."""
        self.pull(name)
        self.kill9(name)
