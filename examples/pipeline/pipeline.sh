#!/bin/bash
# Counts words in a generated text, round after round, by a pipeline of several processes. Each round's text
# depends on the result of the round before, so that nothing can be skipped; equal arguments give an equal digest.
# No terminal, no network, no temporary files but those below --work: it can be frozen and dumped at any time.
set -euo pipefail
export LC_ALL=C  # one sort order everywhere

usage() {
  cat <<'EOF'
usage: pipeline.sh --out FILE --work DIR [--rounds N] [--lines N] [--seed N]
  --out FILE   gets the digest of all rounds, as its first word
  --work DIR   folder for the generated text; is made if it does not exist
  --rounds N   default 24
  --lines N    lines of text a round, default 500000
  --seed N     default 1
EOF
}

fail() { echo "pipeline: $1" >&2; usage >&2; exit 2; }

out='' work='' rounds=24 lines=500000 seed=1
while (($#)); do
  [[ $1 == --help ]] && { usage; exit 0; }
  (($# >= 2)) || fail "$1: expected a value after it"
  case $1 in
    --out) out=$2 ;;
    --work) work=$2 ;;
    --rounds | --lines | --seed)
      [[ $2 =~ ^[1-9][0-9]{0,8}$ ]] || fail "$1: expected a number from 1 to 999999999, got \"$2\""
      printf -v "${1#--}" '%s' "$2" ;;
    *) fail "unknown option $1" ;;
  esac
  shift 2
done
[[ -n $out ]] || fail '--out is missing'
[[ -n $work ]] || fail '--work is missing'
mkdir -p "$work"

# Lehmer's generator: all products stay below 2^53, so every awk computes the same numbers.
generate() {
  awk -v x="$1" -v lines="$lines" 'BEGIN {
    for (i = 0; i < lines; i++) {
      line = ""
      for (word = 0; word < 4; word++) {
        x = (x * 16807) % 2147483647
        line = line sprintf("w%04d ", (x % 10007) * (x % 7) % 10000)
      }
      print line
    }
  }'
}

count() {
  tr ' ' '\n' <"$1" | sed '/^$/d' | sort -S 64M -T "$work" | uniq -c | sort -k1,1nr -k2,2 -S 64M -T "$work" |
    awk '{ total += $1 * NR; print $2, $1 } END { print "weight", total % 1000000007 }' | sha256sum | cut -d' ' -f1
}

state=$seed
chain=''
for ((round = 1; round <= rounds; round++)); do
  generate "$state" >"$work/text"
  digest=$(count "$work/text")
  chain=$(printf '%s %s\n' "$chain" "$digest" | sha256sum | cut -d' ' -f1)
  state=$((16#${chain:0:7} + 1))
  echo "pipeline: round $round of $rounds, $digest"
done
printf '%s pipeline rounds=%s lines=%s seed=%s\n' "$chain" "$rounds" "$lines" "$seed" >"$out.tmp"
mv "$out.tmp" "$out"
