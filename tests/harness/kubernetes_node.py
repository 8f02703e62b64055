"""The node of a private Kubernetes: containerd, kubelet and a bridge-less CNI network, as root in namespaces of their own."""

import json
import os
import pathlib
import subprocess

from cluster import wait_for
from kubernetes_image import write_image
from ports import free_ports

NAME = "node1"
# Where kubelet, containerd and CNI write though no option says so: an own folder lies over each.
FIXED = tuple(map(pathlib.Path, ("/var/log/pods", "/var/log/containers", "/var/lib/kubelet", "/var/lib/cni", "/run/containerd")))
PODS = {"pause": "docker.io/siding/pause:1", "count": "docker.io/siding/count:1"}
# runc may not lower a score without CAP_SYS_RESOURCE, and the kubelet asks for -998.
CONTAINERD = """\
version = 2
root = "{dir}/root"
state = "{dir}/state"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]
[grpc]
  address = "{dir}/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{dir}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  stream_server_address = "127.0.0.1"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"
    snapshotter = "native"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "{programs}/bin/runc"
        Root = "{dir}/runc"
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{programs}/cni"
    conf_dir = "{dir}/cni"
"""


def hierarchies():
    """Mount points of this machine's cgroups: each controller's with version 1, the one with version 2."""
    found = {}
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        before, after = line.split(" - ")
        found[before.split()[4]] = after.split()[0]
    first = [point for point, kind in found.items() if kind == "cgroup"]
    return [pathlib.Path(point) for point in first or [point for point, kind in found.items() if kind == "cgroup2"]]


class Node:
    def __init__(self, kubernetes):
        self.kubernetes = kubernetes
        self.dir = kubernetes.dir / "node"
        self.group = kubernetes.dir.name  # unique: cgroups of other beds lie beside it
        [self.port] = free_ports(1)

    def start(self):
        """Returns when the node is ready for pods."""
        for name in ("cni", "opt", "kubelet"):
            (self.dir / name).mkdir(parents=True)
        for path in FIXED:
            own = self.dir / "fixed" / path.relative_to("/")
            own.mkdir(parents=True)
            path.mkdir(parents=True, exist_ok=True)  # stays: another bed's may lie over it
            subprocess.run(["mount", "--bind", own, path], check=True)
        self._start_containerd()
        self._make_groups()
        self._start_kubelet()

    def _start_containerd(self):
        (self.dir / "containerd.toml").write_text(
            CONTAINERD.format(dir=self.dir, pause=PODS["pause"], programs=self.kubernetes.programs))
        (self.dir / "cni/10-bed.conflist").write_text(json.dumps({
            "cniVersion": "0.4.0", "name": "bed", "plugins": [{"type": "ptp", "ipMasq": False, "ipam": {
                "type": "host-local", "dataDir": str(self.dir / "addresses"), "ranges": [[{"subnet": "10.98.7.0/24"}]]}}]}))
        self.kubernetes.spawn("containerd", "-c", self.dir / "containerd.toml")
        self.kubernetes.wait("containerd", "containerd to answer", lambda: self.ctr("version").returncode == 0)
        for name, reference in PODS.items():
            file = self.dir / f"{name}.tar"
            write_image(file, reference, name)
            done = self.ctr("images", "import", file)
            if done.returncode != 0:
                raise RuntimeError(f"containerd does not take the image: {done.stderr}")

    def ctr(self, *arguments):
        return subprocess.run([self.kubernetes.programs / "bin/ctr", "-a", self.dir / "containerd.sock", "-n", "k8s.io", *arguments],
                              capture_output=True, text=True)

    def _make_groups(self):
        """The kubelet wants its root to be there in each hierarchy."""
        for top in hierarchies():
            group = top / self.group
            group.mkdir()
            if (group / "cpuset.cpus").exists() and (group / "cgroup.clone_children").exists():
                for file in ("cpuset.cpus", "cpuset.mems"):
                    (group / file).write_text((top / file).read_text())
                (group / "cgroup.clone_children").write_text("1")

    def _start_kubelet(self):
        certs = self.kubernetes.dir / "certs"
        (self.dir / "kubelet.yaml").write_text(json.dumps({  # JSON is YAML
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "address": "127.0.0.1", "port": self.port,
            "healthzPort": 0, "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{self.group}", "failSwapOn": False,
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True}, "x509": {"clientCAFile": f"{certs}/ca.pem"}},
            "authorization": {"mode": "Webhook"}, "syncFrequency": "2s", "nodeStatusUpdateFrequency": "1s", "resolvConf": "",
            "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "volumePluginDir": str(self.kubernetes.dir / "plugins")}))
        self.kubernetes.spawn(
            "kubelet", f"--config={self.dir}/kubelet.yaml", f"--kubeconfig={self.kubernetes.dir}/node1.kubeconfig",
            f"--hostname-override={NAME}", f"--root-dir={self.dir}/kubelet", f"--cert-dir={self.dir}/certs", "--container-runtime=remote",
            f"--container-runtime-endpoint=unix://{self.dir}/containerd.sock")
        self.kubernetes.wait("kubelet", "the node to be ready", self._is_ready)

    def _is_ready(self):
        status, node = self.kubernetes.call("GET", f"/api/v1/nodes/{NAME}")
        conditions = node["status"].get("conditions", ()) if status == 200 else ()
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions) and not node["spec"].get("taints")

    def log(self, namespace, pod, container):
        """What a container has written. Asked of the kubelet: its certificate is none that the API server takes."""
        return self.kubernetes.call("GET", f"/containerLogs/{namespace}/{pod}/{container}", port=self.port)

    def stop(self):
        """Ends the pods while the kubelet can still do it, then the kubelet and containerd."""
        if "kubelet" in self.kubernetes.children:
            _, pods = self.kubernetes.call("GET", "/api/v1/pods")
            for pod in pods["items"]:
                meta = pod["metadata"]
                self.kubernetes.call("DELETE", f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}", {"gracePeriodSeconds": 0})
            try:
                wait_for("the pods' processes to end", lambda: not self.ctr("tasks", "ls", "-q").stdout.split(), 30)
            except AssertionError:
                pass  # they end with the other processes
        for program in ("kubelet", "containerd"):
            if program in self.kubernetes.children:
                self.kubernetes.end(program)

    def mounts(self):
        """Mount points below the bed's folder, and those of the fixed paths, the latest first."""
        points = [line.split()[4] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()]
        ours = (*map(str, FIXED), str(self.kubernetes.dir))
        return [p for p in reversed(points) if any(p == top or p.startswith(f"{top}/") for top in ours)]

    def groups(self):
        """The cgroups of the node, those below before those that hold them."""
        found = []
        for top in hierarchies():
            found += [pathlib.Path(folder) for folder, _, _ in os.walk(top / self.group, topdown=False)]
        return found

    def clear(self):
        """Called when no process is left."""
        for group in self.groups():
            wait_for(f"{group} to be empty", lambda: not (group / "cgroup.procs").read_text(), 20)
            group.rmdir()
        for point in self.mounts():
            subprocess.run(["umount", "-l", point], check=True)
