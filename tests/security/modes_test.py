#!/usr/bin/python3
"""What is installed, and what the services make, has the same modes whatever umask somebody has, and is never for others to write."""

import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "harness"), str(TESTS / "e2e")]
from cluster import BIN, Cluster, wait_for  # noqa: E402
from cluster_case import WithCluster  # noqa: E402
from vanishing import may_be_gone  # noqa: E402
import jobs  # noqa: E402

UMASKS = (0o000, 0o002, 0o077)
CONNECTED_TO = ("siding.sock", "slurm.sock", "ask.sock")


def entries(folder):
    """(path, its lstat) of all that lies below the folder, links left out: they have no mode of their own."""
    found = []
    for path in sorted(pathlib.Path(top, name) for top, folders, files in os.walk(folder) for name in (*folders, *files)):
        with may_be_gone():
            found.append((path, path.lstat()))
    return [(path, about) for path, about in found if not stat.S_ISLNK(about.st_mode)]


class Installed(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="siding-install-"))
        self.addCleanup(shutil.rmtree, self.folder)
        os.chmod(self.folder, 0o755)

    def install(self, umask, folder):
        subprocess.run(["cmake", "--install", str(BIN.parent), "--prefix", "/usr"], check=True, capture_output=True, umask=umask,
                       env={**os.environ, "DESTDIR": str(folder)})

    def modes(self, folder):
        return {str(path.relative_to(folder)): stat.S_IMODE(found.st_mode) for path, found in entries(folder)}

    def test_everybody_may_read_and_nobody_write_whatever_the_umask(self):
        for umask in UMASKS:
            folder = self.folder / f"{umask:o}"
            os.mkdir(folder, 0o755)
            self.install(umask, folder)
            modes = self.modes(folder)
            self.assertIn("usr/bin/sidingctl", modes)
            for name, mode in modes.items():
                program = (folder / name).is_dir() or "/bin/" in name or "/lib/siding/" in name or name.endswith("get-criu")
                self.assertEqual(f"{mode:o}", "755" if program else "644", f"{name} with umask {umask:03o}")

    def test_what_is_there_already_gets_its_mode_again_and_foreign_folders_keep_theirs(self):
        self.install(0o022, self.folder)
        os.chmod(self.folder / "usr/bin/sidingd", 0o4777)
        os.chmod(self.folder / "usr/bin", 0o2775)
        self.install(0o022, self.folder)
        self.assertEqual(self.modes(self.folder)["usr/bin/sidingd"], 0o755)
        self.assertEqual(self.modes(self.folder)["usr/bin"], 0o2775)


class Masked(Cluster):
    """Its services are started with that umask."""
    umask = 0

    def _spawn(self, name, argv):
        before = os.umask(self.umask)
        try:
            return super()._spawn(name, argv)
        finally:
            os.umask(before)


@unittest.skipUnless(os.geteuid() == 0, "needs root, to run jobs as their users")
class Made(WithCluster):
    """By services that were started by hand, so without their units' UMask."""
    umask = 0

    def make_cluster(self):
        cluster = Masked(("n1",), slots=1)
        cluster.umask = self.umask
        cluster.agent_args = ("--slurm-socket", cluster.dir / "slurm.sock")
        return cluster

    def test_modes(self):
        outputs = self.cluster.dir / "outputs"
        outputs.mkdir()
        os.chown(outputs, 65534, 65534)
        job = self.cluster.submit("--name", "counter", "--workdir", outputs, "--preemptible=checkpoint", "--output", outputs / "out", "--",
                                  *jobs.command(self.cluster.dir, "counter", jobs.COUNTER, self.cluster.dir / "never", 8), uid=65534)
        self.cluster.wait_state(job, "running")
        wait_for("the job to count", lambda: (outputs / "out").exists() and (outputs / "out").stat().st_size)
        if self.cluster.criu:
            self.cluster.ctl("checkpoint", job)
        ours = ("controller", "n1", *(("shared",) if self.cluster.criu else ()))
        for name in ours:
            self.assertEqual(stat.S_IMODE((self.cluster.dir / name).stat().st_mode) & 0o022, 0, name)
            for path, found in entries(self.cluster.dir / name):
                self.assertEqual(stat.S_IMODE(found.st_mode) & 0o6022, 0, f"{path} {found.st_mode:o}")
        self.assertEqual(stat.S_IMODE((self.cluster.dir / "siding.sock").stat().st_mode), 0o666)
        self.assertEqual(stat.S_IMODE((self.cluster.dir / "slurm.sock").stat().st_mode), 0o600)
        # Nobody else looks into what there is of the job, nor writes to what it writes.
        self.assertEqual(stat.S_IMODE((outputs / "out").stat().st_mode), 0o644)
        for path in (self.cluster.dir / "n1", self.cluster.dir / "shared", self.cluster.dir / "controller"):
            done = subprocess.run(["find", path, "-name", "*.img", "-o", "-name", "*.json", "-o", "-name", "*.db"], user=65534,
                                  group=65534, extra_groups=[], capture_output=True, text=True)
            self.assertEqual(done.stdout, "", f"seen by another user below {path}")


class MadeByTheStrict(Made):
    umask = 0o077


if __name__ == "__main__":
    unittest.main(verbosity=2)
