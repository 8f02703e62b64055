"""What the log of a victim (victim.py) says, and how figures of several rounds are shown."""

import statistics


def written(path):
    """A victim's log: (seconds, step) of each line that is whole."""
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [(float(second), int(step)) for second, step in (line.split() for line in lines)]


def lost(log, gone):
    """Seconds of work that the victim did again after its last line before the time `gone`."""
    before = [line for line in log if line[0] < gone]
    first_again = next(step for second, step in log if second > gone)
    return before[-1][0] - next(second for second, step in before if step >= min(first_again, before[-1][1]))


def cell(seconds):
    """Of all rounds."""
    return f"{statistics.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f})"
