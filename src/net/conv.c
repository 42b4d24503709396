/* conv.c: convolution as an operator between two images, channels last.
 *
 *   out[y, x, o] = sum over u, v, i of K[o, i, u, v] in[y sy + u - py, x sx + v - px, i]
 *
 * and its transpose by the same index map. "Same" padding splits what is missing evenly, the odd
 * one at the end. Direct sums: kernels are small, and a network that lives on large convolutions
 * brings an operator of its own. */
#include "net/net.h"

#include <math.h>
#include <string.h>

typedef struct conv {
    cgam_op op;
    cgam_conv c;
    int64_t out_height, out_width, pad_y, pad_x;
    double *kernels; /* [out, in, kh, kw] */
} conv;

static void conv_free(cgam_env *env, void *thing)
{
    conv *C = thing;
    cgam_free(env, C->kernels);
    cgam_free(env, C);
}

typedef enum visit { FORTH, BACK, SLOPE } visit;

/* Adds one image's worth of products: to `out` from `in`, or back; or of far[..] in[..] to the slope of each kernel
 * weight. */
static void visit_image(const conv *C, visit what, double factor, const double *in,
                        const double *beyond, double *out, double *slope)
{
    const cgam_conv *c = &C->c;
    int64_t I = c->in_channels, O = c->out_channels;
    for (int64_t y = 0; y < C->out_height; y++)
        for (int64_t x = 0; x < C->out_width; x++)
            for (int64_t u = 0; u < c->kernel_height; u++)
                for (int64_t v = 0; v < c->kernel_width; v++) {
                    int64_t sy = y * c->stride_y + u - C->pad_y;
                    int64_t sx = x * c->stride_x + v - C->pad_x;
                    if (sy < 0 || sy >= c->height || sx < 0 || sx >= c->width) continue;
                    int64_t far = (y * C->out_width + x) * O, near = (sy * c->width + sx) * I;
                    for (int64_t o = 0; o < O; o++)
                        for (int64_t i = 0; i < I; i++) {
                            int64_t at = ((o * I + i) * c->kernel_height + u) * c->kernel_width + v;
                            double k = C->kernels[at];
                            if (what == BACK) out[near + i] += k * in[far + o];
                            else if (what == FORTH) out[far + o] += k * in[near + i];
                            else slope[at] += factor * beyond[far + o] * in[near + i];
                        }
                }
}

static cgam_status convolve_all(const conv *C, bool back, int64_t count, const double *in,
                                double *out)
{
    int64_t from = back ? C->op.rows : C->op.cols, to = back ? C->op.cols : C->op.rows;
    memset(out, 0, (size_t)(count * to) * sizeof *out);
    for (int64_t k = 0; k < count; k++)
        visit_image(C, back ? BACK : FORTH, 1, in + k * from, NULL, out + k * to, NULL);
    return CGAM_OK;
}

static cgam_status conv_apply(void *user, int64_t count, const double *in, double *out)
{
    return convolve_all(user, false, count, in, out);
}

static cgam_status conv_apply_t(void *user, int64_t count, const double *in, double *out)
{
    return convolve_all(user, true, count, in, out);
}

double *cgam_net_conv_kernels(const cgam_op *op, int64_t *count)
{
    if (op->apply != conv_apply) return NULL;
    const conv *C = op->user;
    const cgam_conv *c = &C->c;
    *count = c->out_channels * c->in_channels * c->kernel_height * c->kernel_width;
    return C->kernels;
}

int cgam_net_conv_shape(const cgam_op *op, int64_t *shape)
{
    const cgam_conv *c = &((const conv *)op->user)->c;
    const int64_t sizes[] = {c->out_channels, c->in_channels, c->kernel_height, c->kernel_width};
    memcpy(shape, sizes, sizeof sizes);
    return 4;
}

void cgam_net_conv_slope(const cgam_op *op, int64_t count, double factor, const double *left,
                         int64_t left_step, const double *right, int64_t right_step, double *slope)
{
    const conv *C = op->user;
    for (int64_t k = 0; k < count; k++)
        visit_image(C, SLOPE, factor, right + k * right_step, left + k * left_step, NULL, slope);
}

/* How many places a kernel has along one axis, and how much padding comes before. */
static int64_t count_places(int64_t size, int64_t kernel, int64_t stride, bool same, int64_t *pad)
{
    *pad = 0;
    if (!same) return size < kernel ? 0 : (size - kernel) / stride + 1;
    int64_t count = (size + stride - 1) / stride, need = (count - 1) * stride + kernel - size;
    *pad = need > 0 ? need / 2 : 0;
    return count;
}

cgam_status cgam_net_conv(cgam_net *net, const cgam_conv *spec, const double *kernels,
                          const cgam_op **out)
{
    *out = NULL;
    cgam_env *env = net->env;
    cgam_conv c = *spec;
    if (c.stride_y == 0) c.stride_y = 1;
    if (c.stride_x == 0) c.stride_x = 1;
    const int64_t sizes[] = {c.height,        c.width,        c.in_channels, c.out_channels,
                             c.kernel_height, c.kernel_width, c.stride_y,    c.stride_x};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] < 1 || sizes[i] > 1 << 15)
            return cgam_fail(env, CGAM_E_SHAPE,
                             "convolution: a size is %lld, it must be from 1 to 32768",
                             (long long)sizes[i]);
    conv made = {.c = c};
    made.out_height = count_places(c.height, c.kernel_height, c.stride_y, c.same, &made.pad_y);
    made.out_width = count_places(c.width, c.kernel_width, c.stride_x, c.same, &made.pad_x);
    if (made.out_height < 1 || made.out_width < 1)
        return cgam_fail(env, CGAM_E_SHAPE,
                         "convolution: a kernel of %lld x %lld does not fit into %lld x %lld",
                         (long long)c.kernel_height, (long long)c.kernel_width, (long long)c.height,
                         (long long)c.width);
    int64_t count = c.out_channels * c.in_channels * c.kernel_height * c.kernel_width;
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(kernels[i]))
            return cgam_fail(env, CGAM_E_VALUE, "convolution: weight %lld is not finite",
                             (long long)i);
    conv *C = cgam_zalloc(env, 1, sizeof *C);
    made.kernels = C ? cgam_alloc(env, (size_t)count, sizeof *C->kernels) : NULL;
    if (!made.kernels) {
        cgam_free(env, C);
        return cgam_fail_nomem(env, "a convolution");
    }
    *C = made;
    memcpy(C->kernels, kernels, (size_t)count * sizeof *kernels);
    C->op = (cgam_op){.rows = C->out_height * C->out_width * c.out_channels,
                      .cols = c.height * c.width * c.in_channels,
                      .apply = conv_apply,
                      .apply_t = conv_apply_t,
                      .user = C};
    const cgam_op *op = &C->op;
    cgam_status status = cgam_net_keep(net, conv_free, C);
    if (status == CGAM_OK) *out = op;
    return status;
}
