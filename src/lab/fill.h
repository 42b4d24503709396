/* fill.h: a document as text, by a template.
 *
 *     cgam_fill(to, "{n} memories{normalized?, normalised}\n{@points:  {energy:12.6g} {winner:8d}\n}", doc);
 *
 *   {path}           the value: a text, a number (%g), yes or no; - where there is none or it is null.
 *                    A path is keys and places of an array, "best.0.p"; . is the document itself
 *   {path:-14.8g}    by a format of printf: d integers, g f e numbers, s texts
 *   {path/1e6:.1f}   with a number first, one after the other from the left: * / + - and the rest of a division, %
 *   {path?yes|no}    one of two templates: true, a number other than 0, a text or list that is not empty
 *   {path=word?y|n}  is it that text, or that number; null also stands for what is not there
 *   {path>2?y|n}     is the number larger
 *   {path=@other?..}  has it the same value as another
 *   {@path:item}     a template for each item of a list or object; {#} is its place, from 0, ## that of the item around
 *                    it, {$} its key: {other.#} is the item of another list there. A key that the item lacks is looked for
 *                    in the documents around it, {.key} in the item alone
 *   {&path:inner}    a template for the object at a path; nothing where there is none
 *   {path~_se:.3f}   the number, and after it " ± " and its error, where there is one: the number at path_se
 *   {a.mean~a.sd:g}  the same with another path
 *   {<file}          the template in an embedded file (lab/embedded.h). In one called .html texts are escaped ({path:math} also
 *                    sets x_y as a subscript, lab/template.h) and what is not there is a long dash; in one called
 *                    .gp it is NaN
 *   {list.count} {list.last} {path:json}    how many items; the last of them; a value as JSON
 * A backslash at the end of a line joins the next line to it; before a bar or brace it makes a letter of that.
 */
#ifndef CGAM_SRC_LAB_FILL_H
#define CGAM_SRC_LAB_FILL_H

#include "lab/document.h"

void cgam_fill(FILE *to, const char *text, const json_t *doc);
/* cgam_fill for a document with a list that is made while it is written: {@list:item} makes all of its items, other
 * places see those that the document holds. Returns false if an item could not be made. */
bool cgam_fill_late(FILE *to, const char *text, const json_t *doc, const cgam_late *late);

#endif
