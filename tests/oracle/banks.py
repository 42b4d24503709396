"""The banks, queries and contexts of the oracle, each with its own fixed seed.

Question: which inputs exercise every branch of the gate operator and of recall?  Each function
returns a Case; the numbers it asks for are computed in generate.py.  RandomState is used because
numpy promises never to change its streams.
"""

from dataclasses import dataclass, field
from typing import Optional

import numpy as np

from refmath import LD


@dataclass
class Case:
    name: str
    about: str
    Z: np.ndarray                          # (N, d), stored as it is: f64, f32 or f16
    Q: np.ndarray                          # (B, d)
    C: np.ndarray                          # (B, d_c), or (d_c,) shared by all queries
    P: Optional[np.ndarray] = None         # (d, d_c); W = Z P
    W: Optional[np.ndarray] = None         # (N, d_c), instead of P
    normalize: bool = False
    ties_exact: bool = False               # all arithmetic is exact: ties must go to the lowest
    targets: list = field(default_factory=list)
    row: Optional[int] = None              # alpha = 1/n_row is wanted; n_row is a power of two
    alphas: dict = field(default_factory=dict)   # more alphas by name
    first: list = field(default_factory=list)    # (alpha name, beta, lambda)
    coupled: list = field(default_factory=list)
    theory: dict = field(default_factory=dict)

    def solves(self, name):
        """Is A^-1 x stored at this alpha?  Not for banks that serve one theorem; for the large f32
        bank only twice; at 1 - 1e-6 of alpha_crit only in f64."""
        if not self.first:
            return False
        if len(self.Z) > 100:
            return name in ("between", "above")
        return name != "near" or self.Z.dtype == np.float64


FIRST = [("zero", 1.0, 0.0), ("zero", 3.5, 1.0), ("half", 3.5, 2.0), ("between", 8.0, 1.0),
         ("near", 2.0, 0.25), ("above", 2.0, 1.0)]
COUPLED = [("zero", 1.0, 1.0), ("half", 3.5, 0.0), ("half", 3.5, 0.5), ("between", 2.0, 0.6),
           ("half", 4.0, 1.5)]


def unit(Z):
    Z = np.asarray(Z, dtype=LD)
    return (Z / np.sqrt(np.sum(Z * Z, axis=1))[:, None]).astype(np.float64)


def gaussian(rng, n, d):
    return unit(rng.standard_normal((n, d)))


def spread(rng, n, d, low, high):
    """Random directions, norms spread evenly on a logarithmic scale."""
    norms = np.exp(np.linspace(np.log(low), np.log(high), n))
    return np.round(gaussian(rng, n, d) * rng.permutation(norms)[:, None], 12)


def clustered(rng, n, d):
    """One cluster: centroid of norm 2, noise 0.3 per component, then normalised."""
    centroid = gaussian(rng, 1, d)[0] * 2
    return unit(centroid + 0.3 * rng.standard_normal((n, d)))


def probes(rng, Z, count=2, d_c=None):
    """Even queries are noisy memories with a noisy other memory as context; odd ones are random.

    Rounded to 2^-20 so that they are short numbers in any storage type.
    """
    Z = np.asarray(Z, dtype=np.float64)
    n, d = Z.shape
    size = np.sqrt(np.mean(np.sum(Z * Z, axis=1)))
    Q, C, targets = [], [], []
    for k in range(count):
        i, j = (7 * k + 3) % n, (11 * k + 5) % n
        noise = size / np.sqrt(d)
        if k % 2 == 0:
            Q.append(Z[i] + 0.5 * noise * rng.standard_normal(d))
            c = Z[j] + 0.3 * noise * rng.standard_normal(d)
        else:
            Q.append(size * gaussian(rng, 1, d)[0])
            c = size * gaussian(rng, 1, d)[0]
        C.append(c if d_c is None else rng.standard_normal(d_c) / np.sqrt(d_c))
        targets.append(i if k % 2 == 0 else j)
    short = lambda x: np.round(np.array(x) * 2**20) / 2**20
    return short(Q), short(C), targets


def simple(name, about, seed, make, first=FIRST, coupled=COUPLED, count=2, **more):
    rng = np.random.RandomState(seed)
    Z = make(rng)
    Q, C, targets = probes(rng, Z, count)
    return Case(name, about, Z, Q, C, targets=targets, first=list(first), coupled=list(coupled),
                **more)


def norms_bank(rng, n, d, low, high, row):
    """Widely spread norms; row `row` has squared norm exactly 4, the largest of the bank."""
    Z = spread(rng, n, d, low, high)
    Z[row] = 0
    Z[row, rng.permutation(d)[:4]] = [1, -1, 1, 1]
    return Z


def with_duplicates(rng, n, d, scale=None):
    Z = gaussian(rng, n, d)
    if scale is not None:
        Z = Z * np.linspace(scale[0], scale[1], n)[:, None]
    Z[n - 1] = Z[0]
    Z[n // 2] = Z[1]
    Z[n // 2 + 1] = Z[1]
    return Z


def with_zero(rng, n, d):
    Z = gaussian(rng, n, d)
    Z[4] = 0
    return Z


def signed_axes(rng, n, d):
    Z = np.zeros((n, d))
    Z[np.arange(n), rng.permutation(d)[:n]] = np.where(rng.random_sample(n) < 0.5, -1.0, 1.0)
    return Z


ROW = [("on_row", 2.0, 1.0), ("off_row", 2.0, 1.0)]
FREE = [("zero", 1.0, 0.0), ("quarter", 3.5, 1.0), ("unit", 2.0, 2.0), ("three", 2.0, 1.0)]
ANY = {"quarter": 0.25, "unit": 1.0, "three": 3.0}


def bank_cases():
    """One case per kind of bank."""
    yield simple("wide_unit", "N < d, unit memories; alpha = 1 makes D vanish", 101,
                 lambda r: gaussian(r, 12, 20), alphas={"unit": 1.0},
                 first=FIRST + [("unit", 2.0, 1.0)], coupled=COUPLED + [("unit", 2.0, 0.5)])
    yield simple("square_unit", "N = d, unit memories", 102, lambda r: gaussian(r, 16, 16))
    yield simple("tall_unit", "N > d, unit memories: alpha_crit = 1", 103,
                 lambda r: gaussian(r, 40, 10), first=FIRST[2:], coupled=COUPLED[2:])
    yield simple("wide_norms", "N < d, norms from 0.05 to 2; 1 - alpha n = 0 on row 6", 104,
                 lambda r: norms_bank(r, 14, 24, 0.05, 1.9, 6), row=6,
                 first=FIRST[1:] + ROW, coupled=COUPLED + ROW)
    yield simple("square_norms", "N = d, norms from 0.02 to 2; 1 - alpha n = 0 on row 0", 105,
                 lambda r: norms_bank(r, 18, 18, 0.02, 1.5, 0), row=0,
                 first=FIRST[2:] + ROW, coupled=COUPLED[1:] + ROW)
    yield simple("tall_norms", "N > d, norms from 0.05 to 2; 1 - alpha n = 0 on row 39", 106,
                 lambda r: norms_bank(r, 40, 10, 0.05, 0.8, 39), row=39,
                 first=FIRST[3:] + ROW, coupled=COUPLED[2:] + ROW)
    yield simple("clustered_tall", "one cluster, N > d", 107, lambda r: clustered(r, 30, 16),
                 first=FIRST[2:], coupled=COUPLED[2:])
    yield simple("clustered_wide", "one cluster, N < d", 108, lambda r: clustered(r, 20, 32),
                 first=FIRST[2:], coupled=COUPLED[2:])
    yield simple("duplicates_unit", "rows 0 = 17 and 1 = 9 = 10, N > d, unit", 109,
                 lambda r: with_duplicates(r, 18, 8), first=FIRST[2:])
    yield simple("duplicates_norms", "rows 0 = 11 and 1 = 6 = 7, N < d, unequal norms", 110,
                 lambda r: with_duplicates(r, 12, 20, (0.4, 1.3)), first=FIRST[1:])
    yield simple("zero_memory", "row 4 is zero", 111, lambda r: with_zero(r, 10, 6),
                 first=FIRST[1:])
    yield simple("single", "one memory: no gap, no critical alpha", 112,
                 lambda r: gaussian(r, 1, 5), alphas=ANY, first=FREE, coupled=FREE[:3])
    yield simple("single_long", "one memory with squared norm above 1/alpha", 113,
                 lambda r: 3 * gaussian(r, 1, 3), alphas=ANY, first=FREE[1:], coupled=FREE[1:3])
    yield simple("orthonormal", "signed axes: alpha_crit infinite, alpha = 1 makes D vanish", 114,
                 lambda r: signed_axes(r, 6, 8), alphas=ANY, first=FREE, coupled=FREE)
    yield simple("orthogonal_norms", "signed axes times powers of two: alpha_crit infinite", 115,
                 lambda r: signed_axes(r, 6, 6) * (2.0 ** np.arange(-3, 3))[:, None], alphas=ANY,
                 first=FREE[1:], coupled=FREE[1:])
    yield simple("f32_tall", "f32 storage, 300 x 40, nearly unit", 116,
                 lambda r: gaussian(r, 300, 40).astype(np.float32),
                 first=[FIRST[2], FIRST[5]], coupled=[COUPLED[2]], count=1)
    yield simple("f32_wide", "f32 storage, N < d, unequal norms", 117,
                 lambda r: spread(r, 15, 24, 0.2, 1.4).astype(np.float32),
                 first=FIRST[1:4] + FIRST[5:], coupled=COUPLED[2:])
    yield simple("f16_tall", "f16 storage, N > d", 118,
                 lambda r: spread(r, 24, 16, 0.5, 1.5).astype(np.float16),
                 first=FIRST[1:4] + FIRST[5:], coupled=COUPLED[2:])
    yield simple("larger_tall", "72 x 20, unit", 119, lambda r: gaussian(r, 72, 20),
                 first=[FIRST[2], FIRST[5]], coupled=[COUPLED[2], COUPLED[4]])
    yield simple("larger_wide", "48 x 60, unequal norms", 120,
                 lambda r: spread(r, 48, 60, 0.3, 1.3), first=[FIRST[3], FIRST[5]],
                 coupled=[COUPLED[3], COUPLED[4]])
    yield simple("normalized", "unequal norms, recalled with normalisation", 121,
                 lambda r: spread(r, 15, 9, 0.1, 6), normalize=True, first=FIRST[1:4],
                 coupled=COUPLED[2:4])
    yield ties()
    yield projection()
    yield gate_weights()
    yield shared_context()


def ties():
    """Small integers and alpha = 0: every sum is exact, so ties are ties."""
    Z = np.array([[1, 0, 2], [2, 1, 0], [0, 2, 1], [2, 1, 0], [2, 1, 0], [1, 1, 1]], float)
    Q = np.array([[2, 1, 0], [1, 1, 1], [0, 0, 0]], float)
    C = np.array([[0, 1, 1], [1, 1, 1], [0, 0, 0]], float)
    return Case("ties", "integer memories with tied scores, alpha = 0", Z, Q, C, ties_exact=True,
                targets=[4, 5, 0], first=[("zero", 1.0, 0.0), ("zero", 0.5, 1.0)])


def projection():
    rng = np.random.RandomState(131)
    Z = spread(rng, 22, 12, 0.4, 1.4)
    Q, C, targets = probes(rng, Z, 2, d_c=7)
    P = np.round(rng.standard_normal((12, 7)) / np.sqrt(7), 6)
    return Case("projection", "context of another width through P (d x d_c)", Z, Q, C, P=P,
                targets=targets, first=FIRST[2:], coupled=COUPLED[1:])


def gate_weights():
    rng = np.random.RandomState(132)
    Z = gaussian(rng, 20, 9)
    Q, C, targets = probes(rng, Z, 2, d_c=5)
    W = np.round(rng.standard_normal((20, 5)) / np.sqrt(5), 6)
    return Case("gate_weights", "gate weights W (N x d_c) not of the form Z P; the critical mode "
                "is driven", Z, Q, C, W=W, targets=targets, first=FIRST[2:], coupled=COUPLED[1:])


def shared_context():
    rng = np.random.RandomState(133)
    Z = gaussian(rng, 14, 10)
    Q, C, targets = probes(rng, Z, 3)
    return Case("shared_context", "one context (d_c) for three queries", Z, Q, C[0],
                targets=targets, first=[FIRST[2], FIRST[5]], coupled=[COUPLED[2], COUPLED[4]])


# --- banks for the theorems ----------------------------------------------------------------------


def circulant(n, weights):
    """Unit rows whose Gram matrix is circulant; weights[f] is the share of frequency f."""
    j = np.arange(n)
    total = sum(weights.values())
    cols = []
    for f, w in weights.items():
        a = np.sqrt(LD(w) / LD(total))
        x = 2 * LD(np.pi) * ((f * j) % n).astype(LD) / n
        cols += [a * np.cos(x)] if 2 * f % n == 0 else [a * np.cos(x), a * np.sin(x)]
    return unit(np.array(cols).T)


def equicorrelated(n, rho):
    """sqrt(rho) e_0 + sqrt(1 - rho) e_i: G = (1 - rho) I + rho 1 1^T."""
    Z = np.zeros((n, n + 1))
    Z[:, 0] = np.sqrt(rho)
    Z[np.arange(n), 1 + np.arange(n)] = np.sqrt(1 - rho)
    return unit(Z)


def simplex(n):
    """Regular simplex in n-1 dimensions: G 1 = 0."""
    return unit(helmert(n))


def helmert(n):
    """n x (n-1) with orthonormal columns, all orthogonal to 1; its rows are a regular simplex."""
    H = np.zeros((n, n - 1))
    for k in range(1, n):
        H[:k, k - 1] = 1 / np.sqrt(k * (k + 1))
        H[k, k - 1] = -k / np.sqrt(k * (k + 1))
    return H
