#!/usr/bin/python3
"""Requests: pods by a deadline that are asked for as one object, with kubectl alone."""

import json

from case import MERGE_PATCH, PATIENCE, PODS, kill9, main, pod, wait_for
from controller import ControllerCase

REQUESTS = "/apis/siding.dev/v1alpha1/namespaces/default/ondemandrequests"


class Requests(ControllerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.define()

    @classmethod
    def define(cls):
        """A controller that finds no requests looks again later: it is started again instead."""
        cls.siding.define_requests()
        cls.restart_controller()

    def setUp(self):
        super().setUp()
        if self.controller.poll() is not None:  # a test before it killed it, and failed
            self.start_controller()

    @classmethod
    def restart_controller(cls, **variables):
        kill9(cls.controller)
        cls.start_controller(**variables)

    def request(self, name, spec=None, cpu=None, **fields):
        """Of one pod that takes all CPUs of the node and ends when it is told to."""
        template = pod(name, restartPolicy="Never")
        del template["spec"]["schedulerName"]
        template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu or self.cpus()}}
        template["spec"].update(spec or {})
        return {"apiVersion": "siding.dev/v1alpha1", "kind": "OnDemandRequest", "metadata": {"name": name},
                "spec": {"startBy": "+10m", "template": {"metadata": {"labels": {"app": name}}, "spec": template["spec"]}, **fields}}

    def apply(self, body):
        self.addCleanup(self.withdraw, body["metadata"]["name"])
        return self.bed.kubectl("apply", "-f", "-", text=json.dumps(body))

    def ask(self, name, **fields):
        applied = self.apply(self.request(name, **fields))
        self.assertEqual(applied.returncode, 0, applied.stderr)

    def withdraw(self, name):
        self.bed.kubectl("delete", "ondemandrequest", name, "--ignore-not-found")
        wait_for(f"the pods of {name} to be gone", lambda: not self.pods_of(name))

    def pods_of(self, name):
        _, listed = self.bed.call("GET", f"{PODS}?labelSelector=app%3D{name}")
        return listed["items"]

    def status(self, name):
        _, now = self.bed.call("GET", f"{REQUESTS}/{name}")
        return now.get("status", {})

    def wait_state(self, name, state):
        return wait_for(f"request {name} to be {state}", lambda: (now := self.status(name)).get("state") == state and now)

    def condition(self, name, kind):
        return next(({**condition} for condition in self.status(name).get("conditions", []) if condition["type"] == kind), {})

    def test_it_gets_its_pod_and_runs(self):
        self.ask("steer", walltime="10m")
        now = self.wait_state("steer", "Running")
        self.assertIn("will get node1", now["plan"])
        self.assertEqual([one["metadata"]["name"] for one in self.pods_of("steer")], now["pods"])
        self.assertEqual({kind: self.condition("steer", kind)["status"] for kind in ("Accepted", "Planned", "Running")},
                         {"Accepted": "True", "Planned": "True", "Running": "True"})
        waited = self.bed.kubectl("wait", "--for=condition=Running", "ondemandrequest/steer", f"--timeout={PATIENCE:.0f}s")
        self.assertEqual(waited.returncode, 0, waited.stderr)
        titles, line = self.bed.kubectl("get", "ondemandrequests").stdout.splitlines()
        self.assertEqual(titles.split(), ["NAME", "DEADLINE", "STATE", "PREDICTED", "STARTED", "AGE"])
        self.assertEqual(line.split()[:5], ["steer", now["deadline"], "Running", now["predictedStart"], now["started"]])

    def test_one_that_cannot_be_met_is_refused_with_the_earliest_start(self):
        blocker = self.annotated("blocker", {"start-by": "+10m", "walltime": "1h"}, schedulerName="siding")
        self.made(PODS, blocker)
        self.addCleanup(self.delete, "blocker")
        self.wait_running("blocker")
        self.ask("late", startBy="+10m")
        now = self.wait_state("late", "Refused")
        self.assertTrue(now["reason"])
        self.assertGreater(now["earliest"], now["deadline"])
        self.assertEqual((self.condition("late", "Planned")["status"], self.condition("late", "Failed")["reason"]), ("False", "Refused"))
        self.assertEqual(self.pod_now("blocker")["status"]["phase"], "Running")

    def test_one_that_will_never_fit_is_refused(self):
        self.ask("large", cpu="1000")
        self.assertNotIn("earliest", self.wait_state("large", "Refused"))

    def test_nonsense_is_refused_by_the_schema_with_the_fields_name(self):
        for field, value in (("startBy", "soon"), ("notBefore", "1 hour"), ("walltime", "10"), ("count", 0), ("count", "two"),
                             ("template", {"spec": {"containers": []}})):
            applied = self.apply(self.request("odd", **{field: value}))
            self.assertNotEqual(applied.returncode, 0, (field, value))
            self.assertIn(f"spec.{field}", applied.stderr)

    def test_what_the_schema_lets_through_is_said_in_a_condition(self):
        body = self.request("mixed")
        body["spec"]["template"]["metadata"]["annotations"] = {"siding.dev/walltime": "1m"}
        self.assertEqual(self.apply(body).returncode, 0)
        self.wait_state("mixed", "Invalid")
        accepted = self.condition("mixed", "Accepted")
        self.assertEqual((accepted["status"], accepted["reason"]), ("False", "Invalid"))
        self.assertIn("spec.template.metadata.annotations[siding.dev/walltime]: expected nothing", accepted["message"])
        self.assertEqual(self.pods_of("mixed"), [])

    def test_a_template_that_the_server_does_not_take_is_invalid(self):
        self.ask("bad", spec={"restartPolicy": "Sometimes"})
        self.assertIn("restartPolicy", self.wait_state("bad", "Invalid")["reason"])

    def test_a_change_of_the_spec_does_not_count(self):
        """As 1.20 lets it through; later servers refuse it."""
        self.ask("fixed")
        self.wait_state("fixed", "Running")
        changed, _ = self.bed.call("PATCH", f"{REQUESTS}/fixed", {"spec": {"count": 2}}, content=MERGE_PATCH)
        self.assertEqual(changed, 200)
        wait_for("the answer", lambda: self.condition("fixed", "Accepted")["reason"] == "ChangeIgnored")
        self.assertEqual(len(self.pods_of("fixed")), 1)

    def test_one_whose_pod_succeeds_is_completed(self):
        self.ask("short", spec={"terminationGracePeriodSeconds": 1, "activeDeadlineSeconds": 3600})
        [name] = self.wait_state("short", "Running")["pods"]
        self.bed.call("PATCH", f"{PODS}/{name}/status", {"status": {"phase": "Succeeded"}}, content=MERGE_PATCH)
        self.wait_state("short", "Completed")

    def test_a_pod_that_is_deleted_is_not_made_again(self):
        self.ask("once")
        [name] = self.wait_state("once", "Running")["pods"]
        self.delete(name)
        self.assertIn(name, self.wait_state("once", "Failed")["reason"])
        self.restart_controller()
        self.ask("after")
        self.wait_state("after", "Running")
        self.assertEqual(self.pods_of("once"), [])

    def test_its_pods_are_deleted_with_it(self):
        self.ask("gone")
        self.wait_state("gone", "Running")
        deleted = self.bed.kubectl("delete", "ondemandrequest", "gone")
        self.assertEqual(deleted.returncode, 0, deleted.stderr)
        wait_for("its pod to be gone", lambda: not self.pods_of("gone"))
        wait_for("the node to be kept no more", lambda: not self.is_kept())

    def play_a_kill(self, point, made):
        """The controller ends there, and the next one goes on: no pod is made twice, and none is lost."""
        name = f"killed-{point}"
        self.restart_controller(SIDING_FAULT=f"kubernetes.request.{point}=kill")
        self.ask(name)
        wait_for("the controller to be dead", lambda: self.controller.poll() is not None)
        before = {one["metadata"]["uid"] for one in self.pods_of(name)}
        self.assertEqual((len(before), self.status(name).get("pods")), (made, None))
        self.start_controller()
        now = self.wait_state(name, "Running")
        after = {one["metadata"]["uid"] for one in self.pods_of(name)}
        self.assertEqual(len(after), 1)
        self.assertLessEqual(before, after)
        self.assertIn("will get node1", now["plan"])

    def test_a_controller_that_is_killed_before_it_makes_pods_makes_them_later(self):
        self.play_a_kill("accepted", made=0)

    def test_a_controller_that_is_killed_after_it_made_pods_does_not_make_them_again(self):
        self.play_a_kill("made", made=1)

    def test_after_a_restart_the_status_says_the_same(self):
        self.ask("steady")
        before = self.wait_state("steady", "Running")
        self.restart_controller()
        self.ask("next", startBy="+5m")
        wait_for("the controller to have looked at both", lambda: self.status("next").get("pods"))
        self.assertEqual(self.status("steady"), before)

    def test_no_right_is_missing(self):
        self.assertEqual(self.check_config(), "")


if __name__ == "__main__":
    main(root=True)
