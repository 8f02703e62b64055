"""The program that renders the chart as Helm does (render.go). It is built of Debian's Go and sprig, kept in the cache of
tests/kubernetes/build, and never built by a test: that needs the network, and a minute."""

import fcntl
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CHART = HERE.parents[1] / "deploy/kubernetes/chart"
PACKAGES = ("golang-1.19-go", "golang-1.19-src", "golang-github-masterminds-sprig-dev", "golang-github-masterminds-semver-dev",
            "golang-github-masterminds-goutils-dev", "golang-github-huandu-xstrings-dev", "golang-github-google-uuid-dev",
            "golang-github-imdario-mergo-dev", "golang-github-shopspring-decimal-dev", "golang-github-mitchellh-copystructure-dev",
            "golang-github-mitchellh-reflectwalk-dev", "golang-github-spf13-cast-dev", "golang-golang-x-crypto-dev",
            "golang-k8s-sigs-yaml-dev", "golang-gopkg-yaml.v2-dev", "golang-gopkg-yaml.v3-dev")


class CannotRender(Exception):
    """The chart refuses these values; the text has its words."""


def debian():
    """tests/kubernetes/build as a module: it knows how to have packages without installing them."""
    loader = importlib.machinery.SourceFileLoader("kubernetes_build", str(HERE / "build"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def place():
    text = (HERE / "render.go").read_bytes() + " ".join(PACKAGES).encode()
    return debian().cache() / f"render-{os.uname().machine}-{hashlib.sha256(text).hexdigest()[:12]}"


def build():
    """Builds it where it is not there yet; its path. Ends the program where this machine cannot."""
    found = place()
    if found.exists():
        return found
    kit = debian()
    kit.cache().mkdir(parents=True, exist_ok=True)
    kit.check_machine(kit.cache())
    with open(kit.cache() / "render-lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not found.exists():
            with tempfile.TemporaryDirectory(prefix="render-", dir=kit.cache()) as folder:
                os.rename(compiled(kit, pathlib.Path(folder)), found)
    return found


def compiled(kit, work):
    env, downloads, root = kit.apt_settings(work), work / "downloads", work / "root"
    downloads.mkdir()
    kit.command("apt-get", "-q", "update", "--error-on=any", env=env, why="Debian's package lists cannot be had")
    kit.command("apt-get", "-q", "download", *PACKAGES, cwd=downloads, env=env, why="the packages cannot be had")
    for package in downloads.glob("*.deb"):
        kit.command("dpkg-deb", "-x", package, root)
    kit.say("compiling what renders the chart")
    go = root / "usr/lib/go-1.19"
    env = {**os.environ, "GOROOT": str(go), "GOPATH": str(root / "usr/share/gocode"), "GOCACHE": str(work / "compiled"), "HOME": str(work),
           "GO111MODULE": "off", "GOPROXY": "off", "GOFLAGS": "", "CGO_ENABLED": "0"}
    kit.command(go / "bin/go", "build", "-p", "2", "-trimpath", "-ldflags", "-s -w", "-o", work / "render", HERE / "render.go", env=env)
    return work / "render"


def render(program, values="", apis=("policy/v1", "policy/v1beta1"), release="siding", namespace="siding"):
    """What the chart's templates become, by their paths. `values`: YAML, laid over the chart's own."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(values)
        file.flush()
        done = subprocess.run([program, CHART, release, namespace, file.name if values else "", *apis], capture_output=True, text=True)
    if done.returncode != 0:
        raise CannotRender(done.stderr.strip())
    return json.loads(done.stdout)


# As Helm installs them: what others need comes first.
ORDER = ("Namespace", "NetworkPolicy", "PodDisruptionBudget", "ServiceAccount", "ConfigMap", "PersistentVolumeClaim", "ClusterRole",
         "ClusterRoleBinding", "Role", "RoleBinding", "Service", "DaemonSet", "StatefulSet", "ValidatingWebhookConfiguration",
         "RuntimeClass", "ServiceMonitor")


def documents(rendered):
    """The objects' texts, with their comments, in the order of their installation."""
    found = []
    for name in sorted(rendered):
        if name.endswith(".yaml"):
            found += [text.strip("\n") + "\n" for text in re.split(r"(?m)^---$", rendered[name]) if re.search(r"(?m)^kind:", text)]
    return sorted(found, key=lambda text: ORDER.index(re.search(r"(?m)^kind: (\w+)$", text)[1]))


# ---- the files that are made of the chart and committed ----
PLAIN = "namespace: {create: true}\n"
ONLY_RIGHTS = ("templates/namespace.yaml", "templates/account.yaml", "templates/rights.yaml",
               "templates/request-rights.yaml")
HEADER = """\
# {what}
#
# Made of the chart by tests/kubernetes/render; edit that one. docs/admin/kubernetes.md says how this is used.
# Of the chart with the digest {digest}.
"""


def digest():
    """Of all that the chart consists of: whoever changes it without making the files again is told so, also where there is no Go."""
    summed = hashlib.sha256()
    for path in sorted(path for path in CHART.rglob("*") if path.is_file()):
        summed.update(f"{path.relative_to(CHART)}\n{path.stat().st_size}\n".encode() + path.read_bytes())
    return summed.hexdigest()[:16]


def plain(program):
    """{path: text} of the manifests for kubectl."""
    rendered = render(program, PLAIN)
    made = {"siding.yaml": ("siding's controller in the cluster, as the chart installs it with its own values.", rendered),
            "rbac.yaml": ("What siding's controller may do in a cluster, for one that runs beside it: its account and its rights alone.",
                          {name: rendered[name] for name in ONLY_RIGHTS})}
    return {CHART.parent / name: HEADER.format(what=what, digest=digest()) + "---\n" + "---\n".join(documents(texts))
            for name, (what, texts) in made.items()}
