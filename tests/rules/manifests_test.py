#!/usr/bin/python3
"""What can be known of the manifests for Kubernetes without a cluster and without Go."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy/kubernetes"
BIN = pathlib.Path(os.environ.get("SIDING_BIN", ROOT / "build/dev/bin"))
RIGHTS = ROOT / "controller/platform/kubernetes/client/rights.cc"
sys.path.append(str(ROOT / "tests/kubernetes"))
import renderer  # noqa: E402


def objects(name):
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


def one(name, kind, of="siding"):
    [found] = [o for o in objects(name) if o["kind"] == kind and o["metadata"]["name"] == of]
    return found


def granted(name):
    """(verb, resource with subresource, whether in siding's namespace alone) of each rule."""
    roles = (("ClusterRole", "siding"), ("ClusterRole", "siding-requests"), ("Role", "siding"))
    return {(verb, resource, kind == "Role") for kind, of in roles for rule in one(name, kind, of)["rules"]
            for resource in rule["resources"] for verb in rule["verbs"]}


def asked():
    """The same of what sidingd asks for when it starts."""
    rows = re.findall(r'\{"(\w+)", "(\w+)", "(\w*)", (true|false)(?:, "[\w.]+")?\}', RIGHTS.read_text())
    assert rows, RIGHTS
    return {(verb, f"{resource}/{part}" if part else resource, own == "true") for verb, resource, part, own in rows}


class Plain(unittest.TestCase):
    def test_they_are_of_the_chart_that_is_here(self):
        for name in ("siding.yaml", "rbac.yaml"):
            self.assertIn(f"with the digest {renderer.digest()}.", (DEPLOY / name).read_text(), "run tests/kubernetes/render")

    def test_each_right_is_asked_for_and_each_that_is_asked_for_is_given(self):
        for name in ("siding.yaml", "rbac.yaml"):
            self.assertEqual(granted(name), asked(), name)

    def test_no_rule_says_all(self):
        for name in ("siding.yaml", "rbac.yaml"):
            self.assertNotIn('"*"', (DEPLOY / name).read_text(), name)

    def test_each_rule_says_why(self):
        text = (DEPLOY / "rbac.yaml").read_text()
        self.assertEqual(len(re.findall(r"(?m)^  # .*\n  - apiGroups:", text)), text.count("- apiGroups:"))

    def test_sidingd_takes_its_files(self):
        with tempfile.TemporaryDirectory() as folder:
            policy = pathlib.Path(folder) / "policy.yaml"
            policy.write_text(one("siding.yaml", "ConfigMap", "siding-policy")["data"]["policy.yaml"])
            config = pathlib.Path(folder) / "sidingd.yaml"
            config.write_text(one("siding.yaml", "ConfigMap", "siding-config")["data"]["sidingd.yaml"]
                              .replace("/etc/siding/policy/policy.yaml", str(policy)))
            done = subprocess.run([BIN / "sidingd", "--config", config, "--check-config"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "configuration and policy are good\n"), done.stderr)

    def test_who_runs_sidingctl_in_the_container_is_an_operator(self):
        [account] = re.findall(r'"passwd": .*\\n(\w+):x:10001:', (DEPLOY / "make-image").read_text())
        self.assertIn(account, yaml.safe_load(one("siding.yaml", "ConfigMap", "siding-policy")["data"]["policy.yaml"])["operators"])


class Chart(unittest.TestCase):
    def shape(self, value):
        """Names of fields, as deep as they are the chart's own."""
        return {name: self.shape(inside) for name, inside in value.items()} if isinstance(value, dict) else None

    def fields(self, schema):
        return {name: self.fields(inside) for name, inside in schema["properties"].items()} if "properties" in schema else None

    def test_the_schema_has_each_value_and_no_other(self):
        schema = self.fields(json.loads((renderer.CHART / "values.schema.json").read_text()))
        del schema["global"]
        values = self.shape(yaml.safe_load((renderer.CHART / "values.yaml").read_text()))

        def compare(known, given, path):
            self.assertEqual(sorted(known), sorted(given), path)
            for name, inside in known.items():
                if inside:  # else it is passed on as it is
                    compare(inside, given[name], f"{path}.{name}")
        compare(schema, values, "values")

    def test_the_chart_has_the_programs_version(self):
        [version] = re.findall(r"project\(siding VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())
        about = yaml.safe_load((renderer.CHART / "Chart.yaml").read_text())
        self.assertEqual((about["version"], about["appVersion"]), (version, version))


if __name__ == "__main__":
    unittest.main()
