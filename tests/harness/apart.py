#!/usr/bin/python3
"""Runs a test on what looks like a machine of its own, so that tests on real processes run side by side, and what one of them leaves
in the places that all share is seen to be its own.

usage: apart.py PROGRAM [ARGUMENT...]

The test sees an empty /tmp and /dev/shm, a network that leads nowhere, and its own cgroup as the root of the cgroups that
siding uses. The exit status is the program's. What the test leaves running is killed, and named. Without root the program
runs as it is: such tests start nothing that others could meet."""

import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from isolated import CLONE_NEWNET, enter_mounts, make_network
from vanishing import may_be_gone, pids_below, remove_below, thaw_below

ROOT = pathlib.Path(__file__).resolve().parents[2]
TMP = pathlib.Path("/tmp")
CONTROLLERS = {"freezer", "memory", "pids", "devices"}
CLONE_NEWCGROUP, CLONE_NEWIPC = 0x2000000, 0x8000000
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None, use_errno=True)


def hierarchies():
    """Of cgroups, where siding and Slurm make groups: mount points with the type and the option to mount them again."""
    found = {}
    for line in open("/proc/self/mountinfo"):
        before, after = line.split(" - ")
        point, (kind, _, options) = before.split()[4], after.split()[:3]
        if kind == "cgroup" and (controllers := CONTROLLERS & set(options.split(","))):
            found[point] = ("cgroup", ",".join(c for c in options.split(",") if c not in ("rw", "ro")))
        elif kind == "cgroup2":
            found[point] = ("cgroup2", "rw")
    return found


def mount(*arguments):
    subprocess.run(["mount", *map(str, arguments)], check=True)


def leave_the_others(groups, tmp):
    """Called in the process that becomes the test."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    for group in groups.values():
        (group / "cgroup.procs").write_text(str(os.getpid()))
    enter_mounts(CLONE_NEWCGROUP | CLONE_NEWIPC | CLONE_NEWNET)
    for point, (kind, options) in hierarchies().items():
        subprocess.run(["umount", "-l", point], check=True)
        mount("-t", kind, "-o", options, kind, point)
        if kind == "cgroup2":  # a group with controllers for those below it has no process of its own
            group = pathlib.Path(point) / "test"
            group.mkdir()
            (group / "cgroup.procs").write_text(str(os.getpid()))
    place = tmp / ROOT.relative_to(TMP) if ROOT.is_relative_to(TMP) else None
    if place:
        place.mkdir(parents=True)
        mount("--bind", ROOT, place)
    mount("--rbind", tmp, TMP)
    if place:  # once is enough: a test that lays another /tmp over this one could not restore a task that has it twice
        subprocess.run(["umount", "-l", place], check=True)
    mount("-t", "tmpfs", "-o", "mode=1777,nosuid,nodev", "tmpfs", "/dev/shm")
    make_network()


def clear(groups):
    """Kills what is left in the groups and removes them. Returns the names of those killed."""
    killed = {}
    end = time.monotonic() + 30
    while left := {pid for group in groups.values() for pid in pids_below(group)}:
        if time.monotonic() > end:
            raise SystemExit(f"apart: these do not end: {left}")
        for group in groups.values():
            thaw_below(group)
        for pid in left:
            with may_be_gone():
                killed[pid] = pathlib.Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)  # the polling interval
    while not all([remove_below(group) for group in groups.values()]):
        if time.monotonic() > end:
            raise SystemExit(f"apart: these are not empty: {[str(group) for group in groups.values() if group.exists()]}")
        time.sleep(0.02)  # the polling interval
    return killed


def main(command):
    if os.geteuid() != 0:
        os.execvp(command[0], command)
    groups = {point: pathlib.Path(point) / f"siding-test-{os.getpid()}" for point in hierarchies()}
    tmp = pathlib.Path(tempfile.mkdtemp(prefix="siding-test-", suffix=f"-{os.getpid()}", dir="/var/tmp"))
    tmp.chmod(0o1777)
    for group in groups.values():
        group.mkdir()
    test = subprocess.Popen(command, preexec_fn=lambda: leave_the_others(groups, tmp))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda which, _: test.send_signal(which))
    status = test.wait()
    for pid, name in clear(groups).items():
        print(f"apart: killed {name} ({pid}), which the test left behind", file=sys.stderr)
    shutil.rmtree(tmp, ignore_errors=True)
    sys.exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
