"""A controller on a real Kubernetes with a node, with the rights that are shipped, and what tests of it do with pods."""

import subprocess

from case import BIN, PATIENCE, PODS, KubernetesCase, pod, wait_for
from kubernetes_siding import RIGHTS, Siding  # noqa: F401


class ControllerCase(KubernetesCase):
    with_node = True
    mode = "evicting"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.siding = Siding(cls.bed, cls.mode)
        cls.state = cls.siding.dir
        cls.addClassCleanup(cls.siding.stop)
        cls.start_controller()

    @classmethod
    def start_controller(cls, **variables):
        cls.siding.start_controller(**variables)
        cls.controller = cls.siding.controller

    def _show_logs(self):
        super()._show_logs()
        if self._outcome.result and (self._outcome.result.failures or self._outcome.result.errors):
            print(self.siding.log.read_text()[-8000:])

    def ctl(self, *words):
        done = self.siding.ctl(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def pod_now(self, name):
        status, now = self.bed.call("GET", f"{PODS}/{name}")
        return now if status == 200 else None

    def is_leaving(self, name):
        return (now := self.pod_now(name)) is None or "deletionTimestamp" in now["metadata"]

    def wait_running(self, name):
        return wait_for(f"pod {name} to run", lambda: (now := self.pod_now(name)) and now["status"].get("phase") == "Running" and now)

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

    def delete(self, name):
        self.bed.call("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})
        wait_for(f"pod {name} to be gone", lambda: self.pod_now(name) is None)

    def is_kept(self):
        _, node = self.bed.call("GET", "/api/v1/nodes/node1")
        return any(taint["key"] == "siding.dev/kept-for" for taint in node["spec"].get("taints", []))

    def check_config(self):
        done = subprocess.run([BIN / "sidingd", "--config", self.state / "sidingd.yaml", "--check-config"], capture_output=True,
                              text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr
