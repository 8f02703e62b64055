#!/usr/bin/python3
"""Dashboards, alerts and their pages name what sidingd exports, and nothing else; each alert fires when it should, and leads to what to do."""

import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("SIDING_BIN", ROOT / "build/dev/bin"))
RULES, CASES = ROOT / "dashboards/alerts.yml", ROOT / "tests/rules/alerts_test.yml"
METRICS_PAGE, ALERTS_PAGE = ROOT / "docs/admin/metrics.md", ROOT / "docs/admin/alerts.md"
BOARDS = {path.name: json.loads(path.read_text()) for path in sorted((ROOT / "dashboards").glob("*.json"))}
KINDS = {"bargauge", "heatmap", "stat", "state-timeline", "table", "timeseries"}
NAME = re.compile(r"(?<!/d/)\bsiding[_:][a-z0-9_:]+")
SELECTOR = re.compile(r"\b(siding[_:][a-z0-9_:]+)\{([^}]*)\}")
promtool = unittest.skipUnless(shutil.which("promtool"), "needs promtool (./run setup)")


def table():
    return subprocess.run([BIN / "sidingd", "--list-metrics"], capture_output=True, text=True, check=True).stdout


def exported():
    """By each name that a scrape has: the labels of its series."""
    found = {}
    for name, kind, labels in re.findall(r"(?m)^\| `(\w+)` \| (\w+) \| ([^|]*) \|", table()):
        labels = set(re.findall(r"`(\w+)`", labels))
        if kind == "histogram":
            found |= {name + "_bucket": labels | {"le"}, name + "_sum": labels, name + "_count": labels}
        else:
            found[name] = labels
    return found


def rules():
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def alerts():
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


def recorded():
    return {rule["record"] for rule in rules() if "record" in rule}


def expressions():
    """(where, expression) of all rules and panels."""
    for rule in rules():
        yield rule.get("alert") or rule["record"], rule["expr"]
    for name, board in BOARDS.items():
        for panel in board["panels"]:
            for target in panel["targets"]:
                yield f"{name}: {panel['title']}", target["expr"]


def run_promtool(*arguments):
    # It makes a database for each case: in memory, which takes a tenth of the time.
    memory = {"TMPDIR": "/dev/shm"} if os.access("/dev/shm", os.W_OK) else {}
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, env={**os.environ, **memory})
    return done.returncode, done.stdout + done.stderr


class Names(unittest.TestCase):
    maxDiff = None

    def test_the_page_has_the_table_of_the_program(self):
        self.assertEqual(re.findall(r"(?m)^\| (?:metric|`siding_).*$", METRICS_PAGE.read_text()),
                         re.findall(r"(?m)^\| (?:metric|`siding_).*$", table()))

    def test_what_is_asked_for_is_exported(self):
        there = exported().keys() | recorded()
        self.assertEqual([(where, name) for where, expression in expressions() for name in NAME.findall(expression) if name not in there], [])

    def test_labels_that_are_asked_for_are_there(self):
        labels = exported()
        wrong = [(where, name, label) for where, expression in expressions() for name, inside in SELECTOR.findall(expression)
                 for label in re.findall(r"(\w+)\s*(?:=|!)", inside) if label not in labels.get(name, {label}) | {"job", "instance"}]
        self.assertEqual(wrong, [])

    def test_pages_name_what_is_exported(self):
        # The Python and C++ names of this repository aside: those that stand as metrics do.
        there = exported().keys() | {name.removesuffix("_bucket") for name in exported()}
        named = re.compile(r"`(siding_[a-z0-9_]+)(?:\{[^`]*\})?`")
        wrong = [(page.name, name) for page in sorted((ROOT / "docs").rglob("*.md")) if "results" not in page.parts
                 for name in named.findall(page.read_text()) if name not in there]
        self.assertEqual(wrong, [])

    def test_every_recorded_ratio_is_looked_at(self):
        asked = {name for _, expression in expressions() for name in NAME.findall(expression)}
        self.assertEqual(recorded() - asked, set())

    @promtool
    def test_all_expressions_parse(self):
        asked = [e.replace("$__rate_interval", "5m").replace("$job", ".*") for _, e in expressions()]
        group = {"name": "all", "rules": [{"record": f"asked:number{i}", "expr": e} for i, e in enumerate(asked)]}
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            yaml.safe_dump({"groups": [group]}, file)
            file.flush()
            code, said = run_promtool("check", "rules", file.name)
        self.assertEqual(code, 0, said)


class Dashboards(unittest.TestCase):
    def panels(self):
        for name, board in BOARDS.items():
            for panel in board["panels"]:
                with self.subTest(board=name, panel=panel.get("title")):
                    yield panel

    def test_there_is_one_for_each_question(self):
        self.assertEqual(set(BOARDS), {f"{name}.json" for name in ("deadlines", "decisions", "nodes", "store", "health")})

    def test_each_leads_to_the_others_and_can_be_provisioned(self):
        every = {board["uid"] for board in BOARDS.values()}
        self.assertEqual(len(every), len(BOARDS))
        for name, board in BOARDS.items():
            with self.subTest(board=name):
                self.assertNotIn("__inputs", board)
                self.assertEqual({link["url"] for link in board["links"]}, {f"/d/{uid}" for uid in every - {board["uid"]}})
                [source] = [v for v in board["templating"]["list"] if v["name"] == "datasource"]
                self.assertEqual((source["type"], source["query"]), ("datasource", "prometheus"))

    def test_each_panel_says_what_it_shows_and_asks_the_chosen_source(self):
        for panel in self.panels():
            self.assertTrue(panel["title"])
            self.assertRegex(panel["description"], r"^[A-Z0-9].*\.$")
            self.assertIn(panel["type"], KINDS)
            self.assertTrue(panel["fieldConfig"]["defaults"]["unit"])
            self.assertEqual(panel["datasource"], {"type": "prometheus", "uid": "${datasource}"})
            ids = [target["refId"] for target in panel["targets"]]
            self.assertTrue(ids)
            self.assertEqual(len(ids), len(set(ids)))
            self.assertTrue(all("$job" in target["expr"] for target in panel["targets"]))

    def test_panels_have_numbers_of_their_own_and_do_not_overlap(self):
        for name, board in BOARDS.items():
            ids = [panel["id"] for panel in board["panels"]]
            self.assertEqual(len(ids), len(set(ids)), name)
            for a, b in itertools.combinations([panel["gridPos"] for panel in board["panels"]], 2):
                apart = (a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"] or a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"])
                self.assertTrue(apart, (name, a, b))
            self.assertTrue(all(p["gridPos"]["x"] + p["gridPos"]["w"] <= 24 for p in board["panels"]), name)


class Alerts(unittest.TestCase):
    def test_each_says_how_bad_it_is_and_leads_to_its_heading(self):
        for name, rule in alerts().items():
            with self.subTest(alert=name):
                self.assertIn(rule["labels"]["severity"], ("warning", "critical"))
                self.assertTrue(rule["annotations"]["summary"])
                self.assertEqual(rule["annotations"]["runbook_url"], f"{ALERTS_PAGE.relative_to(ROOT)}#{name.lower()}")

    def test_the_page_has_a_heading_for_each_and_no_other(self):
        self.assertEqual(re.findall(r"(?m)^### (.*)$", ALERTS_PAGE.read_text()), list(alerts()))

    def test_each_section_says_what_to_look_at_and_what_to_do(self):
        for section in ALERTS_PAGE.read_text().split("\n### ")[1:]:
            name, text = section.split("\n", 1)
            if "as [above]" not in text:
                self.assertRegex(text, r"(?s)\n- Look: .*\n- Do: ", name)

    def test_each_is_tried_firing(self):
        fires = set(re.findall(r'alertname="(\w+)"', CASES.read_text()))
        self.assertEqual(fires, set(alerts()))

    @promtool
    def test_the_rules_are_good(self):
        code, said = run_promtool("check", "rules", RULES)
        self.assertEqual(code, 0, said)

    @promtool
    def test_each_fires_when_it_should_and_not_otherwise(self):
        code, said = run_promtool("test", "rules", CASES)
        self.assertEqual(code, 0, said)


if __name__ == "__main__":
    unittest.main()
