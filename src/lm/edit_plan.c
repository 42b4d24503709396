/* edit_plan.c: which edit falls on which token. */
#include "lm/edit_plan.h"

#include "base/env.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

cgam_lm_edit cgam_lm_edit_default(void) { return (cgam_lm_edit){.scale = 1}; }

void cgam_edit_plan_clear(cgam_env *env, cgam_edit_plan *plan)
{
    cgam_free(env, plan->at);
    cgam_free(env, plan->first);
    cgam_free(env, plan->layer);
    *plan = (cgam_edit_plan){0};
}

/* An add of nothing: left out, so that it changes no bit, not even the sign of a zero. */
static bool is_nothing(const cgam_lm_edit *e, int64_t width)
{
    if (e->kind != CGAM_LM_ADD) return false;
    for (int64_t j = 0; j < width && e->scale != 0; j++)
        if (e->vector[j] != 0) return false;
    return true;
}

static cgam_status check(cgam_env *env, const cgam_lm_info *info, const cgam_lm_edit *e)
{
    if (e->layer < 0 || e->layer > info->layers)
        return cgam_fail(env, CGAM_E_ARG, "an edit at layer %lld: the model has 0 to %lld",
                         (long long)e->layer, (long long)info->layers);
    if (!e->vector)
        return cgam_fail(env, CGAM_E_ARG, "an edit at layer %lld without a vector",
                         (long long)e->layer);
    if (!isfinite(e->scale) || !isfinite((float)e->scale))
        return cgam_fail(env, CGAM_E_ARG, "an edit of scale %g", e->scale);
    for (int64_t j = 0; j < info->width; j++)
        if (!isfinite(e->vector[j]))
            return cgam_fail(env, CGAM_E_ARG,
                             "an edit at layer %lld: number %lld of its vector is %g",
                             (long long)e->layer, (long long)j, (double)e->vector[j]);
    return CGAM_OK;
}

/* Where an edit falls in a prompt of `length` tokens with `more` after it. */
static cgam_status place(cgam_env *env, const cgam_lm_edit *e, int64_t prompt, int64_t length,
                         int64_t more, cgam_edit_at *out)
{
    int64_t from = 0, to = INT64_MAX;
    char after[48];
    snprintf(after, sizeof after, ", and up to %lld follow", (long long)more);
    switch (e->where) {
    case CGAM_LM_LAST: from = to = length - 1; break;
    case CGAM_LM_PROMPT: to = length - 1; break;
    case CGAM_LM_GENERATED: from = length; break;
    case CGAM_LM_ALL: break;
    case CGAM_LM_RANGE:
        from = e->from < 0 ? e->from + length : e->from;
        to = e->to < 0 ? e->to + length : e->to;
        if (from < 0 || to < from || to >= length + more)
            return cgam_fail(env, CGAM_E_ARG,
                             "an edit at tokens %lld to %lld: prompt %lld has %lld tokens%s",
                             (long long)e->from, (long long)e->to, (long long)prompt,
                             (long long)length, more > 0 ? after : "");
        break;
    }
    *out =
        (cgam_edit_at){e->layer, from, to, e->kind == CGAM_LM_REPLACE, (float)e->scale, e->vector};
    return CGAM_OK;
}

static cgam_status place_all(cgam_env *env, const cgam_lm_info *info, cgam_lm_edits edits,
                             int64_t prompt, int64_t length, int64_t more, cgam_edit_plan *plan,
                             int64_t *placed)
{
    cgam_status status = CGAM_OK;
    for (int64_t k = 0; k < edits.count && status == CGAM_OK; k++) {
        const cgam_lm_edit *e = &edits.edit[k];
        status = check(env, info, e);
        if (status == CGAM_OK) status = place(env, e, prompt, length, more, &plan->at[*placed]);
        if (status != CGAM_OK || is_nothing(e, info->width)) continue;
        if (e->kind != CGAM_LM_ADD || e->where != CGAM_LM_ALL) plan->everywhere = false;
        plan->layer[e->layer] = plan->any = true;
        ++*placed;
    }
    return status;
}

cgam_status cgam_edit_plan_make(cgam_env *env, const cgam_lm_info *info, int64_t count,
                                const cgam_lm_prompt *prompts, cgam_edit_reach reach,
                                cgam_lm_edits edits, const cgam_lm_edits *edits_each,
                                cgam_edit_plan *out)
{
    int64_t most = 0, placed = 0;
    bool own = false;
    for (int64_t i = 0; i < count; i++) {
        most += edits.count + (edits_each ? edits_each[i].count : 0);
        own = own || (edits_each && edits_each[i].count > 0);
    }
    *out = (cgam_edit_plan){.width = info->width, .layers = info->layers, .everywhere = !own};
    out->at = cgam_alloc(env, (size_t)most, sizeof *out->at);
    out->first = cgam_zalloc(env, (size_t)count + 1, sizeof *out->first);
    out->layer = cgam_zalloc(env, (size_t)info->layers + 1, sizeof *out->layer);
    cgam_status status = CGAM_OK;
    if (!out->at || !out->first || !out->layer) status = cgam_fail_nomem(env, "edits");
    for (int64_t i = 0; i < count && status == CGAM_OK; i++) {
        int64_t length = reach.prompt_tokens ? reach.prompt_tokens[i] : prompts[i].count;
        int64_t more = prompts[i].count - length + reach.more;
        status = place_all(env, info, edits, i, length, more, out, &placed);
        if (status == CGAM_OK && edits_each)
            status = place_all(env, info, edits_each[i], i, length, more, out, &placed);
        out->first[i + 1] = placed;
    }
    if (status != CGAM_OK) cgam_edit_plan_clear(env, out);
    return status;
}

static bool covers(const cgam_edit_at *e, int64_t position)
{
    return e->from <= position && position <= e->to;
}

bool cgam_edit_plan_touches(const cgam_edit_plan *plan, int64_t prompt, int64_t layer,
                            int64_t position)
{
    if (!plan->any || !plan->layer[layer]) return false;
    for (int64_t k = plan->first[prompt]; k < plan->first[prompt + 1]; k++)
        if (plan->at[k].layer == layer && covers(&plan->at[k], position)) return true;
    return false;
}

void cgam_edit_plan_apply(const cgam_edit_plan *plan, int64_t prompt, int64_t layer,
                          int64_t position, float *h)
{
    if (!plan->any || !plan->layer[layer]) return;
    for (int64_t k = plan->first[prompt]; k < plan->first[prompt + 1]; k++) {
        const cgam_edit_at *e = &plan->at[k];
        if (e->layer != layer || !covers(e, position)) continue;
        for (int64_t j = 0; j < plan->width; j++) {
            float x = e->scale *
                      e->vector[j]; /* rounded before it is added, as libllama's adapter does */
            h[j] = e->replace ? x : h[j] + x;
        }
    }
}

static bool equal(const cgam_edit_at *a, const cgam_edit_at *b, int64_t width)
{
    return a->layer == b->layer && a->replace == b->replace && a->scale == b->scale &&
           (a->vector == b->vector ||
            memcmp(a->vector, b->vector, (size_t)width * sizeof *a->vector) == 0);
}

bool cgam_edit_plan_same(const cgam_edit_plan *plan, int64_t a, int64_t b, int64_t position)
{
    if (!plan->any) return true;
    int64_t i = plan->first[a], j = plan->first[b];
    for (;; i++, j++) {
        while (i < plan->first[a + 1] && !covers(&plan->at[i], position)) i++;
        while (j < plan->first[b + 1] && !covers(&plan->at[j], position)) j++;
        if (i == plan->first[a + 1] || j == plan->first[b + 1])
            return i == plan->first[a + 1] && j == plan->first[b + 1];
        if (!equal(&plan->at[i], &plan->at[j], plan->width)) return false;
    }
}
