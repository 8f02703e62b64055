#!/usr/bin/python3
"""Who may do what: every method that a controller has, called by every kind of caller."""

import json
import subprocess
import unittest

from case import BIN, Authority, RemoteCase, RemoteCluster, run, wait_for
from own_page import OwnPage
from vanishing import may_be_gone, paths

OK, NOT_FOUND, PERMISSION_DENIED, RESOURCE_EXHAUSTED, FAILED_PRECONDITION, UNAVAILABLE, UNAUTHENTICATED = 0, 5, 7, 8, 9, 14, 16

OWNER, OTHER, OPERATOR = "daemon", "nobody", "games"
OTHERS = (OTHER, "mail")  # asked in turn where all is to be logged: of one user the log has so many refusals a minute
JOB = {"name": "x", "nodes": 1, "perNode": {"slots": 1}, "command": ["/bin/true"], "workdir": "/", "output": "/dev/null"}

# method: (message, what another user is answered). JOB_ID and CHECKPOINT are the owner's. Operators may do all of it; a node's
# certificate none of it, but for the last line; all others are rejected.
TABLE = {
    "Siding/Submit": ({"spec": JOB}, OK),
    "Siding/PlanRequest": ({"spec": {**JOB, "onDemand": True, "startByUs": str(2**52)}}, OK),
    "Siding/PlanAction": ({"verb": "kill", "job": "JOB_ID"}, NOT_FOUND),
    "Siding/Explain": ({"id": "JOB_ID"}, NOT_FOUND),
    "Siding/ListJobs": ({"ids": ["JOB_ID"]}, NOT_FOUND),
    "Siding/ListNodes": ({}, OK),
    "Siding/Events": ({}, OK),
    "Siding/ListCheckpoints": ({}, OK),
    "Siding/VerifyCheckpoint": ({"id": "CHECKPOINT"}, NOT_FOUND),
    "Siding/DeleteCheckpoint": ({"id": "CHECKPOINT"}, NOT_FOUND),
    "Siding/Suspend": ({"id": "JOB_ID"}, NOT_FOUND),
    "Siding/Resume": ({"id": "JOB_ID"}, NOT_FOUND),
    "Siding/Checkpoint": ({"id": "JOB_ID"}, NOT_FOUND),
    "Siding/Vacate": ({"id": "JOB_ID"}, NOT_FOUND),
    "Siding/Migrate": ({"id": "JOB_ID"}, NOT_FOUND),
    "Siding/Restart": ({"id": "JOB_ID"}, NOT_FOUND),
    "Siding/Hold": ({"id": "JOB_ID"}, NOT_FOUND),
    "Siding/Release": ({"id": "JOB_ID"}, NOT_FOUND),
    "Siding/Update": ({"id": "JOB_ID", "priority": -1}, NOT_FOUND),
    "Siding/Kill": ({"id": "JOB_ID"}, NOT_FOUND),
    "Siding/Cordon": ({"name": "n1"}, PERMISSION_DENIED),
    "Siding/Uncordon": ({"name": "n1"}, PERMISSION_DENIED),
    "Siding/Lose": ({"name": "n1"}, PERMISSION_DENIED),
    "Siding/Site": ({}, OK),
    "Siding/ListTrends": ({}, OK),
    "Siding/ShowPolicy": ({}, OK),
    "Siding/ReloadPolicy": ({}, PERMISSION_DENIED),
    "Siding/Backup": ({}, PERMISSION_DENIED),
    "AgentGateway/Connect": ({"hello": {"node": "n9"}}, PERMISSION_DENIED),
}
AGENTS_ONLY = "AgentGateway/Connect"


class Methods(unittest.TestCase):
    def test_each_has_a_line(self):
        self.assertEqual(run(BIN / "siding-test-caller", "--methods").stdout.split(), list(TABLE))


class VerbsCase(RemoteCase):
    nodes = ("n1",)
    policy = f"operators: [root, {OPERATOR}]\n"

    def make_cluster(self):
        return RemoteCluster(self.nodes, slots=2, policy=self.policy)

    def setUp(self):
        super().setUp()
        self.job = self.submit_as(OWNER, "--name", "secret-name", "--env", "TOKEN=secret-token")
        self.cluster.wait_state(self.job, "running")

    def submit_as(self, user, *args):
        job = int(self.cluster.ctl_as(user, "submit", "--workdir", "/", "--output", "/dev/null", *args, "--",
                                      "/bin/sleep", "600")["id"])
        self.cluster.submitted.append(job)
        return job

    def message(self, method, checkpoint=""):
        return json.loads(json.dumps(TABLE[method][0]).replace("JOB_ID", str(self.job)).replace("CHECKPOINT", checkpoint))

    def ask(self, files, method, *messages):
        code, text, came = self.answer("", *files, method=method, messages=messages)
        self.cluster.submitted += [int(m["id"]) for m in came if method == "Siding/Submit" and "id" in m]
        return code, text, came

    def as_user(self, user, method, *messages):
        return self.ask(self.cluster.authority.files("user", user), method, *messages)

    def as_node(self, node, method, *messages):
        return self.ask(self.cluster.authority.files("node", node), method, *messages)


class Strangers(VerbsCase):
    def test_what_is_anothers_is_answered_like_what_is_not_there(self):
        for method, (_, other) in TABLE.items():
            if other != NOT_FOUND and method != "Siding/Events":
                continue
            message = {"job": str(self.job)} if method == "Siding/Events" else self.message(method, "1.1")
            with self.subTest(method=method):
                code, text, _ = self.as_user(OTHER, method, message)
                self.assertEqual(code, NOT_FOUND, text)
                if "CHECKPOINT" in json.dumps(TABLE[method][0]):
                    self.assertEqual(text, "there is no checkpoint 1.1")
                else:
                    self.assertEqual(text, f"there is no job {self.job}; jobs that ended long ago are forgotten, and some numbers are left out")
                self.assertNotIn(OWNER, text)


class OnThePage(VerbsCase):
    """Orders by `sidingctl page` are answered as the controller's own calls are."""

    STATUS = {NOT_FOUND: 404, PERMISSION_DENIED: 403}
    VERBS = ("suspend", "resume", "checkpoint", "vacate", "migrate", "hold", "release", "kill", "cordon", "uncordon")

    def test_each_verb_by_another_user(self):
        self.cluster.user = OTHER
        page = OwnPage(self.cluster)
        self.addCleanup(page.end)
        self.cluster.user = "root"
        page.open()
        for verb in self.VERBS:
            message, code = TABLE[f"Siding/{verb.capitalize()}"]
            of = {"node": "n1"} if "name" in message else {"job": self.job}
            with self.subTest(verb=verb):
                status, said = page.order(verb, page.next_event(), verb, **of)
                self.assertEqual(status, self.STATUS[code], said)
                self.assertNotIn(OWNER, json.dumps(said))
                self.assertNotIn("secret", json.dumps(said))
        self.assertEqual(page.plan("kill", job=self.job)[0], self.STATUS[TABLE["Siding/PlanAction"][1]])
        self.assertEqual(self.cluster.state(self.job), "running")


class Callers(VerbsCase):
    def test_each_verb_by_everybody(self):
        self.cluster.ctl_as(OWNER, "checkpoint", self.job)
        self.cluster.wait_event(self.job, "continued")
        checkpoint = self.cluster.job(self.job)["checkpoint"]
        stranger = Authority(self.cluster.dir / "other").files("user", "root")
        for turn, (method, (_, other)) in enumerate(TABLE.items()):
            name, message, user = method.split("/")[1], self.message(method, checkpoint), OTHERS[turn % len(OTHERS)]
            with self.subTest(method=method, by="another user"):
                code, text, _ = self.as_user(user, method, message)
                self.assertEqual(code, other, text)
                if method == AGENTS_ONLY:
                    self.assert_logged("agent from", f"the certificate of user {user} may not run an agent")
                elif other != OK:
                    self.assert_logged(f"{name} by user {user} is refused")
            with self.subTest(method=method, by="an unknown authority's certificate"):
                self.assertEqual(self.ask(stranger, method, message)[0], UNAVAILABLE)
                self.assert_logged("a client is refused: siding://user/root")
            with self.subTest(method=method, by="nobody"):
                self.assertEqual(self.ask(("", ""), method, message)[0], UNAVAILABLE)
            with self.subTest(method=method, by="a node"):
                code, text, _ = self.as_node("n2", method, message)
                self.assertEqual(code, PERMISSION_DENIED, text)
                wanted = "may not speak for node n9" if method == AGENTS_ONLY else "may not act as a user"
                self.assertEqual(text, f"the certificate of node n2 {wanted}")
                # Of so many refusals a second not all have a line.
                self.assert_logged("agent from" if method == AGENTS_ONLY else f"{name} from", "certificate of node n2", wanted,
                                   again=lambda method=method, message=message: self.as_node("n2", method, message))
        self.assertEqual(self.cluster.state(self.job), "running")
        for method in TABLE:
            with self.subTest(method=method, by="an operator"):
                code, text, _ = self.as_user(OPERATOR, method, self.message(method, checkpoint))
                if method == AGENTS_ONLY:
                    self.assertEqual(code, PERMISSION_DENIED)
                else:
                    self.assertNotIn(code, (PERMISSION_DENIED, UNAUTHENTICATED, UNAVAILABLE), text)
        self.assertEqual(self.cluster.wait_state(self.job, "cancelled")["reason"], f"asked for by {OPERATOR}")

    def test_refusals_do_not_fill_the_log(self):
        for _ in range(60):
            self.assertEqual(self.as_user(OTHER, "Siding/Kill", {"id": self.job})[0], NOT_FOUND)
        self.assert_logged(f"refusals of user {OTHER}: further lines are counted only")
        lines = [line for line in self.cluster.log().splitlines() if "Kill by user" in line or "was refused an action" in line]
        self.assertLess(len(lines), 60)

    def test_a_job_is_its_submitters_whatever_is_claimed(self):
        spec = {**JOB, "uid": 0, "gid": 0, "user": "root"}
        job = int(self.as_user(OTHER, "Siding/Submit", {"spec": spec})[2][0]["id"])
        view = self.cluster.wait_state(job, "done")
        self.assertEqual((view["spec"]["user"], view["spec"]["uid"]), (OTHER, 65534))


class Seeing(VerbsCase):
    """What is shown of a job to a user whose job it is not."""

    def shown(self, user, method, message):
        return json.dumps(self.as_user(user, method, message)[2])

    def request(self):
        return {"spec": {**JOB, "perNode": {"slots": 2}, "onDemand": True, "startByUs": str(2**52)}}

    def test_jobs_are_their_owners_own(self):
        self.assertNotIn("secret", self.shown(OTHER, "Siding/ListJobs", {"all": True}))

    def test_so_are_their_events(self):
        self.assertNotIn(f'"job": "{self.job}"', self.shown(OTHER, "Siding/Events", {"job": self.job}))

    def test_so_are_their_checkpoints(self):
        self.cluster.ctl_as(OWNER, "checkpoint", self.job)
        self.cluster.wait_event(self.job, "continued")
        self.assertEqual(self.shown(OTHER, "Siding/ListCheckpoints", {}), "[{}]")

    def test_a_plan_does_not_name_them(self):
        self.assertNotIn("secret", self.shown(OTHER, "Siding/PlanRequest", self.request()))

    def test_nodes_count_them(self):
        self.assertIn(f'"jobs": ["{self.job}"]', self.shown(OTHER, "Siding/ListNodes", {}))

    def test_an_operator_sees_all(self):
        self.assertIn("secret-token", self.shown(OPERATOR, "Siding/ListJobs", {}))


class Open(VerbsCase):
    """A site whose users see each other's jobs."""

    policy = VerbsCase.policy + "private_jobs: false\n"

    def test_a_job_is_seen_without_what_it_runs(self):
        [job] = self.as_user(OTHER, "Siding/ListJobs", {})[2][0]["jobs"]
        self.assertEqual((job["spec"]["name"], job["spec"]["user"], job["state"]), ("secret-name", OWNER, "running"))
        self.assertEqual([key for key in ("command", "env", "workdir", "output") if key in job["spec"]], [])


class Many(VerbsCase):
    policy = VerbsCase.policy + "max_jobs_per_user: 2\n"

    def test_a_user_has_so_many_and_no_more(self):
        self.submit_as(OWNER)
        code, text, _ = self.as_user(OWNER, "Siding/Submit", {"spec": JOB})
        self.assertEqual(text, f"{OWNER} has 2 jobs that wait or run; the site's policy allows 2 (max_jobs_per_user)")
        self.assertEqual(self.as_user(OTHER, "Siding/Submit", {"spec": JOB})[0], OK)
        self.assertEqual(self.as_user(OPERATOR, "Siding/Submit", {"spec": JOB})[0], OK)


class Quotas(VerbsCase):
    policy = VerbsCase.policy + "max_requests_per_hour: 30\nmax_request_mib_per_hour: 10\n"
    HUGE = {**JOB, "nodes": 900_000, "onDemand": True, "startByUs": str(2**52), "command": ["/bin/true", *8 * ["x" * 100_000]]}

    def journal(self):
        size = 0
        for file in paths(self.cluster.dir / "controller", "journal.db*"):
            with may_be_gone():
                size += file.stat().st_size
        return size

    def refused(self):
        return self.as_user(OTHER, "Siding/Submit", {"spec": self.HUGE})[:2]

    def test_what_is_refused_fills_neither_the_journal_nor_the_quota_of_others(self):
        before = self.journal()
        answers = [self.refused() for _ in range(20)]
        self.assertEqual({code for code, _ in answers}, {FAILED_PRECONDITION, RESOURCE_EXHAUSTED}, answers)
        self.assertIn("max_request_mib_per_hour: 10", answers[-1][1])
        self.assertLess(self.journal() - before, 8 * 100_000)
        self.assertEqual(self.as_user(OWNER, "Siding/Kill", {"id": str(self.job)})[0], OK)

    def test_requests_are_counted(self):
        codes = [self.as_user(OTHER, "Siding/Submit", {"spec": JOB})[0] for _ in range(32)]
        self.assertEqual(codes, 30 * [OK] + 2 * [RESOURCE_EXHAUSTED])
        self.assertEqual(self.as_user(OPERATOR, "Siding/Submit", {"spec": JOB})[0], OK)


class Liar:
    """An agent of node n2 that says what it likes, until the end of the with statement."""

    def __init__(self, case, *messages):
        files = case.cluster.authority.files("node", "n2")
        argv = [BIN / "siding-test-caller", case.cluster.address, case.cluster.authority.ca, *files, AGENTS_ONLY]
        self.process = subprocess.Popen([str(a) for a in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.say({"hello": {"node": "n2", "agent": "liar", "capacity": {"slots": 2}}}, *messages)

    def say(self, *messages):
        self.process.stdin.write("".join(json.dumps(m) + "\n" for m in messages))
        self.process.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate()


class Lies(VerbsCase):
    def test_a_node_speaks_for_its_own_tasks_only(self):
        before = self.cluster.job(self.job)
        task = {"job": self.job, "incarnation": before["incarnation"]}
        spec = {"clusterManager": "", "nodes": 1}
        with Liar(self) as liar:
            for phase in ("EXITED", "LOST", "CHECKPOINTED", "LAUNCH_FAILED", "RESTORE_FAILED"):
                liar.say({"report": {"task": task, "phase": phase, "notes": ["a lie"]}})
            liar.say({"report": {"task": {**task, "incarnation": 99}, "phase": "RUNNING", "spec": spec}},
                     {"heartbeat": {"ramAvailable": 1, "sharedDiskFree": 4711}})
            wait_for("all of that to be heard", lambda: any(n.get("shared_disk_free") == "4711" for n in self.cluster.node_list()))
        after = self.cluster.job(self.job)
        self.assertEqual([after[k] for k in ("state", "nodes", "incarnation")], [before[k] for k in ("state", "nodes", "incarnation")])
        self.assertNotIn("a lie", json.dumps(self.cluster.events(self.job)))


if __name__ == "__main__":
    unittest.main()
