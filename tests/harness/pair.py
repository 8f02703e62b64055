"""A cluster with two controllers, one of which stands by: on one machine, each with a socket of its own."""

import signal
import subprocess
import time

from cluster import BIN, Cluster, kill9, wait_for


class Pair(Cluster):
    """`ctl` and agents know both controllers, "a" and "b". `shared`: the journal is written as it is on shared storage."""

    def __init__(self, *args, shared=False, **more):
        super().__init__(*args, **more)
        self.shared_state = shared
        self.sidingds = {}

    def socket_of(self, name):
        return self.dir / f"{name}.sock"

    def both(self):
        return ",".join(str(self.socket_of(name)) for name in "ab")

    def agent_connection(self, node):
        return ("--controller", self.both())

    def ctl_connection(self):
        return ("--controller", self.both())

    def controller_args(self):
        return ("--standby", *(("--shared-state",) if self.shared_state else ()))

    def controllers(self):
        return list(self.sidingds.values())

    def start_controller(self):
        for name in "ab":
            self.start_one(name)
            wait_for(f"controller {name} to listen", lambda: "listening on" in self.tail(f"sidingd-{name}", 1000))
        assert self.active() == "a"

    def start_one(self, name):
        self.sidingds[name] = self._spawn(f"sidingd-{name}", self.controller_argv(self.socket_of(name)))

    def is_active(self, name):
        """Whether this very controller answers, and does not stand by."""
        argv = [BIN / "sidingctl", "--socket", self.socket_of(name), "--json", "nodes"]
        try:
            return subprocess.run(argv, capture_output=True, timeout=5).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def active(self):
        return wait_for("one controller to be active", lambda: next((n for n in "ab" if self.is_active(n)), None))

    def other(self, name):
        return "b" if name == "a" else "a"

    def await_take_over(self, name, since):
        """Until controller `name` is active and has all agents. Seconds since then (time.monotonic())."""
        wait_for(f"controller {name} to take over", lambda: self.is_active(name))
        active = time.monotonic() - since
        wait_for("all agents to be there", self._all_up)
        return active, time.monotonic() - since

    def _all_up(self):
        nodes = self.node_list()
        return len(nodes) == len(self.nodes) and all(n["state"] == "up" for n in nodes)

    def signal(self, name, number):
        self.sidingds[name].send_signal(number)

    def kill9(self, name):
        kill9(self.sidingds[name])

    def stop(self):
        for process in self.controllers():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
        super().stop()
