/* text.c: captions and commands from a study's options. */
#include "lab/figures/text.h"

#include "io/array.h"

#include <stdio.h>
#include <string.h>

/* Adds the value in place of %s: numbers with at most six digits, the first value of a list. */
static void add_shown(char *text, size_t size, size_t *used, const cgam_study_param *p,
                      const cgam_study_opts *o)
{
    char value[64];
    const char *gap = strstr(p->shown, "%s");
    if (p->words || p->kind == CGAM_FIELD_INT) cgam_study_param_text(p, o, value, sizeof value);
    else snprintf(value, sizeof value, "%g", cgam_study_param_value(p, o, 0));
    if (gap)
        cgam_text_add(text, size, used, ", %.*s%s%s", (int)(gap - p->shown), p->shown, value,
                      gap + 2);
    else cgam_text_add(text, size, used, ", %s", p->shown);
}

/* Does the parameter run along an axis of the map? */
static bool runs(const cgam_study_opts *o, const char *name)
{
    return o->kind == CGAM_STUDY_PHASE &&
           (strcmp(name, cgam_axes[o->x]) == 0 || strcmp(name, cgam_axes[o->y]) == 0);
}

void cgam_caption(const cgam_study_opts *o, char *text, size_t size)
{
    const cgam_study_param *p;
    size_t used = 0;
    cgam_text_add(text, size, &used, "cgam %s, %s: seed %llu", CGAM_VERSION,
                  cgam_studies[o->kind].name, (unsigned long long)o->seed);
    for (int64_t k = 0; (p = cgam_study_param_at(o->kind, k)); k++)
        if (p->shown && cgam_study_param_count(p, o) > 0 && !runs(o, p->name))
            add_shown(text, size, &used, p, o);
}

/* Does the parameter have its default? */
static bool usual(const cgam_study_param *p, const cgam_study_opts *o, const cgam_study_opts *u)
{
    int64_t count = cgam_study_param_count(p, o);
    if (p->kind == CGAM_FIELD_BANK) return count == 0;
    if (count != cgam_study_param_count(p, u)) return false;
    for (int64_t i = 0; i < count; i++)
        if (cgam_study_param_value(p, o, i) != cgam_study_param_value(p, u, i)) return false;
    return true;
}

void cgam_command(const cgam_study_opts *o, char *text, size_t size)
{
    const cgam_study_opts u = cgam_study_opts_default(o->kind);
    const cgam_study_param *p;
    size_t used = 0;
    cgam_text_add(text, size, &used, "cgam study %s", cgam_studies[o->kind].name);
    for (int64_t k = 0; (p = cgam_study_param_at(o->kind, k)); k++) {
        bool always = strcmp(p->name, "trials") == 0 || strcmp(p->name, "seed") == 0;
        bool other = strcmp(p->name, "d") == 0 && o->bank; /* the bank determines d */
        if ((usual(p, o, &u) && !always) || other) continue;
        cgam_text_add(text, size, &used, " --%s ", p->name);
        cgam_study_param_text(p, o, text + used, size - used);
        used = strlen(text);
    }
}
