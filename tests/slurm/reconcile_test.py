#!/usr/bin/python3
"""What siding's controller desires of Slurm is brought about on a real one: nodes are kept, jobs start where they are to start, and
nothing is left of it when nothing is desired any more."""

import json
import unittest

from case import wait_for
from client_case import ENDED, PENDING, RUNNING, ClientCase, ClientError


class ReconcileByLibrary(ClientCase):
    nodes = 2

    def reconcile(self, jobs=None, kept=None):
        return self.client("reconcile", json.dumps({"jobs": jobs or {}, "kept": kept or {}}))

    def whole_node(self, *args):
        return self.sleeper("-N1", "--exclusive", *args)

    def test_freed_nodes_go_to_the_job_that_they_are_kept_for(self):
        victim, other = self.whole_node("-w", "node1"), self.whole_node("-w", "node2")
        for job in (victim, other):
            self.until(job, phase=RUNNING)
        queued = self.whole_node()
        urgent = self.whole_node()
        self.until(queued, phase=PENDING)
        self.reconcile(kept={urgent: {"nodes": ["node1"], "user": "root", "seconds": 600}})
        self.slurm.run("scontrol", "requeue", victim)
        self.until(urgent, phase=RUNNING, on=["node1"])
        self.assertEqual(self.one(queued)["phase"], PENDING)
        self.slurm.run("scancel", urgent)
        self.until(urgent, phase=ENDED)
        self.reconcile()
        self.until(queued, phase=RUNNING, on=["node1"])
        self.assertEqual(self.client("reservations"), [])

    def test_a_job_starts_where_it_is_to_start(self):
        job = self.whole_node("--hold")
        self.reconcile(jobs={job: {"nodes": ["node2"], "why": "its image is there"}})
        self.assertLessEqual({"only_on": ["node2"], "admin_comment": "[siding pinned: its image is there]"}.items(), self.one(job).items())
        self.slurm.run("scontrol", "release", job)
        self.until(job, phase=RUNNING, on=["node2"])
        self.reconcile()
        self.assertEqual(self.one(job)["admin_comment"], "")

    def test_the_same_again_does_nothing(self):
        job = self.sleeper("--hold")
        desired = {"jobs": {job: {"nodes": ["node2"], "why": "x"}}, "kept": {job: {"nodes": ["node2"], "user": "root", "seconds": 600}}}
        self.assertNotEqual(self.reconcile(**desired), [])
        self.assertEqual(self.reconcile(**desired), [])

    def test_nodes_in_use_are_given_back_when_they_are_free(self):
        job = self.whole_node()
        self.until(job, phase=RUNNING)
        held = self.whole_node("--hold")
        self.reconcile(kept={held: {"nodes": ["node1", "node2"], "user": "root", "seconds": 600}})
        self.slurm.run("scontrol", "release", held)
        self.until(held, phase=RUNNING)
        with self.assertRaisesRegex(ClientError, "in use"):
            self.reconcile()
        self.slurm.run("scancel", held)
        self.until(held, phase=ENDED)
        wait_for("the reservation to be deleted", lambda: self.reconcile() == ["reservation siding-%d: deleted" % held])


class ReconcileByTools(ReconcileByLibrary):
    backend = "tools"


if __name__ == "__main__":
    unittest.main(verbosity=2)
