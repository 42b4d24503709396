/* lens.c: states to scores, many at a time, and the spread of the scores.
 *
 * With m the largest score and A, B, C the sums over the vocabulary of e^(s-m), (s-m) e^(s-m) and
 * e^(2(s-m)):  entropy = log A - B/A,  sum p^2 = C / A^2. */
#include "lm/lens.h"
#include "base/alloc.h"
#include "base/blas.h"
#include "base/env.h"
#include "lm/model.h"
#include "memory/bank.h"
#include "num/cpu/widen.h"
#include "num/softmax.h"

#include <math.h>
#include <string.h>

enum { ROWS = 512 };

const char *const cgam_lens_words[] = {"raw", "gain", "norm", NULL};

void cgam_lens_free(cgam_lens *lens)
{
    if (!lens) return;
    cgam_free_all(lens->env, lens->Z, lens->gain, lens->bias, lens->offset, lens);
}

static cgam_status new_lens(cgam_env *env, int64_t vocab, int64_t width, cgam_lens **out)
{
    *out = NULL;
    cgam_status status = cgam_blas_check_space(env);
    if (status != CGAM_OK) return status;
    cgam_lens *lens = cgam_zalloc(env, 1, sizeof *lens);
    if (!lens) return cgam_fail_nomem(env, "a lens");
    *lens = (cgam_lens){.env = env, .vocab = vocab, .width = width};
    status = cgam_alloc_all(env, "the unembedding", CGAM_ARRAY(lens->Z, vocab * width),
                            CGAM_ARRAY(lens->gain, width), CGAM_ZEROS(lens->bias, width),
                            CGAM_ZEROS(lens->offset, vocab));
    if (status == CGAM_OK) *out = lens;
    else cgam_lens_free(lens);
    return status;
}

/* offset += Z bias. */
static void add_bias(cgam_lens *lens)
{
    for (int64_t m = 0; m < lens->vocab; m++) {
        double sum = 0;
        for (int64_t j = 0; j < lens->width; j++)
            sum += (double)lens->Z[m * lens->width + j] * (double)lens->bias[j];
        lens->offset[m] = (float)((double)lens->offset[m] + sum);
    }
}

cgam_status cgam_lens_make(cgam_env *env, const cgam_lens_parts *parts, cgam_lens **out)
{
    cgam_status status = new_lens(env, parts->vocab, parts->width, out);
    if (status != CGAM_OK) return status;
    cgam_lens *lens = *out;
    memcpy(lens->Z, parts->Z, (size_t)(lens->vocab * lens->width) * sizeof *lens->Z);
    memcpy(lens->gain, parts->gain, (size_t)lens->width * sizeof *lens->gain);
    lens->norm = parts->norm;
    lens->shifted = lens->by_state = parts->bias != NULL;
    if (parts->bias) {
        memcpy(lens->bias, parts->bias, (size_t)lens->width * sizeof *lens->bias);
        add_bias(lens);
    }
    return CGAM_OK;
}

typedef struct last_state {
    int64_t layers, width;
    float *to;
} last_state;

static cgam_status copy_last_state(void *user, int64_t which, const float *states)
{
    (void)which;
    const last_state *last = user;
    memcpy(last->to, states + last->layers * last->width, (size_t)last->width * sizeof *last->to);
    return CGAM_OK;
}

/* The distance of NORM's scores from libllama's own after one token. */
static cgam_status compare_with_llama(cgam_lens *lens, cgam_lm *lm)
{
    cgam_env *env = lens->env;
    int64_t n = lens->vocab;
    int32_t *tokens = NULL;
    int64_t count = 0;
    float *buffer = cgam_alloc(env, (size_t)(2 * n + lens->width), sizeof *buffer);
    cgam_status status = buffer ? cgam_lm_tokenize(lm, "The", true, &tokens, &count)
                                : cgam_fail_nomem(env, "scores");
    if (status == CGAM_OK && count > 0) {
        float *theirs = buffer, *ours = buffer + n, *state = buffer + 2 * n;
        last_state last = {cgam_lm_describe(lm).layers, lens->width, state};
        const cgam_lm_prompt prompt = {tokens, count};
        status = cgam_lm_capture(lm, 1, &prompt, NULL, copy_last_state, &last);
        if (status == CGAM_OK) status = cgam_lm_logits(lm, &prompt, theirs);
        if (status == CGAM_OK)
            status = cgam_lens_scores(lens, CGAM_LENS_NORM, 1, state, lens->width, ours);
        double off = 0, size = 0;
        for (int64_t m = 0; m < n && status == CGAM_OK; m++) {
            off += ((double)ours[m] - (double)theirs[m]) * ((double)ours[m] - (double)theirs[m]);
            size += (double)theirs[m] * (double)theirs[m];
        }
        lens->off = size > 0 ? sqrt(off / size) : 0;
    }
    cgam_lm_tokens_free(lm, tokens);
    cgam_free(env, buffer);
    return status;
}

cgam_status cgam_lens_new(cgam_lm *lm, cgam_lens **out)
{
    cgam_lm_info info = cgam_lm_describe(lm);
    cgam_status status = new_lens(cgam_lm_env(lm), info.vocab, info.width, out);
    if (status != CGAM_OK) return status;
    cgam_lens *lens = *out;
    status = cgam_lm_unembedding(lm, lens->Z);
    if (status == CGAM_OK) status = cgam_lm_final_norm(lm, lens->gain, lens->bias, &lens->norm);
    if (status == CGAM_OK) status = cgam_lm_score_bias(lm, lens->offset, &lens->shifted);
    if (status == CGAM_OK && lens->norm.biased) {
        lens->by_state = !lens->shifted;
        lens->shifted = true;
        add_bias(lens);
    }
    if (status == CGAM_OK) status = compare_with_llama(lens, lm);
    if (status != CGAM_OK) {
        cgam_lens_free(lens);
        *out = NULL;
    }
    return status;
}

double cgam_lens_row_norm(const cgam_lens *lens, cgam_lens_kind kind, int64_t token)
{
    const float *row = cgam_lens_row(lens, token);
    double square = 0;
    for (int64_t j = 0; j < lens->width; j++) {
        double x = (double)row[j] * (kind == CGAM_LENS_RAW ? 1 : (double)lens->gain[j]);
        square += x * x;
    }
    return sqrt(square);
}

/* The mean subtracted from a state before it is weighted. */
static double mean_of_state(const cgam_lens *lens, cgam_lens_kind kind, const float *h)
{
    double sum = 0;
    if (kind == CGAM_LENS_RAW || !lens->norm.centred) return 0;
    for (int64_t j = 0; j < lens->width; j++) sum += (double)h[j];
    return sum / (double)lens->width;
}

double cgam_lens_state(const cgam_lens *lens, cgam_lens_kind kind, const float *h, double *x)
{
    int64_t d = lens->width;
    double square = 0, factor = 1, m = mean_of_state(lens, kind, h);
    for (int64_t j = 0; j < d; j++) square += ((double)h[j] - m) * ((double)h[j] - m);
    if (kind == CGAM_LENS_NORM) factor = 1 / sqrt(square / (double)d + lens->norm.epsilon);
    for (int64_t j = 0; j < d; j++)
        x[j] = ((double)h[j] - m) * factor * (kind == CGAM_LENS_RAW ? 1 : (double)lens->gain[j]);
    return 1 / factor;
}

double cgam_lens_dot(const cgam_lens *lens, cgam_lens_kind kind, int64_t token, const float *h)
{
    const float *row = cgam_lens_row(lens, token);
    double sum = 0, square = 0, m = mean_of_state(lens, kind, h);
    for (int64_t j = 0; j < lens->width; j++) {
        double x = (double)h[j] - m;
        square += x * x;
        sum += (double)row[j] * x * (kind == CGAM_LENS_RAW ? 1 : (double)lens->gain[j]);
    }
    if (kind != CGAM_LENS_NORM) return sum;
    return sum / sqrt(square / (double)lens->width + lens->norm.epsilon) +
           (double)lens->offset[token];
}

typedef struct lens_product {
    const cgam_lens *lens;
    int64_t count;
    const float *x; /* [count, width] */
    float *out;     /* [count, vocab] */
    float keep;     /* 1: adds the products to out */
} lens_product;

static cgam_status score_rows(void *arg, int64_t i)
{
    const lens_product *job = arg;
    const cgam_lens *lens = job->lens;
    int64_t begin = i * ROWS, rows = lens->vocab - begin < ROWS ? lens->vocab - begin : ROWS;
    if (cgam_interrupted(lens->env)) return CGAM_E_INTERRUPTED;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)job->count, (int)rows,
                (int)lens->width, 1, job->x, (int)lens->width, lens->Z + begin * lens->width,
                (int)lens->width, job->keep, job->out + begin, (int)lens->vocab);
    return CGAM_OK;
}

cgam_status cgam_lens_scores(const cgam_lens *lens, cgam_lens_kind kind, int64_t count,
                             const float *H, int64_t stride, float *out)
{
    cgam_env *env = lens->env;
    int64_t d = lens->width;
    if (kind == CGAM_LENS_NORM && !cgam_lens_has_norm(lens))
        return cgam_fail(env, CGAM_E_UNSUPPORTED,
                         "the norm lens does not support this model: final norm and unembedding "
                         "do not reproduce its scores (off by %.2g)",
                         lens->off);
    float *x;
    double *wide;
    cgam_status status =
        cgam_alloc_all(env, "states", CGAM_ARRAY(x, count * d), CGAM_ARRAY(wide, d));
    bool shifted = kind == CGAM_LENS_NORM && lens->shifted;
    for (int64_t i = 0; i < count && status == CGAM_OK; i++) {
        cgam_lens_state(lens, kind, H + i * stride, wide);
        for (int64_t j = 0; j < d; j++) x[i * d + j] = (float)wide[j];
        if (shifted) memcpy(out + i * lens->vocab, lens->offset, (size_t)lens->vocab * sizeof *out);
    }
    lens_product job = {lens, count, x, out, shifted ? 1 : 0};
    if (status == CGAM_OK)
        status = cgam_parallel(env, (lens->vocab + ROWS - 1) / ROWS, score_rows, &job);
    cgam_free_all(env, x, wide);
    return status;
}

/* ---- Derivatives -------------------------------------------------------------------------- */
typedef struct pulling {
    const cgam_lens *lens;
    int64_t count;
    const float *weights; /* [count, vocab] */
    float *out;           /* [count, width] */
} pulling;

enum { COLUMNS = 64 };

static cgam_status pull_columns(void *arg, int64_t i)
{
    const pulling *job = arg;
    const cgam_lens *lens = job->lens;
    int64_t from = i * COLUMNS,
            columns = lens->width - from < COLUMNS ? lens->width - from : COLUMNS;
    if (cgam_interrupted(lens->env)) return CGAM_E_INTERRUPTED;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)job->count, (int)columns,
                (int)lens->vocab, 1, job->weights, (int)lens->vocab, lens->Z + from,
                (int)lens->width, 0, job->out + from, (int)lens->width);
    return CGAM_OK;
}

/* With c = h - m, f = 1/sqrt(|c|^2/d + eps), u = f c and w the weights times Z and the norm's: the
 * derivative is f (w - u <u, w>/d), minus its mean if the norm is centred. */
cgam_status cgam_lens_pull(const cgam_lens *lens, int64_t count, const float *H, int64_t stride,
                           const float *weights, float *out)
{
    int64_t d = lens->width;
    pulling job = {lens, count, weights, out};
    cgam_status status = cgam_parallel(lens->env, (d + COLUMNS - 1) / COLUMNS, pull_columns, &job);
    for (int64_t i = 0; i < count && status == CGAM_OK; i++) {
        const float *h = H + i * stride;
        float *w = out + i * d;
        double square = 0, dot = 0, mean = 0, m = mean_of_state(lens, CGAM_LENS_NORM, h);
        for (int64_t j = 0; j < d; j++) square += ((double)h[j] - m) * ((double)h[j] - m);
        double f = 1 / sqrt(square / (double)d + lens->norm.epsilon);
        for (int64_t j = 0; j < d; j++) {
            w[j] *= lens->gain[j];
            dot += (double)w[j] * ((double)h[j] - m) * f;
        }
        for (int64_t j = 0; j < d; j++) {
            double g = f * ((double)w[j] - ((double)h[j] - m) * f * dot / (double)d);
            w[j] = (float)g;
            mean += g / (double)d;
        }
        for (int64_t j = 0; j < d && lens->norm.centred; j++) w[j] -= (float)mean;
    }
    return status;
}

/* States scored a batch at a time; a task of cgam_parallel reads one state of the batch. */
typedef struct state_reading {
    const cgam_lens *lens;
    const float *scores; /* [batch][vocab] */
    int64_t from;        /* the batch's first state */
    const int32_t *target;
    int64_t n_tokens;
    const int32_t *tokens;
    cgam_spread *spread; /* either spread or answer is requested */
    cgam_answer *answer;
} state_reading;

static cgam_status read_state(void *arg, int64_t i)
{
    const state_reading *job = arg;
    int64_t n = job->lens->vocab, at = job->from + i, y = job->target ? job->target[at] : 0;
    const float *s = job->scores + i * n;
    if (y < 0) return CGAM_OK;
    int64_t top = 0, rank = 0;
    for (int64_t k = 1; k < n; k++)
        if (s[k] > s[top]) top = k;
    cgam_softmax all = cgam_softmax_from((double)s[top]);
    if (!isfinite(all.top))
        return cgam_fail(job->lens->env, CGAM_E_VALUE, "state %lld has a score that is not finite",
                         (long long)at);
    for (int64_t k = 0; k < n; k++) {
        cgam_softmax_take(&all, 1, (double)s[k]);
        rank += s[k] > s[y] || (s[k] == s[y] && k < y);
    }
    double mass = 0; /* of the given tokens */
    for (int64_t k = 0; k < job->n_tokens; k++)
        if (job->tokens[k] >= 0) mass += exp((double)s[job->tokens[k]] - all.top);
    mass /= all.sum;
    if (job->spread)
        job->spread[at] = (cgam_spread){cgam_softmax_entropy(&all),
                                        2 * log(all.sum) - log(all.squares), mass, top};
    else job->answer[at] = (cgam_answer){(double)s[y] - all.top - log(all.sum), mass, rank};
    return CGAM_OK;
}

static cgam_status read_states(cgam_lens_kind kind, int64_t count, const float *H, int64_t stride,
                               state_reading *job)
{
    enum { AT_ONCE = 256 };
    const cgam_lens *lens = job->lens;
    cgam_env *env = lens->env;
    int64_t batch = count < AT_ONCE ? count : AT_ONCE;
    float *scores = cgam_alloc(env, (size_t)(batch * lens->vocab), sizeof *scores);
    if (!scores) return cgam_fail_nomem(env, "scores");
    cgam_status status = CGAM_OK;
    job->scores = scores;
    for (int64_t i = 0; i < count && status == CGAM_OK; i += AT_ONCE) {
        int64_t m = count - i < AT_ONCE ? count - i : AT_ONCE;
        job->from = i;
        status = cgam_lens_scores(lens, kind, m, H + i * stride, stride, scores);
        if (status == CGAM_OK) status = cgam_parallel(env, m, read_state, job);
    }
    cgam_free(env, scores);
    return status;
}

cgam_status cgam_lens_spread(const cgam_lens *lens, cgam_lens_kind kind, int64_t count,
                             const float *H, int64_t stride, int64_t n_tokens,
                             const int32_t *tokens, cgam_spread *out)
{
    state_reading job = {.lens = lens, .n_tokens = n_tokens, .tokens = tokens, .spread = out};
    return read_states(kind, count, H, stride, &job);
}

cgam_status cgam_lens_judge(const cgam_lens *lens, cgam_lens_kind kind, int64_t count,
                            const float *H, int64_t stride, const int32_t *target, int64_t n_tokens,
                            const int32_t *tokens, cgam_answer *out)
{
    state_reading job = {
        .lens = lens, .target = target, .n_tokens = n_tokens, .tokens = tokens, .answer = out};
    return read_states(kind, count, H, stride, &job);
}

/* ---- The unembedding as a bank --------------------------------------------------------------- */
/* Rows times the norm's weights. A layer norm takes the mean off the state; it can as well be taken
 * off the row. */
static void weigh_rows(float *Z, int64_t rows, int64_t width, const float *gain, bool centred)
{
    for (int64_t i = 0; i < rows; i++) {
        float *row = Z + i * width;
        double sum = 0;
        for (int64_t j = 0; j < width; j++) sum += (double)(row[j] *= gain[j]);
        for (int64_t j = 0; j < width && centred; j++) row[j] -= (float)(sum / (double)width);
    }
}

/* Converts rows to the requested type, in place: writes never pass the rows still to be read. */
static cgam_status narrow_rows(cgam_env *env, float *Z, int64_t rows, int64_t width,
                               cgam_dtype dtype)
{
    if (dtype == CGAM_F32) return CGAM_OK;
    double *row = cgam_alloc(env, (size_t)width, sizeof *row);
    if (!row) return cgam_fail_nomem(env, "a row");
    for (int64_t i = 0; i < rows; i++) {
        cgam_widen(CGAM_F32, Z + i * width, width, row);
        cgam_narrow(dtype, row, width, (char *)Z + (size_t)(i * width) * cgam_dtype_size(dtype));
    }
    cgam_free(env, row);
    return CGAM_OK;
}

cgam_status cgam_lm_bank(cgam_lm *lm, cgam_lens_kind lens, cgam_dtype dtype, cgam_bank **out)
{
    cgam_env *env = cgam_lm_env(lm);
    cgam_lm_info info = cgam_lm_describe(lm);
    *out = NULL;
    if (lens == CGAM_LENS_NORM || (dtype != CGAM_F32 && dtype != CGAM_F16 && dtype != CGAM_BF16))
        return cgam_fail(env, CGAM_E_ARG,
                         "a model's bank must be raw or gain in f32, f16 or bf16, not %s in %s",
                         cgam_word(cgam_lens_words, lens), cgam_word(cgam_dtype_words, dtype));
    float *Z, *norm;
    cgam_lm_norm kind;
    cgam_status status =
        cgam_alloc_all(env, "the unembedding", CGAM_ARRAY(Z, info.vocab * info.width),
                       CGAM_ARRAY(norm, 2 * info.width));
    if (status == CGAM_OK) status = cgam_lm_unembedding(lm, Z);
    if (status == CGAM_OK && lens == CGAM_LENS_GAIN) {
        status = cgam_lm_final_norm(lm, norm, norm + info.width, &kind);
        if (status == CGAM_OK) weigh_rows(Z, info.vocab, info.width, norm, kind.centred);
    }
    if (status == CGAM_OK) status = narrow_rows(env, Z, info.vocab, info.width, dtype);
    if (status == CGAM_OK) status = cgam_bank_new(env, Z, dtype, info.vocab, info.width, NULL, out);
    cgam_free(env, norm);
    if (status == CGAM_OK) (*out)->owned = Z; /* freed with the bank */
    else cgam_free(env, Z);
    return status;
}
