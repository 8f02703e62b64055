#!/usr/bin/python3
"""Pods that make way for a pod with a deadline and come back with their memory: a controller, an agent, and kubectl alone."""

import base64

from agent_case import JOBS, NODE, TIMER, lines_of
from case import MERGE_PATCH, PATIENCE, PODS, main, paths, wait_for
from checkpoint_case import COUNT, CheckpointCase

SEAL = "/api/v1/namespaces/siding/secrets/siding-seal"


class Checkpoint(CheckpointCase):
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

    def test_a_pod_that_was_deleted_keeps_nobody_waiting_while_its_object_stays(self):
        first = self.batch("held", interval="3s", retries=3, terminationGracePeriodSeconds=1)
        name = first["metadata"]["name"]
        self.hold(name, ["test.example/held"])
        self.addCleanup(self.hold, name, None)
        self.wait_image(first)
        self.assertEqual(self.bed.kubectl("delete", "pod", name, "--wait=false").returncode, 0)
        self.assert_went_on("held", first)
        self.assertEqual(self.now(first)["status"]["phase"], "Failed")
        [job] = self.of_owner("held")
        self.assertEqual(job["incarnation"], 2)

    def hold(self, pod, finalizers):
        self.bed.call("PATCH", f"{PODS}/{pod}", {"metadata": {"finalizers": finalizers}}, content=MERGE_PATCH)

    def test_a_job_that_was_saved_completes(self):
        first = self.batch("sum")
        self.vacate("sum", first, "steer")
        self.finish("steer")
        self.open_gate(self.wait_pod_of("sum", but=[first]))
        wait_for("the Job to complete", lambda: self.job_status("sum").get("succeeded"))
        self.assertNotIn("failed", self.job_status("sum"))
        self.wait_state("sum", "done")

    # ---- pods that end without siding ----
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
        # Written once and kept: the kubelet looks once in a minute or two, and would miss what is there only now and then.
        full = COUNT.replace("        break", "        os.path.exists('/scratch/full') or open('/scratch/full', 'w').write('x' * 10000000)")
        first = self.batch("greedy", program=full, interval="3s", retries=3, terminationGracePeriodSeconds=1,
                           volumes=[{"name": "scratch", "emptyDir": {"sizeLimit": "5Mi"}}])
        self.wait_image(first)
        self.open_gate(first)
        wait_for("the kubelet to end the pod", lambda: self.now(first)["status"].get("reason") == "Evicted")
        self.assertIn("exceeds the limit", self.now(first)["status"]["message"])
        self.assert_begins_anew("greedy", first)

    # ---- deaths ----
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

    def wait_known(self, name):
        """That it cannot be saved is known, though nobody has tried it."""
        wait_for("the reason", lambda: "has a timer that repeats" in self.of_owner(name)[0].get("methods_note", ""))

    def test_what_its_processes_have_that_cannot_be_saved_is_known_before_it_is_tried(self):
        first = self.batch("ticking", program=TIMER + COUNT)
        self.wait_known("ticking")
        self.urgent("steer-past-a-timer", start_by="+15s")
        [said, *_] = wait_for("the refusal", lambda: self.events("steer-past-a-timer", "SidingRefused"))
        self.assertIn("has a timer that repeats", said)
        self.assertEqual(self.events(first["metadata"]["name"], "SidingOrderDump"), [])
        self.wait_lines(first, self.log(first).count("\n") + 20)

    def test_what_is_known_not_to_be_saved_and_may_be_killed_is_evicted_at_once(self):
        first = self.batch("tocking", program=TIMER + COUNT, methods="checkpoint,kill", terminationGracePeriodSeconds=1, retries=3)
        self.wait_known("tocking")
        self.vacate("tocking", first, "steer")
        self.assertEqual(self.events(first["metadata"]["name"], "SidingOrderDump"), [])

    def test_a_pod_that_a_budget_keeps_runs_on(self):
        first = self.batch("guarded")
        self.guard_job("guarded")
        self.urgent("steer", start_by="+15s")
        [said, *_] = wait_for("the refusal", lambda: self.events("steer", "SidingRefused"))
        self.assertIn("the disruption budget default/guarded", said)
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
