#!/usr/bin/python3
"""Pods on a real node: kubelet, containerd and a network."""

import subprocess

from case import PODS, KubernetesCase, eviction, main, marked_processes, pod, wait_for


class RealNode(KubernetesCase):
    with_node = True

    def run_pod(self, name):
        self.made(PODS, pod(name, schedulerName="default-scheduler", automountServiceAccountToken=False))
        return wait_for(f"{name} to run",
                        lambda: (now := self.bed.call("GET", f"{PODS}/{name}")[1])["status"]["phase"] == "Running" and now)

    def gone(self, name):
        return self.bed.call("GET", f"{PODS}/{name}")[0] == 404

    def test_a_pod_runs_on_the_node_and_its_log_is_read(self):
        made = self.run_pod("logs")
        self.assertEqual(made["spec"]["nodeName"], "node1")
        wait_for("a second line", lambda: "count 0\ncount 1\n" in self.bed.node.log("default", "logs", "main")[1])

    def test_an_evicted_pod_goes(self):
        uid = self.run_pod("evicted")["metadata"]["uid"]
        status, answer = self.bed.call("POST", f"{PODS}/evicted/eviction", eviction("evicted", preconditions={"uid": uid}))
        self.assertEqual(status, 201, answer)
        wait_for("the pod to be gone", lambda: self.gone("evicted"))

    def test_the_kubelet_cannot_checkpoint(self):
        self.run_pod("asked")
        self.assertEqual(self.bed.call("POST", "/checkpoint/default/asked/main", port=self.bed.node.port)[0], 404)


class Leftovers(KubernetesCase):
    with_node = True

    def test_nothing_is_left_of_a_node_that_was_stopped_with_a_pod_running(self):
        self.made(PODS, pod("left", schedulerName="default-scheduler"))
        wait_for("the pod to run", lambda: self.bed.call("GET", f"{PODS}/left")[1]["status"]["phase"] == "Running")
        self.assertTrue(self.bed.node.groups())
        self.bed.stop()
        self.assertEqual(marked_processes(self.bed.dir), [])
        self.assertEqual(self.bed.node.mounts(), [])
        self.assertEqual(self.bed.node.groups(), [])
        self.assertNotIn("10.98.7.", subprocess.run(["ip", "address"], capture_output=True, text=True).stdout)


if __name__ == "__main__":
    main(root=True)
