"""Certificates for a test's programs."""

import json
import subprocess

from cluster import BIN, CtlError


def run(*argv, **options):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, **options)


class Authority:
    """A folder of `sidingctl certs`."""

    def __init__(self, folder):
        self.dir = folder
        self.make("init", folder)

    def make(self, *args):
        """Makes a certificate; what sidingctl says of it."""
        where = () if args[0] == "init" else ("--folder", self.dir)
        done = run(BIN / "sidingctl", "--json", "certs", *args, *where)
        if done.returncode != 0:
            raise CtlError(done.returncode, done.stderr.strip())
        return json.loads(done.stdout)

    @property
    def ca(self):
        return self.dir / "ca.pem"

    @property
    def revoked(self):
        return self.dir / "revoked.pem"

    def files(self, kind, name):
        """[certificate, key], made when they are first asked for."""
        found = [self.dir / f"{kind}-{name}.pem", self.dir / f"{kind}-{name}.key"]
        if not found[0].exists():
            self.make(kind, name)
        return found

    def flags(self, kind, name):
        certificate, key = self.files(kind, name)
        return ("--ca", self.ca, "--certificate", certificate, "--key", key)
