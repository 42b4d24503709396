"""Coupled recalls that are hard on purpose, and the banks on which theorems are evaluated.

Question: where would a careless solver go wrong?  Past the uniqueness bound there are several fixed
points; the right answer is the one the plain iteration reaches from p0.  The traps below are found
by searching seeds in order, so the search itself is part of the definition.
"""

import numpy as np

import banks
from banks import Case
from refmath import LD, Bank, inverse, ld, local_contraction, plain_iteration, softmax
from reftheory import fold_alpha, newton_in_p, newton_in_s, newton_then_plain

# Every request for a fold, a horizon or a threshold is a dict that generate.py completes.


STARTS = (0, 1, 2, 3, 5, 8, 12, 16)


def traps():
    """For each of three shapes the first seed on which unguarded Newton leaves the right basin.

    Asked for: Newton in p from p0, Newton in s from A^-1 u, and Newton in s from the plain iterates
    of STARTS all converge, and all to another fixed point than the plain iteration, which takes 40
    steps or more and whose end does not depend on a push of 1e-6.
    """
    for n, d in [(12, 6), (6, 10), (8, 5)]:
        yield next(case for case in (trap(seed, n, d) for seed in range(1, 4000)) if case)


def trap(seed, n, d):
    """The case, named by its shape, or None when this seed is harmless."""
    rng = np.random.RandomState(seed)
    Z = banks.gaussian(rng, n, d)
    Q = np.round(0.3 * rng.standard_normal((1, d)), 6)
    C = np.round(0.3 * rng.standard_normal((1, d)), 6)
    alpha, beta, lam = 0.5, 4.0, [0.8, 0.9, 1.0][seed // 3 % 3]
    G = ld(Z) @ ld(Z).T
    A = np.eye(n, dtype=LD) + LD(alpha) * (G - np.diag(np.diag(G)))
    b, u, inv = ld(Z) @ ld(Q[0]), ld(Z) @ ld(C[0]), inverse(A)
    args = (u, b, LD(beta), LD(lam))
    try:
        p, steps = plain_iteration(inv, *args, limit=1000)
    except ArithmeticError:
        return None
    if steps < 40:
        return None
    q, ends = softmax(LD(beta) * (b + LD(lam) * (inv @ u))), []
    for k in range(max(STARTS) + 1):
        s = inv @ (u + LD(lam) * q)
        if k in STARTS:
            ends.append(newton_in_s(A, *args, s))
            if ends[-1] is None or np.max(np.abs(ends[-1] - p)) < 1e-3:
                return None
        q = softmax(LD(beta) * (b + LD(lam) * s))
    ends += [newton_in_p(inv, *args), newton_in_s(A, *args, inv @ u)]
    if any(e is None or np.max(np.abs(e - p)) < 1e-3 for e in ends[-2:]):
        return None
    if not is_robust(inv, u, b, beta, lam, p):
        return None
    case = Case("trap_%d_%d" % (n, d), "several fixed points; unguarded Newton leaves the basin of "
                "the plain iteration, even after 16 plain steps (seed %d)" % seed, Z, Q, C,
                targets=[int(np.argmax(p))], alphas={"trap": alpha}, coupled=[("trap", beta, lam)])
    case.theory["newton_lands"] = [ends[0], ends[-3], ends[-2]]
    return case


def creep(seed, n, d, lam, count):
    """A case on which a Newton finish fails although the plain iteration seems to converge.

    For `count` steps from the twelfth on the change of p falls, and yet the iteration only creeps
    past a place where a fixed point almost exists.  Newton from the first of these steps and from
    three quarters of them, followed by the plain iteration, ends elsewhere; from the first even
    Newton with energy descent does.
    """
    rng = np.random.RandomState(seed)
    Z = banks.clustered(rng, n, d)
    Q = np.round(0.1 * rng.standard_normal((1, d)), 6)
    C = np.round(0.1 * rng.standard_normal((1, d)), 6)
    alpha, beta = 0.5, 4.0
    bank = Bank(Z)
    A = bank.A(alpha)
    b, u, inv = bank.Z @ ld(Q[0]), bank.Z @ ld(C[0]), inverse(A)
    args = (u, b, LD(beta), LD(lam))
    p, _ = plain_iteration(inv, *args)
    q, before, lands = softmax(LD(beta) * (b + LD(lam) * (inv @ u))), LD(1), []
    for k in range(12 + count):
        s = inv @ (u + LD(lam) * q)
        new = softmax(LD(beta) * (b + LD(lam) * s))
        change = np.max(np.abs(new - q))
        if k >= 12:
            assert change < before
            lands.append(newton_then_plain(A, inv, *args, s, damped=False))
        if k == 12:
            lands.append(newton_then_plain(A, inv, *args, s, damped=True))
        q, before = new, change
    away = [np.max(np.abs(end - p)) > 1e-3 for end in lands]
    assert away[0] and away[1] and sum(away) >= 0.75 * len(away), seed
    case = Case("creep_%d_%d" % (n, d), "the plain iteration creeps past a point where it seems to "
                "converge; an unguarded Newton finish, damped or not, ends elsewhere (seed %d)"
                % seed, Z, Q, C, targets=[int(np.argmax(p))], alphas={"creep": alpha},
                coupled=[("creep", beta, lam)])
    case.theory["newton_lands"] = lands[:2]
    return case


def creeps():
    """Found by a search over 54,000 seeds."""
    for seed, n, d, lam, count in [(3889, 6, 10, 0.8, 24), (38298, 12, 6, 0.9, 14),
                                   (36664, 8, 5, 0.9, 14), (45035, 16, 8, 1.0, 18)]:
        yield creep(seed, n, d, lam, count)


def is_robust(inv, u, b, beta, lam, p, push=1e-6):
    """Does a start that is off by `push` in the scores end at the same fixed point?"""
    for seed in range(3):
        noise = push * np.random.RandomState(seed).standard_normal(len(u))
        p0 = softmax(LD(beta) * (b + LD(lam) * (inv @ u) + noise))
        other, _ = plain_iteration(inv, u, b, LD(beta), LD(lam), p=p0)
        if np.max(np.abs(other - p)) > 1e-12:
            return False
    return True


def fold_case(name, seed, n, d, lam):
    rng = np.random.RandomState(seed)
    Z = banks.clustered(rng, n, d)
    Q = np.round(0.1 * rng.standard_normal((1, d)), 6)
    C = np.round(0.1 * rng.standard_normal((1, d)), 6)
    bank = Bank(Z)
    b, u = bank.Z @ ld(Q[0]), bank.Z @ ld(C[0])
    beta = 4.0
    fold = fold_alpha(bank, u, b, beta, lam)
    # Near the fold: the alpha at which the local constant is 0.99 on the same branch.
    lo, hi = fold["alpha"] * LD(0.9), fold["alpha"]
    for _ in range(40):
        mid = (lo + hi) / 2
        p, _ = plain_iteration(inverse(bank.A(mid)), u, b, LD(beta), LD(lam), floor=LD(1e-12))
        below = (np.max(np.abs(p - fold["p"])) < 0.1
                 and local_contraction(bank.A(mid), p, beta, lam) < 0.99)
        lo, hi = (mid, hi) if below else (lo, mid)
        if hi - lo < 1e-9:
            break
    case = Case(name, "a fold in alpha at a known place; `slow` lies just before it (local "
                "constant 0.99), `ghost` just after it, where the plain iteration creeps and then leaves",
                Z, Q, C, targets=[0],
                alphas={"slow": float(lo), "ghost": float(fold["alpha"] * LD(1 + 1e-4))},
                coupled=[("slow", beta, lam), ("ghost", beta, lam)])
    case.theory["fold"] = [dict(query=0, beta=beta, **{"lambda": lam}, alpha=fold["alpha"],
                                bracket_low=fold["bracket_low"], p=fold["p"], s=fold["s"])]
    return case


def tight_pair():
    """Two equal unit memories and a tied query: the uniqueness bound is attained."""
    Z = np.array([[0.6, 0.8], [0.6, 0.8]])
    Q, C = np.array([[0.3, -0.2]]), np.array([[0.1, 0.4]])
    # contraction = beta lam^2 / (2 (1 - alpha)) = 0.9 and 0.5
    return Case("tight_pair", "two equal memories, tied query: local constant = global constant",
                Z, Q, C, targets=[1], alphas={"tight": 0.25},
                first=[("tight", 2.0, 1.0)],
                coupled=[("tight", 2.0, float(np.sqrt(0.675))), ("zero", 1.0, 1.0)])


def threshold_cases():
    """Banks with G 1 = mu_G 1, good and bad for the lambda-critical formula."""
    pairs = [(5.0, 0.5), (3.5, 1.0), (5.0, 4.0)]
    plain = lambda name, about, Z, pairs=pairs: Case(
        name, about, Z, np.zeros((1, Z.shape[1])), np.zeros((1, Z.shape[1])), targets=[0],
        alphas={} if name != "threshold_simplex" else {"quarter": 0.25},
        theory={"lambda_critical": pairs})
    yield plain("threshold_equicorrelated", "all inner products 0.4: mu_perp = 0.6",
                banks.equicorrelated(8, 0.4))
    yield plain("threshold_circulant", "circulant Gram matrix, rank 5 of 12: mu_perp = 0",
                banks.circulant(12, {0: 3, 1: 2, 4: 1}))
    yield plain("threshold_circulant_full", "circulant Gram matrix of full rank",
                banks.circulant(7, {0: 2.5, 1: 2, 2: 1, 3: 1.5}))
    yield plain("threshold_pair", "two equal memories", np.array([[0.6, 0.8], [0.6, 0.8]]),
                [(1.0, 0.5), (1.0, 1.0), (2.0, 1.0)])
    yield plain("threshold_simplex", "regular simplex: mu_perp > 1, formula not valid",
                banks.simplex(5))
    yield plain("threshold_centred", "rows sum to zero: A is not positive at the formula's alpha",
                banks.circulant(8, {1: 1, 2: 3, 3: 3, 4: 1}), [(2.0, 0.1), (2.0, 1.9)])
    yield plain("threshold_uneven", "row sums differ: formula does not apply",
                banks.gaussian(np.random.RandomState(151), 6, 9), pairs[:1])


def supercritical_cases():
    """Transients above alpha_crit: winner and horizon."""
    def case(name, about, Z, inputs):
        return Case(name, about, Z, np.zeros((1, Z.shape[1])), np.zeros((1, Z.shape[1])),
                    targets=[0], theory={"supercritical": inputs})

    rng = np.random.RandomState(161)
    Z = banks.gaussian(rng, 7, 12)
    u, s0 = np.round(rng.standard_normal(7), 6), np.round(0.1 * rng.standard_normal(7), 6)
    yield case("supercritical_wide", "N < d: one unstable mode, then several", Z,
               [dict(rise=1.1, beta=3.5, delta=0.01, tau=1.0, u=u),
                dict(rise=1.02, beta=2.0, delta=0.05, tau=0.5, u=u),
                dict(rise=1.15, beta=3.5, delta=0.01, tau=1.0, u=u, s0=s0),
                dict(rise=4.0, beta=3.5, delta=0.01, tau=1.0, u=u)])
    Z = banks.clustered(rng, 12, 5)
    u = np.round(rng.standard_normal(12), 6)
    yield case("supercritical_tall", "N > d: the unstable modes are the kernel of Z^T", Z,
               [dict(rise=1.2, beta=3.5, delta=0.01, tau=1.0, u=u),
                dict(rise=1.001, beta=3.5, delta=0.01, tau=2.0, u=u),
                dict(rise=1.2, beta=3.5, delta=0.01, tau=1.0, u="Zc"),
                dict(rise=1.2, beta=3.5, delta=0.01, tau=1.0, u=np.full(12, 1 / 12))])
    Z = banks.spread(rng, 9, 6, 0.5, 1.5)
    u = np.round(rng.standard_normal(9), 6)
    yield case("supercritical_norms", "unequal norms: omega in place of mu - 1", Z,
               [dict(rise=1.05, beta=3.5, delta=0.01, tau=1.0, u=u),
                dict(rise=2.5, beta=2.0, delta=0.02, tau=1.0, u=u)])
