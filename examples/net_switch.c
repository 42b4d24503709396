/* net_switch.c: a context that switches while a memory is at work.
 *
 * The two-stage memory as a network (as_net.h) holds six memories. The query lies between memories
 * 1 and 2; the context speaks for 2 until t = 15 and for 1 after that. A monitor prints the moments
 * that matter: what the network retrieves, and the energy, which falls at all times but the one at
 * which the context is changed from outside. */
#include <cgam/cgam.h>
#include <math.h>
#include <stdio.h>

enum { N = 6, D = 4 };
static const double Z[N][D] = {{1, 0, 0, .2}, {.8, .6, 0, 0}, {.8, 0, .6, 0},
                               {0, 1, .3, 0}, {0, .3, 1, .1}, {.1, 0, .3, 1}};
static const double query[D] = {1, .5, .5, 0}, before[D] = {0, 0, 1, 0}, after[D] = {0, 1, 0, 0};

static int tell(void *user, const cgam_flow_moment *m)
{
    const cgam_net *net = user;
    const unsigned wanted = CGAM_EVENT_START | CGAM_EVENT_CLAMP | CGAM_EVENT_WINNER |
                            CGAM_EVENT_SETTLED | CGAM_EVENT_END;
    if (!(m->events & wanted)) return 0;
    printf("%7.3f  winner %lld  energy %8.4f  gates %8.4f  %s%s%s%s%s\n", m->time,
           (long long)m->winner, m->energy, m->parts[cgam_net_find(net, "gates")],
           m->events & CGAM_EVENT_START ? "at rest" : "",
           m->events & CGAM_EVENT_CLAMP ? "the context changes" : "",
           m->events & CGAM_EVENT_WINNER ? "another memory leads" : "",
           m->events & CGAM_EVENT_SETTLED ? "the energy has settled" : "",
           m->events & CGAM_EVENT_STEADY && m->events & CGAM_EVENT_END ? "steady" : "");
    return 0;
}

static cgam_status run(cgam_env *env)
{
    cgam_bank *bank = NULL;
    cgam_net *net = NULL;
    cgam_flow_report report;
    cgam_bank_opts unit = {.normalize = true};
    cgam_memory_net_opts o = cgam_memory_net_opts_default();
    o.alpha = 0.5;
    o.beta = 8;
    o.lambda = 0.5;
    o.tau_s = 0.2; /* gates are faster than retrieval */
    cgam_status status = cgam_bank_new(env, Z, CGAM_F64, N, D, &unit, &bank);
    if (status == CGAM_OK) status = cgam_memory_net_new(bank, &o, &net);
    const cgam_clamp clamps[] = {
        {.layer = CGAM_NET_QUERY, .to = INFINITY, .value = query},
        {.layer = CGAM_NET_CONTEXT, .to = 15, .value = before},
        {.layer = CGAM_NET_CONTEXT, .from = 15, .to = INFINITY, .value = after}};
    double x[D + N + N + D] = {0}; /* context, gates, retrieval, query: all at rest */
    cgam_flow_opts f = cgam_flow_opts_default();
    f.method = CGAM_FLOW_RK4; /* fixed steps: the same times on every machine */
    f.step = 0.01;
    f.clamps = clamps;
    f.clamp_count = 3;
    f.watch = CGAM_NET_RETRIEVAL;
    f.monitor = tell;
    f.user = net;
    if (status == CGAM_OK) status = cgam_flow_run(net, 1, x, &f, &report);
    if (status == CGAM_OK)
        printf("\nended: %s; the energy never rose by more than %.0e between changes\n",
               cgam_word(cgam_flow_end_words, report.end), fmax(report.energy_rise, 1e-12));
    cgam_net_free(net);
    cgam_bank_free(bank);
    return status;
}

int main(void)
{
    cgam_env *env;
    if (cgam_env_new(NULL, &env) != CGAM_OK) return 3;
    cgam_status status = run(env);
    if (status != CGAM_OK) fprintf(stderr, "net_switch: %s\n", cgam_env_message(env));
    cgam_env_free(env);
    return status == CGAM_OK ? 0 : 1;
}
