#!/usr/bin/python3
"""The chart: what it makes of values, what it refuses, and that a real API server takes it."""

import re
import unittest

import renderer
import yaml
from case import ROOT, KubernetesCase, main

PAIR = "replicas: 2\npersistence: {accessMode: ReadWriteMany}\n"
WITH_AGENTS = """
kubernetes: {mode: checkpointing}
agent: {enabled: true, sharedDir: /shared/siding, args: [--log-level=debug]}
tls: {secret: siding-tls}
"""
WITH_ALL = PAIR + WITH_AGENTS + """
namespace: {create: true}
webhook: {enabled: true, caBundle: Y2E=}
imagePullSecrets: [{name: pull}]
priorityClassName: system-cluster-critical
nodeSelector: {disk: fast}
tolerations: [{operator: Exists}]
networkPolicy:
  agents: [{ipBlock: {cidr: 10.0.0.0/8}}]
  metrics: [{namespaceSelector: {matchLabels: {name: monitoring}}}]
config: {heartbeat: 1s, limits: {connections: 100}}
"""
OLD = ("policy/v1beta1",)


def rendered(values="", **options):
    """{(kind, name): object}."""
    texts = renderer.documents(renderer.render(renderer.place(), values, **options))
    return {(o["kind"], o["metadata"]["name"]): o for o in map(yaml.safe_load, texts)}


class Rendered(unittest.TestCase):
    maxDiff = None

    def assert_refused(self, values, why):
        with self.assertRaises(renderer.CannotRender) as refused:
            rendered(values)
        self.assertIn(why, str(refused.exception))

    def sidingd(self, values):
        return yaml.safe_load(rendered(values)["ConfigMap", "siding-config"]["data"]["sidingd.yaml"])

    def test_the_plain_manifests_are_what_it_makes(self):
        for path, text in renderer.plain(renderer.place()).items():
            self.assertEqual(path.read_text(), text, f"{path.relative_to(ROOT)}: run tests/kubernetes/render")

    def test_its_notes_name_the_pod(self):
        self.assertIn("exec siding-0 -- sidingctl nodes", renderer.render(renderer.place())["templates/NOTES.txt"])

    def test_one_controller_stands_by_for_nobody(self):
        config = self.sidingd("")
        self.assertEqual((config.get("standby"), config.get("shared_state")), (None, None))
        self.assertNotIn(("PodDisruptionBudget", "siding"), rendered())

    def test_of_two_controllers_one_stands_by_on_a_journal_that_both_see(self):
        config = self.sidingd(PAIR)
        self.assertEqual((config["standby"], config["shared_state"]), (True, True))
        made = rendered(PAIR)
        self.assertEqual(made["PersistentVolumeClaim", "siding-journal"]["spec"]["accessModes"], ["ReadWriteMany"])
        self.assertEqual(made["PodDisruptionBudget", "siding"]["apiVersion"], "policy/v1")
        self.assertEqual(rendered(PAIR, apis=OLD)["PodDisruptionBudget", "siding"]["apiVersion"], "policy/v1beta1")

    def test_storage_that_hosts_share_is_written_as_such_by_one_as_well(self):
        self.assertIs(self.sidingd("persistence: {accessMode: ReadWriteMany}")["shared_state"], True)

    def test_two_controllers_need_a_claim_that_both_can_mount(self):
        self.assert_refused("replicas: 2", "replicas: 2 needs persistence.accessMode: ReadWriteMany")

    def test_three_controllers_are_refused(self):
        self.assert_refused("replicas: 3", "replicas: expected 1, or 2")

    def test_what_the_chart_writes_itself_is_refused(self):
        self.assert_refused("config: {state_dir: /tmp}", "config.state_dir: expected nothing")

    def test_more_of_the_configuration_is_passed_on(self):
        self.assertEqual(self.sidingd("config: {heartbeat: 1s}")["heartbeat"], "1s")

    def test_folders_that_are_the_same_on_all_nodes_are_passed_on(self):
        self.assertNotIn("host_paths", self.sidingd(WITH_AGENTS)["kubernetes"])
        for said, written in (("{readOnly: [/a]}", {"read_only": ["/a"], "read_write": []}),
                              ("{readWrite: [/a, /b]}", {"read_only": [], "read_write": ["/a", "/b"]})):
            values = WITH_AGENTS.replace("mode: checkpointing", f"mode: checkpointing, hostPaths: {said}")
            self.assertEqual(self.sidingd(values)["kubernetes"]["host_paths"], written)

    def test_agents_need_certificates_and_a_namespace_of_their_own(self):
        self.assert_refused(WITH_AGENTS.replace("siding-tls", '""'), "agent.enabled needs tls.secret")
        self.assert_refused(WITH_AGENTS.replace("args", "namespace: siding, args"), "agent.namespace: expected another")

    def test_the_api_server_asks_with_certificates_alone(self):
        asked = "webhook: {enabled: true, caBundle: Y2E=}\n"
        self.assert_refused(asked, "webhook.enabled needs tls.secret")
        self.assert_refused("webhook: {enabled: true}\ntls: {secret: siding-tls}", "webhook.enabled needs webhook.caBundle")

    def test_the_api_server_asks_every_controller_and_nobody_waits_for_one(self):
        asked = "webhook: {enabled: true, caBundle: Y2E=}\ntls: {secret: siding-tls}\n"
        served = self.sidingd(asked)["kubernetes"]["webhook"]
        self.assertEqual((served["address"], served["port"]), ("0.0.0.0", 9443))
        made = rendered(asked)
        self.assertEqual(made["Service", "siding-webhook"]["spec"]["selector"], made["Service", "siding"]["spec"]["selector"])
        [hook] = made["ValidatingWebhookConfiguration", "siding"]["webhooks"]
        self.assertEqual((hook["failurePolicy"], hook["clientConfig"]["caBundle"]), ("Ignore", "Y2E="))
        self.assertNotIn(("ValidatingWebhookConfiguration", "siding"), rendered())

    def test_pods_are_saved_by_agents_alone(self):
        self.assert_refused(WITH_AGENTS.replace("enabled: true", "enabled: false"), "kubernetes.mode: checkpointing needs agent.enabled")

    def test_without_that_agents_have_nothing_to_do(self):
        self.assert_refused(WITH_AGENTS.replace("checkpointing", "evicting"), "agent.enabled needs kubernetes.mode: checkpointing")

    def test_images_need_a_folder_that_all_nodes_see(self):
        self.assert_refused(WITH_AGENTS.replace("/shared/siding", '""'), "agent.enabled needs agent.sharedDir")

    def test_paths_of_nodes_are_absolute(self):
        for field in ("certificates", "stateDir", "programs", "podsSocket", "runc", "criu"):
            self.assert_refused(WITH_AGENTS.replace("args", f"{field}: here/it, args"), f"agent.{field}: expected an absolute path")

    def test_another_mode_is_refused(self):
        self.assert_refused("kubernetes: {mode: freezing}", "kubernetes.mode: expected evicting or checkpointing")

    def test_a_port_is_open_with_certificates_only(self):
        self.assertNotIn("listen", self.sidingd(""))
        self.assertEqual(self.sidingd(WITH_AGENTS)["listen"], "[::]:7433")
        self.assertEqual([port["name"] for port in rendered()["Service", "siding"]["spec"]["ports"]], ["metrics"])

    def test_there_are_no_agents_unless_they_are_asked_for(self):
        self.assertEqual({kind for kind, _ in rendered()} & {"DaemonSet", "RuntimeClass"}, set())
        self.assertEqual([o["metadata"]["name"] for o in rendered().values() if o["metadata"].get("namespace") == "siding-agents"], [])
        self.assertNotIn("siding-runc", renderer.render(renderer.place())["templates/NOTES.txt"])

    def test_what_containerds_configuration_needs_is_said_and_not_done(self):
        values = WITH_AGENTS.replace("args", "programs: /usr/local/siding, args")
        self.assertIn('BinaryName = "/usr/local/siding/current/siding-runc"', renderer.render(renderer.place(), values)["templates/NOTES.txt"])
        self.assertNotIn("config.toml", str(rendered(values)))

    def test_the_controller_saves_pods(self):
        self.assertEqual((self.sidingd("")["kubernetes"]["mode"], self.sidingd(WITH_AGENTS)["kubernetes"]["mode"]),
                         ("evicting", "checkpointing"))

    def test_pods_of_the_class_come_to_nodes_with_agents_alone(self):
        made = rendered(WITH_AGENTS.replace("args", "nodeSelector: {pool: batch}, args"))
        agents = made["DaemonSet", "siding-agent"]["spec"]["template"]["spec"]["nodeSelector"]
        self.assertEqual(made["RuntimeClass", "siding"]["scheduling"]["nodeSelector"], agents)
        self.assertEqual(agents["pool"], "batch")
        self.assertEqual(made["RuntimeClass", "siding"]["handler"], "siding")

    def test_the_agent_goes_wherever_pods_are(self):
        spec = rendered(WITH_AGENTS)["DaemonSet", "siding-agent"]["spec"]["template"]["spec"]
        self.assertEqual(spec["tolerations"], [{"operator": "Exists"}])

    def test_agents_are_renewed_one_after_the_other(self):
        self.assertEqual(rendered(WITH_AGENTS)["DaemonSet", "siding-agent"]["spec"]["updateStrategy"],
                         {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}})

    def test_the_agent_has_no_more_than_it_says(self):
        spec = rendered(WITH_AGENTS)["DaemonSet", "siding-agent"]["spec"]["template"]["spec"]
        [agent] = spec["containers"]
        self.assertEqual(agent["securityContext"]["privileged"], False)
        self.assertEqual(agent["securityContext"]["capabilities"]["drop"], ["ALL"])
        self.assertNotIn("volumes", spec)
        self.assertEqual((spec.get("hostNetwork"), spec.get("hostIPC"), spec["automountServiceAccountToken"]), (None, None, False))

    def test_each_capability_of_the_agent_says_why(self):
        text = (renderer.CHART / "templates/agent.yaml").read_text().partition("add:\n")[2]
        self.assertEqual(len(re.findall(r"(?m)^ +# .*\n +- [A-Z_]+$", text)), len(re.findall(r"(?m)^ +- [A-Z_]+$", text)))

    def test_programs_of_the_node_are_told_to_both_that_run_them(self):
        values = WITH_AGENTS.replace("args", "runc: /usr/bin/runc, criu: /usr/sbin/criu, args")
        [agent] = rendered(values)["DaemonSet", "siding-agent"]["spec"]["template"]["spec"]["containers"]
        before = agent["args"][:agent["args"].index("--")]
        self.assertEqual(before, ["--folder=/opt/siding", "--pods-socket=/run/siding/pods.sock", "--runc=/usr/bin/runc", "--criu=/usr/sbin/criu"])

    def test_agents_dial_each_controller_by_its_name(self):
        [agent] = rendered(PAIR + WITH_AGENTS)["DaemonSet", "siding-agent"]["spec"]["template"]["spec"]["containers"]
        self.assertIn("--controller=siding-0.siding.siding.svc:7433,siding-1.siding.siding.svc:7433", agent["args"])
        self.assertEqual(agent["args"][-1], "--log-level=debug")

    def test_what_only_agents_need_is_in_their_namespace(self):
        made = rendered(WITH_ALL)
        levels = {name: o["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] for (kind, name), o in made.items()
                  if kind == "Namespace"}
        self.assertEqual(levels, {"siding": "restricted", "siding-agents": "privileged"})
        self.assertEqual(made["DaemonSet", "siding-agent"]["metadata"]["namespace"], "siding-agents")

    def test_the_controller_asks_for_nothing_that_the_strictest_level_forbids(self):
        spec = rendered(WITH_ALL)["StatefulSet", "siding"]["spec"]["template"]["spec"]
        self.assertEqual((spec["securityContext"]["runAsNonRoot"], spec["securityContext"]["seccompProfile"]["type"]),
                         (True, "RuntimeDefault"))
        [container] = spec["containers"]
        self.assertEqual(container["securityContext"], {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                                        "capabilities": {"drop": ["ALL"]}})
        kinds = {kind for volume in spec["volumes"] for kind in volume if kind != "name"}
        self.assertLessEqual(kinds, {"configMap", "emptyDir", "persistentVolumeClaim", "secret"})
        self.assertFalse({"hostPID", "hostNetwork", "hostIPC"} & set(spec))

    def test_another_release_shares_no_name_with_it(self):
        made = rendered(release="other", namespace="elsewhere")
        self.assertEqual({name.split("-")[0] for _, name in made}, {"other"})
        self.assertEqual({o["metadata"].get("namespace") for (kind, _), o in made.items() if not kind.startswith("Cluster")}, {"elsewhere"})

    def test_prometheus_finds_the_metrics(self):
        made = rendered("metrics: {serviceMonitor: {enabled: true, labels: {release: prometheus}}}")
        monitor, service = made["ServiceMonitor", "siding"], made["Service", "siding"]
        self.assertLessEqual(monitor["spec"]["selector"]["matchLabels"].items(), service["metadata"]["labels"].items())
        self.assertIn(monitor["spec"]["endpoints"][0]["port"], [port["name"] for port in service["spec"]["ports"]])


class Taken(KubernetesCase):
    """By the server's own validation, defaults and admission. A ServiceMonitor is of a kind that it does not have."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name in ("siding", "siding-agents"):
            assert cls.bed.kubectl("create", "namespace", name).returncode == 0

    def assert_taken(self, values):
        texts = renderer.documents(renderer.render(renderer.place(), values, apis=OLD))
        done = self.bed.kubectl("apply", "--dry-run=server", "-f", "-", text="---\n".join(texts))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("server dry run"), len(texts), done.stdout)

    def test_with_the_charts_own_values(self):
        self.assert_taken("")

    def test_with_everything(self):
        self.assert_taken(WITH_ALL)

    def test_a_field_that_there_is_not_would_be_seen(self):
        [text] = [t for t in renderer.documents(renderer.render(renderer.place())) if "kind: StatefulSet" in t]
        done = self.bed.kubectl("apply", "--dry-run=server", "-f", "-", text=text.replace("serviceName:", "servicesName:"))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('unknown field "servicesName"', done.stderr)


if __name__ == "__main__":
    if not renderer.place().exists():
        renderer.debian().cannot("the chart's renderer is not built: tests/kubernetes/render makes it")
    main()
