#!/usr/bin/python3
"""Links lead somewhere, pages that are named exist, and the index of docs names every page."""

import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
LINK = re.compile(r"\[[^\]]*\]\(([^)\s#]*)(?:#([^)\s]*))?\)")
NAMED = re.compile(r"(?<![\w/.-])docs/[\w./-]+\.md")


def tracked(*patterns):
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns], cwd=ROOT,
                            capture_output=True, text=True, check=True).stdout
    return [path for path in map(ROOT.joinpath, listed.splitlines()) if path.is_file()]


def without_code(text):
    return re.sub(r"(?ms)^```.*?^```|^    .*?$", "", text)


def anchors(page):
    """What GitHub makes of the page's headings."""
    found = set()
    for heading in re.findall(r"(?m)^#+ (.*)$", re.sub(r"(?ms)^```.*?^```", "", page.read_text())):
        found.add(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-"))
    return found


class Docs(unittest.TestCase):
    maxDiff = None

    def test_every_link_leads_somewhere(self):
        wrong = []
        for page in tracked("*.md"):
            for name, anchor in LINK.findall(without_code(page.read_text())):
                if "://" in name:
                    continue
                target = (page.parent / name).resolve() if name else page
                if not target.exists():
                    wrong.append(f"{page.relative_to(ROOT)}: {name} does not exist")
                elif anchor and anchor not in anchors(target):
                    wrong.append(f"{page.relative_to(ROOT)}: {name} has no heading #{anchor}")
        self.assertEqual(wrong, [])

    def test_every_page_that_is_named_exists(self):
        wrong = []
        for path in tracked():
            try:
                text = path.read_text()
            except UnicodeDecodeError:
                continue
            wrong += [f"{path.relative_to(ROOT)}: {name}" for name in NAMED.findall(text)
                      if not name.endswith("/NAME.md") and not (ROOT / name).is_file()]
        self.assertEqual(wrong, [])

    def test_each_kind_of_kernel_state_has_a_row_and_a_test(self):
        page = (DOCS / "admin/checkpoints.md").read_text()
        table = page[page.index("## What the kernel keeps"):].split("\n## ")[0]
        rows = set(re.findall(r"`([a-z0-9_]+)`", " ".join(row.split("|")[2] for row in table.splitlines()
                                                          if row.startswith("| "))))
        tests = re.sub(r"(?s)//[^\n]*", "", (ROOT / "agent/node/state_test.cc").read_text())
        suites = tests[tests.index("INSTANTIATE_TEST_SUITE_P"):]
        made = set(re.findall(r'\{"(\w+)", \w+\}', (ROOT / "agent/node/state_job.c").read_text()))
        self.assertEqual(rows, made)
        self.assertEqual({state for state in made if f'"{state}"' not in suites}, set())

    def test_every_page_is_in_the_index(self):
        index = DOCS / "README.md"
        named = {(DOCS / name).resolve() for name, _ in LINK.findall(index.read_text())}
        missing = [str(page.relative_to(DOCS)) for page in sorted(DOCS.rglob("*.md")) if page != index and page not in named]
        self.assertEqual(missing, [])


if __name__ == "__main__":
    unittest.main()
