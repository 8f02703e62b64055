#!/usr/bin/python3
"""A real Prometheus reads a real sidingd, with the rules that are installed: an alert fires, and ends when its cause has."""

import json
import pathlib
import shutil
import subprocess
import time
import unittest
import urllib.parse
import urllib.request

import yaml

from case import PATIENCE, ClusterCase, wait_for
from cluster import ROOT, Cluster, kill9
from ports import free_ports

DOWN = {"alertname": "SidingNodeDown", "state": "down"}


class Metered(Cluster):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        [self.metrics_port] = free_ports(1)

    def controller_args(self):
        return ("--metrics-port", self.metrics_port)


def rules_at_once():
    """What is installed, but that nobody waits: promtool has tried for how long each alert does (tests/rules)."""
    rules = yaml.safe_load((ROOT / "dashboards/alerts.yml").read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            rule.pop("for", None)
    return rules


class Prometheus:
    """On the loopback, with a folder of its own, until stop()."""

    def __init__(self, folder, target):
        folder.mkdir()
        [self.port], self.log = free_ports(1), folder / "log"
        (folder / "rules.yml").write_text(yaml.safe_dump(rules_at_once()))
        config = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": ["rules.yml"],
                  "scrape_configs": [{"job_name": "siding", "static_configs": [{"targets": [target]}]}]}
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                                             f"--web.listen-address=127.0.0.1:{self.port}"], stdout=log, stderr=log)

    def ask(self, what, **query):
        assert self.process.poll() is None, self.log.read_text()
        try:
            url = f"http://127.0.0.1:{self.port}/api/v1/{what}?{urllib.parse.urlencode(query)}"
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                return json.load(answer)["data"]
        except OSError:
            return None  # it has not begun

    def value(self, expression):
        """Of the only series; None: there is none."""
        data = self.ask("query", query=expression)
        return float(data["result"][0]["value"][1]) if data and data["result"] else None

    def firing(self):
        """Labels of each alert; None: it does not answer yet."""
        data = self.ask("alerts")
        return data and [alert["labels"] for alert in data["alerts"] if alert["state"] == "firing"]

    def stop(self):
        kill9(self.process)


@unittest.skipUnless(shutil.which("prometheus"), "needs a Prometheus (./run setup)")
class RealPrometheus(ClusterCase):
    def make_cluster(self):
        return Metered(self.nodes, self.slots, policy=self.policy)

    def setUp(self):
        super().setUp()
        self.prometheus = Prometheus(pathlib.Path(self.cluster.dir) / "prometheus", f"127.0.0.1:{self.cluster.metrics_port}")
        self.addCleanup(self.prometheus.stop)

    def fires(self, labels):
        alerts = self.prometheus.firing()
        return alerts is not None and any(labels.items() <= alert.items() for alert in alerts)

    def test_an_agent_that_is_gone_is_told_until_it_is_back(self):
        wait_for("both nodes to be seen", lambda: self.prometheus.value('siding_nodes{state="up"}') == 2)
        self.assertFalse(self.fires(DOWN))
        self.cluster.kill9_agent("n2")
        wait_for("the alert to fire", lambda: self.fires(DOWN))
        self.cluster.start_agent("n2")
        wait_for("the alert to end", lambda: self.prometheus.firing() is not None and not self.fires(DOWN))

    def test_a_preemption_is_measured_and_counted_on_after_a_restart(self):
        victim = self.counter()
        self.wait_counting(victim)
        request = self.express(nodes=2)
        self.cluster.wait_state(request, "done")
        self.cluster.wait_state(victim, "running")
        took = "sum(siding_checkpoint_duration_seconds_count) + sum(siding_restore_duration_seconds_count)"
        wait_for("a dump and a restore to be seen", lambda: self.prometheus.value(took) == 2)
        self.assertGreater(self.prometheus.value("siding_deadline_last_margin_seconds"), 0)
        self.assertEqual(self.prometheus.value('siding_requests_total{result="met"}'), 1)
        self.assertGreater(self.prometheus.value('sum(siding_lost_node_seconds_total{by="checkpoint"})'), 0)
        self.cluster.kill9_controller()
        self.cluster.start_controller()
        begun = time.time()
        wait_for("the next controller to be seen", lambda: (self.prometheus.value("timestamp(siding_leader)") or 0) > begun)
        self.assertEqual(self.prometheus.value(took), 2)
        self.assert_counted(victim)


if __name__ == "__main__":
    unittest.main()
