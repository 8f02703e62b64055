#!/usr/bin/python3
"""What siding's controller wishes of Slurm comes true on a real one: nodes are kept, jobs held and sent where they are wished,
and nothing is left of it when nothing is wished any more."""

import json
import unittest

from case import wait_for
from client_case import ENDED, PENDING, RUNNING, ClientCase, ClientError


class WishesByLibrary(ClientCase):
    nodes = 2

    def want(self, jobs=None, kept=None):
        return self.client("want", json.dumps({"jobs": jobs or {}, "kept": kept or {}}))

    def whole_node(self, *args):
        return self.sleeper("-N1", "--exclusive", *args)

    def test_freed_nodes_go_to_the_job_that_they_are_kept_for(self):
        victim, other = self.whole_node("-w", "node1"), self.whole_node("-w", "node2")
        for job in (victim, other):
            self.until(job, phase=RUNNING)
        queued = self.whole_node()
        urgent = self.whole_node()
        self.until(queued, phase=PENDING)
        self.want(kept={urgent: {"nodes": ["node1"], "user": "root", "seconds": 600}})
        self.client("order", "requeue", victim)
        self.until(urgent, phase=RUNNING, on=["node1"])
        self.assertEqual(self.one(queued)["phase"], PENDING)
        self.client("order", "cancel", urgent)
        self.until(urgent, phase=ENDED)
        self.want()
        self.until(queued, phase=RUNNING, on=["node1"])
        self.assertEqual(self.client("reservations"), [])

    def test_a_job_that_is_held_and_sent_back_starts_where_it_is_wished(self):
        job = self.running("-N1", "--exclusive")
        (node,) = self.one(job)["on"]
        other = {"node1": "node2", "node2": "node1"}[node]
        self.client("order", "requeue", job)
        self.until(job, phase=PENDING)
        self.want(jobs={job: {"held": True, "why": "makes way"}})
        self.assertLessEqual({"held": True, "admin_comment": "[siding held: makes way]"}.items(), self.one(job).items())
        self.want(jobs={job: {"nodes": [other], "why": "its image is there"}})
        self.until(job, phase=RUNNING, on=[other], held=False)
        self.want()
        self.assertEqual(self.one(job)["admin_comment"], "")

    def test_wishing_the_same_again_does_nothing(self):
        job = self.sleeper("--hold")
        wishes = {"jobs": {job: {"nodes": ["node2"], "why": "x"}}, "kept": {job: {"nodes": ["node2"], "user": "root", "seconds": 600}}}
        self.assertNotEqual(self.want(**wishes), [])
        self.assertEqual(self.want(**wishes), [])

    def test_nodes_in_use_are_given_back_when_they_are_free(self):
        job = self.whole_node()
        self.until(job, phase=RUNNING)
        held = self.whole_node("--hold")
        self.want(kept={held: {"nodes": ["node1", "node2"], "user": "root", "seconds": 600}})
        self.slurm.run("scontrol", "release", held)
        self.until(held, phase=RUNNING)
        with self.assertRaisesRegex(ClientError, "in use"):
            self.want()
        self.client("order", "cancel", held)
        self.until(held, phase=ENDED)
        wait_for("the reservation to be deleted", lambda: self.want() == ["reservation siding-%d: deleted" % held])


class WishesByTools(WishesByLibrary):
    backend = "tools"


if __name__ == "__main__":
    unittest.main(verbosity=2)
