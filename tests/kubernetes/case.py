"""What every test on a real Kubernetes starts from: one of its own for the tests of a class, stopped whatever happens, and the
programs' logs on failure."""

import os
import pathlib
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
from agents import Agents  # noqa: E402,F401
from cluster import BIN, PATIENCE, ROOT, kill, kill9, marked_processes, wait_for  # noqa: E402,F401
from kubernetes import SKIPPED, Kubernetes, KubernetesError, programs  # noqa: E402,F401
from vanishing import paths  # noqa: E402,F401

PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1beta1/namespaces/default/poddisruptionbudgets"
MERGE_PATCH = "application/merge-patch+json"
ANOTHER_UID = "00000000-0000-0000-0000-000000000000"


def pod(name, **spec):
    """A pod that no node's image is pulled for; by default nobody schedules it."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"schedulerName": "nobody", "terminationGracePeriodSeconds": 1, "containers": [
                {"name": "main", "image": "docker.io/siding/count:1", "imagePullPolicy": "Never"}], **spec}}


def eviction(name, **options):
    return {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"},
            "deleteOptions": options}


class KubernetesCase(unittest.TestCase):
    with_node = False

    @classmethod
    def setUpClass(cls):
        cls.bed = Kubernetes(programs())
        cls.addClassCleanup(cls.bed.remove)
        cls.addClassCleanup(cls.bed.stop)
        cls.bed.start()
        if cls.with_node:
            cls.bed.start_node()

    def setUp(self):
        self.addCleanup(self._show_logs)

    def _show_logs(self):
        result = self._outcome.result
        if any(test is self for test, _ in result.failures + result.errors):
            for program in list(self.bed.children):
                print(f"---- {program}\n{self.bed.tail(program, 400)}", file=sys.stderr)

    def guard(self, name):
        """A disruption budget that lets nobody evict this pod, once the pod counts as healthy."""
        self.made(BUDGETS, {"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}}})
        self.addCleanup(self.bed.call, "DELETE", f"{BUDGETS}/{name}")
        self.bed.call("PATCH", f"{PODS}/{name}/status", {"status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True"}]}}, content=MERGE_PATCH)
        wait_for("the budget to count the pod", lambda: self.bed.call("GET", f"{BUDGETS}/{name}")[1]["status"].get("currentHealthy") == 1)

    def made(self, path, body):
        """Makes an object; as the server has it."""
        status, answer = self.bed.call("POST", path, body)
        self.assertEqual(status, 201, answer)
        return answer


def main(root=False):
    """Exits as skipped, which ctest shows, where there is no Kubernetes: a skip inside of unittest would count as passed."""
    programs()
    if root and os.geteuid() != 0:
        print("skipped: a node needs root", file=sys.stderr)
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
