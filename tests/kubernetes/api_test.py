#!/usr/bin/python3
"""What siding's client relies on of an API server, and where 1.20 differs from later ones."""

from case import ANOTHER_UID, MERGE_PATCH, PODS, KubernetesCase, eviction, main, pod, wait_for


def binding(name, **metadata):
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, **metadata},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "anywhere"}}


class Watches(KubernetesCase):
    def test_an_expired_version_is_an_event_not_a_status(self):
        self.made(PODS, pod("later"))
        self.bed.restart_apiserver()  # its memory of what changed begins anew
        status, events = self.bed.watch("/api/v1/pods", resourceVersion=1, timeoutSeconds=5)
        self.assertEqual(status, 200)
        self.assertEqual([(e["type"], e["object"]["code"], e["object"]["reason"]) for e in events], [("ERROR", 410, "Expired")])

    def test_one_ends_by_itself_when_its_time_is_over(self):
        _, listed = self.bed.call("GET", "/api/v1/pods")
        status, _ = self.bed.watch("/api/v1/pods", resourceVersion=listed["metadata"]["resourceVersion"], timeoutSeconds=1)
        self.assertEqual(status, 200)

    def test_what_came_after_the_version_is_told_in_order(self):
        _, listed = self.bed.call("GET", PODS)
        self.made(PODS, pod("watched"))
        self.bed.call("DELETE", f"{PODS}/watched", {"gracePeriodSeconds": 0})
        _, events = self.bed.watch(PODS, resourceVersion=listed["metadata"]["resourceVersion"], timeoutSeconds=2,
                                   fieldSelector="metadata.name=watched")
        self.assertEqual([events[0]["type"], events[-1]["type"]], ["ADDED", "DELETED"])


class Preconditions(KubernetesCase):
    def test_an_eviction_of_another_uid_is_a_conflict(self):
        self.made(PODS, pod("kept"))
        status, why = self.bed.call("POST", f"{PODS}/kept/eviction", eviction("kept", preconditions={"uid": ANOTHER_UID}))
        self.assertEqual((status, why["reason"]), (409, "Conflict"))
        self.assertEqual(self.bed.call("GET", f"{PODS}/kept")[0], 200)

    def test_an_eviction_of_no_pod_is_not_found(self):
        self.assertEqual(self.bed.call("POST", f"{PODS}/none/eviction", eviction("none"))[0], 404)

    def test_a_merge_patch_of_another_uid_is_invalid(self):
        self.made(PODS, pod("patched"))
        body = {"metadata": {"uid": ANOTHER_UID, "labels": {"a": "b"}}}
        status, why = self.bed.call("PATCH", f"{PODS}/patched", body, content=MERGE_PATCH)
        self.assertEqual((status, why["reason"]), (422, "Invalid"))
        self.assertNotIn("a", self.bed.call("GET", f"{PODS}/patched")[1]["metadata"]["labels"])

    def test_a_merge_patch_of_another_version_is_a_conflict(self):
        self.made(PODS, pod("versioned"))
        body = {"metadata": {"resourceVersion": "1", "labels": {"a": "b"}}}
        self.assertEqual(self.bed.call("PATCH", f"{PODS}/versioned", body, content=MERGE_PATCH)[0], 409)

    def test_a_binding_does_not_look_at_the_pods_uid(self):
        """So siding looks at the pod again after it has bound it."""
        self.made(PODS, pod("bound"))
        status, why = self.bed.call("POST", f"{PODS}/bound/binding", binding("bound", uid=ANOTHER_UID))
        self.assertEqual(status, 201, why)
        self.assertEqual(self.bed.call("GET", f"{PODS}/bound")[1]["spec"]["nodeName"], "anywhere")

    def test_a_second_binding_is_a_conflict(self):
        self.made(PODS, pod("twice"))
        self.assertEqual([self.bed.call("POST", f"{PODS}/twice/binding", binding("twice"))[0] for _ in range(2)], [201, 409])


class OfThisVersion(KubernetesCase):
    def test_scheduling_gates_are_dropped_silently(self):
        made = self.made(PODS, pod("gated", schedulingGates=[{"name": "siding.dev/wait"}]))
        self.assertNotIn("schedulingGates", made["spec"])

    def test_discovery_has_evictions_of_v1beta1_only(self):
        self.assertEqual(self.bed.call("GET", "/apis/policy/v1beta1")[0], 200)
        self.assertEqual(self.bed.call("GET", "/apis/policy/v1")[0], 404)


class Budgets(KubernetesCase):
    def test_an_eviction_beyond_the_budget_is_refused_and_says_so(self):
        self.made(PODS, pod("guarded", nodeName="anywhere"))
        self.guard("guarded")
        status, why = self.bed.call("POST", f"{PODS}/guarded/eviction", eviction("guarded"))
        self.assertEqual(status, 429, why)
        self.assertEqual([cause["reason"] for cause in why["details"]["causes"]], ["DisruptionBudget"])


if __name__ == "__main__":
    main()
