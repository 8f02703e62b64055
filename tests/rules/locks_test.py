#!/usr/bin/python3
"""What is guarded by a lock says so, and clang checks it: our builds with clang find code that breaks the rule, and no
source has a mutex that the analysis does not know."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

SOURCE = """
#include <chrono>
#include "common/mutex.h"
class Counter {
 public:
  void Add() {
    siding::MutexLock lock(mutex_);
    Set(count_ + 1);
    lock.Unlock();
    changed_.NotifyAll();
    lock.Lock();
    count_ = 0;
  }
  bool Await() {
    siding::MutexLock lock(mutex_);
    return changed_.WaitFor(mutex_, std::chrono::seconds(1),
                            [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return count_ > 0; });
  }
  %s
 private:
  void Set(int count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { count_ = count; }
  siding::Mutex mutex_;
  siding::CondVar changed_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};
void Use(Counter& counter) { counter.Add(); }
"""
MISTAKES = {
    "read": "int Get() { return count_; }",
    "written_after_unlock": "void Clear() { siding::MutexLock lock(mutex_); lock.Unlock(); count_ = 0; }",
    "called": "void Reset() { Set(0); }",
    "waited": "void Pause() { changed_.WaitFor(mutex_, std::chrono::seconds(1)); }",
    "condition": "void Wait() { siding::MutexLock lock(mutex_); changed_.Wait(mutex_, [this] { return count_ > 0; }); }",
    "taken_twice": "void Twice() { siding::MutexLock lock(mutex_); siding::MutexLock again(mutex_); }",
    "never_released": "void Keep() { mutex_.Lock(); }",
}
# With the flags that every target of ours has.
PROJECT = f"""
cmake_minimum_required(VERSION 3.25)
project(locks CXX)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
include({ROOT}/cmake/SidingTargets.cmake)
target_include_directories(siding_settings INTERFACE {ROOT})
foreach(source {' '.join(['good', *MISTAKES])})
  add_library(${{source}} OBJECT ${{source}}.cc)
  target_link_libraries(${{source}} siding_settings)
endforeach()
"""
UNKNOWN = re.compile(r"\bstd::(\w*mutex|condition_variable\w*|lock_guard|unique_lock|scoped_lock|shared_lock)\b|\babsl::Mutex\b")
MAY = {"common/mutex.h"}


@unittest.skipIf(shutil.which("clang++") is None, "there is no clang++ here: only builds with clang check locks")
class Analysis(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        (cls.folder / "CMakeLists.txt").write_text(PROJECT)
        for name, mistake in {"good": "", **MISTAKES}.items():
            (cls.folder / f"{name}.cc").write_text(SOURCE % mistake)
        subprocess.run(["cmake", "-G", "Ninja", "-S", cls.folder, "-B", cls.folder / "build", "-DCMAKE_CXX_COMPILER=clang++",
                        "-DCMAKE_COMPILE_WARNING_AS_ERROR=ON"], check=True, capture_output=True)

    def build(self, name):
        return subprocess.run(["cmake", "--build", self.folder / "build", "--target", name], capture_output=True, text=True)

    def test_what_keeps_the_rule_compiles(self):
        done = self.build("good")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_what_breaks_it_does_not(self):
        for name in MISTAKES:
            with self.subTest(mistake=name):
                done = self.build(name)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("-Wthread-safety", done.stdout)


class Sources(unittest.TestCase):
    def test_every_mutex_is_known_to_the_analysis(self):
        names = subprocess.run(["git", "ls-files", "*.h", "*.cc"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
        self.assertGreater(len(names), 20)
        found = [f"{name}: {use.group(0)}" for name in names if name not in MAY
                 for line in (ROOT / name).read_text().splitlines()
                 if (use := UNKNOWN.search(line.split("//")[0]))]
        self.assertEqual(found, [], "use common/mutex.h")


if __name__ == "__main__":
    unittest.main()
