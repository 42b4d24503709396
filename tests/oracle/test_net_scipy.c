/* Flows against SciPy's solve_ivp (tests/oracle/net/generate.py): states, energies and their parts
 * along the way, by every method. */
#include "lab/net_file.h"
#include "net/net.h"
#include "support/check.h"

#include <cgam/flow.h>
#include <cgam/io.h>

typedef struct table {
    double *data;
    int64_t rows, columns;
} table;

static table load(cgam_env *env, const char *name, const char *member)
{
    char path[128], full[512];
    cgam_array a;
    table t;
    snprintf(path, sizeof path, "tests/oracle/net/%s.npz", name);
    snprintf(full, sizeof full, "%s:%s", check_source_path(path), member);
    CHECK_STATUS(env, cgam_array_open(env, full, &a));
    t.rows = a.shape[0];
    t.columns = a.ndim > 1 ? a.shape[1] : 1;
    t.data = malloc((size_t)a.size * sizeof *t.data);
    CHECK_STATUS(env, cgam_array_read_f64(env, &a, full, t.data));
    cgam_array_close(env, &a);
    return t;
}

typedef struct judge {
    table time, states, parts;
    const cgam_flow_opts *flow;
    int64_t met; /* samples so far */
    double allowed, worst, worst_energy;
} judge;

static int compare(void *user, const cgam_flow_moment *m)
{
    judge *j = user;
    if (!(m->events & CGAM_EVENT_SAMPLE) || j->met >= j->time.rows) return 0;
    int64_t k = j->met++;
    CHECK_CLOSE(m->time, j->time.data[k], 1e-12 * (1 + m->time));
    /* where a clamp changes, the sample comes before the change and SciPy's table after it */
    for (int i = 0; i < j->flow->clamp_count; i++)
        if (m->time > 0 && (j->flow->clamps[i].from == m->time || j->flow->clamps[i].to == m->time))
            return 0;
    double size = 1, off = 0, energy = 1, off_energy = 0;
    for (int64_t i = 0; i < j->states.columns; i++) {
        double want = j->states.data[k * j->states.columns + i];
        size = fmax(size, fabs(want));
        off = fmax(off, fabs(m->x[i] - want));
    }
    for (int64_t i = 0; i < j->parts.columns; i++) {
        double want = j->parts.data[k * j->parts.columns + i];
        energy = fmax(energy, fabs(want));
        off_energy = fmax(off_energy, fabs(m->parts[i] - want));
    }
    j->worst = fmax(j->worst, off / size);
    j->worst_energy = fmax(j->worst_energy, off_energy / energy);
    return 0;
}

static void run_case(const char *folder, const char *name, cgam_flow_method method, double allowed)
{
    cgam_env *env;
    cgam_env_opts eo = cgam_env_opts_default();
    cgam_net_file file;
    cgam_flow_report r;
    char path[128];
    eo.threads = 1;
    assert_int_equal(cgam_env_new(&eo, &env), CGAM_OK);
    snprintf(path, sizeof path, "%s/%s.json", folder, name);
    CHECK_STATUS(env, cgam_net_file_open(env, check_source_path(path), &file));
    judge j = {.time = load(env, name, "time"),
               .states = load(env, name, "states"),
               .parts = load(env, name, "parts"),
               .flow = &file.flow};
    file.flow.method = method;
    file.flow.step = 2e-3;
    file.flow.rtol = 1e-10;
    file.flow.atol = 1e-12;
    file.flow.stop = 0;
    file.flow.sample = file.flow.t_end / 40;
    file.flow.monitor = compare;
    file.flow.user = &j;
    CHECK_STATUS(env, cgam_flow_run(file.net, 1, file.x, &file.flow, &r));
    assert_int_equal(r.end, CGAM_FLOW_HORIZON);
    assert_int_equal(j.met, 41);
    print_message("%-12s %-5s states off by %.1e, parts by %.1e\n", name,
                  cgam_word(cgam_flow_method_words, method), j.worst, j.worst_energy);
    CHECK_LE(j.worst, allowed);
    CHECK_LE(j.worst_energy, allowed);
    free(j.time.data);
    free(j.states.data);
    free(j.parts.data);
    cgam_net_file_close(&file);
    cgam_env_free(env);
}

TEST(flows_follow_scipy)
{
    static const struct {
        const char *folder, *name;
        bool stiff;
    } cases[] = {{"examples", "two_stage", false},         {"examples", "hopfield", false},
                 {"examples", "higher_order", false},      {"tests/oracle/net", "mixed", false},
                 {"tests/oracle/net", "attention", false}, {"tests/oracle/net", "stiff", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run_case(cases[i].folder, cases[i].name, CGAM_FLOW_AUTO, 1e-8);
        run_case(cases[i].folder, cases[i].name, CGAM_FLOW_BDF, 1e-8);
        if (cases[i].stiff) continue; /* not for methods that follow the fastest rate */
        run_case(cases[i].folder, cases[i].name, CGAM_FLOW_ADAMS, 1e-8);
        run_case(cases[i].folder, cases[i].name, CGAM_FLOW_RK4, 1e-8);
    }
}
