#!/usr/bin/python3
"""Where deploy/get-criu would fetch criu's source from, for the forms that a machine's apt sources can have, and what it says of a criu
that it would replace."""

import os
import pathlib
import subprocess
import tempfile
import unittest

GET_CRIU = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "get-criu"


def sources(files):
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "sources.list.d").mkdir()
        for name, text in files.items():
            (pathlib.Path(folder) / name).write_bytes(text.encode())
        return subprocess.run([GET_CRIU, "--sources", "sid"], check=True, capture_output=True, text=True,
                              env={**os.environ, "SIDING_APT_ETC": folder}).stdout


class Sources(unittest.TestCase):
    def test_a_classic_line(self):
        self.assertEqual(sources({"sources.list": "# mine\ndeb http://a.example/debian bookworm main contrib\n"}),
                         "deb-src http://a.example/debian sid main\n")

    def test_options_are_kept(self):
        line = "deb [arch=amd64 signed-by=/usr/share/keyrings/x.gpg] https://a.example/debian bookworm main\n"
        self.assertEqual(sources({"sources.list": line}),
                         "deb-src [arch=amd64 signed-by=/usr/share/keyrings/x.gpg] https://a.example/debian sid main\n")

    def test_dos_line_ends(self):
        self.assertEqual(sources({"sources.list": "deb http://a.example/debian bookworm main\r\n"}),
                         "deb-src http://a.example/debian sid main\n")

    def test_a_disc_is_passed_over(self):
        text = "deb cdrom:[Debian 12 _Bookworm_]/ bookworm main\ndeb http://a.example/debian bookworm main\n"
        self.assertEqual(sources({"sources.list": text}), "deb-src http://a.example/debian sid main\n")

    def test_a_list_of_its_own(self):
        self.assertEqual(sources({"sources.list.d/debian.list": "deb http://a.example/debian bookworm main\n"}),
                         "deb-src http://a.example/debian sid main\n")

    def test_deb822(self):
        text = ("# ours\r\n\r\nTypes: deb\r\nURIs: http://a.example/debian\r\nSuites: bookworm bookworm-updates\r\n"
                "Components: main\r\nSigned-By: /usr/share/keyrings/x.gpg\r\n\r\nTypes: deb\r\n"
                "URIs: http://b.example/security\r\nSuites: bookworm-security\r\nComponents: main\r\n")
        self.assertEqual(sources({"sources.list.d/debian.sources": text}).strip(),
                         "Types: deb-src\nURIs: http://a.example/debian\nSuites: sid\nComponents: main\n"
                         "Signed-By: /usr/share/keyrings/x.gpg")


class Another(unittest.TestCase):
    """A criu that works, where another cannot be built."""

    def said_of(self, text):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for program, script in (("criu", f"#!/bin/sh\nexit 0\n{text}\n"), ("id", "#!/bin/sh\necho 1000\n")):
                (folder / program).write_text(script)
                (folder / program).chmod(0o755)
            done = subprocess.run([GET_CRIU], check=True, capture_output=True, text=True,
                                  env={**os.environ, "SIDING_CRIU": "", "SIDING_CRIU_PREFIX": name,
                                       "PATH": f"{name}:{os.environ['PATH']}"})
            self.assertEqual(done.stdout, f"{folder}/criu\n")
            return done.stderr

    def test_one_that_acts_as_root(self):
        self.assertIn("criu works, but acts on files as root", self.said_of("# criu"))

    def test_one_with_an_earlier_version_of_the_changes(self):
        self.assertIn("criu works, but was built for another version of siding", self.said_of("# files-as-user-3"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
