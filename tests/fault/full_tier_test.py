#!/usr/bin/python3
"""Tiers that are full for a while: images go where there is room, requests are served in time, and nobody loses a method."""

import unittest

from small_disk import SmallDisk  # first: it says where the harness is
from case import CtlError, wait_for

NODE = "n1"


class FullTier(SmallDisk):
    """The shared tier and the node's local one are file systems of their own."""
    nodes, disk_of, disk_size = (NODE,), "shared", "96m"

    def make_cluster(self):
        cluster = super().make_cluster()
        self.local = self.mount(cluster.dir / NODE / "store")
        return cluster

    def setUp(self):
        super().setUp()
        self.job = self.counter()
        self.wait_counting(self.job)

    def said(self, tier):
        return int(self.cluster.node_list()[0].get(f"{tier}_disk_free", 0))

    def wait_full(self, tier):
        """Until the node's heartbeats say so."""
        wait_for(f"the agent to say that the {tier} tier is full", lambda: self.said(tier) == 0)

    def wait_free(self, tier):
        wait_for(f"the agent to say that the {tier} tier has room", lambda: self.said(tier) > 64 << 20)

    def tiers(self):
        """Of the good images, in their order."""
        listed = self.cluster.ctl("checkpoints", "list").get("checkpoints", [])
        return [c["tier"] for c in sorted(listed, key=lambda c: c["id"]) if c["state"] == "good"]

    def kinds(self):
        return [e["kind"] for e in self.cluster.events(self.job)]

    def serve(self):
        """A deadline job for which ours makes way, and comes back."""
        express = self.express()
        self.assert_in_time(express)
        self.cluster.wait_state(express, "done")
        wait_for("our job to run again", lambda: self.cluster.state(self.job) == "running")

    def test_the_image_goes_to_the_local_tier_and_then_to_the_shared_one_again(self):
        self.fill()
        self.wait_full("shared")
        self.serve()
        self.assertEqual(self.tiers(), ["local"])
        self.fill(self.local)
        self.wait_full("local")
        self.free()
        self.wait_free("shared")
        self.serve()
        self.assertEqual(self.tiers()[-1], "shared")
        self.assertNotIn("dump-failed", self.kinds())
        self.assert_counted(self.job)

    def test_a_checkpoint_that_fails_for_lack_of_room_costs_no_method(self):
        self.fill()
        with self.assertRaisesRegex(CtlError, "was not checkpointed: rank 0 on n1: .* No space left on device"):
            self.cluster.ctl("checkpoint", self.job)
        self.assertNotIn("method-lost", self.kinds())
        self.serve()  # at once, by the local tier
        self.assertEqual(self.tiers(), ["local"])
        self.assert_counted(self.job)

    def test_without_room_anywhere_a_request_is_refused_and_says_why_until_there_is(self):
        self.fill()
        self.fill(self.local)
        self.wait_full("shared")
        self.wait_full("local")
        with self.assertRaisesRegex(CtlError, "tier local on node n1 is full: .* tier shared on node n1 is full: 0 B free"):
            self.express()
        self.free()
        self.wait_free("shared")
        self.serve()
        self.assertEqual(self.tiers(), ["shared"])
        self.assertNotIn("dump-failed", self.kinds())
        self.assert_counted(self.job)


if __name__ == "__main__":
    unittest.main(verbosity=2)
