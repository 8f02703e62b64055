#!/usr/bin/python3
"""Pods that are saved, as the chart installs what that needs: the controller as a pod, agents as a DaemonSet."""

import base64
import json
import os
import pathlib
import shutil
import signal
import subprocess
import threading

import renderer
import yaml
from agent_case import NODE, TOOLS, SavedPodsCase
from authority import Authority
from case import MERGE_PATCH, PODS, main, marked_processes, pod, wait_for
from checkpoint_test import COUNT, lines_of
from cluster import find_criu
from in_cluster import InClusterCase
from kubernetes_image import write_tools_image

NAMESPACE, DAEMON_SET = "siding-agents", "/apis/apps/v1/namespaces/siding-agents/daemonsets/siding-agent"
CONTROLLER = "siding-0.siding.siding.svc"
NODES_END = "10.98.7.1"  # of the pods' network
CAP_SYS_RESOURCE = 24
BALLAST = 400 << 20  # takes criu a moment
NOWHERE = {"nowhere": "true"}


class SavedInCluster(InClusterCase, SavedPodsCase):
    @classmethod
    def setUpClass(cls):
        # As those of a node are: what is mounted for a container is seen by who has a copy.
        subprocess.run(["mount", "--make-rshared", "/"], check=True)
        super().setUpClass()

    # ---- What an administrator does ----
    @classmethod
    def make_class(cls):
        """It is the chart's."""

    @classmethod
    def prepare(cls, node):
        node.add_image(TOOLS, write_tools_image)
        cls.add_image("--with", find_criu(), "agent")
        # The line in containerd's configuration: the program that it calls is the one that the agent brings.
        (node.dir / "siding-runc").symlink_to(node.dir / "opt/siding/current/siding-runc")
        cls.authority = Authority(cls.bed.dir / "authority")
        # By its address for the API server, which finds no services here.
        cls.authority.make("controller", CONTROLLER, "127.0.0.1")
        own = node.dir / "etc"
        own.mkdir()
        for file, name in zip((cls.authority.ca, *cls.authority.files("node", NODE)), ("ca.pem", "node.pem", "node.key")):
            shutil.copy2(file, own / name)

    @classmethod
    def values(cls):
        node = cls.bed.node
        bundle = base64.b64encode(pathlib.Path(cls.authority.ca).read_bytes()).decode()
        return {"namespace": {"create": True}, "tls": {"secret": "siding-tls"}, "webhook": {"enabled": True, "caBundle": bundle}, "kubernetes": {"mode": "checkpointing"},
                "config": {"heartbeat": "1s"}, "policy": {"min_runtime": "0s", "cooldown": "0s", "margin": "500ms"},
                "agent": {"enabled": True, "sharedDir": f"{node.dir}/shared", "certificates": f"{node.dir}/etc",
                          "stateDir": f"{node.dir}/state/agent", "programs": f"{node.dir}/opt/siding", "runc": str(node.runc),
                          "podsSocket": f"{node.dir}/run/pods.sock"}}

    @classmethod
    def shipped(cls):
        """As the chart makes them, but for what the test bed lacks: names of services, and a right that its machine may not have."""
        texts = renderer.documents(renderer.render(renderer.place(), json.dumps(cls.values()), apis=("policy/v1beta1",)))
        objects = [yaml.safe_load(text) for text in texts]
        [spec] = [o["spec"]["template"]["spec"] for o in objects if o["kind"] == "DaemonSet"]
        spec["hostAliases"] = [{"ip": NODES_END, "hostnames": [CONTROLLER]}]
        capabilities = spec["containers"][0]["securityContext"]["capabilities"]["add"]
        status = dict(line.split(":\t", 1) for line in pathlib.Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
        if not int(status["CapBnd"], 16) >> CAP_SYS_RESOURCE & 1:
            capabilities.remove("SYS_RESOURCE")
        [asked] = [o["webhooks"] for o in objects if o["kind"] == "ValidatingWebhookConfiguration"]
        for hook in asked:
            del hook["clientConfig"]["service"]
            hook["clientConfig"]["url"] = "https://127.0.0.1:9443/"
        return [*objects, cls.certificates()]

    @classmethod
    def certificates(cls):
        return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "siding-tls", "namespace": "siding"},
                "stringData": {name: (cls.authority.dir / name).read_text() for name in ("ca.pem", "controller.pem", "controller.key")}}

    @classmethod
    def take_away(cls):
        cls.bed.kubectl("delete", "daemonset", "siding-agent", "-n", NAMESPACE)
        super().take_away()

    @classmethod
    def agent_pods(cls):
        return cls.bed.call("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")[1]["items"]

    @classmethod
    def agent_log(cls):
        return "\n".join(str(cls.bed.node.log(NAMESPACE, pod["metadata"]["name"], "agent")[1]) for pod in cls.agent_pods())

    def _show_logs(self):
        super()._show_logs()
        if self._outcome.result and (self._outcome.result.failures or self._outcome.result.errors):
            print(self.agent_log()[-8000:])
            print(self.bed.kubectl("get", "events", "-A").stdout[-4000:])

    def setUp(self):
        super().setUp()
        self.wait_agent()

    def wait_agent(self):
        def there():
            now = self.bed.call("GET", DAEMON_SET)[1]
            status = now["status"]
            return status.get("observedGeneration") == now["metadata"]["generation"] and status["desiredNumberScheduled"] == 1 and \
                status.get("updatedNumberScheduled") == status.get("numberAvailable") == 1
        try:
            wait_for("the agent", there)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.agent_log()}") from None

    def restart_agent(self):
        [before] = self.agent_pods()
        done = self.bed.kubectl("rollout", "restart", "daemonset/siding-agent", "-n", NAMESPACE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.wait_agent()
        [after] = self.agent_pods()
        self.assertNotEqual(before["metadata"]["uid"], after["metadata"]["uid"])

    def put_agents(self, selector):
        """On the nodes that have these labels as well."""
        status, answer = self.bed.call("PATCH", DAEMON_SET, {"spec": {"template": {"spec": {"nodeSelector": selector}}}},
                                       content=MERGE_PATCH)
        self.assertEqual(status, 200, answer)

    def kill_agent_in_dump(self):
        """The container as a whole, as the kubelet or a lack of memory does."""
        criu = wait_for("criu", lambda: marked_processes(f"{os.path.realpath(self.bed.node.dir / 'opt/siding/current')}/programs/criu"))
        print(criu)
        os.kill(int(self.pid_of(self.agent_container())), signal.SIGKILL)

    def agent_container(self):
        [agent] = self.agent_pods()
        return agent["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")

    def pid_of(self, container):
        lines = self.bed.node.ctr("tasks", "ls").stdout.splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith(container)))

    def siding_runcs(self):
        """Their containers' first processes are not there yet."""
        return marked_processes(f"{os.path.realpath(self.bed.node.dir / 'opt/siding/current')}/programs/siding-runc")

    # ---- What a user does and sees ----
    def most(self):
        """Of the node's CPUs: there is no room beside it for another that wants as much."""
        _, node = self.bed.call("GET", f"/api/v1/nodes/{NODE}")
        allocatable = node["status"]["allocatable"]["cpu"]
        millis = int(allocatable[:-1]) if allocatable.endswith("m") else int(allocatable) * 1000
        return {"resources": {"requests": {"cpu": f"{millis - 500}m"}}}

    def batch(self, name, program=COUNT):
        pod = self.job(name, program, annotations={"siding.dev/preemptible": "checkpoint"}, container=self.most())
        self.wait_lines(pod, 10)
        self.wait_state(name, "running")
        return pod

    def wait_lines(self, pod, count):
        wait_for(f"{count} lines of {pod['metadata']['name']}", lambda: self.log(pod).count("\n") >= count)

    def wait_state(self, name, state):
        def records():
            jobs = json.loads(self.ctl("jobs", "--all", "--json"))["jobs"]
            return [job for job in jobs if job["spec"]["labels"].get("owner") == f"Job/{name}" and job["state"] == state]
        return wait_for(f"the job of {name} to be {state}", records)

    def vacate(self, name, first, urgent):
        """The pod makes way for one with a deadline, which runs then."""
        body = pod(urgent, schedulerName="siding")
        body["metadata"]["annotations"] = {"siding.dev/start-by": "+10m"}
        body["spec"]["containers"][0].update(self.most())
        self.made(PODS, body)
        self.addCleanup(self.finish, urgent)
        wait_for(f"pod {urgent} to run", lambda: self.bed.call("GET", f"{PODS}/{urgent}")[1]["status"].get("phase") == "Running")
        self.assertIsNone(self.now(first))
        self.wait_state(name, "parked")

    def finish(self, urgent):
        self.bed.call("DELETE", f"{PODS}/{urgent}", {"gracePeriodSeconds": 0})

    def assert_goes_on(self, pod):
        """What it and those before it have written into their volume is what one would have written alone, and it writes more."""
        text = wait_for("its volume", lambda: self.file(pod, "/scratch/count"))
        wait_for("more lines in its volume", lambda: self.file(pod, "/scratch/count").count("\n") > text.count("\n") + 10)
        text = self.file(pod, "/scratch/count")
        lines = text[:text.rindex("\n") + 1].splitlines(keepends=True)
        self.assertEqual(lines, lines_of(len(lines)))

    # ---- ----
    def test_a_pod_makes_way_and_comes_back_and_agents_are_renewed_meanwhile(self):
        first = self.batch("victim")
        before = self.container(first)
        self.restart_agent()
        self.assert_goes_on(first)
        self.assertEqual(self.container(first), before)
        self.vacate("victim", first, "steer")
        self.restart_agent()
        self.finish("steer")
        second = self.wait_pod_of("victim", but=[first])
        self.wait_lines(second, 10)
        self.assertGreaterEqual(int(self.log(second).split(" ", 1)[0]), 10)  # it did not begin again
        self.restart_agent()
        self.assert_goes_on(second)
        status = self.job_status("victim")
        self.assertEqual((status.get("active"), status.get("failed"), status.get("conditions")), (1, None, None))

    def test_an_agent_that_is_killed_with_its_container_during_a_dump_harms_no_pod(self):
        first = self.batch("large", f"import os\nballast = os.urandom({BALLAST})\n{COUNT}")
        killer = threading.Thread(target=self.kill_agent_in_dump)
        killer.start()
        self.addCleanup(killer.join)
        self.vacate("large", first, "steer")
        killer.join()
        self.finish("steer")
        self.assert_goes_on(self.wait_pod_of("large", but=[first]))
        self.assertIsNone(self.job_status("large").get("failed"))

    def test_a_pod_that_starts_while_there_is_no_agent_waits_for_it(self):
        self.put_agents(NOWHERE)
        try:
            # A kubelet that has missed the end of a pod looks again when it syncs it, after a minute or more.
            wait_for("the agent to be gone", lambda: not self.agent_pods())
            made = self.job("patient", COUNT, annotations={"siding.dev/preemptible": "checkpoint"}, container=self.most())
            wait_for("siding-runc to wait", self.siding_runcs)
            self.assertEqual(self.log(made), "")
        finally:
            self.put_agents({"nowhere": None})
        self.wait_lines(made, 10)
        self.assertEqual(self.job_status("patient").get("failed"), None)

    # ---- What kubectl says when something is applied ----
    def apply(self, body):
        return self.bed.kubectl("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", **body}))

    def test_nonsense_is_refused_when_it_is_applied_with_the_fields_name(self):
        wrong = {**pod("wrong"), "kind": "Pod"}
        wrong["metadata"]["annotations"] = {"siding.dev/preemptible": "sometimes"}
        done = self.apply(wrong)
        self.assertIn('admission webhook "pods.siding.dev" denied the request: metadata: siding.dev/preemptible: expected suspend', done.stderr)
        self.assertEqual(self.bed.call("GET", f"{PODS}/wrong")[0], 404)

    def test_a_job_that_could_not_be_saved_is_made_with_a_warning(self):
        spec = {**pod("unused")["spec"], "restartPolicy": "Never", "runtimeClassName": "siding", "hostNetwork": True}
        template = {"metadata": {"annotations": {"siding.dev/preemptible": "checkpoint"}}, "spec": spec}
        done = self.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "warned"},
                           "spec": {"parallelism": 0, "template": template}})
        self.addCleanup(self.bed.kubectl, "delete", "job", "warned")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Warning: siding cannot save this pod: it has spec.hostNetwork; it does not make way", done.stderr)

    def test_what_the_agent_may_do_on_the_node(self):
        status = pathlib.Path(f"/proc/{self.pid_of(self.agent_container())}/status").read_text()
        [bounding] = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapBnd")]
        own = [o for o in self.shipped() if o["kind"] == "DaemonSet"][0]["spec"]["template"]["spec"]["containers"][0]
        self.assertEqual(bounding.bit_count(), len(own["securityContext"]["capabilities"]["add"]))

    def test_the_programs_are_the_nodes_own_and_old_ones_go(self):
        folder = self.bed.node.dir / "opt/siding"
        self.assertEqual(sorted(path.name for path in folder.glob("programs-*")), [os.readlink(folder / "current")])


if __name__ == "__main__":
    if not renderer.place().exists():
        renderer.debian().cannot("the chart's renderer is not built: tests/kubernetes/render makes it")
    main(root=True)
