#!/usr/bin/python3
"""The systemd units: what they keep the services from, and that these still do their work."""

import os
import pathlib
import re
import shutil
import stat
import tempfile
import unittest

from case import Cluster, run
from cluster import ROOT

TEMPLATES = ROOT / "deploy" / "systemd"


def configured(folder):
    """The units as a site has them, by name."""
    for template in TEMPLATES.glob("*.service.in"):
        (folder / template.stem).write_text(template.read_text().replace("@CMAKE_INSTALL_PREFIX@", "/usr"))
    return {path.name: path for path in folder.iterdir()}


def settings(unit, key):
    """All values of a key, those of its later lines behind those of the earlier ones."""
    return " ".join(re.findall(rf"^{key}=(.*)$", unit.read_text(), re.M)).split()


@unittest.skipUnless(shutil.which("systemd-analyze"), "systemd is not installed")
class UnitCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="siding-units-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.units = configured(cls.folder)


class Exposure(UnitCase):
    def exposure(self, name):
        said = run("systemd-analyze", "security", "--offline=yes", "--no-pager", self.units[name]).stdout
        print(re.search(r"Overall exposure.*", said).group())
        return float(re.search(r"Overall exposure level for .*: ([0-9.]+)", said).group(1))

    def test_the_controller_is_kept_from_all_that_it_does_not_need(self):
        self.assertLess(self.exposure("sidingd.service"), 3)

    def test_the_agent_is_kept_from_what_criu_and_jobs_do_not_need(self):
        self.assertLess(self.exposure("siding-agent.service"), 9.1)

    def test_a_node_without_memory_ends_jobs_and_not_the_agent(self):
        self.assertEqual(settings(self.units["siding-agent.service"], "OOMScoreAdjust"), ["-900"])


def without_capabilities(kept=()):
    """A command that runs another with these capabilities at most, as CapabilityBoundingSet= has it."""
    return ["setpriv", "--inh-caps=-all", "--bounding-set=" + ",".join(["-all", *("+" + c.removeprefix("CAP_").lower() for c in kept)])]


class BoundCluster(Cluster):
    """Whose services have what the units leave them."""

    bounds = {"sidingd": ["setpriv", "--no-new-privs", *without_capabilities()[1:]]}

    def _spawn(self, name, argv):
        kind = "agent" if name.startswith("agent-") else name
        return super()._spawn(name, [*self.bounds.get(kind, []), *argv])


@unittest.skipUnless(os.geteuid() == 0, "needs root, to run jobs as their users")
class Working(UnitCase):
    def start(self, prepare=lambda cluster: None):
        self.cluster = BoundCluster(("n1",), slots=1)
        prepare(self.cluster)
        self.addCleanup(self.finish)
        have = run("capsh", "--print").stdout
        BoundCluster.bounds["agent"] = without_capabilities(
            [c for c in settings(self.units["siding-agent.service"], "CapabilityBoundingSet") if c.lower() in have])
        self.cluster.start()

    def finish(self):
        self.cluster.stop()
        shutil.rmtree(self.cluster.dir, ignore_errors=True)

    def capabilities(self, process):
        return re.findall(r"^Cap(?:Prm|Eff|Bnd):\t(\w+)$", pathlib.Path(f"/proc/{process.pid}/status").read_text(), re.M)

    def test_a_job_runs_and_comes_back_with_the_capabilities_that_are_left(self):
        self.start()
        self.assertEqual(set(self.capabilities(self.cluster.controller)), {"0" * 16})
        job = self.cluster.submit("--preemptible", "checkpoint", "--workdir", "/", "--output", "/dev/null", "--", "/bin/sleep", "600",
                                  uid=1)
        self.cluster.wait_state(job, "running")
        self.cluster.ctl("vacate", job)
        self.cluster.wait_event(job, "released")
        self.cluster.wait_event(job, "restored")
        self.cluster.wait_state(job, "running")

    def test_without_slurm_the_controller_needs_no_root(self):
        before = BoundCluster.bounds["sidingd"]
        BoundCluster.bounds["sidingd"] = [*before, "--reuid=1", "--regid=1", "--clear-groups"]
        self.addCleanup(BoundCluster.bounds.__setitem__, "sidingd", before)
        self.start(prepare=lambda cluster: os.chown(cluster.dir, 1, 1))
        self.assertEqual(os.stat(self.cluster.socket).st_uid, 1)
        job = self.cluster.submit("--workdir", "/", "--output", "/dev/null", "--", "/bin/true", uid=2)
        self.cluster.wait_state(job, "done")

    def test_what_the_services_make_is_roots_alone(self):
        old = os.umask(0o077)  # as the units have it
        self.addCleanup(os.umask, old)
        self.start()
        os.chmod(self.cluster.dir, 0o755)
        self.assertEqual(stat.S_IMODE(self.cluster.socket.stat().st_mode), 0o666)
        for folder in ("controller", "n1", "shared"):
            self.assertEqual(stat.S_IMODE((self.cluster.dir / folder).stat().st_mode) & 0o077, 0, folder)


@unittest.skipUnless(shutil.which("strace") and os.geteuid() == 0, "strace is not installed")
class SystemCalls(UnitCase):
    @staticmethod
    def expand(names):
        calls = set()
        for name in names:
            if name.startswith("@"):
                said = run("systemd-analyze", "syscall-filter", "--no-pager", name).stdout
                calls |= SystemCalls.expand(re.findall(r"^    (@?[\w-]+)$", said, re.M))
            else:
                calls.add(name)
        return calls

    def allowed(self):
        calls = self.expand(["@default"])  # always
        for line in re.findall(r"^SystemCallFilter=(.*)$", self.units["sidingd.service"].read_text(), re.M):
            calls = calls - self.expand(line[1:].split()) if line.startswith("~") else calls | self.expand(line.split())
        return calls

    def test_the_filter_lets_the_controller_work(self):
        trace = self.folder / "trace"
        BoundCluster.bounds["sidingd"], before = ["strace", "-f", "-qq", "-o", trace], BoundCluster.bounds["sidingd"]
        self.addCleanup(BoundCluster.bounds.__setitem__, "sidingd", before)
        cluster = BoundCluster((), config="metrics_port: 0\n")
        self.addCleanup(shutil.rmtree, cluster.dir)
        self.addCleanup(cluster.stop)
        cluster.start()
        cluster.ctl("policy", "show")
        cluster.stop()
        used = set(re.findall(r"^\d+ +(\w+)\(", trace.read_text(), re.M))
        self.assertIn("sendmsg", used)
        self.assertEqual(used - self.allowed(), set())


if __name__ == "__main__":
    unittest.main()
