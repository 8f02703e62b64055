"""Runs ctest, and reads what came of each test."""

import dataclasses
import json
import pathlib
import subprocess
import tempfile
import xml.etree.ElementTree

WHOLE = str(1 << 30)  # bytes of a test's output that are kept; ctest cuts it otherwise


@dataclasses.dataclass(frozen=True)
class Outcome:
    name: str
    state: str  # "passed", "failed" or "skipped"
    seconds: float
    output: str


def labelled(build, label):
    """The names of all tests with the label."""
    said = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True).stdout
    return {test["name"] for test in json.loads(said)["tests"]
            if any(label in p["value"] for p in test.get("properties", []) if p["name"] == "LABELS")}


def run(build, *words, quiet=False):
    """What came of each test, in the order of their ends. RuntimeError: ctest could not run them."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.xml")
        done = subprocess.run(["ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error", "--test-output-size-failed", WHOLE,
                               "--output-junit", report, *map(str, words)], stdout=subprocess.DEVNULL if quiet else None)
        text = report.read_bytes() if report.exists() else b""
    outcomes = [_outcome(case) for case in xml.etree.ElementTree.fromstring(text).iter("testcase")] if text else []
    if not outcomes or (done.returncode != 0 and not any(o.state == "failed" for o in outcomes)):
        raise RuntimeError(f"ctest ended with {done.returncode}, and no test failed")
    return outcomes


def _outcome(case):
    why = case.find("skipped")  # also of what could not be started
    skipped = case.get("status") == "disabled" or (why is not None and why.get("message", "").startswith("SKIP_"))
    state = "skipped" if skipped else "passed" if case.get("status") == "run" else "failed"
    return Outcome(case.get("name"), state, float(case.get("time") or 0), case.findtext("system-out") or "")
