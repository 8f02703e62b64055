#!/usr/bin/python3
"""Pods that make way for pods with a deadline, on a real node, with kubectl alone."""

import base64
import json
import os
import subprocess
import time

from case import BIN, PODS, ROOT, KubernetesCase, main, pod, wait_for

RIGHTS = ROOT / "deploy/kubernetes/rbac.yaml"
KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{{name: here, cluster: {{server: "https://127.0.0.1:{port}", certificate-authority: {bed}/certs/ca.pem}}}}]
users: [{{name: siding, user: {{tokenFile: token}}}}]
contexts: [{{name: siding, context: {{cluster: here, user: siding}}}}]
current-context: siding
"""
POLICY = "min_runtime: 0s\ncooldown: 0s\nmargin: 500ms\n"


class Preemption(KubernetesCase):
    with_node = True

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.addClassCleanup(cls.stop_controller)
        cls.state = cls.bed.dir / "siding"
        cls.state.mkdir()
        (cls.state / "policy.yaml").write_text(POLICY)
        (cls.state / "kubeconfig").write_text(KUBECONFIG.format(port=cls.bed.port, bed=cls.bed.dir))
        (cls.state / "token").write_text(cls.make_account())
        (cls.state / "sidingd.yaml").write_text(
            f"socket: {cls.state}/siding.sock\nstate_dir: {cls.state}/controller\npolicy: {cls.state}/policy.yaml\nheartbeat: 1s\n"
            f"kubernetes:\n  mode: evicting\n  kubeconfig: {cls.state}/kubeconfig\n")
        cls.start_controller()

    @classmethod
    def make_account(cls):
        """With the rights that are shipped; its token."""
        made = cls.bed.kubectl("apply", "-f", RIGHTS)
        assert made.returncode == 0, made.stderr
        wait_for("the account's token", lambda: cls.bed.has_account("siding", "siding"))
        _, account = cls.bed.call("GET", "/api/v1/namespaces/siding/serviceaccounts/siding")
        _, secret = cls.bed.call("GET", f"/api/v1/namespaces/siding/secrets/{account['secrets'][0]['name']}")
        return base64.b64decode(secret["data"]["token"]).decode()

    @classmethod
    def start_controller(cls):
        with open(cls.state / "log", "ab") as log:
            cls.controller = subprocess.Popen([BIN / "sidingd", "--config", cls.state / "sidingd.yaml"], stdout=log, stderr=log)

    @classmethod
    def stop_controller(cls):
        cls.controller.terminate()
        cls.controller.wait(30)

    def _show_logs(self):
        super()._show_logs()
        if self._outcome.result and (self._outcome.result.failures or self._outcome.result.errors):
            print((self.state / "log").read_text()[-8000:])

    def ctl(self, *words):
        done = subprocess.run([BIN / "sidingctl", *map(str, words)], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "SIDING_SOCKET": str(self.state / "siding.sock")})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def pod_now(self, name):
        status, now = self.bed.call("GET", f"{PODS}/{name}")
        return now if status == 200 else None

    def is_leaving(self, name):
        return (now := self.pod_now(name)) is None or "deletionTimestamp" in now["metadata"]

    def wait_running(self, name):
        return wait_for(f"pod {name} to run", lambda: (now := self.pod_now(name)) and now["status"].get("phase") == "Running" and now, 60)

    def events(self, name, reason):
        _, listed = self.bed.call("GET", f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3D{name}")
        return [event["message"] for event in listed["items"] if event["reason"] == reason]

    def cpus(self):
        _, node = self.bed.call("GET", "/api/v1/nodes/node1")
        return node["status"]["allocatable"]["cpu"]

    def annotated(self, name, annotations, **spec):
        """A pod that takes all CPUs of the node."""
        body = pod(name, **spec)
        body["metadata"]["annotations"] = {f"siding.dev/{key}": value for key, value in annotations.items()}
        body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": self.cpus()}}
        return body

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
        return wait_for(f"a pod of {job} to run", there, 60)

    def delete(self, name):
        self.bed.call("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})
        wait_for(f"pod {name} to be gone", lambda: self.pod_now(name) is None, 60)

    def urgent(self, name, start_by="+40s", **annotations):
        body = self.annotated(name, {"start-by": start_by, **annotations}, schedulerName="siding")
        applied = self.bed.kubectl("apply", "-f", "-", text=json.dumps(body))
        self.assertEqual(applied.returncode, 0, applied.stderr)
        self.addCleanup(self.delete, name)

    def is_kept(self):
        _, node = self.bed.call("GET", "/api/v1/nodes/node1")
        return any(taint["key"] == "siding.dev/kept-for" for taint in node["spec"].get("taints", []))

    def test_a_job_makes_way_and_comes_back(self):
        victim = self.batch("victim")
        wait_for("siding to know the job", lambda: "running" in self.ctl("jobs"), 30)
        self.urgent("steer")
        asked = time.time()
        self.wait_running("steer")
        self.assertLess(time.time() - asked, 40)
        self.assertTrue(self.is_leaving(victim))
        self.assertTrue(self.is_kept())
        self.assertTrue(self.events("steer", "SidingPlanned"), self.bed.kubectl("get", "events").stdout)
        [said] = self.events(victim, "SidingOrderKill")
        self.assertIn("to be ended", said)
        self.delete("steer")
        wait_for("the node to be kept no more", lambda: not self.is_kept(), 30)
        self.wait_pod_of("victim", but=victim)
        _, job = self.bed.call("GET", "/apis/batch/v1/namespaces/default/jobs/victim")
        self.assertEqual((job["status"].get("active"), job["status"].get("conditions")), (1, None))

    def test_a_deadline_that_cannot_be_met_is_refused_on_the_pod(self):
        blocker = pod("blocker", schedulerName="default-scheduler")
        blocker["spec"]["containers"][0]["resources"] = {"requests": {"cpu": self.cpus()}}
        self.bed.call("POST", PODS, blocker)
        self.addCleanup(self.delete, "blocker")
        self.wait_running("blocker")
        self.urgent("late", start_by="+10s")
        wait_for("the refusal", lambda: self.events("late", "SidingRefused"), 30)
        self.assertFalse(self.is_kept())
        self.assertEqual(self.pod_now("blocker")["status"]["phase"], "Running")

    def test_what_cannot_be_read_is_said_on_the_pod(self):
        self.urgent("odd", start_by="soon")
        [said] = wait_for("the refusal", lambda: self.events("odd", "SidingRefused"), 30)
        self.assertIn("siding.dev/start-by: expected a time", said)

    def check_config(self):
        done = subprocess.run([BIN / "sidingd", "--config", self.state / "sidingd.yaml", "--check-config"], capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def test_rights_that_are_missing_are_named(self):
        self.assertEqual(self.check_config(), "")
        self.assertEqual(self.bed.kubectl("delete", "role", "siding", "-n", "siding").returncode, 0)
        self.addCleanup(self.bed.kubectl, "apply", "-f", RIGHTS)
        wait_for("the right to be gone", lambda: "may not patch configmaps in the namespace siding" in self.check_config(), 30)

    def test_a_controller_that_was_killed_goes_on(self):
        victim = self.batch("other")
        wait_for("siding to know the job", lambda: "running" in self.ctl("jobs"), 30)
        self.urgent("steer2")
        wait_for("the order", lambda: self.is_kept(), 30)
        self.controller.kill()
        self.controller.wait()
        self.start_controller()
        self.wait_running("steer2")
        self.assertTrue(self.is_leaving(victim))


if __name__ == "__main__":
    main(root=True)
