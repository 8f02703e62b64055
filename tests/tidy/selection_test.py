#!/usr/bin/python3
"""Which sources `./run tidy` looks at."""

import pathlib
import subprocess
import tempfile
import unittest

import selection

INCLUDED = {
    "store/disk.h": set(),
    "store/disk.cc": {"store/disk.h"},
    "store/layout.h": {"store/disk.h"},
    "store/layout_test.cc": {"store/layout.h"},
    "common/ids.h": set(),
    "model/job.h": {"common/ids.h"},
    "model/a.cc": {"model/job.h"},
    "model/b.cc": {"model/job.h"},
    "agent/x.cc": {"common/ids.h"},
    "cuda/lone.h": set(),
}
SOURCES = {name for name in INCLUDED if name.endswith(".cc")}


def of_change(*changes):
    return selection.of_change(set(changes), SOURCES, INCLUDED)


class OfAChange(unittest.TestCase):
    def test_a_source_that_changed(self):
        self.assertEqual(of_change("model/b.cc"), {"model/b.cc"})

    def test_what_is_not_compiled_is_left_out(self):
        self.assertEqual(of_change("docs/README.md", "gpu/probe.cu", "cuda/lone.h"), set())

    def test_a_header_brings_its_own_source(self):
        self.assertEqual(of_change("store/disk.h"), {"store/disk.cc"})

    def test_a_header_without_one_brings_its_test(self):
        self.assertEqual(of_change("store/layout.h"), {"store/layout_test.cc"})

    def test_otherwise_one_that_includes_it_and_no_more(self):
        self.assertEqual(of_change("model/job.h"), {"model/a.cc"})
        self.assertEqual(of_change("common/ids.h"), {"agent/x.cc"})

    def test_otherwise_one_that_includes_it_through_another_header(self):
        included = {name: of for name, of in INCLUDED.items() if name != "agent/x.cc"}
        self.assertEqual(selection.of_change({"common/ids.h"}, SOURCES - {"agent/x.cc"}, included), {"model/a.cc"})

    def test_headers_that_include_each_other_end(self):
        self.assertIsNone(selection.includer("a.h", set(), {"a.h": {"b.h"}, "b.h": {"a.h"}}))


class Share(unittest.TestCase):
    def test_every_source_has_its_turn_once(self):
        parts = [selection.share(SOURCES, n, 3) for n in range(3)]
        self.assertEqual(set.union(*parts), {"store/disk.cc", "model/a.cc", "model/b.cc", "agent/x.cc"})
        self.assertEqual(sum(map(len, parts)), 4)

    def test_tests_have_none(self):
        self.assertEqual(selection.share({"store/layout_test.cc", "tests/fuzz/draw.cc"}, 0, 1), set())

    def test_the_turns_begin_again(self):
        self.assertEqual(selection.share(SOURCES, 4, 3), selection.share(SOURCES, 1, 3))

    def test_it_is_the_same_whatever_is_beside(self):
        for n in range(3):
            self.assertEqual(selection.share(SOURCES | {"new.cc"}, n, 3) - {"new.cc"}, selection.share(SOURCES, n, 3))

    def test_numbers(self):
        self.assertEqual(selection.numbers("17/16"), (17, 16))
        for bad in ("1", "1/0", "-1/2", "a/b", ""):
            with self.assertRaisesRegex(ValueError, "expected N/M"):
                selection.numbers(bad)


class Changed(unittest.TestCase):
    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments], cwd=self.root, check=True,
                       capture_output=True)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.git("init", "-b", "main")
        for name in ("kept.cc", "gone.cc", "committed.cc", "edited.cc", "mains.cc"):
            (self.root / name).write_text(f"// {name}\n")
        self.git("add", ".")
        self.git("commit", "-m", "one")

    def test_since_the_branch_left_main_committed_or_not(self):
        self.git("checkout", "-b", "branch")
        (self.root / "committed.cc").write_text("//\n")
        self.git("commit", "-am", "two")
        self.git("checkout", "main")
        (self.root / "mains.cc").write_text("//\n")
        self.git("commit", "-am", "three")
        self.git("checkout", "branch")
        (self.root / "edited.cc").write_text("//\n")
        (self.root / "new file.cc").write_text("//\n")
        (self.root / "gone.cc").unlink()
        self.assertEqual(selection.changed(self.root), {"committed.cc", "edited.cc", "new file.cc"})

    def test_without_main_it_says_so(self):
        self.git("branch", "-m", "other")
        with self.assertRaisesRegex(RuntimeError, "main"):
            selection.changed(self.root)


class Commands(unittest.TestCase):
    def test_what_only_gcc_understands_is_left_out(self):
        arguments = ["c++", "-Ix", "-Wno-error=restrict", "-fpch-preprocess", "-Winvalid-pch", "-include", "/b/pch.hxx", "-c", "a.cc"]
        self.assertEqual(selection.for_clang(arguments), ["c++", "-Ix", "-c", "a.cc", "-Wthread-safety"])

    def test_what_the_build_has_made_is_not_ours(self):
        root = pathlib.Path("/r")
        entries = [{"directory": "/r/build/dev", "file": file, "arguments": ["c++", file], "build": "/r/build/dev"}
                   for file in ("/r/store/a.cc", "/r/build/dev/x.pb.cc", "/usr/src/gtest.cc")]
        self.assertEqual(set(selection.compiled(entries, root)), {"store/a.cc"})


if __name__ == "__main__":
    unittest.main()
