"""sidingd as a pod of the cluster, of the image and the manifests as they are shipped, on a real node."""

import json
import os
import subprocess

from case import BIN, ROOT, KubernetesCase, wait_for

DEPLOY = ROOT / "deploy/kubernetes"
OWN = "/api/v1/namespaces/siding"
USER = 10001
VOLUME = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "journal"}, "spec": {
    "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": ""}}


class InClusterCase(KubernetesCase):
    with_node = True

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.add_image("controller")
        cls.make_volume()
        applied = cls.bed.kubectl("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": cls.manifests()}))
        assert applied.returncode == 0, applied.stderr
        cls.addClassCleanup(cls.take_away)
        cls.wait_ready()

    @classmethod
    def add_image(cls, *arguments):
        """As make-image makes it of these arguments."""
        image = cls.bed.dir / "siding.tar"
        subprocess.run([DEPLOY / "make-image", *arguments, BIN.parent, image], check=True, stdout=subprocess.DEVNULL)
        imported = cls.bed.node.ctr("images", "import", image)
        assert imported.returncode == 0, imported.stderr

    @classmethod
    def take_away(cls):
        """While the test bed still runs: what makes the pod anew would do so when that one ends its pods."""
        cls.bed.kubectl("delete", "statefulset", "siding", "-n", "siding")
        wait_for("the controller's pod to be gone", lambda: not cls.controller().get("metadata"))

    @classmethod
    def make_volume(cls):
        """A folder of the node, of which the kubelet changes no owners."""
        folder = cls.bed.dir / "journal"
        folder.mkdir()
        os.chown(folder, USER, USER)
        status, answer = cls.bed.call("POST", "/api/v1/persistentvolumes", {**VOLUME, "spec": {
            **VOLUME["spec"], "hostPath": {"path": str(folder)}}})
        assert status == 201, answer

    @classmethod
    def shipped(cls):
        """The objects that are installed."""
        raise NotImplementedError

    @classmethod
    def manifests(cls):
        """As they are, but for the way to the API server: the test bed has nothing that leads from services to it, only loopback."""
        objects = cls.shipped()
        [spec] = [o["spec"]["template"]["spec"] for o in objects if o["kind"] == "StatefulSet"]
        spec["hostNetwork"] = True
        spec["containers"][0]["env"] = [{"name": "KUBERNETES_SERVICE_HOST", "value": "127.0.0.1"},
                                        {"name": "KUBERNETES_SERVICE_PORT", "value": str(cls.bed.port)}]
        return objects

    @classmethod
    def controller(cls):
        status, now = cls.bed.call("GET", f"{OWN}/pods/siding-0")
        return now if status == 200 else {"status": {}}

    @classmethod
    def wait_ready(cls):
        def ready():
            return any(c["type"] == "Ready" and c["status"] == "True" for c in cls.controller()["status"].get("conditions", ()))
        try:
            wait_for("the controller's pod to be ready", ready)
        except AssertionError as error:
            events = cls.bed.kubectl("get", "events", "-n", "siding").stdout
            raise AssertionError(f"{error}\n{events}\n{cls.bed.node.log('siding', 'siding-0', 'sidingd')[1]}") from None

    def own_container(self):
        return self.controller()["status"]["containerStatuses"][0]

    def identity(self):
        return self.own_container()["containerID"].removeprefix("containerd://")

    def pid(self):
        lines = self.bed.node.ctr("tasks", "ls").stdout.splitlines()
        return next(line.split()[1] for line in lines if line.startswith(self.identity()))

    def ctl(self, *words):
        done = self.bed.kubectl("exec", "siding-0", "-n", "siding", "--", "sidingctl", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def _show_logs(self):
        super()._show_logs()
        if self._outcome.result and (self._outcome.result.failures or self._outcome.result.errors):
            print(str(self.bed.node.log("siding", "siding-0", "sidingd")[1])[-8000:])
