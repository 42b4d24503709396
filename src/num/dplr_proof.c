/* dplr_proof.c: T = diag(D) + a Z Z' + sigma w w' with bounds of its rounding errors, and proofs that its eigenvalues
 * are above a number (docs/theorems/rounding.md).
 *
 * As a matrix: Cholesky's factorisation of T - x I, lowered by a bound of the rounding errors, must complete (Rump
 * 2006). Without one, n > d: rows R with a pivot D_i - x > 0 are eliminated, M = I + B_R' D_R^-1 B_R is positive
 * definite by construction, and T > x I holds if and only if
 *     Q = D_S + B_S M^-1 B_S' > 0 ,     S the other rows, at most k of them.
 * For any Y whatever, B M^-1 B' >= B Y + Y'B' - Y'M Y, with an error that is quadratic in
 * Y - M^-1 B'. So only the products need error bounds, not the solve. */
#include "num/dplr_parts.h"
#include "num/eigen.h"
#include "num/ranks.h"
#include "num/rounding.h"

#include <string.h>

enum { CAREFUL = 1 << 17 }; /* up to this many products of pairs use twice the precision */
static const double PIVOT = 16;
static const double CLOSE = 0x1p-46; /* beyond that, error limit of an entry, */
static const double ROW = 0x1p-33;   /* and of a row of entries, in plain precision */
static const double NEXT = 30;       /* factor from one floor to the next lower one */

/* Error of a product of two rows, besides that of its sum. */
static double scale_error(const cgam_rows *Z) { return Z->scale ? cgam_norm_error(Z->d) : 0; }

/* Bound of what underflow may take from a |zeta_i|^2, or from another sum of products with a row that is not 0, times
 * a. */
static double underflow_of(const cgam_dplr_spec *s, double norm2)
{
    return norm2 > 0 ? cgam_underflow(s->a * (double)s->Z->d) : 0;
}

/* Returns the entry of a row that is here or was brought here. */
static double entry_at(const cgam_dplr_spec *s, const double *x, int64_t i)
{
    return *cgam_rows_entries(s->Z, x, i);
}

double cgam_dplr_diagonal(const cgam_dplr_spec *s, int64_t i, double *error)
{
    double w = s->w ? entry_at(s, s->w, i) : 0, norm2 = entry_at(s, s->norm2, i),
           load = s->a * norm2;
    double value, off;
    if (s->D) {
        double D = entry_at(s, s->D, i);
        value = D + load + s->sigma * w * w;
        off = 4 * CGAM_U * (fabs(D) + load + s->sigma * w * w) + load * cgam_norm_error(s->Z->d) +
              underflow_of(s, norm2);
    } else {
        double spread = s->sigma * w * (1 - w);
        value = s->level - spread;
        off = spread != 0 ? 4 * CGAM_U * (fabs(spread) + fabs(value)) + CGAM_TINY : 0;
    }
    if (error) *error = off * CGAM_SLACK;
    return value;
}

double cgam_dplr_pivot(const cgam_dplr_spec *s, int64_t i, double *error)
{
    double norm2 = entry_at(s, s->norm2, i), load = s->a * norm2;
    double take = s->w ? s->sigma * entry_at(s, s->w, i) : 0;
    if (s->D) {
        if (error) *error = 0;
        return entry_at(s, s->D, i);
    }
    if (error)
        *error = (4 * CGAM_U * (fabs(s->level) + take + load) + load * cgam_norm_error(s->Z->d)) *
                     CGAM_SLACK +
                 underflow_of(s, norm2) + CGAM_TINY;
    return s->level - take - load;
}

static bool is_careful(const cgam_rows *Z)
{
    return (double)Z->n * (double)Z->n * (double)Z->d <= CAREFUL;
}

/* Replaces dsyrk's <zeta_i, zeta_j> by one in twice the precision; *error as well. */
static double dot_carefully(const cgam_rows *Z, const double *row, int64_t j, double *other,
                            double *error)
{
    cgam_rows_get(Z, j, 1, other);
    return cgam_dot_twice(Z->d, row, other, error);
}

cgam_status cgam_dplr_matrix(cgam_env *env, const cgam_dplr_spec *s, bool twice, double *T,
                             double *error)
{
    const cgam_rows *Z = s->Z;
    int64_t n = Z->n, d = Z->d;
    double *rows = cgam_alloc(env, (size_t)(2 * d + 2 * n), sizeof *rows);
    if (!rows) return cgam_fail_nomem(env, "rows of a matrix");
    double *other = rows + d, *size = other + d, *off = size + n; /* |zeta|, sums of errors */
    bool all = is_careful(Z);
    double gamma = cgam_gamma((double)d + 2), factor = scale_error(Z);
    double lost = cgam_underflow(s->a * 5 * (double)d), close = twice ? CLOSE : ROW / (double)n;
    cgam_status status = CGAM_OK;
    if (s->a > 0 && !all) status = cgam_rows_gram_outer(env, Z, T);
    for (int64_t i = 0; i < n; i++) {
        size[i] = cgam_length_above(d, s->norm2[i]);
        off[i] = 0;
    }
    for (int64_t i = 0; i < n && status == CGAM_OK; i++) {
        double e, wi = s->w ? s->sigma * s->w[i] : 0, *row = T + i * n;
        if (cgam_interrupted(env)) status = CGAM_E_INTERRUPTED;
        if (s->a > 0) cgam_rows_get(Z, i, 1, rows);
        for (int64_t j = 0; j < i; j++) {
            double lengths = size[i] * size[j], value = 0;
            e = 0;
            if (s->a > 0) {
                bool again = all || s->a * gamma * lengths > close;
                double dot = again ? dot_carefully(Z, rows, j, other, &e) : row[j];
                value = s->a * dot;
                e = s->a * (e + ((again ? 0 : gamma) + factor) * lengths) +
                    2 * CGAM_U * fabs(value) + lost; /* a may be a rounded product itself */
            }
            double outer = s->w ? wi * s->w[j] : 0;
            row[j] = value + outer;
            if (outer != 0) e += CGAM_U * (3 * outer + fabs(row[j]));
            off[i] += e;
            off[j] += e;
        }
        row[i] = cgam_dplr_diagonal(s, i, &e);
        off[i] += e;
    }
    *error = 0; /* the row-sum norm of the errors bounds their spectral norm */
    for (int64_t i = 0; i < n; i++) *error = fmax(*error, off[i] * CGAM_SLACK);
    cgam_free(env, rows);
    return status;
}

/* ---- Above a number --------------------------------------------------------------------------- */

/* |X|_F of an array, as an upper bound. */
static double frobenius(int64_t count, const double *X)
{
    double total = 0;
    for (int64_t i = 0; i < count; i++) total += X[i] * X[i];
    return cgam_widened(sqrt(total), 0x1p-19);
}

/* B of the listed rows, [count, k]. */
static void border_rows(const cgam_dplr_spec *s, int64_t count, const int64_t *index, double *B)
{
    int64_t k = cgam_dplr_columns(s), kz = s->a > 0 ? s->Z->d : 0;
    for (int64_t r = 0; r < count; r++) {
        if (kz) cgam_rows_get(s->Z, index[r], 1, B + r * k);
        for (int64_t j = 0; j < kz; j++) B[r * k + j] *= sqrt(s->a);
        if (k > kz) B[r * k + kz] = sqrt(s->sigma) * entry_at(s, s->w, index[r]);
    }
}

typedef struct small {
    int64_t k, m;
    int64_t *rows;            /* [k + 1] S */
    double *weight;           /* [n] 1 / (D_i - x), 0 on S */
    double *M, *factored;     /* [k, k] */
    double *B, *Y, *MY;       /* [m, k] */
    double *Q;                /* [m, m] */
    double error;             /* of M, in the spectral norm */
    double pivots;            /* of the pivots of S */
    double floor, off;        /* the floor of all this, and the error of Q */
    bool judged;              /* Q exists */
    bool steady;              /* M would be nearly the same at a slightly lower floor */
    double *trial;            /* [m, m] buffer, */
    double *scratch, *buffer; /* and the memory of all arrays */
} small;

/* Splits the rows. Returns false if more than k pivots are not safely positive, which proves nothing. A pivot is safe
 * above `safe` of its load, which keeps M small, or above PIVOT times its error bound. */
static cgam_status split_at(cgam_env *env, const cgam_dplr_spec *s, double floor, double safe,
                            small *w, bool *split)
{
    double e;
    int64_t mine = 0;
    void *all;
    *split = false;
    double products = 8 * CGAM_U + cgam_gamma((double)s->Z->n) + scale_error(s->Z);
    double sum, unsafe, pivots;
    CGAM_REDUCE(s->Z, i, CGAM_SUM(sum), CGAM_SUM(unsafe), CGAM_MAX(pivots)) {
        double D = cgam_dplr_pivot(s, i, &e) - floor;
        e += CGAM_U * fabs(D);
        double load = s->a * s->norm2[i] + (s->w ? s->sigma * s->w[i] * s->w[i] : 0);
        w->weight[i] = 0;
        if (D - e > fmax(safe * load, PIVOT * e)) {
            w->weight[i] = 1 / D;
            /* relative: of 1 / D, and of a sum of n */
            sum += load / D * (e / (D - e) + products);
            continue;
        }
        unsafe += 1;
        pivots = fmax(pivots, e);
        if (mine < w->k) w->rows[mine++] = i;
    }
    cgam_status status = cgam_rows_status(s->Z);
    if (status != CGAM_OK || unsafe > (double)w->k) return status;
    status = cgam_rows_collect(env, s->Z, sizeof *w->rows, mine, w->rows, &w->m, &all);
    if (status != CGAM_OK) return status;
    memcpy(w->rows, all, (size_t)w->m * sizeof *w->rows);
    cgam_free(env, all);
    w->pivots = fmax(pivots, 0);
    w->error = sum * CGAM_SLACK * (1 + cgam_norm_error(s->Z->d)) + CGAM_U;
    *split = true;
    return CGAM_OK;
}

/* Norms that are equal except for f32 rounding give pivots near 1e-8 of the load, of which all but k must be safe. */
static cgam_status split_rows(cgam_env *env, const cgam_dplr_spec *s, double floor, small *w,
                              bool *split)
{
    cgam_status status = split_at(env, s, floor, 1e-3, w, split);
    w->steady = *split;
    return status == CGAM_OK && !*split ? split_at(env, s, floor, 0, w, split) : status;
}

/* Forms M = I + B_R' D_R^-1 B_R, first its lower triangle, then all of it. */
static cgam_status form_M(cgam_env *env, const cgam_dplr_spec *s, small *w)
{
    double *scratch = w->scratch;
    int64_t k = w->k, kz = s->a > 0 ? s->Z->d : 0;
    cgam_status status = CGAM_OK;
    if (kz) {
        CGAM_EACH_ROW(s->Z, i) scratch[i] = s->a * w->weight[i];
        status = cgam_rows_gram(env, s->Z, scratch, w->M, k);
    }
    if (status == CGAM_OK && k > kz) {
        double *last = w->M + kz * k, total;
        CGAM_REDUCE(s->Z, i, CGAM_SUM(total)) {
            scratch[i] = s->w[i] * w->weight[i];
            total += scratch[i] * s->w[i];
        }
        status = cgam_rows_status(s->Z);
        if (kz && status == CGAM_OK) status = cgam_rows_combine(env, s->Z, scratch, last);
        for (int64_t j = 0; j < kz; j++) last[j] *= sqrt(s->a) * sqrt(s->sigma);
        last[kz] = s->sigma * total;
    }
    for (int64_t j = 0; j < k; j++) {
        w->M[j * k + j] += 1;
        for (int64_t i = 0; i < j; i++) w->M[i * k + j] = w->M[j * k + i];
    }
    return status;
}

/* A lower bound of Q, and its error; INFINITY if M cannot be factored. */
static cgam_status form_schur(cgam_env *env, const cgam_dplr_spec *s, small *w)
{
    int64_t k = w->k, m = w->m;
    bool positive;
    w->off = INFINITY;
    cgam_status status = cgam_factor_cholesky(env, k, w->factored, &positive);
    if (status != CGAM_OK || !positive) return status;
    memcpy(w->Y, w->B, (size_t)(m * k) * sizeof *w->Y);
    LAPACKE_dpotrs_work(LAPACK_COL_MAJOR, 'U', (lapack_int)k, (lapack_int)m, w->factored,
                        (lapack_int)k, w->Y, (lapack_int)k);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)k, (int)k, 1, w->Y, (int)k,
                w->M, (int)k, 0, w->MY, (int)k);
    /* B Y + (B Y)' - Y M Y = P + P', P = (B - MY / 2) Y */
    for (int64_t i = 0; i < m * k; i++) w->MY[i] = w->B[i] - 0.5 * w->MY[i];
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)m, (int)m, (int)k, 1, w->MY, (int)k,
                w->Y, (int)k, 0, w->Q, (int)m);
    double B = frobenius(m * k, w->B), Y = frobenius(m * k, w->Y), M = frobenius(k * k, w->M);
    double gamma = cgam_gamma(2 * (double)k + 8);
    w->off = w->pivots + w->error * Y * Y + gamma * (2 * B * Y + 2 * M * Y * Y) +
             2 * scale_error(s->Z) * B * Y + 8 * CGAM_U * B * Y;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j <= i; j++) w->Q[i * m + j] += w->Q[j * m + i];
    for (int64_t i = 0; i < m; i++)
        w->Q[i * m + i] += cgam_dplr_pivot(s, w->rows[i], NULL) - w->floor;
    return CGAM_OK;
}

/* Is Q positive definite at `floor`, as computed or lowered by its error bound? If `floor` is below w->floor, the
 * pivots of R are larger there and M is smaller, so Q is larger by at least the difference. */
static cgam_status check_positive(cgam_env *env, const small *w, double floor, bool surely,
                                  bool *positive)
{
    *positive = false;
    int64_t m = w->m;
    double *X = w->trial;
    double raise = floor < w->floor ? cgam_below(w->floor - floor) : 0, trace = 0, largest = 0;
    memcpy(X, w->Q, (size_t)(m * m) * sizeof *X);
    for (int64_t i = 0; i < m; i++) {
        X[i * m + i] += raise;
        trace += fmax(X[i * m + i], 0);
        largest = fmax(largest, fabs(w->Q[i * m + i]) + raise);
    }
    double off = (w->off + 8 * CGAM_U * largest) * CGAM_SLACK + cgam_cholesky_error(m, trace);
    for (int64_t i = 0; i < m && surely; i++) X[i * m + i] = cgam_below(X[i * m + i] - off);
    return isfinite(off) ? cgam_cholesky_ends(env, m, X, positive) : CGAM_OK;
}

static void small_free(cgam_env *env, const cgam_dplr_spec *s, small *w)
{
    cgam_vec_free(env, s->Z, w->scratch);
    cgam_free(env, w->rows);
    cgam_free(env, w->buffer);
}

/* Computes all of w at a floor. There is no Q if all rows are in R, which proves it, or if too few are. */
static cgam_status small_at(cgam_env *env, const cgam_dplr_spec *s, double floor, small *w,
                            bool *proved)
{
    int64_t k = w->k = cgam_dplr_columns(s);
    bool some = false;
    w->floor = floor;
    w->judged = false;
    if (!w->scratch) w->scratch = cgam_vec_new(env, s->Z, 2);
    if (!w->rows) w->rows = cgam_alloc(env, (size_t)k + 1, sizeof *w->rows);
    if (!w->scratch || !w->rows) return cgam_fail_nomem(env, "a proof");
    w->weight = w->scratch + cgam_vec_size(s->Z);
    cgam_status status = split_rows(env, s, floor, w, &some);
    *proved = status == CGAM_OK && some && w->m == 0;
    if (status != CGAM_OK || !some || w->m == 0) return status;
    cgam_free(env, w->buffer);
    w->buffer =
        cgam_zalloc(env, (size_t)(2 * k * k + 3 * w->m * k + 2 * w->m * w->m), sizeof *w->buffer);
    if (!w->buffer) return cgam_fail_nomem(env, "a proof");
    w->M = w->buffer;
    w->factored = w->M + k * k;
    w->B = w->factored + k * k;
    w->Y = w->B + w->m * k;
    w->MY = w->Y + w->m * k;
    w->Q = w->MY + w->m * k;
    w->trial = w->Q + w->m * w->m;
    status = form_M(env, s, w);
    if (status == CGAM_OK)
        status = cgam_rows_bring_with(env, s->Z, w->m, w->rows,
                                      (const double *[]){s->norm2, s->w, s->D}, 3);
    if (status != CGAM_OK) return status;
    memcpy(w->factored, w->M, (size_t)(k * k) * sizeof *w->M);
    border_rows(s, w->m, w->rows, w->B);
    status = form_schur(env, s, w);
    w->judged = status == CGAM_OK;
    return status;
}

/* Uses T as a matrix, if it is small enough. */
static cgam_status matrix_above(cgam_env *env, const cgam_dplr_spec *s, double floor, bool twice,
                                bool *proved)
{
    int64_t n = s->Z->n;
    double *T = cgam_alloc(env, (size_t)(n * n), sizeof *T), error, trace = 0, largest = 0;
    cgam_status status =
        T ? cgam_dplr_matrix(env, s, twice, T, &error) : cgam_fail_nomem(env, "a proof");
    if (status == CGAM_OK) {
        for (int64_t i = 0; i < n; i++) {
            T[i * n + i] -= floor;
            trace += fmax(T[i * n + i], 0);
            largest = fmax(largest, fabs(T[i * n + i]));
        }
        error = (error + 2 * CGAM_U * largest) * CGAM_SLACK + cgam_cholesky_error(n, trace);
        for (int64_t i = 0; i < n; i++) T[i * n + i] = cgam_below(T[i * n + i] - error);
        if (isfinite(error) && isfinite(trace)) status = cgam_cholesky_ends(env, n, T, proved);
    }
    cgam_free(env, T);
    return status;
}

cgam_status cgam_dplr_above(cgam_env *env, const cgam_dplr_spec *s, double floor, bool *proved)
{
    small w = {0};
    *proved = false;
    if ((s->a > 0 && s->Z->n <= s->Z->d) || s->Z->n <= CGAM_DPLR_SMALL) {
        cgam_status status = matrix_above(env, s, floor, false, proved);
        if (status == CGAM_OK && !*proved && !is_careful(s->Z))
            status = matrix_above(env, s, floor, true, proved);
        return status;
    }
    cgam_status status = small_at(env, s, floor, &w, proved);
    if (status == CGAM_OK && w.judged) status = check_positive(env, &w, floor, true, proved);
    small_free(env, s, &w);
    return status;
}

cgam_status cgam_dplr_above_near(cgam_env *env, const cgam_dplr_spec *s, double value, double most,
                                 double *under, bool *nothing)
{
    small w = {0};
    bool proved = false;
    cgam_status status = CGAM_OK;
    *nothing = false;
    for (int round = 0; *under <= most && status == CGAM_OK; round++, *under *= NEXT) {
        double floor = value - *under;
        if (!w.judged || !w.steady) status = small_at(env, s, floor, &w, &proved);
        if (status != CGAM_OK) break;
        bool positive = proved;
        *nothing |= round == 0 && proved;
        if (round == 0 && w.judged) status = check_positive(env, &w, floor, false, nothing);
        if (status == CGAM_OK && w.judged && !proved)
            status = check_positive(env, &w, floor, true, &positive);
        if (status == CGAM_OK && positive) break;
    }
    small_free(env, s, &w);
    return status;
}

/* Error bounds of the rows of a matrix T: each entry has an error of (u + 2 u) of itself plus that of its product,
 * see cgam_dplr_matrix. */
static void matrix_errors(const cgam_dplr_spec *s, const cgam_dplr *T, const double *x,
                          double lengths, double *error)
{
    int64_t n = T->n;
    double gamma = cgam_gamma((double)s->Z->d + 2), sums = cgam_gamma((double)n + 8);
    double pair = (is_careful(s->Z) ? gamma * gamma : gamma) + scale_error(s->Z), total = 0;
    for (int64_t i = 0; i < n; i++) error[i] = fabs(T->D[i] * x[i]);
    for (int64_t i = 0; i < n; i++) {
        total += fabs(x[i]);
        for (int64_t j = i + 1; j < n; j++) { /* uses the upper triangle, which still holds T */
            double entry = fabs(T->K[i * n + j]);
            error[i] += entry * fabs(x[j]);
            error[j] += entry * fabs(x[i]);
        }
    }
    double tiny = cgam_underflow(s->a * 5 * (double)s->Z->d) * (1 + total);
    for (int64_t i = 0; i < n; i++)
        error[i] = (sums * error[i] + s->a * pair * sqrt(s->norm2[i]) * lengths) * CGAM_SLACK *
                       (1 + 2 * cgam_norm_error(s->Z->d)) +
                   tiny;
}

cgam_status cgam_dplr_apply_bounded(cgam_env *env, const cgam_dplr_spec *s, const cgam_dplr *T,
                                    const double *x, double *y, double *error)
{
    const cgam_rows *Z = s->Z;
    int64_t n = Z->n;
    double lengths = 0, t = 0;
    if (s->a > 0) {
        CGAM_REDUCE(Z, i, CGAM_SUM(lengths)) {
            lengths += fabs(x[i]) * cgam_length_above(Z->d, s->norm2[i]);
        }
        if (cgam_rows_status(Z) != CGAM_OK) return cgam_rows_status(Z);
    }
    if (T && T->dense) {
        if (error) matrix_errors(s, T, x, lengths, error);
        return cgam_dplr_apply(T, x, y);
    }
    cgam_status status = s->a > 0 ? cgam_dplr_outer(env, Z, x, y, &t) : CGAM_OK;
    if (status != CGAM_OK) return status;
    double norms = cgam_norm_error(Z->d), scaled = scale_error(Z);
    double chunks = (double)cgam_rows_chunks(Z); /* each summed from zero, joined in order */
    double part = cgam_gamma((double)n / chunks + chunks + 16) + scaled;
    part *= lengths * (1 + norms);
    double row = s->a * ((cgam_gamma((double)Z->d + 8) + scaled) * t + part) * (1 + norms);
    CGAM_EACH_ROW(Z, i) {
        double load = s->a * s->norm2[i], D = cgam_dplr_pivot(s, i, NULL);
        double tiny = underflow_of(s, s->norm2[i]);
        y[i] = s->a > 0 ? D * x[i] + s->a * y[i] : D * x[i];
        if (error)
            error[i] = ((row + (double)n * tiny) * cgam_length_above(Z->d, s->norm2[i]) +
                        (6 * CGAM_U * (1 + fabs(D) + load) + load * norms + tiny) * fabs(x[i])) *
                           CGAM_SLACK +
                       tiny * (Z->scale ? 1 + Z->scale[i] : 1) + CGAM_TINY;
    }
    return CGAM_OK;
}

/* With R = T^-1 as computed, |T^-1| <= |R| / (1 - |I - T R|). */
cgam_status cgam_dplr_inverse_norm(const cgam_dplr *T, const cgam_dplr_spec *spec, double *bound)
{
    cgam_env *env = T->env;
    int64_t n = T->n;
    *bound = INFINITY;
    if (n > CGAM_DPLR_SMALL || cgam_dplr_singular(T)) return CGAM_OK;
    double *A = cgam_alloc(env, (size_t)(n * n + 3 * n), sizeof *A), error = 0;
    if (!A) return cgam_fail_nomem(env, "a proof");
    cgam_status status = cgam_dplr_matrix(env, spec, true, A, &error);
    double *e = A + n * n, *x = e + n, *scratch = x + n, size = 0, left = 0,
           gamma = cgam_gamma((double)n + 4);
    for (int64_t j = 0; j < n && status == CGAM_OK; j++) {
        for (int64_t i = 0; i < n; i++) e[i] = i == j;
        status = cgam_dplr_solve_once(T, e, x, scratch);
        for (int64_t i = 0; i < n; i++) {
            double sum = -e[i], abs = e[i];
            for (int64_t k = 0; k < n; k++) {
                double term = (k <= i ? A[i * n + k] : A[k * n + i]) * x[k];
                sum += term;
                abs += fabs(term);
            }
            sum = fabs(sum) + gamma * abs;
            left += sum * sum;
            size += x[i] * x[i];
        }
    }
    double R = sqrt(size) * CGAM_SLACK, rest = (sqrt(left) + error * R) * CGAM_SLACK;
    if (status == CGAM_OK && rest < 0.5) *bound = R / (1 - rest) * CGAM_SLACK;
    cgam_free(env, A);
    return status;
}
