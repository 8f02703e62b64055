"""The node of a private Kubernetes: containerd, kubelet and a bridge-less CNI network, as root in namespaces of their own."""

import json
import pathlib
import shutil
import subprocess

from cluster import kill, wait_for
from kubernetes_image import write_image
from ports import free_ports
from vanishing import pids_below, remove_below, thaw_below

# Where kubelet, containerd and CNI write though no option says so: an own folder lies over each.
FIXED = tuple(map(pathlib.Path, ("/var/log/pods", "/var/log/containers", "/var/lib/kubelet", "/var/lib/cni", "/run/containerd")))
PODS = {"pause": "docker.io/siding/pause:1", "count": "docker.io/siding/count:1"}
# The runtime class `siding` is served by siding-runc, once use_siding_runc() has put it there.
# What a container writes is told from its image by overlays. runc may not lower a score without CAP_SYS_RESOURCE, and the kubelet asks for -998.
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
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "{programs}/bin/runc"
        Root = "{dir}/runc"
        SystemdCgroup = false
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.siding]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.siding.options]
        BinaryName = "{dir}/siding-runc"
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


def own_address():
    """Of this machine, not loopback; None: it has none."""
    listed = json.loads(subprocess.run(["ip", "-json", "-4", "address"], capture_output=True, text=True, check=True).stdout)
    return next((a["local"] for device in listed for a in device["addr_info"] if a["scope"] == "global"), None)


class Node:
    """The first one has its mounts in the namespace that the test is in, each other one in its own."""

    def __init__(self, kubernetes, number=1):
        self.kubernetes = kubernetes
        self.number, self.name = number, f"node{number}"
        self.dir = kubernetes.dir / self.name
        self.group = f"{kubernetes.dir.name}-{number}"  # unique: cgroups of other beds lie beside it
        self.runc = kubernetes.programs / "bin/runc"
        self.subnet = f"10.98.{6 + number}.0/24"
        self.containerd, self.kubelet = (f"{program}-{number}" if number > 1 else program for program in ("containerd", "kubelet"))
        self.inside = []  # what a command begins with that is to see the node's mounts
        [self.port] = free_ports(1)

    def start(self):
        """Returns when the node is ready for pods."""
        for name in ("cni", "opt", "kubelet"):
            (self.dir / name).mkdir(parents=True)
        self._prepare_overlays()
        if self.number > 1:
            self._leave_mounts()
        for path in FIXED:
            own = self.dir / "fixed" / path.relative_to("/")
            own.mkdir(parents=True)
            path.mkdir(parents=True, exist_ok=True)  # stays: another bed's may lie over it
            subprocess.run([*self.inside, "mount", "--bind", own, path], check=True)
        self._start_containerd()
        self._make_groups()
        self._start_kubelet()

    def _leave_mounts(self):
        """They go with the last process that sees them."""
        name = f"mounts-{self.number}"
        self.kubernetes.children[name] = holder = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", "echo; exec sleep infinity"], stdout=subprocess.PIPE,
            start_new_session=True)
        holder.stdout.readline()  # it has its own
        holder.stdout.close()
        self.inside = ["nsenter", f"--mount=/proc/{holder.pid}/ns/mnt"]

    def _prepare_overlays(self):
        """containerd's layers are overlays, which not each file system can hold, such as another overlay."""
        root = self.dir / "root"
        folders = [root / name for name in ("lower", "upper", "work", "merged")]
        for folder in folders:
            folder.mkdir(parents=True)
        lower, upper, work, merged = folders
        options = f"lowerdir={lower},upperdir={upper},workdir={work}"
        tried = subprocess.run(["mount", "-t", "overlay", "-o", options, "overlay", merged], capture_output=True)
        if tried.returncode == 0:
            subprocess.run(["umount", merged], check=True)
        for folder in folders:
            shutil.rmtree(folder)
        if tried.returncode != 0:
            subprocess.run(["mount", "-t", "tmpfs", "tmpfs", root], check=True)

    def _start_containerd(self):
        (self.dir / "containerd.toml").write_text(
            CONTAINERD.format(dir=self.dir, pause=PODS["pause"], programs=self.kubernetes.programs))
        (self.dir / "cni/10-bed.conflist").write_text(json.dumps({
            "cniVersion": "0.4.0", "name": "bed", "plugins": [{"type": "ptp", "ipMasq": False, "ipam": {
                "type": "host-local", "dataDir": str(self.dir / "addresses"), "ranges": [[{"subnet": self.subnet}]]}}]}))
        self.run_containerd()
        for name, reference in PODS.items():
            self.add_image(reference, write_image, name)

    def run_containerd(self):
        self.kubernetes.spawn("containerd", "-c", self.dir / "containerd.toml", name=self.containerd, before=self.inside)
        self.kubernetes.wait(self.containerd, "containerd to answer", lambda: self.ctr("version").returncode == 0)

    def add_image(self, reference, write, *arguments):
        """Has `write` write it to a file that it is given, under that reference, and gives it to containerd."""
        file = self.dir / "image.tar"
        write(file, reference, *arguments)
        done = self.ctr("images", "import", file)
        if done.returncode != 0:
            raise RuntimeError(f"containerd does not take the image: {done.stderr}")
        file.unlink()

    def use_siding_runc(self, program, **settings):
        """Puts a copy of siding-runc where containerd looks for it, with these lines of its file of settings."""
        if not (self.dir / "siding-runc").exists():  # one that runs cannot be written to
            shutil.copy2(program, self.dir / "siding-runc")
        settings = {"runc": self.runc, **settings}
        (self.dir / "siding-runc.conf").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))

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
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "address": "0.0.0.0", "port": self.port,
            "healthzPort": 0, "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{self.group}", "failSwapOn": False,
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True}, "x509": {"clientCAFile": f"{certs}/ca.pem"}},
            "authorization": {"mode": "Webhook"}, "syncFrequency": "2s", "nodeStatusUpdateFrequency": "1s", "resolvConf": "",
            "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "volumePluginDir": str(self.kubernetes.dir / "plugins")}))
        self.run_kubelet()
        self.kubernetes.wait(self.kubelet, "the node to be ready", self._is_ready)

    def run_kubelet(self):
        # Else it is that of the default route, which there need not be; without one the API server cannot call it.
        address = [f"--node-ip={address}"] if (address := own_address()) else []
        self.kubernetes.spawn(
            "kubelet", *address, f"--config={self.dir}/kubelet.yaml", f"--kubeconfig={self.kubernetes.dir}/{self.name}.kubeconfig",
            f"--hostname-override={self.name}", f"--root-dir={self.dir}/kubelet", f"--cert-dir={self.dir}/certs", "--container-runtime=remote",
            f"--container-runtime-endpoint=unix://{self.dir}/containerd.sock", name=self.kubelet, before=self.inside)

    def _is_ready(self):
        status, node = self.kubernetes.call("GET", f"/api/v1/nodes/{self.name}")
        conditions = node["status"].get("conditions", ()) if status == 200 else ()
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions) and not node["spec"].get("taints")

    def kubelet_answers(self):
        """Whether it does. Where it has ended because something that it needs was away, it is started again, as a service is."""
        if self.kubernetes.children[self.kubelet].poll() is not None:
            self.run_kubelet()
        try:
            return self.kubernetes.call("GET", "/pods", port=self.port)[0] == 200
        except OSError:
            return False

    def log(self, namespace, pod, container):
        """What a container has written, asked of the kubelet."""
        return self.kubernetes.call("GET", f"/containerLogs/{namespace}/{pod}/{container}", port=self.port, plain=True)

    def stop(self):
        """Ends the pods while the kubelet can still do it, then the kubelet and containerd."""
        if self.kubelet in self.kubernetes.children:
            _, pods = self.kubernetes.call("GET", "/api/v1/pods")
            for pod in pods["items"]:
                meta = pod["metadata"]
                self.kubernetes.call("DELETE", f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}", {"gracePeriodSeconds": 0})
            try:
                wait_for("the pods' processes to end", lambda: not self.ctr("tasks", "ls", "-q").stdout.split())
            except AssertionError:
                pass  # they end with the other processes
        for program in (self.kubelet, self.containerd):
            if program in self.kubernetes.children:
                self.kubernetes.end(program)

    def mounts(self):
        """Mount points below the bed's folder, and those of the fixed paths, the latest first."""
        points = [line.split()[4] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()]
        ours = (*map(str, FIXED), str(self.kubernetes.dir))
        return [p for p in reversed(points) if any(p == top or p.startswith(f"{top}/") for top in ours)]

    def groups(self):
        """The node's cgroups that are there, one of each hierarchy."""
        return [top / self.group for top in hierarchies() if (top / self.group).exists()]

    def clear(self):
        """Called when no process is left, but of containers that nobody ends any more."""
        def ended():
            left = {pid for group in self.groups() for pid in pids_below(group)}
            kill(left)
            return not left
        for group in self.groups():
            thaw_below(group)
        wait_for(f"the processes of {self.name} to be gone", ended)
        for group in self.groups():
            wait_for(f"{group} to be empty", lambda g=group: remove_below(g))
        for point in self.mounts():
            subprocess.run(["umount", "-l", point], check=True)
