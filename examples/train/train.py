#!/usr/bin/python3
"""Trains a small neural network on generated data; the same arguments always give the same bits.

With --self-checkpoint PATH the program saves itself when it gets SIGUSR1, at the end of the running epoch, and then
exits with 0 or touches PATH.marker and continues (--after-save). With --resume it continues from PATH if that exists.
"""

import os

# Sums in another order have other bits: one thread. Must be set before numpy is loaded.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import argparse  # noqa: E402
import hashlib  # noqa: E402
import json  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402

import numpy as np  # noqa: E402

INPUTS, CLASSES, BATCH = 64, 10, 64
RATE, MOMENTUM = 0.05, 0.9


def write_whole(path, write):
    """Calls write(file) on a file that takes the place of `path` only when it is complete."""
    temporary = path + ".tmp"
    with open(temporary, "wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


class Training:
    """The whole state: weights, their velocities, the random generator, and the number of epochs done."""

    def __init__(self, args):
        self.shape = f"samples={args.samples} hidden={args.hidden} seed={args.seed}"
        data = np.random.default_rng(args.seed)
        self.x = data.standard_normal((args.samples, INPUTS))
        teacher = data.standard_normal((INPUTS, CLASSES))
        self.y = np.argmax(np.tanh(self.x) @ teacher, axis=1)
        self.rng = np.random.default_rng(args.seed + 1)
        sizes = [INPUTS, args.hidden, args.hidden, CLASSES]
        self.weights = [self.rng.standard_normal((a, b)) / np.sqrt(a) for a, b in zip(sizes, sizes[1:])]
        self.velocities = [np.zeros_like(w) for w in self.weights]
        self.epoch = 0

    def run_epoch(self):
        """One pass over the data in a new random order; returns the mean loss."""
        order = self.rng.permutation(len(self.x))
        total = 0.0
        for start in range(0, len(order), BATCH):
            chosen = order[start:start + BATCH]
            total += self._step(self.x[chosen], self.y[chosen])
        self.epoch += 1
        return total / len(order)

    def _step(self, x, y):
        layers = [x]
        for w in self.weights[:-1]:
            layers.append(np.maximum(layers[-1] @ w, 0.0))
        scores = layers[-1] @ self.weights[-1]
        scores -= scores.max(axis=1, keepdims=True)
        chances = np.exp(scores)
        chances /= chances.sum(axis=1, keepdims=True)
        rows = np.arange(len(y))
        loss = -np.log(chances[rows, y] + 1e-300).sum()
        slope = chances
        slope[rows, y] -= 1.0
        slope /= len(y)
        for i in reversed(range(len(self.weights))):
            gradient = layers[i].T @ slope
            slope = (slope @ self.weights[i].T) * (layers[i] > 0.0)
            self.velocities[i] = MOMENTUM * self.velocities[i] - RATE * gradient
            self.weights[i] = self.weights[i] + self.velocities[i]
        return float(loss)

    def save(self, path):
        arrays = {f"w{i}": w for i, w in enumerate(self.weights)}
        arrays.update({f"v{i}": v for i, v in enumerate(self.velocities)})
        about = json.dumps({"shape": self.shape, "epoch": self.epoch, "rng": self.rng.bit_generator.state})
        write_whole(path, lambda file: np.savez(file, about=np.array(about), **arrays))

    def load(self, path):
        with np.load(path) as saved:
            about = json.loads(str(saved["about"]))
            if about["shape"] != self.shape:
                sys.exit(f"train: {path} is of another training ({about['shape']}, not {self.shape})")
            self.weights = [saved[f"w{i}"] for i in range(len(self.weights))]
            self.velocities = [saved[f"v{i}"] for i in range(len(self.velocities))]
        self.rng.bit_generator.state = about["rng"]
        self.epoch = about["epoch"]

    def digest(self):
        return hashlib.sha256(b"".join(w.tobytes() for w in self.weights)).hexdigest()


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="file for the SHA-256 of the final weights, its first word")
    parser.add_argument("--epochs", type=int, default=160)
    parser.add_argument("--samples", type=int, default=8192)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--self-checkpoint", metavar="PATH", help="on SIGUSR1 save the state to PATH")
    parser.add_argument("--after-save", choices=("exit", "marker"), default="exit")
    parser.add_argument("--resume", action="store_true", help="continue from --self-checkpoint's PATH if it exists")
    args = parser.parse_args(argv)
    if args.resume and not args.self_checkpoint:
        parser.error("--resume needs --self-checkpoint")
    return args


def main(argv):
    args = parse(argv)
    asked = []
    if args.self_checkpoint:
        # Before the long work of setting up: a signal must never find the default action, which is death.
        signal.signal(signal.SIGUSR1, lambda *_: asked.append(True))
    training = Training(args)
    if args.resume and os.path.exists(args.self_checkpoint):
        training.load(args.self_checkpoint)
        print(f"train: resumed after epoch {training.epoch}", flush=True)
    while training.epoch < args.epochs:
        if asked:
            asked.clear()
            training.save(args.self_checkpoint)
            print(f"train: saved after epoch {training.epoch}", flush=True)
            if args.after_save == "exit":
                return 0
            write_whole(args.self_checkpoint + ".marker", lambda file: file.write(b"saved\n"))
        loss = training.run_epoch()
        print(f"train: epoch {training.epoch} of {args.epochs}, loss {loss:.9f}", flush=True)
    write_whole(args.out, lambda file: file.write(f"{training.digest()} train {training.shape}\n".encode()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
