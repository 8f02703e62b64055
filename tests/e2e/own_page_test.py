#!/usr/bin/python3
"""sidingctl page, of a real controller: each sees there what he sees by sidingctl's other verbs, and strangers see nothing."""

import http.client
import json
import pathlib
import signal
import subprocess
import time
import unittest

from case import FAR, PATIENCE, ClusterCase, wait_for
from cluster import BIN
from own_page import OwnPage
from pair import Pair
from ports import free_ports

USER = 65534
PATHS = ("/", "/page.js", "/licences.txt", "/favicon.ico", "/api/v1/jobs", "/api/v1/jobs/1", "/api/v1/jobs/1/plans", "/api/v1/nodes",
         "/api/v1/checkpoints", "/api/v1/plan?start_by_us=earliest", "/api/v1/site", "/api/v1/policy", "/api/v1/events", "/api/v1/events?after=0", "/api/v1/session", "/api/v1/plans", "/api/v1/orders",
         "/api/v1/", "/odd", "/%2e%2e/x")


class Events:
    """A stream of server-sent events; each is parsed."""

    def __init__(self, page, after=None):
        self.connection, self.response = page.connect("/api/v1/events" + ("" if after is None else f"?after={after}"), cookie=page.cookie)
        assert self.response.status == 200, self.response.read()
        self.last = None
        end = self.patience()
        while self.last is None:
            self.line(end)

    @staticmethod
    def patience():
        """A beat comes before any silence is long: what is waited for has an end of its own."""
        return time.monotonic() + PATIENCE

    def line(self, end):
        assert time.monotonic() < end, "what was waited for has not come"
        line = self.response.readline().decode()
        if line.startswith("id: "):
            self.last = int(line.removeprefix("id: "))
        return line

    def until(self, wanted):
        """All that come, up to the first one of which this is true."""
        seen, end = [], self.patience()
        while not seen or not wanted(seen[-1]):
            line = self.line(end)
            assert line, "the stream has ended"
            if line.startswith("data: "):
                seen.append(json.loads(line.removeprefix("data: ")))
        return seen

    def await_end(self):
        end = self.patience()
        try:
            while self.line(end):
                pass
        except TimeoutError:
            raise
        except OSError:
            pass

    def close(self):
        self.connection.close()


class WithPages(ClusterCase):
    def page(self, *args, uid=None):
        page = OwnPage(self.cluster, *args, uid=uid)
        self.addCleanup(page.end, signal.SIGKILL)
        return page

    def follow(self, page, after=None):
        events = Events(page, after)
        self.addCleanup(events.close)
        return events


class Rights(WithPages):
    """The policy's default is private_jobs: true."""

    def test_a_user_sees_his_own_jobs_and_plans_and_an_operator_all(self):
        theirs = self.counter()
        own = self.counter(uid=USER)
        for job in (theirs, own):
            self.wait_counting(job)
        request = self.cluster.submit("--name", "steer", "--nodes", 1, "--slots", 1, "--start-by", f"+{FAR}s", "--workdir", "/", "--output",
                                      f"{self.outputs()}/%j", "--", "/bin/true", uid=USER)
        self.cluster.wait_state(request, "done")
        user, operator = self.page(uid=USER).open(), self.page().open()

        def ids(page):
            return sorted(int(job["id"]) for job in page.shown("/api/v1/jobs?all=true")["jobs"])
        self.assertEqual(ids(user), [own, request])
        self.assertEqual(ids(operator), [theirs, own, request])
        self.assertIn("counter.py", json.dumps(user.shown(f"/api/v1/jobs/{own}")), "what one's own job runs")
        for path in (f"/api/v1/jobs/{theirs}", f"/api/v1/jobs/{theirs}/plans"):
            self.assertEqual(user.ask(path)[0], 404)
        for page in (user, operator):
            self.assertTrue(page.shown(f"/api/v1/jobs/{request}/plans?compare=true")["plans"])
            self.assertEqual(len(page.shown("/api/v1/nodes")["nodes"]), 2)
        self.assertEqual([page.shown("/api/v1/site")["is_operator"] for page in (user, operator)], [False, True])
        named = [{int(step["job"]): step["job_name"] for step in page.shown(f"/api/v1/plan?nodes=2&start_by_us={int((time.time() + FAR) * 1e6)}")["steps"]}
                 for page in (user, operator)]
        self.assertEqual([(each[theirs], each[own]) for each in named], [("", "counter"), ("counter", "counter")])
        about = {int(event["job"]) for event in self.follow(user, 0).until(lambda e: (int(e["job"]), e["kind"]) == (request, "succeeded"))}
        self.assertEqual(about - {0}, {own, request})
        about = {int(event["job"]) for event in self.follow(operator, 0).until(lambda e: (int(e["job"]), e["kind"]) == (request, "succeeded"))}
        self.assertEqual(about - {0}, {theirs, own, request})
        for job in (theirs, own):
            self.cluster.wait_state(job, "running")
            self.end_job(job)

    def test_what_happens_is_told_at_once_to_all_who_follow(self):
        page = self.page().open()
        followers = [self.follow(page) for _ in range(5)]
        self.cluster.ctl("cordon", "n1")
        for follower in followers:
            follower.until(lambda event: "cordon" in event["kind"])


class Orders(WithPages):
    def orders_of(self, job, kind):
        return [event["text"] for event in self.cluster.events(job) if event["kind"] == kind]

    def test_an_order_is_given_once_with_its_plan(self):
        job = self.counter(methods="suspend,checkpoint", uid=USER)
        self.wait_counting(job)
        page = self.page(uid=USER).open()
        status, plan = page.plan("suspend", job=job)
        self.assertEqual((status, plan["job_name"], plan["nodes"]), (200, "counter", self.cluster.job(job)["nodes"]))
        self.assertEqual(self.cluster.state(job), "running", "a plan does nothing")
        for _ in range(3):
            self.assertEqual(page.order("suspend", plan["sequence"], "k1", job=job), (200, {"checkpoint": ""}))
        self.cluster.wait_state(job, "suspended")
        status, said = page.order("suspend", plan["sequence"], "k2", job=job)
        self.assertEqual(status, 409, "by another key it rests on what is not so any more")
        self.assertIn("nothing was done", said["error"]["message"])
        self.assertEqual(len(self.orders_of(job, "order-suspend")), 1)
        wait_for("resume to be taken", lambda: page.order("resume", page.next_event(), "k3", job=job)[0] == 200)
        self.cluster.wait_state(job, "running")
        self.end_job(job)

    def test_each_verb_is_carried_out(self):
        page = self.page().open()
        job = self.counter(methods="checkpoint,kill")
        self.wait_counting(job)

        def give(verb, **of):
            def once():  # what is done meanwhile with an older image is something that has happened to it
                status, plan = page.plan(verb, **of)
                self.assertEqual(status, 200, plan)
                status, said = page.order(verb, plan["sequence"], f"{verb}-{plan['sequence']}", **of)
                self.assertIn(status, (200, 409), said)
                return said if status == 200 else None
            return wait_for(f"{verb} to be taken", once)
        made = give("checkpoint", job=job)["checkpoint"]
        self.cluster.wait_event(job, "continued")
        self.assertEqual(self.cluster.job(job)["checkpoint"], made)
        node, = self.cluster.job(job)["nodes"]
        give("cordon", node=node)
        self.assertIn("cordoned", [each["state"] for each in self.cluster.node_list()])
        give("migrate", job=job)
        wait_for("it to run elsewhere", lambda: (self.cluster.state(job), self.cluster.job(job)["nodes"] != [node]) == ("running", True))
        wait_for("uncordon to be taken", lambda: page.order("uncordon", page.next_event(), "u", node=node)[0] == 200)
        self.assertEqual({each["state"] for each in self.cluster.node_list()}, {"up"})
        give("kill", job=job)
        self.cluster.wait_state(job, "cancelled")

    def test_a_plan_that_does_not_hold_any_more_is_refused(self):
        job = self.counter(methods="suspend,checkpoint")
        self.wait_counting(job)
        page = self.page().open()
        plan = page.plan("kill", job=job)[1]
        self.cluster.ctl("suspend", job)
        status, said = page.order("kill", plan["sequence"], "k", job=job)
        self.assertEqual(status, 409)
        self.assertIn(f"nothing was done: job {job}: ", said["error"]["message"])
        self.assertEqual(self.cluster.state(job), "suspended")
        wait_for("it to be taken by the same key, as nothing was done", lambda: page.order("kill", page.plan("kill", job=job)[1]["sequence"], "k", job=job)[0] == 200)
        self.cluster.wait_state(job, "cancelled")

    def test_what_is_no_order_is_refused_in_words_and_the_page_lives(self):
        job = self.counter()
        self.wait_counting(job)
        page = self.page().open()
        kill = {"action": {"verb": "kill", "job": job}, "if_unchanged": 1, "key": "k"}
        orders = "/api/v1/orders"
        for wanted, body, headers in (
                (403, kill, {"Siding_Token": None}), (403, kill, {"Siding_Token": "x"}), (403, kill, {"Origin": "http://evil.example"}),
                (403, kill, {"Origin": "null"}), (421, kill, {"Host": "evil.example"}), (415, kill, {"Content_Type": "text/plain"}),
                (400, "", {}), (400, "{", {}), (400, b"\xff", {}), (400, "[" * 10_000, {}), (400, {**kill, "if_unchanged": 0}, {}), (400, {**kill, "key": ""}, {}),
                (400, {**kill, "action": {"verb": "hop", "job": job}}, {}), (400, {**kill, "if_unchanged": 10**9}, {}),
                (404, {**kill, "action": {"verb": "kill", "job": 10**6}}, {}), (409, kill, {})):
            with self.subTest(body=str(body)[:100], headers=headers):
                status, said = page.post(orders, body, **headers)
                self.assertEqual(status, wanted, said)
                self.assertTrue(said["error"]["message"])
        status, _, said = page.stranger(orders, "POST", cookie=page.cookie, Content_Length="20000", Content_Type="application/json", Siding_Token=page.order_token())
        self.assertEqual((status, "at most 16384 bytes" in said), (413, True), said)
        for method in ("GET", "HEAD", "PUT", "DELETE"):
            status, headers, _ = page.stranger(orders, method, cookie=page.cookie)
            self.assertEqual((status, headers["Allow"]), (405, "POST"))
        other = self.page().open()
        self.assertEqual(page.post(orders, kill, Siding_Token=other.order_token())[0], 403, "another session's")
        self.assertEqual(self.cluster.state(job), "running")
        self.assertEqual(page.ask("/api/v1/nodes")[0], 200)
        self.end_job(job)


class Strangers(WithPages):
    def test_without_the_token_every_path_is_closed(self):
        page = self.page()
        mine = page.open().cookie
        name, value = mine.split("=")
        for path in PATHS:
            for method in ("GET", "HEAD", "POST", "DELETE"):
                self.assertEqual(page.stranger(path, method)[0], 401, (method, path))
            for cookie in (f"{name}=", f"{name}={value[:-1]}", f"{name}x={value}", f"siding-page-1={value}", f"x{mine}"):
                self.assertEqual(page.stranger(path, cookie=cookie)[0], 401, (path, cookie))
        status, headers, text = page.stranger("/")
        self.assertIn("text/html", headers["Content-Type"])
        self.assertIn("<code>sidingctl page</code>", text)
        self.assertIn("sidingctl page", json.loads(page.stranger("/api/v1/jobs")[2])["error"]["message"])
        for secret in (value, page.token.split("=")[1]):
            self.assertNotIn(secret, text + str(headers))
        status, headers, _ = page.stranger("/api/v1/jobs", cookie=mine)
        self.assertEqual((status, headers["Cache-Control"]), (200, "no-store"))

    def test_another_sites_page_is_refused_with_the_cookie_too(self):
        page = self.page().open()
        self.assertEqual(page.stranger("/api/v1/jobs", cookie=page.cookie, Host="evil.example")[0], 421)
        self.assertEqual(page.stranger("/api/v1/jobs", cookie=page.cookie, Origin="http://evil.example")[0], 403)

    def test_the_token_opens_once(self):
        page = self.page()
        for wrong in ("/?token=", "/?token=x", page.token + "x", page.token[:-1], f"/api/v1/jobs{page.token[1:]}"):
            self.assertEqual(page.stranger(wrong)[0], 401, wrong)
        status, headers, _ = page.stranger(page.token)
        self.assertEqual((status, headers["Location"]), (303, "/"))
        cookie, *attributes = headers["Set-Cookie"].split("; ")
        self.assertTrue(cookie.startswith(f"siding-page-{page.port}="))
        self.assertEqual(sorted(attributes), ["HttpOnly", "Path=/", "SameSite=Strict"])
        status, headers, text = page.stranger(page.token)
        self.assertEqual((status, headers["Set-Cookie"]), (401, None))
        self.assertIn("has been used", text)
        self.assertIn("<code>sidingctl page</code> prints an address", text)
        self.assertEqual(page.stranger(page.token, cookie=cookie)[0], 303, "a browser that asks twice")

    def test_two_pages_do_not_open_for_each_others_readers(self):
        one, other = self.page().open(), self.page().open()
        value = one.cookie.split("=")[1]
        self.assertEqual(other.stranger("/api/v1/jobs", cookie=f"siding-page-{other.port}={value}")[0], 401)
        self.assertEqual(other.stranger("/api/v1/jobs", cookie=f"{one.cookie}; {other.cookie}")[0], 200)


class Life(WithPages):
    def test_ctrl_c_ends_it_with_streams_open(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            page = self.page().open()
            streams = [self.follow(page) for _ in range(3)]
            self.assertEqual(page.end(number), 0)
            for stream in streams:
                stream.await_end()

    def test_ctrl_c_ends_it_while_the_controller_does_not_answer(self):
        page = self.page().open()
        stream = self.follow(page)
        self.cluster.controller.send_signal(signal.SIGSTOP)
        self.addCleanup(self.cluster.controller.send_signal, signal.SIGCONT)
        asking = http.client.HTTPConnection("127.0.0.1", page.port)
        self.addCleanup(asking.close)
        asking.request("GET", "/api/v1/nodes", headers={"Cookie": page.cookie})
        wait_for("the page to be asking the controller", lambda: self.has_read_all(page.port, asking.sock.getsockname()[1]))
        self.assertEqual(page.end(), 0)
        stream.await_end()

    @staticmethod
    def has_read_all(port, of):
        """Whether the server at `port` has read what came by the connection of that port. One thread reads, and answers."""
        for line in pathlib.Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
            _, local, remote, _, queues, *_ = line.split()
            if (int(local.split(":")[1], 16), int(remote.split(":")[1], 16)) == (port, of):
                return int(queues.split(":")[1], 16) == 0
        return False

    def test_a_controller_that_hangs_is_missed(self):
        page = self.page().open()
        stream = self.follow(page)
        self.addCleanup(self.cluster.controller.send_signal, signal.SIGCONT)
        self.cluster.controller.send_signal(signal.SIGSTOP)
        stream.await_end()
        status, said = page.ask("/api/v1/nodes")
        self.assertEqual(status, 504)
        self.assertIn("has not answered within", said["error"]["message"])
        self.cluster.controller.send_signal(signal.SIGCONT)
        wait_for("the page to find it again", lambda: page.ask("/api/v1/nodes")[0] == 200)

    def test_a_controller_that_is_killed_is_missed_and_found_again(self):
        page = self.page().open()
        stream = self.follow(page)
        self.cluster.kill9_controller()
        stream.await_end()
        status, said = wait_for("the page to say so", lambda: (lambda answer: answer if answer[0] != 200 else None)(page.ask("/api/v1/nodes")))
        self.assertEqual(status, 502)
        self.assertIn("no controller is active", said["error"]["message"])
        self.assertEqual(page.ask("/api/v1/events")[0], 502)
        self.cluster.start_controller()
        wait_for("both nodes to be back", lambda: len(self.cluster.node_list()) == 2)
        self.cluster.ctl("cordon", "n1")
        wait_for("the page to find it again", lambda: page.ask("/api/v1/nodes")[0] == 200)
        self.follow(page, stream.last).until(lambda event: "cordon" in event["kind"])

    def test_what_is_wrong_at_the_start_is_told_as_by_other_verbs(self):
        def start(*args):
            done = subprocess.run([BIN / "sidingctl", *map(str, args)], capture_output=True, text=True, cwd=self.cluster.dir)
            return done.returncode, done.stdout, done.stderr
        nobody = self.cluster.dir / "nobody"
        code, out, err = start("--socket", nobody, "page")
        self.assertEqual((code, out), (3, ""))
        self.assertIn(f"sidingctl: page: no controller answers on {nobody}; is sidingd running?", err)
        self.assertEqual(start("--socket", self.cluster.socket, "page", "--port", "70000")[0], 2)
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([BIN / "sidingctl", "--socket", self.cluster.socket, "page"], stdout=full, stderr=subprocess.PIPE, text=True,
                                  timeout=PATIENCE, cwd=self.cluster.dir)
        self.assertEqual((done.returncode, done.stderr), (1, "sidingctl: page: its output could not be written\n"))
        port, = free_ports(1)
        page = self.page("--port", port)
        self.assertEqual(page.port, port)
        code, _, err = start("--socket", self.cluster.socket, "page", "--port", port)
        self.assertEqual(code, 1)
        self.assertIn(f"listen on 127.0.0.1:{port}", err)


class TakeOver(WithPages):
    nodes = ("n1",)

    def make_cluster(self):
        return Pair(self.nodes, self.slots, policy=self.policy)

    def test_the_page_goes_on_at_the_controller_that_takes_over(self):
        page = self.page().open()
        stream = self.follow(page)
        active = self.cluster.active()
        self.cluster.kill9(active)
        # The stream ends, or goes on at the other one: which, is a matter of when that one acts.
        wait_for("the other one to act", lambda: self.cluster.is_active(self.cluster.other(active)))
        wait_for("the page to have found it", lambda: page.ask("/api/v1/nodes")[0] == 200)
        wait_for("the node to be back", lambda: page.shown("/api/v1/nodes")["nodes"][0]["state"] == "up")
        self.cluster.ctl("cordon", "n1")
        self.follow(page, stream.last).until(lambda event: "cordon" in event["kind"])


if __name__ == "__main__":
    unittest.main()
