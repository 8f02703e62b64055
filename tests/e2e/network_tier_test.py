#!/usr/bin/python3
"""The shared tier is on a file system that is not known to be of this machine, as if over a network: images of jobs that are tracked share pages there as
well, and what is not tracked is written whole."""

import os
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
import jobs  # noqa: E402
from case import ClusterCase, wait_for  # noqa: E402
from machines import Machines  # noqa: E402

MIB = 32


@unittest.skipUnless(shutil.which("bindfs") and os.path.exists("/dev/fuse"), "needs bindfs (./run setup)")
class NetworkTier(ClusterCase):
    nodes = ("machine1",)
    policy = ClusterCase.policy + "keep_checkpoints: 20\n"

    def make_cluster(self):
        cluster = Machines(self.nodes, self.slots, policy=self.policy)
        behind = cluster.dir / "behind"
        for folder in (behind, cluster.shared):
            folder.mkdir()
            folder.chmod(0o755)
        self.mount = subprocess.Popen(["bindfs", "-f", behind, cluster.shared], start_new_session=True)
        self.addCleanup(self.unmount, cluster.shared)
        wait_for("the tier to be mounted", lambda: cluster.shared.is_mount())
        return cluster

    def unmount(self, folder):
        subprocess.run(["umount", "--lazy", folder], check=False)
        self.mount.kill()  # what is mounted in another namespace would keep it
        self.mount.wait()
        shutil.rmtree(folder.parent, ignore_errors=True)

    def submit_table(self, *options, words=()):
        gate = self.new_gate()
        argv = jobs.command(self.cluster.dir, "table", jobs.TABLE, gate, MIB, *words)
        job = self.submit_gated(gate, "--name", "table", "--slots", 1, "--preemptible=checkpoint", *options, "--workdir", self.cluster.dir,
                                "--output", f"{self.outputs()}/%j.%r", "--", *argv)
        self.wait_counting(job)
        return job

    def events(self, job, kind):
        return [e for e in self.cluster.events(job) if e["kind"] == kind]

    def wait_for_images(self, job, count):
        wait_for(f"{count} checkpoints", lambda: len(self.events(job, "continued")) >= count)

    def lose_the_machine(self, job):
        self.cluster.cut_power("machine1")
        self.cluster.start_machine("machine1")
        self.cluster.wait_event(job, "restored")

    def scratch(self):
        """Where much may be put for a while: the local tier, if it is on a disk."""
        local = self.cluster.dir / "machine1" / "store"
        kind = subprocess.run(["stat", "-f", "-c", "%T", local], capture_output=True, text=True, check=True).stdout.strip()
        return self.cluster.shared if kind in ("tmpfs", "overlayfs") else local

    def test_images_of_a_job_that_is_tracked_have_only_what_is_new(self):
        job = self.submit_table("--checkpoint-interval", "1s")
        self.wait_for_images(job, 4)
        made = min(self.checkpoints("good").values(), key=lambda c: int(c["new_bytes"]))
        self.assertLess(int(made["new_bytes"]) * 2, MIB << 20)
        self.assertTrue(self.cluster.ctl("checkpoints", "verify", made["id"])["good"])
        self.lose_the_machine(job)
        log = (self.cluster.logs / "agent-machine1.log").read_text()
        self.assertIn(f"its image is made whole in {self.scratch()}/restore/", log)
        wait_for("nothing to be left of that", lambda: not list(self.scratch().glob("restore/*")))
        self.wait_for_images(job, len(self.events(job, "continued")) + 4)
        self.assert_counted(job)

    def test_one_that_writes_pages_of_earlier_ones_again_is_good(self):
        job = self.submit_table("--checkpoint-interval", "1s")
        def again():
            made = sorted(self.checkpoints("good").values(), key=lambda c: int(c["id"].split(".")[1]))
            new = [int(c["new_bytes"]) for c in made]
            return [c["id"] for c, size in zip(made[3:], new[3:]) if size > 2 * min(new)]
        wait_for("one in the row to be larger than the others", again)
        for image in self.checkpoints("good"):
            self.assertTrue(self.cluster.ctl("checkpoints", "verify", image)["good"], image)
        self.lose_the_machine(job)
        self.assert_counted(job)

    def test_nothing_is_compared_over_the_network(self):
        job = self.submit_table()
        for _ in range(2):
            self.wait_goes_on(job)
            self.cluster.ctl("checkpoint", job)
        for made in self.checkpoints("good").values():
            self.assertEqual(made["new_bytes"], made["bytes"])
        self.lose_the_machine(job)
        self.assert_counted(job)


if __name__ == "__main__":
    unittest.main()
