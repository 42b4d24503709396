Studies of language models: neff, sweep, steer and probe.
### layers
set {axis}tics 0, {step}
set {axis}range [-0.5:{high}]
### band
  '{file}' using (column('shots') == {shots} ? column('layer') : NaN):({y}{low}):({y}{high}) with filledcurves lt {style} fs transparent solid 0.15 noborder notitle, \
### shots curve
  '{file}' using (column('shots') == {shots} ? column('layer') : NaN):({y}) with linespoints lt {style} title '{title}'{more}
### legend
unset label 1
set lmargin at screen 0.02
set rmargin at screen 0.98
set tmargin at screen {high}
set bmargin at screen {low}
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
plot \
### legend curve
  NaN with linespoints lt {style} title '{title}', \
### legend answer
  NaN with {with} lt {style} lw {width} title '{title}', \
### legend chance
  NaN with lines lc rgb '#888888' dt 3 lw 1.5 title 'chance'
### legend no context
  NaN with lines lc rgb '#000000' dt 3 lw 1.5 title 'no context'
### legend end
set border 3
set tics nomirror out
set xtics nomirror out
set ytics nomirror out
set grid ytics lc rgb '#dddddd' lw 1 dt 1
unset key
unset multiplot
### neff axes
set xlabel 'layer'
set bmargin at screen 0.27
set key at screen 0.52, screen 0.105 center center horizontal maxrows 2
### mass
set ylabel 'probability of the labels together'
set yrange [-0.02:1.02]
plot \
### neff
set ylabel 'effective number of words  N_{eff}'
set logscale y
set format y '10^{%T}'
set yrange [0.9:{high}]
plot \
  {vocabulary} with lines lc rgb '#888888' dt 1 lw 1.5 title 'vocabulary', \
  {labels} with lines lc rgb '#888888' dt 3 lw 1.5 title 'labels', \
### shots
set xlabel 'demonstrations'
set yrange [-0.02:1.02]
unset key
set logscale x 2
set xrange [{first}:{last}]
set tmargin at screen 0.91
set bmargin at screen 0.33
set ylabel 'accuracy, held out'
### shots panel
set lmargin at screen {left}
set rmargin at screen {right}
set title '{title}'
### shots second
unset label 1
unset ylabel
### shots plot
set xtics ({tics})
plot \
### shots answer
  $over{over} using ($1*{shift}):{column}:{error} with yerrorlines lt {style} lw {width} notitle, \
### level
  {y} with lines lt {style} lw 1.5 notitle, \
### chance
  {chance} with lines lc rgb '#888888' dt 3 lw 1.5 notitle{more}
### sweep
set palette defined (0 '#fcfdbf', 0.25 '#fe9f6d', 0.5 '#de4968', 0.75 '#8c2981', 1 '#3b0f70')
set cbrange [0:1]
### sweep map
set tmargin at screen {top}
set bmargin at screen {bottom}
set lmargin at screen 0.065
set rmargin at screen 0.405
set format x '%g'
set title 'best accuracy {over}'
set xlabel 'query layer'
set ylabel 'context layer'
unset grid
unset key
set colorbox user origin screen 0.415, screen {bottom} size screen 0.012, screen 0.30
plot 'sweep.csv' every ::{from}::{to} using (column('query_layer')):(column('context_layer')):(column('{column}')) with image pixels, \
  '+' using ({query}):({context}) every ::0::0 with points pt 4 ps 1.6 lw 3 lc rgb '#ffffff', \
  '+' using ({query}):({context}) every ::0::0 with points pt 4 ps 1.3 lw 1.5 lc rgb '#000000'
unset label 1
set lmargin at screen 0.565
set rmargin at screen 0.98
set xtics autofreq
set ytics autofreq
set title 'at the best pair of each, {over}'
set logscale x
set format x '%g'
set xrange [0.01:100]
set yrange [-0.02:1.02]
set xlabel 'coupling  λ'
set ylabel 'accuracy'
set grid ytics lc rgb '#dddddd'
plot \
### sweep steps
  'sweep_steps.csv' using (column('shots') == {shots} && column('over_vocabulary') == {over} && column('context') == {context} ? (column('lambda_from') < 0.01 ? 0.01 : column('lambda_from')) : NaN):(column('accuracy')) with steps lt {style} lw {width} notitle, \
  'sweep_steps.csv' using (column('shots') == {shots} && column('over_vocabulary') == {over} && column('context') == {context} && stringcolumn('lambda_to') eq 'inf' ? column('lambda_from') : NaN):(column('accuracy')):(100 - column('lambda_from')):(0) with vectors nohead lt {style} lw {width} notitle{more}
### steer panel
set lmargin at screen {left}
set rmargin at screen {right}
set tmargin at screen {top}
set bmargin at screen {bottom}
set yrange [{least}:{most}]
### steer first
set ylabel '{label}'
set format y '%g'
### steer other
unset ylabel
set format y ''
### steer above
set title 'λ = {lambda}'
unset xlabel
plot \
### steer below
unset title
set xlabel 'context layer'
plot \
### steer band
  'steer.csv' using (column('shots') == {shots} && column('context') == {context} && abs(column('lambda')-{lambda}) < 1e-12 ? column('layer') : NaN):({low}):({high}) with filledcurves lt {style} fs transparent solid 0.18 noborder notitle, \
### steer curve
  'steer.csv' using (column('shots') == {shots} && column('context') == {context} && abs(column('lambda')-{lambda}) < 1e-12 ? column('layer') : NaN):(column('{measure}')) with linespoints lt {style} ps 0.5 title '{title}', \
### steer end
  {baseline} with lines lc rgb '#000000' dt 3 lw 1.5 title 'no context'
unset label 1
### probe
set xlabel 'layer'
set tmargin at screen 0.91
set bmargin at screen 0.33
set lmargin at screen 0.08
set rmargin at screen 0.48
unset key
set title 'separability'
set ylabel 'held-out accuracy of a probe'
set yrange [0:1.02]
plot {chance} with lines lc rgb '#888888' dt 3 lw 1.5 notitle, \
### probe alignment
unset label 1
set lmargin at screen 0.58
set rmargin at screen 0.98
set title 'alignment'
set ylabel 'margin of the cosine'
set yrange [*:*]
plot 0 with lines lc rgb '#888888' dt 3 lw 1.5 notitle, \
