"""A criu that can be held: what happens while an image is being restored can be tried without a race."""

from case import find_criu, wait_for

PROGRAM = """\
#!/bin/sh
if [ -e {folder}/held ]; then
  touch {folder}/waits
  while [ -e {folder}/held ]; do sleep 0.02; done
fi
exec {criu} "$@"
"""


class HeldCriu:
    def __init__(self, folder):
        folder.mkdir(parents=True)
        self.held, self.waits, self.path = folder / "held", folder / "waits", folder / "criu"
        self.path.write_text(PROGRAM.format(folder=folder, criu=find_criu()))
        self.path.chmod(0o755)

    def hold(self):
        """Each run of it from now on waits before anything else happens."""
        self.held.touch()

    def wait_reached(self):
        wait_for("criu to have been started", self.waits.exists)

    def let_go(self):
        self.held.unlink(missing_ok=True)
        self.waits.unlink(missing_ok=True)
