/* text.c: captions and commands from a study's options. */
#include "report/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *cgam_short_text(double value, char *text)
{
    snprintf(text, 32, "%.6g", value);
    return text;
}

static void add(char *text, size_t size, const char *format, ...) CGAM_PRINTF(3, 4);
static void add(char *text, size_t size, const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    if (used < size) vsnprintf(text + used, size - used, format, args);
    va_end(args);
}

void cgam_caption(const cgam_study_opts *o, char *text, size_t size)
{
    const char *noise = o->sigma_c_vector ? "σ_c/√d" : "σ_c";
    text[0] = '\0';
    add(text, size, "cgam %s, %s: seed %llu, ", CGAM_VERSION, cgam_study_name(o->kind),
        (unsigned long long)o->seed);
    switch (o->kind) {
    case CGAM_STUDY_SEPARATION:
        add(text, size,
            "%lld trials per point%s, N = %lld, d = %lld, β = %g, α = %g, σ_c = %g (%s per "
            "component), %s recall",
            (long long)o->trials, o->banks > 1 ? " and bank" : "", (long long)o->n, (long long)o->d,
            o->beta, o->alpha, o->sigma_c, noise, o->coupled ? "coupled" : "first-order");
        break;
    case CGAM_STUDY_COMPETITION:
        add(text, size,
            "%lld clusters, N = %lld, d = %lld, β = %g, |centre| = %g, spread %g, t ≤ min(t*, %g), "
            "δ = %g",
            (long long)o->trials, (long long)o->n, (long long)o->d, o->beta, o->centre, o->spread,
            o->t_cap, o->delta);
        break;
    case CGAM_STUDY_COUPLED:
        add(text, size,
            "%lld clusters, N = %lld, d = %lld, β = %g, |centre| = %g, spread %g, noise start %g, "
            "t ≤ %g",
            (long long)o->trials, (long long)o->n, (long long)o->d, o->beta, o->centre, o->spread,
            o->noise, o->t_cap);
        break;
    case CGAM_STUDY_TIMESCALE:
        add(text, size,
            "%lld flows, N = %lld, d = %lld, β = %g, α = %g, λ = %g, σ_q = %g, σ_c = %g (%s per component), query "
            "%s, r(0) = %s",
            (long long)o->trials, (long long)o->n, (long long)o->d, o->beta, o->alpha,
            o->lambda.values[0], o->sigma_q.values[0], o->sigma_c, noise,
            o->query_free ? "free" : "clamped", o->start_query ? "Zq" : "0");
        break;
    case CGAM_STUDY_THEOREMS: add(text, size, "%lld cases", (long long)o->trials); break;
    case CGAM_STUDY_CAPACITY:
    case CGAM_STUDY_PHASE:
        add(text, size, "%lld trials × %lld banks, %s, σ_c = %g (%s per component)",
            (long long)o->trials, (long long)o->banks,
            o->bank ? "memories from a file" : "random unit memories", o->sigma_c, noise);
        if (!o->bank) add(text, size, ", d = %lld", (long long)o->d);
        if (o->kind == CGAM_STUDY_CAPACITY || (o->x != CGAM_AXIS_ALPHA && o->y != CGAM_AXIS_ALPHA))
            add(text, size, ", α = %g", o->alphas.values[0]);
        if (o->kind == CGAM_STUDY_CAPACITY ||
            (o->x != CGAM_AXIS_SIGMA_Q && o->y != CGAM_AXIS_SIGMA_Q))
            add(text, size, ", σ_q = %g", o->sigma_q.values[0]);
        if (o->kind == CGAM_STUDY_PHASE && o->x != CGAM_AXIS_LAMBDA && o->y != CGAM_AXIS_LAMBDA)
            add(text, size, ", λ = %g", o->lambda.values[0]);
        if (o->kind == CGAM_STUDY_PHASE && o->x != CGAM_AXIS_LOAD && o->y != CGAM_AXIS_LOAD &&
            o->load.values[0] > 0)
            add(text, size, ", N/d = %g", o->load.values[0]);
        break;
    case CGAM_STUDY_KINDS: break;
    }
}

static void add_real(char *text, size_t size, const char *name, double value, double usual)
{
    if (value != usual) add(text, size, " --%s %.17g", name, value);
}

static void add_int(char *text, size_t size, const char *name, int64_t value, int64_t usual)
{
    if (value != usual) add(text, size, " --%s %lld", name, (long long)value);
}

static void add_list(char *text, size_t size, const char *name, cgam_list list, cgam_list usual)
{
    if (list.count == usual.count &&
        (list.count == 0 ||
         memcmp(list.values, usual.values, (size_t)list.count * sizeof *list.values) == 0))
        return;
    add(text, size, " --%s ", name);
    for (int64_t i = 0; i < list.count; i++)
        add(text, size, "%s%.12g", i ? "," : "", list.values[i]);
}

void cgam_command(const cgam_study_opts *o, char *text, size_t size)
{
    static const char *const axes[] = {"load", "lambda", "alpha", "sigma-q"};
    const cgam_study_opts u = cgam_study_opts_default(o->kind);
    bool grid = o->kind == CGAM_STUDY_CAPACITY || o->kind == CGAM_STUDY_PHASE;
    text[0] = '\0';
    add(text, size, "cgam study %s --trials %lld --seed %llu", cgam_study_name(o->kind),
        (long long)o->trials, (unsigned long long)o->seed);
    add_int(text, size, "n", o->n, u.n);
    add_int(text, size, "d", o->d, u.d);
    add_int(text, size, "banks", o->banks, u.banks);
    add_int(text, size, "example", o->example, u.example);
    add_int(text, size, "max-iter", o->max_iter, u.max_iter);
    add_int(text, size, "fold-trials", o->fold_trials, u.fold_trials);
    add_real(text, size, "alpha", o->alpha, u.alpha);
    add_real(text, size, "beta", o->beta, u.beta);
    add_real(text, size, "sigma-c", o->sigma_c, u.sigma_c);
    add_real(text, size, "centre", o->centre, u.centre);
    add_real(text, size, "spread", o->spread, u.spread);
    add_real(text, size, "t-cap", o->t_cap, u.t_cap);
    add_real(text, size, "delta", o->delta, u.delta);
    add_real(text, size, "noise", o->noise, u.noise);
    add_real(text, size, "tol", o->tol, u.tol);
    add_list(text, size, "lambda", o->lambda, u.lambda);
    add_list(text, size, "sigma-q", o->sigma_q, u.sigma_q);
    add_list(text, size, grid ? "alpha" : "alphas", o->alphas, u.alphas);
    add_list(text, size, "load", o->load, u.load);
    add_list(text, size, "ratio", o->ratio, u.ratio);
    if (o->sigma_c_vector) add(text, size, " --context-noise vector");
    if (o->coupled) add(text, size, " --mode coupled");
    if (o->query_free) add(text, size, " --query free");
    if (o->start_query) add(text, size, " --start query");
    if (o->kind == CGAM_STUDY_PHASE && o->x != u.x) add(text, size, " --x %s", axes[o->x]);
    if (o->kind == CGAM_STUDY_PHASE && o->y != u.y) add(text, size, " --y %s", axes[o->y]);
    if (o->bank) add(text, size, " --bank FILE");
}
