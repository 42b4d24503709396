/* map_fields.c: options and results of maps, a row for each field. */
#include "base/field.h"
#include "lab/map.h"

#include <math.h>

#define ABOVE_0 0x1p-1000 /* any number above zero whose inverse is finite */
/* struct, member, name, value, default, least, words */
#define REAL(struct_, member_, name_, value_, fallback_, min_, ...)                                \
    CGAM_ROW(struct_, member_, name_, CGAM_REAL, __VA_ARGS__, .value = value_,                     \
             .fallback = fallback_, .min = min_, .max = INFINITY)

const cgam_field cgam_map_opts_rows[] = {
    REAL(cgam_map_opts, alpha, "alpha", "X", "0", 0, "penalty between similar memories, 0 or more"),
    REAL(cgam_map_opts, lambda, "lambda", "X", "1", 0,
         "coupling between gates and retrieval, 0 or more"),
    REAL(cgam_map_opts, beta, "beta", "X", "1", ABOVE_0, "inverse temperature, above 0"),
    CGAM_ROW(cgam_map_opts, settled, "gates", CGAM_CHOICE,
             "context: gates as the context alone sets them; settled: where they settle at each "
             "point (alpha below alpha_crit)",
             .value = "context|settled", .fallback = "context"),
    CGAM_ROWS_END,
};

const cgam_field cgam_map_flow_opts_rows[] = {
    REAL(cgam_map_flow_opts, switch_time, "switch", "T", NULL, ABOVE_0,
         "time at which a flow's context changes to --context-then"),
    REAL(cgam_map_flow_opts, tau_s, "tau-s", "X", "0.1", ABOVE_0, "time constant of the gates"),
    REAL(cgam_map_flow_opts, tau_r, "tau-r", "X", "0.1", ABOVE_0, "time constant of the retrieval"),
    REAL(cgam_map_flow_opts, tau_q, "tau-q", "X", "1", ABOVE_0, "time constant of the query"),
    REAL(cgam_map_flow_opts, t_end, "t-max", "T", "30", ABOVE_0, "time at which the flows end"),
    CGAM_ROWS_END,
};

#define REST(member_, kind_, ...) CGAM_ROW(cgam_attractor, member_, #member_, kind_, __VA_ARGS__)
const cgam_field cgam_attractor_rows[] = {
    REST(energy, CGAM_REAL, "energy at the rest point"),
    REST(winner, CGAM_INT, "the memory with the largest p"),
    REST(p, CGAM_REAL, "probability of that memory"),
    REST(starts, CGAM_INT, "starts that lead there"),
    REST(settled, CGAM_FLAG, "the last step was below 1e-9"),
    CGAM_ROWS_END,
};

#define MOMENT(member_, kind_, ...) CGAM_ROW(cgam_map_moment, member_, #member_, kind_, __VA_ARGS__)
const cgam_field cgam_moment_rows[] = {
    MOMENT(time, CGAM_REAL, "time"),
    MOMENT(x, CGAM_REAL, "where the query is on the plane"),
    MOMENT(y, CGAM_REAL, "where the query is on the plane"),
    MOMENT(off, CGAM_REAL, "its distance from the plane"),
    MOMENT(energy, CGAM_REAL, "energy of the whole network"),
    MOMENT(winner, CGAM_INT, "the memory with the largest score"),
    CGAM_ROWS_END,
};
