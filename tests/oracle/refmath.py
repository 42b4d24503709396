"""Plain dense mathematics of the oracle, in np.longdouble (64-bit mantissa, x86-64).

Question: what are the right numbers, if neither speed nor memory matters?  Every matrix here is
N x N and formed in full.  Nothing is taken from the C library: the formulas are those of the
specification of the two-stage memory, written out once more.

Why longdouble and own elimination instead of np.linalg: LAPACK's last bits depend on the BLAS that
happens to be installed, and near alpha_crit a double solve keeps only six digits.  numpy's
longdouble loops use no BLAS and no SIMD, so these results are good to about 1e-18 times the
condition number and are the same bytes on every x86-64 machine.  selfcheck.py holds them against
np.linalg and scipy.linalg.

Symbols: Z (N, d) memories, G = Z Z^T, n_mu = |z_mu|^2, omega_k the eigenvalues of G - diag G,
A(alpha) = I + alpha (G - diag G), eta_k = 1 + alpha omega_k, b = Z q, u = W c, p = softmax(beta r).
"""

import numpy as np

LD = np.longdouble
EPS64 = float(np.finfo(np.float64).eps)


def ld(x):
    return np.asarray(x, dtype=LD)


# --- linear algebra ---------------------------------------------------------------------------


def solve(A, B):
    """A^-1 B by Gaussian elimination with partial pivoting; B is (n,) or (n, m)."""
    A = ld(A).copy()
    vector = np.ndim(B) == 1
    B = ld(B).copy().reshape(A.shape[0], -1)
    n = A.shape[0]
    for k in range(n):
        row = k + int(np.argmax(np.abs(A[k:, k])))
        if A[row, k] == 0:
            raise ZeroDivisionError("singular matrix")
        if row != k:
            A[[k, row]] = A[[row, k]]
            B[[k, row]] = B[[row, k]]
        factor = A[k + 1 :, k] / A[k, k]
        A[k + 1 :, k:] -= factor[:, None] * A[k, k:]
        B[k + 1 :] -= factor[:, None] * B[k]
    for k in range(n - 1, -1, -1):
        B[k] = (B[k] - A[k, k + 1 :] @ B[k + 1 :]) / A[k, k]
    return B[:, 0] if vector else B


def inverse(A):
    return solve(A, np.eye(len(A), dtype=LD))


def cholesky(A):
    """Lower L with L L^T = A; raises ArithmeticError when A is not positive definite."""
    A = ld(A).copy()
    n = len(A)
    L = np.zeros((n, n), dtype=LD)
    for k in range(n):
        if not A[k, k] > 0:
            raise ArithmeticError("not positive definite")
        L[k:, k] = A[k:, k] / np.sqrt(A[k, k])
        A[k + 1 :, k + 1 :] -= L[k + 1 :, k][:, None] * L[k + 1 :, k]
    return L


def tournament(n):
    """Rounds of disjoint index pairs that meet every pair once (circle method)."""
    players = list(range(n)) + ([None] if n % 2 else [])
    half = len(players) // 2
    for _ in range(len(players) - 1):
        pairs = zip(players[:half], reversed(players[half:]))
        pairs = [(min(a, b), max(a, b)) for a, b in pairs if a is not None and b is not None]
        yield np.array([a for a, _ in pairs]), np.array([b for _, b in pairs])
        players = [players[0], players[-1]] + players[1:-1]


def rotate_rows(X, I, J, c, s):
    xi, xj = X[I], X[J]
    X[I], X[J] = c * xi - s * xj, s * xi + c * xj


def eigen(S, vectors=True):
    """Eigenvalues (ascending) and eigenvectors of a symmetric matrix by Jacobi rotations.

    A round rotates disjoint pairs at once: R S R^T is formed as R (R S)^T, which touches rows only.
    """
    S = ld(S).copy()
    n = len(S)
    rows = np.eye(n, dtype=LD)      # eigenvectors, transposed
    size = np.sqrt(np.sum(S * S))
    rounds = list(tournament(n)) if n > 1 else []
    for _ in range(40):
        off = np.abs(S - np.diag(np.diag(S)))
        if size == 0 or np.max(off) <= LD(2) ** -70 * size:
            break
        for I, J in rounds:
            apq = S[I, J]
            live = np.abs(apq) > LD(2) ** -90 * size
            if not np.any(live):
                continue
            I, J, apq = I[live], J[live], apq[live]
            theta = (S[J, J] - S[I, I]) / (2 * apq)
            sign = np.where(theta >= 0, LD(1), LD(-1))
            t = sign / (np.abs(theta) + np.sqrt(theta * theta + 1))
            c = 1 / np.sqrt(t * t + 1)
            c, s = c[:, None], (t * c)[:, None]
            rotate_rows(S, I, J, c, s)
            S = np.ascontiguousarray(S.T)
            rotate_rows(S, I, J, c, s)
            S[I, J] = 0
            S[J, I] = 0
            if vectors:
                rotate_rows(rows, I, J, c, s)
    else:
        raise ArithmeticError("Jacobi did not settle in 40 sweeps")
    order = np.argsort(np.diag(S), kind="stable")
    return np.diag(S)[order], rows[order].T


def eigenvalues(S):
    return eigen(S, vectors=False)[0]


# --- softmax and its relatives ----------------------------------------------------------------


def lse(x):
    top = np.max(x)
    return top + np.log(np.sum(np.exp(x - top)))


def log_softmax(x):
    return x - lse(x)


def softmax(x):
    e = np.exp(x - np.max(x))
    return e / np.sum(e)


def softmax_jacobian(p):
    """diag p - p p^T."""
    return np.diag(p) - p[:, None] * p


# --- bank and gate operator -------------------------------------------------------------------


class Bank:
    """A bank widened from its stored type, with the spectra of G and of G - diag G."""

    def __init__(self, Z, normalize=False):
        self.Z = ld(Z)
        if normalize:
            self.Z = self.Z / np.sqrt(np.sum(self.Z**2, axis=1))[:, None]
        self.N, self.d = self.Z.shape
        self.G = self.Z @ self.Z.T
        self.n = np.diag(self.G).copy()
        self.offdiag = self.G - np.diag(self.n)
        # G and Z^T Z share their nonzero eigenvalues; take the smaller matrix.
        mu = eigenvalues(self.G if self.N <= self.d else self.Z.T @ self.Z)
        mu = np.concatenate([np.zeros(self.N - len(mu), dtype=LD), mu])
        # Jacobi leaves about 1e-19 mu_max on a zero; no bank here has an eigenvalue of G between
        # that and 1e-10 mu_max, so the rank is not a matter of taste.
        small = mu < LD(1e-10) * mu[-1]
        assert not np.any(np.abs(mu[small]) > LD(1e-16) * mu[-1]), "ambiguous rank"
        self.mu = np.where(small, LD(0), mu)
        self.rank = int(self.N - np.sum(small))
        self.omega, self.V = eigen(self.offdiag)

    def alpha_crit(self):
        """-1 / omega_min, or None when no eigenvalue of G - diag G is negative."""
        return -1 / self.omega[0] if self.omega[0] < 0 else None

    def A(self, alpha):
        return np.eye(self.N, dtype=LD) + LD(alpha) * self.offdiag

    def eta(self, alpha):
        return 1 + LD(alpha) * self.omega

    def regime(self, alpha):
        crit = self.alpha_crit()
        if crit is None or alpha == 0:
            return "subcritical"
        off = 1 - LD(alpha) / crit
        if abs(off) <= LD(1e-9):
            return "critical"
        return "subcritical" if off > 0 else "supercritical"

    def spaces(self):
        """Eigenspaces of G - diag G, lowest first, as (omega, orthonormal basis)."""
        tol = LD(1e-13) * max(1, float(np.max(np.abs(self.omega))))
        first = 0
        for k in range(1, self.N + 1):
            if k == self.N or self.omega[k] - self.omega[k - 1] > tol:
                yield self.omega[first:k].mean(), self.V[:, first:k]
                first = k


def gap(x, mu):
    """min over nu != mu of x_mu - x_nu, None for one memory."""
    if len(x) < 2:
        return None
    return x[mu] - np.max(np.delete(x, mu))


def p_lower_bound(n, beta, delta):
    """1 / (1 + (n-1) exp(-beta delta)), and 1 for one memory."""
    if n < 2:
        return LD(1)
    x = LD(beta) * delta - np.log(LD(n - 1))
    return 1 / (1 + np.exp(-x)) if x > 0 else np.exp(x) / (1 + np.exp(x))


# --- recall -----------------------------------------------------------------------------------


def energy(A, u, b, beta, lam, s):
    """E(s) = s^T A s / 2 - u^T s - lse(beta (b + lam s)) / beta."""
    return s @ (A @ s) / 2 - u @ s - lse(beta * (b + lam * s)) / beta


def recall_first(A, u, b, beta, lam):
    s = solve(A, u)
    r = b + lam * s
    return dict(s=s, r=r, p=softmax(beta * r), log_p=log_softmax(beta * r))


def plain_iteration(inv, u, b, beta, lam, p=None, limit=20000, floor=LD(1e-17)):
    """p <- softmax(beta (b + lam A^-1 u + lam^2 A^-1 p)) until max|dp| <= floor.

    Returns p and the number of steps at which max|dp| first fell to 1e-12.
    """
    base = beta * (b + lam * (inv @ u))
    back = beta * lam * lam * inv
    p = softmax(base) if p is None else p
    steps = None
    for k in range(1, limit + 1):
        new = softmax(base + back @ p)
        change = np.max(np.abs(new - p))
        p = new
        if steps is None and change <= LD(1e-12):
            steps = k
        if change <= floor:
            return p, steps
    raise ArithmeticError("plain iteration: change %g after %d steps" % (change, limit))


def recall_coupled(A, u, b, beta, lam):
    beta, lam = LD(beta), LD(lam)
    inv = inverse(A)
    p, steps = plain_iteration(inv, u, b, beta, lam)
    s0, s = inv @ u, inv @ (u + lam * p)
    r = b + lam * s
    return dict(
        inv=inv, p=p, s=s, r=r, log_p=log_softmax(beta * r), steps=steps,
        energy_start=energy(A, u, b, beta, lam, s0), energy_end=energy(A, u, b, beta, lam, s),
        fold_margin=fold_margin(A, p, beta, lam), local=local_contraction(A, p, beta, lam))


def fold_margin(A, p, beta, lam):
    """Smallest eigenvalue of A - lam^2 beta (diag p - p p^T)."""
    return eigenvalues(A - LD(lam) ** 2 * LD(beta) * softmax_jacobian(p))[0]


def local_contraction(A, p, beta, lam):
    """Largest eigenvalue of beta lam^2 A^-1 (diag p - p p^T), as that of L^-1 J L^-T."""
    L = cholesky(A)
    half = solve(L, softmax_jacobian(p))
    S = solve(L, half.T)
    return LD(beta) * LD(lam) ** 2 * eigenvalues((S + S.T) / 2)[-1]


# --- how much an error of one unit roundoff can move a result -----------------------------------


def error_units(bank, alpha, beta, lam, A, inv, absU, q, s, r, p, coupled):
    """First-order bounds, per unit of relative error in the inner products, on s, r and p.

    If each inner product of length d is off by at most e (|x|.|y|), and A is applied with an error
    of that kind, then |ds| <= e * unit_s and so on (infinity norm).  absU is |W| |c|.
    """
    absZ, absinv = np.abs(bank.Z), np.abs(inv)
    gate = absU + LD(alpha) * (absZ @ (absZ.T @ np.abs(s))) + np.abs(s)
    if not coupled:
        ds = absinv @ gate
        dr = absZ @ np.abs(ld(q)) + lam * ds + np.abs(r)
        return dict(s=np.max(ds), r=np.max(dr), p=beta * np.max(dr))
    # dp = beta J (db + lam A^-1 dg + lam^2 A^-1 dp): solve for dp before taking absolute values.
    J = beta * softmax_jacobian(p)
    K = np.eye(bank.N, dtype=LD) - lam * lam * (J @ inv)
    T = np.abs(solve(K, J))
    drive = absZ @ np.abs(ld(q)) + lam * (absinv @ (gate + lam * p)) + np.abs(r)
    dp = T @ drive
    ds = absinv @ (gate + lam * p + lam * dp)
    return dict(s=np.max(ds), r=np.max(drive + lam * ds), p=np.max(dp))
