#!/usr/bin/python3
"""sidingd as a pod of the cluster: the plain manifests and the image as they are shipped, on a real node."""

import json
import os
import pathlib
import subprocess
import urllib.request

import yaml
from case import MERGE_PATCH, PATIENCE, PODS, ROOT, main, pod, wait_for
from in_cluster import DEPLOY, OWN, USER, InClusterCase


class InCluster(InClusterCase):
    @classmethod
    def shipped(cls):
        return list(yaml.safe_load_all((DEPLOY / "siding.yaml").read_text()))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.make_operator()

    @classmethod
    def make_operator(cls):
        """Binds one to the roles that are shipped."""
        for words in (["clusterrolebinding", "operator", "--clusterrole=siding-operator"],
                      ["rolebinding", "operator", "--role=siding-operator", "-n", "siding"]):
            bound = cls.bed.kubectl("create", *words, "--user=operator")
            assert bound.returncode == 0, bound.stderr

    def plugin(self, *words, user="operator"):
        """`kubectl siding`; its completed process."""
        return subprocess.run(["kubectl", "siding", *words], capture_output=True, text=True, timeout=PATIENCE, env={
            "PATH": f"{self.bed.programs}/bin:{ROOT}/cli:{os.environ['PATH']}", "HOME": str(self.bed.dir),
            "KUBECONFIG": f"{self.bed.dir}/{user}.kubeconfig"})

    def says(self, *words, user="operator"):
        done = self.plugin(*words, user=user)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def fails(self, *words, status=1, user="operator"):
        """What it says then."""
        done = self.plugin(*words, user=user)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stderr

    def most(self, name, annotations, **spec):
        """A pod for most of the node, besides which there is no room for another."""
        _, node = self.bed.call("GET", "/api/v1/nodes/node1")
        allocatable = node["status"]["allocatable"]["cpu"]
        most = (int(allocatable[:-1]) if allocatable.endswith("m") else int(allocatable) * 1000) - 500
        body = pod(name, **spec)
        body["metadata"]["annotations"] = {f"siding.dev/{key}": value for key, value in annotations.items()}
        body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": f"{most}m"}}
        self.made(PODS, body)
        self.addCleanup(self.gone, name)

    def gone(self, name):
        self.bed.call("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})
        wait_for(f"pod {name} to be gone", lambda: self.bed.call("GET", f"{PODS}/{name}")[0] == 404)

    def wait_running(self, name):
        wait_for(f"pod {name} to run", lambda: self.bed.call("GET", f"{PODS}/{name}")[1]["status"].get("phase") == "Running")

    def play(self, victim, urgent):
        self.most(victim, {"preemptible": "kill"}, schedulerName="default-scheduler")
        self.wait_running(victim)
        wait_for("siding to know the pod", lambda: "running" in self.ctl("jobs"))
        self.most(urgent, {"start-by": "+10m"}, schedulerName="siding")
        self.wait_running(urgent)
        self.assertEqual(self.bed.call("GET", f"{PODS}/{victim}")[0], 404)

    def test_a_pod_makes_way_for_one_with_a_deadline(self):
        self.play("victim", "steer")
        _, events = self.bed.call("GET", "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dsteer")
        self.assertIn("SidingPlanned", [event["reason"] for event in events["items"]])

    def test_what_it_may_do_on_the_node(self):
        process = pathlib.Path("/proc", self.pid())
        status = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines() if ":\t" in line)
        self.assertEqual(set(status["Uid"].split()) | set(status["Gid"].split()), {str(USER)})
        self.assertEqual({status[f"Cap{kind}"] for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")}, {"0" * 16})
        self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
        [root] = [line.split()[5] for line in (process / "mountinfo").read_text().splitlines() if line.split()[4] == "/"]
        self.assertIn("ro", root.split(","))

    def test_one_that_was_killed_goes_on_with_its_journal(self):
        before = self.ctl("--json", "events")
        restarts = self.own_container()["restartCount"]
        os.kill(int(self.pid()), 9)
        wait_for("the kubelet to start it again", lambda: self.own_container()["restartCount"] > restarts)
        self.wait_ready()
        self.assertTrue(self.ctl("--json", "events").startswith(before))
        self.play("second", "steer2")

    def test_a_policy_that_is_changed_is_in_force_without_a_restart(self):
        restarts = self.own_container()["restartCount"]
        _, current = self.bed.call("GET", f"{OWN}/configmaps/siding-policy")
        text = current["data"]["policy.yaml"]
        self.addCleanup(self.bed.call, "PATCH", f"{OWN}/configmaps/siding-policy", {"data": {"policy.yaml": text}}, content=MERGE_PATCH)
        self.bed.call("PATCH", f"{OWN}/configmaps/siding-policy", {"data": {"policy.yaml": f"{text}max_jobs_per_user: 4321\n"}},
                      content=MERGE_PATCH)
        wait_for("the new policy", lambda: "4321" in self.ctl("policy", "show"))
        self.assertEqual(self.own_container()["restartCount"], restarts)

    def test_its_metrics_are_served_at_the_nodes_addresses(self):
        listed = json.loads(subprocess.run(["ip", "-json", "address"], capture_output=True, text=True, check=True).stdout)
        address = next(a["local"] for device in listed for a in device["addr_info"] if a["family"] == "inet" and a["scope"] == "global")
        answer = urllib.request.urlopen(f"http://{address}:9108/metrics", timeout=PATIENCE).read().decode()
        self.assertIn("siding_leader 1", answer)

    # ---- kubectl siding ----
    def known(self, name, annotations, **spec):
        """A pod that siding knows. Returns its number."""
        self.most(name, annotations, schedulerName="default-scheduler", **spec)
        self.wait_running(name)
        number = wait_for("its number", lambda: self.bed.call("GET", f"{PODS}/{name}")[1]["metadata"]["annotations"].get("siding.dev/job"))
        wait_for("siding to know that it runs", lambda: "running" in self.says("jobs", name))
        return number

    def test_kubectl_siding_shows_the_jobs_that_pods_are(self):
        number = self.known("shown", {"preemptible": "kill"})
        self.assertRegex(self.says("jobs", "shown"), rf"(?m)^ *{number} .*running")
        self.assertRegex(self.says("jobs", "node/node1"), rf"(?m)^ *{number} .*running")
        self.assertEqual([job["id"] for job in json.loads(self.says("jobs", "pod/shown", "-n", "default", "-o", "json"))["jobs"]], [number])

    def test_kubectl_siding_explains_the_plan_of_a_pod(self):
        self.play("third", "steer3")
        self.assertRegex(self.says("explain", "steer3"), r"plan: node1 free .*\n  kill job [0-9]+ \(third\)")

    def test_kubectl_siding_plans_without_a_pod(self):
        self.assertIn("plan: node1 free", self.says("plan", "--start-by", "+60s", "--nodes=1", "--slots", "100"))
        self.assertIn("start_by", self.fails("plan", "--nodes", "1", status=2))

    def test_kubectl_siding_says_why_a_pod_is_not_vacated(self):
        number = self.known("stays", {"preemptible": "kill"})
        self.assertIn(f"job {number}", self.fails("vacate", "stays"))
        self.gone("stays")
        self.assertIn("no pod on the node node1 is a job of siding's", self.fails("suspend", "node/node1"))

    def test_kubectl_siding_names_what_is_missing(self):
        self.assertIn("there is no pod nobody in the namespace default", self.fails("explain", "nobody"))
        self.assertIn("there is no node nowhere", self.fails("jobs", "node/nowhere"))
        self.assertIn("no controller runs as a pod of the namespace default", self.fails("jobs", "--siding-namespace", "default", status=3))
        self.assertIn('"frob": expected a verb', self.fails("frob", status=2))
        self.assertIn('"real": expected node/ with a name', self.fails("lost", "real", status=2))

    def test_kubectl_siding_says_that_a_node_is_lost(self):
        self.assertIn("nowhere", self.fails("lost", "node/nowhere"))
        self.assertIn("node1 is there", self.fails("lost", "node/nowhere", "node/node1"))

    def test_kubectl_siding_says_why_a_pod_has_no_number(self):
        self.made(PODS, pod("plain"))
        self.addCleanup(self.gone, "plain")
        self.assertIn("it asks nothing of it", self.fails("explain", "plain"))
        self.most("wrong", {"preemptible": "sometimes"})
        said = wait_for("the refusal", lambda: "expected suspend" in (said := self.fails("explain", "wrong")) and said)
        self.assertIn("siding leaves it alone: ", said)

    def test_kubectl_siding_believes_no_number_that_a_user_has_written(self):
        number = self.known("real", {"preemptible": "kill"})
        self.assertEqual(self.bed.kubectl("create", "namespace", "elsewhere").returncode, 0)
        wait_for("the account's token", lambda: self.bed.has_account("elsewhere"))
        forged = pod("forged")
        forged["metadata"]["annotations"] = {"siding.dev/job": number}
        self.made("/api/v1/namespaces/elsewhere/pods", forged)
        self.assertIn("is not siding's", self.fails("suspend", "forged", "-n", "elsewhere"))

    def test_kubectl_siding_believes_no_namespace_that_a_user_has_written(self):
        number = self.known("own", {"preemptible": "kill"})
        for name, annotation in (("blank", f"{number} default Running"), ("lines", f"{number} default Running\nx")):
            self.bed.kubectl("create", "namespace", name)
            wait_for("the account's token", lambda: self.bed.has_account(name))
            forged = pod("forged")
            forged["metadata"]["annotations"] = {"siding.dev/job": annotation}
            self.made(f"/api/v1/namespaces/{name}/pods", forged)
            self.assertIn("has no number", self.fails("suspend", "forged", "-n", name))
        self.gone("own")
        wait_for("siding to know that it is gone", lambda: "running" not in self.says("jobs"))
        self.assertIn("no pod on the node node1 is a job", self.fails("suspend", "node/node1"))

    def test_kubectl_siding_takes_no_target_for_a_pattern(self):
        self.assertIn("expected a name", self.fails("suspend", "*", status=2))

    def test_kubectl_siding_names_the_right_that_it_needs(self):
        self.assertIn("the right to list pods in the namespace siding", self.fails("jobs", user="nobody"))
        self.bed.kubectl("create", "clusterrolebinding", "looker", "--clusterrole=view", "--user=nobody")
        self.addCleanup(self.bed.kubectl, "delete", "clusterrolebinding", "looker")
        wait_for("the right", lambda: "pods/exec" in self.fails("jobs", user="nobody"))
        self.assertIn("the right to create pods/exec in the namespace siding", self.fails("jobs", user="nobody"))


if __name__ == "__main__":
    main(root=True)
