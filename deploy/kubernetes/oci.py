"""An OCI image in one tar file, made without a daemon. Its bytes depend on what is put in and on nothing else: no times, no names of
the machine, and files in their order."""

import hashlib
import io
import json
import tarfile

OCI = "application/vnd.oci.image"


class Link(str):
    """Where a symbolic link leads, in the place of a file's contents."""


def archive(files):
    """A tar of {name: (mode, contents)}. Contents None: a folder."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, (mode, contents) in files.items():
            entry = tarfile.TarInfo(name)
            entry.mode = mode
            if contents is None:
                entry.type = tarfile.DIRTYPE
            elif isinstance(contents, Link):
                entry.type, entry.linkname = tarfile.SYMTYPE, contents
            else:
                entry.size = len(contents)
            tar.addfile(entry, io.BytesIO(contents) if isinstance(contents, bytes) else None)
    return made.getvalue()


def write_image(file, reference, files, config):
    """Writes an image of one layer for amd64. `reference`: the whole name by which a runtime is to know it; `config`: what runs, and
    as whom."""
    blobs = {}

    def blob(kind, data):
        if not isinstance(data, bytes):
            data = json.dumps(data).encode()
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = (0o644, data)
        return {"mediaType": f"{OCI}.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    layer = blob("layer.v1.tar", archive(files))
    about = blob("config.v1+json", {"architecture": "amd64", "os": "linux", "config": config,
                                    "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}})
    manifest = blob("manifest.v1+json", {"schemaVersion": 2, "mediaType": f"{OCI}.manifest.v1+json", "config": about, "layers": [layer]})
    # containerd takes the first, other tools the tag.
    manifest["annotations"] = {"io.containerd.image.name": reference, "org.opencontainers.image.ref.name": reference.rpartition(":")[2]}
    index = {"schemaVersion": 2, "manifests": [manifest]}
    file.write_bytes(archive({"oci-layout": (0o644, b'{"imageLayoutVersion":"1.0.0"}'),
                              "index.json": (0o644, json.dumps(index).encode()), **blobs}))
