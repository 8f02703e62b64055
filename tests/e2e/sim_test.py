#!/usr/bin/python3
"""siding-sim as its users run it: a comparison, its report, and what it says to bad input."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

BIN = pathlib.Path(os.environ["SIDING_BIN"])
NAMES = ["siding", "siding-protected", "siding-protected-local", "kill-only", "checkpoint-all", "slurm-preempt", "slurm-youngest-first",
         "pbs-order", "kueue-classical", "static-reservation", "none"]


def trace(jobs=60):
    lines = ["; MaxNodes: 16"]
    for j in range(jobs):
        runtime, nodes = 300 + 97 * j % 1500, 1 + 7 * j % 12
        lines.append(f"{j + 1} {1000 + 120 * j} 0 {runtime} {nodes} -1 -1 {nodes} {2 * runtime} -1 1 -1 -1 -1 -1 -1 -1 -1")
    return "\n".join(lines) + "\n"


class Sim(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.trace = self.folder / "t.swf"
        self.trace.write_text(trace())

    def run_sim(self, *args):
        return subprocess.run([str(BIN / "siding-sim"), *map(str, args)], capture_output=True, text=True)

    def compare(self, *args):
        return self.run_sim("compare", "--trace", self.trace, "--on-demand-share", "0.3", *args)

    def fails(self, done, text):
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(text, done.stderr)

    def test_the_json_has_every_strategy_and_what_was_drawn(self):
        out = self.folder / "out.json"
        done = self.compare("--json", out, "--csv", self.folder / "out.csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(out.read_text())
        self.assertEqual([s["name"] for s in result["strategies"]], NAMES)
        for key in ("deadline_hit_rate", "lost_node_hours", "preemptions", "preemption_efficiency", "bounded_slowdown_mean",
                    "useful_utilisation"):
            self.assertIn(key, result["strategies"][0])
        self.assertEqual(result["drawn"]["seed"], 1)
        self.assertEqual(len((self.folder / "out.csv").read_text().splitlines()), 1 + len(NAMES))

    def test_the_same_seed_gives_the_same_table(self):
        self.assertEqual(self.compare("--quiet", "--seed", "7").stdout, self.compare("--quiet", "--seed", "7").stdout)

    def test_the_report_is_one_page_that_loads_nothing(self):
        out, page = self.folder / "out.json", self.folder / "r.html"
        self.compare("--json", out)
        self.assertEqual(self.run_sim("report", out, "--html", page).returncode, 0)
        text = page.read_text()
        self.assertIn("<svg", text)
        for forbidden in ("<script", "src=", "href=", "@import"):
            self.assertNotIn(forbidden, text)

    def test_a_policy_changes_what_siding_does(self):
        policy = self.folder / "p.yaml"
        policy.write_text("max_preemptions: 0\n")
        out = self.folder / "out.json"
        done = self.compare("--strategies", "siding", "--policy", policy, "--json", out)
        self.assertIn("no job may ever be a victim", done.stderr)
        self.assertEqual(json.loads(out.read_text())["strategies"][0]["preemptions"], 0)

    def protect(self, *args):
        out = self.folder / "out.json"
        done = self.compare("--failure-rate", "1000", "--shared-bandwidth", "1e12", "--json", out, *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(out.read_text())

    def test_protection_costs_stops_and_saves_work(self):
        plain, protected = self.protect("--strategies", "siding,siding-protected")["strategies"]
        self.assertEqual(plain["protection_cost_node_hours"], 0)
        self.assertGreater(protected["stop_node_hours"], 0)
        self.assertGreater(protected["fault_node_hours"], 0)
        self.assertLess(protected["failure_node_hours"], plain["failure_node_hours"])

    def test_images_on_nodes_disks_are_more_often_than_their_copies(self):
        shared, local = self.protect("--strategies", "siding-protected,siding-protected-local", "--node-bandwidth", "1e8")["strategies"]
        self.assertEqual(shared["bytes_copied"], 0)
        self.assertGreater(local["bytes_copied"], 0)
        self.assertGreater(local["copy_interval_mean"], local["checkpoint_interval_mean"])

    def test_less_is_lost_if_disks_outlast_failures(self):
        args = ("--strategies", "siding-protected,siding-protected-local", "--node-bandwidth", "1e8")
        lost, kept = self.protect(*args), self.protect(*args, "--disks-lost", "0")
        self.assertEqual([result["drawn"]["disks_lost_share"] for result in (lost, kept)], [1, 0])
        (shared, local), (shared_kept, local_kept) = [[s["failure_node_hours"] for s in r["strategies"]] for r in (lost, kept)]
        self.assertEqual(shared, shared_kept)
        self.assertLess(local_kept, local)

    def test_the_result_says_what_is_tracked(self):
        built, whole = self.protect("--strategies", "siding-protected"), self.protect("--strategies", "siding-protected", "--whole-images")
        self.assertEqual(built["drawn"]["tracked"], "all jobs")
        self.assertEqual(whole["drawn"]["tracked"], "none: each image is whole")
        self.assertGreater(whole["strategies"][0]["stop_node_hours"], built["strategies"][0]["stop_node_hours"])
        self.assertAlmostEqual(whole["strategies"][0]["fault_node_hours"], 0)
        self.assertEqual(whole["drawn"]["image_mean_share"], 1)

    def test_images_have_least_if_the_same_pages_are_written(self):
        args = ("--strategies", "siding-protected", "--written-share", "0.2", "--node-bandwidth", "1e8")
        anywhere, same = self.protect(*args), self.protect(*args, "--same-pages")
        self.assertEqual([result["drawn"]["same_pages"] for result in (anywhere, same)], [False, True])
        self.assertAlmostEqual(same["drawn"]["image_mean_share"], 0.2)
        self.assertGreater(anywhere["drawn"]["image_mean_share"], 0.3)
        self.assertLess(same["strategies"][0]["checkpoint_interval_mean"], anywhere["strategies"][0]["checkpoint_interval_mean"])

    def test_all_strategies_may_be_protected(self):
        for strategy in self.protect("--protect")["strategies"]:
            self.assertGreater(strategy["stop_node_hours"], 0, strategy["name"])

    def test_a_policy_that_protects_makes_two_strategies_the_same(self):
        policy = self.folder / "p.yaml"
        policy.write_text("most_lost_work: 60s\n")
        self.assertIn("siding is the same as siding-protected", self.compare("--quiet", "--policy", policy).stderr)

    def test_efficiency_is_a_row_for_each_density_and_rate(self):
        out = self.folder / "out.json"
        done = self.run_sim("efficiency", "--gpus", "0,8", "--failure-rates", "0.1,1", "--json", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(out.read_text())
        self.assertEqual([(row["gpus"], row["failures_per_node_year"]) for row in result["rows"]],
                         [(0, 0.1), (0, 1), (8, 0.1), (8, 1)])
        for row in result["rows"]:
            whole, changes, beside = [way["efficiency"] for way in row["ways"]]
            self.assertLess(whole, changes)
            self.assertLess(changes, beside)
        for term in result["terms"]:
            self.assertRegex(term["from"], "^(assumed|measured)")
            self.assertIn(term["name"], done.stdout)

    def test_broken_lines_are_counted_and_refused_if_wanted(self):
        self.trace.write_text(trace() + "61 99999 0 many 1\n")
        self.assertIn("1 jobs skipped; the first: line 62: expected 18 numbers", self.compare("--quiet").stderr)
        self.fails(self.compare("--strict"), "line 62: expected 18 numbers")

    def test_usage_errors_are_exit_code_2(self):
        self.assertEqual(self.run_sim().returncode, 2)
        self.assertEqual(self.compare("--sed", "1").returncode, 2)

    def test_a_seed_is_no_negative_number(self):
        done = self.compare("--seed", "-1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("siding-sim: compare: --seed: expected a whole number, 0 or more, got -1", done.stderr)

    def test_bad_input_is_named(self):
        self.fails(self.run_sim("compare", "--trace", self.folder / "none.swf"), "none.swf: cannot be read")
        self.fails(self.compare("--strategies", "best"), "got 'best'")
        self.fails(self.compare("--notice-mix", "soon"), "--notice-mix: expected SECONDS:SHARE")
        self.fails(self.run_sim("compare", "--trace", self.trace, "--on-demand-share", "2"), "on-demand-share: expected 0 to 1")
        self.fails(self.compare("--checkpoint-fraction", "0.9:0.1"), "checkpoint-fraction")
        self.fails(self.compare("--written-share", "nan"), "written-share: expected 0 to 1")
        self.fails(self.compare("--page-fault", "inf"), "page-fault: expected a time")
        self.fails(self.compare("--local-bandwidth", "0"), "local-bandwidth: expected a number, more than 0")
        self.fails(self.compare("--disks-lost", "1.5"), "disks-lost: expected 0 to 1")
        self.fails(self.compare("--node-bandwidth", "inf"), "node-bandwidth: expected a number, more than 0")
        self.fails(self.run_sim("efficiency", "--gpu-drain", "0"), "gpu-drain: expected a number, more than 0")
        nowhere = self.folder / "nowhere" / "out"
        for option in ("--json", "--csv"):
            done = self.compare(option, nowhere)
            self.fails(done, f"{nowhere}: cannot be written")
            self.assertEqual(done.stdout, "")
        self.fails(self.compare("--json", self.folder / "early.json", "--tolerance", "-1"), "tolerance")
        self.assertFalse((self.folder / "early.json").exists())
        self.trace.write_text("; MaxNodes: 16\n")
        self.fails(self.compare(), "there is no job in it")
        self.trace.write_text(trace().replace("; MaxNodes: 16\n", ""))
        self.fails(self.compare(), "expected --nodes")
        policy = self.folder / "p.yaml"
        policy.write_text("confidence: 3\n")
        self.fails(self.compare("--policy", policy), "p.yaml:1: confidence")
        (self.folder / "x.json").write_text("{}")
        self.fails(self.run_sim("report", self.folder / "x.json", "--html", self.folder / "r.html"), "expected what siding-sim")


if __name__ == "__main__":
    unittest.main(verbosity=2)
