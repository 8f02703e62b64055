#!/usr/bin/python3
"""A node's own images lie in its memory: they are copied behind their jobs, and gone when the machine restarts."""

import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
import isolated  # noqa: E402
from case import ClusterCase, wait_for  # noqa: E402
from machines import Machines  # noqa: E402


class InMemory(ClusterCase):
    def make_cluster(self):
        cluster = Machines(self.nodes, self.slots, policy=self.policy)
        isolated.enter_mounts()
        self.memory = {node: pathlib.Path(f"/var/lib/siding/{cluster.dir.name}-{node}") for node in self.nodes}
        cluster.agent_args = {node: ["--local-dir", folder] for node, folder in self.memory.items()}
        for folder in self.memory.values():
            folder.mkdir(parents=True)
            self.addCleanup(folder.rmdir)
            self.mount(folder)
            self.addCleanup(subprocess.run, ["umount", folder], stderr=subprocess.DEVNULL)  # or the test has
        return cluster

    def mount(self, folder, *of):
        """`of`: what brings it into the mounts of another process."""
        subprocess.run([*of, "mount", "-t", "tmpfs", "-o", "size=64m,mode=0700", "tmpfs", folder], check=True)

    def setUp(self):
        super().setUp()
        self.cluster.ctl("cordon", "n2")
        self.job = self.counter()
        self.wait_counting(self.job)
        self.cluster.ctl("uncordon", "n2")

    # ---- What is done. ----
    def hold_copies(self):
        """Nothing is copied into shared storage from n1."""
        self.cluster.variables["n1"] = {"SIDING_FAULT": f"store.copying=hold={self.cluster.dir}/gate"}
        self.cluster.kill9_agent("n1")
        self.cluster.start_agent("n1")
        self.wait_goes_on(self.job)

    def leave(self):
        """By an image in the memory of n1; it stays away until it is released."""
        for node in self.nodes:  # else it could be on its way back before it is held
            self.cluster.ctl("cordon", node)
        self.cluster.ctl("vacate", self.job, "--tier", "local", "--no-wait")
        self.cluster.wait_state(self.job, "parked")
        self.cluster.ctl("hold", self.job)
        for node in self.nodes:
            self.cluster.ctl("uncordon", node)

    def lose_memory(self):
        self.cluster.cut_power("n1")
        subprocess.run(["umount", self.memory["n1"]], check=True)

    def come_back_on(self, node):
        for other in self.nodes:
            if other != node:
                self.cluster.ctl("cordon", other)
        self.cluster.ctl("release", self.job)
        self.cluster.wait_event(self.job, "restored")
        self.assertEqual(self.cluster.job(self.job)["nodes"], [node])

    # ---- What is seen. ----
    def images(self, node):
        return sorted(f"{p.parent.name}.{p.name}" for p in (self.memory[node] / "images").glob("*/*"))

    def newest(self):
        made = self.checkpoints("good").values()
        return max(made, key=lambda c: int(c["id"].split(".")[1])) if made else None

    def node(self, name):
        return next(n for n in self.cluster.node_list() if n["name"] == name)

    # ---- Tests. ----
    def test_a_job_leaves_into_memory_and_comes_back_elsewhere(self):
        self.assertTrue(self.node("n1")["local_in_memory"])
        self.leave()
        self.assertEqual(len(self.images("n1")), 1)
        wait_for("its image to be in shared storage", lambda: self.newest()["tier"] == "shared")
        self.come_back_on("n2")
        self.assert_counted(self.job)

    def test_an_agent_that_is_started_again_still_has_its_images(self):
        self.hold_copies()
        self.leave()
        image = self.newest()["id"]
        self.cluster.kill9_agent("n1")
        self.cluster.start_agent("n1")
        self.come_back_on("n1")
        self.assertIn(image, self.checkpoints("good"))
        self.assert_counted(self.job)

    def test_after_a_restart_of_the_machine_the_job_goes_back_to_shared_storage(self):
        self.hold_copies()
        self.cluster.ctl("checkpoint", self.job)
        before = self.newest()["id"]
        self.leave()
        self.lose_memory()
        self.mount(self.memory["n1"])
        self.cluster.start_machine("n1")
        said = self.cluster.wait_event(self.job, "checkpoint-deleted")
        self.assertIn("is not in the memory of node n1 any more", said["text"])
        self.assertEqual(self.newest()["id"], before)
        self.come_back_on("n1")
        self.assert_counted(self.job)

    def test_what_was_copied_is_not_lost_with_the_machine(self):
        self.leave()
        wait_for("its image to be in shared storage", lambda: self.newest()["tier"] == "shared")
        self.lose_memory()
        self.mount(self.memory["n1"])
        self.cluster.start_machine("n1")
        self.cluster.wait_event(self.job, "copies-gone")
        self.come_back_on("n1")
        self.assert_counted(self.job)

    def test_until_its_memory_is_mounted_the_tier_is_away(self):
        self.hold_copies()
        self.leave()
        image = self.newest()["id"]
        self.lose_memory()
        self.cluster.start_machine("n1")
        wait_for("the node to be up", lambda: self.node("n1")["state"] == "up")
        self.assertEqual(int(self.node("n1")["local_disk_free"]), 0)
        self.assertFalse(list(self.memory["n1"].iterdir()), "nothing is made in the empty mount point")
        self.assertIn(image, self.checkpoints("good"), "nothing is known of it")
        self.mount(self.memory["n1"], "nsenter", f"--mount=/proc/{self.cluster.agents['n1'].pid}/ns/mnt")
        self.cluster.wait_event(self.job, "checkpoint-deleted")


if __name__ == "__main__":
    unittest.main()
