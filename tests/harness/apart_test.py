#!/usr/bin/python3
"""Two tests at once do not meet, and nothing stays behind."""

import os
import pathlib
import subprocess
import sys
import unittest

from cluster import PATIENCE, start_time

APART = pathlib.Path(__file__).resolve().parent / "apart.py"
GROUPS = ("/sys/fs/cgroup/freezer", "/sys/fs/cgroup/unified", "/sys/fs/cgroup")


def apart(script):
    return subprocess.run([sys.executable, APART, "sh", "-c", script], capture_output=True, text=True, timeout=PATIENCE)


@unittest.skipUnless(os.geteuid() == 0, "needs root")
class Apart(unittest.TestCase):
    def start(self, script):
        child = subprocess.Popen([sys.executable, APART, "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.communicate)
        return child

    def test_two_have_the_same_names_and_ports_at_once(self):
        listen = ("import glob, pathlib, socket, sys; s = socket.socket(); s.bind(('127.0.0.1', 9000)); s.listen(); "
                  "pathlib.Path('/tmp/siding-1').mkdir(); pathlib.Path('/dev/shm/siding-1').touch(); "
                  "[pathlib.Path(g, 'siding-1').mkdir() for g in glob.glob('/sys/fs/cgroup/*') if pathlib.Path(g, 'cgroup.procs').exists() "
                  "and g.rsplit('/', 1)[1] in ('freezer', 'memory', 'pids', 'devices', 'unified')]; print('ready', flush=True); sys.stdin.read()")
        for child in [self.start(f'exec {sys.executable} -c "{listen}"') for _ in range(2)]:
            self.assertEqual(child.stdout.readline(), "ready\n")

    def test_its_exit_status_is_the_test_s(self):
        self.assertEqual(apart("exit 7").returncode, 7)
        self.assertEqual(apart("kill -9 $$").returncode, 137)

    def test_what_a_test_leaves_behind_is_killed_and_named(self):
        done = apart("setsid sleep 1000 > /dev/null 2>&1 & until grep -q sleep /proc/$!/comm; do :; done; echo $!")
        self.assertIn(f"killed sleep ({done.stdout.strip()})", done.stderr)
        self.assertIsNone(start_time(done.stdout.strip()))

    def test_no_folder_stays_behind(self):
        def seen():
            return {str(p) for g in (*GROUPS, "/var/tmp") if os.path.isdir(g) for p in pathlib.Path(g).glob("siding-test-*")}
        child = self.start("echo; read line")
        child.stdout.readline()
        mine = {p for p in seen() if p.endswith(f"-{child.pid}")}
        self.assertTrue(mine)
        child.communicate("\n")
        self.assertFalse(mine & seen())

    def test_a_build_below_tmp_is_seen(self):
        self.assertEqual(apart(f"test -x {APART}").returncode, 0)


if __name__ == "__main__":
    unittest.main()
