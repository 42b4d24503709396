/* probe.c: separability by liblinear, alignment by cosines (Yang et al. 2025 track both through
 * the layers of a transformer). */
#include "base/env.h"
#include "num/stats.h"

#include <cgam/baseline.h>
#include <cgam/probe.h>
#include <dlfcn.h>
#include <linear.h>
#include <math.h>
#include <pthread.h>

static void quiet(const char *text) { (void)text; }

/* liblinear is a guest, as BLAS is, which it would otherwise load too early: see base/blas.h. */
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
    if (set_print) set_print(quiet);
}

/* Mean and 1/deviation of every feature over the training half; a feature that never changes
 * becomes 0. */
static void scale_of(int64_t count, int64_t width, const float *H, int64_t stride,
                     const int32_t *target, int half, double *mean, double *factor)
{
    for (int64_t j = 0; j < width; j++) {
        cgam_moments all = {0};
        for (int64_t i = half; i < count; i += 2)
            if (target[i] >= 0) cgam_moments_add(&all, (double)H[i * stride + j]);
        mean[j] = all.mean;
        double sd = cgam_moments_sd(&all);
        factor[j] = sd > 0 ? 1 / (sd * sqrt((double)width)) : 0;
    }
}

typedef struct workspace {
    struct feature_node *nodes, **rows; /* [count * (width + 2)], [count] */
    double *mean, *factor, *labels;     /* [width] each, [count] */
} workspace;

/* Trains on `half`, counts hits on the other. */
static cgam_status one_way(cgam_env *env, workspace *w, int64_t count, int64_t width,
                           const float *H, int64_t stride, const int32_t *target, int half,
                           int64_t *hits, bool *possible)
{
    scale_of(count, width, H, stride, target, half, w->mean, w->factor);
    for (int64_t i = 0; i < count; i++) {
        struct feature_node *row = w->nodes + i * (width + 2);
        for (int64_t j = 0; j < width; j++)
            row[j] = (struct feature_node){(int)j + 1,
                                           ((double)H[i * stride + j] - w->mean[j]) * w->factor[j]};
        row[width] = (struct feature_node){(int)width + 1, 1}; /* the bias */
        row[width + 1] = (struct feature_node){-1, 0};
    }
    int n = 0;
    bool several = false;
    for (int64_t i = half; i < count; i += 2) {
        if (target[i] < 0) continue;
        w->rows[n] = w->nodes + i * (width + 2);
        w->labels[n++] = target[i];
        several = several || w->labels[n - 1] != w->labels[0];
    }
    *possible = *possible && several;
    if (!several) return CGAM_OK;
    struct problem problem = {.l = n, .n = (int)width + 1, .y = w->labels, .x = w->rows, .bias = 1};
    struct parameter how = {.solver_type = L2R_LR, .eps = 1e-4, .C = 1};
    const char *wrong = linear.check_parameter(&problem, &how);
    if (wrong) return cgam_fail(env, CGAM_E_INTERNAL, "liblinear: %s", wrong);
    struct model *model = linear.train(&problem, &how);
    if (!model) return cgam_fail(env, CGAM_E_NOMEM, "out of memory: a probe");
    for (int64_t i = 1 - half; i < count; i += 2)
        if (target[i] >= 0)
            *hits += (int32_t)linear.predict(model, w->nodes + i * (width + 2)) == target[i];
    linear.free_model(&model);
    return CGAM_OK;
}

cgam_status cgam_probe_separability(cgam_env *env, int64_t count, int64_t width, const float *H,
                                    int64_t stride, const int32_t *target, double *accuracy)
{
    *accuracy = NAN;
    pthread_once(&linear.once, load_linear);
    if (!linear.found)
        return cgam_fail(env, CGAM_E_NOT_FOUND, "probes need %s, which cannot be loaded",
                         CGAM_LIBLINEAR);
    size_t n = (size_t)count, d = (size_t)width;
    workspace w = {.nodes = cgam_alloc(env, n * (d + 2), sizeof *w.nodes),
                   .rows = cgam_alloc(env, n, sizeof(struct feature_node *)),
                   .mean = cgam_alloc(env, 2 * d + n, sizeof *w.mean)};
    cgam_status status = w.nodes && w.rows && w.mean ? CGAM_OK : cgam_fail_nomem(env, "a probe");
    w.factor = w.mean ? w.mean + d : NULL;
    w.labels = w.mean ? w.mean + 2 * d : NULL;
    int64_t hits = 0, counted = 0;
    bool possible = true;
    for (int half = 0; half < 2 && status == CGAM_OK; half++)
        status = one_way(env, &w, count, width, H, stride, target, half, &hits, &possible);
    for (int64_t i = 0; i < count; i++) counted += target[i] >= 0;
    if (status == CGAM_OK && possible && counted > 0) *accuracy = (double)hits / (double)counted;
    cgam_free(env, w.nodes);
    cgam_free(env, w.rows);
    cgam_free(env, w.mean);
    return status;
}

cgam_alignment cgam_probe_alignment(const cgam_lens *lens, int64_t count, const float *H,
                                    int64_t stride, int64_t labels, const int32_t *tokens,
                                    const int32_t *target)
{
    cgam_moments to_own = {0}, ahead = {0};
    int64_t d = cgam_lens_width(lens);
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
