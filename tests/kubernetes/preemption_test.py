#!/usr/bin/python3
"""Pods that make way for pods with a deadline, on a real node, with kubectl alone."""

import json

from case import PODS, kill9, main, pod, wait_for
from controller import RIGHTS, ControllerCase


class Preemption(ControllerCase):
    def batch(self, name):
        """A Job of one pod; returns the name of its pod, which runs."""
        template = self.annotated(name, {"preemptible": "kill"}, schedulerName="default-scheduler", restartPolicy="Never")
        template["metadata"].pop("name")
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"backoffLimit": 0, "template": {
            "metadata": template["metadata"], "spec": template["spec"]}}}
        applied = self.bed.kubectl("apply", "-f", "-", text=json.dumps(job))
        self.assertEqual(applied.returncode, 0, applied.stderr)
        self.addCleanup(self.bed.kubectl, "delete", "job", name, "--wait=false")
        return self.wait_pod_of(name)

    def pods_of(self, job):
        _, listed = self.bed.call("GET", f"{PODS}?labelSelector=job-name%3D{job}")
        return listed["items"]

    def wait_pod_of(self, job, but=None):
        def there():
            return next((p["metadata"]["name"] for p in self.pods_of(job)
                         if p["metadata"]["name"] != but and p["status"].get("phase") == "Running"), None)
        return wait_for(f"a pod of {job} to run", there)

    def urgent(self, name, start_by="+10m", **annotations):
        body = self.annotated(name, {"start-by": start_by, **annotations}, schedulerName="siding")
        applied = self.bed.kubectl("apply", "-f", "-", text=json.dumps(body))
        self.assertEqual(applied.returncode, 0, applied.stderr)
        self.addCleanup(self.delete, name)

    def test_a_job_makes_way_and_comes_back(self):
        victim = self.batch("victim")
        wait_for("siding to know the job", lambda: "running" in self.ctl("jobs"))
        self.urgent("steer")
        wait_for("the node to be kept", self.is_kept)
        self.wait_running("steer")
        self.assertTrue(self.is_leaving(victim))
        self.assertTrue(self.events("steer", "SidingPlanned"), self.bed.kubectl("get", "events").stdout)
        [said] = self.events(victim, "SidingOrderKill")
        self.assertIn("to be ended", said)
        uid = self.bed.call("GET", f"{PODS}/steer")[1]["metadata"]["uid"]
        [said] = self.events(victim, "SidingPreempted")
        self.assertRegex(said, rf"^preempted by default/steer \(UID {uid}\) for deadline \d{{4}}-\S+Z: \d+\.\d node-seconds lost$")
        wait_for("the node to be kept no more", lambda: not self.is_kept())
        self.delete("steer")
        self.wait_pod_of("victim", but=victim)
        _, job = self.bed.call("GET", "/apis/batch/v1/namespaces/default/jobs/victim")
        self.assertEqual((job["status"].get("active"), job["status"].get("conditions")), (1, None))

    def test_a_deadline_that_cannot_be_met_is_refused_on_the_pod(self):
        blocker = pod("blocker", schedulerName="default-scheduler")
        blocker["spec"]["containers"][0]["resources"] = {"requests": {"cpu": self.cpus()}}
        self.bed.call("POST", PODS, blocker)
        self.addCleanup(self.delete, "blocker")
        self.wait_running("blocker")
        self.urgent("late", start_by="+10m")
        wait_for("the refusal", lambda: self.events("late", "SidingRefused"))
        self.assertFalse(self.is_kept())
        self.assertEqual(self.pod_now("blocker")["status"]["phase"], "Running")

    def test_what_cannot_be_read_is_said_on_the_pod(self):
        self.urgent("odd", start_by="soon")
        [said] = wait_for("the refusal", lambda: self.events("odd", "SidingRefused"))
        self.assertIn("siding.dev/start-by: expected a time", said)

    def test_rights_that_are_missing_are_named(self):
        self.assertEqual(self.check_config(), "")
        self.assertEqual(self.bed.kubectl("delete", "role", "siding", "-n", "siding").returncode, 0)
        self.addCleanup(self.bed.kubectl, "apply", "-f", RIGHTS)
        wait_for("the right to be gone", lambda: "may not patch configmaps in the namespace siding" in self.check_config())

    def test_a_controller_that_was_killed_goes_on(self):
        victim = self.batch("other")
        wait_for("siding to know the job", lambda: "running" in self.ctl("jobs"))
        self.urgent("steer2")
        wait_for("the order", lambda: self.is_kept())
        kill9(self.controller)
        self.start_controller()
        self.wait_running("steer2")
        self.assertTrue(self.is_leaving(victim))


if __name__ == "__main__":
    main(root=True)
