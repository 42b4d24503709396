Flows, grids and fixed points: timescale, capacity, phase, convergence, annealing and sparse.
### ratio
set logscale x
set xlabel 'τ_r / τ_s'
set ylabel 'share of trials'
set yrange [0:1.04]
set key left top
plot \
  'ratios.csv' using (column('ratio')):(column('accuracy')):(column('accuracy_se')) with yerrorlines lt 1 title 'the target is retrieved, ± s.e.', \
  '' using (column('ratio')):(column('context_first')) with linespoints lt 3 title 'context settles before retrieval decides'
### along
set logscale x
set format x '10^{%T}'
set xlabel 't / τ_s'
set ylabel 'mean N_{eff}  (exp of entropy)'
set yrange [0:*]
set xrange [1e-3:*]
set key outside right center
plot \
### log2
set logscale {axis} 2
### load
set xlabel 'load  N/d'
set ylabel 'retrieval accuracy'
set yrange [0:1.02]
set key outside right center
plot \
### map
unset grid
set border 15
set xlabel '{x}'
set ylabel '{y}' offset -1
set lmargin at screen 0.12
set rmargin at screen 0.83
set tmargin at screen 0.96
set bmargin at screen 0.19
set cblabel 'accuracy' offset 1
set cbrange [0:1]
set view map
set pm3d corners2color mean
set autoscale xfix
set autoscale yfix
set palette defined (0 '#fcfdbf', 0.25 '#fe9f6d', 0.5 '#de4968', 0.75 '#8c2981', 1 '#3b0f70')
set contour base
set cntrparam levels discrete 0.1, 0.25, 0.5, 0.75, 0.9
set cntrlabel onecolor font ',10' start 5 interval 60
set style textbox opaque noborder margins 0.3,0.2
set datafile nocolumnheaders
unset key
splot $map nonuniform matrix using 1:2:3 with pm3d, \
  $map nonuniform matrix using 1:2:3 with lines lc rgb '#000000' lw 1.2 nosurface, \
  $map nonuniform matrix using 1:2:3 with labels boxed font ',10' tc rgb '#000000' nosurface
### limits
set yrange [0:*]
set offsets 0, 0, graph 0.08, 0
set key right bottom
### rest
set logscale y
set yrange [*:2000 < * < 1e9]
set key right top
### contraction
set logscale x
set xlabel 'contraction constant  βλ^2 / 2η_{min}'
set ylabel '{label}'
set arrow 1 from 1, graph 0 to 1, graph 1 nohead lc rgb '#D55E00' dt 2 lw 1.5
plot NaN with lines lc rgb '#D55E00' dt 2 lw 1.5 title 'one fixed point to the left, proved'{more}
### contraction points
  'cells.csv' using (abs(column('alpha') - {alpha}) < 1e-12 ? column('contraction') : NaN):(column('{y}')) with points lt {style} ps 1.2 title 'α = {short}'{more}
### maps
unset grid
set border 0
unset colorbox
set xlabel 'β'
set ylabel 'λ'
set tmargin at screen 0.9
set bmargin at screen 0.2
set palette defined (0 '#ffffff', 0.5 '#cfe3f1', 1 '#6db1dc')
set multiplot
set xtics ({betas}) scale 0
set ytics ({lambdas}) scale 0
### cell map
set lmargin at screen {left}
set rmargin at screen {right}
set title '{title}'
set xrange [-0.5:{width}]
set yrange [-0.5:{height}]
plot 'cells.csv' using (int($0) % 2 == {context} ? int($0) / 2 % {betas} : NaN):(int($0) / {row}):(column('{column}')) with image pixels notitle, \
  '' using (int($0) % 2 == {context} ? int($0) / 2 % {betas} : NaN):(int($0) / {row}):(gprintf('{format}', column('{column}'))) with labels font ',11' tc rgb '#000000' notitle
### second map
set label 1 tc rgb '#ffffffff'
set ylabel ''
### maps end
unset multiplot
set label 1 tc rgb '#555555'
### sparse
set ylabel '{label}'
set yrange [0:{high}]
set xlabel 'query noise  σ_q'
set key outside right center
plot \
### sparse curve
  'cells.csv' using (column('order') == {order} && column('context') == {context} ? column('sigma_q') : NaN):(column('{column}')) with linespoints lt {style} dt {dash} title '{name}, {arm}'{more}
