#!/usr/bin/python3
"""Debian's packages, as a site has them: built, looked at by lintian, installed under a systemd that runs, as docs/admin/install.md says,
used, upgraded with a job that runs, and removed."""

import hashlib
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from on_a_machine import SERVICES, WHY_NOT, OnAMachine
from booted import commands
from cluster import BIN, ROOT

BUILD = BIN.parent
PAGE = ROOT / "docs" / "admin" / "install.md"
NEWER = "9.0.0"
WITH_PROGRAMS = {"controller", "agent", "cli", "criu", "slurm", "slurm-plugin"}
ALWAYS = {"controller", "agent", "cli", "dashboards", "doc"}


def build(folder, version=None, **settings):
    """The packages of what is built, by short name."""
    settings |= {"CPACK_PACKAGE_DIRECTORY": folder, "CPACK_DEBIAN_COMPRESSION_TYPE": "gzip"}
    settings |= {"CPACK_PACKAGE_VERSION": version} if version else {}
    made = subprocess.run(["cpack", "-G", "DEB", *(arg for name, value in settings.items() for arg in ("-D", f"{name}={value}"))],
                          cwd=BUILD, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    shutil.rmtree(folder / "_CPack_Packages")
    return {re.match(r"siding-(.*?)_", path.name).group(1): path for path in folder.glob("*.deb")}


def change_kept(package, folder):
    """As of a version in which the programs that images name are others."""
    tree = folder / "tree"
    subprocess.run(["dpkg-deb", "--raw-extract", package, tree], check=True)
    for file in (tree / "usr/lib/siding/packaged").iterdir():
        with open(file, "ab") as program:
            program.write(b"of a later version")
        file.rename(file.with_name(f"{file.name.rsplit('-', 1)[0]}-{hashlib.sha256(file.read_bytes()).hexdigest()[:12]}"))
    subprocess.run(["dpkg-deb", "--build", "-Znone", tree, package], check=True, capture_output=True)


def setUpModule():
    global packages, newer
    folder = pathlib.Path(tempfile.mkdtemp(prefix="siding-packages-", dir="/var/tmp"))
    unittest.addModuleCleanup(shutil.rmtree, folder)
    for name in ("these", "newer"):
        (folder / name).mkdir()
    packages, newer = build(folder / "these"), build(folder / "newer", NEWER)
    change_kept(newer["agent"], folder)


def contents(package):
    listed = subprocess.run(["dpkg-deb", "--contents", package], capture_output=True, text=True, check=True).stdout
    return {line.split()[5].lstrip("."): line.split()[:2] for line in listed.splitlines()}


class Files(unittest.TestCase):
    def test_there_is_one_for_each_part(self):
        self.assertEqual(set(packages) - {"criu", "slurm", "slurm-plugin"}, ALWAYS)

    def test_what_is_installed_is_in_one_of_them(self):
        with tempfile.TemporaryDirectory(prefix="siding-tree-") as tree:
            subprocess.run(["cmake", "--install", BUILD, "--prefix", "/usr"], env={"DESTDIR": tree, "PATH": "/usr/bin:/bin"},
                           check=True, capture_output=True)
            installed = {f"/{path.relative_to(tree)}" for path in pathlib.Path(tree).rglob("*") if not path.is_dir()}
        packed = {name.split("packaged/")[-1] for package in packages.values() for name in contents(package)}
        made_by_postinst = {"/usr/bin/siding-init", "/usr/bin/siding-mpirun"}
        self.assertEqual({name for name in installed - made_by_postinst
                          if name not in packed and pathlib.Path(name).name not in packed}, set())

    def test_no_file_is_in_two(self):
        seen = {}
        for short, package in packages.items():
            for name in contents(package):
                if not name.endswith("/"):
                    self.assertNotIn(name, seen, f"{short} and {seen.get(name)}")
                    seen[name] = short

    def test_only_root_can_write_them(self):
        for package in packages.values():
            for name, (mode, owner) in contents(package).items():
                self.assertEqual((owner, mode[5], mode[8]), ("root/root", "-", "-"), name)

    def test_the_plugin_needs_nothing_but_libc(self):
        if "slurm-plugin" not in packages:
            self.skipTest("built without Slurm")
        depends = subprocess.run(["dpkg-deb", "--field", packages["slurm-plugin"], "Depends"], capture_output=True, text=True, check=True)
        self.assertEqual(re.findall(r"[\w.+-]+(?= |,|$)", re.sub(r"\(.*?\)", "", depends.stdout)), ["libc6"])

    def test_the_controller_does_without_slurm(self):
        depends = subprocess.run(["dpkg-deb", "--field", packages["controller"], "Depends"], capture_output=True, text=True, check=True)
        self.assertNotIn("slurm", depends.stdout)

    @unittest.skipUnless(shutil.which("lintian"), "lintian is not installed")
    def test_lintian_finds_no_error(self):
        said = subprocess.run(["lintian", "--allow-root", "--tag-display-limit=0", "--display-level=>=error", *packages.values()],
                              capture_output=True, text=True)
        self.assertEqual((said.stdout, said.stderr), ("", ""))


@unittest.skipIf(WHY_NOT, f"no machine with systemd: {WHY_NOT}")
class Installed(OnAMachine):
    """One after another, on one machine."""

    @classmethod
    def setUpClass(cls):
        if "criu" not in packages:
            raise unittest.SkipTest("there is no criu of siding's to be packaged (./run setup)")
        super().setUpClass()

    @classmethod
    def install(cls):
        # What get-criu has built for an earlier version of siding, say.
        cls.machine.run("sh", "-ec", "printf '#!/bin/sh\\nexit 1\\n' >/opt/siding/sbin/criu")
        cls.copy(packages, "/root/siding")
        for line in commands(PAGE, "On one machine"):
            cls.machine.run("sh", "-ec", f"cd /root/siding; {line}", input="y\n")
        cls.kept = cls.digests()

    @classmethod
    def digests(cls):
        """Of what images and jobs name."""
        said = cls.machine.run("sh", "-c", "cd /usr/lib/siding; sha256sum siding-init-* siding-mpirun-*")
        return {line.split()[1]: line.split()[0] for line in said.splitlines()}

    @classmethod
    def copy(cls, which, folder):
        cls.machine.run("rm", "-rf", folder)
        cls.machine.run("mkdir", folder)
        for path in which.values():
            shutil.copy(path, cls.machine.path(folder))

    def dpkg(self, *args):
        return self.machine.call("dpkg", *args)

    def installed(self):
        listed = self.machine.run("dpkg-query", "--show", "--showformat", "${Package}|${Version}|${db:Status-Status}\n", "siding-*")
        return {name: version for name, version, status in (line.split("|") for line in listed.splitlines()) if status == "installed"}

    def test_1_an_upgrade_leaves_a_job_that_runs_alone(self):
        job = self.counter()
        before = self.processes(job)
        self.machine.run("sed", "-i", "s/^metrics_port: .*/metrics_port: 9109/", "/etc/siding/sidingd.yaml")
        self.copy(newer, "/root/newer")
        agent, controller = self.main_pid("siding-agent"), self.main_pid("sidingd")
        for line in commands(PAGE, "Upgrading"):
            self.machine.run("sh", "-ec", f"cd /root/newer; {line}", input="y\n")
        self.wait_restarted("siding-agent", agent)
        self.wait_restarted("sidingd", controller)
        self.wait_up()
        self.assertEqual(set(self.installed().values()), {NEWER})
        self.assertEqual(self.processes(job), before)
        self.assertEqual(self.job(job)["state"], "running")
        self.assertEqual({name: digest for name, digest in self.digests().items() if name in self.kept}, self.kept)
        self.assertEqual(len(self.digests()), 2 * len(self.kept))
        self.assertNotIn(pathlib.Path(self.machine.run("readlink", "-f", "/usr/bin/siding-init").strip()).name, self.kept)
        self.assertIn("9109", self.machine.run("cat", "/etc/siding/sidingd.yaml"))
        type(self).old_job = job

    def test_2_after_it_a_job_of_before_makes_way_and_comes_back(self):
        express = self.express()
        self.wait_state(express, "done")
        self.wait_event(self.old_job, "released")
        self.assert_counted(self.old_job)

    def test_3_going_back_is_refused(self):
        running, kept = [self.main_pid(service) for service in SERVICES], self.digests()
        refused = self.dpkg("--install", *(f"/root/siding/{package.name}" for short, package in packages.items()
                                          if short in WITH_PROGRAMS and f"siding-{short}" in self.installed()))
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("Going back", refused.stderr)
        self.assertEqual(set(self.installed().values()), {NEWER})
        self.assertEqual(([self.main_pid(service) for service in SERVICES], self.digests()), (running, kept))

    def test_4_a_controller_that_would_not_start_is_not_ended(self):
        controller, path = self.main_pid("sidingd"), self.machine.path("/etc/siding/sidingd.yaml")
        good = path.read_text()
        self.addCleanup(path.write_text, good)
        path.write_text(good + "metrics_prot: 1\n")
        said = self.dpkg("--install", f"/root/newer/{newer['controller'].name}")
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("metrics_prot", said.stderr)
        self.assertEqual(self.main_pid("sidingd"), controller)

    def test_5_removed_and_installed_again_it_knows_its_jobs(self):
        job = self.counter()
        before = self.processes(job)
        said = self.dpkg("--remove", *self.installed())
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("jobs on this node run on", said.stderr)
        self.assertEqual(self.processes(job), before)
        refused = self.dpkg("--purge", "siding-agent")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("jobs run on this node", refused.stderr)
        self.machine.run("sh", "-ec", "dpkg --install /root/newer/*.deb && systemctl start sidingd siding-agent")
        self.wait_up()
        self.assertEqual((self.job(job)["state"], self.kinds(job).count("started")), ("running", 1))
        self.assert_counted(job)
        self.assertLessEqual(self.kept.items(), self.digests().items())
        self.assertEqual({self.machine.show(service, "UnitFileState") for service in SERVICES}, {"enabled"})

    def test_6_the_plugin_stays_while_slurm_loads_it(self):
        if "slurm-plugin" not in packages:
            self.skipTest("built without Slurm")
        self.machine.run("sh", "-ec", "mkdir -p /etc/slurm/plugstack.conf.d && "
                         "cp /usr/share/siding/slurm/plugstack.conf.d/siding.conf /etc/slurm/plugstack.conf.d")
        refused = self.dpkg("--remove", "siding-slurm-plugin")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("/etc/slurm/plugstack.conf.d/siding.conf", refused.stderr)
        self.machine.run("rm", "/etc/slurm/plugstack.conf.d/siding.conf")

    def test_7_nothing_is_left_of_it(self):
        self.machine.run("dpkg", "--purge", *self.installed())
        left = self.machine.run("find", *(f"/{folder}" for folder in ("etc", "run", "srv", "usr", "var/lib")), "-xdev", "-name", "*siding*")
        self.assertEqual([path for path in left.splitlines() if not pathlib.Path(path).exists()], [], "and images in shared folders")


if __name__ == "__main__":
    unittest.main(verbosity=2)
