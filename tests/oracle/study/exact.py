"""One trial of each study, exported by `cgam study ... --only-trial K --json`, done again by NumPy and
SciPy from its memories, queries and contexts: 1e-10 where there is a closed form or a fixed point,
the tolerance of the integrator where there is a flow. Run by tests/system/study_exact.sh; argument:
the program.
"""

import json
import subprocess
import sys

import numpy as np
from scipy.integrate import solve_ivp

CGAM = sys.argv[1]
worst = {}


def run(*words):
    done = subprocess.run([CGAM, "study", *words, "--json"], capture_output=True, check=True)
    return json.loads(done.stdout)


def close(what, got, want, allowed):
    got, want = np.asarray(got, float), np.asarray(want, float)
    off = np.abs(got - want).max() if got.size else 0.0
    worst[what] = max(worst.get(what, 0.0), off)
    if not off <= allowed:
        i = int(np.abs(got - want).argmax())
        sys.exit(f"{what}: got {got.ravel()[i]!r}, want {want.ravel()[i]!r}, off by {off:g}, "
                 f"allowed {allowed:g}")


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def operator(Z, alpha):
    G = Z @ Z.T
    return np.eye(len(Z)) + alpha * (G - np.diag(np.diag(G)))


def lse(x):
    return x.max() + np.log(np.exp(x - x.max()).sum())


def separation(trial, *words):
    doc = run("separation", "--only-trial", str(trial), *words)
    p, Z = doc["parameters"], np.array(doc["Z"])
    A, beta, N = operator(Z, p["alpha"]), p["beta"], len(Z)
    close("separation: unit memories", np.linalg.norm(Z, axis=1), np.ones(N), 1e-14)
    for cell in doc["cells"]:
        q, c, t = np.array(cell["q"]), np.array(cell["c"]), cell["target"]
        b, u = Z @ q, Z @ c
        close("separation: b", cell["b"], b, 1e-12)
        for recall in cell["recalls"]:
            lam = recall["lambda"]
            s = np.linalg.solve(A, u)
            if p["mode"] == "coupled":
                r = b + lam * s
                for _ in range(20000):
                    s = np.linalg.solve(A, u + lam * softmax(beta * r))
                    new = b + lam * s
                    if np.abs(new - r).max() < 1e-13:
                        break
                    r = new
            r = b + lam * s
            if lam == 0 and p["mode"] == "coupled":
                s = np.linalg.solve(A, u)
            gap = r[t] - np.delete(r, t).max()
            log_p = beta * r[t] - lse(beta * r)
            energy = 0.5 * s @ A @ s - u @ s - lse(beta * (b + lam * s)) / beta
            close("separation: r", recall["r"], r, 1e-10)
            if lam > 0 or p["mode"] == "first":
                close("separation: s", recall["s"], s, 1e-10)
                close("separation: energy", recall["energy"], energy, 1e-9)
            close("separation: p", recall["p"], softmax(beta * r), 1e-10)
            close("separation: gap", recall["gap"], gap, 1e-10)
            close("separation: log p", recall["log_p"], log_p, 1e-9)
            bound = -np.logaddexp(0, np.log(N - 1) - beta * gap)
            close("separation: bound", recall["log_bound"], bound, 1e-9)
            assert recall["right"] == (r.argmax() == t)


def competition(trial, *words):
    doc = run("competition", "--only-trial", str(trial), *words)
    p, Z = doc["parameters"], np.array(doc["Z"])
    N, d = Z.shape
    mu, V = np.linalg.eigh(Z @ Z.T)
    if N > d:
        mu[: N - d] = 0
    u = np.full(N, 1 / N)
    c = V.T @ u
    lowest = mu < mu[0] + 1e-9
    rest = V[:, lowest] @ c[lowest]
    lead = np.sort(rest)[-1] - np.sort(rest)[-2]
    close("competition: lead", doc["lead"], lead, 1e-12)
    for at in doc["alphas"]:
        alpha = at["alpha"]
        eta, gamma = 1 - alpha * (1 - mu), alpha * (1 - mu[0]) - 1
        if gamma < -1e-9:
            f = 1 / eta
            assert at["t_end"] is None
        else:
            need = np.log((1 - p["delta"]) * (N - 1) / p["delta"]) / (p["beta"] * lead)
            t = min(np.log1p(gamma * need) / gamma if abs(gamma) > 1e-12 else need, p["t_cap"])
            close("competition: time", at["t_end"], t, 1e-8 * t)
            near = np.abs(eta) < 1e-13
            f = np.where(near, t, -np.expm1(-eta * t) / np.where(near, 1, eta))
        s = V @ (f * c)
        size = max(1, np.abs(s).max())
        energy = 0.5 * s @ operator(Z, alpha) @ s - u @ s
        close("competition: energy", at["energy"] / size**2, energy / size**2, 1e-10)
        close("competition: s", np.array(at["s"]) / size, s / size, 1e-10)
        close("competition: p", at["p"], softmax(p["beta"] * s), 1e-10 * size)


def fold(Z, lam, beta, most):
    """Where the branch of fixed points from alpha = 0 ends; None: not before most."""
    N, alpha, step = len(Z), 0.0, 0.02
    u = np.full(N, 1 / N)

    def newton(s, alpha):
        A = operator(Z, alpha)
        for _ in range(30):
            p = softmax(beta * lam * s)
            M = A - lam * lam * beta * (np.diag(p) - np.outer(p, p))
            if np.linalg.eigvalsh(M)[0] <= 0:
                return None
            ds = np.linalg.solve(M, u + lam * p - A @ s)
            s = s + ds
            if np.abs(ds).max() < 1e-9 * (1 + np.abs(s).max()):
                return s, p
        return None

    s, p = newton(u + lam / N, 0)
    while step > 1e-6 and alpha < most:
        to = min(alpha + step, most)
        found = newton(s, to)
        if found is None or np.abs(found[1] - p).max() > 0.05:
            step /= 2
            continue
        (s, p), alpha, step = found, to, min(step * 1.5, 0.02)
    return alpha if alpha < most else None


def folds(trials, *words):
    for trial in trials:
        doc = run("coupled", "--only-trial", str(trial), "--alphas", "0.1", *words)
        Z, beta = np.array(doc["Z"]), doc["parameters"]["beta"]
        for curve in doc["curves"]:
            want = fold(Z, curve["lambda"], beta, doc["alpha_crit"] * (1 - 1e-4))
            assert (want is None) == (curve["fold"] is None), (trial, want, curve["fold"])
            if want is not None:
                close("coupled: fold", curve["fold"], want, 3e-5)


def network_energy(A, u, b, lam, beta, s, r):
    """Of gates and retrieval; clamped layers add constants, which are left out."""
    p = softmax(beta * r)
    return 0.5 * s @ A @ s - u @ s - p @ (lam * s + b) + p @ r - lse(beta * r) / beta


def coupled(trial, *words):
    doc = run("coupled", "--only-trial", str(trial), *words)
    p, Z = doc["parameters"], np.array(doc["Z"])
    N, beta, start = len(Z), p["beta"], np.array(doc["start"])
    u = np.full(N, 1 / N)
    for curve in doc["curves"]:
        lam = curve["lambda"]
        for at in curve["points"]:
            alpha = at["alpha"]
            A = operator(Z, alpha)
            if lam > 0:
                s, r = np.array(at["s"]), np.array(at["r"])
                energy = network_energy(A, u, 0, lam, beta, s, r)
                size = 1 + np.abs(s).max() ** 2
                close("coupled: energy", at["energy"] / size, energy / size, 1e-10)
            if lam > 0 and alpha < doc["alpha_crit"] * (1 - 1e-9):
                Ainv, r = np.linalg.inv(A), start
                for k in range(1, 501):
                    new = lam * Ainv @ u + lam * lam * Ainv @ softmax(beta * r)
                    change, r = np.abs(new - r).max(), new
                    if change < 1e-8:
                        break
                if at["iterations"] == k:
                    close("coupled: r", at["r"], r, 1e-10 * max(1, np.abs(r).max()))
                    close("coupled: p", at["p"], softmax(beta * r), 1e-10)
                else:  # the change was 1e-8 to rounding
                    assert abs(at["iterations"] - k) <= 1
                    close("coupled: p, one iteration apart", at["p"], softmax(beta * r), 1e-6)
            elif lam > 0:
                def slope(t, y):
                    s, r = y[:N], y[N:]
                    return np.concatenate([u + lam * softmax(beta * r) - A @ s, lam * s - r])

                def decided(t, y):
                    return softmax(beta * y[N:]).max() - (1 - 1e-13)

                decided.terminal = True
                out = solve_ivp(slope, (0, p["t_cap"]), np.concatenate([np.zeros(N), start]),
                                method="LSODA", rtol=1e-9, atol=1e-11, events=decided)
                want = softmax(beta * out.y[N:, -1])
                close("coupled: transient's p", at["p"], want, 3e-4)
                # s and r belong to the time that is stated, and p to r
                end = solve_ivp(slope, (0, at["one_hot_at"]), np.concatenate([np.zeros(N), start]),
                                method="LSODA", rtol=1e-9, atol=1e-11).y[:, -1]
                size = max(1, np.abs(end).max())
                close("coupled: transient's s", s / size, end[:N] / size, 2e-3)
                close("coupled: transient's r", r / size, end[N:] / size, 2e-3)
                close("coupled: p of r", at["p"], softmax(beta * r), 1e-10)
        if curve["fold"] is not None:
            lo, hi = curve["fold"] - 2e-3, curve["fold"] + 2e-3
            peaks = []
            for alpha in (max(lo, 0), hi):
                Ainv, r = np.linalg.inv(operator(Z, alpha)), start
                for _ in range(5000):
                    r = lam * Ainv @ u + lam * lam * Ainv @ softmax(beta * r)
                peaks.append(softmax(beta * r).max())
            assert peaks[0] < 0.5 < peaks[1], (lam, curve["fold"], peaks)


def timescale(trial, *words):
    doc = run("timescale", "--only-trial", str(trial), *words)
    p, Z = doc["parameters"], np.array(doc["Z"])
    N, d = Z.shape
    A, beta, lam = operator(Z, p["alpha"]), p["beta"], p["lambda"]
    q, c = np.array(doc["q"]), np.array(doc["c"])
    u, free = Z @ c, p["query"] == "free"
    r0 = Z @ q if p["start"] == "query" else np.zeros(N)
    for flow in doc["flows"]:
        rho = flow["ratio"]

        def slope(t, y):
            s, r, x = y[:N], y[N : 2 * N], y[2 * N :]
            prob = softmax(beta * r)
            dq = (Z.T @ prob - x) / rho if free else np.zeros(d)
            return np.concatenate([u + lam * prob - A @ s, (lam * s + Z @ x - r) / rho, dq])

        times = [sample["t"] for sample in flow["samples"]]
        out = solve_ivp(slope, (0, times[-1]), np.concatenate([np.zeros(N), r0, q]),
                        method="LSODA", rtol=1e-9, atol=1e-11, t_eval=times)
        for sample, y in zip(flow["samples"], out.y.T):
            close("timescale: s", sample["s"], y[:N], 5e-4)
            close("timescale: r", sample["r"], y[N : 2 * N], 1e-3)
            close("timescale: p", sample["p"], softmax(beta * y[N : 2 * N]), 3e-4)
            x = y[2 * N :]
            energy = network_energy(A, u, Z @ x, lam, beta, y[:N], y[N : 2 * N])
            energy += 0.5 * x @ x if free else 0
            close("timescale: energy", sample["energy"], energy, 3e-3)
        energies = np.array([sample["energy"] for sample in flow["samples"]])
        assert np.diff(energies).max() <= 1e-9, np.diff(energies).max()
        assert flow["right"] == (out.y[N : 2 * N, -1].argmax() == doc["target"])


def plain_map(A, b, u, lam, beta, p):
    return softmax(beta * (b + lam * np.linalg.solve(A, u + lam * p)))


def settle(A, b, u, lam, beta, p):
    """Where the plain iteration ends, and E there."""
    for _ in range(200000):
        new = plain_map(A, b, u, lam, beta, p)
        done = np.abs(new - p).max() < 1e-14
        p = new
        if done:
            break
    s = np.linalg.solve(A, u + lam * p)
    return p, 0.5 * s @ A @ s - u @ s - lse(beta * (b + lam * s)) / beta


def distinct(ends):
    kept = []
    for p in ends:
        if all(np.linalg.norm(p - k) > 1e-4 for k in kept):
            kept.append(p)
    return len(kept)


def convergence(trial, *words):
    doc = run("convergence", "--only-trial", str(trial), *words)
    Z, q, c = (np.array(doc[k]) for k in "Zqc")
    for cell in doc["cells"]:
        A, lam, beta = operator(Z, cell["alpha"]), cell["lambda"], cell["beta"]
        b, u = Z @ q, Z @ c
        eta = np.linalg.eigvalsh(A)[0]
        assert cell["unique"] == (beta * lam**2 / (2 * eta) < 1), cell
        for start in cell["starts"]:
            flow, plain = np.array(start["p_flow"]), np.array(start["p_iterated"])
            assert start["flow"] == "steady" and start["iterations"] > 0, start
            left = np.linalg.norm(plain_map(A, b, u, lam, beta, flow) - flow)
            close("convergence: residual", start["residual"], left, 1e-10)
            close("convergence: a flow ends at a fixed point", left, 0, 1e-5)
            close("convergence: so does an iteration", plain_map(A, b, u, lam, beta, plain), plain, 1e-11)
        assert cell["limits"] == distinct([np.array(s["p_flow"]) for s in cell["starts"]]), cell
        assert cell["limits"] == 1 or not cell["unique"]


def annealing(trial, *words):
    doc = run("annealing", "--only-trial", str(trial), *words)
    Z, q, c, rng = *(np.array(doc[k]) for k in "Zqc"), np.random.default_rng(trial)
    A, b, N = operator(Z, doc["parameters"]["alpha"]), Z @ q, len(Z)
    for cell in doc["cells"]:
        lam, beta = cell["lambda"], cell["beta"]
        u = Z @ c if cell["context"] else np.zeros(N)
        first = softmax(beta * (b + lam * np.linalg.solve(A, u)))
        p, energy = settle(A, b, u, lam, beta, first)
        close("annealing: plain energy", cell["energy_plain"], energy, 1e-10)
        assert cell["winner_plain"] == p.argmax()
        starts = [first, *np.eye(N), *(softmax(rng.normal(size=N) * 4) for _ in range(40))]
        ends = [settle(A, b, u, lam, beta, start) for start in starts]
        close("annealing: nobody is lower", min(0, min(E for _, E in ends) - cell["energy_best"]), 0, 1e-10)
        assert cell["energy_best"] <= min(cell["energy_anneal"], cell["energy_plain"]) + 1e-12
        assert cell["minima"] >= distinct([p for p, _ in ends]), cell
        assert cell["minima"] <= N, cell


def entmax(x, order):
    """By bisection of the threshold; order 1 is softmax."""
    if order == 1:
        return softmax(x)
    y = (order - 1) * (x - x.max())
    low, high = -1.0, 0.0
    for _ in range(200):
        tau = 0.5 * (low + high)
        if (np.maximum(y - tau, 0) ** (1 / (order - 1))).sum() >= 1:
            low = tau
        else:
            high = tau
    p = np.maximum(y - low, 0) ** (1 / (order - 1))
    return p / p.sum()


def sparse(trial, *words):
    doc = run("sparse", "--only-trial", str(trial), *words)
    p = doc["parameters"]
    beta, lam = p["beta"], p["lambda"]
    for cell in doc["cells"]:
        Z, q, c = (np.array(cell[k]) for k in "Zqc")
        A, b, N = operator(Z, p["alpha"]), Z @ q, len(Z)
        for recall in cell["recalls"]:
            u, got, order = Z @ c if recall["context"] else np.zeros(N), np.array(recall["p"]), recall["order"]
            back = lam * got if p["mode"] == "coupled" else 0
            r = b + lam * np.linalg.solve(A, u + back)
            want = entmax(beta * r, order)
            close(f"sparse: p of order {order}", got, want, 1e-9)
            first, second = np.sort(r)[::-1][:2]
            close("sparse: gap", recall["gap"], first - second, 1e-9)
            assert recall["support"] == (want > 1e-12).sum() or np.abs(want[want < 1e-9]).max() > 0
            assert recall["exact"] == (order > 1 and beta * (first - second) >= 1 / (order - 1)), recall


separation(0)
separation(4711, "--context-noise", "vector", "--seed", "9")
separation(3, "--mode", "coupled", "--lambda", "0,0.5,1", "--sigma-q", "0.3,1")
separation(2, "--n", "5", "--d", "8", "--alpha", "0.4")
competition(0)
competition(17, "--t-cap", "1e9", "--alphas", "0.5,0.99,1,1.01,1.25")
competition(5, "--n", "7", "--d", "12")
coupled(0, "--lambda", "0.5,1,2", "--alphas", "0,0.2,0.38,0.7,0.84,0.9,0.97,1,1.05,1.4")
coupled(333, "--lambda", "1.5", "--alphas", "0.3,0.6,0.64,0.66,0.9,1.1")
coupled(2, "--n", "9", "--d", "12", "--lambda", "0.5", "--alphas", "0.5,1,1.2,1.6")
folds((0, 1, 7, 15), "--n", "8", "--d", "12", "--lambda", "0.3", "--seed", "5")
for trial in (0, 3):
    timescale(trial)
    timescale(trial, "--n", "8", "--d", "12")
timescale(1, "--ratio", "0.1,1,10")
timescale(2, "--ratio", "0.3,3", "--query", "free")
timescale(2, "--ratio", "0.3,3", "--query", "free", "--n", "5", "--d", "9")
timescale(3, "--ratio", "5", "--start", "query")
convergence(0, "--lambda", "0.5,2", "--beta", "1,8")
convergence(3, "--n", "4", "--d", "8", "--alpha", "0.4", "--starts", "5")
annealing(0, "--lambda", "0.5,1.5", "--beta", "2,8")
annealing(7, "--n", "5", "--d", "9", "--alpha", "0.2")
for trial in range(4):
    sparse(trial)
    sparse(trial, "--mode", "coupled", "--lambda", "0.5")
for what, off in worst.items():
    print(f"  {what:34s} largest difference {off:.1e}")
