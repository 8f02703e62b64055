"""Writes into and reads from a database of sqlite on the disk, which holds 500,000 entries and is cached whole. Argument: where to note what it
has done, as lines of time and transactions."""
import random
import sqlite3
import sys
import time

SIZE = 500_000
database = sqlite3.connect(sys.argv[1] + ".db")
database.executescript("pragma journal_mode=wal; pragma synchronous=off; pragma cache_size=-262144; create table entry (id integer primary key, "
                       "name text, value real); create index by_name on entry (name);")
draw = random.Random(1)


def put(keys):
    with database:
        database.executemany("insert or replace into entry (id, name, value) values (?, ?, ?)",
                             ((key, f"{draw.getrandbits(64):x}", draw.random()) for key in keys))


put(range(SIZE))
with open(sys.argv[1], "w", buffering=1) as notes:
    done, noted = 0, 0.0
    while True:
        # Most of it is about few of them.
        put([int(SIZE * draw.random() ** 4) for _ in range(50)])
        database.execute("select sum(value) from entry where name between ? and ?", ("a", "a01")).fetchone()
        done += 1
        if time.time() - noted > 0.1:
            noted = time.time()
            notes.write(f"{noted} {done}\n")
