"""Trains a small network on random data. Argument: where to note what it has done, as lines of time and steps."""
import sys
import time

import numpy

random = numpy.random.default_rng(1)
data, wanted = random.standard_normal((4096, 256)), random.standard_normal((4096, 16))
first, second = random.standard_normal((256, 256)) / 16, random.standard_normal((256, 16)) / 16
with open(sys.argv[1], "w", buffering=1) as notes:
    steps, noted = 0, 0.0
    while True:
        batch = slice(steps % 16 * 256, steps % 16 * 256 + 256)
        hidden = numpy.maximum(data[batch] @ first, 0)
        error = (hidden @ second - wanted[batch]) / 256
        back = (error @ second.T) * (hidden > 0)
        second -= 0.01 * hidden.T @ error
        first -= 0.01 * data[batch].T @ back
        steps += 1
        if time.time() - noted > 0.1:
            noted = time.time()
            notes.write(f"{noted} {steps}\n")
