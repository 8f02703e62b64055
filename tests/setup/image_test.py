#!/usr/bin/python3
"""Images of siding that are made without a daemon: all that the programs need is in them, and the same is made of the same."""

import ast
import json
import os
import pathlib
import re
import subprocess
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy/kubernetes"
BIN = pathlib.Path(os.environ.get("SIDING_BIN", ROOT / "build/dev/bin"))


def make_image(*arguments):
    return subprocess.run([DEPLOY / "make-image", *map(str, arguments)], capture_output=True, text=True)


def blob(tar, descriptor):
    return tar.extractfile(f"blobs/sha256/{descriptor['digest'].removeprefix('sha256:')}")


def unpacked(file, folder):
    """Unpacks the layer of an image; its annotations and its configuration."""
    with tarfile.open(file) as tar:
        entry = json.load(tar.extractfile("index.json"))["manifests"][0]
        manifest = json.load(blob(tar, entry))
        with tarfile.open(fileobj=blob(tar, manifest["layers"][0])) as layer:
            layer.extractall(folder)
        return entry["annotations"], json.load(blob(tar, manifest["config"]))


class Image(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="siding-image-")
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    def made(self, part, *options):
        file = self.dir / f"{part}.tar"
        done = make_image(*options, part, BIN.parent, file)
        self.assertEqual(done.returncode, 0, done.stderr)
        return file

    def run_within(self, folder, *words):
        """With the image as the root, and by the loader that is in it."""
        as_root = () if os.geteuid() == 0 else ("/usr/bin/unshare", "--user", "--map-root-user")
        done = subprocess.run([*as_root, "/usr/sbin/chroot", folder, *words], capture_output=True, text=True, env={})
        return done.returncode, done.stdout, done.stderr

    def test_the_controller_runs_with_nothing_but_what_is_in_its_image(self):
        annotations, config = unpacked(self.made("controller"), self.dir / "root")
        self.assertEqual(self.run_within(self.dir / "root", "/usr/bin/sidingd", "--version"), (0, "sidingd 0.1.0\n", ""))
        self.assertEqual(self.run_within(self.dir / "root", "/usr/bin/sidingctl", "--version"), (0, "sidingctl 0.1.0\n", ""))
        self.assertEqual((config["config"]["User"], config["config"]["Entrypoint"]), ("10001:10001", ["/usr/bin/sidingd"]))
        self.assertEqual(annotations["io.containerd.image.name"].rpartition("/")[2], "siding:0.1.0")

    def test_the_agent_as_well(self):
        unpacked(self.made("agent"), self.dir / "root")
        self.assertEqual(self.run_within(self.dir / "root", "/usr/bin/siding-agent", "--version"), (0, "siding-agent 0.1.0\n", ""))
        # By its own words, and not by those of the loader, it lacks an argument.
        self.assertIn("siding-agent", self.run_within(self.dir / "root", "/usr/bin/siding-gpu-probe")[2])

    def test_what_puts_siding_on_a_node_as_well(self):
        unpacked(self.made("agent"), self.dir / "root")
        self.assertEqual(self.run_within(self.dir / "root", "/usr/bin/siding-on-node", "--version"), (0, "siding-on-node 0.1.0\n", ""))
        # It is no container's runc here, and there is none that it could become.
        self.assertEqual(self.run_within(self.dir / "root", "/usr/bin/siding-runc", "--version"),
                         (127, "", "siding-runc: runc: No such file or directory\n"))

    def test_a_program_of_the_machine_is_put_in_with_its_libraries(self):
        unpacked(self.made("agent", "--with", "/usr/bin/openssl"), self.dir / "root")
        status, said, problem = self.run_within(self.dir / "root", "/usr/bin/openssl", "version")
        self.assertEqual((status, said.split()[0]), (0, "OpenSSL"), problem)

    def test_the_same_is_made_of_the_same(self):
        before = self.made("controller").read_bytes()
        self.assertEqual(self.made("controller").read_bytes(), before)

    def test_each_package_comes_with_its_terms(self):
        unpacked(self.made("controller"), self.dir / "root")
        doc = self.dir / "root/usr/share/doc"
        packages = [line.split()[0] for line in (doc / "siding/packages").read_text().splitlines()]
        self.assertIn("libsqlite3-0", packages)
        self.assertIn("libgrpc-dev", packages)  # is within the programs
        self.assertEqual([name for name in packages if not (doc / name / "copyright").is_file()], [])
        self.assertTrue((doc / "siding/LICENSE").is_file())

    def test_what_is_missing_is_named(self):
        (self.dir / "bin").mkdir()
        done = make_image("controller", self.dir, self.dir / "file")
        self.assertEqual((done.returncode, done.stderr), (1, f"make-image: {self.dir}/bin/sidingd is missing\n"))

    def test_what_is_no_program_is_refused(self):
        (self.dir / "script").write_text("#!/bin/sh\nexit 0\n")
        done = make_image("--with", self.dir / "script", "agent", BIN.parent, self.dir / "file")
        self.assertEqual((done.returncode, done.stderr), (1, f"make-image: {self.dir}/script: expected a program for amd64\n"))

    def test_a_name_without_a_tag_is_refused(self):
        done = make_image("--reference", "siding", "controller", BIN.parent, self.dir / "file")
        self.assertEqual((done.returncode, done.stderr), (1, "make-image: --reference: 'siding'; expected NAME:TAG\n"))


class Dockerfile(unittest.TestCase):
    def packages(self, stage):
        text = (DEPLOY / "Dockerfile").read_text()
        block = re.search(rf"(?s)AS {stage}\n.*?--no-install-recommends(.*?)&&", text)[1]
        return set(block.replace("\\", " ").split())

    def copied(self, stage):
        """Names of the programs."""
        return re.findall(r"release/bin/(\S+)", (DEPLOY / "Dockerfile").read_text().partition(f"AS {stage}\n")[2].partition("ENTRYPOINT")[0])

    def linked(self, programs):
        """Debian's packages of the libraries that the programs name themselves."""
        found = set()
        for program in programs:
            named = re.findall(r"NEEDED +(\S+)", subprocess.run(["objdump", "-p", BIN / program], capture_output=True, text=True,
                                                                check=True).stdout)
            listed = subprocess.run(["ldd", BIN / program], capture_output=True, text=True).stdout
            places = dict(re.findall(r"(\S+) => (\S+)", listed))
            for name in named:
                if name in places:
                    path = str(pathlib.Path(places[name]).resolve())
                    owner = subprocess.run(["dpkg-query", "-S", path, path.removeprefix("/usr")], capture_output=True, text=True).stdout
                    found.add(owner.split(":")[0])
        return found - {"libc6", "libgcc-s1", "libstdc++6"}  # in the image that both start from

    def test_the_controllers_packages_are_those_that_its_programs_are_linked_to(self):
        self.assertEqual(self.packages("controller"), self.linked(self.copied("controller")))

    def test_the_page_is_in_the_controller(self):
        self.assertEqual(self.packages("build"), {"nodejs", "npm"})
        self.assertIn("cmake --preset release -DSIDING_PAGE=ON", (DEPLOY / "Dockerfile").read_text())

    def of_make_image(self, name):
        [text] = re.findall(rf"(?s)^{name} = ([{{(].*?[)}}])$", (DEPLOY / "make-image").read_text(), re.M)
        return ast.literal_eval(text)

    def test_it_copies_the_programs_that_make_image_does(self):
        self.assertEqual({part: tuple(self.copied(part)) for part in ("controller", "agent")}, self.of_make_image("PROGRAMS"))

    def test_it_has_the_terms_of_the_same_packages_within_the_programs(self):
        block = re.search(r"(?s)cp --parents(.*?)/source/terms/", (DEPLOY / "Dockerfile").read_text())[1]
        self.assertEqual(re.findall(r"(\S+)/copyright", block), list(self.of_make_image("WITHIN")))

    def test_the_agents_packages_are_those_that_its_programs_are_linked_to(self):
        self.assertEqual(self.packages("agent"), self.linked(self.copied("agent")))


if __name__ == "__main__":
    unittest.main(verbosity=2)
