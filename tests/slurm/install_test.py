#!/usr/bin/python3
"""siding as a site installs it: the installed programs, the installed plugstack.conf, broken and mended again."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from case import BIN, ROOT, Agents, SlurmError, wait_for
from preemption_test import PreemptionCase

BUILD = BIN.parent


def install(prefix, *args, **env):
    subprocess.run(["cmake", "--install", str(BUILD), "--prefix", str(prefix), *args], env={**os.environ, **env}, check=True,
                   capture_output=True, text=True)


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="siding-install-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def test_a_staged_tree_names_the_prefix_only(self):
        install("/usr", DESTDIR=str(self.folder))
        for name in ("share/siding/slurm/plugstack.conf.d/siding.conf", "lib/systemd/system/siding-agent.service",
                     "lib/systemd/system/sidingd.service"):
            text = (self.folder / "usr" / name).read_text()
            self.assertIn("/usr/bin", text, name)
            self.assertNotIn(str(self.folder), text, name)
        self.assertTrue((self.folder / "usr/bin/siding-init").resolve().is_relative_to(self.folder))

    def test_kubernetes_finds_its_program_and_its_objects(self):
        install(self.folder)
        self.assertTrue(os.access(self.folder / "bin" / "siding-runc", os.X_OK))
        deploy, installed = ROOT / "deploy" / "kubernetes", self.folder / "share" / "siding" / "kubernetes"
        shipped = [path.relative_to(deploy) for path in (*deploy.glob("*.yaml"), *deploy.glob("chart/**/*")) if path.is_file()]
        self.assertEqual({str(path.relative_to(installed)): path.read_text() for path in installed.rglob("*") if path.is_file()},
                         {str(path): (deploy / path).read_text() for path in shipped})

    def test_what_the_manifest_names_is_all_that_there_is(self):
        install(self.folder / "site")
        for name in (BUILD / "install_manifest.txt").read_text().split("\n"):
            self.assertTrue(pathlib.Path(name).is_relative_to(self.folder), "another test has installed beside this one")
            pathlib.Path(name).unlink()
        left = [path for path in self.folder.rglob("*") if not path.is_dir()]
        self.assertEqual(left, [])

    def test_a_submit_host_gets_the_plugin_alone(self):
        install(self.folder, "--component", "slurm-plugin")
        self.assertEqual(sorted(p.name for p in self.folder.rglob("*") if p.is_file()), ["siding.conf", "siding_spank.so"])

    def test_a_plugin_that_is_loaded_is_not_written_to(self):
        install(self.folder)
        plugin = self.folder / "lib" / "siding" / "siding_spank.so"
        with open(plugin, "ab") as old:
            old.write(b"of yesterday")
        with open(plugin, "rb") as loaded:
            install(self.folder)
            self.assertTrue(loaded.read().endswith(b"of yesterday"))
        self.assertEqual(plugin.read_bytes(), (BUILD / "lib" / "siding_spank.so").read_bytes())

    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd is not installed")
    def test_systemd_understands_the_units(self):
        install(self.folder)
        units = sorted((self.folder / "lib" / "systemd" / "system").glob("*.service"))
        said = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *units], capture_output=True, text=True)
        self.assertEqual((len(units), said.returncode, said.stderr), (2, 0, ""))


class Site(PreemptionCase):
    def prepare(self):
        self.site = self.slurm.dir / "site"
        install(self.site)
        self.plugin = self.site / "lib" / "siding" / "siding_spank.so"
        self.slurm.plugstack = f"include {self.site}/share/siding/slurm/plugstack.conf.d/*.conf"
        self.agents = Agents(self.slurm.dir / "agents", self.slurm.nodes, self.slurm.agent_socket, programs=self.site / "bin")
        self.addCleanup(self.agents.stop)
        self.agents.start()
        self.work = self.slurm.dir / "work"
        self.work.mkdir()
        self.work.chmod(0o777)

    def assert_it_migrates(self):
        job = self.submit("--siding-preemptible", self.counter())
        self.wait_counting(job)
        self.vacate(job)
        self.assertEqual(self.end_job(job)["BatchHost"], "node2")
        self.assert_counted(job)

    def node_log(self):
        return (self.slurm.dir / "log" / "node1.log").read_text()

    def test_jobs_run_with_and_without_its_flag(self):
        self.assertEqual(self.slurm.run("srun", "cat", "/proc/self/comm"), "cat")
        self.assert_it_migrates()

    def test_jobs_run_without_the_plugins_file_and_with_it_again(self):
        away = self.plugin.with_suffix(".away")
        self.plugin.rename(away)
        self.assertEqual(self.slurm.run("srun", "-w", "node1", "echo", "here"), "here")
        wait_for("slurmd to say so", lambda: str(self.plugin) in self.node_log())
        with self.assertRaisesRegex(SlurmError, "unrecognized option '--siding-preemptible'"):
            self.slurm.run("srun", "--siding-preemptible", "true")
        away.rename(self.plugin)
        self.assert_it_migrates()

    def version(self):
        """Of the Slurm that runs, as a plugin carries it."""
        major, minor, micro = (int(part) for part in self.slurm.run("srun", "--version").split()[-1].split("."))
        return (major << 16 | minor << 8 | micro).to_bytes(4, "little")

    def test_jobs_run_with_a_plugin_of_another_slurm(self):
        other = self.plugin.read_bytes().replace(self.version(), (99 << 16).to_bytes(4, "little"))
        self.plugin.unlink()
        self.plugin.write_bytes(other)
        self.assertEqual(self.slurm.run("srun", "-w", "node1", "echo", "here"), "here")
        wait_for("slurmd to say so", lambda: "Incompatible Slurm plugin" in self.node_log())

    def test_jobs_run_without_the_programs(self):
        shutil.rmtree(self.site / "bin")
        self.assertEqual(self.slurm.run("srun", "-w", "node1", "--siding-preemptible", "echo", "here"), "here")
        wait_for("slurmd to say so", lambda: "siding-slurm-task is missing" in self.node_log())

    def test_an_empty_plugstack_folder_is_no_error(self):
        (self.site / "share" / "siding" / "slurm" / "plugstack.conf.d" / "siding.conf").unlink()
        self.assertEqual(self.slurm.run("srun", "-w", "node1", "echo", "here"), "here")

    def test_a_parked_job_outlives_an_upgrade(self):
        job = self.submit("--siding-preemptible", self.counter())
        self.wait_counting(job)
        self.slurm.run("scontrol", "update", "NodeName=node2", "State=drain", "Reason=test")
        self.vacate(job)
        newer = self.slurm.dir / "siding-init"
        newer.write_bytes((BIN / "siding-init").read_bytes() + b"newer")
        subprocess.run(["cmake", f"-DCMAKE_INSTALL_PREFIX={self.site}", f"-Dfrom={newer}", "-Dlink=bin/siding-init", "-P",
                        str(ROOT / "cmake" / "InstallKept.cmake")], check=True, capture_output=True)
        self.assertEqual((self.site / "bin" / "siding-init").read_bytes(), newer.read_bytes())
        self.slurm.run("scontrol", "update", "NodeName=node2", "State=resume")
        self.end_job(job)
        self.assert_counted(job)


if __name__ == "__main__":
    unittest.main(verbosity=2)
