#!/usr/bin/python3
"""bench/results writes a run into a page of docs/results, and nothing else."""

import importlib.machinery
import importlib.util
import pathlib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
loader = importlib.machinery.SourceFileLoader("results", str(ROOT / "bench" / "results"))
results = importlib.util.module_from_spec(importlib.util.spec_from_loader("results", loader))
loader.exec_module(results)

PAGE = """# A page

```
$ bench 15
of before
1 ms
```

Text.

```
$ bench 150
of before
2 ms
```
"""


class Results(unittest.TestCase):
    def test_a_run_takes_the_place_of_the_one_before(self):
        self.assertEqual(results.with_run(PAGE, "bench 15", "now", "3 \\1 ms\n"), PAGE.replace("of before\n1 ms", "now\n3 \\1 ms"))

    def test_another_command_is_added(self):
        self.assertEqual(results.with_run(PAGE, "bench 1", "now", "3 ms\n"), PAGE + "\n```\n$ bench 1\nnow\n3 ms\n```\n")

    def test_pages_have_commands_with_their_facts(self):
        for page in sorted((ROOT / "docs" / "results").glob("*.md")):
            with self.subTest(page.name):
                text = page.read_text()
                self.assertRegex(text, r"(?m)^```\n\$ ")
                self.assertEqual([], [block for block in text.split("```\n")[1::2] if block.startswith("$ ") and "commit " not in block.splitlines()[1]])


if __name__ == "__main__":
    unittest.main()
