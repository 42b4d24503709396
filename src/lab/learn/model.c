/* model.c: what is learned of a memory as one vector, the chain rule back, and the file. */
#include "lab/learn/model.h"

#include "base/alloc.h"
#include "base/blas.h"
#include "io/array.h"
#include "memory/bank.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const cgam_learn_words[] = {"P", "W", "Z", "alpha", "beta", "lambda", NULL};

enum { RANDOM_STREAM = 2 };
static const double SMALL =
    1e-3; /* where a number that is 0 at the start begins, as a share of its limit */

void cgam_model_free(cgam_model *m)
{
    if (!m->env) return;
    double *P = m->P == m->start ? NULL : m->P, *W = m->W == m->start ? NULL : m->W;
    cgam_free_all(m->env, P, W, m->Z, m->start, m->dP, m->dW, m->dZ);
    *m = (cgam_model){0};
}

static bool learns(const cgam_model *m, unsigned what) { return m->learn & what; }

static cgam_status check(const cgam_model *m, const cgam_memory_fit_opts *o)
{
    bool P = learns(m, CGAM_LEARN_P), W = learns(m, CGAM_LEARN_W);
    int64_t most = m->d < m->d_c ? m->d : m->d_c;
    if (!m->learn) return cgam_fail(m->env, CGAM_E_ARG, "learn names nothing");
    if (P && W) return cgam_fail(m->env, CGAM_E_ARG, "learn P or W, not both");
    if (P && o->recall.W)
        return cgam_fail(m->env, CGAM_E_ARG, "learn P requires a memory without gate-weights");
    if (o->rank > 0 && !P) return cgam_fail(m->env, CGAM_E_ARG, "rank requires learn P");
    if (o->rank < 0 || o->rank > most)
        return cgam_fail(m->env, CGAM_E_ARG, "rank is %lld, P is %lld x %lld", (long long)o->rank,
                         (long long)m->d, (long long)m->d_c);
    if (o->recall.mode != CGAM_FIRST && o->recall.mode != CGAM_COUPLED)
        return cgam_fail(m->env, CGAM_E_ARG, "a fit requires mode first or coupled, not mode %s",
                         cgam_word(cgam_mode_words, o->recall.mode));
    return CGAM_OK;
}

/* Z [n, d] of the bank as double. */
static cgam_status read_rows(const cgam_model *m, double *Z)
{
    cgam_status status = CGAM_OK;
    for (int64_t i = 0; i < m->n && status == CGAM_OK; i++)
        status = cgam_bank_row(m->bank, i, Z + i * m->d);
    return status;
}

/* The longest row sets the limit of alpha: A >= 1 - alpha max |zeta|^2. */
static void limit_by_rows(cgam_model *m)
{
    double most = 0;
    for (int64_t i = 0; i < m->n; i++) {
        double square = 0;
        for (int64_t j = 0; j < m->d; j++) square += m->Z[i * m->d + j] * m->Z[i * m->d + j];
        if (square > most) most = square, m->longest = i;
    }
    m->limit = most > 0 ? 1 / most : INFINITY;
}

static cgam_status find_limit(cgam_model *m)
{
    cgam_critical crit;
    if (!learns(m, CGAM_LEARN_ALPHA)) return CGAM_OK;
    if (m->Z) {
        limit_by_rows(m);
    } else {
        cgam_status status = cgam_gate_critical(m->bank, CGAM_EFFORT_FULL, &crit);
        if (status != CGAM_OK) return status;
        m->limit = crit.alpha_lo; /* proved */
    }
    if (m->opts.alpha < m->limit) return CGAM_OK;
    return cgam_fail(m->env, CGAM_E_ARG, "alpha is %g: to be learned it must begin below %.6g, %s",
                     m->opts.alpha, m->limit, m->Z ? "1 / max |zeta|^2" : "alpha_crit");
}

/* P = start + U'V begins with V = 0 and random rows of U. */
static void begin_low_rank(const cgam_model *m, uint64_t seed, double *x)
{
    cgam_rng rng = cgam_rng_stream(seed, RANDOM_STREAM);
    for (int64_t i = 0; i < m->rank * m->d; i++) x[i] = cgam_rng_normal(&rng) / sqrt((double)m->d);
}

static void begin_numbers(const cgam_model *m, double *x)
{
    double alpha = m->opts.alpha, lambda = m->opts.lambda;
    if (learns(m, CGAM_LEARN_ALPHA) && isinf(m->limit))
        x[m->at_alpha] = log(alpha > 0 ? alpha : SMALL);
    else if (learns(m, CGAM_LEARN_ALPHA)) {
        double share = alpha > 0 ? alpha / m->limit : SMALL;
        x[m->at_alpha] = log(share / (1 - share));
    }
    if (learns(m, CGAM_LEARN_BETA)) x[m->at_beta] = log(m->opts.beta);
    if (learns(m, CGAM_LEARN_LAMBDA)) x[m->at_lambda] = log(lambda > 0 ? lambda : SMALL);
}

static void lay_out(cgam_model *m)
{
    bool P = learns(m, CGAM_LEARN_P), W = learns(m, CGAM_LEARN_W);
    int64_t first = W         ? m->n * m->d_c
                    : !P      ? 0
                    : m->rank ? m->rank * (m->d + m->d_c)
                              : m->d * m->d_c;
    m->at_Z = first;
    m->tensors = first + (m->learn & CGAM_LEARN_Z ? m->n * m->d : 0);
    m->at_alpha = m->tensors;
    m->at_beta = m->at_alpha + learns(m, CGAM_LEARN_ALPHA);
    m->at_lambda = m->at_beta + learns(m, CGAM_LEARN_BETA);
    m->params = m->at_lambda + learns(m, CGAM_LEARN_LAMBDA);
}

static cgam_status allocate(cgam_model *m, const cgam_recall_opts *given, double **x0)
{
    bool P = learns(m, CGAM_LEARN_P), W = learns(m, CGAM_LEARN_W), Z = learns(m, CGAM_LEARN_Z);
    bool rows = W || given->W, any = P || rows || given->P;
    int64_t size = (rows ? m->n : m->d) * m->d_c;
    cgam_status status = cgam_alloc_all(
        m->env, "parameters", CGAM_ZEROS(*x0, m->params), CGAM_ZEROS(m->start, any ? size : 1),
        CGAM_ARRAY(m->P, P ? size : 1), CGAM_ARRAY(m->W, W ? size : 1),
        CGAM_ARRAY(m->Z, Z ? m->n * m->d : 1), CGAM_ARRAY(m->dP, P ? size : 1),
        CGAM_ARRAY(m->dW, W ? size : 1), CGAM_ARRAY(m->dZ, Z ? m->n * m->d : 1));
    if (status != CGAM_OK) return status;
    double **unused[] = {P ? NULL : &m->P,      W ? NULL : &m->W,  Z ? NULL : &m->Z,
                         P ? NULL : &m->dP,     W ? NULL : &m->dW, Z ? NULL : &m->dZ,
                         any ? NULL : &m->start};
    for (size_t i = 0; i < sizeof unused / sizeof *unused; i++) {
        if (!unused[i]) continue;
        cgam_free(m->env, *unused[i]);
        *unused[i] = NULL;
    }
    if (!P && given->P) m->P = m->start;
    if (!W && given->W) m->W = m->start;
    return CGAM_OK;
}

/* P or W at the start: as given, or ones on the diagonal of P, or W = Z P. */
static cgam_status begin_projection(const cgam_model *m, const cgam_recall_opts *given)
{
    cgam_status status = CGAM_OK;
    int64_t d = m->d, d_c = m->d_c;
    if (!m->start) return CGAM_OK;
    if (given->W) {
        memcpy(m->start, given->W, (size_t)(m->n * d_c) * sizeof *m->start);
    } else if (learns(m, CGAM_LEARN_W)) {
        double *row = cgam_alloc(m->env, (size_t)d, sizeof *row);
        if (!row) return cgam_fail_nomem(m->env, "a row");
        for (int64_t i = 0; i < m->n && status == CGAM_OK; i++) {
            double *to = m->start + i * d_c;
            status = cgam_bank_row(m->bank, i, row);
            for (int64_t j = 0; j < d_c && !given->P; j++) to[j] = j < d ? row[j] : 0;
            if (given->P)
                cblas_dgemv(CblasRowMajor, CblasTrans, (int)d, (int)d_c, 1, given->P, (int)d_c, row,
                            1, 0, to, 1);
        }
        cgam_free(m->env, row);
    } else if (given->P) {
        memcpy(m->start, given->P, (size_t)(d * d_c) * sizeof *m->start);
    } else {
        for (int64_t i = 0; i < d && i < d_c; i++) m->start[i * d_c + i] = 1;
    }
    return status;
}

cgam_status cgam_model_new(const cgam_bank *bank, const cgam_memory_fit_opts *o, cgam_model *m,
                           double **x0)
{
    cgam_bank_info info = cgam_bank_describe(bank);
    bool given = o->recall.P || o->recall.W;
    *x0 = NULL;
    *m = (cgam_model){.env = bank->env,
                      .bank = bank,
                      .learn = o->learn,
                      .n = info.n,
                      .d = info.d,
                      .d_c = given || o->recall.d_c > 0 ? o->recall.d_c : info.d,
                      .rank = o->rank,
                      .limit = INFINITY,
                      .opts = o->recall};
    m->opts.P = m->opts.W = NULL;
    m->opts.gate = NULL;
    cgam_status status = check(m, o);
    if (status != CGAM_OK) return status;
    lay_out(m);
    status = allocate(m, &o->recall, x0);
    if (status == CGAM_OK && m->Z) status = read_rows(m, m->Z);
    if (status == CGAM_OK) status = begin_projection(m, &o->recall);
    if (status == CGAM_OK) status = find_limit(m);
    if (status != CGAM_OK) return status;
    double *x = *x0;
    if (m->rank > 0) begin_low_rank(m, o->train.seed, x);
    else if (m->at_Z > 0) memcpy(x, m->start, (size_t)m->at_Z * sizeof *x);
    if (m->Z) memcpy(x + m->at_Z, m->Z, (size_t)(m->n * m->d) * sizeof *x);
    begin_numbers(m, x);
    return CGAM_OK;
}

void cgam_model_take(cgam_model *m, const double *x)
{
    int64_t d = m->d, d_c = m->d_c;
    if (learns(m, CGAM_LEARN_P)) {
        memcpy(m->P, m->rank ? m->start : x, (size_t)(d * d_c) * sizeof *x);
        if (m->rank)
            cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)d, (int)d_c, (int)m->rank, 1,
                        x, (int)d, x + m->rank * d, (int)d_c, 1, m->P, (int)d_c);
    }
    if (learns(m, CGAM_LEARN_W)) memcpy(m->W, x, (size_t)(m->n * d_c) * sizeof *x);
    if (m->Z) memcpy(m->Z, x + m->at_Z, (size_t)(m->n * d) * sizeof *x);
    if (learns(m, CGAM_LEARN_ALPHA)) {
        if (m->Z) limit_by_rows(m);
        double e = x[m->at_alpha];
        m->opts.alpha = isinf(m->limit) ? exp(e) : m->limit / (1 + exp(-e));
        /* 1 / (1 + e^-x) reaches 1 beyond x = 37, and within 1e-9 of the limit A is critical */
        m->opts.alpha = fmin(m->opts.alpha, m->limit * (1 - 1e-6));
    }
    if (learns(m, CGAM_LEARN_BETA)) m->opts.beta = exp(x[m->at_beta]);
    if (learns(m, CGAM_LEARN_LAMBDA)) m->opts.lambda = exp(x[m->at_lambda]);
    m->opts.P = m->P;
    m->opts.W = m->W;
    m->opts.d_c = d_c;
}

void cgam_model_pull(const cgam_model *m, const double *x, double *g)
{
    int64_t d = m->d, d_c = m->d_c, r = m->rank;
    if (m->dP && r > 0) {
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)r, (int)d, (int)d_c, 1, x + r * d,
                    (int)d_c, m->dP, (int)d_c, 0, g, (int)d);
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)r, (int)d_c, (int)d, 1, x,
                    (int)d, m->dP, (int)d_c, 0, g + r * d, (int)d_c);
    } else if (m->dP || m->dW) {
        memcpy(g, m->dP ? m->dP : m->dW, (size_t)m->at_Z * sizeof *g);
    }
    if (m->Z) memcpy(g + m->at_Z, m->dZ, (size_t)(m->n * d) * sizeof *g);
    double alpha = m->opts.alpha;
    if (learns(m, CGAM_LEARN_ALPHA)) {
        g[m->at_alpha] = m->dalpha * alpha * (isinf(m->limit) ? 1 : 1 - alpha / m->limit);
        if (m->Z && isfinite(m->limit)) /* alpha = share / |zeta|^2 of the longest row */
            for (int64_t j = 0; j < d; j++)
                g[m->at_Z + m->longest * d + j] -=
                    m->dalpha * 2 * alpha * m->limit * m->Z[m->longest * d + j];
    }
    if (learns(m, CGAM_LEARN_BETA)) g[m->at_beta] = m->dbeta * m->opts.beta;
    if (learns(m, CGAM_LEARN_LAMBDA)) g[m->at_lambda] = m->dlambda * m->opts.lambda;
}

/* ---- Files. ------------------------------------------------------------------------------------ */
cgam_status cgam_model_write(const cgam_model *m, const char *path)
{
    const int64_t one[] = {1}, P[] = {m->d, m->d_c}, W[] = {m->n, m->d_c}, Z[] = {m->n, m->d};
    cgam_named_array arrays[6];
    int count = 0;
    if (m->P) arrays[count++] = (cgam_named_array){"P", CGAM_F64, 2, P, m->P};
    if (m->W) arrays[count++] = (cgam_named_array){"W", CGAM_F64, 2, W, m->W};
    if (m->Z) arrays[count++] = (cgam_named_array){"Z", CGAM_F64, 2, Z, m->Z};
    arrays[count++] = (cgam_named_array){"alpha", CGAM_F64, 1, one, &m->opts.alpha};
    arrays[count++] = (cgam_named_array){"beta", CGAM_F64, 1, one, &m->opts.beta};
    arrays[count++] = (cgam_named_array){"lambda", CGAM_F64, 1, one, &m->opts.lambda};
    return cgam_arrays_write(m->env, path, count, arrays);
}

/* Reads array `name` of a file: *data NULL if it has none. */
static cgam_status read_array(cgam_env *env, const char *path, const char *name, int dims,
                              int64_t shape[2], double **data)
{
    char member[4096];
    cgam_array array;
    *data = NULL;
    if (snprintf(member, sizeof member, "%s:%s", path, name) >= (int)sizeof member)
        return cgam_fail(env, CGAM_E_ARG, "fitted: the path is too long");
    cgam_status status = cgam_array_open(env, member, &array);
    if (status == CGAM_E_NOT_FOUND) return CGAM_OK;
    if (status != CGAM_OK) return status;
    if (array.ndim != dims || array.size < 1)
        status = cgam_fail(env, CGAM_E_SHAPE, "%s: %d dimensions expected, got %d", member, dims,
                           array.ndim);
    if (status == CGAM_OK) *data = cgam_alloc(env, (size_t)array.size, sizeof **data);
    if (status == CGAM_OK && !*data) status = cgam_fail_nomem(env, "fitted parameters");
    if (status == CGAM_OK) status = cgam_array_read_f64(env, &array, member, *data);
    shape[0] = array.shape[0];
    shape[1] = dims > 1 ? array.shape[1] : 1;
    cgam_array_close(env, &array);
    return status;
}

static cgam_status read_number(cgam_env *env, const char *path, const char *name, double *out)
{
    double *value;
    int64_t shape[2];
    cgam_status status = read_array(env, path, name, 1, shape, &value);
    *out = value && status == CGAM_OK ? value[0] : (double)NAN;
    if (value && status == CGAM_OK && shape[0] != 1)
        status = cgam_fail(env, CGAM_E_SHAPE, "%s:%s: one number expected, got %lld", path, name,
                           (long long)shape[0]);
    cgam_free(env, value);
    return status;
}

cgam_status cgam_fitted_read(cgam_env *env, const char *path, cgam_fitted *out)
{
    int64_t Z[2], P[2], W[2];
    cgam_file file;
    *out = (cgam_fitted){.alpha = NAN, .beta = NAN, .lambda = NAN};
    cgam_status status = cgam_file_map(env, path, &file); /* a missing file is no missing array */
    if (status == CGAM_OK) cgam_file_unmap(&file);
    if (status == CGAM_OK) status = read_array(env, path, "Z", 2, Z, &out->Z);
    if (status == CGAM_OK) status = read_array(env, path, "P", 2, P, &out->P);
    if (status == CGAM_OK) status = read_array(env, path, "W", 2, W, &out->W);
    if (status == CGAM_OK) status = read_number(env, path, "alpha", &out->alpha);
    if (status == CGAM_OK) status = read_number(env, path, "beta", &out->beta);
    if (status == CGAM_OK) status = read_number(env, path, "lambda", &out->lambda);
    if (status != CGAM_OK) return status;
    if (out->P && out->W) return cgam_fail(env, CGAM_E_FORMAT, "%s: has both P and W", path);
    if (isnan(out->alpha) || isnan(out->beta) || isnan(out->lambda))
        return cgam_fail(env, CGAM_E_FORMAT,
                         "%s: alpha, beta or lambda is missing: not a file of cgam fit", path);
    if (!(out->alpha >= 0 && out->beta > 0 && out->lambda >= 0))
        return cgam_fail(env, CGAM_E_FORMAT, "%s: alpha is %g, beta %g, lambda %g", path,
                         out->alpha, out->beta, out->lambda);
    if (out->Z) out->n = Z[0], out->d = Z[1];
    if (out->P) out->d = out->d ? out->d : P[0], out->d_c = P[1];
    if (out->W) out->n = out->n ? out->n : W[0], out->d_c = W[1];
    if ((out->P && P[0] != out->d) || (out->W && W[0] != out->n))
        return cgam_fail(env, CGAM_E_SHAPE, "%s: Z is %lld x %lld, %s has %lld rows", path,
                         (long long)Z[0], (long long)Z[1], out->P ? "P" : "W",
                         (long long)(out->P ? P[0] : W[0]));
    return CGAM_OK;
}

void cgam_fitted_free(cgam_env *env, cgam_fitted *fitted)
{
    cgam_free_all(env, fitted->Z, fitted->P, fitted->W);
    *fitted = (cgam_fitted){.alpha = NAN, .beta = NAN, .lambda = NAN};
}
