"""Slurm's accounting for a private Slurm: a mariadbd and a slurmdbd on loopback, below its folder."""

import os
import shutil
import socket
import subprocess

from cluster import wait_for

PROGRAMS = ("mariadb-install-db", "mariadbd", "mariadb", "slurmdbd", "sacct", "sacctmgr")

SLURMDBD = """\
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={dir}/munge/s
LogFile={dir}/log/slurmdbd.log
PidFile={dir}/pid/slurmdbd
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm
"""
SLURM = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={dir}/munge/s
"""


def missing():
    """The programs that this needs and that are not installed."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


class Accounting:
    """Started before slurmctld and after munged. `slurm` ends the daemons with its own."""

    def __init__(self, slurm, port, database_port):
        self.slurm, self.port, self.database_port = slurm, port, database_port
        self.names = {"host": socket.gethostname().split(".")[0], "dir": slurm.dir, "port": port, "database": database_port}

    def lines(self):
        """Of slurm.conf."""
        return SLURM.format(**self.names)

    def start(self):
        data, path = self.slurm.dir / "database", self.slurm.dir / "database.sock"
        subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=root", "--skip-test-db",
                        "--auth-root-authentication-method=normal"], check=True, stdout=subprocess.DEVNULL)
        self.slurm.spawn("mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={path}", "--user=root",
                         "--bind-address=127.0.0.1", f"--port={self.database_port}", f"--pid-file={self.slurm.dir}/pid/mariadbd.own")
        wait_for("mariadbd", lambda: self._sql(path, "SELECT 1") == 0)
        self._sql(path, "CREATE DATABASE slurm; CREATE USER slurm@'127.0.0.1' IDENTIFIED BY 'slurm'; "
                        "CREATE USER slurm@localhost IDENTIFIED BY 'slurm'; GRANT ALL ON slurm.* TO slurm@'127.0.0.1'; "
                        "GRANT ALL ON slurm.* TO slurm@localhost")
        conf = self.slurm.dir / "etc" / "slurmdbd.conf"
        conf.touch(0o600)
        conf.write_text(SLURMDBD.format(**self.names))
        self.slurm.spawn("slurmdbd", "-D")
        wait_for("slurmdbd", lambda: self._sacctmgr("-n", "show", "cluster") == 0)
        self._sacctmgr("-i", "add", "cluster", "testbed")

    @staticmethod
    def _sql(path, text):
        return subprocess.run(["mariadb", "--no-defaults", f"--socket={path}", "--user=root", "-e", text],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode

    def _sacctmgr(self, *args):
        return subprocess.run(["sacctmgr", *args], env={**os.environ, **self.slurm.env}, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode
