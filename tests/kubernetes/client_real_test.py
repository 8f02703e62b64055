#!/usr/bin/python3
"""siding's client on a real API server: what it lists, watches and changes, and what it says when it may not."""

import json
import os
import queue
import signal
import subprocess
import threading

from case import ANOTHER_UID, BIN, PATIENCE, PODS, KubernetesCase, main, pod, wait_for
from client import ClientError, ClientTest

PROGRAM = BIN / "siding-test-kubernetes"


class Watcher:
    """An informer in a process of its own, and what it tells."""

    def __init__(self, server, resource="pods", page=500, seconds=60):
        self.process = subprocess.Popen([PROGRAM, server, "watch", resource, str(page), str(seconds)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.told, self._lines = [], queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(json.loads(line))

    def until(self, **what):
        """Waits for this to be told; returns what was told before it, since the last time."""
        (key, value), before = *what.items(), []
        while True:
            try:
                told = self._lines.get(timeout=PATIENCE)
            except queue.Empty:
                raise AssertionError(f"{what} is not told; told were {before}") from None
            self.told.append(told)
            if key in told and value in (told[key], str(told[key]).split(":")[0]):
                return before
            before.append(told)

    def stop(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.close()
        self.process.wait(30)
        self._reader.join()
        self.process.stdout.close()


class ClientCase(ClientTest, KubernetesCase):
    def setUp(self):
        super().setUp()
        self.server = self.bed.dir / "admin.kubeconfig"

    def client(self, *words, server=None):
        return self.answer_of(PROGRAM, server or self.server, *words)

    def watcher(self, server=None, **how):
        watcher = Watcher(server or self.server, **how)
        self.addCleanup(watcher.stop)
        return watcher

    def new_pod(self, name, **spec):
        self.addCleanup(self.remove, name)
        return self.made(PODS, pod(name, **spec))["metadata"]["uid"]

    def remove(self, name):
        self.bed.call("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})

    def account(self, name):
        """A folder as it lies in a pod of this service account, which may do nothing, as the client is told of it."""
        self.made("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": name}})
        folder = self.bed.dir / name
        folder.mkdir()
        (folder / "token").write_text(self.token_of(name))
        (folder / "namespace").write_text("default")
        (folder / "ca.crt").write_bytes((self.bed.dir / "certs/ca.pem").read_bytes())
        return f"{folder},127.0.0.1,{self.bed.port}"

    def token_of(self, name):
        path = f"/api/v1/namespaces/default/serviceaccounts/{name}/token"
        return self.made(path, {"spec": {"expirationSeconds": 600}})["status"]["token"]

    def allow(self, name, *verbs):
        """The service account of this name may do this with pods."""
        path = "/apis/rbac.authorization.k8s.io/v1"
        self.made(f"{path}/clusterroles", {"metadata": {"name": name}, "rules": [
            {"apiGroups": [""], "resources": ["pods"], "verbs": list(verbs)}]})
        self.made(f"{path}/clusterrolebindings", {
            "metadata": {"name": name}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}]})


class Calls(ClientCase):
    def test_what_the_server_has(self):
        found = self.client("discover")
        self.assertEqual((found["server"], found["eviction"]), ("v1.20.2", "v1beta1"))
        self.assertIn("v1", found["groups"]["coordination.k8s.io"])

    def test_a_list_in_pages_is_the_list(self):
        for i in range(5):
            self.new_pod(f"page-{i}")
        self.assertEqual(self.client("list", "pods", 2)["names"], [f"default/page-{i}" for i in range(5)])

    def test_create_returns_what_the_server_made_of_it(self):
        self.addCleanup(self.remove, "made")
        made = self.client("create", "pods", json.dumps(pod("made", schedulingGates=[{"name": "siding.dev/wait"}])))
        self.assertNotIn("schedulingGates", made["spec"])
        self.assertIn("AlreadyExists", self.refused("ALREADY_EXISTS", "create", "pods", json.dumps(pod("made"))))

    def test_a_patch_changes_what_it_names(self):
        uid = self.new_pod("patched")
        now = self.client("patch", "pods", "patched", json.dumps({"metadata": {"uid": uid, "annotations": {"siding.dev/a": "b"}}}))
        self.assertEqual((now["metadata"]["annotations"], now["metadata"]["labels"]), ({"siding.dev/a": "b"}, {"app": "patched"}))

    def test_a_patch_of_another_version_or_uid_is_refused(self):
        self.new_pod("other")
        for code, field, value in (("ABORTED", "resourceVersion", "1"), ("INVALID_ARGUMENT", "uid", ANOTHER_UID)):
            said = self.refused(code, "patch", "pods", "other", json.dumps({"metadata": {field: value, "labels": {"a": "b"}}}))
            self.assertIn("patch pods default/other", said)

    def test_an_eviction_is_of_the_pod_that_was_meant(self):
        uid = self.new_pod("evicted")
        self.refused("ABORTED", "evict", "evicted", ANOTHER_UID, "v1beta1")
        self.client("evict", "evicted", uid, "v1beta1")
        self.refused("NOT_FOUND", "get", "pods", "evicted")

    def test_an_eviction_that_a_budget_forbids_is_no_busy_server(self):
        uid = self.new_pod("guarded", nodeName="anywhere")
        self.guard("guarded")
        self.assertIn("disruption budget", self.refused("FAILED_PRECONDITION", "evict", "guarded", uid, "v1beta1"))
        self.assertEqual(self.client("get", "pods", "guarded")["metadata"]["uid"], uid)

    def test_a_deletion_is_of_the_pod_that_was_meant(self):
        uid = self.new_pod("deleted")
        self.refused("ABORTED", "delete", "deleted", ANOTHER_UID)
        self.client("delete", "deleted", uid)
        self.refused("NOT_FOUND", "get", "pods", "deleted")

    def test_a_binding_is_made_once_and_may_be_made_again(self):
        uid = self.new_pod("bound")
        for _ in range(2):
            self.assertEqual(self.client("bind", "bound", uid, "node-a")["spec"]["nodeName"], "node-a")
        self.assertIn("node-a", self.refused("ABORTED", "bind", "bound", uid, "node-b"))

    def test_a_binding_of_another_pod_is_said(self):
        """The server makes it all the same."""
        self.new_pod("again")
        self.assertIn("another pod has this name", self.refused("ABORTED", "bind", "again", ANOTHER_UID, "node-a"))


class Rights(ClientCase):
    def test_what_a_role_lacks_is_named(self):
        server = self.account("poor")
        said = self.refused("PERMISSION_DENIED", "list", "pods", 5, server=server)
        self.assertIn("list pods", said)
        self.assertIn('system:serviceaccount:default:poor" cannot list resource "pods"', said)

    def test_an_account_does_what_its_role_allows(self):
        server = self.account("reader")
        self.allow("reader", "list")
        wait_for("the role to count", lambda: self.works("list", "pods", 5, server=server))
        self.assertIn("cannot delete", self.refused("PERMISSION_DENIED", "delete", "any", ANOTHER_UID, server=server))

    def works(self, *words, **how):
        try:
            self.client(*words, **how)
            return True
        except ClientError:
            return False

    def test_a_server_of_another_authority_is_not_believed(self):
        server = self.account("wary")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", "/dev/null", "-subj", "/CN=other",
                        "-out", self.bed.dir / "wary/ca.crt"], check=True, capture_output=True)
        self.refused("FAILED_PRECONDITION", "list", "pods", 5, server=server)


class Watches(ClientCase):
    def test_what_is_there_and_what_changes(self):
        for name in ("first", "second", "third"):
            self.new_pod(name)
        watcher = self.watcher(page=2)
        self.assertEqual(watcher.until(synced=3), [{"added": f"default/{name}"} for name in ("first", "second", "third")])
        uid = self.new_pod("fourth")
        watcher.until(added="default/fourth")
        self.client("delete", "fourth", uid)
        watcher.until(deleted="default/fourth")

    def test_nothing_is_lost_between_two_watches(self):
        watcher = self.watcher(seconds=1)
        watcher.until(synced=0)
        for i in range(20):
            uid = self.new_pod(f"quick-{i}")
            self.client("delete", f"quick-{i}", uid)
        watcher.until(deleted="default/quick-19")
        self.assertEqual([told["added"] for told in watcher.told if "added" in told], [f"default/quick-{i}" for i in range(20)])
        self.assertEqual(sum("deleted" in told for told in watcher.told), 20)

    def test_a_server_that_was_away_is_said_and_then_followed_again(self):
        self.new_pod("before")
        watcher = self.watcher()
        watcher.until(synced=1)
        self.bed.restart_apiserver()
        self.new_pod("after")
        told = watcher.until(added="default/after")
        self.assertEqual([line for line in told if "health" not in line], [])

    def test_what_was_deleted_behind_its_back_is_found(self):
        for name in ("lost", "stays"):
            self.new_pod(name)
        watcher = self.watcher(seconds=5)
        watcher.until(synced=2)
        os.kill(watcher.process.pid, signal.SIGSTOP)
        self.remove("lost")
        self.new_pod("late")
        self.bed.compact()
        self.bed.restart_apiserver()  # its memory of what changed begins anew
        os.kill(watcher.process.pid, signal.SIGCONT)
        told = watcher.until(deleted="default/lost") + watcher.until(added="default/late")
        self.assertNotIn({"deleted": "default/stays"}, told)

    def test_a_token_that_is_replaced_is_used(self):
        server = self.account("rotated")
        self.allow("rotated", "list", "watch")
        token = self.bed.dir / "rotated/token"
        good = token.read_text()
        token.write_text("nobodys")
        watcher = self.watcher(server=server)
        watcher.until(health="UNAUTHENTICATED")
        token.write_text(good)
        watcher.until(health="OK")

    def test_a_right_that_is_missing_is_said_until_it_is_given(self):
        watcher = self.watcher(server=self.account("waits"))
        watcher.until(health="PERMISSION_DENIED")
        self.allow("waits", "list", "watch")
        watcher.until(health="OK")


if __name__ == "__main__":
    main()
