/* net.c: networks built from Python, their values and flows. Lagrangians and synapses may be Python
 * functions: they receive memoryviews; an exception in one ends the call, which then raises it. */
#include "core.h"

#include <math.h>
#include <string.h>

/* Python functions behind a Lagrangian or a synapse; lives in a capsule that the net's handle keeps. */
typedef struct callbacks {
    cgam_lagr lagr;
    /* value, activation, hessian; or eval of a synapse. The net's list holds the references, because
     * the collector does not see into a capsule. */
    PyObject *function[3];
    /* The first exception on a thread of the library: type, value, traceback. An exception on the calling
     * thread is stored in its net_call. */
    PyObject *error[3];
} callbacks;

static _Thread_local net_call *calling; /* innermost of this thread; NULL on library threads */

void net_call_begin(net_call *c)
{
    *c = (net_call){.outer = calling};
    calling = c;
    call_begin(&c->call);
}

void net_call_end(net_call *c)
{
    call_end(&c->call);
    calling = c->outer;
    if (c->error[0]) PyErr_Restore(c->error[0], c->error[1], c->error[2]);
}

static void callbacks_free(PyObject *capsule)
{
    callbacks *b = PyCapsule_GetPointer(capsule, NULL);
    for (int i = 0; i < 3; i++) Py_XDECREF(b->error[i]);
    PyMem_Free(b);
}

/* Keeps a reference to an object as long as the net lives. */
static int net_keep(handle *net, PyObject *object) { return PyList_Append(net->keep, object); }

static callbacks *callbacks_new(handle *net, PyObject *const *functions, int count)
{
    callbacks *b = PyMem_Calloc(1, sizeof *b);
    PyObject *capsule = b ? PyCapsule_New(b, NULL, callbacks_free) : NULL;
    if (!capsule) {
        PyMem_Free(b);
        PyErr_NoMemory();
        return NULL;
    }
    int kept = net_keep(net, capsule);
    for (int i = 0; i < count && kept == 0; i++)
        kept = net_keep(net, b->function[i] = functions[i]);
    Py_DECREF(capsule); /* the net holds a reference, or this frees it */
    return kept == 0 ? b : NULL;
}

static PyObject *view(const double *x, int64_t n, bool write)
{
    return PyMemoryView_FromMemory((char *)(uintptr_t)x, n * (Py_ssize_t)sizeof *x,
                                   write ? PyBUF_WRITE : PyBUF_READ);
}

/* The library's numbers are invalid after the call: a view that outlives it, in a traceback, becomes empty. */
static void view_end(PyObject *view)
{
    PyObject *none = view && view != Py_None ? PyObject_CallMethod(view, "release", NULL) : NULL;
    if (!none) PyErr_Clear();
    Py_XDECREF(none);
    Py_XDECREF(view);
}

static void views_end(PyObject *list, int count)
{
    for (int i = 0; list && i < count; i++) {
        PyObject *one = PyList_GetItem(list, i);
        view_end(Py_XNewRef(one));
    }
    Py_XDECREF(list);
}

/* Ends a callback: takes ownership of its return value, NULL = it raised. An exception is not CGAM_E_VALUE, because
 * an integrator would then try a smaller step. */
static cgam_status callback_end(callbacks *b, PyObject *answer, double *number)
{
    if (answer && number) {
        *number = PyFloat_AsDouble(answer);
        if (PyErr_Occurred()) Py_CLEAR(answer);
    }
    cgam_status status = answer ? CGAM_OK : CGAM_E_INTERNAL;
    Py_XDECREF(answer);
    PyObject **error = calling ? calling->error : b->error;
    if (status != CGAM_OK && !error[0]) PyErr_Fetch(&error[0], &error[1], &error[2]);
    PyErr_Clear();
    return status;
}

static cgam_status lagr_value(const cgam_lagr *self, const double *theta, int64_t n,
                              const double *x, double *L)
{
    (void)theta;
    PyGILState_STATE state = PyGILState_Ensure();
    callbacks *b = self->user;
    PyObject *at = view(x, n, false);
    cgam_status status =
        callback_end(b, at ? PyObject_CallFunctionObjArgs(b->function[0], at, NULL) : NULL, L);
    view_end(at);
    PyGILState_Release(state);
    return status;
}

static cgam_status lagr_activation(const cgam_lagr *self, const double *theta, int64_t n,
                                   const double *x, double *a)
{
    (void)theta;
    PyGILState_STATE state = PyGILState_Ensure();
    callbacks *b = self->user;
    PyObject *at = view(x, n, false), *out = view(a, n, true);
    cgam_status status = callback_end(
        b, at && out ? PyObject_CallFunctionObjArgs(b->function[1], at, out, NULL) : NULL, NULL);
    view_end(at);
    view_end(out);
    PyGILState_Release(state);
    return status;
}

static cgam_status lagr_hessian(const cgam_lagr *self, const double *theta, int64_t n,
                                const double *x, const double *a, const double *v, double *out)
{
    (void)theta, (void)a;
    PyGILState_STATE state = PyGILState_Ensure();
    callbacks *b = self->user;
    PyObject *at = view(x, n, false), *along = view(v, n, false), *to = view(out, n, true);
    PyObject *answer = at && along && to
                           ? PyObject_CallFunctionObjArgs(b->function[2], at, along, to, NULL)
                           : NULL;
    cgam_status status = callback_end(b, answer, NULL);
    view_end(at);
    view_end(along);
    view_end(to);
    PyGILState_Release(state);
    return status;
}

/* eval(activations, currents) -> energy; adds to the currents that are not None. */
static cgam_status synapse_eval(void *user, int k, const int64_t *size, const double *const *act,
                                double *energy, double *const *current)
{
    PyGILState_STATE state = PyGILState_Ensure();
    callbacks *b = user;
    PyObject *in = PyList_New(k), *out = PyList_New(k);
    bool fine = in && out;
    for (int j = 0; j < k && fine; j++) {
        PyObject *a = view(act[j], size[j], false);
        PyObject *c = current && current[j] ? view(current[j], size[j], true) : Py_NewRef(Py_None);
        fine = a && c;
        PyList_SetItem(in, j, a ? a : Py_NewRef(Py_None));
        PyList_SetItem(out, j, c ? c : Py_NewRef(Py_None));
    }
    PyObject *answer = fine ? PyObject_CallFunctionObjArgs(b->function[0], in, out, NULL) : NULL;
    cgam_status status = callback_end(b, answer, energy);
    views_end(in, k);
    views_end(out, k);
    PyGILState_Release(state);
    return status;
}

/* Raises the exception of the calling thread, else that of a callback of the net, else the one for the status. */
PyObject *net_raise(handle *net, cgam_status status)
{
    PyObject *raised = PyErr_Occurred();
    for (Py_ssize_t i = 0; i < PyList_Size(net->keep); i++) {
        PyObject *kept = PyList_GetItem(net->keep, i);
        if (!PyCapsule_IsValid(kept, NULL)) continue;
        callbacks *b = PyCapsule_GetPointer(kept, NULL);
        if (b->error[0] && !raised) {
            raised = b->error[0];
            PyErr_Restore(b->error[0], b->error[1], b->error[2]);
        } else if (b->error[0])
            for (int k = 0; k < 3; k++) Py_XDECREF(b->error[k]);
        memset(b->error, 0, sizeof b->error);
    }
    return raised ? NULL : raise_status(net->box->env, status);
}

/* ---- building --------------------------------------------------------------------------------- */

static PyObject *net_new(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    env_box *box = env_take(0);
    PyObject *keep = box ? PyList_New(0) : NULL;
    if (!keep) {
        env_drop(box);
        return NULL;
    }
    handle *h = handle_new(NET, box, keep);
    Py_DECREF(keep);
    if (!h) return NULL;
    cgam_net *net = NULL;
    cgam_status status = cgam_net_new(box->env, &net);
    h->it = net;
    if (status == CGAM_OK) return (PyObject *)h;
    raise_status(box->env, status);
    Py_DECREF(h);
    return NULL;
}

/* A Lagrangian by its name, or from three functions. */
static const cgam_lagr *lagr_of(handle *net, PyObject *object)
{
    if (PyUnicode_Check(object)) {
        const char *name = text_of(object, "lagrangian");
        const cgam_lagr *found = name ? cgam_lagr_find(name) : NULL;
        if (name && !found) PyErr_Format(PyExc_ValueError, "unknown Lagrangian '%s'", name);
        return found;
    }
    PyObject *function[3];
    if (!is_tuple(object, "lagrangian") ||
        !PyArg_ParseTuple(object, "OOO:lagrangian", &function[0], &function[1], &function[2]))
        return NULL;
    callbacks *b = callbacks_new(net, function, 3);
    if (!b) return NULL;
    b->lagr = (cgam_lagr){.name = "python",
                          .formula = "a function in Python",
                          .value = lagr_value,
                          .activation = lagr_activation,
                          .hessian = lagr_hessian,
                          .user = b};
    return &b->lagr;
}

static int params_of(PyObject *tuple, double param[CGAM_LAGR_PARAMS])
{
    if (!is_tuple(tuple, "parameters")) return -1;
    if (PyTuple_Size(tuple) != CGAM_LAGR_PARAMS) {
        PyErr_SetString(PyExc_TypeError, "expected three parameters");
        return -1;
    }
    for (int i = 0; i < CGAM_LAGR_PARAMS; i++)
        param[i] = PyFloat_AsDouble(PyTuple_GetItem(tuple, i));
    return PyErr_Occurred() ? -1 : 0;
}

static const cgam_field layer_fields[] = {
    FIELD(cgam_layer_opts, scale, CGAM_REAL, DOUBLE),
    FIELD(cgam_layer_opts, tau, CGAM_REAL, DOUBLE),
    FIELD(cgam_layer_opts, axes, CGAM_INT, INT),
    FIELDS_END,
};

/* net_layer(net, name, shape, lagrangian, params, options) */
static PyObject *net_layer(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *shape_in, *lagr, *params, *options;
    const char *name;
    int64_t shape[CGAM_ARRAY_DIMS];
    cgam_layer_opts o = cgam_layer_opts_default();
    if (!PyArg_ParseTuple(args, "OsO!OOO!:net_layer", &object, &name, &PyTuple_Type, &shape_in,
                          &lagr, &params, &PyDict_Type, &options))
        return NULL;
    handle *net = handle_of(object, NET);
    Py_ssize_t ndim = PyTuple_Size(shape_in);
    if (!net) return NULL;
    if (ndim < 1 || ndim > CGAM_ARRAY_DIMS)
        return PyErr_Format(PyExc_ValueError, "layer %s has %zd axes", name, ndim);
    for (Py_ssize_t i = 0; i < ndim; i++)
        shape[i] = PyLong_AsLongLong(PyTuple_GetItem(shape_in, i));
    if (PyErr_Occurred() || params_of(params, o.param) != 0) return NULL;
    if (fields_set(layer_fields, options, &o) != 0) return NULL;
    o.lagr = lagr_of(net, lagr);
    if (!o.lagr) return NULL;
    cgam_status status = cgam_net_add_layer(net->it, name, (int)ndim, shape, &o, NULL);
    if (status != CGAM_OK) return net_raise(net, status);
    Py_RETURN_NONE;
}

typedef struct joint {
    handle *net;
    const char *kind, *name;
    double gain;
    int k, layers[CGAM_SYNAPSE_LAYERS];
    PyObject *array[CGAM_SYNAPSE_LAYERS + 1]; /* required by the kind */
    int count;
    PyObject *more; /* a dict or a callable, or None */
} joint;

static cgam_status add_hidden(const joint *j, const cgam_op *W)
{
    double param[CGAM_LAGR_PARAMS];
    PyObject *lagrangian, *params;
    if (!is_tuple(j->more, "hidden") ||
        !PyArg_ParseTuple(j->more, "OO:hidden", &lagrangian, &params))
        return CGAM_E_ARG;
    const cgam_lagr *lagr = lagr_of(j->net, lagrangian);
    if (!lagr || params_of(params, param) != 0) return CGAM_E_ARG;
    return cgam_net_add_hidden(j->net->it, j->name, j->layers[0], W, lagr, param, j->gain);
}

static cgam_status add_attention(const joint *j)
{
    cgam_attention_opts o = cgam_attention_opts_default();
    PyObject *beta;
    long long heads, width;
    int exclude;
    if (!is_tuple(j->more, "attention") ||
        !PyArg_ParseTuple(j->more, "OLLp:attention", &beta, &heads, &width, &exclude))
        return CGAM_E_ARG;
    if (beta != Py_None) o.beta = PyFloat_AsDouble(beta);
    o.heads = heads;
    o.width = width;
    o.exclude_self = exclude != 0;
    arrays a = {0};
    cgam_status status = CGAM_E_ARG;
    int64_t dx = cgam_net_layer(j->net->it, j->layers[0]).shape[1];
    int64_t dy = cgam_net_layer(j->net->it, j->layers[1]).shape[1];
    if (j->count == 2 && width > 0 && heads > 0 && !PyErr_Occurred()) {
        o.WQ = array_in(&a, j->array[0], "WQ", numbers(heads, numbers(width, dx)), NULL);
        if (o.WQ) o.WK = array_in(&a, j->array[1], "WK", numbers(heads, numbers(width, dy)), NULL);
    }
    if (!PyErr_Occurred())
        status =
            cgam_net_add_attention(j->net->it, j->name, j->layers[0], j->layers[1], &o, j->gain);
    arrays_release(&a);
    return status;
}

/* Adds synapses that take vectors or operators. */
static cgam_status add_weighted(const joint *j)
{
    cgam_net *net = j->net->it;
    const cgam_op *op[CGAM_SYNAPSE_LAYERS] = {0};
    arrays a = {0};
    bool lowrank = strcmp(j->kind, "lowrank") == 0;
    int ops = strcmp(j->kind, "bias") == 0 ? 0 : lowrank ? j->k : 1;
    for (int i = 0; i < ops; i++)
        if (!(op[i] = net_op(j->net, j->count > i ? j->array[i] : Py_None, "weights")))
            return CGAM_E_ARG;
    int64_t n = ops == 0                       ? cgam_net_layer(net, j->layers[0]).size
                : lowrank || j->kind[0] == 'g' ? op[0]->rows
                                               : 0;
    const double *w = NULL;
    if (j->count > ops) w = array_in(&a, j->array[ops], "vector", n, NULL);
    cgam_status status = CGAM_E_ARG;
    if (PyErr_Occurred()) status = CGAM_E_ARG;
    else if (ops == 0 && w) status = cgam_net_add_bias(net, j->name, j->layers[0], w, j->gain);
    else if (ops == 0) PyErr_SetString(PyExc_ValueError, "bias: the vector is missing");
    else if (lowrank) status = cgam_net_add_lowrank(net, j->name, j->k, j->layers, op, w, j->gain);
    else if (strcmp(j->kind, "bilinear") == 0)
        status = cgam_net_add_bilinear(net, j->name, j->layers[0], j->layers[1], op[0], j->gain);
    else if (strcmp(j->kind, "self") == 0)
        status = cgam_net_add_self(net, j->name, j->layers[0], op[0], j->gain);
    else if (strcmp(j->kind, "gram") == 0)
        status = cgam_net_add_gram(net, j->name, j->layers[0], op[0], j->gain, w);
    else if (strcmp(j->kind, "tensor") == 0)
        status = cgam_net_add_tensor(net, j->name, j->k, j->layers, op[0], j->gain);
    else status = add_hidden(j, op[0]);
    arrays_release(&a);
    return status;
}

static cgam_status add_synapse(const joint *j)
{
    static const struct {
        const char *kind;
        int least, most; /* layers */
    } kinds[] = {{"bilinear", 2, 2},
                 {"self", 1, 1},
                 {"gram", 1, 1},
                 {"coupling", 2, 2},
                 {"bias", 1, 1},
                 {"tensor", 2, CGAM_SYNAPSE_LAYERS},
                 {"hidden", 1, 1},
                 {"attention", 2, 2},
                 {"lowrank", 2, CGAM_SYNAPSE_LAYERS},
                 {"custom", 1, CGAM_SYNAPSE_LAYERS}};
    size_t which = 0, count = sizeof kinds / sizeof *kinds;
    while (which < count && strcmp(kinds[which].kind, j->kind) != 0) which++;
    if (which == count || j->k < kinds[which].least || j->k > kinds[which].most) {
        PyErr_Format(PyExc_ValueError, "synapse %s: no kind '%s' joins %d layers", j->name, j->kind,
                     j->k);
        return CGAM_E_ARG;
    }
    if (strcmp(j->kind, "coupling") == 0)
        return cgam_net_add_coupling(j->net->it, j->name, j->layers[0], j->layers[1], j->gain);
    if (strcmp(j->kind, "custom") == 0) {
        callbacks *b = callbacks_new(j->net, &j->more, 1);
        const cgam_synapse table = {.eval = synapse_eval};
        if (!b) return CGAM_E_NOMEM;
        return cgam_net_add_synapse(j->net->it, j->name, j->k, j->layers, &table, b);
    }
    if (strcmp(j->kind, "attention") != 0) return add_weighted(j);
    for (int i = 0; i < 2; i++)
        if (cgam_net_layer(j->net->it, j->layers[i]).ndim != 2) {
            PyErr_Format(PyExc_ValueError, "synapse %s: expected layers of two axes", j->name);
            return CGAM_E_SHAPE;
        }
    return add_attention(j);
}

/* net_synapse(net, kind, name, layers, gain, arrays, more) */
static PyObject *net_synapse(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *layers, *given;
    joint j = {0};
    if (!PyArg_ParseTuple(args, "OssO!dO!O:net_synapse", &object, &j.kind, &j.name, &PyTuple_Type,
                          &layers, &j.gain, &PyTuple_Type, &given, &j.more))
        return NULL;
    j.net = handle_of(object, NET);
    Py_ssize_t k = PyTuple_Size(layers), count = PyTuple_Size(given);
    if (!j.net) return NULL;
    if (k < 1 || k > CGAM_SYNAPSE_LAYERS || count > CGAM_SYNAPSE_LAYERS + 1)
        return PyErr_Format(PyExc_ValueError, "synapse %s joins %zd layers", j.name, k);
    j.k = (int)k;
    j.count = (int)count;
    for (int i = 0; i < j.k; i++) {
        long layer = PyLong_AsLong(PyTuple_GetItem(layers, i));
        if (PyErr_Occurred()) return NULL;
        if (layer < 0 || layer >= cgam_net_describe(j.net->it).layers)
            return PyErr_Format(PyExc_ValueError, "synapse %s: no layer %ld", j.name, layer);
        j.layers[i] = (int)layer;
    }
    for (int i = 0; i < j.count; i++) j.array[i] = PyTuple_GetItem(given, i);
    cgam_status status = add_synapse(&j);
    if (PyErr_Occurred()) return NULL;
    if (status != CGAM_OK) return net_raise(j.net, status);
    Py_RETURN_NONE;
}

/* lagrangians() -> {name: (formula, ((parameter, default), ..))} */
static PyObject *lagrangians(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    PyObject *dict = PyDict_New();
    for (const cgam_lagr *const *l = cgam_lagrs; dict && *l; l++) {
        PyObject *params = PyList_New(0);
        for (int i = 0; params && i < CGAM_LAGR_PARAMS && (*l)->param[i].name; i++) {
            PyObject *pair = Py_BuildValue("sd", (*l)->param[i].name, (*l)->param[i].value);
            if (!pair || PyList_Append(params, pair) != 0) Py_CLEAR(params);
            Py_XDECREF(pair);
        }
        PyObject *entry = params ? Py_BuildValue("sO", (*l)->formula, params) : NULL;
        if (!entry || PyDict_SetItemString(dict, (*l)->name, entry) != 0) Py_CLEAR(dict);
        Py_XDECREF(params);
        Py_XDECREF(entry);
    }
    return dict;
}

/* ---- values ----------------------------------------------------------------------------------- */

/* Returns [layers] from a tuple of truth values; NULL for None: no layer is clamped. */
static const bool *clamped_of(const handle *net, PyObject *object, bool *room, int most)
{
    if (object == Py_None) return NULL;
    int layers = cgam_net_describe(net->it).layers;
    if (!PyTuple_Check(object) || PyTuple_Size(object) != layers || layers > most) {
        PyErr_SetString(PyExc_ValueError, "clamped: expected a bool for each layer");
        return NULL;
    }
    for (int i = 0; i < layers; i++) room[i] = PyObject_IsTrue(PyTuple_GetItem(object, i)) > 0;
    return room;
}

enum { LAYERS_MAX = 256 };

/* net_eval(net, batch, x, clamped, energy, parts, activation, current, rate, power) */
static PyObject *net_eval(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *x_in, *clamped_in, *to[6];
    long long batch;
    bool room[LAYERS_MAX];
    if (!PyArg_ParseTuple(args, "OLOOOOOOOO:net_eval", &object, &batch, &x_in, &clamped_in, &to[0],
                          &to[1], &to[2], &to[3], &to[4], &to[5]))
        return NULL;
    handle *net = handle_of(object, NET);
    if (!net) return NULL;
    int64_t size = cgam_net_describe(net->it).size, parts = cgam_net_describe(net->it).parts;
    const int64_t width[6] = {1, parts, size, size, size, 1};
    arrays a = {0};
    double *out[6] = {0};
    cgam_status status = CGAM_OK;
    const bool *clamped = clamped_of(net, clamped_in, room, LAYERS_MAX);
    const double *x = PyErr_Occurred() ? NULL : array_in(&a, x_in, "x", numbers(batch, size), NULL);
    for (int i = 0; i < 6 && x && !PyErr_Occurred(); i++)
        out[i] = array_out_or_none(&a, to[i], "out", numbers(batch, width[i]));
    if (x && !PyErr_Occurred()) {
        const cgam_net_values values = {out[0], out[1], out[2], out[3], out[4], out[5]};
        net_call c;
        net_call_begin(&c);
        status = cgam_net_eval(net->it, batch, x, clamped, &values);
        net_call_end(&c);
    }
    arrays_release(&a);
    if (status != CGAM_OK) return net_raise(net, status);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

/* net_eigen(net, x, clamped, count, tol, values) -> (found, residual, converged) */
static PyObject *net_eigen(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *x_in, *clamped_in, *out_in;
    long long count;
    double tol;
    bool room[LAYERS_MAX];
    if (!PyArg_ParseTuple(args, "OOOLdO:net_eigen", &object, &x_in, &clamped_in, &count, &tol,
                          &out_in))
        return NULL;
    handle *net = handle_of(object, NET);
    if (!net) return NULL;
    arrays a = {0};
    cgam_eigen found = {0};
    cgam_status status = CGAM_OK;
    const bool *clamped = clamped_of(net, clamped_in, room, LAYERS_MAX);
    const double *x =
        PyErr_Occurred() ? NULL : array_in(&a, x_in, "x", cgam_net_describe(net->it).size, NULL);
    double *values = x ? array_out(&a, out_in, "values", numbers(count, 1)) : NULL;
    if (values) {
        net_call c;
        net_call_begin(&c);
        status = cgam_net_eigen(net->it, x, clamped, count, tol, values, &found);
        net_call_end(&c);
    }
    arrays_release(&a);
    if (status != CGAM_OK) return net_raise(net, status);
    if (PyErr_Occurred()) return NULL;
    return Py_BuildValue("LdN", (long long)found.found, found.residual,
                         PyBool_FromLong(found.converged));
}

/* net_jacobian(net, x, clamped, count, v, out) */
static PyObject *net_jacobian(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *x_in, *clamped_in, *v_in, *out_in;
    long long count;
    bool room[LAYERS_MAX];
    if (!PyArg_ParseTuple(args, "OOOLOO:net_jacobian", &object, &x_in, &clamped_in, &count, &v_in,
                          &out_in))
        return NULL;
    handle *net = handle_of(object, NET);
    if (!net) return NULL;
    int64_t size = cgam_net_describe(net->it).size;
    arrays a = {0};
    cgam_status status = CGAM_OK;
    const bool *clamped = clamped_of(net, clamped_in, room, LAYERS_MAX);
    const double *x = PyErr_Occurred() ? NULL : array_in(&a, x_in, "x", size, NULL);
    const double *v = x ? array_in(&a, v_in, "v", numbers(count, size), NULL) : NULL;
    double *out = v ? array_out(&a, out_in, "out", numbers(count, size)) : NULL;
    if (out) {
        net_call c;
        net_call_begin(&c);
        status = cgam_net_jacobian(net->it, x, clamped, count, v, out);
        net_call_end(&c);
    }
    arrays_release(&a);
    if (status != CGAM_OK) return net_raise(net, status);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

/* net_size(net) -> (size, parts) */
static PyObject *net_size(PyObject *self, PyObject *object)
{
    (void)self;
    const cgam_net *net = handle_it(object, NET);
    return net ? Py_BuildValue("Li", (long long)cgam_net_describe(net).size,
                               cgam_net_describe(net).parts)
               : NULL;
}

PyMethodDef net_methods[] = {
    {"net_new", net_new, METH_NOARGS, NULL},
    {"net_layer", net_layer, METH_VARARGS, NULL},
    {"net_synapse", net_synapse, METH_VARARGS, NULL},
    {"net_size", net_size, METH_O, NULL},
    {"net_eval", net_eval, METH_VARARGS, NULL},
    {"net_eigen", net_eigen, METH_VARARGS, NULL},
    {"net_jacobian", net_jacobian, METH_VARARGS, NULL},
    {"net_flow", net_flow, METH_VARARGS, NULL},
    {"lagrangians", lagrangians, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
