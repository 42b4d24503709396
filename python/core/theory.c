/* theory.c: the theorems as functions. Arrays are f64; outputs are filled in place. */
#include "core.h"

/* Runs `statement`, which sets `status`, with the interpreter's lock released. */
#define WORK(statement)                                                                            \
    do {                                                                                           \
        call c_;                                                                                   \
        call_begin(&c_);                                                                           \
        statement;                                                                                 \
        call_end(&c_);                                                                             \
    } while (0)

/* Ends every function: releases the arrays, and returns `out` or raises. */
static PyObject *finish(arrays *a, handle *h, cgam_status status, PyObject *out)
{
    arrays_release(a);
    if (!PyErr_Occurred() && status == CGAM_OK) return out;
    Py_XDECREF(out);
    return PyErr_Occurred() ? NULL : raise_status(h->box->env, status);
}

static int64_t rows_of(const handle *h) { return cgam_bank_describe(((handle *)h->keep)->it).n; }

/* ---- numbers alone ---------------------------------------------------------------------------- */

/* separation(what, n, beta, x): the bound, its logarithm, or the threshold */
static PyObject *separation(PyObject *self, PyObject *args)
{
    (void)self;
    const char *what;
    long long n;
    double beta, x;
    if (!PyArg_ParseTuple(args, "sLdd:separation", &what, &n, &beta, &x)) return NULL;
    if (n < 1 || !(beta > 0))
        return PyErr_Format(PyExc_ValueError, "n must be at least 1 and beta above 0");
    return PyFloat_FromDouble(what[0] == 'b'   ? cgam_separation_bound(n, beta, x)
                              : what[0] == 'l' ? cgam_separation_bound_log(n, beta, x)
                                               : cgam_separation_threshold(n, beta, x));
}

/* stability(eta_min, beta, lam, norm_max, p) -> margin; norm_max < 0: the query is held */
static PyObject *stability(PyObject *self, PyObject *args)
{
    (void)self;
    double eta, beta, lambda, most, p;
    if (!PyArg_ParseTuple(args, "ddddd:stability", &eta, &beta, &lambda, &most, &p)) return NULL;
    return PyFloat_FromDouble(most < 0
                                  ? cgam_stability_margin(eta, beta, lambda, p)
                                  : cgam_stability_margin_free_query(eta, beta, lambda, most, p));
}

/* readout_bound(n, beta, gap, norm_max) */
static PyObject *readout_bound(PyObject *self, PyObject *args)
{
    (void)self;
    long long n;
    double beta, gap, most;
    if (!PyArg_ParseTuple(args, "Lddd:readout_bound", &n, &beta, &gap, &most)) return NULL;
    return PyFloat_FromDouble(cgam_readout_bound(n, beta, gap, most));
}

/* gaps(b, s, lam, mu) -> (gap, raw, gate, sum) */
static PyObject *gaps(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *b_in, *s_in;
    double lambda;
    long long mu;
    int64_t n = 0;
    if (!PyArg_ParseTuple(args, "OOdL:gaps", &b_in, &s_in, &lambda, &mu)) return NULL;
    arrays a = {0};
    const double *b = array_in(&a, b_in, "b", -1, &n);
    const double *s = b ? array_in(&a, s_in, "s", n, NULL) : NULL;
    if (s && (mu < 0 || mu >= n))
        PyErr_Format(PyExc_ValueError, "no memory mu = %lld (there are %lld)", mu, (long long)n);
    cgam_gaps g = {0};
    bool fine = s && !PyErr_Occurred();
    if (fine) g = cgam_separation_gaps(n, b, s, lambda, mu);
    arrays_release(&a);
    return fine ? Py_BuildValue("dddd", g.gap, g.raw, g.gate, g.sum) : NULL;
}

/* contraction(beta, lam, eta_min) -> (constant, largest lambda) */
static PyObject *contraction(PyObject *self, PyObject *args)
{
    (void)self;
    double beta, lambda, eta;
    if (!PyArg_ParseTuple(args, "ddd:contraction", &beta, &lambda, &eta)) return NULL;
    return Py_BuildValue("dd", cgam_contraction(beta, lambda, eta),
                         cgam_contraction_lambda_max(beta, eta));
}

/* softmax_norm(p) -> (norm, free bound) */
static PyObject *softmax_norm(PyObject *self, PyObject *in)
{
    (void)self;
    arrays a = {0};
    int64_t n = 0;
    const double *p = array_in(&a, in, "p", -1, &n);
    double norm = p ? cgam_softmax_norm(n, p) : 0, bound = p ? cgam_softmax_norm_bound(n, p) : 0;
    arrays_release(&a);
    return p ? Py_BuildValue("dd", norm, bound) : NULL;
}

/* ---- gates without coupling ------------------------------------------------------------------- */

/* winner(spectrum, alpha, u, s0) -> (index, gap, gamma, reason) */
static PyObject *winner(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *u_in, *s_in;
    double alpha;
    if (!PyArg_ParseTuple(args, "OdOO:winner", &object, &alpha, &u_in, &s_in)) return NULL;
    handle *h = handle_of(object, SPECTRUM);
    if (!h) return NULL;
    arrays a = {0};
    cgam_winner w = {0};
    cgam_status status = CGAM_OK;
    const double *u = array_in(&a, u_in, "u", rows_of(h), NULL);
    const double *s0 = u ? array_in_or_none(&a, s_in, "s0", rows_of(h)) : NULL;
    if (u && !PyErr_Occurred()) WORK(status = cgam_supercritical_winner(h->it, alpha, u, s0, &w));
    PyObject *out = u && !PyErr_Occurred() && status == CGAM_OK
                        ? Py_BuildValue("Lddz", (long long)w.index, w.gap, w.gamma, w.reason)
                        : NULL;
    return finish(&a, h, status, out);
}

/* horizon(spectrum, alpha, tau, beta, delta, u, s0, use_rest)
 *   -> (time, rest, gap, closed_form, winner, reason) */
static PyObject *horizon(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *u_in, *s_in;
    double alpha, tau, beta, delta;
    int rest;
    if (!PyArg_ParseTuple(args, "OddddOOp:horizon", &object, &alpha, &tau, &beta, &delta, &u_in,
                          &s_in, &rest))
        return NULL;
    handle *h = handle_of(object, SPECTRUM);
    if (!h) return NULL;
    arrays a = {0};
    cgam_horizon t = {0};
    cgam_status status = CGAM_OK;
    const double *u = array_in(&a, u_in, "u", rows_of(h), NULL);
    const double *s0 = u ? array_in_or_none(&a, s_in, "s0", rows_of(h)) : NULL;
    bool given = u && !PyErr_Occurred();
    if (given)
        WORK(status =
                 cgam_supercritical_horizon(h->it, alpha, tau, beta, delta, u, s0, rest != 0, &t));
    PyObject *out = given && status == CGAM_OK ? Py_BuildValue("dddOLz", t.time, t.rest, t.gap,
                                                               t.closed_form ? Py_True : Py_False,
                                                               (long long)t.winner, t.reason)
                                               : NULL;
    return finish(&a, h, status, out);
}

/* ---- with coupling ---------------------------------------------------------------------------- */

/* coupled_critical(bank, lam, beta) -> (alpha, mu_perp_min, unit, balanced, weak, below_one, positive) */
static PyObject *coupled_critical(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object;
    double lambda, beta;
    if (!PyArg_ParseTuple(args, "Odd:coupled_critical", &object, &lambda, &beta)) return NULL;
    handle *h = handle_of(object, BANK);
    if (!h) return NULL;
    arrays a = {0};
    cgam_coupled_critical k = {0};
    cgam_status status;
    WORK(status = cgam_coupled_critical_find(h->it, lambda, beta, &k));
    PyObject *out = status == CGAM_OK
                        ? Py_BuildValue("ddNNNNN", k.alpha, k.mu_perp_min, PyBool_FromLong(k.unit),
                                        PyBool_FromLong(k.balanced), PyBool_FromLong(k.weak),
                                        PyBool_FromLong(k.below_one), PyBool_FromLong(k.positive))
                        : NULL;
    return finish(&a, h, status, out);
}

/* fold(bank, lam, beta, b, u, alpha_max, tol) -> (alpha, margin, steps) */
static PyObject *fold(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *b_in, *u_in;
    double lambda, beta, most, tol;
    if (!PyArg_ParseTuple(args, "OddOOdd:fold", &object, &lambda, &beta, &b_in, &u_in, &most, &tol))
        return NULL;
    handle *h = handle_of(object, BANK);
    if (!h) return NULL;
    int64_t n = cgam_bank_describe(h->it).n;
    arrays a = {0};
    cgam_fold f = {0};
    cgam_status status = CGAM_OK;
    const double *b = array_in(&a, b_in, "b", n, NULL);
    const double *u = b ? array_in(&a, u_in, "u", n, NULL) : NULL;
    if (u) WORK(status = cgam_fold_find(h->it, lambda, beta, b, u, most, tol, &f));
    PyObject *out =
        u && status == CGAM_OK ? Py_BuildValue("ddL", f.alpha, f.margin, (long long)f.steps) : NULL;
    return finish(&a, h, status, out);
}

/* at_p(gate, what, beta, lam, p) -> (value, proved): the local contraction or the fold margin */
static PyObject *at_p(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *p_in;
    const char *what;
    double beta, lambda, value = 0;
    bool proved = false;
    if (!PyArg_ParseTuple(args, "OsddO:at_p", &object, &what, &beta, &lambda, &p_in)) return NULL;
    handle *h = handle_of(object, GATE);
    if (!h) return NULL;
    arrays a = {0};
    cgam_status status = CGAM_OK;
    const double *p = array_in(&a, p_in, "p", rows_of(h), NULL);
    if (p && what[0] == 'c')
        WORK(status = cgam_contraction_local(h->it, beta, lambda, p, &value, &proved));
    else if (p) WORK(status = cgam_fold_margin(h->it, beta, lambda, p, &value, &proved));
    PyObject *out =
        p && status == CGAM_OK ? Py_BuildValue("dN", value, PyBool_FromLong(proved)) : NULL;
    return finish(&a, h, status, out);
}

/* parts(gate, lam, u, p, bias, feedback) */
static PyObject *parts(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *in[4];
    double lambda;
    if (!PyArg_ParseTuple(args, "OdOOOO:parts", &object, &lambda, &in[0], &in[1], &in[2], &in[3]))
        return NULL;
    handle *h = handle_of(object, GATE);
    if (!h) return NULL;
    int64_t n = rows_of(h);
    arrays a = {0};
    cgam_status status = CGAM_OK;
    const double *u = array_in(&a, in[0], "u", n, NULL);
    const double *p = u ? array_in(&a, in[1], "p", n, NULL) : NULL;
    double *bias = p ? array_out(&a, in[2], "bias", n) : NULL;
    double *feedback = bias ? array_out(&a, in[3], "feedback", n) : NULL;
    if (feedback) WORK(status = cgam_retrieval_parts(h->it, lambda, u, p, bias, feedback));
    return finish(&a, h, status, Py_NewRef(Py_None));
}

/* energy(gate, beta, lam, b, u, s, gradient) -> energy */
static PyObject *energy(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *in[4];
    double beta, lambda, E = 0;
    if (!PyArg_ParseTuple(args, "OddOOOO:energy", &object, &beta, &lambda, &in[0], &in[1], &in[2],
                          &in[3]))
        return NULL;
    handle *h = handle_of(object, GATE);
    if (!h) return NULL;
    int64_t n = rows_of(h);
    arrays a = {0};
    cgam_status status = CGAM_OK;
    const double *b = array_in(&a, in[0], "b", n, NULL);
    const double *u = b ? array_in(&a, in[1], "u", n, NULL) : NULL;
    const double *s = u ? array_in(&a, in[2], "s", n, NULL) : NULL;
    double *gradient = s ? array_out(&a, in[3], "gradient", n) : NULL;
    if (gradient) WORK(status = cgam_coupled_energy(h->it, beta, lambda, b, u, s, &E, gradient));
    return finish(&a, h, status, PyFloat_FromDouble(E));
}

/* context_margin(gate, P or None, d_c) -> margin */
static PyObject *context_margin(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *p_in;
    long long d_c;
    double margin = 0;
    if (!PyArg_ParseTuple(args, "OOL:context_margin", &object, &p_in, &d_c)) return NULL;
    handle *h = handle_of(object, GATE);
    if (!h) return NULL;
    arrays a = {0};
    cgam_status status = CGAM_OK;
    int64_t d = cgam_bank_describe(((handle *)h->keep)->it).d;
    if (d_c < 1 || d_c > INT32_MAX)
        return PyErr_Format(PyExc_ValueError, "d_c is %lld, it must be at least 1", d_c);
    const double *P = array_in_or_none(&a, p_in, "projection", numbers(d, d_c));
    if (!PyErr_Occurred()) WORK(status = cgam_context_margin(h->it, P, d_c, &margin));
    return finish(&a, h, status, PyFloat_FromDouble(margin));
}

/* ---- memories of one stage -------------------------------------------------------------------- */

/* hopfield(bank, what, beta, power, x, out, tol, max_iter) -> (energy, iterations, change): "energy",
 * for which out is None, "update" and "settle" of the modern Hopfield network; if power is not None, energy
 * and update of the dense associative memory. */
static PyObject *hopfield(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *power_in, *in, *to;
    const char *what;
    double beta, power = 0, tol, E = 0, change = 0;
    long long most;
    int64_t iterations = 0;
    if (!PyArg_ParseTuple(args, "OsdOOOdL:hopfield", &object, &what, &beta, &power_in, &in, &to,
                          &tol, &most))
        return NULL;
    bool dense = power_in != Py_None;
    if (dense) power = PyFloat_AsDouble(power_in);
    if (PyErr_Occurred()) return NULL;
    handle *h = handle_of(object, BANK);
    if (!h) return NULL;
    int64_t d = cgam_bank_describe(h->it).d;
    arrays a = {0};
    cgam_status status = CGAM_OK;
    const double *x = array_in(&a, in, "x", d, NULL);
    double *out = x && what[0] != 'e' ? array_out(&a, to, "out", d) : NULL;
    if (x && !PyErr_Occurred()) {
        if (what[0] == 'e' && dense) WORK(status = cgam_dense_energy(h->it, beta, power, x, &E));
        else if (what[0] == 'e') WORK(status = cgam_hopfield_energy(h->it, beta, x, &E));
        else if (what[0] == 's')
            WORK(status =
                     cgam_hopfield_settle(h->it, beta, x, tol, most, out, &iterations, &change));
        else if (dense) WORK(status = cgam_dense_update(h->it, beta, power, x, out));
        else WORK(status = cgam_hopfield_update(h->it, beta, x, out));
    }
    return finish(&a, h, status, Py_BuildValue("dLd", E, (long long)iterations, change));
}

/* hopfield_bound(bank, beta, i, xi, x_star) -> (separation, one_step, retrieval, fixed_point) */
static PyObject *hopfield_bound(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *xi_in, *star_in;
    double beta;
    long long i;
    if (!PyArg_ParseTuple(args, "OdLOO:hopfield_bound", &object, &beta, &i, &xi_in, &star_in))
        return NULL;
    handle *h = handle_of(object, BANK);
    if (!h) return NULL;
    int64_t d = cgam_bank_describe(h->it).d;
    arrays a = {0};
    cgam_hopfield_bounds b = {0};
    cgam_status status = CGAM_OK;
    const double *xi = array_in(&a, xi_in, "xi", d, NULL);
    const double *star = xi ? array_in(&a, star_in, "x_star", d, NULL) : NULL;
    if (star) WORK(status = cgam_hopfield_bound(h->it, beta, i, xi, star, &b));
    PyObject *out = star && status == CGAM_OK ? Py_BuildValue("dddd", b.separation, b.one_step,
                                                              b.retrieval, b.fixed_point)
                                              : NULL;
    return finish(&a, h, status, out);
}

/* attention(m, n, d_k, d_v, Q, K, V, out) */
static PyObject *attention(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *in[4];
    long long m, n, d_k, d_v;
    if (!PyArg_ParseTuple(args, "LLLLOOOO:attention", &m, &n, &d_k, &d_v, &in[0], &in[1], &in[2],
                          &in[3]))
        return NULL;
    env_box *box = env_take(0);
    if (!box) return NULL;
    arrays a = {0};
    cgam_status status = CGAM_OK;
    const double *Q = array_in(&a, in[0], "Q", numbers(m, d_k), NULL);
    const double *K = Q ? array_in(&a, in[1], "K", numbers(n, d_k), NULL) : NULL;
    const double *V = K ? array_in(&a, in[2], "V", numbers(n, d_v), NULL) : NULL;
    double *out = V ? array_out(&a, in[3], "out", numbers(m, d_v)) : NULL;
    if (out) WORK(status = cgam_attention(box->env, m, n, d_k, d_v, Q, K, V, out));
    arrays_release(&a);
    if (!PyErr_Occurred() && status != CGAM_OK) raise_status(box->env, status);
    env_drop(box);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

PyMethodDef theory_methods[] = {
    {"separation", separation, METH_VARARGS, NULL},
    {"stability", stability, METH_VARARGS, NULL},
    {"readout_bound", readout_bound, METH_VARARGS, NULL},
    {"gaps", gaps, METH_VARARGS, NULL},
    {"contraction", contraction, METH_VARARGS, NULL},
    {"softmax_norm", softmax_norm, METH_O, NULL},
    {"winner", winner, METH_VARARGS, NULL},
    {"horizon", horizon, METH_VARARGS, NULL},
    {"coupled_critical", coupled_critical, METH_VARARGS, NULL},
    {"fold", fold, METH_VARARGS, NULL},
    {"at_p", at_p, METH_VARARGS, NULL},
    {"parts", parts, METH_VARARGS, NULL},
    {"energy", energy, METH_VARARGS, NULL},
    {"context_margin", context_margin, METH_VARARGS, NULL},
    {"hopfield", hopfield, METH_VARARGS, NULL},
    {"hopfield_bound", hopfield_bound, METH_VARARGS, NULL},
    {"attention", attention, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
