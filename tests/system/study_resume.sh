#!/usr/bin/env bash
# ctest: timeout=240
# Stopped by Ctrl-C, on another number of threads: the same files, bit for bit. crash.py kills.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
die() { echo "resume: $*" >&2; exit 1; }

study=(coupled --trials 96 --lambda 0,0.5,1,2 --fold-trials 16 --figures no)
"$CGAM" study "${study[@]}" --threads 1 --out "$work/whole" >/dev/null

# Waits until the progress file has grown past so many bytes, or the process is gone.
grown() {
    local file=$1 size=$2 pid=$3
    for _ in $(seq 3000); do
        [ -e "$file" ] && [ "$(stat -c %s "$file")" -gt "$size" ] && return 0
        kill -0 "$pid" 2>/dev/null || return 0
        sleep 0.005
    done
    die "no progress"
}

"$CGAM" study "${study[@]}" --out "$work/stopped" >/dev/null 2>"$work/err" &
pid=$!
grown "$work/stopped/.coupled.progress" 20000 "$pid"
kill -INT "$pid" 2>/dev/null || true
status=0
wait "$pid" || status=$?
if [ "$status" -ne 0 ]; then # on a fast machine it may have come to its end
    [ "$status" -eq 3 ] || die "Ctrl-C gives status $status"
    [ "$(wc -l <"$work/err")" -eq 1 ] && grep -q "stopped on request" "$work/err" || die "$(cat "$work/err")"
    [ -e "$work/stopped/.coupled.progress" ] && [ ! -e "$work/stopped/summary.json" ] || die "files after Ctrl-C"
fi
"$CGAM" study "${study[@]}" --threads 3 --out "$work/stopped" >/dev/null
diff -r "$work/whole" "$work/stopped" || die "after Ctrl-C the files differ"

# A progress file of another run, or of no run at all, is neither continued nor replaced silently.
mkdir "$work/other"
printf 'cgam journal 1\0\0garbage that goes on for a while, long enough for a header' >"$work/other/.coupled.progress"
"$CGAM" study "${study[@]}" --out "$work/other" >/dev/null 2>"$work/said" && die "garbage was replaced"
grep -q "holds an unfinished run with other options; give --overwrite" "$work/said" || die "garbage: $(cat "$work/said")"
"$CGAM" study "${study[@]}" --out "$work/other" --overwrite >/dev/null
diff -r "$work/whole" "$work/other" || die "garbage was continued"

# Of a closed stream no file gets the number: lines about progress would go into it.
mkdir "$work/closed"
"$CGAM" study coupled --trials 100000 --figures no --out "$work/closed" <&- >&- 2>&- &
pid=$!
grown "$work/closed/.coupled.progress" 1 "$pid"
for stream in 0 1 2; do
    [ "$(readlink "/proc/$pid/fd/$stream")" = /dev/null ] || die "stream $stream is $(readlink "/proc/$pid/fd/$stream")"
done
kill -INT "$pid"
status=0
wait "$pid" || status=$?
[ "$status" -eq 3 ] || die "stopped without streams: status $status"
echo "resume: fine"
