/* gate.c: the gate operator and the spectrum of a bank. */
#include "core.h"

/* gate_new(bank, alpha, full) */
static PyObject *gate_new(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object;
    double alpha;
    int full;
    if (!PyArg_ParseTuple(args, "Odp:gate_new", &object, &alpha, &full)) return NULL;
    handle *bank = handle_of(object, BANK);
    if (!bank) return NULL;
    bank->box->refs++;
    handle *h = handle_new(GATE, bank->box, object);
    if (!h) return NULL;
    cgam_gate_opts opts = cgam_gate_opts_default();
    if (full) opts.effort = CGAM_EFFORT_FULL;
    cgam_gate *gate = NULL;
    call c;
    call_begin(&c);
    cgam_status status = cgam_gate_new(bank->it, alpha, &opts, &gate);
    call_end(&c);
    h->it = gate;
    if (status == CGAM_OK) return (PyObject *)h;
    raise_status(bank->box->env, status);
    Py_DECREF(h);
    return NULL;
}

static PyObject *gate_info(PyObject *self, PyObject *object)
{
    (void)self;
    const cgam_gate *gate = handle_it(object, GATE);
    if (!gate) return NULL;
    cgam_gate_info info = cgam_gate_describe(gate);
    return fields_dict(cgam_fields("gate_info"), &info);
}

/* plan_gate(plan) -> gate_info of its A(alpha) */
static PyObject *plan_gate(PyObject *self, PyObject *object)
{
    (void)self;
    const cgam_recall *plan = handle_it(object, PLAN);
    if (!plan) return NULL;
    cgam_gate_info info = cgam_gate_describe(cgam_recall_gate(plan));
    return fields_dict(cgam_fields("gate_info"), &info);
}

typedef enum gate_what { APPLY, SOLVE, SOLVE_RANGE } gate_what;

static PyObject *gate_run(PyObject *args, gate_what what)
{
    PyObject *object, *in, *out;
    if (!PyArg_ParseTuple(args, "OOO", &object, &in, &out)) return NULL;
    handle *h = handle_of(object, GATE);
    if (!h) return NULL;
    cgam_bank_info info = cgam_bank_describe(((handle *)h->keep)->it);
    arrays a = {0};
    double backward = 0;
    cgam_status status = CGAM_OK;
    const double *x = array_in(&a, in, "x", what == SOLVE_RANGE ? info.d : info.n, NULL);
    double *y = x ? array_out(&a, out, "out", info.n) : NULL;
    if (y) {
        call c;
        call_begin(&c);
        status = what == APPLY   ? cgam_gate_apply(h->it, x, y)
                 : what == SOLVE ? cgam_gate_solve(h->it, x, y, &backward)
                                 : cgam_gate_solve_range(h->it, x, y);
        call_end(&c);
    }
    arrays_release(&a);
    if (PyErr_Occurred()) return NULL;
    if (status != CGAM_OK) return raise_status(h->box->env, status);
    return PyFloat_FromDouble(backward);
}

static PyObject *gate_apply(PyObject *self, PyObject *args)
{
    (void)self;
    return gate_run(args, APPLY);
}

static PyObject *gate_solve(PyObject *self, PyObject *args)
{
    (void)self;
    return gate_run(args, SOLVE);
}

static PyObject *gate_solve_range(PyObject *self, PyObject *args)
{
    (void)self;
    return gate_run(args, SOLVE_RANGE);
}

/* ---- spectra ---------------------------------------------------------------------------------- */

static PyObject *spectrum_new(PyObject *self, PyObject *object)
{
    (void)self;
    handle *bank = handle_of(object, BANK);
    if (!bank) return NULL;
    bank->box->refs++;
    handle *h = handle_new(SPECTRUM, bank->box, object);
    if (!h) return NULL;
    cgam_spectrum *spectrum = NULL;
    call c;
    call_begin(&c);
    cgam_status status = cgam_spectrum_new(bank->it, &spectrum);
    call_end(&c);
    h->it = spectrum;
    if (status == CGAM_OK) return (PyObject *)h;
    raise_status(bank->box->env, status);
    Py_DECREF(h);
    return NULL;
}

static PyObject *spectrum_info(PyObject *self, PyObject *object)
{
    (void)self;
    const cgam_spectrum *spectrum = handle_it(object, SPECTRUM);
    if (!spectrum) return NULL;
    cgam_spectrum_info info = cgam_spectrum_describe(spectrum);
    return fields_dict(cgam_fields("spectrum_info"), &info);
}

/* spectrum_omega(spectrum, out) */
static PyObject *spectrum_omega(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *out;
    if (!PyArg_ParseTuple(args, "OO:spectrum_omega", &object, &out)) return NULL;
    const cgam_spectrum *spectrum = handle_it(object, SPECTRUM);
    if (!spectrum) return NULL;
    int64_t modes = cgam_spectrum_describe(spectrum).modes;
    arrays a = {0};
    double *y = array_out(&a, out, "out", modes);
    for (int64_t i = 0; y && i < modes; i++) y[i] = cgam_spectrum_describe(spectrum).omega[i];
    arrays_release(&a);
    if (!y) return NULL;
    Py_RETURN_NONE;
}

/* spectrum_run(spectrum, what, alpha, tau, t, x, s0, out): "solve", "project" or "transient" */
static PyObject *spectrum_run(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *in, *start, *out;
    const char *what;
    double alpha, tau, t;
    if (!PyArg_ParseTuple(args, "OsdddOOO:spectrum_run", &object, &what, &alpha, &tau, &t, &in,
                          &start, &out))
        return NULL;
    handle *h = handle_of(object, SPECTRUM);
    if (!h) return NULL;
    int64_t n = cgam_bank_describe(((handle *)h->keep)->it).n;
    arrays a = {0};
    cgam_status status = CGAM_OK;
    const double *x = array_in(&a, in, "x", n, NULL);
    const double *s0 = x ? array_in_or_none(&a, start, "s0", n) : NULL;
    double *y = x && !PyErr_Occurred() ? array_out(&a, out, "out", n) : NULL;
    if (y) {
        call c;
        call_begin(&c);
        status = what[0] == 's'   ? cgam_spectrum_solve(h->it, alpha, x, y)
                 : what[0] == 'p' ? cgam_spectrum_project_min(h->it, x, y)
                                  : cgam_spectrum_transient(h->it, alpha, tau, t, x, s0, y);
        call_end(&c);
    }
    arrays_release(&a);
    if (PyErr_Occurred()) return NULL;
    if (status != CGAM_OK) return raise_status(h->box->env, status);
    Py_RETURN_NONE;
}

/* gate_critical(bank, full) -> (alpha, from, to, proved) */
static PyObject *gate_critical(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object;
    int full;
    if (!PyArg_ParseTuple(args, "Op:gate_critical", &object, &full)) return NULL;
    handle *h = handle_of(object, BANK);
    if (!h) return NULL;
    cgam_critical found;
    call c;
    call_begin(&c);
    cgam_status status =
        cgam_gate_critical(h->it, full ? CGAM_EFFORT_FULL : CGAM_EFFORT_FREE, &found);
    call_end(&c);
    if (status != CGAM_OK) return raise_status(h->box->env, status);
    return Py_BuildValue("dddO", found.alpha, found.alpha_lo, found.alpha_hi,
                         found.proved ? Py_True : Py_False);
}

PyMethodDef gate_methods[] = {
    {"gate_new", gate_new, METH_VARARGS, NULL},
    {"gate_info", gate_info, METH_O, NULL},
    {"gate_apply", gate_apply, METH_VARARGS, NULL},
    {"gate_solve", gate_solve, METH_VARARGS, NULL},
    {"gate_solve_range", gate_solve_range, METH_VARARGS, NULL},
    {"gate_critical", gate_critical, METH_VARARGS, NULL},
    {"plan_gate", plan_gate, METH_O, NULL},
    {"spectrum_new", spectrum_new, METH_O, NULL},
    {"spectrum_info", spectrum_info, METH_O, NULL},
    {"spectrum_omega", spectrum_omega, METH_VARARGS, NULL},
    {"spectrum_run", spectrum_run, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
