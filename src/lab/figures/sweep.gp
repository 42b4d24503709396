set palette defined (0 '#fcfdbf', 0.25 '#fe9f6d', 0.5 '#de4968', 0.75 '#8c2981', 1 '#3b0f70')
set cbrange [0:1]
unset logscale x
set xtics 0, {layer_step:d}
set xrange [-0.5:{layer_high:g}]
set ytics 0, {layer_step:d}
set yrange [-0.5:{layer_high:g}]
set tmargin at screen 0.960
set bmargin at screen 0.660
set lmargin at screen 0.065
set rmargin at screen 0.405
set format x '%g'
set title 'best accuracy over the labels'
set xlabel 'query layer'
set ylabel 'context layer'
unset grid
unset key
set colorbox user origin screen 0.415, screen 0.660 size screen 0.012, screen 0.30
plot 'sweep.csv' every ::{from:d}::{to:d} using (column('query_layer')):(column('context_layer')):(column('restricted')) with image pixels, \\
  '+' using ({entry.best.restricted.query_layer:d}):({entry.best.restricted.context_layer:d}) every ::0::0 with points pt 4 ps 1.6 lw 3 lc rgb '#ffffff', \\
  '+' using ({entry.best.restricted.query_layer:d}):({entry.best.restricted.context_layer:d}) every ::0::0 with points pt 4 ps 1.3 lw 1.5 lc rgb '#000000'
unset label 1
set lmargin at screen 0.565
set rmargin at screen 0.98
set xtics autofreq
set ytics autofreq
set title 'at the best pair of each, over the labels'
set logscale x
set format x '%g'
set xrange [0.01:100]
set yrange [-0.02:1.02]
set xlabel 'coupling  λ'
set ylabel 'accuracy'
set grid ytics lc rgb '#dddddd'
plot \\
  {entry.zero_shot.restricted:.6g} with lines lt 8 lw 1.5 notitle, \\
  {entry.icl.restricted:.6g} with lines lt 2 lw 1.5 notitle, \\
  {entry.controls.centred.held_out:.6g} with lines lt 7 lw 1.5 notitle, \\
  {chance:.6g} with lines lc rgb '#888888' dt 3 lw 1.5 notitle, \\
  'sweep_steps.csv' using (column('shots') == {entry.k:d} && column('over_vocabulary') == 0 && column('context') == 3 ? (column('lambda_from') < 0.01 ? 0.01 : column('lambda_from')) : NaN):(column('accuracy')) with steps lt 6 lw 1.8 notitle, \\
  'sweep_steps.csv' using (column('shots') == {entry.k:d} && column('over_vocabulary') == 0 && column('context') == 3 && stringcolumn('lambda_to') eq 'inf' ? column('lambda_from') : NaN):(column('accuracy')):(100 - column('lambda_from')):(0) with vectors nohead lt 6 lw 1.8 notitle, \\
  'sweep_steps.csv' using (column('shots') == {entry.k:d} && column('over_vocabulary') == 0 && column('context') == 2 ? (column('lambda_from') < 0.01 ? 0.01 : column('lambda_from')) : NaN):(column('accuracy')) with steps lt 5 lw 1.8 notitle, \\
  'sweep_steps.csv' using (column('shots') == {entry.k:d} && column('over_vocabulary') == 0 && column('context') == 2 && stringcolumn('lambda_to') eq 'inf' ? column('lambda_from') : NaN):(column('accuracy')):(100 - column('lambda_from')):(0) with vectors nohead lt 5 lw 1.8 notitle, \\
  'sweep_steps.csv' using (column('shots') == {entry.k:d} && column('over_vocabulary') == 0 && column('context') == 1 ? (column('lambda_from') < 0.01 ? 0.01 : column('lambda_from')) : NaN):(column('accuracy')) with steps lt 4 lw 1.8 notitle, \\
  'sweep_steps.csv' using (column('shots') == {entry.k:d} && column('over_vocabulary') == 0 && column('context') == 1 && stringcolumn('lambda_to') eq 'inf' ? column('lambda_from') : NaN):(column('accuracy')):(100 - column('lambda_from')):(0) with vectors nohead lt 4 lw 1.8 notitle, \\
  'sweep_steps.csv' using (column('shots') == {entry.k:d} && column('over_vocabulary') == 0 && column('context') == 0 ? (column('lambda_from') < 0.01 ? 0.01 : column('lambda_from')) : NaN):(column('accuracy')) with steps lt 1 lw 3 notitle, \\
  'sweep_steps.csv' using (column('shots') == {entry.k:d} && column('over_vocabulary') == 0 && column('context') == 0 && stringcolumn('lambda_to') eq 'inf' ? column('lambda_from') : NaN):(column('accuracy')):(100 - column('lambda_from')):(0) with vectors nohead lt 1 lw 3 notitle
unset logscale x
set xtics 0, {layer_step:d}
set xrange [-0.5:{layer_high:g}]
set ytics 0, {layer_step:d}
set yrange [-0.5:{layer_high:g}]
set tmargin at screen 0.540
set bmargin at screen 0.240
set lmargin at screen 0.065
set rmargin at screen 0.405
set format x '%g'
set title 'best accuracy over the whole vocabulary'
set xlabel 'query layer'
set ylabel 'context layer'
unset grid
unset key
set colorbox user origin screen 0.415, screen 0.240 size screen 0.012, screen 0.30
plot 'sweep.csv' every ::{from:d}::{to:d} using (column('query_layer')):(column('context_layer')):(column('full')) with image pixels, \\
  '+' using ({entry.best.full.query_layer:d}):({entry.best.full.context_layer:d}) every ::0::0 with points pt 4 ps 1.6 lw 3 lc rgb '#ffffff', \\
  '+' using ({entry.best.full.query_layer:d}):({entry.best.full.context_layer:d}) every ::0::0 with points pt 4 ps 1.3 lw 1.5 lc rgb '#000000'
unset label 1
set lmargin at screen 0.565
set rmargin at screen 0.98
set xtics autofreq
set ytics autofreq
set title 'at the best pair of each, over the whole vocabulary'
set logscale x
set format x '%g'
set xrange [0.01:100]
set yrange [-0.02:1.02]
set xlabel 'coupling  λ'
set ylabel 'accuracy'
set grid ytics lc rgb '#dddddd'
plot \\
  {entry.zero_shot.full:.6g} with lines lt 8 lw 1.5 notitle, \\
  {entry.icl.full:.6g} with lines lt 2 lw 1.5 notitle, \\
  'sweep_steps.csv' using (column('shots') == {entry.k:d} && column('over_vocabulary') == 1 && column('context') == 3 ? (column('lambda_from') < 0.01 ? 0.01 : column('lambda_from')) : NaN):(column('accuracy')) with steps lt 6 lw 1.8 notitle, \\
  'sweep_steps.csv' using (column('shots') == {entry.k:d} && column('over_vocabulary') == 1 && column('context') == 3 && stringcolumn('lambda_to') eq 'inf' ? column('lambda_from') : NaN):(column('accuracy')):(100 - column('lambda_from')):(0) with vectors nohead lt 6 lw 1.8 notitle, \\
  'sweep_steps.csv' using (column('shots') == {entry.k:d} && column('over_vocabulary') == 1 && column('context') == 2 ? (column('lambda_from') < 0.01 ? 0.01 : column('lambda_from')) : NaN):(column('accuracy')) with steps lt 5 lw 1.8 notitle, \\
  'sweep_steps.csv' using (column('shots') == {entry.k:d} && column('over_vocabulary') == 1 && column('context') == 2 && stringcolumn('lambda_to') eq 'inf' ? column('lambda_from') : NaN):(column('accuracy')):(100 - column('lambda_from')):(0) with vectors nohead lt 5 lw 1.8 notitle, \\
  'sweep_steps.csv' using (column('shots') == {entry.k:d} && column('over_vocabulary') == 1 && column('context') == 1 ? (column('lambda_from') < 0.01 ? 0.01 : column('lambda_from')) : NaN):(column('accuracy')) with steps lt 4 lw 1.8 notitle, \\
  'sweep_steps.csv' using (column('shots') == {entry.k:d} && column('over_vocabulary') == 1 && column('context') == 1 && stringcolumn('lambda_to') eq 'inf' ? column('lambda_from') : NaN):(column('accuracy')):(100 - column('lambda_from')):(0) with vectors nohead lt 4 lw 1.8 notitle, \\
  'sweep_steps.csv' using (column('shots') == {entry.k:d} && column('over_vocabulary') == 1 && column('context') == 0 ? (column('lambda_from') < 0.01 ? 0.01 : column('lambda_from')) : NaN):(column('accuracy')) with steps lt 1 lw 3 notitle, \\
  'sweep_steps.csv' using (column('shots') == {entry.k:d} && column('over_vocabulary') == 1 && column('context') == 0 && stringcolumn('lambda_to') eq 'inf' ? column('lambda_from') : NaN):(column('accuracy')):(100 - column('lambda_from')):(0) with vectors nohead lt 1 lw 3 notitle
unset label 1
set lmargin at screen 0.02
set rmargin at screen 0.98
set tmargin at screen 0.130
set bmargin at screen 0.050
unset border
unset tics
unset grid
unset title
unset colorbox
unset xlabel
unset ylabel
unset logscale
set xrange [0:1]
set yrange [0:1]
set key center center horizontal maxrows 2
plot \\
  NaN with lines lt 8 lw 2.5 title 'zero-shot', \\
  NaN with lines lt 2 lw 2.5 title 'with demonstrations', \\
  NaN with lines lt 1 lw 2.5 title 'query + λ context', \\
  NaN with lines lt 4 lw 1.5 title 'flipped demonstrations', \\
  NaN with lines lt 5 lw 1.5 title 'context of another task', \\
  NaN with lines lt 6 lw 1.5 title 'mean of the label rows', \\
  NaN with lines lt 7 lw 1.5 title 'zero-shot, centred', \\
  NaN with lines lc rgb '#888888' dt 3 lw 1.5 title 'chance'
set border 3
set tics nomirror out
set xtics nomirror out
set ytics nomirror out
set grid ytics lc rgb '#dddddd' lw 1 dt 1
unset key
unset multiplot
