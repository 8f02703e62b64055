"""A controller and an agent on a real node, and what tests do with Jobs whose pods make way with their memory."""

import json

from agent_case import SavedPodsCase, lines_of
from case import ROOT, kill9, wait_for
from controller import ControllerCase

# Each line follows from the one before it: what is lost, doubled or begun again shows. It ends when a test opens its gate.
COUNT = """
import hashlib, itertools, os, time
file = open("/scratch/count", "a")
word = ""
for number in itertools.count():
    word = hashlib.sha256(f"{word}{number}".encode()).hexdigest()
    for to in (None, file):
        print(f"{number} {word}\\n", end="", file=to, flush=True)  # in one write: a line is in one pod's log
    time.sleep(0.05)
    if os.path.exists("/scratch/gate"):
        break
"""

DEFINITIONS = ROOT / "deploy/kubernetes/crds.yaml"
CHECKPOINTS = "/apis/siding.dev/v1alpha1/namespaces/default/checkpoints"
BUDGETS = "/apis/policy/v1beta1/namespaces/default/poddisruptionbudgets"


class CheckpointCase(ControllerCase, SavedPodsCase):
    mode = "checkpointing"

    @classmethod
    def start_node_with_agent(cls):
        node = cls.bed.start_node()
        cls.prepare(node)
        cls.siding.start_agent(node)
        return node

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.start_agent()
        cls.define()

    @classmethod
    def define(cls):
        """A controller that finds no checkpoints looks again later: it is started again instead."""
        # Its kubectl knows no x-kubernetes-validations, and neither does the server, which drops them.
        applied = cls.bed.kubectl("apply", "--validate=false", "-f", DEFINITIONS)
        assert applied.returncode == 0, applied.stderr
        wait_for("checkpoints to be served", lambda: cls.bed.call("GET", CHECKPOINTS)[0] == 200)
        # kubectl remembers for minutes what it has seen, short names included.
        wait_for("kubectl to know them", lambda: "checkpoints" in cls.bed.kubectl("api-resources", "--cached=false", "-o", "name").stdout)
        kill9(cls.controller)
        cls.start_controller()

    @classmethod
    def start_agent(cls, **variables):
        cls.siding.start_agent(cls.bed.node, **variables)
        cls.agent = cls.siding.agent

    def _show_logs(self):
        super()._show_logs()
        if self._outcome.result and (self._outcome.result.failures or self._outcome.result.errors):
            print(self.siding.agent_log.read_text()[-8000:])

    # ---- What a user does and sees ----
    def batch(self, name, methods="checkpoint", program=COUNT, interval=None, retries=0, **spec):
        """A Job of one pod that takes all CPUs of the node. Returns its pod when siding knows it to run."""
        wide = {"resources": {"requests": {"cpu": self.cpus()}}}
        said = {"siding.dev/preemptible": methods, **({"siding.dev/checkpoint-interval": interval} if interval else {})}
        pod = self.job(name, program, annotations=said, retries=retries, container=wide, **spec)
        self.wait_lines(pod, 10)
        self.wait_state(name, "running")
        return pod

    def urgent(self, name, start_by="+10m"):
        body = self.annotated(name, {"start-by": start_by}, schedulerName="siding")
        applied = self.bed.kubectl("apply", "-f", "-", text=json.dumps(body))
        self.assertEqual(applied.returncode, 0, applied.stderr)
        self.addCleanup(self.finish, name)

    def finish(self, name):
        """The work of a pod with a deadline is done."""
        if self.pod_now(name):
            self.delete(name)

    def of_owner(self, name):
        """siding's records of the jobs that the pods of this Job are."""
        return [job for job in json.loads(self.ctl("jobs", "--all", "--json"))["jobs"] if job["spec"]["labels"].get("owner") == f"Job/{name}"]

    def guard_job(self, name):
        """A disruption budget that lets the Job's pod not go."""
        self.made(BUDGETS, {"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"job-name": name}}}})
        self.addCleanup(self.bed.call, "DELETE", f"{BUDGETS}/{name}", {})
        wait_for("the budget to count the pod", lambda: self.bed.call("GET", f"{BUDGETS}/{name}")[1]["status"].get("currentHealthy"))

    def wait_state(self, name, state):
        return wait_for(f"the job of {name} to be {state}",
                        lambda: next((job for job in self.of_owner(name) if job["state"] == state), None))

    def open_gate(self, pod):
        self.path(pod, "/scratch/gate").touch()

    def wait_lines(self, pod, count):
        wait_for(f"{count} lines of {pod['metadata']['name']}", lambda: self.log(pod).count("\n") >= count)

    def vacate(self, name, pod, urgent):
        """The pod makes way for one with a deadline, which runs then."""
        self.urgent(urgent)
        self.wait_running(urgent)
        wait_for("the pod to be gone", lambda: self.now(pod) is None)

    def assert_went_on(self, name, *pods, wait=True):
        """What all its pods have written, one after the other, is what one would have written alone. The last one runs."""
        second = self.wait_pod_of(name, but=pods)
        self.wait_lines(second, 10)
        wait_for("the lines in its volume", lambda: self.file(second, "/scratch/count").count("\n") > 20)
        text = self.file(second, "/scratch/count")
        lines = text[:text.rindex("\n") + 1].splitlines(keepends=True)
        self.assertEqual(lines, lines_of(len(lines)))
        first = int(self.log(second).split(" ", 1)[0])
        self.assertGreaterEqual(first, 10)  # it did not begin again
        return second

    def checkpoints_of(self, name):
        """The objects that users see of the images of this Job's pods."""
        return [one for one in self.bed.call("GET", CHECKPOINTS)[1]["items"] if one.get("status", {}).get("owner") == f"Job/{name}"]

    def wait_durable(self, name):
        return wait_for("a durable checkpoint", lambda: next((c for c in self.checkpoints_of(name) if c["status"]["durable"]), None))

    def assert_blameless(self, name):
        status = self.job_status(name)
        self.assertEqual((status.get("active"), status.get("failed"), status.get("conditions")), (1, None, None))

    def wait_image(self, pod):
        wait_for("an image", lambda: self.events(pod["metadata"]["name"], "SidingContinued"))

    def kill_controller(self):
        kill9(self.controller)

    def kill_agent(self):
        kill9(self.agent)
