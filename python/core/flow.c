/* flow.c: networks in time. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

#define REAL(member_) FIELD(cgam_flow_opts, member_, CGAM_REAL, DOUBLE)
static const cgam_field option_fields[] = {
    REAL(t_end),
    REAL(rtol),
    REAL(atol),
    REAL(step),
    REAL(step_max),
    REAL(steady),
    REAL(settle),
    REAL(energy_tol),
    REAL(limit),
    REAL(sample),
    FIELD(cgam_flow_opts, max_steps, CGAM_INT, INT64),
    FIELD(cgam_flow_opts, watch, CGAM_INT, INT),
    FIELDS_END,
};

enum { CLAMPS_MAX = ARRAYS - 1 }; /* in addition to x */

/* From a tuple of (layer, from, to, value or None, per state). */
static int clamps_of(const cgam_net *net, PyObject *tuple, int64_t batch, arrays *a,
                     cgam_clamp *clamps)
{
    Py_ssize_t count = PyTuple_Size(tuple);
    if (count > CLAMPS_MAX) {
        PyErr_Format(PyExc_ValueError, "clamps: %zd of them (at most %d)", count, CLAMPS_MAX);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *value;
        int each;
        cgam_clamp *k = &clamps[i];
        if (!is_tuple(PyTuple_GetItem(tuple, i), "clamp") ||
            !PyArg_ParseTuple(PyTuple_GetItem(tuple, i), "iddOp:clamp", &k->layer, &k->from, &k->to,
                              &value, &each))
            return -1;
        if (k->layer < 0 || k->layer >= cgam_net_describe(net).layers) {
            PyErr_Format(PyExc_ValueError, "clamps: no layer %d", k->layer);
            return -1;
        }
        k->per_state = each != 0;
        int64_t size = cgam_net_layer(net, k->layer).size;
        k->value = array_in_or_none(a, value, "clamp", each ? batch * size : size);
        if (PyErr_Occurred()) return -1;
    }
    return (int)count;
}

static PyObject *bytes_of(const void *data, int64_t count)
{
    return data ? PyBytes_FromStringAndSize(data, count * 8) : Py_NewRef(Py_None);
}

static PyObject *trajectory_of(const cgam_net *net, const cgam_trajectory *t)
{
    if (!t) Py_RETURN_NONE;
    cgam_trajectory_view v = cgam_trajectory_look(t);
    int64_t n = v.count;
    return Py_BuildValue("LNNNNNNNN", (long long)n, bytes_of(v.time, n), bytes_of(v.energy, n),
                         bytes_of(v.power, n), bytes_of(v.residual, n),
                         bytes_of(v.parts, n * cgam_net_describe(net).parts), bytes_of(v.events, n),
                         bytes_of(v.winner, n),
                         bytes_of(v.states, n * cgam_net_describe(net).size));
}

static PyObject *reports_list(const cgam_flow_report *reports, int64_t batch)
{
    PyObject *list = PyList_New(0);
    for (int64_t i = 0; list && i < batch; i++) {
        PyObject *dict = fields_dict(cgam_fields("flow_report"), &reports[i]);
        if (!dict || PyList_Append(list, dict) != 0) Py_CLEAR(list);
        Py_XDECREF(dict);
    }
    return list;
}

static int options_of(cgam_flow_opts *o, const char *method, PyObject *options, PyObject *stop)
{
    if (method) {
        int found = cgam_word_find(cgam_flow_method_words, method);
        if (found < 0) {
            PyErr_Format(PyExc_ValueError, "method: invalid value '%s'", method);
            return -1;
        }
        o->method = (cgam_flow_method)found;
    }
    if (stop != Py_None) {
        o->stop = 0;
        for (Py_ssize_t i = 0; i < PyTuple_Size(stop); i++) {
            const char *name = text_of(PyTuple_GetItem(stop, i), "stop");
            if (!name) return -1;
            int bit = cgam_word_find(cgam_event_words, name);
            if (bit < 0) {
                PyErr_Format(PyExc_ValueError, "stop: invalid event '%s'", name);
                return -1;
            }
            o->stop |= 1u << bit;
        }
    }
    return fields_set(option_fields, options, o);
}

/* net_flow(net, batch, x, method or None, options, stop, clamps, record, states)
 *   -> (reports, trajectory or None); x holds the start on entry, the end on return */
PyObject *net_flow(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *x_in, *options, *stop, *clamps_in;
    long long batch;
    const char *method;
    int record, states;
    cgam_clamp clamps[CLAMPS_MAX] = {0};
    if (!PyArg_ParseTuple(args, "OLOzO!OO!pp:net_flow", &object, &batch, &x_in, &method,
                          &PyDict_Type, &options, &stop, &PyTuple_Type, &clamps_in, &record,
                          &states))
        return NULL;
    handle *net = handle_of(object, NET);
    if (!net) return NULL;
    if (stop != Py_None && !PyTuple_Check(stop))
        return PyErr_Format(PyExc_TypeError, "stop: expected a tuple of events");
    cgam_flow_opts o = cgam_flow_opts_default();
    arrays a = {0};
    if (batch < 1) return PyErr_Format(PyExc_ValueError, "x: the array holds no states");
    cgam_trajectory *trajectory = NULL;
    cgam_status status = CGAM_OK;
    PyObject *out = NULL;
    double *x = options_of(&o, method, options, stop) == 0
                    ? array_out(&a, x_in, "x", numbers(batch, cgam_net_describe(net->it).size))
                    : NULL;
    cgam_flow_report *reports = x ? PyMem_Calloc((size_t)batch, sizeof *reports) : NULL;
    if (x && !reports) PyErr_NoMemory();
    o.clamps = clamps;
    o.clamp_count = reports ? clamps_of(net->it, clamps_in, batch, &a, clamps) : -1;
    if (o.clamp_count >= 0 && record)
        status = cgam_trajectory_new(net->it, states != 0, &trajectory);
    if (trajectory) {
        o.monitor = cgam_trajectory_monitor;
        o.user = trajectory;
    }
    if (o.clamp_count >= 0 && status == CGAM_OK) {
        net_call c;
        net_call_begin(&c);
        status = cgam_flow_run(net->it, batch, x, &o, reports);
        net_call_end(&c);
        if (status == CGAM_OK && trajectory) status = cgam_trajectory_look(trajectory).status;
    }
    if (!PyErr_Occurred() && status == CGAM_OK)
        out = Py_BuildValue("NN", reports_list(reports, batch), trajectory_of(net->it, trajectory));
    else if (status != CGAM_OK) net_raise(net, status);
    cgam_trajectory_free(trajectory);
    PyMem_Free(reports);
    arrays_release(&a);
    return out;
}
