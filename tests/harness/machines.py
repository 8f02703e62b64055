"""What happens to whole machines, done to the nodes of a local cluster: power that is cut, and clocks that are wrong."""

import glob
import os
import pathlib
import shutil
import signal
import subprocess
import uuid

from cluster import PATIENCE, Cluster, kill, marked_processes, wait_for
from vanishing import pids_below, remove_below, thaw_below

# In a mount namespace of its own: another boot id for the program behind it.
BOOTED_ANEW = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"')


def fake_time_library():
    """The path of libfaketime, or None."""
    found = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
    return found[0] if found else None


def descendants(pids):
    """They, and all below them."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text(errors="replace").rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                pass  # it ended while we looked
    found = set(pids)
    while True:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        if not more:
            return found
        found |= more


def cut_off(pids):
    """A machine without power does not say goodbye: what these have a network of their own for is not told that they end."""
    own = os.readlink("/proc/self/ns/net")
    networks = {}
    for pid in pids:
        try:
            networks[os.readlink(f"/proc/{pid}/ns/net")] = pid
        except OSError:
            pass  # it ended while we looked
    for network, pid in networks.items():
        if network != own:
            subprocess.run(["nsenter", f"--net=/proc/{pid}/ns/net", "ip", "link", "delete", "siding0"], stderr=subprocess.DEVNULL)


def emptied(group):
    """Whether the cgroup is gone. What was forked while the machine's processes were listed dies with them."""
    thaw_below(group)
    kill(pids_below(group))
    return remove_below(group)


class Machines(Cluster):
    """By the name of a process ("n1", or "sidingd"): `clocks`, how far its clock is off, such as "+5h"; `variables`, more of its
    environment."""

    def __init__(self, *args, clocks=None, variables=None, **more):
        super().__init__(*args, **more)
        self.boot_ids, self.clocks = {}, clocks or {}
        self.variables.update(variables or {})

    def _spawn(self, name, argv):
        node = name.removeprefix("agent-")
        if node in self.boot_ids:
            argv = [*BOOTED_ANEW, self.boot_ids[node], *argv]
        plain = self.env
        if node in self.clocks:
            self.set_clock(node, self.clocks[node])
            self.env = {**plain, **self.with_clock(node)}
        try:
            return super()._spawn(name, argv)
        finally:
            self.env = plain

    # ---- clocks ----
    def with_clock(self, name):
        """Variables for a program that is to have that clock."""
        return {"LD_PRELOAD": fake_time_library(), "FAKETIME_TIMESTAMP_FILE": str(self.dir / f"clock-{name}"),
                "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1"}

    def set_clock(self, name, off):
        """Of a program that runs, too."""
        path = self.dir / f"clock-{name}"
        fresh = path.with_suffix(".new")
        fresh.write_text(off + "\n")
        os.chmod(fresh, 0o644)
        os.rename(fresh, path)

    # ---- power ----
    def cut_power(self, node):
        """Everything on the node is gone at once, unrecorded, and so is its memory. Its disk stays."""
        os.kill(self.agents[node].pid, signal.SIGSTOP)  # at once: what it does has not gone on when all the others are found
        tasks = [folder.name.split(".")[:3] for folder in (self.dir / node / "tasks").iterdir()]
        pids = descendants([self.agents[node].pid, *marked_processes(self.dir / node / "tasks")])
        cut_off(pids)
        kill(pids)
        self.agents[node].wait(PATIENCE)
        for task in tasks:
            job, _, rank = task
            for folder in self.temporary_folders(job, rank):
                shutil.rmtree(folder)
            for group in self.cgroups(".".join(task), node):
                wait_for(f"{group} to be empty", lambda g=group: emptied(g))
        wait_for("everything to be gone", lambda: not marked_processes(self.dir / node / "tasks"))

    def start_machine(self, node):
        """After its power was cut."""
        path = self.dir / f"boot-{node}"
        path.write_text(f"{uuid.uuid4()}\n")
        self.boot_ids[node] = path
        self.start_agent(node)
