/* probe.c: separability by liblinear, alignment by cosines (Yang et al. 2025 track both through
 * the layers of a transformer). */
#include "lab/language/probe.h"
#include "lab/language/study_sweep.h"
#include "lab/stats.h"
#include "lm/lens.h"

#include <dlfcn.h>
#include <linear.h>
#include <math.h>
#include <pthread.h>

static void print_nothing(const char *text) { (void)text; }

/* liblinear is loaded at run time like BLAS; linking it would load BLAS too early: see base/blas.h. */
static struct {
    pthread_once_t once;
    __typeof__(train) *train;
    __typeof__(predict) *predict;
    __typeof__(check_parameter) *check_parameter;
    __typeof__(free_and_destroy_model) *free_model;
    bool found;
} linear = {.once = PTHREAD_ONCE_INIT};

static void load_linear(void)
{
    void *library = dlopen(CGAM_LIBLINEAR, RTLD_NOW | RTLD_LOCAL);
    __typeof__(set_print_string_function) *set_print = NULL;
    if (!library) return;
    *(void **)&linear.train = dlsym(library, "train");
    *(void **)&linear.predict = dlsym(library, "predict");
    *(void **)&linear.check_parameter = dlsym(library, "check_parameter");
    *(void **)&linear.free_model = dlsym(library, "free_and_destroy_model");
    *(void **)&set_print = dlsym(library, "set_print_string_function");
    linear.found = linear.train && linear.predict && linear.check_parameter && linear.free_model;
    if (set_print) set_print(print_nothing);
}

/* ---- Features ----------------------------------------------------------------------------- */
typedef struct probed {
    int64_t count, width, stride;
    const float *H;
    const int32_t *target;
    int half;           /* the one that is trained on: i % 2 == half */
    int fold;           /* of it, the one that is left out; -1: none is */
    const int *fold_of; /* [count] of the training half; -1: not in it */
} probed;

typedef struct workspace {
    struct feature_node *nodes, **rows; /* [count, capacity + 1], [count] */
    double *mean, *factor, *row;        /* [width], [width], [width + 1] */
    double *basis;                      /* [capacity, width + 1]; NULL: features as they are */
    double *labels;                     /* [count] */
    int *fold;                          /* [count]: see fold_of */
    int64_t capacity, rank;             /* rank: features of a row, at most capacity */
} workspace;

static bool in_half(const probed *x, int64_t i) { return i % 2 == x->half && x->target[i] >= 0; }

static bool trained_on(const probed *x, int64_t i)
{
    return in_half(x, i) && (x->fold < 0 || x->fold_of[i] != x->fold);
}

/* Mean and 1/deviation of every feature over the training states; a feature that never
 * changes becomes 0. */
static void standardise(const probed *x, workspace *w)
{
    for (int64_t j = 0; j < x->width; j++) {
        cgam_moments all = {0};
        for (int64_t i = x->half; i < x->count; i += 2)
            if (trained_on(x, i)) cgam_moments_add(&all, (double)x->H[i * x->stride + j]);
        w->mean[j] = all.mean;
        double sd = cgam_moments_sd(&all);
        w->factor[j] = sd > 0 ? 1 / sd : 0;
    }
}

/* State i, standardised, with a last feature 1 for the bias. */
static void read_row(const probed *x, const workspace *w, int64_t i, double *row)
{
    for (int64_t j = 0; j < x->width; j++)
        row[j] = ((double)x->H[i * x->stride + j] - w->mean[j]) * w->factor[j];
    row[x->width] = 1;
}

/* Subtracts from row its projection on the basis and stores the coordinates in `at`; returns the norm of the rest. */
static double project_row(const probed *x, const workspace *w, double *row, double *at)
{
    int64_t d = x->width + 1;
    double square = 0;
    for (int64_t k = 0; k < w->rank; k++) at[k] = 0;
    for (int turn = 0; turn < 2; turn++) /* twice is enough (Kahan; Parlett 1980) */
        for (int64_t k = 0; k < w->rank; k++) {
            const double *b = w->basis + k * d;
            double dot = 0;
            for (int64_t j = 0; j < d; j++) dot += b[j] * row[j];
            for (int64_t j = 0; j < d; j++) row[j] -= dot * b[j];
            at[k] += dot;
        }
    for (int64_t j = 0; j < d; j++) square += row[j] * row[j];
    return sqrt(square);
}

/* The weights of a penalised regression are sums of training rows. With fewer rows than features
 * their coordinates in an orthonormal basis of those rows give the same regression, and a test state
 * has the same scores, because its part outside the basis meets no weight. */
static void make_nodes(const probed *x, workspace *w, double *at)
{
    int64_t d = x->width + 1;
    w->rank = 0;
    for (int64_t i = x->half; i < x->count && w->basis; i += 2) {
        if (!trained_on(x, i)) continue;
        read_row(x, w, i, w->row);
        double size = 0, left;
        for (int64_t j = 0; j < d; j++) size += w->row[j] * w->row[j];
        left = project_row(x, w, w->row, at);
        if (!(left > 1e-9 * sqrt(size))) continue; /* a sum of the others */
        for (int64_t j = 0; j < d; j++) w->basis[w->rank * d + j] = w->row[j] / left;
        w->rank++;
    }
    if (!w->basis) w->rank = d;
    for (int64_t i = 0; i < x->count; i++) {
        struct feature_node *node = w->nodes + i * (w->capacity + 1);
        read_row(x, w, i, w->row);
        if (w->basis) project_row(x, w, w->row, at);
        for (int64_t k = 0; k < w->rank; k++)
            node[k] = (struct feature_node){(int)k + 1, w->basis ? at[k] : w->row[k]};
        node[w->rank] = (struct feature_node){-1, 0};
    }
}

/* ---- Regressions -------------------------------------------------------------------------- */
enum { FOLDS = 5 };

/* The s-th state of a class, counted within the training half, is of fold s % FOLDS. */
static void make_folds(const probed *x, workspace *w)
{
    for (int64_t i = 0; i < x->count; i++) {
        int s = 0;
        for (int64_t j = x->half; j < i; j += 2) s += x->target[j] == x->target[i];
        w->fold[i] = in_half(x, i) ? s % FOLDS : -1;
    }
}

/* Trains on the training set; counts hits on the fold left out, or on the other half. Writes to right [count] which
 * queries are hits, unless it is NULL. *possible is false if there is only one class to train on. */
static cgam_status train_once(cgam_env *env, const probed *x, workspace *w, double C, int64_t *hits,
                              bool *right, bool *possible)
{
    int n = 0;
    bool several = false;
    for (int64_t i = 0; i < x->count; i++) {
        if (!trained_on(x, i)) continue;
        w->rows[n] = w->nodes + i * (w->capacity + 1);
        w->labels[n++] = x->target[i];
        several = several || w->labels[n - 1] != w->labels[0];
    }
    *possible = several;
    if (!several) return CGAM_OK;
    struct problem problem = {.l = n, .n = (int)w->rank, .y = w->labels, .x = w->rows, .bias = -1};
    struct parameter how = {.solver_type = L2R_LR, .eps = 1e-6, .C = C};
    const char *wrong = linear.check_parameter(&problem, &how);
    if (wrong) return cgam_fail(env, CGAM_E_INTERNAL, "liblinear: %s", wrong);
    struct model *model = linear.train(&problem, &how);
    if (!model) return cgam_fail(env, CGAM_E_NOMEM, "out of memory: a probe");
    for (int64_t i = 0; i < x->count; i++) {
        bool asked = x->fold < 0 ? x->target[i] >= 0 && i % 2 != x->half : w->fold[i] == x->fold;
        if (!asked) continue;
        bool hit = (int32_t)linear.predict(model, w->nodes + i * (w->capacity + 1)) == x->target[i];
        *hits += hit;
        if (right) right[i] = hit;
    }
    linear.free_model(&model);
    return CGAM_OK;
}

/* The states without a fold of the training half (-1: with all), by their own means and deviations. */
static void leave_out(probed *x, workspace *w, int fold)
{
    x->fold = fold;
    standardise(x, w);
    make_nodes(x, w, w->labels); /* a row has no more coordinates than there are states */
}

/* Trains on one half with the C that is right most often within it, the smallest of several; counts
 * hits on the other half. */
static cgam_status probe_half(cgam_env *env, probed *x, workspace *w, int64_t *hits, bool *right,
                              bool *possible)
{
    static const double grid[] = {1e-4, 1e-3, 1e-2, 1e-1, 1, 10};
    enum { GRID = sizeof grid / sizeof *grid };
    int64_t found[GRID] = {0};
    int best = 0;
    cgam_status status = CGAM_OK;
    make_folds(x, w);
    x->fold_of = w->fold;
    for (int fold = 0; fold < FOLDS && status == CGAM_OK; fold++) {
        bool there;
        leave_out(x, w, fold);
        for (int g = 0; g < GRID && status == CGAM_OK; g++)
            status = train_once(env, x, w, grid[g], &found[g], NULL, &there);
    }
    for (int g = 1; g < GRID; g++)
        if (found[g] > found[best]) best = g;
    bool several = false;
    leave_out(x, w, -1);
    if (status == CGAM_OK) status = train_once(env, x, w, grid[best], hits, right, &several);
    *possible = *possible && several;
    return status;
}

static cgam_status workspace_new(cgam_env *env, const probed *x, workspace *w)
{
    size_t n = (size_t)x->count, d = (size_t)x->width;
    bool few = x->count < x->width; /* rows of a half are at most half as many as features */
    *w = (workspace){.capacity = few ? (x->count + 1) / 2 : x->width + 1};
    cgam_status status =
        cgam_alloc_all(env, "a probe", CGAM_ARRAY(w->nodes, n * ((size_t)w->capacity + 1)),
                       CGAM_ARRAY(w->rows, n), CGAM_ARRAY(w->mean, d), CGAM_ARRAY(w->factor, d),
                       CGAM_ARRAY(w->row, d + 1), CGAM_ARRAY(w->labels, n), CGAM_ARRAY(w->fold, n));
    if (status != CGAM_OK || !few) return status;
    return cgam_alloc_all(env, "a probe", CGAM_ARRAY(w->basis, (size_t)w->capacity * (d + 1)));
}

cgam_status cgam_probe_separability(cgam_env *env, int64_t count, int64_t width, const float *H,
                                    int64_t stride, const int32_t *target, double *accuracy,
                                    bool *right)
{
    *accuracy = NAN;
    pthread_once(&linear.once, load_linear);
    if (!linear.found)
        return cgam_fail(env, CGAM_E_NOT_FOUND, "probes need %s, which cannot be loaded",
                         CGAM_LIBLINEAR);
    probed x = {count, width, stride, H, target, 0, -1, NULL};
    workspace w;
    cgam_status status = workspace_new(env, &x, &w);
    int64_t hits = 0, counted = 0;
    bool possible = true;
    for (; x.half < 2 && status == CGAM_OK; x.half++)
        status = probe_half(env, &x, &w, &hits, right, &possible);
    for (int64_t i = 0; i < count; i++) counted += target[i] >= 0;
    if (status == CGAM_OK && possible && counted > 0) *accuracy = (double)hits / (double)counted;
    cgam_free_all(env, w.nodes, w.rows, w.mean, w.factor, w.row, w.labels, w.basis, w.fold);
    return status;
}

cgam_alignment cgam_probe_alignment(const cgam_lens *lens, int64_t count, const float *H,
                                    int64_t stride, int64_t labels, const int32_t *tokens,
                                    const int32_t *target)
{
    cgam_moments to_own = {0}, ahead = {0};
    int64_t d = lens->width;
    for (int64_t i = 0; i < count; i++) {
        if (target[i] < 0) continue;
        double own = 0, other = -1;
        for (int64_t k = 0; k < labels; k++) {
            if (tokens[k] < 0) continue;
            double c = cgam_baseline_cosine(d, H + i * stride, cgam_lens_row(lens, tokens[k]));
            if (k == target[i]) own = c;
            else if (c > other) other = c;
        }
        cgam_moments_add(&to_own, own);
        cgam_moments_add(&ahead, own - other);
    }
    double none = to_own.n > 0 ? 0 : (double)NAN;
    return (cgam_alignment){to_own.mean + none, cgam_moments_sd(&to_own), ahead.mean + none,
                            cgam_moments_sd(&ahead)};
}

/* ---- The experiment -------------------------------------------------------------------------- */
#define MEASURES "separability,separability_se,alignment,alignment_sd,margin,margin_sd"

/* The labels that a probe predicts from states. */
typedef struct labelling {
    const int32_t *target, *first; /* [queries] of separability; of alignment, by first tokens */
    int64_t counted;
    bool *right;  /* [queries] */
    json_t *list; /* where the curve goes */
} labelling;

static cgam_status add_curve(cgam_lm_study *study, cgam_lm_result *r, int64_t k, int table,
                             const float *states, const labelling *of)
{
    cgam_env *env = study->env;
    const cgam_lm_task *task = &study->task;
    int64_t L = study->info.layers + 1, d = study->info.width, n = task->queries;
    cgam_status status = CGAM_OK;
    json_t *curve = cgam_lm_curve(of->list, k), *right = json_array();
    cgam_lm_work_readings(study, CGAM_WORK_PROBE * (double)(n * L));
    for (int64_t l = 0; l < L && status == CGAM_OK; l++) {
        double p;
        json_t *marks = json_object();
        for (int64_t i = 0; i < n; i++) of->right[i] = false;
        status =
            cgam_probe_separability(env, n, d, states + l * d, L * d, of->target, &p, of->right);
        cgam_alignment a = cgam_probe_alignment(study->lens, n, states + l * d, L * d, task->labels,
                                                task->tokens, of->first);
        cgam_lm_result_row(r, table,
                           (double[]){(double)k, (double)l, p,
                                      sqrt(p * (1 - p) / (double)of->counted), a.cosine,
                                      a.cosine_sd, a.margin, a.margin_sd});
        cgam_lm_put_right(env, marks, "of", n, of->target, of->right);
        json_array_append(right, json_object_get(marks, "of"));
        json_decref(marks);
        cgam_lm_work_tell(study, "probing", l + 1, L);
        if (cgam_interrupted(env)) status = CGAM_E_INTERRUPTED;
    }
    if (status == CGAM_OK) cgam_lm_result_put(r, table, L, MEASURES, curve);
    cgam_json_put(curve, "separability_right", right);
    return status;
}

/* Labels permuted within the queries of each half: accuracy on them is chance. */
static void shuffle_labels(const cgam_lm_study *study, int64_t n, const int32_t *target,
                           const int32_t *first, int32_t *out, int32_t *out_first)
{
    cgam_rng rng = cgam_rng_stream(study->seed, UINT64_C(1) << 56);
    for (int64_t i = 0; i < n; i++) out[i] = target[i], out_first[i] = first[i];
    for (int64_t i = n - 1; i > 1; i--) {
        int64_t j = i % 2 + 2 * cgam_rng_below(&rng, i / 2 + 1);
        int32_t a = out[i], b = out_first[i];
        out[i] = out[j], out_first[i] = out_first[j];
        out[j] = a, out_first[j] = b;
    }
}

/* The share of the most frequent label: the accuracy without any state. */
static double largest_share(int64_t n, const int32_t *target, int64_t counted)
{
    int64_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t same = 0;
        for (int64_t j = 0; j < n && target[i] >= 0; j++) same += target[j] == target[i];
        if (same > most) most = same;
    }
    return counted > 0 ? (double)most / (double)counted : (double)NAN;
}

/* Every number of shots, and the null with the most of them. */
static cgam_status add_curves(cgam_lm_study *study, cgam_lm_result *r)
{
    cgam_env *env = study->env;
    const cgam_lm_task *task = &study->task;
    int64_t n = task->queries;
    int32_t *shuffled, *shuffled_first;
    bool *right;
    cgam_status status = cgam_alloc_all(env, "a probe", CGAM_ARRAY(shuffled, n),
                                        CGAM_ARRAY(shuffled_first, n), CGAM_ARRAY(right, n));
    labelling of = {task->answers ? task->answers->target : task->target, task->target,
                    task->answers ? n : task->counted, right, json_array()};
    labelling null = {shuffled, shuffled_first, of.counted, right, json_array()};
    int table = cgam_lm_result_add(r, "probe", "separability and alignment of states, by layer",
                                   "shots,layer," MEASURES);
    int nulls = cgam_lm_result_add(r, "probe_nulls", "the same with shuffled labels",
                                   "shots,layer," MEASURES);
    if (status == CGAM_OK) shuffle_labels(study, n, of.target, of.first, shuffled, shuffled_first);
    for (int64_t i = 0; i < study->n_shots && status == CGAM_OK; i++) {
        float *states;
        int64_t k = study->shots[i];
        status = cgam_lm_states(study, task, k, CGAM_DEMOS_TRUE, &states);
        if (status == CGAM_OK) status = add_curve(study, r, k, table, states, &of);
        if (status == CGAM_OK && i == study->n_shots - 1)
            status = add_curve(study, r, k, nulls, states, &null);
        cgam_free(env, states);
    }
    cgam_lm_result_describe(r, study, task);
    cgam_json_add(r->doc, "majority=%g curves=%p nulls=%p", largest_share(n, of.target, of.counted),
                  of.list, null.list);
    cgam_free_all(env, shuffled, shuffled_first, right);
    return status;
}

cgam_status cgam_lm_probe(cgam_lm_study *study, cgam_lm_result **out)
{
    const cgam_lens *lens;
    cgam_lm_result *r;
    *out = NULL;
    if (study->task.eval->facts)
        return cgam_fail(study->env, CGAM_E_ARG, "probe requires classes; %s is a set of facts",
                         study->task.name);
    cgam_status status = cgam_lm_task_label(study, &study->task);
    if (status == CGAM_OK) status = cgam_lm_study_lens(study, &lens);
    if (status == CGAM_OK) status = cgam_lm_result_new(study, &r);
    if (status != CGAM_OK) return status;
    return cgam_lm_result_end(r, add_curves(study, r), out);
}
