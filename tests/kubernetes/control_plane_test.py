#!/usr/bin/python3
"""The private control plane that the other tests stand on."""

import json

from case import PODS, Kubernetes, KubernetesCase, KubernetesError, main, marked_processes, pod, programs, wait_for

READER = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader"},
          "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]}
BINDING = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "reader"},
           "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
           "subjects": [{"kind": "User", "name": "nobody", "apiGroup": "rbac.authorization.k8s.io"}]}


class ControlPlane(KubernetesCase):
    def test_it_is_the_version_that_was_built(self):
        self.assertEqual(self.bed.call("GET", "/version")[1]["gitVersion"], "v1.20.2")

    def test_kubectl_makes_a_namespace_and_a_pod(self):
        self.assertEqual(self.bed.kubectl("create", "namespace", "batch").returncode, 0)
        wait_for("the namespace's service account", lambda: self.bed.has_account("batch"))
        made = self.bed.kubectl("apply", "-n", "batch", "-f", "-", text=json.dumps(pod("one")))
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(self.bed.kubectl("get", "pods", "-n", "batch", "-o", "name").stdout, "pod/one\n")

    def test_the_scheduler_says_why_a_pod_waits(self):
        self.made(PODS, pod("waits", schedulerName="default-scheduler"))

        def conditions():
            _, now = self.bed.call("GET", f"{PODS}/waits")
            return now["status"].get("conditions")
        [condition] = wait_for("the scheduler to look at the pod", conditions)
        self.assertEqual((condition["type"], condition["reason"]), ("PodScheduled", "Unschedulable"))

    def test_a_user_without_rights_is_refused(self):
        status, why = self.bed.call("GET", "/api/v1/nodes", user="nobody")
        self.assertEqual((status, why["reason"]), (403, "Forbidden"))
        self.assertIn('"nobody" cannot list resource "nodes"', why["message"])

    def test_a_role_gives_its_verbs_and_no_others(self):
        path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
        self.made(f"{path}/roles", READER)
        self.made(f"{path}/rolebindings", BINDING)
        wait_for("the role to count", lambda: self.bed.call("GET", PODS, user="nobody")[0] == 200)
        self.assertEqual(self.bed.call("POST", PODS, pod("two"), user="nobody")[0], 403)

    def test_a_token_of_nobody_is_refused(self):
        self.bed.tokens["stranger"] = "0" * 32
        self.assertEqual(self.bed.call("GET", "/api/v1/nodes", user="stranger")[0], 401)


class OthersBeside(KubernetesCase):
    def test_a_second_one_knows_nothing_of_the_first(self):
        other = Kubernetes(programs())
        self.addCleanup(other.remove)
        self.addCleanup(other.stop)
        other.start()
        self.made(PODS, pod("mine"))
        self.assertEqual(other.call("GET", f"{PODS}/mine")[0], 404)
        other.stop()
        self.assertEqual(marked_processes(other.dir), [])
        self.assertEqual(self.bed.call("GET", f"{PODS}/mine")[0], 200)

    def test_a_program_that_ends_early_is_named_with_its_last_words(self):
        other = Kubernetes(programs())
        self.addCleanup(other.remove)
        self.addCleanup(other.stop)
        (other.dir / "etcd").write_text("a file where its folder is to be")
        with self.assertRaisesRegex(KubernetesError, r"(?s)^etcd ended with 1:.*error listing data dir"):
            other.start()


if __name__ == "__main__":
    main()
