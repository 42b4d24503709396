/* net_draw.h: draws a network, for Graphviz or in plain text. */
#ifndef CGAM_SRC_LAB_FIGURES_NET_DRAW_H
#define CGAM_SRC_LAB_FIGURES_NET_DRAW_H

#include <cgam/net.h>
#include <stdio.h>

/* The graph in the language of Graphviz: layers are ellipses, synapses of two layers are edges,
 * self-synapses loops, others small boxes tied to their layers. title may be NULL. */
void cgam_net_draw_dot(const cgam_net *net, const char *title, FILE *to);

/* Layers and synapses as a table with the energies of their parts [parts] (NULL = none). */
void cgam_net_draw_text(const cgam_net *net, const double *parts, FILE *to);

#endif
