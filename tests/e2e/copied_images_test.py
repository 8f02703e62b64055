#!/usr/bin/python3
"""Images on a node's own disk are copied into shared storage behind their jobs, which go on from there on other nodes; whatever dies meanwhile."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
import jobs  # noqa: E402
from case import ClusterCase, wait_for  # noqa: E402
from machines import Machines  # noqa: E402


class CopiedCase(ClusterCase):
    def make_cluster(self):
        return Machines(self.nodes, self.slots, policy=self.policy)

    def local(self, node):
        """The images on that node's own disk."""
        return sorted(f"{p.parent.name}.{p.name}" for p in (self.cluster.dir / node / "store" / "images").glob("*/*"))

    def shared(self):
        return sorted(f"{p.parent.name}.{p.name}" for p in (self.cluster.shared / "images").glob("*/*"))

    def newest(self, job):
        """As the controller shows it; of those that are good."""
        made = [c for c in self.checkpoints("good").values() if int(c["job"]) == job]
        return max(made, key=lambda c: int(c["id"].split(".")[1])) if made else None

    def wait_copied(self, job):
        wait_for("its image to be in shared storage", lambda: (self.newest(job) or {}).get("tier") == "shared")

    def leave(self, job):
        """By an image on its node's disk, and it stays away until it is released."""
        for node in self.nodes:  # else it could be on its way back before it is held
            self.cluster.ctl("cordon", node)
        self.cluster.ctl("vacate", job, "--tier", "local", "--no-wait")
        self.cluster.wait_state(job, "parked")
        self.cluster.ctl("hold", job)
        for node in self.nodes:
            self.cluster.ctl("uncordon", node)

    def restore_on(self, node, job):
        for other in self.nodes:
            if other != node:
                self.cluster.ctl("cordon", other)
        self.cluster.ctl("release", job)
        self.cluster.wait_event(job, "restored")
        self.assertEqual(self.cluster.job(job)["nodes"], [node])

    def said(self, node, text):
        return text in (self.cluster.logs / f"agent-{node}.log").read_text()

    def drafts(self):
        return list((self.cluster.shared / "staging").iterdir())


class Leaves(CopiedCase):
    def setUp(self):
        super().setUp()
        self.cluster.ctl("cordon", "n2")
        self.job = self.counter()
        self.wait_counting(self.job)
        self.cluster.ctl("uncordon", "n2")

    def test_the_job_goes_on_on_another_node(self):
        self.leave(self.job)
        self.wait_copied(self.job)
        self.assertEqual(self.local("n1"), self.shared())
        self.assertTrue(self.newest(self.job)["on_nodes"])
        self.restore_on("n2", self.job)
        self.assert_counted(self.job)

    def test_on_its_own_node_the_image_on_the_disk_is_read(self):
        self.leave(self.job)
        self.wait_copied(self.job)
        for image in (self.cluster.shared / "images").glob("*/*"):
            (image / "manifest.json").unlink()  # it would not do
        self.restore_on("n1", self.job)
        self.assert_counted(self.job)

    def test_where_that_is_damaged_the_one_in_shared_storage_is_read(self):
        self.leave(self.job)
        self.wait_copied(self.job)
        for image in (self.cluster.dir / "n1" / "store" / "images").glob("*/*"):
            (image / "inventory.img").write_bytes(b"damage")
        self.restore_on("n1", self.job)
        self.cluster.wait_event(self.job, "copies-gone")
        self.assertEqual(self.local("n1"), [])
        self.assert_counted(self.job)

    def test_the_loss_of_the_node_is_none_of_the_job(self):
        self.leave(self.job)
        self.wait_copied(self.job)
        self.cluster.kill9_agent("n1")
        wait_for("the node to be down", lambda: any(n["name"] == "n1" and n["state"] == "down" for n in self.cluster.node_list()))
        self.cluster.ctl("lost", "n1")
        self.cluster.ctl("release", self.job)
        self.cluster.wait_event(self.job, "restored")
        self.assertEqual(self.cluster.job(self.job)["nodes"], ["n2"])
        self.assert_counted(self.job)

    def test_with_the_job_both_images_go(self):
        self.leave(self.job)
        self.wait_copied(self.job)
        self.cluster.ctl("kill", self.job)
        wait_for("both to be gone", lambda: not self.local("n1") and not self.shared())

    def test_what_is_damaged_is_found_on_the_way(self):
        self.cluster.ctl("checkpoint", self.job)
        good = self.newest(self.job)["id"]
        self.cluster.variables["n1"] = {"SIDING_FAULT": f"store.copying=hold={self.cluster.dir}/gate"}
        self.cluster.kill9_agent("n1")
        self.cluster.start_agent("n1")
        self.wait_goes_on(self.job)
        self.leave(self.job)
        for image in (self.cluster.dir / "n1" / "store" / "images").glob("*/*"):
            with open(image / "inventory.img", "ab") as file:
                file.write(b"damage")
        (self.cluster.dir / "gate").touch()
        self.cluster.wait_event(self.job, "checkpoint-damaged")
        self.assertEqual(self.newest(self.job)["id"], good)
        self.cluster.ctl("release", self.job)
        self.cluster.wait_event(self.job, "restored")


class Deaths(CopiedCase):
    """At a point of the copy that the test's name says."""

    def setUp(self):
        super().setUp()
        self.cluster.ctl("cordon", "n2")
        self.job = self.counter()
        self.wait_counting(self.job)
        self.cluster.ctl("uncordon", "n2")

    def arm(self, fault):
        self.cluster.variables["n1"] = {"SIDING_FAULT": fault}
        self.cluster.kill9_agent("n1")
        self.cluster.start_agent("n1")
        self.wait_goes_on(self.job)

    def assert_copied_all_the_same(self):
        self.wait_copied(self.job)
        self.assertEqual(self.drafts(), [])
        self.restore_on("n2", self.job)
        self.assert_counted(self.job)

    def agent_dies_at(self, point):
        self.arm(f"{point}=kill")
        self.leave(self.job)
        agent = self.cluster.agents["n1"]
        wait_for("the agent to die", lambda: agent.poll() is not None)
        self.assertEqual(self.newest(self.job)["tier"], "local")
        self.cluster.variables["n1"] = {}
        self.cluster.start_agent("n1")
        self.assert_copied_all_the_same()

    def test_the_agent_while_it_copies(self):
        self.agent_dies_at("store.copying")

    def test_the_agent_before_the_copy_is_in_its_place(self):
        self.agent_dies_at("store.copied")

    def test_the_agent_when_nobody_knows_of_the_copy(self):
        self.agent_dies_at("agent.copied")

    def test_the_controller_while_an_agent_copies(self):
        gate = self.cluster.dir / "gate"
        self.arm(f"store.copying=hold={gate}")
        self.leave(self.job)
        wait_for("the copy to be begun", self.drafts)
        self.cluster.kill9_controller()
        gate.touch()
        self.cluster.start_controller()
        self.assert_copied_all_the_same()

    def test_an_error_is_tried_again(self):
        self.arm("store.copied=error")
        self.leave(self.job)
        self.assert_copied_all_the_same()

    def test_the_job_which_takes_its_copy_with_it(self):
        gate = self.cluster.dir / "gate"
        self.arm(f"store.copying=hold={gate}")
        self.leave(self.job)
        wait_for("the copy to be begun", self.drafts)
        self.cluster.ctl("kill", self.job)
        gate.touch()
        wait_for("all to be gone", lambda: not self.local("n1") and not self.shared() and not self.drafts())


class Scheduled(CopiedCase):
    """By the policy, checkpoints on schedule go to the nodes' own disks first."""
    policy = CopiedCase.policy + """most_lost_work: 1s
checkpoint_bandwidth: 0.5
checkpoint_stops: 0.5
checkpoint_tier: local
"""

    def setUp(self):
        super().setUp()
        gate = self.new_gate()
        self.cluster.ctl("cordon", "n2")
        argv = jobs.command(self.cluster.dir, "table", jobs.TABLE, gate, 32)
        self.job = self.submit_gated(gate, "--name", "table", "--slots", 1, "--preemptible=checkpoint,kill", "--workdir", self.cluster.dir,
                                     "--output", f"{self.outputs()}/%j.%r", "--", *argv)
        self.wait_counting(self.job)

    def count(self, kind):
        return sum(e["kind"] == kind for e in self.cluster.events(self.job))

    def wait_for_copies(self, count):
        wait_for(f"{count} copies", lambda: self.count("checkpoint-copied") >= count)

    def test_they_are_made_on_the_disk_and_copied(self):
        self.wait_for_copies(2)
        orders = [e["text"] for e in self.cluster.events(self.job) if e["kind"] == "order-dump"]
        self.assertIn("to local storage", orders[0])
        self.assert_counted(self.job)
        wait_for("all to be gone", lambda: not self.local("n1") and not self.shared())

    def test_what_is_copied_shares_what_has_not_changed(self):
        self.wait_for_copies(3)
        files = [file for image in (self.cluster.shared / "images").glob("*/*") for file in image.glob("*pages-*.img")]
        self.assertTrue([file for file in files if file.stat().st_nlink > 1])
        self.assert_counted(self.job)

    def test_one_that_is_lost_with_its_node_goes_on_elsewhere(self):
        self.wait_for_copies(2)
        self.cluster.ctl("uncordon", "n2")
        self.cluster.cut_power("n1")
        wait_for("the node to be down", lambda: any(n["name"] == "n1" and n["state"] == "down" for n in self.cluster.node_list()))
        self.cluster.ctl("lost", "n1")
        self.cluster.wait_event(self.job, "restored")
        self.assertEqual(self.cluster.job(self.job)["nodes"], ["n2"])
        self.assert_counted(self.job)

    def test_one_that_makes_way_goes_on_elsewhere(self):
        self.wait_for_copies(1)
        express = self.express()
        self.assert_in_time(express)
        self.cluster.ctl("uncordon", "n2")
        self.cluster.wait_event(self.job, "restored")
        self.assert_counted(self.job)


if __name__ == "__main__":
    unittest.main()
