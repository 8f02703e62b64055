"""An agent on a node of a real Kubernetes. There is no controller: tests give the agent its orders themselves, and do to the API
server what a controller would."""

import contextlib
import hashlib
import json
import pathlib
import socket
import subprocess

from case import BIN, MERGE_PATCH, PODS, Agents, KubernetesCase, eviction, marked_processes, wait_for
from kubernetes_siding import CLASSES, TOOLS, agent_args, make_runtime_class, prepare_node, use_siding_runc  # noqa: F401

JOBS = "/apis/batch/v1/namespaces/default/jobs"
NODE = "node1"
REDIS = "docker.io/siding/redis:1"
# Before a program: it has what cannot be put into an image.
TIMER = """
import ctypes, struct
timer = ctypes.CDLL(None).timerfd_create(1, 0)
ctypes.CDLL(None).timerfd_settime(timer, 0, struct.pack("4q", 0, 50000000, 0, 50000000), None)
"""


def lines_of(count):
    """What a program that writes one hash after the other has written by the time that it has written so many lines."""
    word, lines = "", []
    for number in range(count):
        word = hashlib.sha256(f"{word}{number}".encode()).hexdigest()
        lines.append(f"{number} {word}\n")
    return lines


class SavedPodsCase(KubernetesCase):
    """A node that makes pods by siding-runc, and Jobs of such pods."""

    with_node = True

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.make_class()
        cls.prepare(cls.bed.node)

    @classmethod
    def make_class(cls):
        make_runtime_class(cls.bed)

    @classmethod
    def prepare(cls, node):
        """For an agent and its pods."""
        prepare_node(node)

    def open(self, node, schedulable=True):
        """Whether pods are put there from now on."""
        status, answer = self.bed.call("PATCH", f"/api/v1/nodes/{node.name}", {"spec": {"unschedulable": not schedulable}},
                                       content=MERGE_PATCH)
        self.assertEqual(status, 200, answer)

    # ---- Jobs and their pods ----
    def job(self, name, program, annotations=None, retries=0, **spec):
        """Makes a Job of one pod that runs the text in Python, and may fail so often. Returns its first pod."""
        container = {"name": "main", "image": TOOLS, "imagePullPolicy": "Never", "args": ["-uc", program],
                     "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]}
        template = {"restartPolicy": "Never", "runtimeClassName": "siding", "terminationGracePeriodSeconds": 30,
                    "containers": [{**container, **spec.pop("container", {})}], "volumes": [{"name": "scratch", "emptyDir": {}}], **spec}
        self.made(JOBS, {"metadata": {"name": name}, "spec": {"backoffLimit": retries, "template": {
            "metadata": {"annotations": annotations or {}}, "spec": template}}})
        self.addCleanup(self.end_job, name)
        return self.wait_pod_of(name)

    def end_job(self, name):
        self.bed.call("DELETE", f"{JOBS}/{name}?propagationPolicy=Background", {})
        for pod in self.pods_of(name):
            self.delete_pod(pod)

    def delete_pod(self, pod):
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        self.bed.call("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})

    def pods_of(self, job):
        return self.bed.call("GET", f"{PODS}?labelSelector=job-name%3D{job}")[1]["items"]

    def wait_pod_of(self, job, but=()):
        """One that the scheduler has put on a node, and that is none of these."""
        seen = {pod["metadata"]["uid"] for pod in but}
        return wait_for(f"a pod of the job {job}", lambda: next(
            (p for p in self.pods_of(job) if p["metadata"]["uid"] not in seen and p["spec"].get("nodeName")), None))

    def now(self, pod):
        status, now = self.bed.call("GET", f"{PODS}/{pod['metadata']['name']}")
        return now if status == 200 and now["metadata"]["uid"] == pod["metadata"]["uid"] else None

    def job_status(self, name):
        return self.bed.call("GET", f"{JOBS}/{name}")[1]["status"]

    def node_of(self, pod):
        return next(node for node in self.bed.nodes if node.name == pod["spec"]["nodeName"])

    def log(self, pod):
        """What it has written so far; "" if it has not begun."""
        status, text = self.node_of(pod).log("default", pod["metadata"]["name"], "main")
        return text if status == 200 else ""

    def container(self, pod):
        """The runtime's id of its container. The kubelet writes it to the API server later than the container writes its log."""
        def told():
            statuses = (now := self.now(pod)) and now["status"].get("containerStatuses")
            return statuses and statuses[0].get("containerID", "").removeprefix("containerd://")
        return wait_for("the pod's container", told)

    def runc_state(self, container):
        """What runc says of it; None: it is gone."""
        for node in self.bed.nodes:
            done = subprocess.run([node.runc, "--root", node.dir / "runc/k8s.io", "state", container], capture_output=True, text=True)
            if done.returncode == 0:
                return json.loads(done.stdout)
        return None

    def path(self, pod, path):
        """Where the container's file is for us."""
        return pathlib.Path(f"/proc/{self.runc_state(self.container(pod))['pid']}/root{path}")

    def file(self, pod, path):
        """A file as the container sees it; "" if it is not there."""
        file = self.path(pod, path)
        return file.read_text() if file.exists() else ""

    def siding_runcs(self):
        """Processes that wait for the agent to say how a container is to start."""
        return [pid for pid in marked_processes(self.bed.node.dir / "siding-runc")]

    def is_being_made(self, pod):
        """A siding-runc waits to be told how a container of the pod is to start; its sandbox waits for nobody."""
        for pid in self.siding_runcs():
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0")
                bundle = pathlib.Path(words[words.index("--bundle") + 1])
                if "create" in words and f"/pods/{pod['metadata']['uid']}/" in (bundle / "config.json").read_text():
                    return True
            except (OSError, ValueError):
                continue  # it has ended meanwhile, or is another verb's
        return False

    @contextlib.contextmanager
    def settings(self, **settings):
        """Meanwhile siding-runc has these."""
        use_siding_runc(self.bed.node, **settings)
        try:
            yield
        finally:
            use_siding_runc(self.bed.node)

    def ask(self, pod, *questions):
        """What a redis in the pod answers. The connection is closed by the server."""
        address = wait_for("the pod's address", lambda: (now := self.now(pod)) and now["status"].get("podIP"))
        with socket.create_connection((address, 6379), 10) as connection:
            connection.sendall("".join(f"{question}\r\n" for question in (*questions, "QUIT")).encode())
            with connection.makefile() as answers:
                return answers.read().splitlines()[:-1]

    def described(self, pod):
        return self.bed.kubectl("describe", "pod", pod["metadata"]["name"]).stdout


class AgentCase(SavedPodsCase):
    """With an agent whose orders tests give themselves."""

    @classmethod
    def setUpClass(cls):
        cls.agents = None
        super().setUpClass()

    @classmethod
    def prepare(cls, node):
        super().prepare(node)
        if cls.agents is None:
            cls.agents = Agents(cls.bed.dir / "siding", [node.name])
            cls.addClassCleanup(cls.agents.stop)
            cls.where = {}  # the nodes of tasks
        cls.agents.args[node.name] = agent_args(node)
        cls.agents.before[node.name] = node.inside
        if cls.agents.gateway is None:
            cls.agents.start()

    def add_node(self):
        """One with an agent, where no pods are put unless it is opened."""
        node = self.bed.start_node()
        self.open(node, False)
        self.prepare(node)
        self.agents.start_agent(node.name)
        return node

    # ---- What a controller does ----
    def order(self, task, pod=None, **what):
        if pod is not None:
            self.where[task] = pod["spec"]["nodeName"]
        of = {} if pod is None else {"pod": {"space": "default", **{key: pod["metadata"][key] for key in ("name", "uid")}}}
        return self.agents.order(self.where[task], task, **of, **what)

    def report(self, task):
        return self.agents.report(self.where[task], task)

    def wait_phase(self, task, phase):
        return self.agents.wait_phase(self.where[task], task, phase)

    def launch(self, task, pod):
        self.order(task, pod, launch={"spec": {}})
        return self.wait_phase(task, "RUNNING")

    def dump(self, task, checkpoint, keep_running=False):
        """Returns the number of the order, when the image is whole."""
        op = self.order(task, dump={"checkpoint": checkpoint, "tier": "SHARED", "keepRunning": keep_running})
        self.wait_phase(task, "PREPARED")
        return op

    def commit(self, task, op):
        self.order(task, op=op, commit={})

    def wait_leaving(self, task):
        wait_for(f"task {task} to leave", lambda: self.report(task).get("leaves"))

    def remove(self, pod):
        """Takes a pod away whose container is not to run any more. Its owner makes another one."""
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        status, answer = self.bed.call("POST", f"{PODS}/{name}/eviction", eviction(name, preconditions={"uid": uid}, gracePeriodSeconds=0))
        self.assertEqual(status, 201, answer)
        wait_for(f"the pod {name} to be gone", lambda: self.now(pod) is None)

    def vacate(self, task, pod, checkpoint):
        """Takes a running pod off its node, into an image."""
        op = self.dump(task, checkpoint)
        self.commit(task, op)
        self.wait_leaving(task)
        self.remove(pod)
        self.order(task, podGone={})
        return self.wait_phase(task, "CHECKPOINTED")

    def order_restore(self, task, pod, image):
        """`image`: the report of the task that it was made of."""
        self.order(task, pod, restore={"spec": {}, "checkpoint": image["checkpoint"], "tier": "SHARED",
                                       "imageIncarnation": image["task"]["incarnation"], "imageDigest": image["imageDigest"]})

    def restore(self, task, pod, image):
        self.order_restore(task, pod, image)
        return self.wait_phase(task, "RUNNING")
