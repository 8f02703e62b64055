#!/usr/bin/python3
"""The services under a systemd that runs: installed as docs/admin/sidingd.md says, used, restarted, killed and rebooted."""

import json
import os
import pathlib
import re
import subprocess
import time
import unittest

from on_a_machine import SERVICES, WHY_NOT, OnAMachine
from booted import Machine, commands
from cluster import BIN, ROOT, wait_for


class Service(OnAMachine):
    @classmethod
    def install(cls):
        install, *then = commands(ROOT / "docs" / "admin" / "sidingd.md", "As a service")
        # From here, as the build folder may lie on a mount that the machine does not have.
        done = subprocess.run(install.replace("build/release", str(BIN.parent)), shell=True, capture_output=True, text=True,
                              env={**os.environ, "DESTDIR": str(cls.machine.path("/"))})
        assert done.returncode == 0, done.stderr
        for line in then:
            cls.machine.run("sh", "-ec", line)


class Working(Service):
    def test_a_job_makes_way_and_comes_back(self):
        victim = self.counter()
        self.assert_made_way(victim, self.express())

    def test_a_job_does_not_notice_that_its_agent_is_restarted(self):
        job = self.counter()
        before = self.processes(job)
        self.assertTrue(before)
        agent = self.main_pid("siding-agent")
        self.systemctl("restart", "siding-agent")
        self.assertNotEqual(self.main_pid("siding-agent"), agent)
        self.wait_up()
        self.assertEqual(self.processes(job), before)
        self.ctl("vacate", job)
        self.assert_counted(job)
        self.assertEqual((self.kinds(job).count("started"), self.kinds(job).count("restored")), (1, 1), self.kinds(job))

    def test_a_job_runs_on_while_its_agent_is_stopped(self):
        job = self.counter()
        before = self.processes(job)
        self.systemctl("stop", "siding-agent")
        self.assertEqual(self.machine.show("siding-agent", "Result"), "success")
        # Nothing of siding's is left that systemd would take for the agent's, but the jobs live.
        self.assertEqual(self.machine.pids("system.slice/siding-agent.service"), set())
        self.assertEqual(self.processes(job), before)
        self.systemctl("start", "siding-agent")
        self.wait_up()
        self.assert_counted(job)

    def test_nothing_is_lost_when_the_controller_is_restarted(self):
        victim = self.counter()
        express = self.express()
        self.wait_event(victim, "order-dump")
        self.systemctl("restart", "sidingd")
        self.assert_made_way(victim, express)
        self.assert_journal_without_gaps()

    def test_a_policy_is_read_again(self):
        path = self.machine.path("/etc/siding/policy.yaml")
        before = path.read_text()
        self.addCleanup(self.systemctl, "reload", "sidingd")
        self.addCleanup(path.write_text, before)
        path.write_text(re.sub(r"max_jobs_per_user: \d+", "max_jobs_per_user: 4321", before))
        pid = self.main_pid("sidingd")
        self.systemctl("reload", "sidingd")
        wait_for("the new policy", lambda: "4321" in self.machine.run("sidingctl", "policy", "show"))
        self.assertEqual(self.main_pid("sidingd"), pid)

    def test_what_the_controllers_sandbox_leaves_it(self):
        status = self.machine.path(f"/proc/{self.main_pid('sidingd')}/status").read_text()
        self.assertEqual(set(re.findall(r"^Cap(?:Inh|Prm|Eff|Bnd|Amb):\t(\w+)$", status, re.M)), {"0" * 16})
        self.assertIn("NoNewPrivs:\t1", status)
        self.assertIn("Seccomp:\t2", status)
        mounts = self.machine.path(f"/proc/{self.main_pid('sidingd')}/mounts").read_text()
        self.assertRegex(mounts, r"(?m)^\S+ / overlay ro,")
        self.assertNotIn("Permission denied", self.machine.journal("sidingd"))

    def test_systemd_knows_every_word_of_the_units(self):
        for service in SERVICES:
            unit = f"/usr/lib/systemd/system/{service}.service"
            self.assertEqual(self.machine.call("systemd-analyze", "verify", "--man=no", unit).stderr, "", service)

    def test_exposure_is_no_more_than_the_page_on_security_says(self):
        page = (ROOT / "docs" / "admin" / "security.md").read_text()
        said = re.search(r"^\| exposure by .* \| ([\d.]+) \| ([\d.]+) \|$", page, re.M).groups()
        for service, most in zip(SERVICES, said):
            found = self.machine.run("systemd-analyze", "security", "--no-pager", f"{service}.service")
            self.assertLessEqual(float(re.search(r"Overall exposure level for .*: ([\d.]+)", found)[1]), float(most), service)


class Told(Service):
    """The machine's log has events, from inside the controller's sandbox."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(cls.machine.path("/etc/siding/sidingd.yaml"), "a", encoding="utf-8") as file:
            file.write("events_to:\n  - {name: fields, log: journald}\n  - {name: lines, log: syslog, kinds: [succeeded]}\n")
        cls.machine.run("systemctl", "restart", "sidingd")
        cls.wait_up()

    def logged(self, *asked):
        lines = self.machine.call("journalctl", "--no-pager", "--output=json", "-t", "siding-events", "_SYSTEMD_UNIT=sidingd.service", *asked).stdout.splitlines()
        return [json.loads(line) for line in lines]

    def test_events_are_found_by_their_fields(self):
        job = self.counter()
        self.assert_counted(job)
        asked = (f"SIDING_JOB={job}", "SIDING_EVENT=place")
        wait_for("the event to be logged", lambda: self.logged(*asked))
        [entry] = self.logged(*asked)
        self.assertEqual((entry["MESSAGE"], entry["SIDING_NODES"]), (f"job {job} place: placed on n1", "n1"))

    def test_syslog_has_them_in_its_text(self):
        job = self.counter()
        self.assert_counted(job)
        start = "event=succeeded "
        wait_for("the line", lambda: [e for e in self.logged() if e["MESSAGE"].startswith(start) and f" job={job} " in e["MESSAGE"]])


class OverTheNetwork(Service):
    """The machine as a node of its own: its agent dials the controller over TLS, with the node's certificate."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for heading in ("The network", "A node of its own"):
            for line in commands(ROOT / "docs" / "admin" / "slurm-site.md", heading):
                # The one machine is the controller's, the authority's and the node.
                line = line.replace("head1.example.org", "localhost").replace("scp -p", "cp -p").replace(" n1:/", " /")
                cls.machine.run("sh", "-ec", line)
        cls.wait_up()

    def test_a_job_makes_way_and_comes_back(self):
        wait_for("the agent to have dialled over the network",
                 lambda: "connected to the controller at localhost:7433" in self.machine.journal("siding-agent"))
        victim = self.counter()
        self.assert_made_way(victim, self.express())

    def test_a_node_is_not_root_to_the_controller(self):
        done = self.machine.call("sidingctl", "--controller=localhost:7433", "--ca=/etc/siding/ca.pem", "--certificate=/etc/siding/node.pem",
                                 "--key=/etc/siding/node.key", "cordon", "n1")
        self.assertEqual((done.returncode, done.stderr), (1, "sidingctl: cordon: the certificate of node n1 may not act as a user\n"))

    def test_a_node_may_not_speak_for_another(self):
        as_another = ("--controller=localhost:7433", "--ca=/etc/siding/ca.pem", "--certificate=/etc/siding/node.pem",
                      "--key=/etc/siding/node.key", "--state-dir=/tmp/n2")
        self.machine.run("systemd-run", "--unit=another", "/usr/bin/siding-agent", "--node=n2", *as_another)
        self.addCleanup(self.systemctl, "stop", "another")
        wait_for("it to be refused",
                 lambda: "the certificate of node n1 may not speak for node n2" in self.machine.journal("another"))


class Killed(Service):
    def kill_while_dumping(self, service):
        victim = self.counter(mib=256)
        express = self.express()
        self.wait_event(victim, "order-dump")
        before = self.main_pid(service)
        self.systemctl("kill", "--signal=KILL", service)
        self.wait_restarted(service, before)
        self.assert_made_way(victim, express)
        self.assert_journal_without_gaps()

    def test_the_agent_with_all_that_systemd_takes_for_its_own(self):
        self.kill_while_dumping("siding-agent")

    def test_the_controller(self):
        self.kill_while_dumping("sidingd")

    def test_a_job_outlives_what_systemd_kills_with_the_agent(self):
        job = self.counter()
        processes, agent = self.processes(job), self.main_pid("siding-agent")
        self.systemctl("kill", "--signal=KILL", "siding-agent")
        self.wait_restarted("siding-agent", agent)
        self.wait_up()
        self.assertEqual(self.processes(job), processes)
        self.assert_counted(job)
        self.assertEqual(self.kinds(job).count("started"), 1, self.kinds(job))

    def test_systemd_never_gives_a_service_up(self):
        for service in SERVICES:
            for _ in range(7):  # by itself systemd does after five times in ten seconds
                before = self.main_pid(service)
                self.systemctl("kill", "--signal=KILL", service)
                self.wait_restarted(service, before)
        self.wait_up()


class Rebooted(Service):
    def boot(self):
        since = time.monotonic()
        self.machine.start()
        self.wait_up()
        print(f"after a boot the node is up in {time.monotonic() - since:.1f} s", flush=True)

    def saved(self):
        """A job with a checkpoint that has counted on since."""
        job = self.counter()
        self.ctl("checkpoint", job)
        at = self.out(job).read_text().count("\n")
        wait_for("progress beyond the checkpoint", lambda: self.out(job).read_text().count("\n") > at + 20)
        return job

    def assert_went_on_once(self, job):
        self.assert_counted(job)
        self.assertEqual((self.kinds(job).count("started"), self.kinds(job).count("restored")), (1, 1), self.kinds(job))

    def test_services_and_jobs_are_there_again_after_a_power_cut(self):
        job = self.saved()
        self.machine.cut_power()
        self.boot()
        self.assert_went_on_once(job)

    def test_a_job_that_a_shutdown_ended_goes_on_from_its_checkpoint(self):
        job = self.saved()
        self.machine.power_off()
        self.boot()
        self.assert_went_on_once(job)


class Leavings(unittest.TestCase):
    @unittest.skipIf(WHY_NOT, f"no machine with systemd: {WHY_NOT}")
    def test_a_machine_leaves_nothing_behind(self):
        machine = Machine("n1")
        machine.start()
        group, folder, launcher = machine.group, machine.dir, machine.launcher
        machine.remove()
        self.assertNotIn(str(folder), pathlib.Path("/proc/self/mountinfo").read_text())
        self.assertEqual((group.exists(), folder.exists(), launcher.poll() is None), (False, False, False))


if __name__ == "__main__":
    unittest.main(verbosity=2)
