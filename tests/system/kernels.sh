#!/usr/bin/env bash
# The numbers are right whichever set of instructions computes them: tests of recall against closed forms and stored
# answers, for every set that this CPU has. CGAM_KERNELS=all takes every numerical test (make soak).
set -euo pipefail
die() { echo "kernels: $*" >&2; exit 1; }
[ -z "${CGAM_SANITIZE:-}" ] || { echo "the unit tests have every set checked"; exit 77; }
said=$(CGAM_CPU=abacus "$CGAM" help 2>&1 >/dev/null) && die "accepted an unknown set of instructions"
[ "$said" = "${said%%$'\n'*}" ] || die "more than a line: $said"
sets=$(sed -n "s/.*CGAM_CPU: invalid value 'abacus' (valid on this CPU: //p" <<<"$said" | tr -d ',)')
[ -n "$sets" ] || die "the message does not list the sets: $said"

cd "$CGAM_BUILD/tests"
tests=(identity/test_symmetries oracle/test_oracle_recall oracle/test_oracle_gate)
[ "${CGAM_KERNELS:-}" != all ] || tests=(unit/num/test_* unit/memory/test_* unit/net/test_* identity/test_* oracle/test_*)
for set in $sets; do
    for test in "${tests[@]}"; do
        CGAM_CPU=$set "./$test" >"$CGAM_BUILD/tests/kernels.log" 2>&1 || { cat "$CGAM_BUILD/tests/kernels.log"; die "$test by $set"; }
    done
    echo "$set: ${#tests[@]} programs"
done
rm -f "$CGAM_BUILD/tests/kernels.log"
