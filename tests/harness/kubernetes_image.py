"""OCI images for test pods: of one static program, and of programs of this machine with what they need."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "deploy/kubernetes"))
import oci  # noqa: E402

BASE = {**{name: (0o755, None) for name in ("proc", "sys", "dev", "etc")}, "tmp": (0o1777, None),
        "etc/passwd": (0o644, b"root:x:0:0::/:/bin/false\n")}
PYTHON = pathlib.Path("/usr/lib/python3.11")
NUMPY = pathlib.Path("/usr/lib/python3/dist-packages/numpy")
# What no pod imports.
LEFT_OUT = re.compile(r"/(test|tests|idlelib|lib2to3|ensurepip|pydoc_data|config-[^/]*)(/|$)|\.a$|\.pyc$")


def _compiled():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["gcc", "-static", "-Os", "-s", "-o", f"{folder}/pod", ROOT / "tests/kubernetes/pod.c"], check=True)
        return (pathlib.Path(folder) / "pod").read_bytes()


def write_image(file, reference, program):
    """Writes the image, which runs pod.c under the name `program`."""
    oci.write_image(file, reference, {**BASE, program: (0o755, _compiled())}, {"Entrypoint": [f"/{program}"], "Env": ["PATH=/"]})


def _needed(program, libraries=""):
    """The libraries of a program, and what loads them. `libraries`: a folder where some of them are."""
    said = subprocess.run(["ldd", program], check=True, capture_output=True, text=True, env={**os.environ, "LD_LIBRARY_PATH": str(libraries)})
    return re.findall(r"(?:=> )?(/\S+) \(0x", said.stdout)


def _tree(top):
    return [path for path in top.rglob("*") if path.is_file() and not LEFT_OUT.search(str(path))]


def write_tools_image(file, reference):
    """Writes an image that has bash, python3 and numpy of this machine's packages."""
    programs = {path: pathlib.Path(path) for path in ("/usr/bin/python3.11", "/usr/bin/bash", "/usr/bin/sleep", "/usr/bin/cat")}
    files = {**programs, "/usr/bin/python3": programs["/usr/bin/python3.11"], "/bin/sh": programs["/usr/bin/bash"]}
    files.update({str(path): path for top in (PYTHON, NUMPY) for path in _tree(top)})
    modules = [path for path in files.values() if path.suffix == ".so"]
    files.update({name: pathlib.Path(name) for path in (*programs.values(), *modules) for name in _needed(path)})
    contents = dict(BASE)
    for name, path in sorted(files.items()):
        contents[name.lstrip("/")] = (0o755, path.resolve().read_bytes())
    oci.write_image(file, reference, contents, {"Entrypoint": ["/usr/bin/python3"], "Env": ["PATH=/usr/bin:/bin", "HOME=/tmp"]})


def write_redis_image(file, reference, folder):
    """Writes an image that runs the server in this folder, which has libraries of its."""
    contents = dict(BASE)
    for path in map(pathlib.Path, _needed(folder / "redis-server", folder)):
        name = f"usr/lib/{path.name}" if path.parent == folder else str(path).lstrip("/")
        contents[name] = (0o755, path.resolve().read_bytes())
    contents["redis-server"] = (0o755, (folder / "redis-server").read_bytes())
    oci.write_image(file, reference, contents, {"Entrypoint": ["/redis-server"], "Env": ["PATH=/"], "WorkingDir": "/tmp"})
