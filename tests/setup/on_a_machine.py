"""A machine with a systemd that runs, on which siding is installed, and what its user and its administrator do there."""

import json
import pathlib
import sys
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "harness"), str(TESTS / "e2e")]
from booted import Machine, why_not  # noqa: E402
from cluster import find_criu, wait_for  # noqa: E402
from cluster_case import has_failed  # noqa: E402
import jobs  # noqa: E402
from vanishing import paths  # noqa: E402

WHY_NOT = why_not() or (None if find_criu() else "there is no criu that works here (./run setup)")
SERVICES = ("sidingd", "siding-agent")
HOME = "/home/ada"


@unittest.skipIf(WHY_NOT, f"no machine with systemd: {WHY_NOT}")
class OnAMachine(unittest.TestCase):
    """A machine that is controller and node, with one ordinary user."""

    @classmethod
    def setUpClass(cls):
        cls.machine = Machine("n1")
        cls.addClassCleanup(cls.machine.remove)
        cls.machine.start()
        cls.install()
        cls.machine.run("useradd", "--create-home", "ada")
        (cls.machine.path(HOME) / "counter.py").write_text(jobs.COUNTER)
        cls.gates = {}  # by job: the file in the machine without which it does not end
        cls.wait_up()

    @classmethod
    def install(cls):
        """Both services run afterwards."""
        raise NotImplementedError

    def tearDown(self):
        if has_failed(self):
            for service in SERVICES:
                print(f"---- {service}\n{self.machine.journal(service, 60)}", file=sys.stderr)

    # ---- what the user and the administrator do ----
    @classmethod
    def ctl(cls, *args):
        said = cls.machine.run("setpriv", "--reuid=ada", "--regid=ada", "--init-groups", "sidingctl", "--json", *args)
        found = [json.loads(line) for line in said.splitlines()]
        return found if args[0] == "events" else found[0] if found else None

    @classmethod
    def systemctl(cls, *args):
        return cls.machine.run("systemctl", *args)

    def submit(self, *args):
        return int(self.ctl("submit", "--slots", 2, "--workdir", HOME, "--output", f"{HOME}/out.%j", *args)["id"])

    def counter(self, mib=32):
        gate = f"{HOME}/gate.{len(self.gates)}"
        job = self.submit("--preemptible=checkpoint", "--", "/usr/bin/python3", f"{HOME}/counter.py", gate, mib)
        self.gates[job] = gate
        wait_for(f"job {job} to count", lambda: self.out(job).exists() and self.out(job).read_text().count("\n") > 20)
        return job

    def express(self):
        return self.submit("--start-by", "+10m", "--", "/bin/sleep", 1)

    # ---- what is to be seen ----
    def out(self, job):
        return self.machine.path(f"{HOME}/out.{job}")

    def job(self, job):
        return next(j for j in self.ctl("jobs", "--all")["jobs"] if int(j["id"]) == job)

    def wait_state(self, job, state):
        def there():
            try:
                now = self.job(job)
            except AssertionError as problem:
                assert "no controller answers" in str(problem), problem
                return None  # systemd is about to start it
            ended = now["state"] in ("done", "failed", "cancelled")
            assert now["state"] == state or not ended, f"job {job} {now['state']}: {now.get('reason')}: {self.kinds(job)}"
            return now if now["state"] == state else None
        return wait_for(f"job {job} to be {state}", there)

    def wait_event(self, job, kind):
        wait_for(f"{kind} of job {job}", lambda: kind in self.kinds(job))

    def kinds(self, job):
        return [event["kind"] for event in self.ctl("events", "--job", job)]

    @classmethod
    def wait_up(cls):
        """Both services, each with the other."""
        def up():
            nodes = json.loads(cls.machine.call("sidingctl", "--json", "nodes").stdout or "{}").get("nodes", [])
            return [n["state"] for n in nodes] == ["up"] and nodes[0].get("shared", {}).get("dump", {}).get("bytes_per_second", 0)
        wait_for("the node to be up and measured", up)

    def main_pid(self, service):
        return int(self.machine.show(service, "MainPID"))

    def wait_restarted(self, service, before):
        wait_for(f"systemd to have restarted {service}",
                 lambda: self.main_pid(service) not in (0, before) and self.machine.show(service, "ActiveState") == "active")

    def processes(self, job):
        """Of the job; not its shim."""
        groups = paths(self.machine.group / "siding" / "n1", f"{job}.1.0." + "[0-9a-f]" * 16)  # and the cluster's name
        return {pid for group in groups for pid in self.machine.pids(str(group.relative_to(self.machine.group)))}

    def assert_counted(self, job):
        """It may end now, and has counted without a gap."""
        self.machine.path(self.gates[job]).touch()
        self.wait_state(job, "done")
        self.assertIsNone(jobs.counted(self.out(job)))

    def assert_made_way(self, victim, express):
        """In time; and the victim came back as it was."""
        self.wait_state(express, "done")
        view = self.job(express)
        self.assertLessEqual(int(view["first_started_us"]), int(view["spec"]["start_by_us"]))
        self.assert_counted(victim)
        self.assertEqual((self.kinds(victim).count("started"), self.kinds(victim).count("restored")), (1, 1), self.kinds(victim))

    def assert_journal_without_gaps(self):
        # root's, as others see only their own jobs'
        numbers = [int(json.loads(line)["seq"]) for line in self.machine.run("sidingctl", "--json", "events").splitlines()]
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)))
