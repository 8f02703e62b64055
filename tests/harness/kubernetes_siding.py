"""siding on a private Kubernetes: a controller with the rights that are shipped, and an agent for the pods of a node. Everything is
below the bed's folder."""

import base64
import json
import os
import subprocess

from cluster import BIN, PATIENCE, ROOT, find_criu, wait_for
from kubernetes import KubernetesError
from kubernetes_image import write_tools_image

RIGHTS, REQUESTS = ROOT / "deploy/kubernetes/rbac.yaml", ROOT / "deploy/kubernetes/crds.yaml"
CLASSES, TOOLS = "/apis/node.k8s.io/v1/runtimeclasses", "docker.io/siding/tools:1"
POLICY = "min_runtime: 0s\ncooldown: 0s\nmargin: 500ms\n"


# ---- What pods that are saved need ----
def make_runtime_class(bed):
    status, answer = bed.call("POST", CLASSES, {"metadata": {"name": "siding"}, "handler": "siding"})
    assert status == 201, answer


def pods_socket(node):
    return node.kubernetes.dir / f"pods-{node.number}.sock"


def use_siding_runc(node, **settings):
    node.use_siding_runc(BIN / "siding-runc", **{"criu": os.path.dirname(find_criu()), "socket": pods_socket(node), **settings})


def prepare_node(node):
    """For an agent and its pods, of the image TOOLS."""
    node.add_image(TOOLS, write_tools_image)
    use_siding_runc(node)


def agent_args(node):
    return ["--pods-socket", pods_socket(node), "--runc", node.runc]


class Siding:
    """Of a Kubernetes that has been started. start_controller() and start_agent() as often as they are ended."""

    def __init__(self, bed, mode):
        self.bed = bed
        self.dir = bed.dir / "siding"
        self.dir.mkdir()
        self.socket, self.log = self.dir / "siding.sock", self.dir / "log"
        self.agent_log = self.dir / "agent.log"
        self.controller = self.agent = None
        self.same = self.dir / "same"  # on all nodes, which are of this machine
        self.same.mkdir()
        self.agents = {}  # by the names of their nodes; `agent` is the one that was started last
        (self.dir / "policy.yaml").write_text(POLICY)
        (self.dir / "kubeconfig").write_text(bed.kubeconfig("siding", "tokenFile: token"))
        (self.dir / "token").write_text(self._make_account())
        (self.dir / "sidingd.yaml").write_text(
            f"socket: {self.socket}\nstate_dir: {self.dir}/controller\npolicy: {self.dir}/policy.yaml\nheartbeat: 1s\n"
            f"kubernetes:\n  mode: {mode}\n  kubeconfig: {self.dir}/kubeconfig\n"
            f"  host_paths: {{read_write: {self.same}}}\n")

    def _make_account(self):
        """With the rights that are shipped; its token."""
        self._apply(RIGHTS)
        wait_for("the account's token", lambda: self.bed.has_account("siding", "siding"))
        _, account = self.bed.call("GET", "/api/v1/namespaces/siding/serviceaccounts/siding")
        _, secret = self.bed.call("GET", f"/api/v1/namespaces/siding/secrets/{account['secrets'][0]['name']}")
        return base64.b64decode(secret["data"]["token"]).decode()

    def define_requests(self):
        """OnDemandRequests are served from now on. A controller that runs already finds them later."""
        # This kubectl knows no x-kubernetes-validations, and neither does the server, which drops them.
        self._apply("--validate=false", REQUESTS)
        wait_for("requests to be served",
                 lambda: self.bed.call("GET", "/apis/siding.dev/v1alpha1/namespaces/default/ondemandrequests")[0] == 200)

    def _apply(self, *arguments):
        *options, file = arguments
        applied = self.bed.kubectl("apply", *options, "-f", file)
        if applied.returncode != 0:
            raise KubernetesError(f"kubectl apply -f {file}: {applied.stderr}")

    def start_controller(self, **variables):
        self.controller = self._spawn([BIN / "sidingd", "--config", self.dir / "sidingd.yaml"], self.log, variables)

    def start_agent(self, node, **variables):
        argv = [*node.inside, BIN / "siding-agent", "--node", node.name, "--controller", self.socket, "--state-dir", self.dir / f"agent-{node.name}",
                "--shared-dir", self.dir / "shared", "--criu", find_criu(), *agent_args(node)]
        self.agents[node.name] = self.agent = self._spawn(argv, self.agent_log, variables)

    @staticmethod
    def _spawn(argv, log, variables):
        with open(log, "ab") as file:
            return subprocess.Popen([str(word) for word in argv], stdout=file, stderr=file, stdin=subprocess.DEVNULL,
                                    env={**os.environ, **variables})

    def stop(self):
        for process in (*self.agents.values(), self.controller):
            if process is not None:
                process.terminate()
                process.wait(30)

    def ctl(self, *words):
        """sidingctl's completed process."""
        return subprocess.run([BIN / "sidingctl", *map(str, words)], capture_output=True, text=True, timeout=PATIENCE,
                              env={**os.environ, "SIDING_SOCKET": str(self.socket)})

    def jobs(self):
        """siding's records of all jobs, by their numbers."""
        done = self.ctl("jobs", "--all", "--json")
        assert done.returncode == 0, done.stderr
        return {int(job["id"]): job for job in json.loads(done.stdout).get("jobs", [])}
