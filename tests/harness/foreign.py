"""Programs that others wrote, as tests/trial runs them: shell scripts whose output does not depend on when anything happens. Each takes
$steps steps, about five a second, in a folder of its own with the rights of an ordinary user; $port is a free port of the loopback
interface."""

import dataclasses
import shutil

# In front of each script. A step waits in a program of its own, as scripts do.
BEFORE = r"""
set -u
export HOME=$PWD LC_ALL=C
step() { sleep 0.2; }
lines() { local i=0; while [ "$i" -lt "$steps" ]; do i=$((i + 1)); echo "${1:-line} $i"; step; done; }
"""

# A writer of a log, who follows it, and what comes in between. What follows ends by itself: behind `end` nobody reads its pipe.
FOLLOWED = r"""
: > log
{ lines; echo end; } >> log &
until_end='while read -r a b; do echo "$b: $a"; [ "$a" = end ] && break; done; true'
"""

# The log goes over a connection to another process, which writes what has come.
SENT = r"""
nc -l 127.0.0.1 $port > received &
there=$!
sleep 1
"""


@dataclasses.dataclass
class Program:
    name: str
    script: str
    needs: tuple = ()
    may_refuse: str = ""  # what the reason names for which siding may leave it alone; empty: it may not

    def missing(self):
        """What of it is not installed."""
        return [name for name in self.needs if not shutil.which(name, path=PATH)]

    def fault(self, images, preemptions, refused):
        """What is wrong with how siding dealt with it: so often it was checkpointed and preempted, or why it was let alone. Empty: nothing."""
        if refused and preemptions == 0:
            return "" if self.may_refuse and self.may_refuse in refused else f"refused beforehand: {refused}"
        return "" if images and preemptions else "too little was done to it in time"

    def text(self, steps, port):
        return f"steps={steps} port={port}\n{BEFORE}{self.script}"


PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/usr/lib/postgresql/15/bin"

PROGRAMS = [
    Program("pipeline", FOLLOWED + SENT + r"""
        tail -n +1 -f log | timeout 10h sh -c "$until_end" | nc -N 127.0.0.1 $port
        wait $there
        cat received
    """, ("nc",)),
    # The same with two in it that no checkpoint takes.
    Program("pipeline-traced", FOLLOWED + SENT + r"""
        tail -n +1 -f log | timeout 10h strace -f -o /dev/null sh -c "$until_end" | valgrind -q --log-file=/dev/null cat |
            nc -N 127.0.0.1 $port
        wait $there
        cat received
    """, ("nc", "strace", "valgrind"), "traced"),
    Program("tail", FOLLOWED + 'tail -n +1 -f log | sh -c "$until_end"'),
    Program("timeout", r"""
        i=0
        while [ $i -lt $((steps / 2)) ]; do
            i=$((i + 1))
            timeout 10m sh -c "sleep 0.4; exit $((i % 7))"
            echo "$i: $?"
        done
    """),
    Program("nc", SENT + "lines sent | nc -N 127.0.0.1 $port\nwait $there\ncat received", ("nc",)),
    Program("strace", r"strace -f -o /dev/null sh -c 'i=0; while [ $i -lt '$steps' ]; do i=$((i + 1)); echo $i; sleep 0.2; done'",
            ("strace",), "traced"),
    Program("valgrind", r"valgrind -q --log-file=/dev/null bash -c 'for ((i = 0; i < '$steps'; i++)); do echo $i; sleep 0.2; done'",
            ("valgrind",), "valgrind"),
    Program("gdb", r"""
        gdb -q -batch -ex run -ex quit --args bash -c 'for ((i = 0; i < '$steps'; i++)); do echo $i; sleep 0.2; done' 2> /dev/null |
            grep '^[0-9]*$'
    """, ("gdb",), "traced"),
    Program("bash-jobs", r"""
        set -m
        i=0
        while [ $i -lt $((steps / 3)) ]; do
            i=$((i + 1))
            sh -c "sleep 0.5; exit $((i % 5))" &
            kill -STOP %+
            sleep 0.1
            kill -CONT %+
            wait %+
            echo "$i: $?"
        done
    """),
    Program("xargs", "seq $((steps * 2)) | xargs -P 4 -n 1 sh -c 'sleep 0.4; echo $0' | sort -n"),
    Program("sqlite", r"""
        { echo 'create table t (n int);'; i=0; while [ $i -lt $steps ]; do
            i=$((i + 1)); echo "insert into t values ($i);"; step; done; } | sqlite3 base
        sqlite3 base 'select count(*), sum(n) from t; pragma integrity_check'
    """, ("sqlite3",)),
    Program("redis", r"""
        redis-server --port $port --bind 127.0.0.1 --save '' --dir "$PWD" > redis.log &
        until redis-cli -p $port ping > /dev/null 2>&1; do sleep 0.1; done
        i=0
        while [ $i -lt $steps ]; do i=$((i + 1)); redis-cli -p $port rpush list $i; step; done
        redis-cli -p $port lrange list 0 -1 | cksum
        redis-cli -p $port shutdown nosave
        wait
    """, ("redis-server", "redis-cli")),
    Program("postgres", r"""
        initdb -D base -A trust --no-sync > /dev/null 2>&1
        postgres -D base -p $port -k "$PWD" -c listen_addresses=127.0.0.1 > postgres.log 2>&1 &
        server=$!
        ask() { psql -qAt -h 127.0.0.1 -p $port postgres -c "$1" 2> /dev/null; }
        until ask 'create table t (n int)'; do sleep 0.2; done
        i=0
        while [ $i -lt $((steps / 2)) ]; do i=$((i + 1)); ask "insert into t values ($i) returning n"; step; done
        ask 'select count(*), sum(n) from t'
        kill -INT $server
        wait $server
    """, ("initdb", "postgres", "psql")),
    Program("tmux", r"""
        tmux -S socket -f /dev/null new-session -d "$(declare -f step lines); steps=$steps; lines >> out; tmux -S socket wait-for -S over"
        tmux -S socket wait-for over
        cat out
    """, ("tmux",)),
    Program("screen-of-shells", r"""
        tmux -S socket -f /dev/null new-session -d -x 80 -y 24 bash --norc
        i=0
        while [ $i -lt $((steps / 2)) ]; do
            i=$((i + 1))
            tmux -S socket send-keys "echo line $i >> out; sleep 0.1" Enter
            until [ "$(tail -n 1 out 2> /dev/null)" = "line $i" ]; do sleep 0.1; done
        done
        tmux -S socket kill-server
        cat out
    """, ("tmux",)),
    Program("python-pool", r"""
        /usr/bin/python3 - $steps <<'END'
import multiprocessing, sys, time

def work(n):
    time.sleep(0.4)
    return n * n

if __name__ == "__main__":
    with multiprocessing.Pool(3) as pool:
        for result in pool.imap(work, range(int(sys.argv[1]))):
            print(result, flush=True)
END
    """),
    Program("python-asyncio", r"""
        /usr/bin/python3 - $steps $port <<'END'
import asyncio, sys

async def echo(reader, writer):
    while line := await reader.readline():
        writer.write(line.upper())
        await writer.drain()
    writer.close()

async def main(steps, port):
    server = await asyncio.start_server(echo, "127.0.0.1", port)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for i in range(steps):
        writer.write(b"line %d\n" % i)
        print((await reader.readline()).decode(), end="", flush=True)
        await asyncio.sleep(0.2)
    writer.close()

asyncio.run(main(*map(int, sys.argv[1:])))
END
    """),
    Program("node", r"""
        node -e 'let i = 0; const t = setInterval(() => { console.log(++i); if (i >= '$steps') clearInterval(t) }, 200)'
    """, ("node",)),
    Program("perl", r"""
        perl -e '$| = 1; for my $i (1 .. '$steps') { my $p = fork // die; exit $i % 256 unless $p; waitpid $p, 0;
                 print $? >> 8, "\n"; select undef, undef, undef, 0.2 }'
    """, ("perl",)),
    Program("make", r"""
        printf 'all: $(shell seq %d)\n%%:\n\t@sleep 0.6; echo $@ > made.$@\n' $steps > Makefile
        make -s -j 3
        cat made.* | sort -n
    """, ("make",)),
    Program("inotifywait", r"""
        mkdir watched
        inotifywait -m -q -e close_write --format '%f' watched > seen &
        watch=$!
        sleep 1
        i=0
        while [ $i -lt $steps ]; do i=$((i + 1)); echo > watched/$i; step; done
        until [ "$(tail -n 1 seen)" = $steps ]; do sleep 0.1; done
        kill $watch
        cat seen
    """, ("inotifywait",)),
    Program("tar", r"""
        mkdir tree
        i=0
        while [ $i -lt $((steps / 2)) ]; do
            i=$((i + 1))
            seq $((i * 100)) > tree/$i
            tar --sort=name --mtime=@0 -cf - tree | gzip -n | tee last.gz | gunzip | tar -tf - | cksum
            step
            step
        done
        gunzip < last.gz | tar -xOf - | cksum
    """),
    Program("git", r"""
        export GIT_AUTHOR_DATE=@0+0000 GIT_COMMITTER_DATE=@0+0000
        git init -q -b main repository && cd repository && git config user.name a && git config user.email a@example.com
        i=0
        while [ $i -lt $((steps / 2)) ]; do
            i=$((i + 1))
            echo $i >> file && git add file && git commit -q -m "line $i" && git rev-parse HEAD
            step
            step
        done
        git gc -q && git fsck --strict 2> /dev/null && git log --oneline | wc -l
    """, ("git",)),
    Program("ssh-agent", r"""
        ssh-agent bash -c "$(declare -f step lines); steps=$steps; lines; ssh-add -l; true"
    """, ("ssh-agent",), "has the group"),
]
