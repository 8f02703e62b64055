"""A browser that looks at a page: page/app/test/browser/driver.mjs, by its lines."""

import json
import pathlib
import subprocess

DRIVER = pathlib.Path(__file__).resolve().parents[2] / "page/app/test/browser/driver.mjs"


class Browser:
    def __init__(self, address):
        self.process = subprocess.Popen(["node", str(DRIVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.do("open", address)

    def do(self, *command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"error": "the browser has gone"}
        if "error" in answer:
            raise AssertionError(f"{' '.join(command)}: {answer['error']}")

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
