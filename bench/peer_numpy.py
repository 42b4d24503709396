"""NumPy as a peer: attention over a bank, and coupled iterations by Woodbury, in the bank's f32 and in
the double in which cgam ends. See peer.py.

p = softmax(beta (b + lambda^2 A^-1 p)),  A^-1 p = D^-1 (p - alpha Z M^-1 Z' D^-1 p); M is made before.
"""
import peer
from peer import np

Z = peer.bank()
Q = Z[:64].copy()
alpha, lam, beta = 0.2, 0.25, 20.0
# between two memories, as in `cgam bench`
between = np.float32(0.7) * (Z[peer.n // 2] + np.float32(0.98) * Z[(peer.n // 2 + peer.n // 3) % peer.n])


def attention(q):
    r = q @ Z.T
    r -= r.max(axis=1, keepdims=True)
    np.exp(r, out=r)
    r /= r.sum(axis=1, keepdims=True)
    return r @ Z


def solver(bank):
    """A solve of some iterations on the bank as it is stored; what is made once is made here."""
    dtype = bank.dtype
    D = 1 - alpha * np.einsum("ij,ij->i", bank, bank)
    some = bank[:min(peer.n, 8192)]  # a stand-in for M: its time does not count, its size does
    M = np.eye(peer.d) + alpha * (some.T / D[:len(some)]).astype(np.float64) @ some
    Minv, q = np.linalg.inv(M).astype(dtype), between.astype(dtype)

    def solve(iterations):
        b = bank @ q
        p = np.exp(beta * (b - b.max()))
        p /= p.sum()
        for _ in range(iterations):
            x = p / D
            r = b + lam**2 * (x - alpha * (bank @ (Minv @ (bank.T @ x))) / D)
            p = np.exp(beta * (r - r.max()))
            p /= p.sum()
        return p
    return solve


works = {"attention_1": lambda: attention(Q[:1]), "attention_64": lambda: attention(Q)}
brief = solver(Z)
works["coupled_6"] = lambda: brief(6)
if Z.size <= 2**27:  # a copy in double has to fit
    wide = solver(Z.astype(np.float64))
    works["coupled_6_double"] = lambda: wide(6)
peer.report(**works)
