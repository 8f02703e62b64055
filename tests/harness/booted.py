"""A machine of its own for a test: a real systemd as pid 1 of namespaces, above the file system of this machine, of which it
sees a copy that it may write to. Its cgroups are a part of this machine's tree, its network is a loopback device.

Its disk outlives power_off(), and goes with remove(). Nothing else stays behind: not a mount, a cgroup or a process."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import uuid

from cluster import PATIENCE, kill9, wait_for
from vanishing import pids_below, remove_below

SYSTEMD = pathlib.Path("/lib/systemd/systemd")
TREES = (pathlib.Path("/sys/fs/cgroup/unified"), pathlib.Path("/sys/fs/cgroup"))
# Of all that Debian's packages would start, what a machine needs to have services and a log of them. The rest would look after this
# machine's kernel, devices and clock, or start its databases.
KEPT = {"systemd-journald.service", "systemd-journald.socket", "systemd-journald-dev-log.socket", "systemd-sysusers.service",
        "systemd-tmpfiles-setup.service", "systemd-journal-flush.service"}
DISKS = "/var/tmp"
UNITS = ("/lib/systemd/system", "/etc/systemd/system")

# In namespaces of its own already; ends as systemd. $1: the machine's folder.
BOOT = r"""
set -e
mount --make-rprivate /
root=$1/root
mount -t overlay -o "lowerdir=/,upperdir=$1/disk,workdir=$1/work" siding-machine "$root"
mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
mount --bind "$1/boot_id" "$root/proc/sys/kernel/random/boot_id"
mount -t sysfs -o nosuid,nodev,noexec sysfs "$root/sys"
mount -t cgroup2 -o nosuid,nodev,noexec cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755,nosuid,nodev tmpfs "$root/run"
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/tmp"
mount -t tmpfs -o mode=755,nosuid tmpfs "$root/dev"
for device in null zero full random urandom tty; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm" "$root/mnt/before"
mount -t devpts -o newinstance,mode=620,ptmxmode=666 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
cd "$root"
pivot_root . mnt/before
umount -l /mnt/before
rmdir /mnt/before
exec env -i container=siding-test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --log-target=journal
"""


def why_not():
    """Why no machine can be had here; None if one can."""
    if os.geteuid() != 0:
        return "needs root"
    if not SYSTEMD.exists():
        return "systemd is not installed"
    if cgroup_tree() is None:
        return "there is no cgroup tree of version 2 that can be written to"
    missing = [name for name in ("unshare", "nsenter", "pivot_root") if not shutil.which(name)]
    if missing:
        return f"{', '.join(missing)} is not installed"
    with tempfile.TemporaryDirectory(prefix="siding-overlay-", dir=DISKS) as folder:
        for name in ("disk", "work", "root"):
            os.mkdir(f"{folder}/{name}")
        tried = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--cgroup", "--net", "--uts", "--ipc", "mount", "-t", "overlay",
                                "-o", f"lowerdir=/,upperdir={folder}/disk,workdir={folder}/work", "overlay", f"{folder}/root"],
                               capture_output=True, text=True)
    return f"no namespaces with an overlay on / ({tried.stderr.strip()})" if tried.returncode != 0 else None


def cgroup_tree():
    return next((t for t in TREES if (t / "cgroup.procs").exists() and os.access(t / "cgroup.procs", os.W_OK)), None)


class Machine:
    def __init__(self, name):
        self.name = name
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="siding-machine-", dir=DISKS))
        os.chmod(self.dir, 0o755)  # its disk is the root of the machine, for all its users
        self.log = self.dir / "console"
        self.group = cgroup_tree() / self.dir.name
        self.launcher = self.init = None
        for folder in ("disk", "work", "root"):
            (self.dir / folder).mkdir(mode=0o755)
        self._mask()

    def _mask(self):
        """On its disk, before it is started for the first time."""
        units = self.dir / "disk" / "etc" / "systemd" / "system"
        units.mkdir(parents=True)
        for folder in ("etc", "etc/systemd", "etc/systemd/system"):
            os.chmod(self.dir / "disk" / folder, 0o755)
        wanted = {path.name for where in UNITS for how in ("wants", "requires") for path in pathlib.Path(where).glob(f"*.{how}/*")}
        for unit in wanted - KEPT:
            if not unit.endswith((".target", ".slice")):
                (units / unit).symlink_to("/dev/null")
        (units / "default.target").symlink_to("/lib/systemd/system/multi-user.target")
        (self.dir / "disk" / "etc" / "hostname").write_text(f"{self.name}\n")
        (self.dir / "disk" / "etc" / "fstab").write_text("")

    def start(self):
        (self.dir / "boot_id").write_text(f"{uuid.uuid4()}\n")
        self.group.mkdir()
        with open(self.log, "ab") as log:
            self.launcher = subprocess.Popen(
                ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec unshare --mount --pid --fork --kill-child --cgroup --net --uts --ipc '
                 'sh -c "$1" boot "$2"', self.group, BOOT, self.dir],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        wait_for(f"{self.name} to have started", self._is_up)
        return self

    def _is_up(self):
        assert self.launcher.poll() is None, f"{self.name} did not start: {self.log.read_text(errors='replace')[-2000:]}"
        children = pathlib.Path(f"/proc/{self.launcher.pid}/task/{self.launcher.pid}/children").read_text().split()
        if not children or pathlib.Path(f"/proc/{children[0]}/comm").read_text() != "systemd\n":
            return False
        self.init = int(children[0])
        return self.call("systemctl", "is-system-running").stdout.strip() in ("running", "degraded")

    def argv(self, *argv):
        """As root, in the machine."""
        return ["nsenter", f"--target={self.init}", "--mount", "--pid", "--cgroup", "--net", "--uts", "--ipc", "--root", "--wd=/",
                "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8", *(str(a) for a in argv)]

    def call(self, *argv, **options):
        return subprocess.run(self.argv(*argv), capture_output=True, text=True, **options)

    def run(self, *argv, **options):
        """What it printed; AssertionError with what it complained of if it failed."""
        done = self.call(*argv, **options)
        assert done.returncode == 0, f"{' '.join(str(a) for a in argv)}: {done.stderr.strip() or done.stdout.strip()}"
        return done.stdout

    def path(self, inside):
        """Where this machine finds a file of that one, while it runs."""
        return pathlib.Path(f"/proc/{self.init}/root") / str(inside).lstrip("/")

    def journal(self, unit, lines=1000):
        return self.call("journalctl", "--no-pager", "--output=short-precise", f"--unit={unit}", f"--lines={lines}").stdout

    def show(self, unit, setting):
        return self.run("systemctl", "show", "--value", f"--property={setting}", unit).strip()

    def pids(self, group):
        """Of the cgroup and all below it, by this machine's numbers."""
        return pids_below(self.group / group.lstrip("/"))

    def power_off(self):
        """In good order."""
        os.kill(self.init, signal.SIGRTMIN + 4)  # systemd's own for this, docs: systemd(1), "SIGNALS"
        self.launcher.wait(PATIENCE)
        self._gone()

    def cut_power(self):
        os.kill(self.init, signal.SIGKILL)  # and with the first process of a pid namespace go all others
        self.launcher.wait(PATIENCE)
        self._gone()

    def _gone(self):
        self.launcher = self.init = None
        wait_for(f"the processes of {self.name} to be gone", lambda: not self.pids(""))
        wait_for(f"{self.group} to be empty", lambda: remove_below(self.group))

    def remove(self):
        if self.launcher:
            if self.init is None:
                kill9(self.launcher)
                self._gone()
            else:
                self.cut_power()
        shutil.rmtree(self.dir)


def commands(page, heading):
    """The lines of the first indented blocks below a heading of a page, up to the next heading: what a reader types."""
    text = page.read_text()
    section = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", text, re.M | re.S)
    assert section, f"{page}: no heading '{heading}'"
    found = re.findall(r"^    (\S.*)$", section.group(1), re.M)
    assert found, f"{page}: no commands below '{heading}'"
    return [re.sub(r"\s{2,}# .*$", "", line) for line in found]
