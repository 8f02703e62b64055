"""Looks at what others remove meanwhile: folders, cgroups, processes. What has gone is no error."""

import contextlib
import errno
import glob
import os
import pathlib

# ENODEV: of a file in a cgroup that was removed when the file was open already. ESRCH: of a process that has ended.
GONE = (errno.ENOENT, errno.ENODEV, errno.ESRCH)


@contextlib.contextmanager
def may_be_gone():
    """What is within ends where it meets something that is not there any more."""
    try:
        yield
    except OSError as error:
        if error.errno not in GONE:
            raise


def paths(folder, pattern):
    """What matches below a folder, names that begin with a dot as well, as pathlib's glob finds it; but that fails where a folder
    vanishes while it is read."""
    return [pathlib.Path(path) for path in glob.glob(f"{glob.escape(str(folder))}/{pattern}", recursive=True, include_hidden=True)]


def folders_below(folder):
    """It and all below it, those below before those that hold them; none if it is not there."""
    return [pathlib.Path(below) for below, _, _ in os.walk(folder, topdown=False) if os.path.isdir(below)]


# ---- cgroups ----
def pids_below(group):
    """Of the processes in the cgroup and in all below it."""
    found = set()
    for folder in folders_below(group):
        with may_be_gone():
            found |= {int(pid) for pid in (folder / "cgroup.procs").read_text().split()}
    return found


def thaw_below(group):
    """Who is frozen does not even die."""
    for folder in folders_below(group):
        for name, thawed in (("freezer.state", b"THAWED"), ("cgroup.freeze", b"0")):
            with may_be_gone():
                file = os.open(folder / name, os.O_WRONLY)
                try:
                    os.write(file, thawed)
                finally:
                    os.close(file)


def removed(group):
    """Removes a cgroup; False: some process is in it still, or another one below it."""
    try:
        with may_be_gone():
            group.rmdir()
    except OSError as error:
        if error.errno not in (errno.EBUSY, errno.ENOTEMPTY):
            raise
        return False
    return True


def remove_below(group):
    """Removes a cgroup and all below it; False: some process is in one of them still. Who has ended is not listed any more, but may
    keep its cgroup busy for another moment."""
    return all([removed(folder) for folder in folders_below(group)])
