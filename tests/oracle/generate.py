#!/usr/bin/python3
"""Writes every oracle case under data/: inputs as .npy, right answers as expect.json.

    /usr/bin/python3 tests/oracle/generate.py            regenerate data/ and check the identities
    /usr/bin/python3 tests/oracle/generate.py --check    regenerate elsewhere, compare byte for byte

README.md describes the schema.  Needs numpy and scipy only, on x86-64 (80-bit longdouble).
"""

import filecmp
import json
import os
import shutil
import sys
import tempfile

import numpy as np

sys.dont_write_bytecode = True

import banks
import hard
import selfcheck
from refmath import (LD, Bank, eigenvalues, error_units, gap, inverse, ld, p_lower_bound,
                     recall_coupled, recall_first, softmax_jacobian, solve)
from reftheory import (attention, horizon_limit, hopfield_bounds, hopfield_energy,
                       hopfield_fixed_point, hopfield_update, lambda_critical,
                       separation_threshold, settling, supercritical, transient)

HERE = os.path.dirname(os.path.abspath(__file__))


# --- JSON: repr-exact doubles, null for what is infinite or undefined, vectors on one line --------


def plain(x):
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(v) for v in x]
    if isinstance(x, np.ndarray):
        return [plain(v) for v in x]
    if x is None or isinstance(x, (bool, str, int)):
        return x
    if isinstance(x, np.integer):
        return int(x)
    x = float(x) + 0.0
    return x if np.isfinite(x) else None


def dump(x, depth=0):
    pad = " " * (depth + 1)
    if isinstance(x, dict):
        if all(not isinstance(v, (dict, list)) for v in x.values()):
            return json.dumps(x)
        rows = ["%s%s: %s" % (pad, json.dumps(k), dump(v, depth + 1)) for k, v in x.items()]
        return "{\n%s\n%s}" % (",\n".join(rows), " " * depth)
    if isinstance(x, list) and any(isinstance(v, dict) for v in x):
        rows = [pad + dump(v, depth + 1) for v in x]
        return "[\n%s\n%s]" % (",\n".join(rows), " " * depth)
    return json.dumps(x)


def write_json(folder, x):
    with open(os.path.join(folder, "expect.json"), "w") as f:
        f.write(dump(plain(x)) + "\n")


def write_npy(folder, **arrays):
    for name, x in arrays.items():
        if x is not None:
            np.save(os.path.join(folder, name + ".npy"), np.ascontiguousarray(x))


# --- alphas ---------------------------------------------------------------------------------------


def clear_of_zero(bank, alpha):
    """The next alpha, in steps of 1 %, at which no eigenvalue of A is within 0.02 of 0."""
    while np.min(np.abs(bank.eta(alpha))) < 0.02:
        alpha *= 1.01
    return alpha


def alphas_of(case, bank):
    """Named alphas as doubles.  `between` lies between 1/max n and alpha_crit where there is room,
    otherwise at 0.8 alpha_crit."""
    out = {"zero": 0.0}
    crit = bank.alpha_crit()
    if crit is not None:
        crit = float(crit)
        room = 1 / float(np.max(bank.n)) < crit * (1 - 1e-6)
        out["half"] = crit / 2
        out["between"] = (1 / float(np.max(bank.n)) + crit) / 2 if room else 0.8 * crit
        out["near"] = crit * (1 - 1e-6)
        out["at"] = crit
        out["above"] = clear_of_zero(bank, 1.25 * crit)
        out["far"] = clear_of_zero(bank, 3 * crit)
    if case.row is not None:
        n = float(bank.n[case.row])
        assert n == bank.n[case.row] and 1 / n < crit
        out["on_row"] = 1 / n                   # 1 - alpha n = 0 exactly
        out["off_row"] = (1 + 3e-12) / n        # 1 - alpha n = -3e-12
    out.update(case.alphas)
    return out


def free_context(A, W):
    """Smallest eigenvalues of A - W W^T and of I - W^T A^-1 W; for A > 0 their signs agree."""
    S = np.eye(W.shape[1], dtype=LD) - W.T @ solve(A, W)
    out = dict(free_context_lowest=eigenvalues(A - W @ W.T)[0],
               free_context_margin=eigenvalues((S + S.T) / 2)[0])
    selfcheck.free_context_signs(out)
    return out


def inspect_section(case, bank, alphas, x, Wc):
    rows = []
    for name, alpha in alphas.items():
        eta = bank.eta(alpha)
        row = dict(name=name, alpha=alpha, eta_min=eta[0], eta_max=eta[-1],
                   regime=bank.regime(alpha), negative=None, cond=None, solve=None,
                   free_context_lowest=None, free_context_margin=None)
        if row["regime"] != "critical":
            row["negative"] = int(np.sum(eta < 0))
            row["cond"] = np.max(np.abs(eta)) / np.min(np.abs(eta))
            if case.solves(name):
                row["solve"] = selfcheck.checked_solve(bank.A(alpha), ld(x))
        if name in ("zero", "half") and bank.N <= 100:
            row.update(free_context(bank.A(alpha), Wc))
        rows.append(row)
    return dict(norm_min=np.sqrt(np.min(bank.n)), norm_max=np.sqrt(np.max(bank.n)),
                mu_min=bank.mu[0], mu_max=bank.mu[-1], rank=bank.rank,
                alpha_crit=bank.alpha_crit(), alphas=rows)


# --- recall ---------------------------------------------------------------------------------------


def at_index(bank, beta, lam, b, out, mu):
    delta = gap(out["r"], mu)
    return dict(index=mu, p=out["p"][mu], log_p=out["log_p"][mu], gap=delta, gap_raw=gap(b, mu),
                gap_gate=gap(out["s"], mu), p_lower_bound=p_lower_bound(bank.N, beta, delta),
                above=int(np.sum(out["r"] > out["r"][mu] + LD(1e-14))))


def query_record(bank, alpha, beta, lam, A, inv, absU, q, b, out, target, coupled):
    p, log_p, r = out["p"], out["log_p"], out["r"]
    # Ties: rows whose score equals the best to 1e-14 are one another's equals here.
    tied = [int(i) for i in np.flatnonzero(r >= np.max(r) - LD(1e-14))]
    order = sorted(range(bank.N), key=lambda i: (-np.round(r[i] * LD(1e13)), i))[:5]
    rec = dict(winner=tied[0], tied=tied, top=[[i, p[i], log_p[i]] for i in order],
               neff_entropy=np.exp(-np.sum(np.where(p > 0, p * log_p, LD(0)))),
               neff_ipr=1 / np.sum(p * p),
               at_winner=at_index(bank, beta, lam, b, out, tied[0]),
               at_target=at_index(bank, beta, lam, b, out, target),
               unit=error_units(bank, alpha, beta, lam, A, inv, absU, q, out["s"], r, p, coupled))
    if coupled:
        rec.update(plain_steps=out["steps"], energy_start=out["energy_start"],
                   energy_end=out["energy_end"], fold_margin=out["fold_margin"],
                   local_contraction=out["local"])
    rec.update(p=p, s=out["s"], r=r, readout=bank.Z.T @ p)
    return rec


def recall_section(case, bank, alphas, settings, coupled):
    entries = []
    C = np.broadcast_to(case.C, (len(case.Q), case.C.shape[-1]))
    for name, beta, lam in settings:
        if name not in alphas:
            continue
        alpha = alphas[name]
        beta_, lam_ = LD(beta), LD(lam)
        A = bank.A(alpha)
        inv = inverse(A)
        eta = bank.eta(alpha)[0]
        entry = dict(alpha_name=name, alpha=alpha, beta=beta, **{"lambda": lam},
                     regime=bank.regime(alpha), eta_min=eta, contraction=None,
                     lambda_unique_max=None, queries=[])
        if eta > 0:
            entry["contraction"] = beta_ * lam_**2 / (2 * eta)
            entry["lambda_unique_max"] = np.sqrt(2 * eta / beta_)
        for q, c, target in zip(case.Q, C, case.targets):
            b = bank.Z @ ld(q)
            if case.W is not None:
                u, absU = ld(case.W) @ ld(c), np.abs(ld(case.W)) @ np.abs(ld(c))
            else:
                v = ld(c) if case.P is None else ld(case.P) @ ld(c)
                u, absU = bank.Z @ v, np.abs(bank.Z) @ np.abs(v)
            if coupled:
                out = recall_coupled(A, u, b, beta_, lam_)
                assert out["local"] < 0.9951, (case.name, name, "not a stable fixed point")
                selfcheck.coupled_identities(bank, A, u, b, beta_, lam_, out)
                if case.name != "f32_tall":
                    assert hard.is_robust(inv, u, b, beta, lam, out["p"]), (case.name, name)
            else:
                out = recall_first(A, u, b, beta_, lam_)
            entry["queries"].append(query_record(bank, alpha, beta_, lam_, A, inv, absU, q, b, out,
                                                 target, coupled))
        entries.append(entry)
    return entries


# --- theory ---------------------------------------------------------------------------------------


def supercritical_section(bank, requests):
    rows = []
    for req in requests:
        alpha = float(bank.alpha_crit()) * req["rise"]
        beta, delta, tau = req["beta"], req["delta"], req["tau"]
        if isinstance(req["u"], str):           # u = Z c: the critical modes are not driven
            c = np.round(np.random.RandomState(7).standard_normal(bank.d), 6)
            u = bank.Z @ ld(c)
            u = ld(u.astype(np.float64))
        else:
            u = ld(req["u"])
        s0 = ld(req.get("s0", np.zeros(bank.N)))
        out = supercritical(bank, alpha, beta, delta, tau, u, s0)
        row = dict(alpha=alpha, beta=beta, delta=delta, tau=tau, u=u, s0=s0, **out,
                   t_settled=None, t_gap=None)
        if out["t_star_B0"] is not None:
            row.update(settling(bank, alpha, beta, delta, tau, u, out["winner"],
                                20 * out["t_star_B0"]))
        row["transient"] = [dict(t=t, s=transient(bank, alpha, u, s0, tau, t)) for t in (0.5, 3.0)]
        selfcheck.supercritical_against_expm(bank, row)
        rows.append(row)
    limit = None
    req = requests[0]
    if not isinstance(req["u"], str):
        limit = dict(beta=req["beta"], delta=req["delta"], tau=req["tau"], u=ld(req["u"]),
                     alpha=bank.alpha_crit(),
                     **horizon_limit(bank, req["beta"], req["delta"], req["tau"], ld(req["u"])))
    return rows, limit


def threshold_section(bank, pairs):
    rows = []
    for beta, lam in pairs:
        row = dict(beta=beta, **{"lambda": lam}, **lambda_critical(bank, beta, lam))
        selfcheck.threshold_is_where_uniform_state_turns(bank, row)
        rows.append(row)
    return rows


def hopfield_case(root):
    folder = os.path.join(root, "hopfield")
    os.makedirs(folder)
    rng = np.random.RandomState(171)
    Z = np.round(banks.gaussian(rng, 9, 16) * np.linspace(0.9, 1.1, 9)[:, None], 9)
    Zl, rows = ld(Z), []
    for index, beta, noise in [(2, 40.0, 1e-4), (5, 25.0, 2e-3), (0, 8.0, 0.05), (7, 1.0, 0.3),
                               (8, 0.25, 1.0)]:
        xi = np.round(Z[index] + noise * rng.standard_normal(16), 9)
        star = hopfield_fixed_point(Zl, LD(beta), ld(xi))
        new = hopfield_update(Zl, LD(beta), ld(xi))
        norm = lambda v: np.sqrt(v @ v)
        row = dict(index=index, beta=beta, xi=xi, energy=hopfield_energy(Zl, LD(beta), ld(xi)),
                   energy_fixed=hopfield_energy(Zl, LD(beta), star), update=new, fixed_point=star,
                   one_step_error=norm(new - star), retrieval_error=norm(new - Zl[index]),
                   **hopfield_bounds(Zl, beta, index, ld(xi), star))
        selfcheck.hopfield_identities(Zl, LD(beta), ld(xi), row)
        rows.append(row)
    K, V, Q = (np.round(rng.standard_normal(s), 6) for s in ((9, 4), (9, 3), (5, 4)))
    write_npy(folder, Z=Z, K=K, V=V, Q=Q)
    write_json(folder, dict(schema=1, case="hopfield", about="Modern Hopfield energy, update, "
               "fixed point and bounds; attention softmax(Q K^T/sqrt d_k) V",
               bank=dict(n=9, d=16, dtype="float64", normalize=False), hopfield=rows,
               attention=attention(ld(Q), ld(K), ld(V))))


def scalars_case(root):
    folder = os.path.join(root, "scalars")
    os.makedirs(folder)
    sep = [dict(n=n, beta=beta, eps=eps, threshold=separation_threshold(n, beta, eps))
           for n, beta, eps in [(50, 3.5, 0.01), (2, 1.0, 0.5), (2, 1.0, 0.1), (1000000, 8.0, 1e-6),
                                (1, 2.0, 0.1), (5, 0.5, 0.9)]]
    bounds = [dict(n=n, beta=beta, gap=g, p_lower_bound=p_lower_bound(n, beta, LD(g)))
              for n, beta, g in [(50, 3.5, 1.5), (50, 3.5, -2.0), (2, 1.0, 0.0),
                                 (128000, 10.0, 90.0), (10, 100.0, -50.0), (1, 1.0, 0.0)]]
    rng = np.random.RandomState(181)
    weights = lambda k: ld(np.round(rng.gamma(0.5, size=k), 6))
    points = [[1.0], [0.5, 0.5], [1.0, 0.0, 0.0], [0.25] * 4, [0.5, 0.5, 0.0, 0.0, 0.0],
              [0.7, 0.2, 0.1], weights(6), weights(20), weights(20) * weights(20)]
    norms = []
    for p in points:
        p = ld((ld(p) / np.sum(ld(p))).astype(np.float64))
        norms.append(dict(p=p, norm=np.max(np.abs(eigenvalues(softmax_jacobian(p)))),
                          bound=2 * np.max(p * (1 - p))))
    selfcheck.scalar_identities(sep, bounds, norms)
    write_json(folder, dict(schema=1, case="scalars", about="separation thresholds, logistic "
               "bounds, spectral norms of diag p - p p^T", separation=sep, logistic=bounds,
               softmax_norm=norms))


# --- cases ----------------------------------------------------------------------------------------


def write_case(root, case):
    folder = os.path.join(root, case.name)
    os.makedirs(folder)
    bank = Bank(case.Z, case.normalize)
    alphas = alphas_of(case, bank)
    seed = sum(map(ord, case.name))
    x = np.round(np.random.RandomState(seed).standard_normal(bank.N), 9)
    if case.W is not None:
        Wc = ld(case.W)
    else:
        Wc = bank.Z if case.P is None else bank.Z @ ld(case.P)
    doc = dict(schema=1, case=case.name, about=case.about,
               bank=dict(n=bank.N, d=bank.d, d_c=int(case.C.shape[-1]), dtype=str(case.Z.dtype),
                         normalize=case.normalize, ties_exact=case.ties_exact),
               targets=case.targets, inspect=inspect_section(case, bank, alphas, x, Wc))
    if case.first:
        doc["first"] = recall_section(case, bank, alphas, case.first, False)
    if case.coupled:
        doc["coupled"] = recall_section(case, bank, alphas, case.coupled, True)
    theory = case.theory
    if "newton_lands" in theory:
        doc["newton_lands"] = theory["newton_lands"]
    if "fold" in theory:
        doc["fold"] = theory["fold"]
        selfcheck.fold_identities(bank, case, theory["fold"])
    if "lambda_critical" in theory:
        doc["lambda_critical"] = threshold_section(bank, theory["lambda_critical"])
    if "supercritical" in theory:
        doc["supercritical"], doc["horizon_limit"] = supercritical_section(
            bank, theory["supercritical"])
    selfcheck.bank_identities(bank, alphas)
    write_npy(folder, Z=case.Z, Q=case.Q, C=case.C, P=case.P, W=case.W, x=x)
    write_json(folder, doc)


def write_all(root):
    cases = list(banks.bank_cases()) + list(hard.traps()) + list(hard.creeps())
    cases += [hard.fold_case("fold_tall", 503, 10, 6, 0.8),
              hard.fold_case("fold_wide", 512, 6, 9, 0.8), hard.tight_pair()]
    cases += list(hard.threshold_cases()) + list(hard.supercritical_cases())
    for case in cases:
        write_case(root, case)
    hopfield_case(root)
    scalars_case(root)


def tree(root):
    return sorted(os.path.relpath(os.path.join(folder, f), root)
                  for folder, _, files in os.walk(root) for f in files)


def main(argv):
    if argv not in ([], ["--check"]):
        sys.exit("usage: generate.py [--check]")
    data = os.path.join(HERE, "data")
    with tempfile.TemporaryDirectory(dir=HERE) as scratch:
        fresh = os.path.join(scratch, "data")
        os.makedirs(fresh)
        write_all(fresh)
        files = tree(fresh)
        size = sum(os.path.getsize(os.path.join(fresh, f)) for f in files)
        if argv:
            known = tree(data)
            wrong = sorted(set(files) ^ set(known)) + [
                f for f in files if f in known
                and not filecmp.cmp(os.path.join(fresh, f), os.path.join(data, f), shallow=False)]
            for f in wrong:
                print("differs: data/" + f)
            print("%d files, %d differ" % (len(files), len(wrong)))
            return 1 if wrong else 0
        shutil.rmtree(data, ignore_errors=True)
        shutil.move(fresh, data)
    print("%d files, %d bytes, %d identities checked" % (len(files), size, selfcheck.count()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
