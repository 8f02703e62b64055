#!/usr/bin/python3
"""Pods that make way and come back while parts of the cluster fail: kubelet and containerd are killed at each step, a node is lost, the
controller's token is not taken any more, a right is taken away."""

import base64

from case import MERGE_PATCH, PODS, kill, kill9, main, paths, wait_for
from checkpoint_case import CheckpointCase
from vanishing import pids_below

ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/siding"


class Outages(CheckpointCase):
    # ---- kubelet and containerd ----
    def held_agent(self, point):
        """The agent stands still at this point until the returned file is there."""
        go = self.bed.dir / f"go-{point}"
        go.unlink(missing_ok=True)  # an earlier test of this bed has made it
        kill9(self.agent)
        self.start_agent(SIDING_FAULT=f"{point}=hold={go}")
        return go

    def images(self, name, file, where="images"):
        """Files of this Job's images in the shared folder, where other tests' may still be."""
        return [path for job in self.of_owner(name) for path in paths(self.state, f"shared/{where}/kubernetes-{job['id']}.*/**/{file}")]

    def kill_the_nodes_own(self):
        """One after the other, each of which is started again."""
        node = self.bed.node
        self.bed.kill9(node.containerd)
        node.run_containerd()
        self.bed.kill9(node.kubelet)
        self.start_kubelet()

    def start_kubelet(self):
        self.bed.node.run_kubelet()
        wait_for("the kubelet to answer", self.bed.node.kubelet_answers)

    def test_kubelet_and_containerd_die_while_a_pod_is_dumped(self):
        first = self.batch("dumped")
        go = self.held_agent("agent.pod.dumped")
        self.wait_state("dumped", "running")
        self.urgent("steer")
        wait_for("the dump", lambda: self.images("dumped", "inventory.img", where="*"))
        self.kill_the_nodes_own()
        go.touch()
        self.wait_running("steer")
        self.finish("steer")
        self.assert_went_on("dumped", first)
        self.assert_blameless("dumped")

    def test_kubelet_and_containerd_die_when_an_image_counts(self):
        first = self.batch("counted")
        go = self.held_agent("agent.pod.committed")
        self.wait_state("counted", "running")
        self.urgent("steer")
        wait_for("the image", lambda: self.images("counted", "manifest*"))
        self.kill_the_nodes_own()
        go.touch()
        self.wait_running("steer")
        self.finish("steer")
        self.assert_went_on("counted", first)
        self.assert_blameless("counted")

    def test_a_pod_leaves_while_kubelet_and_containerd_are_away(self):
        first = self.batch("left")
        node = self.bed.node
        go = self.held_agent("agent.pod.committed")
        self.wait_state("left", "running")
        self.urgent("steer")
        wait_for("the image", lambda: self.images("left", "manifest*"))
        self.bed.kill9(node.kubelet)
        self.bed.kill9(node.containerd)
        go.touch()
        wait_for("the pod to be gone", lambda: self.now(first) is None)
        node.run_containerd()
        self.start_kubelet()
        self.wait_running("steer")
        self.finish("steer")
        self.assert_went_on("left", first)
        self.assert_blameless("left")

    def test_kubelet_and_containerd_die_while_a_job_waits(self):
        first = self.batch("waits")
        self.vacate("waits", first, "steer")
        self.kill_the_nodes_own()
        self.finish("steer")
        self.assert_went_on("waits", first)
        self.assert_blameless("waits")

    def test_kubelet_and_containerd_die_while_a_pod_is_restored(self):
        # What they were about to start counts as a failure of the Job with some versions, so it may have one.
        first = self.batch("restored", retries=3)
        self.vacate("restored", first, "steer")
        go = self.held_agent("agent.pod.restore")
        self.finish("steer")
        second = self.wait_pod_of("restored", but=[first])
        self.wait_state("restored", "restoring")
        self.kill_the_nodes_own()
        go.touch()
        wait_for("one that runs", lambda: any(pod["status"].get("phase") == "Running" for pod in self.pods_of("restored")))
        running = next(pod for pod in self.pods_of("restored") if pod["status"].get("phase") == "Running")
        before = [pod for pod in (first, second) if pod["metadata"]["uid"] != running["metadata"]["uid"]]
        self.assert_went_on("restored", *before)

    # ---- the controller's account ----
    def new_token(self):
        """The account's token is taken no more, and another is given out. Returns that."""
        account = "/api/v1/namespaces/siding/serviceaccounts/siding"
        secret = self.bed.call("GET", account)[1]["secrets"][0]["name"]
        self.bed.tokens["siding"] = (self.siding.dir / "token").read_text()
        self.assertEqual(self.bed.call("DELETE", f"/api/v1/namespaces/siding/secrets/{secret}", {})[0], 200)

        def another():
            secrets = self.bed.call("GET", account)[1].get("secrets", ())
            status, made = self.bed.call("GET", f"/api/v1/namespaces/siding/secrets/{secrets[0]['name']}") if secrets else (404, {})
            return made.get("data", {}).get("token") if status == 200 and secrets[0]["name"] != secret else None
        token = base64.b64decode(wait_for("another token", another)).decode()
        # The server remembers for a moment whom it has believed.
        wait_for("the old one to be refused", lambda: self.bed.call("GET", PODS, user="siding")[0] == 401)
        return token

    def test_a_token_that_is_taken_no_more_stops_nothing_that_runs(self):
        first = self.batch("patient")
        logged = len(self.siding.log.read_text())
        token = self.new_token()
        self.urgent("later")
        wait_for("the log to say so", lambda: "401 Unauthorized" in self.siding.log.read_text()[logged:])
        self.wait_lines(first, self.log(first).count("\n") + 20)
        (self.siding.dir / "token").write_text(token)
        self.wait_running("later")
        self.finish("later")
        self.assert_went_on("patient", first)
        self.assert_blameless("patient")

    def without(self, resource):
        """The role's rules but those on this resource; puts them back at the end of the test."""
        role = self.bed.call("GET", ROLE)[1]["rules"]
        self.addCleanup(self.bed.call, "PATCH", ROLE, {"rules": role}, content=MERGE_PATCH)
        return role, [rule for rule in role if resource not in rule["resources"]]

    def test_without_the_right_to_evict_a_pod_runs_on_until_it_is_given(self):
        first = self.batch("kept")
        every, fewer = self.without("pods/eviction")
        self.assertLess(len(fewer), len(every))
        self.bed.call("PATCH", ROLE, {"rules": fewer}, content=MERGE_PATCH)
        wait_for("the right to be gone", lambda: "pods/eviction" in self.check_config())
        self.urgent("steer")
        wait_for("the order", lambda: self.events(first["metadata"]["name"], "SidingOrderDump"))
        self.wait_lines(first, self.log(first).count("\n") + 40)
        self.assertEqual(self.images("kept", "*.img"), [])
        self.bed.call("PATCH", ROLE, {"rules": every}, content=MERGE_PATCH)
        self.wait_running("steer")
        self.finish("steer")
        self.assert_went_on("kept", first)
        self.assert_blameless("kept")


class LostNode(CheckpointCase):
    """Of two nodes the second one is lost."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lost = cls.start_node_with_agent()

    def lose(self):
        """As when its power fails: nothing on it runs any more, and nobody has been told."""
        kill9(self.siding.agents[self.lost.name])
        for program in (self.lost.kubelet, self.lost.containerd):
            self.bed.kill9(program)
        kill({pid for group in self.lost.groups() for pid in pids_below(group)})

    def test_a_pod_goes_on_on_another_node_when_its_own_is_lost_and_removed(self):
        self.open(self.bed.node, False)
        first = self.batch("moved", interval="3s")
        self.assertEqual(first["spec"]["nodeName"], self.lost.name)
        self.wait_image(first)
        self.lose()
        self.open(self.bed.node)
        self.assertEqual(self.bed.kubectl("delete", "node", self.lost.name, "--wait=false").returncode, 0)
        self.bed.kubectl("delete", "pod", first["metadata"]["name"], "--force", "--grace-period=0")
        self.ctl("lost", self.lost.name)
        second = self.assert_went_on("moved", first)
        self.assertEqual(second["spec"]["nodeName"], self.bed.node.name)
        self.assert_blameless("moved")


if __name__ == "__main__":
    main(root=True)
