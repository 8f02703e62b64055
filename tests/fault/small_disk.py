"""Tests in which one part of the cluster lies on a disk of its own, which can be filled."""

import pathlib
import shutil
import subprocess
import sys

for folder in ("harness", "e2e"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / folder))
import isolated  # noqa: E402
from case import Cluster, ClusterCase  # noqa: E402


class SmallDisk(ClusterCase):
    disk_of = None    # whose state folder it is: "controller", or a node
    disk_size = "4m"

    def make_cluster(self):
        cluster = Cluster(self.nodes, self.slots, policy=self.policy)
        self.disk = cluster.dir / self.disk_of
        self.disk.mkdir(mode=0o700)
        isolated.enter_mounts()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.disk_size},mode=700", "tmpfs", self.disk], check=True)
        self.addCleanup(shutil.rmtree, cluster.dir, ignore_errors=True)
        self.addCleanup(subprocess.run, ["umount", self.disk], check=True)
        return cluster

    def fill(self):
        with open(self.disk / "ballast", "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass

    def free(self):
        (self.disk / "ballast").unlink()
