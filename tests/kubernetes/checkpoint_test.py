#!/usr/bin/python3
"""Pods that make way for a pod with a deadline and come back with their memory: a controller, an agent, and kubectl alone."""

import base64
import hashlib
import json

from agent_case import JOBS, NODE, SavedPodsCase
from case import MERGE_PATCH, PATIENCE, PODS, ROOT, kill9, main, paths, wait_for
from controller import ControllerCase

# Each line follows from the one before it: what is lost, doubled or begun again shows. It ends when a test opens its gate.
COUNT = """
import hashlib, itertools, os, time
file = open("/scratch/count", "a")
word = ""
for number in itertools.count():
    word = hashlib.sha256(f"{word}{number}".encode()).hexdigest()
    print(number, word, flush=True)
    print(number, word, file=file, flush=True)
    time.sleep(0.05)
    if os.path.exists("/scratch/gate"):
        break
"""


DEFINITIONS = ROOT / "deploy/kubernetes/crds.yaml"
SEAL = "/api/v1/namespaces/siding/secrets/siding-seal"
CHECKPOINTS = "/apis/siding.dev/v1alpha1/namespaces/default/checkpoints"
BUDGETS = "/apis/policy/v1beta1/namespaces/default/poddisruptionbudgets"


def lines_of(count):
    """What COUNT has written by the time that it has written so many lines."""
    word, lines = "", []
    for number in range(count):
        word = hashlib.sha256(f"{word}{number}".encode()).hexdigest()
        lines.append(f"{number} {word}\n")
    return lines


class Checkpoint(ControllerCase, SavedPodsCase):
    mode = "checkpointing"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.start_agent()
        cls.define()

    @classmethod
    def define(cls):
        """A controller that finds no checkpoints looks again later: it is started again instead."""
        # Its kubectl knows no x-kubernetes-validations, and neither does the server, which drops them.
        applied = cls.bed.kubectl("apply", "--validate=false", "-f", DEFINITIONS)
        assert applied.returncode == 0, applied.stderr
        wait_for("checkpoints to be served", lambda: cls.bed.call("GET", CHECKPOINTS)[0] == 200)
        # kubectl remembers for minutes what it has seen, short names included.
        wait_for("kubectl to know them", lambda: "checkpoints" in cls.bed.kubectl("api-resources", "--cached=false", "-o", "name").stdout)
        kill9(cls.controller)
        cls.start_controller()

    @classmethod
    def start_agent(cls, **variables):
        cls.siding.start_agent(cls.bed.node, **variables)
        cls.agent = cls.siding.agent

    def _show_logs(self):
        super()._show_logs()
        if self._outcome.result and (self._outcome.result.failures or self._outcome.result.errors):
            print(self.siding.agent_log.read_text()[-8000:])

    # ---- What a user does and sees ----
    def batch(self, name, methods="checkpoint", program=COUNT, interval=None, retries=0, **spec):
        """A Job of one pod that takes all CPUs of the node. Returns its pod when siding knows it to run."""
        wide = {"resources": {"requests": {"cpu": self.cpus()}}}
        said = {"siding.dev/preemptible": methods, **({"siding.dev/checkpoint-interval": interval} if interval else {})}
        pod = self.job(name, program, annotations=said, retries=retries, container=wide, **spec)
        self.wait_lines(pod, 10)
        self.wait_state(name, "running")
        return pod

    def urgent(self, name, start_by="+10m"):
        body = self.annotated(name, {"start-by": start_by}, schedulerName="siding")
        applied = self.bed.kubectl("apply", "-f", "-", text=json.dumps(body))
        self.assertEqual(applied.returncode, 0, applied.stderr)
        self.addCleanup(self.finish, name)

    def finish(self, name):
        """The work of a pod with a deadline is done."""
        if self.pod_now(name):
            self.delete(name)

    def of_owner(self, name):
        """siding's records of the jobs that the pods of this Job are."""
        return [job for job in json.loads(self.ctl("jobs", "--all", "--json"))["jobs"] if job["spec"]["labels"].get("owner") == f"Job/{name}"]

    def guard_job(self, name):
        """A disruption budget that lets the Job's pod not go."""
        self.made(BUDGETS, {"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"job-name": name}}}})
        self.addCleanup(self.bed.call, "DELETE", f"{BUDGETS}/{name}", {})
        wait_for("the budget to count the pod", lambda: self.bed.call("GET", f"{BUDGETS}/{name}")[1]["status"].get("currentHealthy"))

    def wait_state(self, name, state):
        return wait_for(f"the job of {name} to be {state}",
                        lambda: next((job for job in self.of_owner(name) if job["state"] == state), None))

    def open_gate(self, pod):
        self.path(pod, "/scratch/gate").touch()

    def wait_lines(self, pod, count):
        wait_for(f"{count} lines of {pod['metadata']['name']}", lambda: self.log(pod).count("\n") >= count)

    def vacate(self, name, pod, urgent):
        """The pod makes way for one with a deadline, which runs then."""
        self.urgent(urgent)
        self.wait_running(urgent)
        wait_for("the pod to be gone", lambda: self.now(pod) is None)

    def assert_went_on(self, name, *pods, wait=True):
        """What all its pods have written, one after the other, is what one would have written alone. The last one runs."""
        second = self.wait_pod_of(name, but=pods)
        self.wait_lines(second, 10)
        wait_for("the lines in its volume", lambda: self.file(second, "/scratch/count").count("\n") > 20)
        text = self.file(second, "/scratch/count")
        lines = text[:text.rindex("\n") + 1].splitlines(keepends=True)
        self.assertEqual(lines, lines_of(len(lines)))
        first = int(self.log(second).split(" ", 1)[0])
        self.assertGreaterEqual(first, 10)  # it did not begin again
        return second

    def checkpoints_of(self, name):
        """The objects that users see of the images of this Job's pods."""
        return [one for one in self.bed.call("GET", CHECKPOINTS)[1]["items"] if one.get("status", {}).get("owner") == f"Job/{name}"]

    def wait_durable(self, name):
        return wait_for("a durable checkpoint", lambda: next((c for c in self.checkpoints_of(name) if c["status"]["durable"]), None))

    def assert_blameless(self, name):
        status = self.job_status(name)
        self.assertEqual((status.get("active"), status.get("failed"), status.get("conditions")), (1, None, None))

    # ---- ----
    def test_a_pod_makes_way_and_comes_back_with_its_memory(self):
        first = self.batch("victim")
        self.vacate("victim", first, "steer")
        self.assertEqual([job["state"] for job in self.of_owner("victim")], ["parked"])
        self.finish("steer")
        self.assert_went_on("victim", first)
        self.assert_blameless("victim")
        [job] = self.of_owner("victim")
        self.assertEqual(job["incarnation"], 2)

    def test_a_pod_comes_back_after_it_has_made_way_three_times(self):
        pods = [self.batch("patient")]
        for turn in range(3):
            self.vacate("patient", pods[-1], f"turn{turn}")
            self.finish(f"turn{turn}")
            pods.append(self.assert_went_on("patient", *pods))
            self.wait_state("patient", "running")
        self.assert_blameless("patient")

    def test_a_pod_that_somebody_deletes_goes_on_from_its_last_image(self):
        first = self.batch("saved", interval="3s", terminationGracePeriodSeconds=1)
        self.wait_image(first)
        self.assertEqual(self.bed.kubectl("delete", "pod", first["metadata"]["name"]).returncode, 0)
        self.assert_went_on("saved", first)
        self.assert_blameless("saved")

    def test_a_job_that_was_saved_completes(self):
        first = self.batch("sum")
        self.vacate("sum", first, "steer")
        self.finish("steer")
        self.open_gate(self.wait_pod_of("sum", but=[first]))
        wait_for("the Job to complete", lambda: self.job_status("sum").get("succeeded"))
        self.assertNotIn("failed", self.job_status("sum"))
        self.wait_state("sum", "done")

    # ---- pods that end without siding ----
    def wait_image(self, pod):
        wait_for("an image", lambda: self.events(pod["metadata"]["name"], "SidingContinued"))

    def preempt(self, pod):
        """Has the node's kubelet end it, in favour of a pod that the cluster cannot do without."""
        body = self.annotated("critical", {}, nodeName=NODE, priorityClassName="system-node-critical")
        self.made(PODS, body)
        self.addCleanup(self.finish, "critical")
        wait_for("the kubelet to end the pod", lambda: self.now(pod)["status"].get("reason") == "Preempting")

    def assert_begins_anew(self, name, first):
        """In a job of siding's of its own."""
        second = self.wait_pod_of(name, but=[first])
        self.wait_lines(second, 1)
        self.assertTrue(self.log(second).startswith("0 "), self.log(second)[:200])
        self.wait_state(name, "failed")
        wait_for("the other job", lambda: len(self.of_owner(name)) == 2)

    def test_a_pod_that_its_kubelet_ends_goes_on_from_its_last_image(self):
        first = self.batch("preempted", interval="3s", retries=3, terminationGracePeriodSeconds=1)
        self.wait_image(first)
        self.preempt(first)
        self.wait_state("preempted", "parked")
        self.finish("critical")
        self.assert_went_on("preempted", first)
        self.assertIsNotNone(self.now(first))  # what is left of it is in nobody's way
        [job] = self.of_owner("preempted")
        self.assertEqual(job["incarnation"], 2)

    def test_a_pod_that_its_kubelet_ends_while_no_controller_lives_goes_on(self):
        first = self.batch("unseen", interval="3s", retries=3, terminationGracePeriodSeconds=1)
        self.wait_image(first)
        self.kill_controller()
        self.preempt(first)
        self.start_controller()
        self.finish("critical")
        self.assert_went_on("unseen", first)
        self.assertEqual(len(self.of_owner("unseen")), 1)

    def test_a_pod_that_its_kubelet_ends_for_the_last_time_ends_its_job(self):
        first = self.batch("last", interval="3s", terminationGracePeriodSeconds=1)
        self.wait_image(first)
        self.preempt(first)
        self.wait_state("last", "cancelled")

    def test_a_pod_whose_program_fails_begins_anew(self):
        first = self.batch("faulty", program=COUNT + "\nexit(1)", interval="3s", retries=3)
        self.wait_image(first)
        self.open_gate(first)
        self.assert_begins_anew("faulty", first)

    def test_a_pod_that_uses_more_than_it_has_asked_for_begins_anew(self):
        full = COUNT.replace("        break", "        open('/scratch/full', 'w').write('x' * 10000000)")
        first = self.batch("greedy", program=full, interval="3s", retries=3, terminationGracePeriodSeconds=1,
                           volumes=[{"name": "scratch", "emptyDir": {"sizeLimit": "5Mi"}}])
        self.wait_image(first)
        self.open_gate(first)
        wait_for("the kubelet to end the pod", lambda: self.now(first)["status"].get("reason") == "Evicted")
        self.assertIn("exceeds the limit", self.now(first)["status"]["message"])
        self.assert_begins_anew("greedy", first)

    # ---- deaths ----
    def kill_controller(self):
        kill9(self.controller)

    def kill_agent(self):
        kill9(self.agent)

    def test_a_controller_that_dies_after_its_order_goes_on(self):
        first = self.batch("orphaned")
        self.urgent("steer")
        wait_for("the order", lambda: self.events(first["metadata"]["name"], "SidingOrderDump"))
        self.kill_controller()
        self.start_controller()
        self.wait_running("steer")
        self.finish("steer")
        self.assert_went_on("orphaned", first)
        self.assert_blameless("orphaned")

    def test_a_controller_that_dies_while_a_job_waits_knows_its_next_pod(self):
        first = self.batch("remembered")
        self.vacate("remembered", first, "steer")
        self.kill_controller()
        self.finish("steer")
        self.start_controller()
        self.assert_went_on("remembered", first)
        self.assert_blameless("remembered")

    def test_an_agent_that_dies_when_an_image_counts_goes_on(self):
        first = self.batch("frozen")
        self.kill_agent()
        self.start_agent(SIDING_FAULT="agent.pod.leaves=kill")
        self.wait_state("frozen", "running")
        self.urgent("steer")
        self.agent.wait(PATIENCE)
        self.start_agent()
        self.wait_running("steer")
        self.finish("steer")
        self.assert_went_on("frozen", first)
        self.assert_blameless("frozen")

    def test_an_agent_that_dies_during_a_dump_lets_the_pod_run_on(self):
        first = self.batch("lucky")
        self.kill_agent()
        self.start_agent(SIDING_FAULT="agent.pod.dumped=kill")
        self.wait_state("lucky", "running")
        self.urgent("steer")
        self.agent.wait(PATIENCE)
        self.start_agent()
        self.wait_running("steer")  # it makes way a moment later
        self.finish("steer")
        self.assert_went_on("lucky", first)
        self.assert_blameless("lucky")

    def test_a_pod_whose_budget_is_used_up_while_it_is_saved_goes_all_the_same(self):
        first = self.batch("late")
        name = first["metadata"]["name"]
        self.kill_agent()
        self.start_agent(SIDING_FAULT="agent.pod.committed=kill")
        self.wait_state("late", "running")
        self.urgent("steer")
        self.agent.wait(PATIENCE)  # it is frozen, its image counts, and nobody knows of it yet
        self.guard_job("late")
        self.start_agent()
        self.wait_running("steer")
        self.assertIsNone(self.now(first))
        [said] = wait_for("the warning", lambda: self.events(name, "SidingDeleted"))
        self.assertIn("The disruption budget late needs 1 healthy pods", said)
        self.finish("steer")
        self.assert_went_on("late", first)
        self.assert_blameless("late")

    # ---- the key of the seal ----
    def test_a_secret_that_is_deleted_is_made_again_and_jobs_go_on(self):
        first = self.batch("sealed")
        self.vacate("sealed", first, "steer")
        before = self.bed.call("GET", SEAL)[1]["data"]
        self.kill_controller()
        self.assertEqual(self.bed.call("DELETE", SEAL, {})[0], 200)
        self.finish("steer")
        self.start_controller()
        self.assert_went_on("sealed", first)
        self.assertEqual(self.bed.call("GET", SEAL)[1]["data"], before)
        self.assertEqual([job["incarnation"] for job in self.of_owner("sealed")], [2])

    def test_a_secret_with_another_key_is_refused_until_it_is_deleted(self):
        pod = self.batch("believed")
        self.kill_controller()
        changed = self.bed.call("PATCH", SEAL, {"data": {"key": base64.b64encode(b"k" * 32).decode()}}, content=MERGE_PATCH)
        self.assertEqual(changed[0], 200, changed)
        self.start_controller()
        wait_for("the refusal", lambda: "expected the key that siding keeps beside its journal" in self.siding.log.read_text())
        self.assertEqual(self.bed.call("DELETE", SEAL, {})[0], 200)
        wait_for("the Secret to be made again", lambda: self.bed.call("GET", SEAL)[0] == 200)
        self.urgent("steer")  # the controller acts
        self.wait_running("steer")
        self.finish("steer")
        self.assert_went_on("believed", pod)
        self.assertEqual([job["incarnation"] for job in self.of_owner("believed")], [2])

    # ---- what users see of images ----
    def test_kubectl_shows_what_was_saved_of_a_pod(self):
        first = self.batch("shown")
        self.vacate("shown", first, "steer")
        [job] = self.of_owner("shown")
        checkpoint = self.wait_durable("shown")
        name = checkpoint["metadata"]["name"]
        self.assertEqual(name, f"kubernetes-{job['id']}.1")
        titles, line = self.bed.kubectl("get", "checkpoints", name).stdout.splitlines()
        self.assertEqual(titles.split(), ["NAME", "OWNER", "PHASE", "SIZE", "TIER", "NODE", "AGE"])
        self.assertRegex(line, rf"^{name} +Job/shown +Durable +[0-9.]+ MiB +shared +{NODE} +[0-9]+s$")
        self.assertEqual(checkpoint["status"]["pod"], first["metadata"]["name"])

    def test_a_checkpoint_goes_with_its_job(self):
        first = self.batch("leaving")
        self.vacate("leaving", first, "steer")
        self.wait_durable("leaving")
        self.bed.call("DELETE", f"{JOBS}/leaving", {"propagationPolicy": "Background"})
        self.wait_state("leaving", "cancelled")
        wait_for("its image to be deleted", lambda: not paths(self.state, "shared/images/*/*/*.img"))
        wait_for("its checkpoint to be gone", lambda: not self.checkpoints_of("leaving"))

    def test_a_checkpoint_that_a_user_deletes_is_written_again(self):
        first = self.batch("kept")
        self.vacate("kept", first, "steer")
        before = self.wait_durable("kept")["metadata"]
        deleted = self.bed.kubectl("delete", "ckpt", before["name"])
        self.assertEqual(deleted.returncode, 0, deleted.stderr)
        wait_for("it to be written again", lambda: any(c["metadata"]["uid"] != before["uid"] for c in self.checkpoints_of("kept")))
        self.finish("steer")
        self.assert_went_on("kept", first)

    # ---- what cannot be ----
    def test_a_job_that_is_deleted_while_it_waits_is_over(self):
        first = self.batch("dropped")
        self.vacate("dropped", first, "steer")
        self.bed.call("DELETE", f"{JOBS}/dropped", {"propagationPolicy": "Background"})
        self.wait_state("dropped", "cancelled")
        wait_for("its image to be deleted", lambda: not paths(self.state, "shared/images/*/*/*.img"))

    def test_what_cannot_be_saved_is_said_on_the_pod(self):
        self.job("probed", COUNT, annotations={"siding.dev/preemptible": "checkpoint"},
                 container={"livenessProbe": {"exec": {"command": ["true"]}}})
        [pod] = self.pods_of("probed")
        [said] = wait_for("the refusal", lambda: self.events(pod["metadata"]["name"], "SidingRefused"))
        self.assertIn("it cannot be saved, for container main has a livenessProbe", said)
        self.wait_lines(pod, 10)  # and it runs as it would without siding

    def test_what_cannot_be_saved_and_may_be_killed_is_evicted(self):
        first = self.batch("simple", methods="checkpoint,kill", runtimeClassName=None, terminationGracePeriodSeconds=1)
        self.vacate("simple", first, "steer")
        self.finish("steer")
        second = self.wait_pod_of("simple", but=[first])
        self.wait_lines(second, 1)
        self.assertTrue(self.log(second).startswith("0 "))

    def test_a_pod_that_a_budget_keeps_runs_on(self):
        first = self.batch("guarded")
        self.guard_job("guarded")
        self.urgent("steer", start_by="+15s")
        [said, *_] = wait_for("the refusal", lambda: self.events("steer", "SidingRefused"))
        self.assertIn("the disruption budget guarded", said)
        count = self.log(first).count("\n")
        self.wait_lines(first, count + 20)
        self.assertIsNotNone(self.now(first))

    def test_a_pod_whose_user_has_changed_his_mind_runs_on(self):
        pod = self.batch("free")
        name = pod["metadata"]["name"]
        self.assertEqual(self.bed.kubectl("annotate", "pod", name, "siding.dev/preemptible-").returncode, 0)
        wait_for("siding to let go of it", lambda: not [job for job in self.of_owner("free") if job["state"] == "running"])
        count = self.log(pod).count("\n")
        self.wait_lines(pod, count + 20)
        written = self.log(pod).splitlines(keepends=True)
        self.assertEqual(written, lines_of(len(written)))

    def test_a_pod_that_asks_nothing_starts_with_the_runtime_class(self):
        pod = self.job("plain", COUNT)
        self.wait_lines(pod, 10)
        self.assertEqual(self.of_owner("plain"), [])


if __name__ == "__main__":
    main(root=True)
