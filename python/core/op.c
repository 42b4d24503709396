/* op.c: weights of a network's synapses - matrices and convolutions. */
#include "core.h"

static const cgam_op *dense(handle *net, PyObject *array, const char *name)
{
    arrays a = {0};
    const cgam_op *op = NULL;
    const double *x = array_in(&a, array, name, -1, NULL);
    if (x && a.view[0].ndim != 2) PyErr_Format(PyExc_ValueError, "%s: expected two axes", name);
    else if (x) {
        cgam_status status =
            cgam_net_dense(net->it, x, CGAM_F64, a.view[0].shape[0], a.view[0].shape[1], true, &op);
        if (status != CGAM_OK) net_raise(net, status);
    }
    arrays_release(&a);
    return PyErr_Occurred() ? NULL : op;
}

/* From (kernels (out, in, height, width), height, width, stride y, stride x, same). */
static const cgam_op *convolution(handle *net, PyObject *tuple, const char *name)
{
    PyObject *array;
    long long height, width, stride_y, stride_x;
    int same;
    if (!PyArg_ParseTuple(tuple, "OLLLLp", &array, &height, &width, &stride_y, &stride_x, &same))
        return NULL;
    arrays a = {0};
    const cgam_op *op = NULL;
    const double *kernels = array_in(&a, array, name, -1, NULL);
    if (kernels && a.view[0].ndim != 4)
        PyErr_Format(PyExc_ValueError, "%s: expected kernels of four axes", name);
    else if (kernels) {
        const Py_ssize_t *shape = a.view[0].shape;
        const cgam_conv conv = {height,   width,    shape[1], shape[0], shape[2],
                                shape[3], stride_y, stride_x, same != 0};
        cgam_status status = cgam_net_conv(net->it, &conv, kernels, &op);
        if (status != CGAM_OK) net_raise(net, status);
    }
    arrays_release(&a);
    return PyErr_Occurred() ? NULL : op;
}

const cgam_op *net_op(handle *net, PyObject *weights, const char *name)
{
    return (PyTuple_Check(weights) ? convolution : dense)(net, weights, name);
}
