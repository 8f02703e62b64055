"""What a cluster must not leave behind when all its jobs have ended, while its daemons still run."""

import os
import pathlib
import re

from cluster import FREEZERS, marked_processes
from isolated import packet_rules
from vanishing import may_be_gone, paths


MOUNTED_BEFORE = set()


def find(cluster):
    """Every kind of rest, as texts. Empty: it is clean."""
    return [*processes(cluster), *cgroups(cluster), *files(cluster), *checkpoints(cluster), *descriptors(cluster),
            *sockets(cluster), *mounts(), *packets()]


def processes(cluster):
    rests = []
    for pid in cluster.task_processes():
        with may_be_gone():
            status = pathlib.Path(f"/proc/{pid}/status").read_text(errors="replace")
            line = pathlib.Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")[:100]
            state = re.search(r"^State:\s*(.*)$", status, re.M).group(1)
            rests.append(f"process {pid} {state}: {line}")
    return rests


def cgroups(cluster):
    groups = [group for root in FREEZERS for node in cluster.nodes for group in paths(root, f"{node}/*/")]
    # An agent that lives tries to make one.
    return [f"cgroup {group}" for group in groups if not group.name.startswith("start-check")]


def files(cluster):
    folders = [cluster.dir / node / name for node in cluster.nodes for name in ("tasks", "forgotten")]
    for tier in (cluster.shared, *(cluster.dir / node / "store" for node in cluster.nodes)):
        folders += [tier / "staging", tier / "images", tier / "damaged"]
    rests = [f"file {path}" for folder in folders for path in paths(folder, "*")]
    rests += [f"file {folder}/{name}" for folder, _, names in os.walk(cluster.dir) for name in names if ".tmp." in name]
    rests += [f"file {path}" for path in paths("/tmp", "siding-*-job-*")]
    rests += [f"file {path}" for path in paths("/tmp", "siding-removed-*")]
    rests += [f"folder {path}" for path in paths("/tmp", ".criu.mntns.*")]
    return rests + [f"shared memory {path}" for path in pathlib.Path("/dev/shm").iterdir()]


def checkpoints(cluster):
    """That the journal takes for good ones, though their jobs are over."""
    listed = cluster.patiently(lambda: cluster.ctl("checkpoints", "list"))
    return [f"checkpoint {c['id']} is {c['state']}" for c in listed.get("checkpoints", []) if c["state"] in ("good", "deleted")]


def descriptors(cluster):
    """Of namespaces and of files that are gone, in our daemons."""
    rests = []
    for name, daemon in [("sidingd", cluster.controller), *cluster.agents.items()]:
        for fd in paths(f"/proc/{daemon.pid}/fd", "*"):
            with may_be_gone():
                target = os.readlink(fd)
                if "(deleted)" in target or re.match(r"(pid|mnt|net|ipc):\[", target):
                    rests.append(f"{name} has {target} open")
    return rests


def sockets(cluster):
    """With a name in the cluster's folder, but that at which its controller listens."""
    names = {line.split(" ")[-1].strip() for line in open("/proc/net/unix")}
    return [f"socket {name}" for name in names if name.startswith(f"{cluster.dir}/") and name != str(cluster.socket)]


def mounts():
    """That were not there when this process began to look."""
    return [f"mount {point}" for point in mount_points() - MOUNTED_BEFORE]


def mount_points():
    return {line.split()[4] for line in open("/proc/self/mountinfo")}


def packets():
    rules = packet_rules()
    return [f"nftables: {rules}"] if rules else []


def after_the_end(cluster):
    """What outlives the daemons."""
    return [f"process {pid}" for pid in marked_processes(cluster.dir)]
