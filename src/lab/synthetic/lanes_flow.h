/* lanes_flow.h: the flow of gates, retrieval and query, a bundle of trials at a time.
 *
 * Everything but p = softmax(beta r) is linear, and in the eigenvectors of G it is diagonal. So the
 * linear parts are propagated exactly, however stiff or growing, and only what p contributes is
 * treated by a Runge-Kutta method: ETDRK4 of Cox and Matthews (2002, eqs. 26-29). With k the part
 * of p in the kernel of G, p = k + V V'p, gates are s = y + V a and
 *     tau_s y' = rest + lambda k - eta0 y           kernel
 *     tau_s a' = c + lambda V'p - eta_k a           modes
 *     tau_r r' = lambda y + V (lambda a + root x) - r
 * r follows y at another rate; w = r - kappa y, kappa = lambda / (1 - eta0 tau_r / tau_s), does not
 * see y at all, so the growth of the kernel passes to r exactly (kappa = 0 near resonance, where
 * the two rates are alike and nothing grows). An evaluation is a softmax and two passes over V.
 *
 * Steps are t_end / 2^level on the grid of their own size, so that t_end and the sample times are
 * met exactly and the exponentials of a level are computed once. The step is controlled by the
 * largest difference between the two estimates of p at mid-step, in k and in V'p, which is of second
 * order; the error of the method is about that to the power 5/2 (tests/unit/lab_synthetic/test_flow.c
 * measures it against CVODE). `coarse` uses the exponential midpoint rule instead, at half the cost,
 * controlled by how far p moves in half a step.
 *
 * A lane is done when 1 - p_w <= 1e-12 and, with p held at that corner, the lead of w in r and in s
 * grows now and the lead in s at t_end is not below today's. */

enum { FLOW_LEVELS = 24, FLOW_PARTS = 6 };
/* The six numbers of a step for z = -rate h: what stays over h and h/2, and the weights. */
enum { STAY, STAY2, HALF, F1, F2, F3 };

typedef struct flow_level {
    bool ready;
    double y[FLOW_PARTS], r[FLOW_PARTS], x[FLOW_PARTS]; /* STAY .. F3 */
    vd *a;                                              /* [FLOW_PARTS, m] */
} flow_level;

/* phi_1 .. phi_3 at z, phi_k = (phi_{k-1} - 1/(k-1)!) / z. Below |z| = 1/2, where that cancels,
 * phi_3 by its series and the others back from it. */
INLINE void flow_phi(vd z, vd phi[3])
{
    vd series = splat(1.0 / 6402373705728000); /* 1/18! */
    double factorial = 6402373705728000;
    UNROLL
    for (int j = 18; j > 3; j--) {
        factorial /= j;
        series = series * z + 1 / factorial;
    }
    vl small = vabs(z) < 0.5;
    vd over = pick_f64(small, splat(1), z);
    vd one = (vexp(z) - 1) / over, two = (one - 1) / over, three = (two - 0.5) / over;
    phi[2] = pick_f64(small, series, three);
    phi[1] = pick_f64(small, z * phi[2] + 0.5, two);
    phi[0] = pick_f64(small, z * phi[1] + 1, one);
}

INLINE void flow_coefs(vd rate, double h, double tau, vd out[FLOW_PARTS])
{
    vd phi[3], phi_half[3], z = -rate * h;
    double unit = h / tau;
    flow_phi(z, phi);
    flow_phi(0.5 * z, phi_half);
    out[STAY] = z * phi[0] + 1;
    out[STAY2] = 0.5 * z * phi_half[0] + 1;
    out[HALF] = 0.5 * unit * phi_half[0];
    out[F1] = unit * (phi[0] - 3 * phi[1] + 4 * phi[2]);
    out[F2] = 2 * unit * (phi[1] - 2 * phi[2]);
    out[F3] = unit * (4 * phi[2] - phi[1]);
}

typedef struct flow_state {
    vd *y, *w, *r; /* [n] */
    vd *a, *x;     /* [m] */
    vd top;        /* largest r */
} flow_state;

/* What the currents need at a state. */
typedef struct flow_eval {
    vd *p, *k, *g; /* [n] p, its kernel part, the drive of w */
    vd *w;         /* [m] V'p */
} flow_eval;

typedef struct flow_run {
    const cgam_bundle *g;
    cgam_lanes_flow *w;
    const vd *V, *rest, *c, *eta, *root;
    vd growth;                 /* fastest rate at which anything grows, at least 0 */
    double rate_y, mix;        /* eta0 / tau_s; 1 with a kernel, else 0: then y stays zero */
    double kappa, drag, pull;  /* r = w + kappa y; drive of w per (rest + lambda k), per y */
    flow_state now, mid, half; /* half: the first estimate at mid-step, the others start there */
    flow_eval e0, ea, eb, ec;  /* ea, eb and ec share their p */
    vd *z, tail;       /* [m] scratch; sum of exp(beta (r - top)) - 1 of the last evaluation */
    flow_level *level; /* [FLOW_LEVELS], kept in the work area from call to call */
} flow_run;

static void flow_scalar(double rate, double h, double tau, double out[FLOW_PARTS])
{
    vd parts[FLOW_PARTS];
    flow_coefs(splat(rate), h, tau, parts);
    for (int j = 0; j < FLOW_PARTS; j++) out[j] = parts[j][0];
}

static void flow_prepare(flow_run *f, int level)
{
    flow_level *v = &f->level[level];
    if (v->ready) return;
    const cgam_lanes_flow *w = f->w;
    double h = ldexp(w->t_end, -level);
    const int64_t m = f->g->m;
    flow_scalar(f->rate_y, h, w->tau_s, v->y);
    flow_scalar(1 / w->tau_r, h, w->tau_r, v->r);
    flow_scalar(1 / w->tau_q, h, w->tau_q, v->x);
    for (int64_t k = 0; k < m; k++) {
        vd parts[FLOW_PARTS];
        flow_coefs(f->eta[k] / w->tau_s, h, w->tau_s, parts);
        for (int j = 0; j < FLOW_PARTS; j++) v->a[j * m + k] = parts[j];
    }
    v->ready = true;
}

static void flow_evaluate(flow_run *f, const flow_state *u, flow_eval *e)
{
    const int64_t n = f->g->n, m = f->g->m;
    const double lambda = f->w->lambda;
    vd sum;
    weigh(n, m, f->V, splat(f->w->beta), u->r, u->top, e->p, &sum, e->w);
    vd unit = 1 / sum;
    f->tail = sum - 1;
    for (int64_t k = 0; k < m; k++) {
        e->w[k] *= unit;
        f->z[k] = lambda * u->a[k];
    }
    for (int64_t k = 0; f->root && k < m; k++) f->z[k] += f->root[k] * u->x[k];
    for (int64_t i = 0; i < n; i++) {
        const vd *row = f->V + i * m;
        e->p[i] *= unit;
        e->k[i] = e->p[i] - across(m, row, e->w);
        e->g[i] =
            across(m, row, f->z) + f->pull * u->y[i] - f->drag * (f->rest[i] + lambda * e->k[i]);
    }
}

/* to = stay2 from + half N, with N from evaluation e, or 2 e - e0 when e0 is given. */
static void flow_stage(flow_run *f, const flow_level *v, const flow_state *from, const flow_eval *e,
                       const flow_eval *e0, flow_state *to)
{
    const int64_t n = f->g->n, m = f->g->m;
    const double lambda = f->w->lambda, kappa = f->kappa;
    const double yk = v->y[HALF] * f->mix, yp = yk * lambda, rk = v->r[HALF];
    vd top = splat(-INFINITY);
    for (int64_t i = 0; i < n; i++) {
        vd k = e->k[i], g = e->g[i];
        if (e0) {
            k = 2 * k - e0->k[i];
            g = 2 * g - e0->g[i];
        }
        to->y[i] = v->y[STAY2] * from->y[i] + yk * f->rest[i] + yp * k;
        to->w[i] = v->r[STAY2] * from->w[i] + rk * g;
        to->r[i] = to->w[i] + kappa * to->y[i];
        top = larger_f64(to->r[i], top);
    }
    to->top = top;
    for (int64_t k = 0; k < m; k++) {
        vd in = e->w[k];
        if (e0) in = 2 * in - e0->w[k];
        to->a[k] = v->a[STAY2 * m + k] * from->a[k] + v->a[HALF * m + k] * (f->c[k] + lambda * in);
        to->x[k] = from->x[k];
        if (f->w->query_free) to->x[k] = v->x[STAY2] * to->x[k] + v->x[HALF] * (f->root[k] * in);
    }
}

/* now = stay now + f1 N(e0) + f2 (N(ea) + N(eb)) + f3 N(ec). The weights add up to those of a
 * constant current, so with one evaluation in all four places this is the exponential midpoint
 * rule. */
static void flow_finish(flow_run *f, const flow_level *v, const flow_eval *e0, const flow_eval *ea,
                        const flow_eval *eb, const flow_eval *ec)
{
    const int64_t n = f->g->n, m = f->g->m;
    const double lambda = f->w->lambda, kappa = f->kappa;
    const double *cy = v->y, *cr = v->r, *cx = v->x;
    const double whole = f->mix * (cy[F1] + 2 * cy[F2] + cy[F3]), part = f->mix * lambda;
    vd top = splat(-INFINITY);
    for (int64_t i = 0; i < n; i++) {
        vd in = cy[F1] * e0->k[i] + cy[F2] * (ea->k[i] + eb->k[i]) + cy[F3] * ec->k[i];
        f->now.y[i] = cy[STAY] * f->now.y[i] + whole * f->rest[i] + part * in;
        f->now.w[i] = cr[STAY] * f->now.w[i] + cr[F1] * e0->g[i] + cr[F2] * (ea->g[i] + eb->g[i]) +
                      cr[F3] * ec->g[i];
        f->now.r[i] = f->now.w[i] + kappa * f->now.y[i];
        top = larger_f64(f->now.r[i], top);
    }
    f->now.top = top;
    for (int64_t k = 0; k < m; k++) {
        vd w0 = e0->w[k], wm = ea->w[k] + eb->w[k], wc = ec->w[k];
        vd a1 = v->a[F1 * m + k], a2 = v->a[F2 * m + k], a3 = v->a[F3 * m + k];
        f->now.a[k] = v->a[k] * f->now.a[k] + (a1 + 2 * a2 + a3) * f->c[k] +
                      lambda * (a1 * w0 + a2 * wm + a3 * wc);
        if (f->w->query_free)
            f->now.x[k] =
                cx[STAY] * f->now.x[k] + f->root[k] * (cx[F1] * w0 + cx[F2] * wm + cx[F3] * wc);
    }
}

/* Lanes of `one_hot` whose winner, with p held at its corner, keeps and widens its lead to t_end.
 * Uses mid and half as scratch. */
static vl flow_settled(flow_run *f, double t, vl one_hot)
{
    const int64_t n = f->g->n, m = f->g->m;
    const cgam_lanes_flow *w = f->w;
    vd rest_time = splat(w->t_end - t);
    /* stop at e^300: beyond it, the difference of two overflows would be meaningless */
    rest_time = pick_f64(f->growth * rest_time > 300, 300 / f->growth, rest_time);
    vd phi[3], z = -f->rate_y * rest_time;
    flow_phi(z, phi);
    vd stay = z * phi[0] + 1, gain = f->mix * rest_time * phi[0] / w->tau_s;
    vd *later = f->mid.y, *s = f->half.y, *rise = f->half.w, *dz = f->mid.a, *lz = f->half.a;
    vd *own = f->mid.x;
    vl winner = {0};
    vd top = f->now.r[0];
    for (int64_t i = 1; i < n; i++) {
        vl more = f->now.r[i] > top;
        winner = (winner & ~more) | (((vl){0} + i) & more);
        top = pick_f64(more, f->now.r[i], top);
    }
    for (int64_t k = 0; k < m; k++) {
        for (int l = 0; l < LANES; l++) own[k][l] = f->V[winner[l] * m + k][l];
        z = -f->eta[k] / w->tau_s * rest_time;
        flow_phi(z, phi);
        vd input = f->c[k] + w->lambda * own[k];
        lz[k] = (z * phi[0] + 1) * f->now.a[k] + rest_time / w->tau_s * phi[0] * input;
        dz[k] = input - f->eta[k] * f->now.a[k];
    }
    vd own_s = {0}, own_later = {0}, own_rise = {0};
    for (int64_t i = 0; i < n; i++) {
        const vd *row = f->V + i * m;
        vl here = winner == i;
        vd y = f->now.y[i], corner = pick_f64(here, splat(1), (vd){0}) - across(m, row, own);
        vd input = f->mix * (f->rest[i] + w->lambda * corner);
        s[i] = y + across(m, row, f->now.a);
        later[i] = stay * y + gain * (f->rest[i] + w->lambda * corner) + across(m, row, lz);
        rise[i] = input - f->rate_y * w->tau_s * y + across(m, row, dz);
        own_s = pick_f64(here, s[i], own_s);
        own_later = pick_f64(here, later[i], own_later);
        own_rise = pick_f64(here, rise[i], own_rise);
    }
    vl fine = one_hot;
    for (int64_t i = 0; i < n; i++) {
        vd lead = own_s - s[i];
        vl good = (w->lambda * lead >= top - f->now.r[i]) & (own_rise >= rise[i]) &
                  (own_later - later[i] >= lead);
        fine &= good | (winner == i);
    }
    return fine;
}

/* Gates s = y + V a. */
static void flow_gates(flow_run *f, vd *s)
{
    const int64_t n = f->g->n, m = f->g->m;
    for (int64_t i = 0; i < n; i++) s[i] = f->now.y[i] + across(m, f->V + i * m, f->now.a);
}

/* Copies the current state of some lanes to the output. Uses half as scratch. */
static void flow_hand_out(flow_run *f, vl lanes)
{
    vd *s = (vd *)f->w->s, *r = (vd *)f->w->r, *p = (vd *)f->w->p;
    flow_gates(f, f->half.y);
    for (int64_t i = 0; i < f->g->n; i++) {
        s[i] = pick_f64(lanes, f->half.y[i], s[i]);
        r[i] = pick_f64(lanes, f->now.r[i], r[i]);
        p[i] = pick_f64(lanes, f->e0.p[i], p[i]);
    }
}

static void flow_open(flow_run *f, const cgam_bundle *g, cgam_lanes_flow *w)
{
    const int64_t n = g->n, m = g->m;
    vd *at = (vd *)w->work, *eta = at;
    at += m;
    *f = (flow_run){.g = g,
                    .w = w,
                    .V = (const vd *)g->V,
                    .rest = (const vd *)g->rest,
                    .c = (const vd *)g->c,
                    .root = (const vd *)w->root,
                    .eta = eta,
                    .mix = g->kernel ? 1 : 0,
                    .rate_y = (g->kernel ? 1 - w->alpha : 1) / w->tau_s};
    double l0 = f->rate_y * w->tau_r, kappa = w->lambda / (1 - l0);
    if (!g->kernel || l0 > 0.5) kappa = 0;
    f->kappa = kappa;
    f->drag = kappa * w->tau_r / w->tau_s;
    f->pull = kappa == 0 ? w->lambda : 0;
    flow_state *states[] = {&f->now, &f->mid, &f->half};
    flow_eval *evals[] = {&f->e0, &f->ea, &f->eb, &f->ec};
    for (int j = 0; j < 3; j++, at += 3 * n + 2 * m)
        *states[j] = (flow_state){
            .y = at, .w = at + n, .r = at + 2 * n, .a = at + 3 * n, .x = at + 3 * n + m};
    for (int j = 0; j < 4; j++, at += 2 * n + m)
        *evals[j] = (flow_eval){.k = at, .g = at + n, .w = at + 2 * n};
    f->e0.p = at;
    f->ea.p = f->eb.p = f->ec.p = at + n;
    at += 2 * n;
    f->z = at;
    at += m;
    _Static_assert(FLOW_LEVELS * sizeof(flow_level) <= CGAM_FLOW_LEVEL_SIZE * sizeof(double),
                   "cgam_lanes_flow_size reserves too little");
    f->level = (flow_level *)(void *)(at + FLOW_LEVELS * FLOW_PARTS * m);
    if (!w->same)
        for (int j = 0; j < FLOW_LEVELS; j++)
            f->level[j] = (flow_level){.a = at + j * FLOW_PARTS * m};
    f->growth = splat(fmax(-f->rate_y, 0));
    for (int64_t k = 0; k < m; k++) {
        eta[k] = 1 - w->alpha * (1 - ((const vd *)g->mu)[k]);
        f->growth = larger_f64(-eta[k] / w->tau_s, f->growth);
        f->now.a[k] = (vd){0};
        f->now.x[k] = (vd){0};
        if (w->x) f->now.x[k] = ((const vd *)w->x)[k];
    }
    memset(f->now.y, 0, (size_t)n * sizeof(vd));
    memcpy(f->now.r, g->start, (size_t)n * sizeof(vd));
    memcpy(f->now.w, g->start, (size_t)n * sizeof(vd)); /* y = 0 */
    f->now.top = f->now.r[0];
    for (int64_t i = 1; i < n; i++) f->now.top = larger_f64(f->now.r[i], f->now.top);
}

static void run_flow(const cgam_bundle *g, cgam_lanes_flow *w)
{
    flow_run run, *f = &run;
    flow_open(f, g, w);
    const int64_t n = g->n, last = (int64_t)1 << (FLOW_LEVELS - 1);
    vl active = mask_of(w->active);
    /* far from saturation p hardly moves and would allow any step; h_rate times the slower time
     * constant, or the time of growth, keeps the feedback of small differences exact */
    double fastest = 0;
    for (int l = 0; l < LANES; l++)
        if (active[l]) fastest = fmax(fastest, f->growth[l]);
    fastest += 1 / fmax(w->tau_s, w->tau_r);
    int level, coarsest = 0;
    while (coarsest < FLOW_LEVELS - 1 && ldexp(w->t_end, -coarsest) * fastest > w->h_rate)
        coarsest++;
    level = coarsest + (w->coarse ? 1 : 3); /* carefully at first: nothing is known yet */
    if (level > FLOW_LEVELS - 1) level = FLOW_LEVELS - 1;
    for (int l = 0; l < LANES; l++) w->ended[l] = w->t_end;
    w->steps = w->turned_back = 0;
    int64_t tick = 0, sample = 0;
    flow_evaluate(f, &f->now, &f->e0);
    while (tick < last && any(active) && !cgam_bundle_stopped(g)) {
        int64_t stop = last;
        if (sample < w->samples) stop = llrint(w->at[sample] / w->t_end * (double)last);
        /* the largest step that is allowed, on its own grid, and does not pass the stop */
        while (level < FLOW_LEVELS - 1 && ((last >> level) > stop - tick || tick % (last >> level)))
            level++;
        const flow_level *v = &f->level[level];
        flow_prepare(f, level);
        flow_stage(f, v, &f->now, &f->e0, NULL, &f->half);
        flow_evaluate(f, &f->half, &f->ea);
        const flow_eval *first = &f->ea, *second = &f->e0; /* their difference controls the step */
        if (!w->coarse) {
            flow_stage(f, v, &f->now, &f->ea, NULL, &f->mid);
            flow_evaluate(f, &f->mid, &f->eb);
            second = &f->eb;
        }
        vd off = {0};
        for (int64_t i = 0; i < n && g->kernel; i++)
            off = larger_f64(vabs(first->k[i] - second->k[i]), off);
        for (int64_t k = 0; k < g->m; k++) off = larger_f64(vabs(first->w[k] - second->w[k]), off);
        off = pick_f64(active, off, (vd){0});
        if (any(off > w->tol) && level < FLOW_LEVELS - 1) {
            level++;
            w->turned_back++;
            continue;
        }
        if (w->coarse) {
            flow_finish(f, v, &f->ea, &f->ea, &f->ea, &f->ea);
        } else {
            flow_stage(f, v, &f->half, &f->eb, &f->e0, &f->mid);
            flow_evaluate(f, &f->mid, &f->ec);
            flow_finish(f, v, &f->e0, &f->ea, &f->eb, &f->ec);
        }
        tick += last >> level;
        w->steps++;
        flow_evaluate(f, &f->now, &f->e0);
        double t = ldexp(w->t_end, 1 - FLOW_LEVELS) * (double)tick;
        if (w->stop_one_hot) {
            vl one_hot = active & (f->tail <= 1e-12);
            if (any(one_hot)) one_hot = flow_settled(f, t, one_hot);
            if (any(one_hot)) {
                for (int l = 0; l < LANES; l++)
                    if (one_hot[l]) w->ended[l] = t;
                flow_hand_out(f, one_hot);
                active &= ~one_hot;
            }
        }
        if (tick == stop && sample < w->samples) {
            flow_gates(f, f->half.y);
            w->seen(w->user, sample++, (const double *)f->half.y, (const double *)f->now.r,
                    (const double *)f->e0.p, (const double *)f->now.x);
        }
        /* twice the step makes four times the difference, twice when it is of first order */
        double allowed = w->tol / (w->coarse ? 3 : 6);
        if (level > coarsest && !any(off > allowed) && tick % (last >> (level - 1)) == 0) level--;
    }
    flow_hand_out(f, active);
}
