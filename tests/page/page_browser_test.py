#!/usr/bin/python3
"""The page of a real controller, looked at with a browser: nodes, a job that makes way, and a controller that is killed and comes back.

Whoever connects to sidingd's page is a stranger to the controller, who is not told of plans and of events of jobs; whoever opens
`sidingctl page` is told all that he may see."""

import pathlib
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from browser import Browser  # noqa: E402
from case import ClusterCase, wait_for  # noqa: E402
from front_end import SKIPPED, missing  # noqa: E402
from own_page import OwnPage  # noqa: E402
from page_test import PageCluster  # noqa: E402
from standby_page_test import PagePair  # noqa: E402


class PageInBrowser(ClusterCase):
    policy = ClusterCase.policy + "private_jobs: false\n"

    def make_cluster(self):
        return PageCluster(self.nodes, self.slots, policy=self.policy)

    def look(self, at=""):
        browser = Browser(f"http://127.0.0.1:{self.cluster.page}/{at}")
        self.addCleanup(browser.close)
        return browser

    def test_who_made_way_is_seen_with_the_request_that_it_is_for(self):
        job = self.counter(methods="suspend")
        self.wait_counting(job)
        browser = self.look()
        browser.do("see", "No deadline is ahead")
        browser.do("see", "counter")
        other = self.counter(methods="suspend")
        self.wait_counting(other)
        gate = self.new_gate()
        request = self.submit_gated(gate, "--name", "steer", "--nodes", 2, "--slots", 1, "--start-by", "+600s", "--",
                                    "/bin/sh", "-c", f"while [ ! -e {gate} ]; do sleep 0.1; done")
        self.cluster.wait_state(job, "suspended")
        self.cluster.wait_state(request, "running")
        browser.do("see", "Away from their nodes: 2")
        browser.do("faultless")
        browser.do("picture", "real-now")
        browser.do("go", f"#/job/{job}")
        browser.do("see", "counter is frozen")
        browser.do("see", f"request {request} steer")
        browser.do("see", "Not shown to you")
        browser.do("no", "Kill")
        browser.do("picture", "real-job")
        browser.do("go", f"#/preemption/{request}")
        browser.do("see", "before its deadline")
        browser.do("see", "Its plan is not shown to you.")
        browser.do("picture", "real-preemption")
        self.end_job(request)
        self.cluster.wait_state(job, "running")
        browser.do("go", f"#/job/{job}")
        browser.do("see", "counter runs")
        browser.do("go", "#/trends")
        browser.do("see", "met, no request refused")
        browser.do("see", "node-s lost")
        browser.do("see", "of what was predicted")
        browser.do("faultless")
        browser.do("picture", "real-trends")
        for each in (job, other):
            self.end_job(each)

    def test_a_controller_that_is_killed_is_missed_and_found_again(self):
        browser = self.look("#/now")
        browser.do("see", "Nodes: 2")
        self.cluster.kill9_controller()
        browser.do("see", "The controller is not heard.")
        browser.do("faultless")
        self.cluster.start_controller()
        wait_for("both nodes to be back", lambda: len(self.cluster.node_list()) == 2)
        browser.do("gone", "The controller is not heard.")
        browser.do("see", "Nodes: 2")

    def test_a_node_that_takes_nothing_new_is_seen(self):
        browser = self.look("#/now")
        browser.do("see", "Nodes: 2")
        self.cluster.ctl("cordon", "n1")
        browser.do("see", "takes nothing new")
        browser.do("faultless")


class PrivatePageInBrowser(ClusterCase):
    """With the policy's default a stranger sees no jobs, and is not told that there are none."""

    def make_cluster(self):
        return PageCluster(self.nodes, self.slots, policy=self.policy)

    def test_that_jobs_are_not_shown_is_said(self):
        job = self.counter()
        self.wait_counting(job)
        browser = Browser(f"http://127.0.0.1:{self.cluster.page}/")
        self.addCleanup(browser.close)
        browser.do("see", "No jobs are shown to you")
        browser.do("see", "Nodes: 2")
        browser.do("faultless")
        self.end_job(job)


class OwnPageInBrowser(ClusterCase):
    """sidingctl page under the policy's default, by an operator."""

    def look(self):
        page = OwnPage(self.cluster)
        self.addCleanup(page.end)
        browser = Browser(page.address)
        self.addCleanup(browser.close)
        return page, browser

    def test_the_address_opens_the_page_once_and_all_is_told(self):
        job = self.counter(methods="suspend")
        self.wait_counting(job)
        other = self.counter(methods="suspend")
        self.wait_counting(other)
        gate = self.new_gate()
        request = self.submit_gated(gate, "--name", "steer", "--nodes", 2, "--slots", 1, "--start-by", "+600s", "--",
                                    "/bin/sh", "-c", f"while [ ! -e {gate} ]; do sleep 0.1; done")
        self.cluster.wait_state(request, "running")
        page, browser = self.look()
        browser.do("see", "Away from their nodes: 2")
        browser.do("at", "/")
        browser.do("faultless")
        browser.do("picture", "own-now")
        browser.do("go", "#/preemptions")
        browser.do("see", "steer")
        browser.do("picture", "own-preemptions")
        browser.do("go", f"#/preemption/{request}")
        browser.do("see", "before its deadline")
        browser.do("see", "Why these jobs")
        browser.do("faultless")
        browser.do("picture", "own-preemption")
        browser.do("go", "#/jobs")
        browser.do("see", "counter")
        browser.do("picture", "own-jobs")
        self.end_job(request)
        self.cluster.wait_state(job, "running")
        browser.do("go", f"#/job/{job}")
        browser.do("see", "counter runs")
        for each in (job, other):
            self.end_job(each)
        late = Browser(page.address)
        self.addCleanup(late.close)
        late.do("see", "This page is not open to you")
        late.do("see", "has been used")

    def test_a_controller_that_is_killed_is_missed_and_found_again(self):
        page, browser = self.look()
        browser.do("see", "Nodes: 2")
        self.cluster.kill9_controller()
        browser.do("see", "The controller is not heard.")
        browser.do("picture", "own-lost")
        self.cluster.start_controller()
        wait_for("both nodes to be back", lambda: len(self.cluster.node_list()) == 2)
        browser.do("gone", "The controller is not heard.")
        browser.do("see", "Nodes: 2")

    def test_what_a_request_would_cost_is_asked_and_nothing_is_touched(self):
        jobs = [self.counter(methods="suspend") for _ in self.nodes]
        for job in jobs:
            self.wait_counting(job)
        _, browser = self.look()
        browser.do("see", "No deadline is ahead")
        browser.do("go", "#/whatif?nodes%3D2%26by%3D%2B600s")
        browser.do("see", "2 jobs make way")
        browser.do("see", "before its deadline")
        browser.do("see", "sidingctl submit --nodes 2 --slots 1 --start-by +600s -- COMMAND")
        browser.do("faultless")
        browser.do("picture", "own-whatif")
        browser.do("go", "#/whatif?nodes%3D3%26by%3D%2B600s")
        browser.do("see", "It would be refused")
        browser.do("see", "the cluster has 2")
        self.assertEqual([job["state"] for job in self.cluster.ctl("jobs")["jobs"]], ["running", "running"])
        for job in jobs:
            self.end_job(job)

    def test_who_changed_the_policy_is_seen(self):
        _, browser = self.look()
        browser.do("see", "No deadline is ahead")
        browser.do("go", "#/policy?margin")
        browser.do("see", "margin: 500ms")
        (self.cluster.dir / "policy.yaml").write_text(self.policy.replace("margin: 500ms", "margin: 700ms"))
        wait_for("the new policy", lambda: self.cluster.ctl("policy", "show")["policy"]["margin"] == "700ms")
        browser.do("see", "+margin: 700ms")
        browser.do("see", "the file was changed")
        browser.do("faultless")
        browser.do("picture", "own-policy")

    def test_an_order_is_given_with_its_plan_and_its_event_is_told(self):
        job = self.counter(methods="suspend,checkpoint")
        self.wait_counting(job)
        _, browser = self.look()
        browser.do("see", "No deadline is ahead")
        browser.do("go", f"#/job/{job}")
        browser.do("see", "counter runs")
        browser.do("click", "Suspend")
        browser.do("see", "it is frozen in the memory of")
        browser.do("see", f"sidingctl suspend {job} --if-unchanged")
        browser.do("focused", "Cancel")
        browser.do("faultless")
        browser.do("picture", "own-order")
        browser.do("press", "Tab")
        browser.do("press", "Enter")
        browser.do("see", f"Suspend of counter (job {job}) is ordered.")
        event, = [each for each in self.cluster.events(job) if each["kind"] == "order-suspend"]
        browser.do("see", f"Event {event['seq']},")
        browser.do("faultless")
        browser.do("picture", "own-order-given")
        browser.do("press", "Enter")
        self.cluster.wait_state(job, "suspended")
        browser.do("see", "counter is frozen")
        browser.do("click", "Resume")
        browser.do("see", "It continues where it was frozen")
        browser.do("press", "Tab")
        browser.do("press", "Enter")
        self.cluster.wait_state(job, "running")
        self.end_job(job)

    def test_a_plan_that_changed_meanwhile_is_shown_again_and_nothing_is_done(self):
        job = self.counter(methods="suspend,checkpoint")
        self.wait_counting(job)
        _, browser = self.look()
        browser.do("see", "No deadline is ahead")
        browser.do("go", f"#/job/{job}")
        browser.do("see", "counter runs")
        browser.do("click", "Kill")
        browser.do("see", "it has ended, for good")
        self.cluster.ctl("suspend", job)
        browser.do("press", "Tab")
        browser.do("press", "Enter")
        browser.do("see", "Not as it was when this was shown: nothing was done.")
        browser.do("see", f"Job {job}: ")
        browser.do("faultless")
        browser.do("picture", "own-order-changed")
        self.assertEqual(self.cluster.state(job), "suspended")
        browser.do("press", "Escape")
        self.cluster.ctl("resume", job)
        self.end_job(job)

    def test_a_user_orders_his_own_jobs_alone(self):
        own, theirs = self.counter(uid=65534), self.counter()
        for job in (own, theirs):
            self.wait_counting(job)
        page = OwnPage(self.cluster, uid=65534)
        self.addCleanup(page.end)
        browser = Browser(page.address)
        self.addCleanup(browser.close)
        browser.do("see", "Nodes: 2")
        browser.do("go", f"#/job/{own}")
        browser.do("see", "counter runs")
        browser.do("see", "Checkpoint")
        browser.do("go", f"#/job/{theirs}")
        browser.do("see", f"Job {theirs} is not known")
        browser.do("no", "Kill")
        browser.do("go", "#/now?node%3Dn1")
        browser.do("see", "RAM free")
        browser.do("no", "Cordon")
        for job in (own, theirs):
            self.end_job(job)

    def test_where_nothing_runs_an_operator_is_told_that(self):
        _, browser = self.look()
        browser.do("see", "No deadline is ahead")
        browser.do("faultless")


class StandbyInBrowser(ClusterCase):
    def make_cluster(self):
        return PagePair(self.nodes, self.slots, policy=self.policy)

    def test_one_that_stands_by_leads_to_the_active_one_and_shows_the_cluster_when_it_is_that(self):
        browser = Browser(f"http://127.0.0.1:{self.cluster.pages['b']}/")
        self.addCleanup(browser.close)
        browser.do("see", "This controller stands by")
        browser.do("see", f"pid {self.cluster.sidingds['a'].pid} on ")
        browser.do("see", "Its page: http://127.0.0.1:")
        browser.do("faultless")
        browser.do("picture", "real-standby")
        self.cluster.kill9("a")
        browser.do("see", "Nodes: 2")


if __name__ == "__main__":
    lacks = missing(browser=True)
    if lacks:  # a skip inside of unittest would count as passed
        print(f"skipped: {lacks}")
        sys.exit(SKIPPED)
    unittest.main()
