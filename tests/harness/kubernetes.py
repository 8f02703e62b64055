"""A private Kubernetes 1.20 on this machine: etcd, kube-apiserver, scheduler and controller-manager on loopback, and, as root, a node
with kubelet, containerd and CNI. Everything is below one folder, and several may run side by side; the node also needs a mount and a
network namespace of its own (apart.py). The programs come from tests/kubernetes/build."""

import contextlib
import http.client
import json
import os
import pathlib
import secrets
import shutil
import ssl
import subprocess
import sys
import tempfile
import urllib.parse

from cluster import PATIENCE, ROOT, kill, last_lines, marked_processes, wait_for
from kubernetes_node import Node
from ports import free_ports

SKIPPED = 77
# Who may come, by the name of their token: the user and the groups. "nobody" and "operator" have no rights at all, and tests may give
# some to the second.
USERS = {"admin": ("admin", "system:masters"), "nobody": ("nobody", ""), "operator": ("operator", ""),
         **{name: (f"system:node:{name}", "system:nodes") for name in ("node1", "node2")},
         "scheduler": ("system:kube-scheduler", ""), "controllers": ("system:kube-controller-manager", "")}
SERVICES, KUBERNETES_ADDRESS = "10.97.0.0/24", "10.97.0.1"
CERTIFICATE = f"subjectAltName=DNS:localhost,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:{KUBERNETES_ADDRESS}\nextendedKeyUsage=serverAuth\n"
KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{{name: bed, cluster: {{server: "https://127.0.0.1:{port}", certificate-authority: "{dir}/certs/ca.pem"}}}}]
users: [{{name: "{name}", user: {{{token}}}}}]
contexts: [{{name: bed, context: {{cluster: bed, user: "{name}"}}}}]
current-context: bed
"""


class KubernetesError(Exception):
    """A program of the test bed failed; the text has its last words."""


def programs():
    """The folder of tests/kubernetes/build. Ends the test as skipped, with the reason, where there is none."""
    found = subprocess.run([ROOT / "tests/kubernetes/build", "--where"], stdout=subprocess.PIPE, text=True)
    if found.returncode == SKIPPED:
        sys.exit(SKIPPED)  # it has said why
    if found.returncode != 0:
        raise KubernetesError(f"tests/kubernetes/build --where ended with {found.returncode}")
    return pathlib.Path(found.stdout.strip())


class Kubernetes:
    def __init__(self, programs):
        self.programs = programs
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="siding-k8s-"))  # short: unix sockets are below it
        self.etcd_port, self.peer_port, self.port, self.scheduler_port, self.controllers_port = free_ports(5)
        self.tokens = {name: secrets.token_hex(16) for name in USERS}
        self.children = {}
        self.nodes = []

    @property
    def node(self):
        """The first one."""
        return self.nodes[0]

    # ---- the programs ----
    def start(self):
        """Returns when pods can be made in the namespace `default`."""
        for name in ("log", "certs", "plugins"):
            (self.dir / name).mkdir()
        self._make_certificates()
        self._write_users()
        self._start_etcd()
        self._start_apiserver()
        for program, name, port, options in (
                ("kube-scheduler", "scheduler", self.scheduler_port, ()),
                ("kube-controller-manager", "controllers", self.controllers_port,
                 (f"--service-account-private-key-file={self.dir}/certs/accounts.key", f"--root-ca-file={self.dir}/certs/ca.pem",
                  "--use-service-account-credentials", f"--flex-volume-plugin-dir={self.dir}/plugins"))):
            config = self.dir / f"{name}.kubeconfig"
            self.spawn(program, f"--kubeconfig={config}", f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}",
                       "--bind-address=127.0.0.1", f"--secure-port={port}", "--port=0", f"--cert-dir={self.dir}/certs/{name}",
                       "--leader-elect=false", *options)
        self.wait("kube-controller-manager", "the service account's token", self.has_account)
        return self

    def start_node(self):
        """Adds the node "node1", or "node2" when there is that one, ready for pods. Returns it."""
        self.nodes.append(Node(self, len(self.nodes) + 1))
        self.nodes[-1].start()
        return self.nodes[-1]

    def stop(self):
        """Ends all programs and what they mounted. The folder stays: it holds the logs."""
        if "kube-controller-manager" in self.children:
            self.end("kube-controller-manager")  # or it makes other pods for those that are ended
        for node in self.nodes:
            node.stop()
        for name in reversed(list(self.children)):
            self.end(name)
        kill(marked_processes(self.dir))
        wait_for("Kubernetes' processes to be gone", lambda: not marked_processes(self.dir))
        for node in self.nodes:
            node.clear()

    def remove(self):
        shutil.rmtree(self.dir)

    def spawn(self, program, *arguments, name=None, before=()):
        """`name`: what it is called here, if there may be several; `before`: a command that starts it."""
        name = name or program
        with open(self.dir / "log" / f"{name}.log", "ab") as log:
            self.children[name] = subprocess.Popen(
                [*before, self.programs / "bin" / program, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.dir,
                env={**os.environ, "PATH": f"{self.programs}/bin:{os.environ['PATH']}"}, start_new_session=True)

    def end(self, program):
        child = self.children.pop(program)
        child.terminate()
        try:
            child.wait(15)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

    def kill9(self, program):
        """As nobody has asked it to end."""
        child = self.children.pop(program)
        child.kill()
        child.wait()

    def wait(self, program, what, condition):
        """Until the condition holds. KubernetesError with the program's log if it ends before, or does not come to it."""
        def holds():
            if (status := self.children[program].poll()) is not None:
                raise KubernetesError(f"{program} ended with {status}:\n{self.tail(program)}")
            return condition()
        try:
            return wait_for(what, holds)
        except AssertionError as error:
            raise KubernetesError(f"{error}; {program} says:\n{self.tail(program)}") from None

    def tail(self, program, lines=12):
        return last_lines(self.dir / "log" / f"{program}.log", lines)

    def _start_etcd(self):
        client, peer = (f"http://127.0.0.1:{port}" for port in (self.etcd_port, self.peer_port))
        self.spawn("etcd", "--data-dir", self.dir / "etcd", "--listen-client-urls", client, "--advertise-client-urls", client,
                   "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
                   "--unsafe-no-fsync")
        self.wait("etcd", "etcd to answer", self._etcd_is_healthy)

    def _start_apiserver(self):
        certs = self.dir / "certs"
        self.spawn("kube-apiserver", f"--etcd-servers=http://127.0.0.1:{self.etcd_port}", "--bind-address=127.0.0.1",
                   "--advertise-address=127.0.0.1", f"--secure-port={self.port}", f"--tls-cert-file={certs}/server.pem",
                   f"--tls-private-key-file={certs}/server.key", f"--token-auth-file={self.dir}/tokens.csv",
                   "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged",
                   "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={certs}/accounts.pub",
                   f"--service-account-signing-key-file={certs}/accounts.key", f"--service-cluster-ip-range={SERVICES}",
                   f"--kubelet-client-certificate={certs}/caller.pem", f"--kubelet-client-key={certs}/caller.key",
                   "--kubelet-preferred-address-types=InternalIP",
                   # Its own address as a service's endpoint may not be loopback.
                   "--endpoint-reconciler-type=none")
        self.wait("kube-apiserver", "the API server to be ready", self._is_ready)

    def restart_apiserver(self):
        self.end("kube-apiserver")
        self._start_apiserver()

    def _make_certificates(self):
        certs = self.dir / "certs"
        (certs / "extensions").write_text(CERTIFICATE)
        for line in ("genrsa -out accounts.key 2048", "rsa -in accounts.key -pubout -out accounts.pub",
                     "req -x509 -newkey rsa:2048 -nodes -days 2 -keyout ca.key -out ca.pem -subj /CN=test-bed",
                     "req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=kube-apiserver",
                     "x509 -req -days 2 -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile extensions -out server.pem",
                     # By which the API server calls kubelets.
                     "req -newkey rsa:2048 -nodes -keyout caller.key -out caller.csr -subj /O=system:masters/CN=kube-apiserver",
                     "x509 -req -days 2 -in caller.csr -CA ca.pem -CAkey ca.key -out caller.pem"):
            done = subprocess.run(["openssl", *line.split()], cwd=certs, capture_output=True, text=True)
            if done.returncode != 0:
                raise KubernetesError(f"openssl {line}: {done.stderr}")

    def _write_users(self):
        (self.dir / "tokens.csv").write_text("".join(
            f'{self.tokens[name]},{user},{number},"{groups}"\n' for number, (name, (user, groups)) in enumerate(USERS.items())))
        for name, token in self.tokens.items():
            (self.dir / f"{name}.kubeconfig").write_text(self.kubeconfig(name, f'token: "{token}"'))

    def kubeconfig(self, name, token):
        """As `token` says how the user of this name shows who it is: "token: ..." or "tokenFile: ..."."""
        return KUBECONFIG.format(port=self.port, dir=self.dir, name=name, token=token)

    def compact(self):
        """etcd forgets all that was before now."""
        now = self._ask_etcd("POST", "/v3/kv/range", {"key": "AA=="})["header"]["revision"]
        self._ask_etcd("POST", "/v3/kv/compaction", {"revision": now})

    def _ask_etcd(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.etcd_port, timeout=5)
        with contextlib.closing(connection):
            connection.request(method, path, json.dumps(body))
            answer = connection.getresponse()
            text = answer.read().decode()
        if answer.status != 200:
            raise KubernetesError(f"etcd says {answer.status} to {path}: {text}")
        return json.loads(text)

    def _etcd_is_healthy(self):
        try:
            return self._ask_etcd("GET", "/health")["health"] == "true"
        except (OSError, KubernetesError):
            return False

    def _is_ready(self):
        try:
            return self.call("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def has_account(self, namespace="default", name="default"):
        """Whether it has a token. Before the default one has, no pods can be made in the namespace."""
        status, account = self.call("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}")
        return status == 200 and bool(account.get("secrets"))

    # ---- what a client does ----
    def _request(self, method, path, body, user, content, port, timeout):
        context = ssl.create_default_context(cafile=self.dir / "certs/ca.pem")
        if port is not None:  # the kubelet's certificate is its own
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", port or self.port, context=context, timeout=timeout)
        try:
            connection.request(method, path, None if body is None else json.dumps(body),
                               {"Authorization": f"Bearer {self.tokens[user]}", "Content-Type": content})
            return connection, connection.getresponse()
        except BaseException:
            connection.close()
            raise

    def call(self, method, path, body=None, user="admin", content="application/json", port=None, plain=False):
        """(status, what came back: an object, or text where it is not JSON or is to be `plain`)."""
        connection, response = self._request(method, path, body, user, content, port, 30)
        with contextlib.closing(connection), response:
            text = response.read().decode()
        if plain:
            return response.status, text
        try:
            return response.status, json.loads(text)
        except ValueError:
            return response.status, text

    def watch(self, path, **options):
        """(status, the events until the server ends the watch)."""
        query = urllib.parse.urlencode({"watch": 1, **options})
        connection, response = self._request("GET", f"{path}?{query}", None, "admin", "application/json", None, 90)
        with contextlib.closing(connection), response:
            return response.status, [json.loads(line) for line in response]

    def kubectl(self, *arguments, user="admin", text=None):
        """Runs kubectl; its completed process."""
        return subprocess.run([self.programs / "bin/kubectl", f"--kubeconfig={self.dir}/{user}.kubeconfig",
                               f"--cache-dir={self.dir}/kubectl", *map(str, arguments)],
                              input=text, capture_output=True, text=True, timeout=PATIENCE)
