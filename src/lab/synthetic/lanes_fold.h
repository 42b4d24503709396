/* lanes_fold.h: where the branch of fixed points ends, a bundle of trials at a time.
 *
 * At a fixed point of the coupled map, F(s) = A s - u - lambda softmax(beta lambda s) = 0, with
 * Hessian M = A - lambda^2 beta (diag p - pp'). The branch starts at alpha = 0 and is followed by
 * Newton's method with a tangent predictor, M ds/dalpha = (1 - G) s for unit memories. A step is
 * accepted if every M in its iterations was positive definite (checked by its Cholesky factor), Newton
 * converged and p moved by at most 0.1; otherwise it is halved. So a smooth change is followed however
 * steep it is, down to slopes of 0.1 / tol, and a fold stops the steps. Lanes step independently. */

enum {
    FOLD_NEWTON = 8,
    FOLD_STEPS = 400,
    FOLD_LOOK = 8 /* columns between looks at whether to stop */
};

typedef struct fold_run {
    const cgam_bundle *g;
    cgam_lanes_fold *w;
    const vd *V, *mu;
    vd *G, *M;                              /* [n, n]; the lower triangles are used */
    vd *u, *s, *kept, *p, *p_kept, *x, *ds; /* [n] */
    vd *z;                                  /* [m] */
} fold_run;

/* Cholesky factor of M in place, four rows at a time; returns the lanes where all pivots are
 * positive. Other lanes go on with a pivot of 1, so that they stay finite. */
static vl fold_factor(const cgam_bundle *g, vd *M)
{
    const int64_t n = g->n;
    vl fine = {0};
    fine = ~fine;
    for (int64_t j = 0; j < n && !(j % FOLD_LOOK == 0 && cgam_bundle_stopped(g)); j++) {
        const vd *row = M + j * n;
        vd pivot = row[j];
        for (int64_t k = 0; k < j; k++) pivot -= row[k] * row[k];
        vl good = pivot > 1e-14;
        fine &= good;
        vd root = pick_f64(good, pivot, splat(1));
        for (int l = 0; l < LANES; l++) root[l] = sqrt(root[l]);
        M[j * n + j] = root;
        vd inverse = 1 / root;
        int64_t i = j + 1;
        for (; i + 4 <= n; i += 4) {
            vd *a = M + i * n, *b = a + n, *c = b + n, *d = c + n;
            vd sa = a[j], sb = b[j], sc = c[j], sd = d[j];
            for (int64_t k = 0; k < j; k++) {
                vd x = row[k];
                sa -= a[k] * x;
                sb -= b[k] * x;
                sc -= c[k] * x;
                sd -= d[k] * x;
            }
            a[j] = sa * inverse;
            b[j] = sb * inverse;
            c[j] = sc * inverse;
            d[j] = sd * inverse;
        }
        for (; i < n; i++) {
            vd sum = M[i * n + j];
            for (int64_t k = 0; k < j; k++) sum -= M[i * n + k] * row[k];
            M[i * n + j] = sum * inverse;
        }
    }
    return fine;
}

static void fold_solve(int64_t n, const vd *L, vd *x)
{
    for (int64_t i = 0; i < n; i++) {
        vd sum = x[i];
        for (int64_t k = 0; k < i; k++) sum -= L[i * n + k] * x[k];
        x[i] = sum / L[i * n + i];
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        x[i] /= L[i * n + i];
        for (int64_t k = 0; k < i; k++) x[k] -= L[i * n + k] * x[i];
    }
}

/* z = mu V's, so that G s = V z; and p at s. */
static void fold_point(fold_run *f)
{
    const int64_t n = f->g->n, m = f->g->m;
    vd top = f->s[0], sum = {0};
    double sharp = f->w->beta * f->w->lambda;
    analyse(n, m, f->V, f->s, f->z);
    for (int64_t k = 0; k < m; k++) f->z[k] *= f->mu[k];
    for (int64_t i = 1; i < n; i++) top = larger_f64(f->s[i], top);
    for (int64_t i = 0; i < n; i++) sum += f->p[i] = vexp_below((f->s[i] - top) * sharp);
    vd unit = 1 / sum;
    for (int64_t i = 0; i < n; i++) f->p[i] *= unit;
}

/* One Newton step at alpha; *change = its largest entry, relative to that of s where this is above
 * 1: near alpha_crit s is large and so is its rounding. Returns the lanes where M > 0. */
static vl fold_newton(fold_run *f, vd alpha, vd *change)
{
    const int64_t n = f->g->n, m = f->g->m;
    const double lambda = f->w->lambda, l2b = lambda * lambda * f->w->beta;
    fold_point(f);
    for (int64_t i = 0; i < n; i++) {
        vd Gs = across(m, f->V + i * m, f->z), weight = l2b * f->p[i];
        f->x[i] = f->u[i] + lambda * f->p[i] - (1 - alpha) * f->s[i] - alpha * Gs;
        for (int64_t j = 0; j <= i; j++)
            f->M[i * n + j] = alpha * f->G[i * n + j] + weight * f->p[j];
        f->M[i * n + i] += 1 - alpha - weight;
    }
    vl fine = fold_factor(f->g, f->M);
    f->w->factorizations++;
    fold_solve(n, f->M, f->x);
    vd most = splat(1);
    *change = (vd){0};
    for (int64_t i = 0; i < n; i++) {
        f->s[i] += f->x[i];
        *change = larger_f64(vabs(f->x[i]), *change);
        most = larger_f64(vabs(f->s[i]), most);
    }
    *change /= most;
    return fine;
}

/* ds = M^-1 (1 - G) s, with the factor of the last Newton step. */
static void fold_tangent(fold_run *f)
{
    const int64_t n = f->g->n, m = f->g->m;
    for (int64_t i = 0; i < n; i++) f->ds[i] = f->s[i] - across(m, f->V + i * m, f->z);
    fold_solve(n, f->M, f->ds);
}

static void fold_open(fold_run *f, const cgam_bundle *g, cgam_lanes_fold *w)
{
    const int64_t n = g->n, m = g->m, d = g->d;
    const vd *Z = (const vd *)g->Z, *c = (const vd *)g->c, *rest = (const vd *)g->rest;
    vd *at = (vd *)w->work;
    *f = (fold_run){.g = g, .w = w, .V = (const vd *)g->V, .mu = (const vd *)g->mu};
    vd **parts[] = {&f->u, &f->s, &f->kept, &f->p, &f->p_kept, &f->x, &f->ds};
    for (size_t j = 0; j < sizeof parts / sizeof *parts; j++, at += n) *parts[j] = at;
    f->z = at;
    f->G = at + m;
    f->M = f->G + n * n;
    for (int64_t i = 0; i < n && !(i % FOLD_LOOK == 0 && cgam_bundle_stopped(g)); i++) {
        f->u[i] = rest[i] + across(m, f->V + i * m, c);
        f->s[i] = f->u[i] + w->lambda / (double)n;
        for (int64_t j = 0; j <= i; j++) {
            vd sum = {0};
            for (int64_t k = 0; k < d; k++) sum += Z[i * d + k] * Z[j * d + k];
            f->G[i * n + j] = sum;
        }
    }
}

static void run_fold(const cgam_bundle *g, cgam_lanes_fold *w)
{
    fold_run run, *f = &run;
    const int64_t n = g->n;
    const size_t bytes = (size_t)n * sizeof(vd);
    fold_open(f, g, w);
    w->factorizations = 0;
    vd change, alpha = {0}, step = splat(0.1), alpha_max;
    vl fine = {0}, done = {0};
    memcpy(&alpha_max, w->alpha_max, sizeof alpha_max);
    fine = ~fine;
    for (int k = 0; k < 2 * FOLD_NEWTON && !cgam_bundle_stopped(g); k++)
        fine &= fold_newton(f, alpha, &change);
    vl ends = ~fine; /* unstable from the start: the branch ends at 0 */
    done = ends;
    fold_point(f);
    fold_tangent(f);
    memcpy(f->kept, f->s, bytes);
    memcpy(f->p_kept, f->p, bytes);
    for (int count = 0; count < FOLD_STEPS && any(~done) && !cgam_bundle_stopped(g); count++) {
        vd to = alpha + step;
        to = pick_f64(to > alpha_max, alpha_max, to);
        for (int64_t i = 0; i < n; i++) f->s[i] = f->kept[i] + (to - alpha) * f->ds[i];
        vl good = ~done, settled = {0};
        for (int k = 0; k < FOLD_NEWTON && any(good & ~settled) && !cgam_bundle_stopped(g); k++) {
            good &= fold_newton(f, to, &change);
            settled |= change < 1e-10;
        }
        good &= settled;
        fold_point(f);
        vd moved = {0};
        for (int64_t i = 0; i < n; i++) moved = larger_f64(vabs(f->p[i] - f->p_kept[i]), moved);
        good &= moved <= 0.1;
        alpha = pick_f64(good, to, alpha);
        step = pick_f64(good, 1.6 * step, 0.5 * step);
        vd longest = 0.1 * larger_f64(alpha, splat(1));
        step = pick_f64(step > longest, longest, step);
        /* lanes that turn back keep their tangent */
        for (int64_t i = 0; i < n; i++) f->x[i] = f->ds[i];
        fold_tangent(f);
        for (int64_t i = 0; i < n; i++) {
            f->ds[i] = pick_f64(good, f->ds[i], f->x[i]);
            f->kept[i] = pick_f64(good, f->s[i], f->kept[i]);
            f->p_kept[i] = pick_f64(good, f->p[i], f->p_kept[i]);
        }
        ends |= ~done & (step < w->tol) & (alpha < alpha_max);
        done |= ends | (alpha >= alpha_max);
    }
    memcpy(w->s, f->kept, bytes);
    for (int l = 0; l < LANES; l++) {
        w->alpha[l] = alpha[l];
        w->folds[l] = ends[l] ? 1 : 0;
    }
}
