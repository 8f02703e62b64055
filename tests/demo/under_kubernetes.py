"""The play in which Kubernetes has the queue: a cluster of one node started for it, objects made and looked at by kubectl, and siding's
controller and agent behind it."""

import json
import os
import subprocess
import sys

import stage
from cluster import find_criu, wait_for
from isolated import CLONE_NEWNET, enter_mounts, make_network
from kubernetes import Kubernetes, programs
from kubernetes_siding import TOOLS, Siding, make_runtime_class, prepare_node
from stage import GREEN, OFF, RED, Failed, LiveTable, say

PODS, JOBS = "/api/v1/namespaces/default/pods", "/apis/batch/v1/namespaces/default/jobs"
REQUESTS = "/apis/siding.dev/v1alpha1/namespaces/default/ondemandrequests"
WITHIN = 300
# A chain of hashes over a table that changes with it: what is lost, doubled or begun again shows in the digest.
CHAIN = """
import hashlib
table = bytearray(hashlib.shake_256(b"siding").digest(64 << 20))
word = b""
for step in range(1, 81):
    for at in range(0, len(table), 1 << 20):
        word = hashlib.sha256(word + table[at:at + (1 << 20)]).digest()
        table[at:at + len(word)] = word
    for _ in range(200000):
        word = hashlib.sha256(word).digest()
    print(f"step {step} of 80: {word.hex()[:16]}", flush=True)
with open("PATH", "w") as file:
    file.write(word.hex())
"""
EVENTS = "custom-columns=REASON:.reason,MESSAGE:.message"
DIGESTS = "custom-columns=NAME:.metadata.name,STATUS:.status.phase,DIGEST:.status.containerStatuses[0].state.terminated.message"


def chain(path):
    """The program that writes its digest there."""
    return CHAIN.replace("PATH", str(path))


def missing():
    """What the play lacks here, in words; nothing: it can begin. Ends as skipped where tests/kubernetes/build has not been run."""
    programs()
    return "" if find_criu() else "the demo needs a criu that works here: run ./run setup as root and see what it says"


class Play:
    def __init__(self):
        # Mounts and network of the node are this process's own, and go with it.
        enter_mounts(CLONE_NEWNET)
        make_network()
        self.bed = Kubernetes(programs())
        self.dir = self.bed.dir
        self.siding = None
        self.work = self.dir / "work"
        self.work.mkdir()
        self.env = {**os.environ, "KUBECONFIG": str(self.dir / "admin.kubeconfig"), "HOME": str(self.dir),
                    "PATH": f"{self.bed.programs}/bin:{os.environ['PATH']}"}

    def stop(self):
        try:
            if self.siding:
                self.siding.stop()
        finally:
            self.bed.stop()

    def perform(self):
        expected = self.alone()
        say("A Kubernetes with one node, siding's controller and agent, and a Job that takes all CPUs")
        self.start()
        self.write("chain", self.job())
        self.write("steer", self.request())
        self.kubectl("get nodes")
        self.kubectl("apply -f chain.yaml")
        first = wait_for("the Job to run", lambda: self.steps_of(self.pod_that_runs()) >= 5 and self.pod_that_runs())
        self.table = LiveTable(self.siding)
        self.table.until("siding to know the Job", lambda jobs: self.in_state(jobs, "running"))
        self.kubectl("get pods")
        self.preempt(first)
        second, line = self.come_back(first)
        return self.verdict(expected, first["metadata"]["name"], second, line)

    # ---- the scenes ----
    def alone(self):
        say("The program alone, undisturbed: the digest to compare with")
        path = self.work / "digest"
        done = subprocess.run([sys.executable, "-c", chain(path)], stdout=subprocess.DEVNULL)
        if done.returncode != 0:
            raise Failed(f"the program ended with {done.returncode} without siding")
        digest = path.read_text()
        print(f"  {digest[:32]}")
        return digest

    def start(self):
        self.bed.start().start_node()
        make_runtime_class(self.bed)
        prepare_node(self.bed.node)
        self.siding = Siding(self.bed, "checkpointing")
        self.siding.define_requests()
        self.siding.start_controller()
        self.siding.start_agent(self.bed.node)
        wait_for("the agent to be known", lambda: self.siding.ctl("nodes").returncode == 0 and "up" in self.siding.ctl("nodes").stdout)

    def preempt(self, first):
        name = first["metadata"]["name"]
        say(f"steer: the whole node within {WITHIN} s")
        self.kubectl("apply -f steer.yaml")
        wait_for("the plan", lambda: self.state_of_request() in ("Planned", "Running"))
        self.kubectl("get odr")
        self.kubectl("get pods")
        self.table.until("steer to run", lambda _: self.state_of_request() in ("Running", "Completed"))
        self.kubectl("get odr")
        self.kubectl("get pods")
        print("\nWhy, on the pod that has made way:")
        self.events_of(name)

    def come_back(self, first):
        say("The way back")
        self.table.until("steer to end", lambda _: self.state_of_request() == "Completed")
        second = wait_for("the Job's next pod", lambda: self.pod_that_runs(but=first))
        self.table.until("the Job to be restored", lambda jobs: self.in_state(jobs, "running"))
        self.kubectl("get pods")
        print("\nOn the pod that came in its place:")
        self.events_of(second["metadata"]["name"])
        line = wait_for("its first line", lambda: self.log(second).partition("\n")[0])
        self.table.until("the Job to complete", lambda _: self.bed.call("GET", f"{JOBS}/chain")[1]["status"].get("succeeded"))
        self.kubectl("get jobs,odr")
        self.kubectl(f"get pods -o {DIGESTS}")
        return second["metadata"]["name"], line

    def verdict(self, expected, first, second, line):
        """`first`, `second`: the Job's pods; `line`: the first that the second one wrote."""
        say("Result")
        request = self.bed.call("GET", f"{REQUESTS}/steer")[1]["status"]
        met = request["started"] <= request["deadline"]  # both are of one form, in UTC
        print(f"  steer  deadline {'met' if met else RED + 'MISSED' + OFF}: started {request['started']}, the deadline was {request['deadline']}")
        continued = not line.startswith("step 1 ")
        print(f"  chain  {first} made way, {second} {'went on' if continued else RED + 'BEGAN AGAIN' + OFF} with {line}")
        state = self.bed.call("GET", f"{PODS}/{second}")[1]["status"]["containerStatuses"][0]["state"]
        digest = state.get("terminated", {}).get("message", "none")
        same = digest == expected
        print(f"         digest {digest[:16]}, undisturbed {expected[:16]}: {GREEN + 'same' + OFF if same else RED + 'DIFFERENT' + OFF}")
        return met and continued and same

    # ---- what users write ----
    def pod_spec(self, program, **more):
        cpus = self.bed.call("GET", f"/api/v1/nodes/{self.bed.node.name}")[1]["status"]["allocatable"]["cpu"]
        return {"restartPolicy": "Never", **more, "containers": [{
            "name": "main", "image": TOOLS, "imagePullPolicy": "Never", "args": ["-c", program], "resources": {"requests": {"cpu": cpus}}}]}

    def job(self):
        spec = self.pod_spec(chain("/dev/termination-log"), runtimeClassName="siding")
        template = {"metadata": {"annotations": {"siding.dev/preemptible": "checkpoint"}}, "spec": spec}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "chain"}, "spec": {"backoffLimit": 0, "template": template}}

    def request(self):
        return {"apiVersion": "siding.dev/v1alpha1", "kind": "OnDemandRequest", "metadata": {"name": "steer"}, "spec": {
            "startBy": f"+{WITHIN}s", "template": {"spec": self.pod_spec("import time; time.sleep(4)")}}}

    def write(self, name, body):
        (self.work / f"{name}.yaml").write_text(json.dumps(body, indent=1))  # JSON is YAML

    def kubectl(self, words):
        """As if it were typed in the user's folder."""
        print(f"\n$ kubectl {words}", flush=True)
        stage.show("sh", "-c", f"kubectl {words}", env=self.env, cwd=self.work)

    def events_of(self, name):
        self.kubectl(f"get events --field-selector involvedObject.name={name} --sort-by=.metadata.resourceVersion -o {EVENTS} | grep Siding")

    # ---- what is so ----
    @staticmethod
    def in_state(jobs, state):
        return any(job["state"] == state and job["spec"]["labels"].get("owner") == "Job/chain" for job in jobs.values())

    def state_of_request(self):
        return self.bed.call("GET", f"{REQUESTS}/steer")[1].get("status", {}).get("state")

    def pod_that_runs(self, but=None):
        return next((pod for pod in self.bed.call("GET", f"{PODS}?labelSelector=job-name=chain")[1]["items"]
                     if pod["status"].get("phase") == "Running" and (but is None or pod["metadata"]["uid"] != but["metadata"]["uid"])), None)

    def log(self, pod):
        """What it has written. kubectl would ask the API server, which does not trust this kubelet's certificate."""
        status, text = self.bed.node.log("default", pod["metadata"]["name"], "main")
        return text if status == 200 else ""

    def steps_of(self, pod):
        return self.log(pod).count("\n") if pod else 0
