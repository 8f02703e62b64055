"""Programs that make one call each of a client of siding's: they print JSON, or the error's code and message."""

import json
import subprocess

from cluster import PATIENCE


class ClientError(Exception):
    """The client's error: its code and message."""


class ClientTest:
    """For a TestCase, whose client() calls answer_of()."""

    @staticmethod
    def answer_of(program, *words, **how):
        done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=PATIENCE, **how)
        if done.returncode != 0:
            raise ClientError(done.stderr.strip())
        return json.loads(done.stdout) if done.stdout else None

    def refused(self, code, *words, **how):
        with self.assertRaises(ClientError) as caught:
            self.client(*words, **how)
        self.assertTrue(str(caught.exception).startswith(code), caught.exception)
        return str(caught.exception)
