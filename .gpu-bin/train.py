#!/usr/bin/env python3
"""Trains a small network with PyTorch and AdamW on data it makes up; the same arguments give the same bits.

Prints the loss of each step as a hexadecimal float, and at the end a SHA-256 over the weights, the optimizer's state
and the random generators. Needs PyTorch and numpy.
"""

import os

# cuBLAS is deterministic only with a workspace of its own, and reads this when it is loaded.
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"

import argparse  # noqa: E402
import hashlib  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402

import torch  # noqa: E402
from torch import nn  # noqa: E402

INPUTS, OUTPUTS = 64, 16


class Training:
    """The network, its optimizer, and the generator that the batches come from. Dropout draws from torch's own."""

    def __init__(self, args):
        torch.manual_seed(args.seed)
        widths = [INPUTS] + [args.width] * args.layers
        layers = []
        for before, after in zip(widths, widths[1:]):
            layers += [nn.Linear(before, after), nn.LayerNorm(after), nn.GELU(), nn.Dropout(0.1)]
        self.network = nn.Sequential(*layers, nn.Linear(widths[-1], OUTPUTS)).to(args.device)
        self.optimizer = torch.optim.AdamW(self.network.parameters(), lr=1e-3)
        self.batches = torch.Generator(args.device).manual_seed(args.seed)
        self.teacher = self.draw(INPUTS, OUTPUTS)
        self.batch = args.batch

    def draw(self, *shape):
        return torch.randn(*shape, device=self.batches.device, generator=self.batches)

    def step(self):
        """One step on a new batch; returns its loss."""
        x = self.draw(self.batch, INPUTS)
        loss = nn.functional.mse_loss(self.network(x), torch.tanh(x @ self.teacher))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def state(self):
        """Every tensor of the state, in an order that is always the same."""
        yield from self.network.state_dict().values()
        for parameter in self.network.parameters():
            of_parameter = self.optimizer.state[parameter]
            yield from (of_parameter[name] for name in sorted(of_parameter))
        yield torch.get_rng_state()
        if self.batches.device.type == "cuda":
            yield torch.cuda.get_rng_state(self.batches.device)
        yield self.batches.get_state()

    def digest(self):
        sha = hashlib.sha256()
        for tensor in self.state():
            sha.update(tensor.cpu().contiguous().numpy().tobytes())
        return sha.hexdigest()


def at_least(least):
    """A converter of arguments to whole numbers that are not smaller."""
    def convert(text):
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected a whole number from {least}, not '{text}'")
        return int(text)
    return convert


def device(text):
    try:
        return torch.device(text)
    except RuntimeError:
        raise argparse.ArgumentTypeError(f"expected cuda, cuda:N or cpu, not '{text}'") from None


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=at_least(0), default=100)
    parser.add_argument("--device", type=device, default="cuda", help="cuda (default), cuda:N or cpu")
    parser.add_argument("--width", type=at_least(1), default=512, help="of each hidden layer")
    parser.add_argument("--layers", type=at_least(1), default=4, help="hidden layers")
    parser.add_argument("--batch", type=at_least(1), default=256)
    parser.add_argument("--seed", type=at_least(0), default=1)
    parser.add_argument("--pause-ms", type=at_least(0), default=20, help="milliseconds between steps")
    return parser.parse_args(argv)


def main(argv):
    args = parse(argv)
    torch.use_deterministic_algorithms(True)
    training = Training(args)
    for step in range(1, args.steps + 1):
        print(f"step {step} of {args.steps} {training.step().hex()}", flush=True)
        time.sleep(args.pause_ms / 1000)
    print(f"digest {training.digest()}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
