"""Tests in which parts of the cluster lie on disks of their own, which can be filled."""

import pathlib
import shutil
import subprocess
import sys

for folder in ("harness", "e2e"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / folder))
import isolated  # noqa: E402
from case import Cluster, ClusterCase  # noqa: E402


class SmallDisk(ClusterCase):
    disk_of = None    # whose state folder it is: "controller", or a node. Or "shared": the shared tier
    disk_size = "4m"

    def make_cluster(self):
        cluster = Cluster(self.nodes, self.slots, policy=self.policy)
        isolated.enter_mounts()
        self.addCleanup(shutil.rmtree, cluster.dir, ignore_errors=True)
        self.disk = self.mount(cluster.dir / self.disk_of)
        return cluster

    def mount(self, folder):
        folder.mkdir(mode=0o700, parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.disk_size},mode=700", "tmpfs", folder], check=True)
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        return folder

    def fill(self, disk=None):
        with open((disk or self.disk) / "ballast", "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass

    def free(self, disk=None):
        ((disk or self.disk) / "ballast").unlink()
