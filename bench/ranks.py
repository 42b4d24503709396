#!/usr/bin/python3
"""Ranks: a model of what goes between them, held to runs; what messages and fixed order cost; two ranks beside two threads.

    bench/ranks.py BUILD [counts|costs|speed|scale ..] [--shape ROWSxCOLUMNS] [--rounds N]

counts  messages and bytes of a coupled iteration on 1 to 8 ranks, foreseen and counted: they must be equal (exit status 1)
costs   a message, a column of d numbers, and sums of d numbers in fixed order beside MPI_Allreduce, over shared memory and TCP
speed   recalls by two ranks over those by two threads, first and coupled, one query and 64, best of two turns; needs two free cores
scale   memory beside the rows, and from all constants the times on 64 and 1,024 ranks
"""
import argparse
import json
import math
import os
import subprocess
import sys

ENV = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORD = 8  # bytes: the largest score or change that a rank has; that it is well
BESIDE = 2  # numbers that go with a column: the sum of weights, and feedback


# ---- The model: numbers of src/num/rows.c, gemm_pass.c, gram.c -----------------------------------------
def parts(n, least, few):
    most, count = min(max(n >> 16, few), 1024), 1
    while 2 * count <= most and 2 * count * least <= n:
        count *= 2
    return count


def chunks_of(n):
    return parts(n, 256, 64)


def units_of(n, d):
    if d <= 64:
        gram = parts(n, 256, 16)
    elif d <= 1024:
        gram = parts(n, 2048, 16 if d <= 256 else 8 if d <= 512 else 4)
    else:
        gram = parts(n, 8192, 4)
    return min(chunks_of(n), parts(n, 288, 16), gram)


def sends(n, d, ranks):
    """Columns that meet at the owner of the left one of a pair."""
    chunks, units, count = chunks_of(n), units_of(n, d), 0
    begin = [units * r // ranks * (chunks // units) for r in range(ranks + 1)]
    owner = [max(r for r in range(ranks) if begin[r] <= k) for k in range(chunks)]
    step = 1
    while step < chunks:
        count += sum(owner[k] != owner[k + step] for k in range(0, chunks - step, 2 * step))
        step *= 2
    return count


def iteration(n, d, ranks):
    """(messages, bytes) of a coupled iteration of one query: three words, two numbers shared, one joined column."""
    if ranks == 1 or units_of(n, d) == 1 or n <= max(d, 2048):
        return 0, 0
    others, columns = ranks - 1, sends(n, d, ranks) + ranks - 1
    messages = 3 * 2 * others + 2 * ranks * others + columns
    return messages, 3 * 2 * others * WORD + 2 * others * ranks * WORD + columns * 8 * (d + BESIDE)


def seconds(n, d, ranks, of):
    """Of a coupled iteration: reading, A's inverse, messages one after the other along a tree."""
    depth, column = math.ceil(math.log2(ranks)), of["column"] * d / of["d"]
    return (4 * n * d / ranks / of["read"], 2 * d * d / of["flops"],
            (3 * 2 + 2) * depth * of["latency"] + 2 * depth * column)


# ---- Runs -----------------------------------------------------------------------------------------------
def compile_program(build):
    program = os.path.join(build, "bench", "ranks")
    os.makedirs(os.path.dirname(program), exist_ok=True)
    lib = os.path.join(build, "lib")
    subprocess.run(["mpicc", "-O2", "-std=c11", "-D_GNU_SOURCE", "-I", os.path.join(ROOT, "include"),
                    os.path.join(ROOT, "bench/rank/ranks.c"), "-L", lib, "-lcgam_mpi", "-lcgam",
                    "-Wl,-rpath," + lib, "-o", program], check=True)
    return program


def run(program, ranks, n, d, threads=1, rounds=3, how=()):
    words = ["mpirun", "--oversubscribe", "--bind-to", "none", *how, "-n", str(ranks), program, str(n), str(d), str(threads), str(rounds)]
    return json.loads(subprocess.run(words, env=ENV, check=True, stdout=subprocess.PIPE, text=True).stdout)


def counts(program, _):
    wrong = 0
    print("coupled iteration       messages    bytes  over the least (8 d up and down a tree)")
    for n, d, most in ((8192, 48, 8), (20000, 200, 5), (2000, 8, 2)):
        for ranks in range(1, most + 1):
            want, got = iteration(n, d, ranks), run(program, ranks, n, d, rounds=1)
            same = (got["messages"], got["bytes"]) == want
            wrong += not same
            least = 2 * (ranks - 1) * 8 * d
            print(f"{n:>8} x {d:<4} {ranks} ranks {got['messages']:8.0f} {got['bytes']:8.0f}"
                  f"  {want[1] / least if least else 1:.2f}{'' if same else f'  foreseen: {want}'}")
    n, d = 128256, 4096
    print(f"{n:>8} x {d:<4} 2 ranks, foreseen: {iteration(n, d, 2)[1] / (16 * d):.2f} of the least (goal 2)")
    return wrong


ROADS = {"shared memory": (), "TCP on loopback": ("--mca", "pml", "ob1", "--mca", "btl", "tcp,self")}


def costs(program, _):
    print("2 ranks, d = 4096     message  column of d   fixed order  MPI_Allreduce  ratio")
    for name, how in ROADS.items():
        got = run(program, 2, 0, 4096, rounds=0, how=how)
        print(f"{name:18} {got['latency'] * 1e6:7.2f} us {got['column'] * 1e6:9.2f} us {got['join'] * 1e6:10.2f} us"
              f" {got['allreduce'] * 1e6:11.2f} us {got['join'] / got['allreduce']:6.2f}")
    return 0


def speed(program, args):
    n, d = args.shape
    turns = [(run(program, 1, n, d, 2, args.rounds), run(program, 2, n, d, 1, args.rounds)) for _ in range(2)]
    threads, ranks = ({what: min(turn[k][what] for turn in turns) for what in turns[0][k]} for k in (0, 1))
    for what, name in (("first", "first, 1 query"), ("first64", "first, 64"), ("coupled", "coupled, 1"), ("coupled64", "coupled, 64")):
        print(f"{n} x {d} {name:15} two threads {threads[what]:.4f} s, two ranks {ranks[what]:.4f} s:"
              f" {threads[what] / ranks[what]:.2f} (goal 0.90)")
    return 0


def scale(program, args):
    n, d = args.shape
    small, large = run(program, 2, 8192, 16, rounds=1), run(program, 2, 32768, 16, rounds=1)
    beside = {mode: (large["beside_" + mode] - small["beside_" + mode]) / (32768 - 8192) * 2 for mode in ("first", "coupled")}
    one, road = run(program, 1, n, d, rounds=args.rounds), run(program, 2, 0, 4096, rounds=0, how=ROADS["TCP on loopback"])
    of = {"read": 4 * n * d / one["first"], "flops": n * d * d / one["setup"],
          "latency": road["latency"], "column": road["column"], "d": 4096}
    print(f"one core reads {of['read'] / 1e9:.1f} GB/s and makes {of['flops'] / 1e9:.1f} G multiplications a second of a Gram matrix;"
          f" a message takes {of['latency'] * 1e6:.1f} us, a column of 4,096 {of['column'] * 1e6:.1f} us")
    print(f"bytes for each row of a rank, beside it: first {beside['first']:.1f}, coupled {beside['coupled']:.1f}")
    print("memories  ranks   rows/rank  vectors/rank: first coupled   first, one query   a coupled iteration (reading + inverse + messages)   A(alpha)")
    for n in (10**8, 10**9):
        for ranks in (64, 1024):
            reading, inverse, messages = seconds(n, 4096, ranks, of)
            gram = n * 4096**2 / ranks / of["flops"] + 2 * math.log2(ranks) * of["column"] * 4096
            print(f"{n:8.0e} {ranks:6} {4 * n * 4096 / ranks / 2**30:8.1f} GiB"
                  f" {beside['first'] * n / ranks / 2**30:10.3f} {beside['coupled'] * n / ranks / 2**30:8.3f} GiB"
                  f" {reading + messages:15.3f} s  {reading + inverse + messages:8.3f} s"
                  f" ({reading:.3f} + {inverse:.4f} + {messages:.5f}) {gram:20.0f} s")
    return 0


def main():
    jobs = {"counts": counts, "costs": costs, "speed": speed, "scale": scale}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("what", nargs="*", choices=[[], *jobs])
    parser.add_argument("--shape", default="128256x4096", type=lambda text: tuple(map(int, text.split("x"))))
    parser.add_argument("--rounds", default=5, type=int)
    args = parser.parse_args()
    program = compile_program(os.path.abspath(args.build))
    return 1 if sum(jobs[what](program, args) for what in args.what or jobs) else 0


if __name__ == "__main__":
    sys.exit(main())
