/* draw.c: the graph of a network for Graphviz, and a table of it for terminals. */
#include "lab/figures/net_draw.h"

#include "io/array.h"
#include "net/net.h"

#include <math.h>
#include <string.h>

/* Text inside quotes, escaped for Graphviz. */
static void print_quoted(const char *text, FILE *to)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', to);
        fputc((unsigned char)*text < ' ' ? ' ' : *text, to);
    }
}

static void describe_lagr(const cgam_layer *layer, FILE *to)
{
    const cgam_lagr *l = layer->use.lagr;
    fputs(l->name ? l->name : "own", to);
    for (int i = 0; i < CGAM_LAGR_PARAMS && l->param[i].name; i++)
        fprintf(to, "%s%s %g", i ? ", " : " (", l->param[i].name, layer->use.theta[i]);
    if (l->param[0].name) fputc(')', to);
}

static void dot_layer(const cgam_layer *layer, int index, FILE *to)
{
    char shape[CGAM_SHAPE_TEXT];
    fprintf(to, "  l%d [label=\"", index);
    print_quoted(layer->name, to);
    fprintf(to, "\\n%s\\n", cgam_shape_text(layer->ndim, layer->shape, shape));
    describe_lagr(layer, to);
    if (layer->tau != 1) fprintf(to, "\\ntau %g", layer->tau);
    fputs("\"];\n", to);
}

void cgam_net_draw_dot(const cgam_net *net, const char *title, FILE *to)
{
    fputs("graph network {\n  rankdir=LR;\n  node [shape=ellipse, fontname=\"sans-serif\"];\n"
          "  edge [fontname=\"sans-serif\", fontsize=10];\n",
          to);
    if (title) {
        fputs("  labelloc=t;\n  fontname=\"sans-serif\";\n  label=\"", to);
        print_quoted(title, to);
        fputs("\";\n", to);
    }
    for (int i = 0; i < net->layers; i++) dot_layer(&net->layer[i], i, to);
    for (int i = 0; i < net->synapses; i++) {
        const cgam_syn *s = &net->synapse[i];
        if (s->k <= 2) fprintf(to, "  l%d -- l%d [label=\"", s->layer[0], s->layer[s->k - 1]);
        else fprintf(to, "  s%d [shape=box, fontsize=10, label=\"", i);
        print_quoted(s->name, to);
        fprintf(to, "\\n%s", s->kind->name);
        if (s->gain != 1) fprintf(to, ", gain %g", s->gain);
        fputs("\"];\n", to);
        for (int j = 0; s->k > 2 && j < s->k; j++) fprintf(to, "  s%d -- l%d;\n", i, s->layer[j]);
    }
    fputs("}\n", to);
}

static int longest_name(const cgam_net *net)
{
    size_t longest = strlen("synapse");
    for (int i = 0; i < cgam_net_describe(net).parts; i++) {
        size_t length = strlen(cgam_net_part_name(net, i));
        if (length > longest) longest = length;
    }
    return longest < 40 ? (int)longest : 40;
}

void cgam_net_draw_text(const cgam_net *net, const double *parts, FILE *to)
{
    int wide = longest_name(net);
    char shape[CGAM_SHAPE_TEXT];
    fprintf(to, "%-*s  %-14s %10s  %14s  %s\n", wide, "layer", "shape", "tau",
            parts ? "energy" : "", "Lagrangian");
    for (int i = 0; i < net->layers; i++) {
        const cgam_layer *layer = &net->layer[i];
        fprintf(to, "%-*.*s  %-14s %10g  ", wide, wide, layer->name,
                cgam_shape_text(layer->ndim, layer->shape, shape), layer->tau);
        if (parts) fprintf(to, "%14.8g  ", parts[i] + 0); /* no -0 */
        else fprintf(to, "%14s  ", "");
        describe_lagr(layer, to);
        if (layer->use.scale != 1) fprintf(to, " times %g", layer->use.scale);
        fputc('\n', to);
    }
    if (net->synapses)
        fprintf(to, "\n%-*s  %-14s %10s  %14s  %s\n", wide, "synapse", "kind", "gain",
                parts ? "energy" : "", "layers");
    for (int i = 0; i < net->synapses; i++) {
        const cgam_syn *s = &net->synapse[i];
        fprintf(to, "%-*.*s  %-14s %10g  ", wide, wide, s->name, s->kind->name, s->gain);
        if (parts) fprintf(to, "%14.8g  ", parts[net->layers + i] + 0);
        else fprintf(to, "%14s  ", "");
        for (int j = 0; j < s->k; j++)
            fprintf(to, "%s%s", j ? " -- " : "", net->layer[s->layer[j]].name);
        fputc('\n', to);
    }
}
