"""An OCI image of one static program, made without a daemon."""

import hashlib
import io
import json
import pathlib
import subprocess
import tarfile
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[1] / "kubernetes/pod.c"
OCI = "application/vnd.oci.image"


def _archive(files):
    """A tar of {name: (mode, contents)} whose bytes depend on nothing else. Contents None: a folder."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, (mode, contents) in files.items():
            entry = tarfile.TarInfo(name)
            entry.mode = mode
            if contents is None:
                entry.type = tarfile.DIRTYPE
            else:
                entry.size = len(contents)
            tar.addfile(entry, io.BytesIO(contents or b""))
    return made.getvalue()


def _compiled():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["gcc", "-static", "-Os", "-s", "-o", f"{folder}/pod", SOURCE], check=True)
        return (pathlib.Path(folder) / "pod").read_bytes()


def write_image(file, reference, program):
    """Writes the image, which runs pod.c under the name `program`."""
    blobs = {}

    def blob(kind, data):
        if not isinstance(data, bytes):
            data = json.dumps(data).encode()
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = (0o644, data)
        return {"mediaType": f"{OCI}.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    layer = blob("layer.v1.tar", _archive({
        **{name: (0o755, None) for name in ("proc", "sys", "dev", "etc")}, "tmp": (0o1777, None),
        "etc/passwd": (0o644, b"root:x:0:0::/:/bin/false\n"), program: (0o755, _compiled())}))
    config = blob("config.v1+json", {"architecture": "amd64", "os": "linux", "config": {"Entrypoint": [f"/{program}"], "Env": ["PATH=/"]},
                                     "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}})
    manifest = blob("manifest.v1+json", {"schemaVersion": 2, "mediaType": f"{OCI}.manifest.v1+json", "config": config, "layers": [layer]})
    manifest["annotations"] = {"io.containerd.image.name": reference}
    index = {"schemaVersion": 2, "manifests": [manifest]}
    file.write_bytes(_archive({"oci-layout": (0o644, b'{"imageLayoutVersion":"1.0.0"}'), "index.json": (0o644, json.dumps(index).encode()),
                               **blobs}))
